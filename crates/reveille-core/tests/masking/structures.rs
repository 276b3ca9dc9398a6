//! Files and messages in which a secret stands by a rule of their own.

use crate::canaries::{Canary, Of};

/// A structure, what its secret is made of, and the text with `{s}` for it.
const STRUCTURES: [(&str, Of, &str); 96] = [
    ("fstab cifs", Of::Chosen, "//srv/share /mnt cifs username=svc,pass={s},uid=0 0 0\n"),
    ("fstab cifs password", Of::Chosen, "//srv/share /mnt cifs user=svc,password={s},vers=3.0 0 0\n"),
    ("netrc", Of::Mixed(20), "machine git.example login svc password {s}\n"),
    ("netrc, lines", Of::Mixed(20), "machine git.example\n  login svc\n  password {s}\n"),
    ("apt auth.conf", Of::Mixed(20), "machine apt.example/x login svc password {s}\n"),
    ("git-credentials", Of::Mixed(20), "https://svc:{s}@git.example\n"),
    ("pgpass file", Of::Chosen, "psql: password from file: hostname db port 5432 password={s}\n"),
    ("shadow", Of::Mixed(86), "root:$6$sALtsALt${s}:19800:0:99999:7:::\n"),
    ("shadow yescrypt", Of::Mixed(43), "ubuntu:$y$j9T$abcdefghij${s}:19800:0:99999:7:::\n"),
    ("user-data passwd", Of::Mixed(86), "users:\n- name: core\n  passwd: $6$abcd${s}\n"),
    (
        "ignition passwordHash",
        Of::Mixed(43),
        "{\"passwd\":{\"users\":[{\"name\":\"core\",\"passwordHash\":\"$y$j9T$abc${s}\"}]}}",
    ),
    ("chpasswd list", Of::Chosen, "chpasswd:\n  list: |\n    root:{s}\n    ubuntu:RANDOM\n  expire: False\n"),
    (
        "chpasswd users",
        Of::Chosen,
        "chpasswd:\n  expire: false\n  users:\n  - {name: root, password: {s}, type: text}\n",
    ),
    ("chpasswd flow", Of::Chosen, "chpasswd: { list: \"root:{s}\" }\n"),
    ("chpasswd heredoc", Of::Chosen, "chpasswd <<EOF\nroot:{s}\nEOF\n"),
    ("cloud-init random passwords", Of::Mixed(20), "Set the following 'random' passwords\nubuntu:{s}\n"),
    (
        "cloud-init random passwords, prefixed",
        Of::Mixed(20),
        "[   12.1] cloud-init[700]: Set the following 'random' passwords\n[   12.1] cloud-init[700]: ubuntu:{s}\n",
    ),
    (
        "cloud-init random passwords, second",
        Of::Mixed(20),
        "Set the following 'random' passwords\nroot:other\nubuntu:{s}\n",
    ),
    ("chap-secrets", Of::Chosen, "# client server secret\nuser * secret={s} *\n"),
    ("docker config auth", Of::Base64(24), "{\"auths\":{\"registry.example\":{\"auth\":\"{s}\"}}}"),
    (
        "docker config pretty",
        Of::Base64(24),
        "{\n  \"auths\": {\n    \"registry.example\": {\n      \"auth\": \"{s}\"\n    }\n  }\n}\n",
    ),
    ("docker identity token", Of::Mixed(40), "{\"auths\":{\"x\":{\"identitytoken\":\"{s}\"}}}"),
    (
        "registries.yaml",
        Of::Chosen,
        "configs:\n  registry.example:\n    auth:\n      username: robot\n      password: {s}\n",
    ),
    ("registries.yaml auth", Of::Base64(24), "configs:\n  registry.example:\n    auth:\n      auth: {s}\n"),
    (
        "containerd config",
        Of::Chosen,
        "[plugins.\"x\".registry.configs.\"r\".auth]\n  username = \"robot\"\n  password = \"{s}\"\n",
    ),
    ("npmrc", Of::Mixed(36), "//registry.example/:_authToken={s}\n"),
    ("npmrc auth", Of::Base64(24), "_auth={s}\n"),
    ("pip.conf", Of::Mixed(24), "index-url = https://svc:{s}@pypi.example/simple\n"),
    ("k3s config token", Of::Hex(32), "server: https://10.0.0.1:6443\ntoken: {s}\nnode-label:\n- x=y\n"),
    ("k3s config token, whole", Of::Hex(32), "token: K105f1c9a7be02d4c36::server:{s}\n"),
    ("k3s config agent token", Of::Hex(32), "agent-token: \"{s}\"\n"),
    ("k3s datastore", Of::Chosen, "datastore-endpoint: \"mysql://k3s:{s}@tcp(10.0.0.9:3306)/k3s\"\n"),
    ("mysql dsn", Of::Chosen, "dsn=k3s:{s}@tcp(10.0.0.9:3306)/k3s\n"),
    ("k3s node-token file", Of::Hex(32), "/var/lib/rancher/k3s/server/node-token: K105f1c9a7b::server:{s}\n"),
    ("k3s message", Of::Hex(32), "level=fatal msg=\"token K105f1c9a7b::node:{s} rejected\"\n"),
    ("kubeadm config", Of::Lower(16), "bootstrapTokens:\n- token: abcdef.{s}\n  ttl: 24h0m0s\n"),
    (
        "kubeadm discovery",
        Of::Lower(16),
        "discovery:\n  bootstrapToken:\n    token: abcdef.{s}\n    apiServerEndpoint: 10.0.0.1:6443\n",
    ),
    ("kubeadm certificate key", Of::Hex(64), "kind: InitConfiguration\ncertificateKey: {s}\n"),
    ("kubeadm printed key", Of::Hex(64), "[upload-certs] Using certificate key:\n{s}\n"),
    ("kubeconfig token", Of::Mixed(40), "users:\n- name: x\n  user:\n    token: {s}\n"),
    ("kubeconfig key", Of::Base64(600), "    client-key-data: {s}\n"),
    ("kubeconfig password", Of::Chosen, "  user:\n    username: admin\n    password: {s}\n"),
    ("static token file", Of::Hex(32), "--token-auth-file: token={s},admin,1\n"),
    (
        "encryption config",
        Of::Base64(44),
        "  - aescbc:\n      keys:\n      - name: key1\n        secret: {s}\n",
    ),
    (
        "secret data",
        Of::Base64(24),
        "apiVersion: v1\ndata:\n  value: {s}\nkind: Secret\nmetadata:\n  name: x\n",
    ),
    (
        "secret stringData",
        Of::Chosen,
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: x\nstringData:\n  value: {s}\n",
    ),
    (
        "secret stringData block",
        Of::Chosen,
        "apiVersion: v1\nkind: Secret\nstringData:\n  conf: |\n    x {s}\ntype: Opaque\n",
    ),
    (
        "secret json",
        Of::Base64(24),
        "{\"apiVersion\":\"v1\",\"data\":{\"value\":\"{s}\"},\"kind\":\"Secret\"}",
    ),
    (
        "secret json applied",
        Of::Base64(24),
        "last-applied: {\\\"data\\\":{\\\"value\\\":\\\"{s}\\\"},\\\"kind\\\":\\\"Secret\\\"}",
    ),
    ("clouds.yaml", Of::Chosen, "clouds:\n  x:\n    auth:\n      username: svc\n      password: {s}\n"),
    (
        "clouds.yaml application credential",
        Of::Mixed(86),
        "    auth:\n      application_credential_id: 0f1e\n      application_credential_secret: {s}\n",
    ),
    (
        "cloud.conf",
        Of::Mixed(32),
        "[Global]\napplication-credential-id=0f1e\napplication-credential-secret={s}\n",
    ),
    ("openrc", Of::Chosen, "export OS_USERNAME=svc\nexport OS_PASSWORD=\"{s}\"\n"),
    (
        "aws credentials",
        Of::Mixed(40),
        "[default]\naws_access_key_id = AKIAQQQQQQQQQQQQQQQ2\naws_secret_access_key = {s}\n",
    ),
    (
        "aws imds credentials",
        Of::Mixed(40),
        "{\"Code\":\"Success\",\"SecretAccessKey\":\"{s}\",\"Token\":\"x\"}",
    ),
    (
        "aws presigned",
        Of::Hex(64),
        "GET https://b.s3.amazonaws.com/x?X-Amz-Expires=60&X-Amz-Signature={s} 403\n",
    ),
    ("azure sas", Of::Mixed(43), "https://x.blob.core.windows.net/c?sv=2021&sp=r&sig={s}%3D\n"),
    (
        "azure connection string",
        Of::Base64(88),
        "DefaultEndpointsProtocol=https;AccountName=x;AccountKey={s};EndpointSuffix=core.windows.net\n",
    ),
    ("azure service bus", Of::Base64(44), "Endpoint=sb://x/;SharedAccessKeyName=x;SharedAccessKey={s}\n"),
    ("sql connection string", Of::Chosen, "Server=db;Database=x;User Id=sa;Password={s};Encrypt=true\n"),
    ("sql connection string pwd", Of::Chosen, "Driver=x;Server=db;Uid=sa;Pwd={s};\n"),
    ("jdbc", Of::Chosen, "jdbc:postgresql://db/x?user=app&password={s}&ssl=true\n"),
    (
        "gcp service account",
        Of::Base64(64),
        "{\"private_key_id\":\"0f\",\"private_key\":\"-----BEGIN PRIVATE KEY-----\\n{s}\\n-----END PRIVATE KEY-----\\n\"}",
    ),
    ("wpa supplicant", Of::Chosen, "network={\n  ssid=\"home\"\n  psk=\"{s}\"\n}\n"),
    ("wireguard", Of::Base64(44), "[Interface]\nPrivateKey = {s}\nAddress = 10.1.0.2/32\n"),
    ("wireguard preshared", Of::Base64(44), "[Peer]\nPresharedKey = {s}\n"),
    ("netplan wifi", Of::Chosen, "access-points:\n  \"home\":\n    password: \"{s}\"\n"),
    ("ipsec.secrets", Of::Chosen, "10.0.0.1 10.0.0.2 : PSK \"{s}\"\n"),
    ("ceph keyring", Of::Base64(40), "[client.admin]\n\tkey = {s}\n"),
    ("redis.conf", Of::Mixed(20), "requirepass {s}\n"),
    ("redis.conf masterauth", Of::Mixed(20), "masterauth {s}\n"),
    (
        "keepalived",
        Of::Mixed(8),
        "    authentication {\n        auth_type PASS\n        auth_pass {s}\n    }\n",
    ),
    ("haproxy", Of::Chosen, "  stats auth admin:{s}\n"),
    ("sssd", Of::Chosen, "ldap_default_authtok = {s}\n"),
    ("grub", Of::Hex(64), "password_pbkdf2 root grub.pbkdf2.sha512.10000.{s}\n"),
    ("kickstart", Of::Chosen, "rootpw --plaintext {s}\n"),
    ("preseed", Of::Chosen, "d-i passwd/root-password password {s}\n"),
    ("ansible", Of::Chosen, "ansible_become_pass: {s}\n"),
    ("ansible inventory", Of::Chosen, "w-1 ansible_host=10.0.0.5 ansible_ssh_pass={s}\n"),
    ("header bearer", Of::Mixed(40), "> Authorization: Bearer {s}\n"),
    ("header basic", Of::Base64(24), "< Proxy-Authorization: Basic {s}\n"),
    ("header cookie", Of::Mixed(32), "> Cookie: theme=dark; session={s}\n"),
    ("header set-cookie", Of::Mixed(32), "< Set-Cookie: JSESSIONID={s}; Path=/; HttpOnly\n"),
    ("header auth token", Of::Mixed(32), "> X-Auth-Token: {s}\n"),
    ("header subject token", Of::Mixed(32), "< X-Subject-Token: {s}\n"),
    ("header csrf", Of::Mixed(32), "> X-CSRF-Token: {s}\n"),
    ("header api key", Of::Mixed(32), "> apikey: {s}\n"),
    ("sentence is", Of::Mixed(12), "The generated admin password is {s}\n"),
    ("sentence for", Of::Mixed(16), "Password for user elastic: {s}\n"),
    ("sentence grafana", Of::Mixed(16), "msg=\"created default admin\" password {s}\n"),
    ("sql identified by", Of::Chosen, "CREATE USER app IDENTIFIED BY '{s}'\n"),
    ("sql password", Of::Chosen, "ALTER ROLE app WITH PASSWORD '{s}'\n"),
    ("xml element", Of::Chosen, "<user>x</user><password>{s}</password>\n"),
    ("xml attribute", Of::Chosen, "<datasource user=\"x\" password=\"{s}\" />\n"),
    ("xml add key", Of::Chosen, "<add key=\"DbPassword\" value=\"{s}\" />\n"),
    ("cloudformation parameter", Of::Chosen, "ParameterKey=DbPassword,ParameterValue={s}\n"),
];

/// Blocks of keys; each line of the secret must go.
fn blocks() -> Vec<Canary> {
    let lines: Vec<String> = (0..6).map(|nth| Of::Mixed(64).draw(&format!("block {nth}"))).collect();
    let last = Of::Base64(20).draw("block end");
    let body = format!("{}\n{last}\n", lines.join("\n"));
    let indented: String = body.lines().map(|line| format!("    {line}\n")).collect();
    let logged: String = body.lines().map(|line| format!("[   9.1] cloud-init[70]: {line}\n")).collect();
    let texts = [
        ("rsa key", format!("-----BEGIN RSA PRIVATE KEY-----\n{body}-----END RSA PRIVATE KEY-----\n")),
        (
            "openssh key",
            format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{body}-----END OPENSSH PRIVATE KEY-----\n"),
        ),
        (
            "encrypted key",
            format!("-----BEGIN ENCRYPTED PRIVATE KEY-----\n{body}-----END ENCRYPTED PRIVATE KEY-----\n"),
        ),
        (
            "pgp key",
            format!("-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{body}-----END PGP PRIVATE KEY BLOCK-----\n"),
        ),
        (
            "ssh2 key",
            format!(
                "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n{body}---- END SSH2 ENCRYPTED PRIVATE KEY ----\n"
            ),
        ),
        ("key without its beginning", format!("{body}-----END RSA PRIVATE KEY-----\nnext\n")),
        (
            "key without its end",
            format!("-----BEGIN EC PRIVATE KEY-----\n{body}[ 10.0] Started kubelet.service.\n"),
        ),
        ("bare key block", format!("first line\n{body}\nnext line of the log\n")),
        ("bare key block, indented", format!("content:\n{indented}next: 1\n")),
        ("bare key block, logged", format!("[   9.0] cloud-init[70]: writing\n{logged}")),
        (
            "key in yaml",
            format!(
                "write_files:\n- path: /k\n  content: |\n    -----BEGIN PRIVATE KEY-----\n{indented}    -----END PRIVATE KEY-----\n"
            ),
        ),
        ("putty key", format!("PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 7\n{body}Private-MAC: 0123\n")),
        ("password block", format!("password: |\n{indented}user: x\n")),
        (
            "password block, logged",
            format!("[   9.0] cloud-init[70]: db-password: |\n{}", logged.replace("]: ", "]:   ")),
        ),
        ("token block", format!("x:\n  token: >\n{indented}  y: 1\n")),
    ];
    let secrets = lines.iter().chain([&last]);
    let of_text = |(form, text): &(&'static str, String)| {
        let (form, text) = (format!("block {form}"), text.clone());
        secrets
            .clone()
            .map(move |secret| Canary {
                form: form.clone(),
                place: "block",
                text: text.clone(),
                secret: secret.clone(),
            })
            .collect::<Vec<_>>()
    };
    texts.iter().flat_map(of_text).collect()
}

/// Every structure, with three secrets each, and the blocks.
pub(crate) fn canaries() -> Vec<Canary> {
    let mut all = blocks();
    for (form, of, text) in STRUCTURES {
        for nth in 0..3 {
            let secret = of.draw(&format!("{form} {nth}"));
            let text = text.replace("{s}", &secret);
            all.push(Canary { form: format!("structure {form}"), place: "as it is", text, secret });
        }
    }
    all
}
