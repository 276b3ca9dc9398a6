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
fn secret_before_redirection_or_option_of_command_is_masked() {
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

#[test]
fn secret_hashed_by_command_or_set_by_statement_is_masked() {
    both_hidden(&[
        "mkpasswd --method=SHA-512 ~",
        "mkpasswd --method=sha-512 --rounds=4096 ~",
        "mkpasswd -m sha-512 ~",
        "mkpasswd -m sha-512 ~ saltsalt",
        "mkpasswd -m sha-512 -S saltsalt ~",
        "H=$(mkpasswd -m bcrypt ~)",
        "CREATE USER bob IDENTIFIED BY ~;",
        "CREATE USER bob IDENTIFIED BY ~ ACCOUNT UNLOCK;",
        "CREATE USER bob IDENTIFIED BY PASSWORD '~';",
        "ALTER USER bob IDENTIFIED BY VALUES '~';",
        "REDISCLI_AUTH=~ redis-cli ping",
        "export REDISCLI_AUTH='~'",
    ]);
    assert_eq!(
        masked("REDISCLI_AUTH=x7y redis-cli -h 10.0.0.9"),
        "REDISCLI_AUTH=[masked] redis-cli -h 10.0.0.9"
    );
    stay(&[
        "mkpasswd -m sha-512",
        "mkpasswd --method=SHA-512 -s",
        "mkpasswd: command not found",
        "install mkpasswd from whois",
        "CREATE USER bob IDENTIFIED BY RANDOM PASSWORD REQUIRE SSL;",
        "the volume is identified by vol-1a2b",
        "redis-cli -h 10.0.0.9 ping",
    ]);
}

#[test]
fn traced_pipe_behind_a_place_or_a_time_does_not_survive() {
    both_hidden(&[
        "+ /root/x.sh:12: echo root:~\n+ /root/x.sh:12: chpasswd",
        "+(x.sh:12): echo root:~\n+(x.sh:12): chpasswd",
        "+(x.sh:12): main(): echo root:~\n+(x.sh:12): main(): chpasswd",
        "+ 06:00:00 echo root:~\n+ 06:00:00 chpasswd",
        "+ x.sh:main:12 echo ~\n+ x.sh:main:12 docker login -u a --password-stdin r",
        "+ chpasswd\n++ hostname\n+ echo root:~",
        "+ echo root:~\n++ hostname\n++ date\n+ chpasswd",
        "+ echo ~\n+ tr -d x\n+ base64 -d\n+ passwd --stdin root",
    ]);
    stay(&[
        "+ x.sh:12: echo checking\n+ x.sh:13: grep root /etc/passwd",
        "+ x.sh:12: echo done\n+ x.sh:13: date\n+ x.sh:14: ls\n+ x.sh:15: chpasswd",
        "+ chpasswd\n+ date\n+ echo done",
        "+++ 12: token\n+ b",
    ]);
}

#[test]
fn text_written_into_a_secret_file_is_masked() {
    both_hidden(&[
        "cat <<EOF | sudo tee /etc/k3s-token\n~\nEOF",
        "cat <<'EOF' | sudo tee /etc/rancher/k3s/token > /dev/null\n~\nEOF",
        "sudo tee /etc/k3s-token <<< ~",
        "cat >/etc/k3s-token <<< '~'",
        "cat > \"/etc/k3s-token\" <<EOF\n~\nEOF",
        "echo ~ > /etc/k3s-token 2>/dev/null",
        "echo ~ | dd of=/etc/k3s-token",
        "+ echo ~\n+ dd of=/etc/k3s-token",
        "echo ~ | sudo install -m600 /dev/stdin /etc/k3s-token",
        "cryptsetup open --key-file <(echo -n ~) /dev/sdb x",
    ]);
    stay(&[
        "cat <<EOF | sudo tee /etc/hosts\n10.0.0.1 w-1\nEOF",
        "sudo tee /etc/hostname <<< w-1",
        "echo ok | dd of=/dev/vdb",
        "diff <(echo a) <(echo b)",
        "install -m600 k3s-token.conf /etc/k3s-token",
    ]);
}

#[test]
fn colour_written_as_text_hides_no_name() {
    both_hidden(&[
        "\\u{1b}[36mtoken\\u{1b}[0m=~",
        "\\x1B[36mtoken\\x1B[0m=~",
        "\\e[36mtoken\\e[0m=~",
        "\\E[1mpassword\\E[0m: ~",
        "\u{9b}36mtoken\u{9b}0m=~",
        "\u{241b}[1mpassword\u{241b}[0m: ~",
    ]);
    stay(&["\\e[a-z]+ matches", "C:\\etc\\E[x]", "\\x1c[0K", "price in \u{9b}"]);
}

#[test]
fn password_that_a_sentence_announces_does_not_survive() {
    both_hidden(&[
        "The admin password is: ~",
        "Password changed to: ~",
        "password changed to ~",
        "Password set to: ~",
        "Temporary password generated: ~",
        "created user bob with password ~",
        "user bob with password \"~\" created",
        "password (root): ~",
        "Password........: ~",
        "Password for the elastic user (reset with `bin/elasticsearch-reset-password -u elastic`):\n  ~\n",
        "credentials: admin / ~",
        "Your API key is: ~",
        "API key: ~",
    ]);
    stay(&[
        "password changed for user root",
        "password changed to expire on 2026-11-27",
        "authenticated with password authentication",
        "failed with password mismatch.",
        "The token is: not set",
        "Your API key is: invalid",
        "password (root): expired",
        "Password file: passwd.db_1",
        "the password is: not set",
        "Password for the elastic user was not set:\n  see the log",
        "token for node: worker12",
    ]);
}

#[test]
fn quote_within_quotes_of_a_shell_ends_no_secret() {
    both_hidden(&[
        "+ DB_PASSWORD='a'\\''~'",
        "password='a'\"'\"'b'\\''~'",
        "+ mysql -u root '-pa'\\''~'",
        "token=a\\ ~",
    ]);
    assert_eq!(masked("token='a'\\''b' stays"), "token=[masked] stays");
    assert_eq!(masked("token=a\\\\ stays"), "token=[masked] stays");
    assert_eq!(
        masked("\"cmd\": \"password='a'\\\"\", \"b\": 1"),
        "\"cmd\": \"password=[masked]\\\"\", \"b\": 1"
    );
}

#[test]
fn signs_as_json_and_html_spell_them_hide_no_value() {
    both_hidden(&[
        "{\"url\":\"jdbc:mysql://h/d?user\\u003du\\u0026password\\u003d~\"}",
        "\\u0022password\\u0022:\\u0022~\\u0022",
        "&#34;password&#34;:&#34;~&#34;",
        "&#39;password&#39;: &#39;~&#39;",
        "{&#x27;password&#x27;: &#x27;~&#x27;}",
    ]);
    assert_eq!(
        masked("&#34;token&#34;:&#34;x7&#34;,&#34;node&#34;:&#34;w-1&#34;"),
        "&#34;token&#34;:&#34;[masked]&#34;,&#34;node&#34;:&#34;w-1&#34;"
    );
    stay(&["{\"msg\":\"token \\u003cnil\\u003e\"}", "a \\u003d b", "node&#34;:&#34;w-1&#34;"]);
}

#[test]
fn value_of_a_name_with_letters_beyond_ascii_does_not_survive() {
    both_hidden(&["contraseña: ~", "Contraseña: ~", "CONTRASEÑA=~", "contraseña = ~", "mot de passe : ~"]);
    stay(&["España: mañana", "le mot de passe est faux", "ñ=x"]);
}

#[test]
fn content_of_a_file_that_user_data_writes_does_not_survive() {
    both_hidden(&[
        "write_files:\n- path: /etc/k3s-token\n  content: ~\n",
        "write_files:\n- path: /etc/rancher/k3s/token\n  permissions: '0600'\n  content: |\n    ~\n",
        "write_files:\n- path: /etc/rancher/k3s/token\n  owner: root:root\n  permissions: '0600'\n  content: |\n    ~\n",
        "write_files:\n- content: ~\n  path: /root/.vault-pass\n",
        "{\"path\":\"/etc/k3s-token\",\"contents\":{\"source\":\"data:,~\"}}",
    ]);
    stay(&[
        "write_files:\n- path: /etc/hosts\n  content: w-1\n- path: /etc/k3s-token\n",
        "write_files:\n- content: kept\n  path: /etc/hosts\n",
        "{\"path\":\"/etc/hosts\",\"contents\":{\"source\":\"data:,w-1\"}}",
    ]);
    let below =
        masked("- path: /etc/k3s-token\n  content: |\n    x7\n- path: /etc/hosts\n  content: stays\n");
    assert!(below.ends_with("    [masked]\n- path: /etc/hosts\n  content: stays\n"), "{below}");
}
