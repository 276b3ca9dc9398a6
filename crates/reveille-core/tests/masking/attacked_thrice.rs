//! What the third attacker of the masker found, and what stays beside it.

use crate::attacked::masked;
use crate::attacked_again::{hidden, stay};

/// One that looks random, and one that people choose.
const SECRETS: [&str; 2] = ["hUnt3rTwo9zQ", "Winter-2026!"];

fn both_hidden(forms: &[&str]) {
    for secret in SECRETS {
        hidden(secret, forms);
    }
}

#[test]
fn secret_behind_a_continued_line_does_not_survive() {
    both_hidden(&[
        "ExecStart=/usr/local/bin/k3s \\\n    agent \\\n\t'-t' \\\n\t'~' \\\n",
        "k3s agent -t \\\n  ~",
        "curl -u \\\n  admin:~ https://x",
        "sshpass -p \\\n  ~ ssh h",
        "sshpass -p \\\r\n  ~ ssh h",
        "docker login -u a -p \\\n  ~ r.example",
        "crictl pull --creds \\\n  u:~ r.example/x",
    ]);
    assert_eq!(
        masked("curl -u \\\n  admin:x7 \\\n  https://x"),
        "curl -u \\\n  admin:[masked] \\\n  https://x"
    );
    stay(&["curl \\\n  -L \\\n  https://x/y:1", "k3s agent \\\nkubelet: failed"]);
}

#[test]
fn last_word_of_a_command_before_a_redirection_or_an_option_does_not_survive() {
    both_hidden(&[
        "+ vault login ~ 2>/dev/null",
        "+ vault login ~ > /dev/null 2>&1",
        "vault login >/tmp/x ~",
        "vault login -no-print ~",
        "vault login -method=token -format json ~",
        "vault operator unseal ~ >/dev/null",
        "htpasswd -nb admin ~ >/etc/nginx/auth",
        "wpa_passphrase ssid ~ >/etc/wpa.conf",
        "mc alias set m https://h.example KEYKEYKEY ~ --api S3v4",
        "pro attach ~ --format json",
        "ipmitool -I lanplus -H h -U u user set password 2 ~ 20",
        "curl -s > /tmp/x -u admin:~ https://x",
    ]);
    assert_eq!(
        masked("pro attach C1xyz --format json 2>/tmp/x"),
        "pro attach [masked] --format json 2>/tmp/x"
    );
    stay(&[
        "vault login",
        "vault login > /tmp/x",
        "vault status > /tmp/x",
        "ipmitool user set password 2",
        "curl -s https://x > /tmp/y 2>&1",
    ]);
}

#[test]
fn secret_of_commands_beside_a_cluster_does_not_survive() {
    both_hidden(&[
        "etcdctl user add root:~",
        "pcs host auth n1 n2 -u hacluster -p ~",
        "fence_ipmilan -a 10.0.0.9 -l admin -p ~ -o status",
        "racadm -u root -p ~ get",
        "redis-cli -h h AUTH ~",
        "curl --cert client.pem:~ https://x",
        "slappasswd -s ~",
        "openssl passwd -6 ~",
        "mosquitto_passwd -b /etc/mosquitto/passwd bob ~",
        "mysqladmin -u root password ~",
        "kadmin -p admin/admin -w ~ -q x",
        "snmpwalk -v 2c -c~ h",
        "echo ~ | net ads join -U Administrator",
        "echo 'a a/root_password password ~' | debconf-set-selections",
        "ip ospf message-digest-key 1 md5 ~",
    ]);
    stay(&[
        "etcdctl user get root",
        "etcdctl user grant-role root root",
        "curl --cert client.pem https://x",
        "mosquitto_passwd -c /etc/mosquitto/passwd bob",
        "fence_ipmilan -a 10.0.0.9 -l admin -o status",
        "redis-cli -h h ping",
    ]);
}
