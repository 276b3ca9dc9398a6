//! Forms that were found to survive, one by one.

use reveille_core::diagnose::console::mask_secrets;

const CANARY: &str = "cAnArY-77x";

/// A text, and what must be gone from it. `{}` stands for the canary.
const FORMS: [&str; 49] = [
    "K107a0cd3cc18ea132b33e1921b2d74c4bfc516802b4800c89e595ae04b3d1cf3aa::server:{}",
    "level=info msg=\"joining with K107a0cd3cc::node:{}\"",
    "DB_PASS={}",
    "+ export DB_PASS={}",
    "MYSQL_PWD={}",
    "pwd={}",
    "psk={}",
    "network={ ssid=\"x\" psk=\"{}\" }",
    "//srv/share /mnt cifs user=bob,pass={},uid=0 0 0",
    "curl -u admin:{} https://registry.example",
    "curl -sSL --user admin:{} https://registry.example",
    "crictl pull --creds robot:{} registry.example/pause:3.9",
    "docker login -u robot -p {} registry.example",
    "sshpass -p {} ssh root@10.0.0.5",
    "sshpass -p{} ssh root@10.0.0.5",
    "echo root:{} | chpasswd",
    "chpasswd:\n  list: |\n    root:{}\n  expire: False",
    "Set the following 'random' passwords\nubuntu:{}",
    "ci-info: Set the following 'random' passwords\nci-info: root:a\nci-info: ubuntu:{}",
    "git clone https://{}@git.example/x.git",
    "using glpat-{}12345678",
    "using dckr_pat_{}12345678",
    "using hvs.{}12345678",
    "tailscale up with tskey-auth-{}12345678",
    "using ghp_{}12345678",
    "using npm_{}12345678",
    "using xoxb-1234567890-{}",
    "Cookie: session={}",
    "Set-Cookie: JSESSIONID={}; Path=/",
    "password: |\n  {}\nuser: x",
    "  db-password: >-\n    one\n    {}\n  user: x",
    "[ 9.1] cloud-init[1]: token: |\n[ 9.1] cloud-init[1]:   {}",
    "env: [{name: X_PASSWORD, value: {}}]",
    "- name: X_PASSWORD\n  value: {}",
    "{\"name\":\"X_PASSWORD\",\"value\":\"{}\"}",
    "args: [--client-secret, {}]",
    "[\"--client-secret\",\"{}\"]",
    "- --client-secret\n- {}",
    "mysql -uroot -p{} -e 'select 1'",
    "echo {} | passwd --stdin root",
    "machine git.example login x password {}",
    "requirepass {}",
    "kubectl create secret generic x --from-literal=key={}",
    "dsn: k3s:{}@tcp(10.0.0.9:3306)/k3s",
    "config['password'] = '{}'",
    "password => '{}'",
    "<password>{}</password>",
    "Pwd={};Server=db",
    "adminPass: {}",
];

#[test]
fn named_forms_do_not_survive() {
    let mut survive = Vec::new();
    for form in FORMS {
        let text = form.replace("{}", CANARY);
        let masked = mask_secrets(&text);
        assert_eq!(masked.matches('\n').count(), text.matches('\n').count(), "{masked}");
        assert_eq!(mask_secrets(&masked), masked, "masking twice changes nothing");
        if masked.contains(CANARY) {
            survive.push(form);
        }
    }
    assert!(survive.is_empty(), "{} of {} survive:\n{}", survive.len(), FORMS.len(), survive.join("\n"));
}

#[test]
fn bare_key_block_does_not_survive() {
    let line = "MIIEowIBAAKCAQEA7x3jbPz0Qk1vYt8sWc2Lr9NfUeGh4DmKoXaB5iTqRyZpVu6S";
    let text = format!("before\n{line}\n{line}\nQx7bT9zKwL2m\nafter the key\n");
    assert_eq!(mask_secrets(&text), "before\n[masked]\n[masked]\n[masked]\nafter the key\n");
}

/// What says which kind of secret it was stays, and so does everything around it.
#[test]
fn kind_of_a_token_stays() {
    for (text, masked) in [
        ("glpat-Ab3dE6gH9jKl2N4p used", "glpat-[masked] used"),
        ("curl -u admin:x7Kq https://r.example/v2/", "curl -u admin:[masked] https://r.example/v2/"),
        ("K10abc::server:0f1e2d3c4b", "K10abc::server:[masked]"),
        ("ubuntu:$6$sALt$0f1e2d3c4b5a", "ubuntu:$6$[masked]"),
        ("https://9f8e7d6c5b4a@git.example/x", "https://[masked]@git.example/x"),
        ("https://git@git.example/x", "https://git@git.example/x"),
        ("user=bob,pass=x,uid=0 0 0", "user=bob,pass=[masked] 0 0"),
    ] {
        assert_eq!(mask_secrets(text), masked);
    }
}
