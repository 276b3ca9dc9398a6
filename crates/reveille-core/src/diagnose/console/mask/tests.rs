//! What must go, what must stay, and that hostile text costs no more than long text.

use super::*;

const CANARY: &str = "cAnArY77";

/// Every way in which a secret was seen on a console, with the canary or a token in its place.
#[test]
fn canaries_do_not_survive() {
    let blob = "H4sIAAAAAAAA".to_owned() + &"Qx7bT9zKwL2m".repeat(8);
    let jwt = "eyJhbGciOiJSUzI1NiIsImtpZCI6IiJ9.eyJzdWIiOiJub2RlIn0.c2lnbmF0dXJlLWJ5dGVz";
    let table: Vec<(String, &str)> = vec![
        ("kubeadm join 10.0.0.1:6443 --token abcdef.0123456789abcdef".into(), "0123456789abcdef"),
        ("level=info msg=\"token q1w2e3.zxcvbnmasdfghjkl used\"".into(), "zxcvbnmasdfghjkl"),
        (format!("OS_PASSWORD={CANARY}"), CANARY),
        (format!("+ export DB_PASSWD='{CANARY} two words'"), "two words"),
        (format!("\"adminPassword\": \"{CANARY}\", \"user\": \"x\""), CANARY),
        (format!("password: {CANARY}"), CANARY),
        (format!("password: three plain words {CANARY}"), CANARY),
        (format!("password=a]b,c;{CANARY}"), CANARY),
        (format!("application_credential_secret = {CANARY}"), CANARY),
        (format!("./agent --secret {CANARY} --name n"), CANARY),
        (format!("K3S_TOKEN=K10{CANARY}::server:{CANARY}"), CANARY),
        (format!("X-Auth-Token: gAAAAA{CANARY}"), CANARY),
        (format!("> Authorization: Basic {CANARY}"), CANARY),
        (format!("Authorization: Bearer {CANARY}.{CANARY}"), CANARY),
        (format!("sent header bearer {CANARY}{CANARY}"), CANARY),
        (format!("jwt {jwt}"), "c2lnbmF0dXJlLWJ5dGVz"),
        (format!("signature={jwt}"), "eyJzdWIi"),
        (format!("Unhandled non-multipart (text/x-not-multipart) userdata: 'b'{CANARY} x'..."), CANARY),
        (format!("https://robot:{CANARY}@registry.example/v2/"), CANARY),
        (format!("content: {blob}"), "Qx7bT9zKwL2m"),
        (format!("-----BEGIN RSA PRIVATE KEY-----\n{CANARY}\nab=\n-----END RSA PRIVATE KEY-----"), CANARY),
        (format!("[ 9.1] init: -----BEGIN PRIVATE KEY-----\n[ 9.2] init: {CANARY}+/a"), CANARY),
        (format!("client-key-data: {CANARY}"), CANARY),
        (format!("kubeadm join --certificate-key {CANARY}"), CANARY),
        (format!("\u{1b}[36mtoken\u{1b}[0m={CANARY}"), CANARY),
        (format!("time=9 #033[36mtoken#033[0m={CANARY} [36mdb-password[0m: {CANARY}"), CANARY),
        (
            format!("\u{1b}[33mabcdef.c4naryc4naryc4na\u{1b}[0m {CANARY}").replace(CANARY, "token=1"),
            "c4naryc4naryc4na",
        ),
        (format!("body={{\\\"password\\\":\\\"{CANARY} two\\\",\\\"user\\\":1}}"), "two"),
    ];
    for (text, secret) in table {
        assert!(text.contains(secret), "the canary is in the sample: {text}");
        let masked = mask_secrets(&text);
        assert!(!masked.contains(secret), "{masked}");
        assert!(masked.contains(MASK), "{masked}");
        assert_eq!(masked.matches('\n').count(), text.matches('\n').count(), "{masked}");
        assert_eq!(mask_secrets(&masked), masked, "masking twice changes nothing");
    }
}

#[test]
fn facts_of_a_failure_stay() {
    for text in [
        "ignition[512]: GET http://169.254.169.254/openstack/latest/user_data: attempt #3",
        "ignition[242]: GET http://169.254.169.254/2009-04-04/user-data: attempt #1",
        "failed: TestNodeV1Beta1Status of 3",
        "could not find a JWS signature in the cluster-info ConfigMap for token ID \"q1w2e3\"",
        "none of the public keys \"sha256:7a0cd3cc18ea132b33e1921b2d74c4bfc516802b4800c89e595ae04b3d1cf3aa\" are pinned",
        "Failed running /var/lib/cloud/instances/i-06d8b0458264aaaaa/scripts/part-001 [1]",
        "open /etc/kubernetes/pki/ca.crt: no such file or directory",
        "[ERROR FileContent--proc-sys-net-bridge-bridge-nf-call-iptables]: contents are not set to 1",
        "k8s.io/client-go/informers/factory.go:150: Failed to watch *v1.Node: Unauthorized",
        "node-7xk2p login:",
        "secret \"os-cloud-config\" not found",
        "mounting /dev/disk/by-uuid/3f0c7e30-1111-4222-8333-444455556666",
        "token-ttl: 24h0m0s",
        "kubeadm join 10.0.0.1:6443 --discovery-token-ca-cert-hash sha256:7a0cd3cc18ea132b33e1921b2d74c4bfc516802b4800c89e595ae04b3d1cf3aa",
        "FLAG: --authorization-mode=\"Webhook\"",
        "FLAG: --image-credential-provider-config=\"/etc/kubernetes/credential-provider.yaml\"",
        "FLAG: --tls-private-key-file=\"/var/lib/kubelet/pki/kubelet.key\"",
        "failed to fetch token: serviceaccounts \"default\" is forbidden",
        "failed to list *v1.Secret: secrets is forbidden: User \"system:node:w-1\" cannot list resource",
        "oidc: verify token: oidc: id token issued by a different provider",
        "pulled registry.k8s.io/pause:3.9@sha256:7031c1b283388d2c2e09b57badb803c05ebed362dc88d84b480cc47f72a21097",
        "ssh2: ED25519 SHA256:Qx7bT9zKwL2mQx7bT9zKwL2mQx7bT9zKwL2mQx7bT9z",
        "\"Couldn't update token\" token=\"kube-system/coredns\"",
        "key: node-role.kubernetes.io/control-plane",
        "Loaded X.509 cert 'Fedora kernel signing key: 2f4cadd0e8c1b5a9f7e6d5c4b3a2918070605040'",
        "code: VMExtensionError_K8SAPIServerDNSLookupFail",
        "automountServiceAccountToken: true, password: null, secret: ${TOKEN}",
        "PWD=/root OLDPWD=/ XDG_SESSION_ID=4 SSH_AUTH_SOCK=/tmp/ssh-a/agent.1",
        "docker run -p 8080:80 nginx; mysql -P 3306; curl -u robot https://r.example",
        "tests: pass: 12 fail: 0",
        "--token is a required option",
        "the clock is too far ahead [1m5s > 1s]",
        "starting kubernetes: failed to normalize token; must be in format K10<CA-HASH>::<USERNAME>:<PASSWORD> or <PASSWORD>",
    ] {
        assert!(matches!(mask_secrets(text), Cow::Borrowed(_)), "{}", mask_secrets(text));
    }
}

#[test]
fn the_id_of_a_bootstrap_token_stays() {
    let masked = mask_secrets("I0101 using token abcdef.0123456789abcdef now");
    assert_eq!(masked, "I0101 using token abcdef.[masked] now");
}

#[test]
fn what_follows_a_key_stays() {
    let text = "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\nnext\nline";
    assert_eq!(
        mask_secrets(text),
        "-----BEGIN PRIVATE KEY-----[masked]\n\n-----END PRIVATE KEY-----\nnext\nline"
    );
}

/// What is found once for many matches in one word or line is what each of them would have found.
#[test]
fn secret_behind_many_names_does_not_survive() {
    for (text, secret) in [
        (format!("{}{CANARY} stays", "token=".repeat(50)), CANARY),
        (format!("{}={CANARY} stays", "token".repeat(50)), CANARY),
        (format!("--{}token {CANARY} stays", "a".repeat(300)), CANARY),
        (format!("token{}={CANARY} stays", "a".repeat(300)), CANARY),
        (format!("token=token=bearer {CANARY}"), CANARY),
        (format!("token=token=\"two {CANARY}\" stays"), CANARY),
        (format!("token=a token_id=b token={CANARY} stays"), CANARY),
        (format!("token-id-token: {CANARY} stays"), CANARY),
        (format!("token=1\ntoken=2 token={CANARY} stays"), CANARY),
        (format!("{}bearer {CANARY}{CANARY} stays", "eyJhbGciOiJSUzI1NiJ9.".repeat(5)), CANARY),
        (format!("-----END PRIVATE KEY-----\n-----BEGIN PRIVATE KEY-----{CANARY}\nnext (stays"), CANARY),
    ] {
        let masked = mask_secrets(&text);
        assert!(!masked.contains(secret), "{text}\n{masked}");
        assert_eq!(masked.ends_with("stays"), text.ends_with("stays"), "{masked}");
        assert_eq!(mask_secrets(&masked), masked);
    }
    assert_eq!(mask_secrets("token=a token-id=b secret_name: c"), "token=[masked] token-id=b secret_name: c");
}

#[test]
fn any_text_is_taken() {
    for text in [
        "",
        "\n",
        "token=",
        "--token",
        "é password: ü",
        "://@",
        "://a:@b",
        "PRIVATE KEY-----",
        "Ünïcode token=ü;x",
    ] {
        let masked = mask_secrets(text);
        assert_eq!(mask_secrets(&masked), masked);
    }
    assert_eq!(mask_secrets("é password: ü."), "é password: [masked]");
}
