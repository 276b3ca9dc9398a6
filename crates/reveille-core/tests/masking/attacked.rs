//! What an attacker of the masker found, by families: what must be masked, and what beside it must stay.

use reveille_core::diagnose::console::mask_secrets;

/// What a logger writes before each line.
pub(crate) const PREFIXES: [&str; 5] = [
    "",
    "Nov 26 06:00:00 w-3 cloud-init[812]: ",
    "2026-11-26T06:00:00.123456789Z stdout F ",
    "2026-11-26T06:00:00+0000 w-3 systemd-bootstrap: ",
    "[   31.402137] cloud-init[1187]: ",
];

/// The text behind each logger's prefix.
pub(crate) fn logged(text: &str) -> impl Iterator<Item = String> {
    PREFIXES.iter().map(move |prefix| {
        text.split('\n').map(|line| format!("{prefix}{line}")).collect::<Vec<_>>().join("\n")
    })
}

/// Everything that holds for each text: lines stay, twice is once.
pub(crate) fn masked(text: &str) -> String {
    let masked = mask_secrets(text).into_owned();
    assert_eq!(masked.matches('\n').count(), text.matches('\n').count(), "{text:?}\n{masked:?}");
    assert_eq!(mask_secrets(&masked), masked, "{text:?}");
    masked
}

/// Checks that none of these texts keeps its secret, behind any logger's prefix.
pub(crate) fn none_survives(table: &[(&str, &str)]) {
    let mut survive = Vec::new();
    for (text, secret) in table {
        assert!(text.contains(secret), "{text}");
        for text in logged(text) {
            let masked = masked(&text);
            if masked.contains(secret) {
                survive.push(format!("{text:?}\n    {masked:?}"));
            }
        }
    }
    assert!(survive.is_empty(), "{} survive:\n{}", survive.len(), survive.join("\n"));
}

#[test]
fn invitation_of_our_own_keeps_its_id_alone() {
    const SECRET: &str = "8f2e1c6d4b3a29187f6e5d4c3b2a19080f1e2d3c4b5a69788796a5b4c3d2e1f0";
    for form in [
        "{}",
        "reveille token {}",
        "token={}",
        "token file holds \"{}\", expected one line",
        "{\\\"msg\\\":\\\"{}\\\\n\\\"}",
        "(umask 077 && cat >/etc/reveille/token) <<'END'\n{}\nEND",
        "<{}>, and ({}).",
    ] {
        for text in logged(&form.replace("{}", &format!("rvi1.6f0c4e21a9b3.{SECRET}"))) {
            let masked = masked(&text);
            assert!(
                !SECRET
                    .as_bytes()
                    .windows(6)
                    .any(|part| { masked.contains(std::str::from_utf8(part).unwrap()) }),
                "{masked}"
            );
            assert!(form.starts_with("token") || masked.contains("rvi1.6f0c4e21a9b3.[masked]"), "{masked}");
        }
    }
    for cut in [63, 40, 16, 8] {
        assert_eq!(masked(&format!("rvi1.6f0c4e21a9b3.{}", &SECRET[..cut])), "rvi1.6f0c4e21a9b3.[masked]");
    }
    for stays in ["rvi1.ID.SECRET", "rvi1.6f0c4e21a9b3 was used up", "form rvi1. is not known", "rvi1.a.b"] {
        assert_eq!(masked(stays), stays);
    }
}

/// A Secret in every spelling that kubectl, helm and people write; the name and what is beside it stay.
#[test]
fn secret_manifests_do_not_survive() {
    const HEAD: &str = "metadata:\n  name: x\n";
    let spelt = [
        "kind: Secret\napiVersion: v1\nstringData:\n  dsn: S",
        "apiVersion: v1\nkind: Secret\nstringData:\n  dsn: S",
        "kind: Secret # of the app\napiVersion: v1\ndata: # base64\n  dsn: S",
        "apiVersion: v1\ndata: {dsn: S, other: \"S\"}\nkind: Secret",
        "kind: 'Secret'\nstringData: {\n  dsn: S,\n  \"x y\": S}",
        "\"kind\": \"Secret\"\n\"stringData\":\n  \"dsn\": \"S\"",
        "kind : Secret\ndata : &all\n  dsn : S",
        "{\n    \"apiVersion\": \"v1\",\n    \"data\": {\n        \"dsn\": \"S\",\n        \"b\": \"S\"\n    },\n    \"kind\": \"Secret\",\n    \"metadata\": {\n        \"name\": \"x\"\n    }\n}",
        "{\n  \"items\": [\n    {\n      \"kind\": \"ConfigMap\"\n    },\n    {\n      \"kind\": \"Secret\",\n      \"data\": {\n        \"dsn\": \"S\"\n      }\n    }\n  ],\n  \"kind\": \"List\"\n}",
        "{\"kind\" : \"Secret\", \"data\" : { \"dsn\" : \"S\", \"b\":\"S\" }}",
        "- {apiVersion: v1, kind: Secret, stringData: {dsn: S}}",
        "apiVersion: v1\nitems:\n- apiVersion: v1\n  data:\n    dsn: S\n  kind: Secret\n- apiVersion: v1\n  data:\n    keep: kept\n  kind: ConfigMap\nkind: List",
        "kind: Secret\ntype: Opaque\nstringData:\n  app.conf: |\n    dsn S\n    [x]\n\n    y S\n  other: >-\n    S",
        "kind: ConfigMap\ndata:\n  x.yaml: |\n    kind: Secret\n    stringData:\n      dsn: S",
        "apiVersion: v1\nkind: Secret\nimmutable: true\ndata:\n  dsn: [masked]S",
        "+kind: Secret\n+stringData:\n+  dsn: S",
    ];
    for secret in ["vR8xKq2LmZ7t", "plain words", "dlI4eEtxMkxtWjd0UTk="] {
        for text in spelt {
            for text in logged(&text.replace('S', secret).replace(&format!("{secret}ecret"), "Secret")) {
                let masked = masked(&text);
                assert!(!masked.contains(secret), "{text}\n\n{masked}");
                assert_eq!(masked.contains("kept"), text.contains("kept"), "{masked}");
            }
        }
    }
    for stays in [
        "kind: ConfigMap\ndata:\n  a: b\n---\nkind: Secret\nmetadata:\n  name: x",
        "kind: Secret\nmetadata:\n  name: x\n---\nkind: ConfigMap\ndata:\n  a: b",
        "- apiVersion: v1\n  kind: Secret\n- apiVersion: v1\n  kind: ConfigMap\n  data:\n    a: b",
        "involvedObject:\n  kind: Secret\n  name: x\ndata:\n  a: b",
        "kind: Secret\ntype: Opaque\n",
    ] {
        for text in logged(&format!("{stays}\n{HEAD}")) {
            assert_eq!(masked(&text), text);
        }
    }
}

/// What commands print as tables, and what stands alone behind its name.
#[test]
fn tables_do_not_survive() {
    none_survives(&[
        ("| adminPass | x1 |", "x1"),
        ("+-------+------+\n| Field | Value |\n| secret       | kXv2mQpLz8TzR1nWc4Jh |", "kXv2mQ"),
        ("| private_key | short |", "short"),
        ("| Admin Password | hunter22 |", "hunter22"),
        ("|   original_password  |   two words |", "two words"),
        ("| trust_key | 8f2e1c6d4b3a29187f6e5d4c3b2a1908 |", "8f2e1c6d"),
        ("Key         Value\n---         -----\npassword    hunter22\n", "hunter22"),
        ("token\tlemonade", "lemonade"),
        ("neighbor 10.0.0.1 password hunter22", "hunter22"),
        (" neighbor FABRIC password hunter22", "hunter22"),
        ("user bob insecure-password hunter22", "hunter22"),
        ("  password \"lemon tree\";", "lemon tree"),
        ("key \"k\" { algorithm hmac-sha256; secret \"aHVudGVyMjI=\"; };", "aHVudGVyMjI="),
        ("  secret \"lemonade\" ;", "lemonade"),
        ("Unseal Key 1: Qx7bT9zKwL2mQx7bT9zKwL2mQx7bT9zKwL2m", "Qx7bT9zK"),
        ("Recovery Key 3: lemonade", "lemonade"),
        (
            "[upload-certs] Using certificate key:\n8f2e1c6d4b3a29187f6e5d4c3b2a19080f1e2d3c4b5a69788796a5b4c3d2e1f0",
            "8f2e1c6d",
        ),
        ("temporary password is generated for root@localhost: hunter22", "hunter22"),
    ]);
    for stays in [
        "| Name | Value |",
        "| id | 1f2e3d4c5b6a79880a1b2c3d4e5f6071 |",
        "| key_name | core |",
        "| secret_href | http://10.0.0.9:9311/v1/secrets/1 |",
        "| User | Password | Host |",
        "| admin_state_up | True |",
        "references secret \"os-cloud-config\"",
        "secret \"os-cloud-config\" not found",
        "token expired",
        "secret created",
        "pam: password sha512",
        "ssh2: password required",
        "Using certificate key:\nnext line",
        "Unseal Key is missing",
    ] {
        assert_eq!(masked(stays), stays);
    }
}

/// Files of daemons whose lines have no names.
#[test]
fn files_of_daemons_do_not_survive() {
    none_survives(&[
        ("10.0.0.1 10.0.0.2 : PSK \"hunter22\"", "hunter22"),
        (": PSK lemonade", "lemonade"),
        ("bob@x.example: XAUTH \"lemon tree\"", "lemon tree"),
        ("bob : EAP hunter22", "hunter22"),
        (": RSA /etc/ipsec.d/private/a.pem \"lemon tree\"", "lemon tree"),
        (": P12 a.p12 \"lemonade\"", "lemonade"),
        ("bob * hunter22 *", "hunter22"),
        ("\"bob@isp\" * \"lemonade\"", "lemonade"),
        ("bob * lemonade 10.0.0.9", "lemonade"),
        ("1 SHA256 HEX:1dc764e0791b11fa67efc7ecbc4b0d73", "1dc764e0"),
        ("10 MD5 ASCII:lemonade", "lemonade"),
        ("7 AES128 lemonade # chrony", "lemonade"),
        ("42 M lemonade", "lemonade"),
        ("user default on >hunter22 ~* &* +@all", "hunter22"),
        ("ACL SETUSER bob on >lemonade ~app:*", "lemonade"),
        ("rocommunity s3cr3tc0mm 10.0.0.0/8", "s3cr3tc0mm"),
        ("rwcommunity6 lemonade default -V all", "lemonade"),
        ("com2sec local 10.0.0.0/8 lemonade", "lemonade"),
        ("trap2sink 10.0.0.9 lemonade 162", "lemonade"),
        ("snmp-server community lemonade RO", "lemonade"),
        ("createUser bob SHA lemonade AES limeade", "lemonade"),
        ("createUser bob SHA-256 \"lemon tree\" AES \"lime tree\"", "lime tree"),
        ("createUser -e 0x80001f88 bob MD5 lemonade DES limeade", "limeade"),
        ("ldap_default_authtok = lemonade", "lemonade"),
    ]);
    assert_eq!(masked("rocommunity s3cr3tc0mm 10.0.0.0/8"), "rocommunity [masked] 10.0.0.0/8");
    for stays in [
        "5 * * * * root /usr/bin/true",
        "len * 3",
        "2 SHA256 sums differ",
        "user bob on host w-1 > /dev/null",
        "trapsink: down",
    ] {
        assert_eq!(masked(stays), stays);
    }
}

/// Options and words of commands that node bootstrap runs.
#[test]
fn commands_of_bootstrap_do_not_survive() {
    none_survives(&[
        ("consul agent -encrypt=lemonade -data-dir=/x", "lemonade"),
        ("serf agent -encrypt lemonade", "lemonade"),
        ("{\"encrypt\": \"Qx7bT9zKwL2mQx7bT9zKwA==\"}", "Qx7bT9zK"),
        ("vault kv put -mount=secret db user=bob value=lemonade", "lemonade"),
        ("bao kv patch secret/db anything='lemon tree'", "lemon tree"),
        ("aws ssm put-parameter --name /prod/db --type SecureString --value lemonade", "lemonade"),
        ("aws ssm put-parameter --value=lemonade --name x", "lemonade"),
        ("az keyvault secret set --name x --vault-name v --value lemonade", "lemonade"),
        ("gh secret set X --body lemonade", "lemonade"),
        ("flyctl secrets set X=lemonade", "lemonade"),
        ("k3s agent --server https://10.0.0.1:6443 -t lemonade", "lemonade"),
        ("/usr/local/bin/rke2 server -t lemonade", "lemonade"),
        ("pro attach lemonade --no-auto-enable", "lemonade"),
        ("sudo ua attach lemonade", "lemonade"),
        ("SUSEConnect -r LEMONADE7 -e a@b.c", "LEMONADE7"),
        ("transactional-update register -r LEMONADE7", "LEMONADE7"),
        ("SUSEConnect --regcode LEMONADE7", "LEMONADE7"),
        ("subscription-manager register -u bob -p lemonade", "lemonade"),
        ("subscription-manager register --username bob --password lemonade", "lemonade"),
        ("rhc connect -a lemonade -o 1", "lemonade"),
        ("ipa-client-install -p admin -w lemonade --unattended", "lemonade"),
        ("lftp -u bob,lemonade ftp.example", "lemonade"),
        ("microk8s join 10.0.0.1:25000/92b2db237428470d/2c0cb3284b05 --worker", "92b2db237428470d"),
        ("kubectl apply -f https://rancher.example/v3/import/lemonade7_c-m-abc.yaml", "lemonade7"),
        (
            "curl --insecure -sfL https://10.0.0.9:8443/v3/import/lemonade7.yaml | kubectl apply -f -",
            "lemonade7",
        ),
        ("netbird up --setup-key 9E2C7B1A-4D3F-4B6A-8C1D-2E3F4A5B6C7D", "9E2C7B1A"),
        ("NB_SETUP_KEY=lemonade", "lemonade"),
        ("nsupdate -y hmac-sha256:k:lemonade", "lemonade"),
        ("dig -y k:lemonade example axfr", "lemonade"),
        ("juju register lemonade", "lemonade"),
        ("cloudflared service install eyJhIjoi", "eyJhIjoi"),
    ]);
    assert_eq!(
        masked("microk8s join 10.0.0.1:25000/92b2db237428470d/2c0c --worker"),
        "microk8s join 10.0.0.1:25000/[masked] --worker"
    );
    for stays in [
        "vault kv get -field=value secret/db",
        "consul members",
        "k3s agent -c /etc/x.yaml",
        "pro status",
        "lftp ftp.example",
    ] {
        assert_eq!(masked(stays), stays);
    }
}

/// Names, lists, addresses, keys, and masks that another program wrote.
#[test]
fn names_lists_and_addresses_do_not_survive() {
    const KEY: &str = "6acef03f62675b4b1bbd03e53b187727";
    none_survives(&[
        ("LOCKSMITHD_ETCD_PASSWORD=Tr4vel-Mug", "Tr4vel"),
        ("lockboxToken: 9fQz7Lm2Xw", "9fQz7"),
        ("lockerPassphrase: lemon tree", "lemon"),
        ("blockchain_secret=lemonade", "lemonade"),
        ("define('DB_PASSWORD', 'lemonade');", "lemonade"),
        ("define( \"AUTH_TOKEN\",\"lemonade\" );", "lemonade"),
        ("setenv(\"PGPASSWORD\", \"lemonade\", 1)", "lemonade"),
        ("password=[masked]lemonade", "lemonade"),
        ("token: [masked]lemonade", "lemonade"),
        ("curl -u bob:[masked]lemonade https://x", "lemonade"),
        ("tokens:\n- limeade\n- lemonade", "lemonade"),
        ("tokens:\n  - limeade\n  - \"lemonade\"\nnext: 1", "lemonade"),
        ("\"passwords\": [\"limeade\", \"lemonade\"]", "lemonade"),
        ("{\"apiTokens\": [\n  \"limeade\",\n  \"lemonade\"\n]}", "lemonade"),
        ("BASIC_AUTH=bob:lemonade", "lemonade"),
        ("export PROXY_AUTH='bob:lemonade'", "lemonade"),
        ("httpAuth: bob:lemonade", "lemonade"),
        ("ETCDCTL_USER=root:lemonade", "lemonade"),
        ("postgres://bob:lemon/ade77@db/x", "ade77"),
        ("amqp://bob:lemon?ade77@mq:5672/", "ade77"),
        ("GET /callback?code=Qx7bT9zKwL2mQx7b&state=x", "Qx7bT9zK"),
        ("netroot=iscsi:bob:lemonade@10.0.0.1::3260::iqn.x", "lemonade"),
        ("jdbc:oracle:thin:bob/lemonade@db:1521/x", "lemonade"),
        ("agent-token: 'correct horse battery'", "horse"),
        ("client_secret = \"correct horse battery\"", "horse"),
        ("DB_PASS=${DB_PASS-lemonade}", "lemonade"),
        (
            "<tls-auth>\n-----BEGIN OpenVPN Static key V1-----\n6acef03f62675b4b1bbd03e53b187727\n423cea742242106cb2916a8a4c829756\n-----END OpenVPN Static key V1-----\n</tls-auth>",
            KEY,
        ),
        (
            "-----BEGIN OpenVPN Static key V1-----\n6acef03f62675b4b1bbd03e53b187727\n423cea742242106cb2916a8a4c829756",
            KEY,
        ),
        (
            "-----BEGIN OpenVPN tls-crypt-v2 client key-----\n6acef03f62675b4b1bbd03e53b187727\n-----END OpenVPN tls-crypt-v2 client key-----",
            KEY,
        ),
        ("Private-Lines: 2\nAAAAIHunter22Hunter22=\nAAAAlemonade==\nPrivate-MAC: 9a3f0b7c55de", "lemonade"),
    ]);
    for stays in [
        "lock_passwd: true",
        "block: 7 unlock: 8",
        "tokens:\n  max: 5\n- name: x",
        "imagePullSecrets:\n- name: regcred",
        "secrets:\n- name: coredns-token-x7k2p",
        "ETCDCTL_USER=root",
        "K8S_USER=system:node:w-3",
        "auth: connection refused 10.0.0.1:2379",
        "OS_AUTH=keystone:5000",
        "http://10.0.0.1:8080/x@y",
        "docker://busybox:1.36@sha256:7031c1b283388d2c2e09b57badb803c05ebed362dc88d84b480cc47f72a21097",
        "GET /x?code=404&state=x",
        "iscsi: initiator started",
        "exited with code=1",
        "has_attr('password', 7)",
        "password=[masked], user=bob",
        "Private-Lines: 2",
    ] {
        assert_eq!(masked(stays), stays);
    }
}

/// A reason behind a telling name is what diagnosis reads for.
#[test]
fn reasons_behind_telling_names_stay() {
    for stays in [
        "systemd-cryptsetup[1]: Failed to activate with specified passphrase: Invalid argument",
        "cryptsetup: passphrase: No key available with this passphrase.",
        "msg=\"unlock with passphrase: Required key not available\"",
        "keyctl: password: Key was rejected by service",
        "password: expired 3 days ago for user svc on 10.0.0.7",
        "password: changed by root at 10:01:02",
        "db password: rejected by server after 90s",
        "token: 401 Unauthorized from https://10.0.0.1:6443/api after 3 tries",
        "refresh token: 403 Forbidden",
        "password: (407) Proxy Authentication Required",
        "authorization: 503 Service Unavailable",
        "cookie: map 0x1f2e flow 7 drop 10.0.0.4",
        "cookie: table 12 priority 100 drop",
        "passwd: user root locked by policy pam_faillock",
        "passwd: Authentication token manipulation error",
        "passwd: password expired for user x",
        "passwd: account svc expired since 3 days",
        "Password: must not be empty for user svc",
    ] {
        for text in logged(stays) {
            assert_eq!(masked(&text), text);
        }
    }
    none_survives(&[
        ("password: expired horse battery", "battery"),
        ("password: is not set yet, use hunter22", "hunter22"),
        ("password: not for the eyes of Hunter22x", "Hunter22x"),
        ("passphrase: invalid argument hunter22", "hunter22"),
        ("passphrase: Invalid arguments", "arguments"),
        ("password: 401 lemonade", "lemonade"),
        ("token: 401", "401"),
        ("Cookie: session lemonade7x9 of host", "lemonade7x9"),
        ("Cookie: lemonade", "lemonade"),
        ("Cookie: a=lemonade; b=c d", "lemonade"),
        ("passwd: user lemonade", "lemonade"),
    ]);
}

/// `user:x` in base64, as containerd, k3s and docker keep a registry's credentials. Chance is no help where it is short.
#[test]
fn an_account_that_is_encoded_behind_auth_does_not_survive() {
    for encoded in [
        "dTpwNHNzVzByZA==",
        "dTpwNHNzVzByZA",
        "dTpwYXNz",
        "YWRtaW46SGFyYm9yMTIzNDU=",
        "cm9ib3QkcHVsbDpoVW50M3JUd285elE=",
        "QVdTOmV5SndZWGxzYjJGa0lqb2lRWFo1U25CS1IyRjQ=",
        "X2pzb25fa2V5OmhVbnQzclR3bzl6UWhVbnQzclR3bzl6UWhVbnQzclR3bzl6UQ==",
    ] {
        for form in [
            "[plugins.\"x\".registry.configs.\"r.example\".auth]\n  auth = \"S\"",
            "    auth:\n      auth: S",
            "{\"auths\":{\"r.example\":{\"auth\":\"S\"}}}",
            "x = \"{\\\"auth\\\": \\\"S\\\"}\"",
            "_auth=S",
            "basicAuth: 'S'",
        ] {
            none_survives(&[(&form.replace('S', encoded), encoded)]);
        }
    }
    for stays in [
        "auth: disabled",
        "auth = \"kerberos\"",
        "auth: keystone-v3",
        "auth=password",
        "client_auth: RequireAndVerifyClientCert",
    ] {
        assert_eq!(masked(stays), stays);
    }
}

/// YAML's tags and anchors, which stand between a name and its value.
#[test]
fn a_value_behind_a_tag_or_an_anchor_does_not_survive() {
    none_survives(&[
        ("token: !!str lemonade", "lemonade"),
        ("token: &t lemonade", "lemonade"),
        ("token: &t !!str lemonade", "lemonade"),
        ("\"token\": !<tag:yaml.org,2002:str> 'lemon tree'", "lemon tree"),
        ("{token: !!str lemonade, name: x}", "lemonade"),
        ("password: !!str \"lemon tree\"", "lemon tree"),
        ("password: &p lemon tree", "lemon tree"),
        ("token: !!str |\n  lemonade", "lemonade"),
        ("password: !vault |-\n  lemon\n  tree", "tree"),
        ("token: &t\n  lemonade", "lemonade"),
        ("token: !lemonade", "lemonade"),
        ("password: &lemonade not found", "lemonade"),
        ("token: !l3monade null", "l3monade"),
        ("token: !lemonade [masked]", "lemonade"),
    ]);
    assert_eq!(masked("name: !!str x\nttl: &t 5m"), "name: !!str x\nttl: &t 5m");
}

/// What TOML writes over several lines; what follows it stays.
#[test]
fn lines_between_three_quotes_do_not_survive() {
    for sign in ["'''", "\"\"\""] {
        for form in [
            "password = Q\nlemonade\nQ\nstays = 1",
            "password = Qlime\n  lemonade\n\nQ\nstays = 1",
            "secret = Q\nlime\nlemonadeQ\nstays = 1",
            "token = Q\n[masked]lemonade\nQ\nstays = 1",
            "password = Qlemon lemonadeQ\nstays = 1",
            "\"api_token\": Q\\\nlemonade\nQ,\nstays = 1",
        ] {
            let form = form.replace('Q', sign);
            none_survives(&[(&form, "lemonade")]);
            logged(&form).for_each(|text| assert!(masked(&text).contains("stays = 1"), "{}", masked(&text)));
        }
    }
    let docs = "def f():\n    \"\"\"\n    says how\n    \"\"\"\nname = '''\nx\n'''";
    assert_eq!(masked(docs), docs);
}

/// What mounts take with a user: `user:x` of curlftpfs, `user%x` of Samba.
#[test]
fn an_account_in_the_options_of_a_mount_does_not_survive() {
    none_survives(&[
        ("curlftpfs#ftp.example /mnt fuse rw,uid=1000,user=u:lemonade 0 0", "lemonade"),
        ("curlftpfs -o user=u:lemonade,allow_other ftp://ftp.example /mnt", "lemonade"),
        ("user = \"bob:/lemonade\"", "lemonade"),
        ("//srv/share /mnt cifs username=u%lemonade,uid=1000 0 0", "lemonade"),
        ("//srv/share /mnt cifs user=dom/u%lemonade,uid=1000 0 0", "lemonade"),
        ("mount -t cifs -o 'username=u%lemonade' //srv/share /mnt", "lemonade"),
    ]);
    for stays in [
        "user=\"system:node:w-1\" cannot list nodes",
        "user=oidc:alice groups=ops",
        "user=bob host=10.0.0.1:5432",
        "user=postgres:5432",
        "GET /users?username=bob%40example.com",
        "user=%s",
        "audit: pid=1 uid=0 user=root msg='op=login'",
        "User: root:x",
    ] {
        assert_eq!(masked(stays), stays);
    }
}
