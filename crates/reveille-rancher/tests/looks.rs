//! A look through clients to API servers in this process: pages, refusals, what may be read, and what never is.

#![allow(clippy::unwrap_used, reason = "a test ends where its material is missing")]

mod support;

use std::collections::BTreeSet;

use futures::executor::block_on;
use reveille_core::model::id::NodeName;
use reveille_rancher::ask::{Ask, Place};
use reveille_rancher::judge::judge;
use reveille_rancher::model::{ClusterId, RecordName, Sample};
use reveille_rancher::rights::{Purpose, RULES, Rule, Wanted, rules};
use reveille_rancher::{modern, reading};
use serde_json::json;
use support::{Api, cluster, mirrored, node, registered};

const RECORDS: &str = "/apis/management.cattle.io/v3/namespaces/c-abcde/nodes";
const CLUSTERS: &str = "/apis/management.cattle.io/v3/clusters";

fn management() -> Api {
    let clusters = vec![
        cluster("c-abcde", "shop", "rancherKubernetesEngine"),
        cluster("c-m-abcdefgh", "modern", "rke2"),
        cluster("local", "local", "local"),
    ];
    let records = vec![
        registered("m-0123456789ab", "w-1", "10.0.0.1"),
        registered("m-0123456789ac", "w-2", "10.0.0.2"),
        mirrored("machine-h46dc", "w-3", "10.0.0.3"),
    ];
    Api::with(&[(CLUSTERS, clusters), (RECORDS, records)])
}

fn below() -> Api {
    let nodes = vec![node("w-1", "10.0.0.1"), node("w-2", "10.0.0.2"), node("w-3", "10.0.0.3")];
    Api::with(&[("/api/v1/nodes", nodes), ("/api/v1/namespaces/cattle-system/pods", Vec::new())])
}

fn look(management: &Api, downstream: Option<&Api>) -> Sample {
    let id = ClusterId("c-abcde".to_owned());
    let (all, server_now) = block_on(reading::clusters(management)).unwrap();
    block_on(reading::sample(management, downstream, all[&id].clone(), server_now))
}

fn codes(sample: &Sample) -> Vec<&'static str> {
    judge(sample, None).iter().map(|finding| finding.predicate.code()).collect()
}

#[test]
fn mirror_is_found_over_pages_and_no_key_is_read() {
    let sample = look(&management(), Some(&below()));
    assert_eq!(codes(&sample), ["P1", "P2", "P3"]);
    assert_eq!(sample.records.as_ref().unwrap().len(), 3, "of two pages");
    assert!(!format!("{sample:?}").contains("canary"));
    assert!(sample.unread.is_empty());
}

#[test]
fn a_list_that_was_not_read_to_its_end_is_no_list() {
    let mut api = management();
    api.lost_page = Some(1);
    let (sample, why) = block_on(async {
        let id = ClusterId("c-abcde".to_owned());
        let cluster = reveille_rancher::model::Cluster { id, ..Default::default() };
        let sample = reading::sample(&api, Some(&below()), cluster, None).await;
        (sample.clone(), sample.unread[0].why.clone())
    });
    assert_eq!((sample.records, why.as_str()), (None, "no answer within 30 s"));
}

#[test]
fn malformed_record_spoils_no_other_and_blocks_orphan_verdict() {
    let mut api = management();
    let strange = json!({"metadata": {"name": "m-strange"}, "spec": {"etcd": "perhaps"}});
    api.lists.get_mut(RECORDS).unwrap()[0] = strange;
    let sample = look(&api, Some(&below()));
    assert_eq!(sample.unread[0].what, "decode the record c-abcde/m-strange");
    assert_eq!(codes(&sample), ["P1", "P2", "P3"], "w-1 is not called an orphan");
}

#[test]
fn who_may_not_read_is_told_the_right_that_is_missing() {
    let mut api = below();
    api.forbidden = vec!["/api/v1/nodes".to_owned()];
    let sample = look(&management(), Some(&api));
    assert!(sample.nodes.is_none());
    assert!(sample.unread[0].why.contains("the right to list nodes"), "{:?}", sample.unread);
    assert_eq!(codes(&sample), ["P1", "P2", "P3"], "what does not rest on Nodes is judged");
}

#[test]
fn modern_machines_are_read_with_plans_only_on_request() {
    let machine = json!({
        "metadata": {"name": "w-9", "namespace": "fleet-default"},
        "spec": {"clusterName": "modern", "bootstrap": {"configRef": {"name": "w-9"}}},
        "status": {"phase": "Provisioning", "conditions": [{"type": "InfrastructureReady", "status": "True"},
                   {"type": "BootstrapReady", "status": "False", "message": "waiting for agent to check in and apply initial plan"}]}
    });
    let api = Api::with(&[
        ("/apis/cluster.x-k8s.io/v1beta1/machines", vec![machine]),
        ("/api/v1/namespaces/fleet-default/secrets", Vec::new()),
    ]);
    for (with_plans, asks) in [(false, 1), (true, 2)] {
        api.asked.borrow_mut().clear();
        let (machines, unread) = block_on(modern::machines(&api, with_plans)).unwrap();
        assert_eq!((machines[0].stage.word(), unread.len()), ("check-in", 0));
        assert_eq!(api.asked.borrow().len(), asks);
    }
}

#[test]
fn the_rights_are_those_of_what_is_asked_and_no_others() {
    let id = || ClusterId("c-abcde".to_owned());
    let asks = [
        Ask::Clusters,
        Ask::Cluster(id()),
        Ask::Records(id()),
        Ask::Record(id(), RecordName("m-abcde".to_owned())),
        Ask::Backups(id()),
        Ask::Machines,
        Ask::Plans("fleet-default".to_owned()),
        Ask::Nodes,
        Ask::Node(NodeName::from("w-1")),
        Ask::Pods,
        Ask::PodsOn(NodeName::from("w-1")),
        Ask::Volumes,
    ];
    let mut needed = BTreeSet::new();
    for ask in &asks {
        let request = ask.request(None).unwrap();
        let path = request.target.split('?').next().unwrap();
        let mut parts = path.trim_start_matches('/').split('/');
        let group = if parts.next() == Some("apis") { parts.next().unwrap() } else { "" };
        let mut rest: Vec<&str> = parts.skip(1).collect();
        let namespace = (rest[0] == "namespaces" && rest.len() > 2).then(|| rest.drain(..2).nth(1).unwrap());
        let verb = if rest.len() == 2 { "get" } else { "list" };
        // A namespace of a cluster's own cannot be named in a rule that is written before the cluster is.
        let namespace = namespace.filter(|namespace| *namespace != "c-abcde");
        needed.insert((
            ask.place(),
            group.to_owned(),
            rest[0].to_owned(),
            namespace.map(str::to_owned),
            verb,
        ));
    }
    let listed: BTreeSet<_> = RULES
        .iter()
        .filter(|rule| rule.verbs.iter().all(|verb| matches!(*verb, "get" | "list")))
        .flat_map(|rule| {
            rule.verbs.iter().map(|verb| {
                (
                    rule.place,
                    rule.group.to_owned(),
                    rule.resource.to_owned(),
                    rule.namespace.map(str::to_owned),
                    *verb,
                )
            })
        })
        .collect();
    assert_eq!(needed, listed);
}

#[test]
fn secrets_may_only_be_read_where_that_is_wanted() {
    assert!(RULES.iter().any(|rule| rule.purpose == Purpose::Plans));
    let secrets = |place, wanted| {
        let rules = rules(place, wanted).filter(|rule| rule.resource == "secrets");
        rules.flat_map(|rule| rule.verbs).copied().collect::<Vec<_>>()
    };
    for place in [Place::Management, Place::Downstream] {
        assert!(secrets(place, Wanted::default()).is_empty());
        let reads = |rule: &Rule| rule.verbs.iter().all(|verb| ["get", "list"].contains(verb));
        assert!(rules(place, Wanted::default()).all(reads));
    }
    assert_eq!(secrets(Place::Management, Wanted { plans: true, repair: false }), ["list"]);
}
