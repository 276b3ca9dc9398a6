//! What a plan may contain: known paths, modes and fields, and no others.

use std::process::Command;

use reveille_wire::agent::plan::JoinOrder;
use reveille_wire::agent::text::{List, Word};

use super::*;

#[test]
fn plan_file_outside_node_config_folders_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::new(folder.path());
    assert!(write(&root, 0, "/etc/kubernetes/cloud.conf", "0640", "a").unwrap());
    assert!(!write(&root, 0, "/etc/kubernetes/cloud.conf", "0640", "a").unwrap(), "it is as it should be");
    assert!(write(&root, 0, "/etc/kubernetes/cloud.conf", "0600", "a").unwrap(), "its mode is another");
    for path in [
        "/etc/passwd",
        "/etc/kubernetes/cloud/../../passwd",
        "etc/kubernetes/cloud/a",
        "/root/.ssh/authorized_keys",
    ] {
        assert!(
            matches!(
                write(&root, 3, path, "0600", "x"),
                Err(PlanError::NotAllowed(NotAllowed::Place { file: 3, .. }))
            ),
            "{path}"
        );
    }
    fs::create_dir_all(root.at("/elsewhere")).unwrap();
    std::os::unix::fs::symlink(root.at("/elsewhere"), root.at("/etc/kubernetes/cloud")).unwrap();
    assert!(write(&root, 0, "/etc/kubernetes/cloud/file", "0600", "x").is_err(), "a link leads out of it");
    assert!(!root.at("/elsewhere/file").exists());
}

#[test]
fn node_name_follows_api_server_rules_and_holds_no_path() {
    assert!(["w-1", "a", "ip-10-0-0-1.eu-west-1.compute.internal", "1"].into_iter().all(is_name));
    for name in ["", "W-1", "w_1", "-w", "w.", "../../etc/cron.d/w", "w/1", "w?x=1", &"w".repeat(254)] {
        assert!(!is_name(name), "{name}");
    }
}

fn plan(distribution: Kind, config: Option<&str>) -> Plan {
    let order = JoinOrder {
        distribution,
        server: "10.0.0.1:6443".into(),
        ca_pins: List::first([Word::cut(&format!("sha256:{}", "ab".repeat(32)))]),
        node_name: "w-1".into(),
        labels: Default::default(),
        taints: List::default(),
        config: config.map(Into::into),
    };
    let file = Step::WriteFile {
        path: "/etc/kubernetes/cloud.conf".into(),
        mode: "0600".into(),
        owner: None,
        content: "a".into(),
        secret: false,
    };
    let steps = List::first([file, Step::Join(order)]);
    Plan { version: 7, checksum: "".into(), roles: List::default(), steps }
}

fn refusal(distribution: Kind, config: &str) -> String {
    let root = tempfile::tempdir().unwrap();
    let taken = target(&Root::new(root.path()), &plan(distribution, Some(config)));
    taken.err().unwrap_or_else(|| panic!("it is taken: {config}")).to_string()
}

#[test]
fn a_path_that_only_begins_like_a_place_of_a_plan_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::new(folder.path());
    for path in [
        "/etc/crictl.yamlEVIL",
        "/etc/crictl.yaml/x",
        "/etc/crictl.yaml.d/x",
        "/etc/kubernetes/cloudx/a",
        "/etc/kubernetes/cloud",
        "/etc/kubernetes/cloud/",
        "/etc/kubernetes/cloud/.",
        "/etc/kubernetes/cloud/./a",
        "/etc//kubernetes/cloud/a",
        "/etc/kubernetes/cloud/a/",
        "/etc/kubernetes/cloud/a\0b",
        "/etc/kubernetes/a",
    ] {
        let refused = write(&root, 3, path, "0600", "x");
        assert!(
            matches!(refused, Err(PlanError::NotAllowed(NotAllowed::Place { file: 3, .. }))),
            "{path}: {refused:?}"
        );
    }
    assert!(!root.has("/etc/crictl.yamlEVIL"));
    for path in ["/etc/crictl.yaml", "/etc/kubernetes/cloud/a", "/etc/rancher/k3s/registries.yaml"] {
        assert!(write(&root, 3, path, "0600", "x").unwrap(), "{path}");
    }
}

#[test]
fn plan_config_with_field_outside_node_settings_is_refused() {
    for (config, place) in [
        ("controlPlane: {certificateKey: abcd}", "controlPlane"),
        ("patches: {directory: /etc/kubernetes/evil}", "patches"),
        ("skipPhases: [preflight]", "skipPhases"),
        ("caCertPath: /etc/cron.d/x", "caCertPath"),
        ("kind: ClusterConfiguration", "kind"),
        ("apiVersion: v1", "apiVersion"),
        (
            "nodeRegistration: {kubeletExtraArgs: [{name: pod-manifest-path, value: /tmp}]}",
            "pod-manifest-path",
        ),
        ("nodeRegistration: {kubeletExtraArgs: {root-dir: /tmp}}", "root-dir"),
        ("nodeRegistration: {kubeletExtraArgs: [{name: v, value: \"2\", more: x}]}", "more"),
        ("nodeRegistration: {patches: x}", "nodeRegistration.patches"),
        ("nodeRegistration: [a]", "nodeRegistration"),
        ("[a]", "mapping"),
        ("{a: b", "mapping"),
        ("kind: JoinConfiguration\n---\nkind: KubeletConfiguration\n", "mapping"),
    ] {
        let refused = refusal(Kind::Kubeadm, config);
        assert!(refused.contains("step 1") && refused.contains(place), "{config}: {refused}");
    }
    for (config, place) in [
        ("server: https://elsewhere:6443", "server"),
        ("token: abcdef", "token"),
        ("data-dir: /tmp", "data-dir"),
        ("node-label++: [a=b]", "node-label++"),
        ("kubelet-arg: [pod-manifest-path=/tmp]", "pod-manifest-path"),
        ("kubelet-arg+: [\"--root-dir=/tmp\"]", "root-dir"),
        ("containerd-config: x", "containerd-config"),
    ] {
        let refused = refusal(Kind::K3s, config);
        assert!(refused.contains("step 1") && refused.contains(place), "{config}: {refused}");
    }
}

#[test]
fn what_a_plan_is_for_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::new(folder.path());
    let taken = |kind, config: &str| target(&root, &plan(kind, Some(config))).unwrap().config.unwrap();
    let whole = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\nnodeRegistration:\n  \
                 criSocket: unix:///run/crio.sock\n  \
                 kubeletExtraArgs: [{name: node-ip, value: 10.0.0.5}]\n  ignorePreflightErrors: [Swap]\n\
                 timeouts: {discovery: 1m0s}\n\
                 discovery: {bootstrapToken: {apiServerEndpoint: \"a:1\", token: x}}\n";
    let written = taken(Kind::Kubeadm, whole);
    assert!(
        written.contains("crio.sock") && written.contains("10.0.0.5") && written.contains("Swap"),
        "{written}"
    );
    assert!(
        written.contains("10.0.0.1:6443") && !written.contains("a:1"),
        "the plan's server counts: {written}"
    );
    let written = taken(
        Kind::Rke2,
        "node-ip: 10.0.0.5\nkubelet-arg: [max-pods=50, \"v=2\"]\nnode-taint+: [a=b:NoSchedule]\n",
    );
    assert!(written.contains("10.0.0.5") && written.contains("max-pods=50"), "{written}");
}

#[test]
fn plan_file_mode_writable_by_others_or_setuid_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::new(folder.path());
    for mode in [
        "0666", "0777", "0622", "0660", "4755", "2755", "1755", "0602", "0755", "0700", "rw", "", "-1",
        "0o600", "+600",
    ] {
        let refused = write(&root, 2, "/etc/kubernetes/cloud.conf", mode, "x");
        let said = refused.map(|_| ()).unwrap_err().to_string();
        assert!(said.contains("files[2]: ") && said.contains("/etc/kubernetes/cloud.conf"), "{mode}: {said}");
        assert!(!root.has("/etc/kubernetes/cloud.conf"), "{mode}: nothing is written");
    }
    for mode in ["0600", "600", "0640", "0644", "0400"] {
        write(&root, 2, "/etc/kubernetes/cloud.conf", mode, "x").unwrap();
        let found =
            fs::metadata(root.at("/etc/kubernetes/cloud.conf")).unwrap().permissions().mode() & 0o7777;
        assert_eq!(found, u32::from_str_radix(mode, 8).unwrap(), "{mode}");
    }
}

#[test]
fn plan_with_forbidden_setting_or_bad_checksum_is_refused() {
    let whole = |plan: Plan| {
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &plan.canonical());
        let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Plan { checksum: Word::cut(&format!("sha256:{hex}")), ..plan }
    };
    may_be_followed(&whole(plan(Kind::Kubeadm, None))).unwrap();
    let refused = may_be_followed(&whole(plan(Kind::Kubeadm, Some("skipPhases: [preflight]"))));
    assert!(matches!(refused, Err(PlanError::NotAllowed(NotAllowed::Config { step: 1, .. }))), "{refused:?}");
    assert!(matches!(may_be_followed(&plan(Kind::Kubeadm, None)), Err(PlanError::Checksum(7))));
}

/// The test needs a process of its own: a process has one umask for all threads.
const CHILD: &str = "REVEILLE_TEST_UMASK";

#[test]
fn what_a_plan_makes_has_its_modes_whatever_the_umask_is() {
    if let Ok(path) = std::env::var(CHILD) {
        let root = Root::new(path);
        write(&root, 0, "/etc/kubernetes/cloud/cloud.conf", "0640", "a").unwrap();
        Shelf::within(&root.at("/var/lib/reveille/agent")).mark_joined(&plan(Kind::Kubeadm, None)).unwrap();
        return;
    }
    for umask in ["000", "077", "277"] {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        let name = "agent::plan::tests::what_a_plan_makes_has_its_modes_whatever_the_umask_is";
        let script = format!("umask {umask} && exec \"$0\" --exact {name}");
        let ended = Command::new("sh")
            .args(["-c", &script])
            .arg(std::env::current_exe().unwrap())
            .env(CHILD, folder.path())
            .output()
            .unwrap();
        assert!(ended.status.success(), "{ended:?}");
        for (path, wanted) in [
            ("/etc", 0o755),
            ("/etc/kubernetes", 0o755),
            ("/etc/kubernetes/cloud", 0o755),
            ("/etc/kubernetes/cloud/cloud.conf", 0o640),
            ("/var/lib/reveille", 0o700),
            ("/var/lib/reveille/agent", 0o700),
            ("/var/lib/reveille/agent/joined", 0o600),
        ] {
            let mode = fs::metadata(root.at(path)).unwrap().permissions().mode() & 0o7777;
            assert_eq!(mode, wanted, "{path} with umask {umask}: {mode:o}");
        }
    }
}
