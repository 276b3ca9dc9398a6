//! Tests that `run` watches two API servers for objects that are written in a loop, the roster's and its
//! Rancher's, independently.

use reveille_wire::report::{Document, HotVerdict, Report};

use crate::bench::{Bench, until};
use crate::storm::Storm;
use crate::world;

const KINDS: &str = "kinds: [nodes.management.cattle.io]";

/// The hot objects in a status report, and the sources that could not be watched.
fn hot(bench: &Bench) -> (Vec<HotVerdict>, Vec<String>) {
    let ran = bench.run(&["status", "-o", "json"]);
    let document: Document = serde_json::from_str(&ran.out).unwrap();
    let Report::StatusReport(status) = document.report else { panic!("it is no status report: {}", ran.out) };
    (status.hot, status.hot_unread)
}

fn writers(verdict: &HotVerdict) -> Vec<&str> {
    let mut names: Vec<&str> = verdict.suspects.iter().map(|suspect| suspect.name.as_str()).collect();
    names.sort_unstable();
    names
}

/// Adds a section to the roster of the bench.
fn amend(bench: &Bench, more: &str) {
    let roster = std::fs::read_to_string(bench.path("reveille.yaml")).unwrap();
    bench.write("reveille.yaml", &format!("{roster}  {more}\n"));
}

#[test]
fn rancher_s_api_server_is_watched_while_the_cluster_s_is_down() {
    let (bench, storm) = (Bench::new(), Storm::begin(false));
    bench.write("rancher.kubeconfig", &storm.kubeconfig());
    amend(&bench, &format!("hot: {{{KINDS}}}"));
    amend(&bench, &format!("rancher: {{kubeconfig: rancher.kubeconfig, cluster: shop, hot: {{{KINDS}}}}}"));
    let controller = bench.start(&["run"]);
    let server = format!("127.0.0.1:{}", storm.port);
    until("the record and both its writers are named, and the machine behind it", || {
        let (hot, _) = hot(&bench);
        let Some(record) = hot.first() else { return false };
        let behind = record.machine.as_ref().map(|machine| {
            (
                machine.cluster_id.as_deref(),
                machine.cluster.as_deref(),
                machine.node.as_deref(),
                &*machine.addresses,
            )
        });
        let addresses = ["10.0.0.2".to_owned()];
        record.name.as_deref() == Some("machine-h46dc")
            && record.in_rancher.as_deref() == Some(&*server)
            && writers(record) == ["agent-a", "agent-b"]
            && behind == Some((Some("c-abcde"), Some("shop"), Some("w-2"), &addresses[..]))
    });
    let (hot, unread) = hot(&bench);
    assert_eq!(hot.len(), 1, "{hot:?}");
    assert!(unread.len() == 1 && unread[0].contains("in the cluster's API server"), "{unread:?}");
    let page = bench.run(&["status"]).out;
    let begins =
        format!("hot: nodes.management.cattle.io c-abcde/machine-h46dc in Rancher ({server}) is written");
    for part in [begins.as_str(), "behind it: cluster shop (c-abcde) · node w-2 · 10.0.0.2", "agent-b"] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    let ended = controller.terminate();
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(ended.err.contains(&format!("Rancher ({server}): nodes.management.cattle.io")), "{}", ended.err);
}

#[test]
fn the_cluster_s_api_server_is_watched_while_rancher_s_is_down() {
    let (storm, nowhere) = (Storm::begin(false), Bench::new());
    let bench = Bench::towards(storm.port);
    let closed = std::fs::read_to_string(nowhere.path("kubeconfig")).unwrap();
    bench.write("rancher.kubeconfig", &closed);
    amend(&bench, &format!("hot: {{{KINDS}}}"));
    amend(&bench, "rancher: {kubeconfig: rancher.kubeconfig, cluster: shop, hot: {}}");
    let controller = bench.start(&["run"]);
    until("the record and both its writers are named", || {
        let (hot, _) = hot(&bench);
        hot.first()
            .is_some_and(|record| record.in_rancher.is_none() && writers(record) == ["agent-a", "agent-b"])
    });
    let (_, unread) = hot(&bench);
    assert!(unread.len() == 1 && unread[0].contains("in Rancher's API server"), "{unread:?}");
    let ended = controller.terminate();
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(ended.err.contains("Rancher (127.0.0.1:"), "{}", ended.err);
    assert!(ended.err.contains("hot objects are not looked for"), "{}", ended.err);
}

#[test]
fn refusing_api_server_is_reported_and_watched_once_it_relents() {
    let (bench, storm) = (Bench::new(), Storm::begin(true));
    bench.write("rancher.kubeconfig", &storm.kubeconfig());
    amend(&bench, &format!("rancher: {{kubeconfig: rancher.kubeconfig, cluster: shop, hot: {{{KINDS}}}}}"));
    let controller = bench.start(&["run"]);
    until("the refusal is told", || {
        hot(&bench)
            .1
            .iter()
            .any(|why| why.contains("Rancher's API server") && why.contains("Forbidden by the storm"))
    });
    storm.relent();
    until("it is watched all the same", || {
        let (hot, unread) = hot(&bench);
        hot.len() == 1 && unread.is_empty()
    });
    assert_eq!(controller.terminate().code, 0);
}

#[test]
fn why_names_the_storm_of_its_machine_and_of_no_other() {
    let storm = Storm::begin(false);
    let bench = Bench::towards(world::serve(r#""k8s-cluster=lost""#));
    bench.write("rancher.kubeconfig", &storm.kubeconfig());
    amend(&bench, &format!("rancher: {{kubeconfig: rancher.kubeconfig, cluster: shop, hot: {{{KINDS}}}}}"));
    let controller = bench.start(&["run"]);
    until("it is named beside its machine", || {
        let why = bench.run(&["why", "w-2"]).out;
        why.contains("c-abcde/machine-h46dc in Rancher") && why.contains("agent-a") && why.contains("agent-b")
    });
    let other = bench.run(&["why", "w-1"]).out;
    assert!(other.starts_with("w-1") && !other.contains("machine-h46dc in Rancher"), "{other}");
    assert_eq!(controller.terminate().code, 0);
}
