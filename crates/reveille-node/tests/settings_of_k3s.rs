//! Settings of k3s and RKE2 in all words and at all places where their own programs read them.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

use std::fs;

use reveille_node::distribution::Marks;
use reveille_node::known::Known;
use reveille_node::root::Root;
use reveille_node::target::Kind;
use reveille_node::target::agent_config::AgentConfig;

fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::new(folder.path());
    for (path, text) in files {
        fs::create_dir_all(root.at(path).parent().unwrap()).unwrap();
        fs::write(root.at(path), text).unwrap();
    }
    (folder, root)
}

/// k3s makes `-d /data` of the key `d` in its file (`pkg/configfilearg/parser.go`: a key of one letter gets one dash).
#[test]
fn a_control_plane_is_seen_whose_folder_stands_under_the_short_name_in_its_file() {
    let (_folder, root) = machine(&[
        ("/etc/rancher/k3s/config.yaml", "d: /data\n"),
        ("/data/server/token", "K10x::server:x\n"),
    ]);
    assert!(Marks::of_machine(&root).may_lead(&root), "a reset is allowed on a control plane");
}

/// `systemctl edit k3s`, `--config FILE`, `K3S_CONFIG_FILE`.
#[test]
fn a_control_plane_is_seen_whose_folder_stands_in_a_drop_in_or_in_another_file() {
    let unit = "/etc/systemd/system/k3s.service";
    let plain = "[Service]\nExecStart=/usr/local/bin/k3s server\n";
    let cases: [(&str, &[(&str, &str)]); 5] = [
        (
            "Environment= of the unit",
            &[(unit, "[Service]\nEnvironment=K3S_DATA_DIR=/data\nExecStart=/usr/local/bin/k3s server\n")],
        ),
        (
            "Environment= of a drop-in",
            &[
                (unit, plain),
                (
                    "/etc/systemd/system/k3s.service.d/override.conf",
                    "[Service]\nEnvironment=K3S_DATA_DIR=/data\n",
                ),
            ],
        ),
        (
            "ExecStart= of a drop-in",
            &[
                (unit, plain),
                (
                    "/etc/systemd/system/k3s.service.d/override.conf",
                    "[Service]\nExecStart=\nExecStart=/usr/local/bin/k3s server --data-dir /data\n",
                ),
            ],
        ),
        (
            "--config",
            &[
                (unit, "[Service]\nExecStart=/usr/local/bin/k3s server --config /etc/k3s.yaml\n"),
                ("/etc/k3s.yaml", "data-dir: /data\n"),
            ],
        ),
        (
            "K3S_CONFIG_FILE",
            &[
                (unit, plain),
                ("/etc/systemd/system/k3s.service.env", "K3S_CONFIG_FILE=/etc/k3s.yaml\n"),
                ("/etc/k3s.yaml", "data-dir: /data\n"),
            ],
        ),
    ];
    let unseen: Vec<&str> = cases
        .into_iter()
        .filter_map(|(what, files)| {
            let files: Vec<_> =
                files.iter().copied().chain([("/data/server/token", "K10x::server:x\n")]).collect();
            let (_folder, root) = machine(&files);
            (!Marks::of_machine(&root).may_lead(&root)).then_some(what)
        })
        .collect();
    assert!(unseen.is_empty(), "a reset is allowed on a control plane that is told by: {unseen:?}");
}

/// The file is a member of each bundle.
#[test]
fn a_token_under_its_short_name_in_a_file_is_known() {
    let file = "server: https://10.0.0.1:6443\nt: lemonade of mine\n";
    let (_folder, root) = machine(&[("/etc/rancher/k3s/config.yaml", file)]);
    let shown = Known::of_machine(&root, None, &[]).clean(file);
    assert!(!shown.contains("lemonade of mine"), "in the bundle: {shown}");
}

/// The unit is a member of each bundle, too.
#[test]
fn a_token_of_several_words_in_the_arguments_of_a_unit_is_known_whole() {
    let unit =
        "[Service]\nExecStart=/usr/local/bin/k3s \\\n    agent \\\n\t'--token' \\\n\t'lemonade of mine' \\\n";
    let (_folder, root) = machine(&[("/etc/systemd/system/k3s-agent.service", unit)]);
    let shown = Known::of_machine(&root, None, &[]).clean("it said lemonade of mine here");
    assert!(!shown.contains("of mine"), "{shown}");
}

/// Server and token in each other's place, and a password in front of the host.
#[test]
fn a_server_that_is_none_is_refused_without_its_words() {
    let whole = format!("K10{}::server:c4n4ry", "ab".repeat(32));
    for server in [whole.as_str(), "https://admin:c4n4ry@10.0.0.1:6443", "c4n4ry0123456789"] {
        let file = format!("server: {server}\ntoken: https://10.0.0.1:6443\n");
        let (_folder, root) = machine(&[("/etc/rancher/k3s/config.yaml", &file)]);
        let refused = AgentConfig::read(Kind::K3s, &root).unwrap().server().unwrap_err();
        assert!(!format!("{refused} {}", refused.write).contains("c4n4ry"), "{refused:?}");
        assert!(refused.to_string().contains("config.yaml: server: it is no address"), "{refused}");
    }
}
