//! Canaries: a token and a key, at every place where a machine may have them, are never in a bundle.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use base64::Engine as _;
use flate2::read::GzDecoder;

use super::*;
use crate::probe::Probe;

const SECRET: &str = "c4naryc4naryc4na";
const KEY: &str = "cAnArYkEyMaTeRiAlOfThIsMaChInE0123456789+/ab";

fn laid_out() -> (tempfile::TempDir, Root) {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::new(folder.path());
    let put = |path: &str, text: &str| {
        fs::create_dir_all(root.at(path).parent().unwrap()).unwrap();
        fs::write(root.at(path), text).unwrap();
    };
    let token = format!("abcdef.{SECRET}");
    let pem = format!("-----BEGIN EC PRIVATE KEY-----\n{KEY}\n-----END EC PRIVATE KEY-----\n");
    let data = base64::engine::general_purpose::STANDARD.encode(&pem);
    let kubeconfig = |user: &str| {
        format!(
            "current-context: c\nclusters: [{{name: k, cluster: {{server: 'https://10.0.0.1:6443'}}}}]\n\
             contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\nusers:\n- name: u\n  user: {user}\n"
        )
    };
    put(BOOTSTRAP_KUBECONFIG, &kubeconfig(&format!("{{token: {token}}}")));
    put(KUBECONFIG, &kubeconfig(&format!("{{client-certificate-data: {data}, client-key-data: {data}}}")));
    put(KUBELET_FLAGS, &format!("KUBELET_KUBEADM_ARGS=\"--token {token} --odd={SECRET}\"\n"));
    put(
        "/etc/rancher/k3s/config.yaml",
        &format!("token: K10{}::server:{SECRET}\nvpn-auth: name=x,joinKey={KEY}\n", "ab".repeat(32)),
    );
    put("/etc/hosts", &format!("127.0.0.1 localhost # {SECRET}\n# {KEY}\n"));
    put("/etc/default/kubelet", &format!("BOOTSTRAP_TOKEN={token}\nPASSWORD={SECRET}\n# {data}\n"));
    put("/etc/containerd/config.toml", &format!("auth = \"{SECRET}\"\n{pem}"));
    put(
        "/var/log/syslog",
        &format!(
            "kubeadm join --token {token}\nusing token {token} now\nAuthorization: Bearer {token}\nplain {SECRET}\n{pem}"
        ),
    );
    (folder, root)
}

fn unpacked(bytes: &[u8]) -> String {
    let mut plain = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
    String::from_utf8_lossy(&plain).into_owned()
}

#[tokio::test]
async fn a_token_and_a_key_placed_anywhere_are_never_in_a_bundle() {
    let (folder, root) = laid_out();
    let probe = Probe::of_folder(root.clone());
    let target = crate::target::Target::of_machine(&root).unwrap().unwrap();
    let extra = folder.path().join("mine.log");
    fs::write(&extra, format!("I said {SECRET} and {KEY}\n")).unwrap();
    let logs = probe.logs(&[extra]).await;
    let facts = probe.facts(Ok(None)).await;
    let said = format!("the token is {SECRET}, the key {KEY}");
    let bytes = pack(&Contents {
        root: &root,
        token: target.token.as_ref(),
        own: &[],
        facts: &facts,
        report_json: &said,
        verdict: &said,
        logs: &logs,
    })
    .unwrap();
    let text = unpacked(&bytes);
    for canary in [SECRET, KEY, &base64::engine::general_purpose::STANDARD.encode(KEY)[..24]] {
        assert!(
            !text.contains(canary),
            "{canary}: {:?}",
            text.lines().filter(|line| line.contains(canary)).collect::<Vec<_>>()
        );
    }
    for kept in [
        "10.0.0.1:6443",
        "abcdef.[masked]",
        "127.0.0.1 localhost",
        "files/etc/kubernetes/kubelet.conf",
        "mine.log",
    ] {
        assert!(text.contains(kept), "{kept}");
    }
}

#[test]
fn a_bundle_is_for_its_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine.tar.gz");
    fs::write(&path, "older").unwrap();
    write(&path, b"new").unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read(&path).unwrap(), b"new");
}

#[test]
fn link_at_bundle_path_is_not_written_through() {
    let folder = tempfile::tempdir().unwrap();
    let [theirs, place, beside] =
        ["theirs", "machine.tar.gz", "machine.tar.gz.new"].map(|name| folder.path().join(name));
    fs::write(&theirs, "kept").unwrap();
    symlink(&theirs, &place).unwrap();
    assert!(write(&place, b"new").is_err());
    fs::remove_file(&place).unwrap();
    symlink(&theirs, &beside).unwrap();
    write(&place, b"new").unwrap();
    assert_eq!((fs::read(&theirs).unwrap(), fs::read(&place).unwrap()), (b"kept".to_vec(), b"new".to_vec()));
}

#[tokio::test]
async fn secret_known_to_agent_is_fully_masked_in_bundle_logs() {
    const INVITATION: &str = "rvi1.0123,c4naryhalf4711";
    let folder = tempfile::tempdir().unwrap();
    let root = Root::new(folder.path());
    fs::create_dir_all(root.at("/var/log")).unwrap();
    fs::write(root.at("/var/log/syslog"), format!("invited by Bearer {INVITATION} now\n")).unwrap();
    let own = [SecretString::from(INVITATION)];
    let probe = Probe::of_folder(root.clone()).knowing(Known::of_machine(&root, None, &own));
    let logs = probe.logs(&[]).await;
    let facts = probe.facts(Ok(None)).await;
    let bytes = pack(&Contents {
        root: &root,
        token: None,
        own: &own,
        facts: &facts,
        report_json: "",
        verdict: "",
        logs: &logs,
    })
    .unwrap();
    let text = unpacked(&bytes);
    assert!(text.contains("invited by") && !text.contains("c4naryhalf4711"), "{text}");
}
