//! What the next attacker of the masker found, and what stays beside it.

use crate::attacked::{masked, none_survives};

const SECRET: &str = "hUnt3rTwo9zQ";

/// None of these forms keeps what stands for `~`, behind any logger's prefix.
fn hidden(secret: &str, forms: &[&str]) {
    let texts: Vec<String> = forms.iter().map(|form| form.replace('~', secret)).collect();
    none_survives(&texts.iter().map(|text| (text.as_str(), secret)).collect::<Vec<_>>());
}

fn stay(texts: &[&str]) {
    let lost: Vec<_> =
        texts.iter().map(|text| (text, masked(text))).filter(|(text, masked)| **text != masked).collect();
    assert!(lost.is_empty(), "{lost:#?}");
}

#[test]
fn account_behind_curls_options_written_together_does_not_survive() {
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
