//! What the next attacker of the masker found, and what stays beside it.

use crate::attacked::{masked, none_survives};

const SECRET: &str = "hUnt3rTwo9zQ";

/// None of these forms keeps what stands for `~`, behind any logger's prefix.
pub(crate) fn hidden(secret: &str, forms: &[&str]) {
    let texts: Vec<String> = forms.iter().map(|form| form.replace('~', secret)).collect();
    none_survives(&texts.iter().map(|text| (text.as_str(), secret)).collect::<Vec<_>>());
}

pub(crate) fn stay(texts: &[&str]) {
    let lost: Vec<_> =
        texts.iter().map(|text| (text, masked(text))).filter(|(text, masked)| **text != masked).collect();
    assert!(lost.is_empty(), "{lost:#?}");
}

#[test]
fn account_after_combined_curl_options_is_masked() {
    hidden(
        SECRET,
        &[
            "+ curl -Lu admin:~ https://x",
            "+ curl -sLu admin:~ https://x",
            "+ curl -sSLu admin:~ https://x",
            "+ curl -vu admin:~ https://x",
            "+ curl -vku admin:~ https://x",
            "+ curl -iu admin:~ https://x",
            "+ curl -kLu admin:~ https://x",
            "+ curl -fsSLku admin:~ https://x",
            "+ curl -4skU 'proxy:~' https://x",
            "+ curl -sSLuadmin:~ https://x",
            "+ curl -Uproxy:~ https://x",
            "+ ctr i pull -uadmin:~ r.example/x",
            "+ curl -u ~: https://api.example",
            "type=EXECVE msg=audit(1.2:3): argc=4 a0=\"curl\" a1=\"-u\" a2=\"admin:~\" a3=\"https://x\"",
            "type=EXECVE msg=audit(1.2:3): argc=3 a0=\"mysql\" a1=\"-uroot\" a2=\"-p~\"",
        ],
    );
    assert_eq!(masked("curl -fsSLku deploy:x7 https://h"), "curl -fsSLku deploy:[masked] https://h");
    stay(&[
        "curl -fsSLo x.tgz https://x/y:1",
        "curl -XPUT https://x",
        "curl -sku robot https://r.example",
        "ctr pull --user AWS: x",
    ]);
}

#[test]
fn what_a_traced_pipe_feeds_does_not_survive() {
    hidden(
        SECRET,
        &[
            "+ echo root:~\n+ chpasswd",
            "+ chpasswd -e\n+ echo root:~\n",
            "++ printf %s:%s root ~\n++ chpasswd",
            "+ echo ~\n+ passwd --stdin root",
            "+ echo ~\n+ docker login -u a --password-stdin r.example",
            "+ printf %s ~\n+ docker login -u a --password-stdin r.example",
            "+ docker login -u a --password-stdin r.example\n+ echo ~",
            "+ echo -n ~\nWARNING\n+ /usr/sbin/cryptsetup luksOpen /dev/vdb x -",
            "+ echo ~\n+ base64 -d\n+ sudo smbpasswd -s -a bob",
            "+ echo ~\n+ tee /etc/k3s-token",
            "+ echo ~\n+ gh auth login --with-token",
        ],
    );
    stay(&[
        "+ docker login -u a --password-stdin r.example",
        "+ echo checking\n+ grep root /etc/passwd",
        "+ echo locking root\n+ passwd -l root",
        "+ echo done\n+ date\n+ ls\n+ chpasswd",
        "+ chpasswd\n+ date\n+ echo done",
        "+ echo starting\n+ tee /var/log/join.log",
        "+ echo starting\n+ tee /var/log/join-token.log",
        "+ echo running cryptsetup\n+ echo done",
    ]);
}

#[test]
fn what_a_group_yes_or_a_here_document_feeds_does_not_survive() {
    hidden(
        SECRET,
        &[
            "(echo ~; echo ~) | passwd root",
            "{ echo ~; echo x; } | smbpasswd -s -a bob",
            "yes ~ | passwd root",
            "passwd root <<EOF\n~\n~\nEOF",
            "passwd root <<-'END'\n\t~\n\tEND",
            "docker login -u a --password-stdin r <<EOF\n~\nEOF",
            "cat > /etc/k3s-token <<EOF\n~\nEOF",
            "echo ~ | gh auth login --with-token",
            "echo ~ | tee /etc/k3s-token",
            "echo ~ | sudo tee -a /root/.vault-pass > /dev/null",
        ],
    );
    stay(&[
        "echo start; yes | apt install x",
        "cat <<EOF\nmachine one\nEOF",
        "echo ok | tee /var/log/join.log",
        "lsblk | grep x; cat /etc/fstab <<EOF\nline\nEOF",
    ]);
    assert!(masked("passwd x <<EOF\na\nEOF\nkubelet: failed").ends_with("kubelet: failed"));
    assert!(masked("passwd <<END\\n\\\na\\n\\\nEND\\n\"\nlet stays = 1").ends_with("let stays = 1"));
    let unending = format!("passwd x <<EOF\n{}", "kubelet: failed\n".repeat(40));
    assert!(masked(&unending).ends_with("kubelet: failed\n"), "a here-document without an end is let go of");
}

#[test]
fn account_below_a_comment_does_not_survive() {
    hidden(
        SECRET,
        &[
            "chpasswd:\n  expire: false\n  list: |\n    root:toor-1\n    # other\n    ubuntu:~\n",
            "chpasswd <<EOF\nroot:toor-1\n#\n# the next one\nubuntu:~\nEOF",
        ],
    );
}

#[test]
fn value_of_a_name_at_the_end_of_a_path_does_not_survive() {
    hidden(
        SECRET,
        &[
            "metadata:\n  annotations:\n    example.com/password: ~\n",
            "annotations: map[example.com/api-token:~]",
            "annotations: map[a:b example.com/api-token:~ c:d]",
            "\"example.com/db-password\": \"~\"",
            "kubectl annotate node w-1 example.com/token=~",
            "+ kubectl patch secret x --type=json -p '[{\"op\":\"replace\",\"path\":\"/data/password\",\"value\":\"~\"}]'",
            "[{\"op\":\"add\",\"value\":\"~\",\"path\":\"/data/password\"}]",
            "+ consul kv put app/db/password ~",
            "+ etcdctl put /app/db/password ~",
            "+ etcdctl put /app/db/password '~'",
            "+ aws ssm put-parameter --name /db/password --value ~",
            "+ augtool set /files/etc/x/password ~",
            "app/db/password=~",
            "/app/db/password=~",
            "secret/db/password: ~",
            "\"/data/password\": \"~\"",
        ],
    );
    stay(&[
        "open /run/secrets/token: no such file or directory",
        "open /var/lib/x/password: Zugriff verweigert",
        "GET http://169.254.169.254/latest/user-data: attempt #1",
        "Get \"https://10.0.0.1:6443/api/v1/token\": dial tcp 10.0.0.1:6443: connect",
        "10.0.0.1:8500/v1/acl/token: Unexpected",
        "Pulling image quay.io/external-secrets/external-secrets:v0.9.1",
        "image: bitnami/sealed-secrets:0.24.0",
        "kube-system/coredns-token: not found",
        "FailedMount pod/x secret/regcred-token: MountError",
        "chown root /etc/token",
        "\"/v3/auth/tokens\" => login(port),",
        "put object bucket/token to the store",
        "{\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":\"7\"}",
        "env:\n- name: A\n  value: kept\n- name: DB_PASSWORD\n  valueFrom: x",
        "{\"name\":\"A\",\"value\":\"kept\"},{\"name\":\"DB_PASSWORD\",\"valueFrom\":{}}",
    ]);
}

#[test]
fn phrase_of_several_words_does_not_survive() {
    for secret in ["correct horse battery staple", "Correct horse battery staple"] {
        hidden(secret, &["psk: ~", "- name: DB_PASSWORD\n  value: ~", "psk: \"~\""]);
    }
    assert_eq!(
        masked("{name: DB_PASSWORD, value: lemonade, a: b}"),
        "{name: DB_PASSWORD, value: [masked], a: b}"
    );
    stay(&["psk: invalid argument", "key_mgmt=WPA-PSK: associated to ap one", "key_mgmt: WPA-PSK WPA-EAP"]);
}

#[test]
fn value_before_its_name_in_list_or_element_is_masked() {
    hidden(
        SECRET,
        &[
            "env:\n- value: ~\n  name: DB_PASSWORD",
            "{\"value\":\"~\",\"name\":\"DB_PASSWORD\"}",
            "password:\n- ~",
            "password:\n  - \"~\"",
            "password = [\n  \"~\",\n]",
            "password = [\n  \"x\",\n  \"~\"\n]",
            "<property name=\"password\">~</property>",
            "<name>db.password</name>\n<value>~</value>",
            "Admin password:\n  ~",
            "+ iscsiadm -m node -o update --name node.session.auth.password --value=~",
            "+ iscsiadm -m node -o update -n node.session.auth.password -v ~",
            "| user | password |\n|------|----------|\n| a | ~ |",
            "+---+------+-----+\n| id | DB Password | n |\n+---+---+---+\n| 1 | x | 1 |\n| 2 | ~ | 1 |\n+---+---+---+",
            "&quot;password&quot;:&quot;~&quot;",
        ],
    );
    stay(&[
        "password:\n- name: x",
        "password:\n- next thing",
        "secrets:\n- db-password",
        "secrets = [\n  \"default\",\n]",
        "error: invalid token:\n  see the log",
        "class Password:\n    pass",
        "iscsiadm -m node -o update -n node.startup -v automatic",
        "+---+---+\n| Name | State | Id |\n+---+---+\n| password | up | 1 |\n+---+---+",
        "| user | password |\n| a | b |",
        "<property name=\"port\">80</property>",
    ]);
    let below = masked("| a | password |\n|---|---|\n| b | lemonade |\n\n| c | stays |");
    assert!(below.contains("| b | [masked] |") && below.ends_with("stays |"), "{below}");
}

#[test]
fn password_that_a_sentence_gives_does_not_survive() {
    for secret in ["Winter-2026!", "summer.rain"] {
        hidden(
            secret,
            &[
                "New password for root: ~",
                "Generated password for user 'ubuntu': ~",
                "Password for user elastic: ~",
                "Setting root password to ~",
                "the password was set to ~",
                "Administrator password is ~",
                "temporary password is ~",
                "setenv DB_PASS ~",
                "ENV API_TOKEN ~",
                " neighbor 10.0.0.1 password ~",
                "sentinel auth-pass mymaster ~",
            ],
        );
    }
    hidden("lemonade", &["New password for root: ~", "setenv DB_PASS ~"]);
    assert_eq!(
        masked("machine x\n  login y\n  password qwerty"),
        "machine x\n  login y\n  password [masked]"
    );
    stay(&[
        "if password is None:",
        "the password is incorrect",
        "the password is shorter than 8 characters",
        "password is auto-generated",
        "Failed password for root from 10.0.0.5 port 51234 ssh2",
        "Failed password for invalid user x.y from 10.0.0.5",
        "password for root: expired",
        "password for root: Permission denied",
        "password for root: changed successfully",
        "password was sent to ops@example.com",
        "sent the password to db.example.com",
        "password changed to expire on 2026-11-27",
        "setting password to never expire",
        "the password is in /etc/x.conf",
        "The password is echoed!",
        "arguments to pass when the callback is <b>called</b>.",
        "neighbor 10.0.0.1 password mismatch",
    ]);
}

#[test]
fn colours_of_other_programs_hide_no_name() {
    hidden(
        SECRET,
        &[
            "app[1]: #033[36mtoken#033[0m=~",
            "\\u001b[36mtoken\\u001b[0m=~",
            "^[[36mtoken^[[0m=~",
            "\u{1b}[1mpassword\u{1b}(B\u{1b}[m: ~",
            "\\x1b[1mpassword\\x1b(B\\x1b[m: ~",
            "^[[1mpassword^[(B^[[m: ~",
        ],
    );
    stay(&["^[a-z]+$ matches (B)", "x^(B) #033(X)"]);
}

#[test]
fn account_of_an_address_in_another_spelling_does_not_survive() {
    hidden(
        SECRET,
        &[
            "{\"url\":\"https:\\/\\/u:~@h.example\\/x\"}",
            "x = \"{\\\"url\\\":\\\"https:\\\\/\\\\/u:~@h.example\\\"}\"",
            "registry=//u:~@h.example/x",
            "HTTP_PROXY=u:~@proxy.example",
            "https_proxy: 'u:~@proxy.example'",
            "git config http.proxy u:~@proxy.example",
            "https://api.telegram.org/bot123456:~/sendMessage",
        ],
    );
    stay(&[
        "//registry.example/x@v1",
        "// note:see a@b.example",
        "{\"url\":\"https:\\/\\/h.example\\/x@y\"}",
        "HTTP_PROXY=http://proxy.example:3128",
        "mail admin@example.com",
    ]);
}
