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
fn control_plane_is_seen_with_data_dir_under_short_key() {
    let (_folder, root) = machine(&[
        ("/etc/rancher/k3s/config.yaml", "d: /data\n"),
        ("/data/server/token", "K10x::server:x\n"),
    ]);
    assert!(Marks::of_machine(&root).may_lead(&root), "a reset is allowed on a control plane");
}

/// `systemctl edit k3s`, `--config FILE`, `K3S_CONFIG_FILE`.
#[test]
fn control_plane_is_seen_with_data_dir_in_drop_in_or_other_file() {
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

const UNIT: &str = "/etc/systemd/system/k3s.service";

/// What says where the data is, and is not read here: systemd or the network puts the words in.
#[test]
fn server_with_variable_data_dir_counts_as_control_plane() {
    for line in [
        "ExecStart=/usr/local/bin/k3s server $K3S_ARGS",
        "ExecStart=/usr/local/bin/k3s server --data-dir ${DATA}",
        "ExecStart=/usr/local/bin/k3s server --data-dir=/data/%H",
        "ExecStart=/bin/sh -c 'exec k3s server -d $DATA'",
        "ExecStart=/usr/local/bin/k3s server -c https://10.0.0.1/k3s.yaml",
        "Environment=A=b 'K3S_CONFIG_FILE=k3s.yaml'",
        "EnvironmentFile=/etc/k3s/*.env",
    ] {
        let (_folder, root) = machine(&[(UNIT, line)]);
        assert!(Marks::of_machine(&root).may_lead(&root), "{line}");
    }
}

/// The units as the installers write them, and an agent's own variables, say nothing of a server's folder.
#[test]
fn a_usual_unit_makes_no_control_plane() {
    let of_installer = "[Unit]\nDescription=Lightweight Kubernetes\n[Service]\nType=notify\nEnvironmentFile=-/etc/default/%N\n\
        EnvironmentFile=-/etc/sysconfig/%N\nEnvironment=K3S_CONFIG_FILE=\nEnvironmentFile=-/etc/systemd/system/k3s.service.env\n\
        ExecStartPre=/bin/sh -xc '! systemctl is-enabled --quiet nm-cloud-setup.service 2>/dev/null $X'\n\
        ExecStart=/usr/local/bin/k3s \\\n    server \\\n\t'--node-label' \\\n\t'a=b' \\\n\n";
    let agent = "ExecStart=/usr/local/bin/k3s agent $K3S_ARGS\n";
    let (_folder, root) = machine(&[(UNIT, of_installer), ("/etc/systemd/system/k3s-agent.service", agent)]);
    assert!(!Marks::of_machine(&root).may_lead(&root));
}

/// A folder that a drop-in replaced still has the data of the server that ran there.
#[test]
fn a_control_plane_is_seen_in_a_folder_that_counts_no_more() {
    let drop_in =
        ("/etc/systemd/system/k3s.service.d/a.conf", "ExecStart=\nExecStart=k3s server -d /other\n");
    for before in [
        (UNIT, "ExecStart=k3s server --data-dir '/data'\n"),
        (UNIT, "ExecStart=/bin/sh -c 'exec k3s server --data-dir /data'\n"),
        ("/usr/lib/systemd/system/k3s.service", "Environment=\"K3S_DATA_DIR=/data\"\n"),
        ("/etc/k3s.d.env", "K3S_DATA_DIR=/data\n"),
    ] {
        let base = (UNIT, "EnvironmentFile=-/etc/k3s.d.env\nExecStart=k3s server\n");
        let files = [base, before, drop_in, ("/data/server/token", "K10x::server:x\n")];
        let (_folder, root) = machine(&files);
        let marks = Marks::of_machine(&root);
        assert_eq!(marks.of_control_plane(&root).collect::<Vec<_>>(), ["/data/server/token"], "{before:?}");
    }
}

/// The environment is overridden by a file of ours, and arguments are not, wherever they stand.
#[test]
fn unit_arguments_are_fixed_and_the_last_one_counts() {
    let unit = "/etc/systemd/system/k3s-agent.service";
    let first = "Environment=K3S_URL=https://env:6443\nExecStart=k3s agent --server https://first:6443\n";
    let path = "/etc/systemd/system/k3s-agent.service.d/override.conf";
    for (drop_in, wanted, fixed_in) in [
        ("", "first:6443", Some(unit)),
        ("ExecStart=\nExecStart=k3s agent\n", "env:6443", None),
        ("ExecStart=\nExecStart=k3s agent -s https://second:6443\n", "second:6443", Some(path)),
        ("Environment=\nEnvironment=K3S_URL=https://other:6443\nExecStart=\n", "other:6443", None),
    ] {
        let (_folder, root) = machine(&[(unit, first), (path, drop_in)]);
        let config = AgentConfig::read(Kind::K3s, &root).unwrap();
        assert_eq!(config.server().unwrap().unwrap().0.to_string(), wanted, "{drop_in}");
        assert_eq!(config.fixed().map(|(_, place, _)| place), fixed_in, "{drop_in}");
    }
}

/// A token in the environment of the unit, in a line that a drop-in takes back, and of another name.
#[test]
fn every_token_of_a_unit_is_known() {
    let unit = "Environment=\"K3S_TOKEN=lemonade of mine\" 'K3S_CLUSTER_SECRET=older juice here'\n\
        ExecStart=k3s agent --token 'first cup of it'\n";
    let (_folder, root) = machine(&[
        ("/etc/systemd/system/k3s-agent.service", unit),
        (
            "/etc/systemd/system/k3s-agent.service.d/override.conf",
            "ExecStart=\nExecStart=k3s agent --token='second cup' -t 'it'\\''s the third'\n",
        ),
    ]);
    let known = Known::of_machine(&root, None, &[]);
    for secret in [
        "lemonade of mine",
        "older juice here",
        "first cup of it",
        "second cup",
        "it's the third",
        "it'\\''s the third",
    ] {
        assert_eq!(known.clean(&format!("it said {secret} here")), "it said [masked] here");
    }
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
fn token_of_several_words_in_unit_arguments_is_masked_whole() {
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
