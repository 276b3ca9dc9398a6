//! The executor of a repair, on API servers in this process: whole objects, revisions, uids, and no key in a copy.

#![allow(clippy::unwrap_used, reason = "a test ends where its material is missing")]

mod support;

use std::collections::BTreeSet;

use futures::executor::block_on;
use reveille_rancher::ask::Verb;
use reveille_rancher::model::{ClusterId, RecordName, Role};
use reveille_rancher::repair::executor::{Keep, perform, see};
use reveille_rancher::repair::{Act, Draft, Order, Outcome, Path, propose};
use serde_json::{Value, json};
use support::{Api, cluster, mirrored, node, registered};

const RECORDS: &str = "/apis/management.cattle.io/v3/namespaces/c-abcde/nodes";

#[derive(Default)]
struct Copies(Vec<String>);

impl Keep for Copies {
    fn keep(&mut self, _: &RecordName, text: &str) -> Result<(), String> {
        self.0.push(text.to_owned());
        Ok(())
    }
}

fn order(path: Path) -> Order {
    Order { cluster: ClusterId("c-abcde".to_owned()), node: "w-3".to_owned(), path, local_data: false }
}

fn management() -> Api {
    let backup = json!({"metadata": {"name": "b", "creationTimestamp": "2026-11-22T20:00:00Z"},
                        "status": {"conditions": [{"type": "Completed", "status": "True"}]}});
    let records =
        vec![registered("m-0123456789ab", "w-1", "10.0.0.1"), mirrored("machine-h46dc", "w-3", "10.0.0.3")];
    Api::with(&[
        (
            "/apis/management.cattle.io/v3/clusters",
            vec![cluster("c-abcde", "shop", "rancherKubernetesEngine")],
        ),
        ("/apis/management.cattle.io/v3/namespaces/c-abcde/etcdbackups", vec![backup]),
        (RECORDS, records),
    ])
}

fn below(pods: Vec<Value>) -> Api {
    let nodes = vec![node("w-1", "10.0.0.1"), node("w-3", "10.0.0.3")];
    Api::with(&[
        ("/api/v1/nodes", nodes),
        ("/api/v1/namespaces/cattle-system/pods", Vec::new()),
        ("/api/v1/pods", pods),
        ("/api/v1/persistentvolumes", Vec::new()),
    ])
}

fn draft() -> Draft {
    Draft {
        address: "10.0.0.3".to_owned(),
        hostname: "w-3".to_owned(),
        node_name: "c-abcde:machine-h46dc".to_owned(),
        roles: BTreeSet::from([Role::Worker]),
    }
}

fn write(revision: &str, uid: &str) -> Act {
    Act::Write {
        record: RecordName("machine-h46dc".to_owned()),
        uid: uid.to_owned(),
        revision: revision.to_owned(),
        draft: draft(),
    }
}

fn done(api: &Api, act: &Act) -> Outcome {
    block_on(perform(api, &below(Vec::new()), &order(Path::Mend), act, &mut Copies::default()))
}

#[test]
fn a_node_that_is_annotated_to_be_left_alone_is_left_alone() {
    let mut below = below(Vec::new());
    let node = below
        .lists
        .get_mut("/api/v1/nodes")
        .unwrap()
        .iter_mut()
        .find(|node| node["metadata"]["name"] == "w-3");
    node.unwrap()["metadata"]["annotations"] = json!({"reveille.dev/pause": "true"});
    let observation = block_on(see(&management(), &below, &order(Path::Evict), None)).unwrap();
    assert_eq!(
        propose(&order(Path::Evict), &observation).against.first().unwrap(),
        "its Node is annotated reveille.dev/pause"
    );
}

#[test]
fn a_look_leads_to_a_proposal_with_nothing_against_it() {
    let pod = |name: &str, owner: &str, local: bool| {
        let volumes = if local { json!([{"name": "d", "emptyDir": {}}]) } else { json!([]) };
        json!({"metadata": {"name": name, "namespace": "shop", "uid": name, "ownerReferences": [{"kind": owner, "controller": true}]},
               "spec": {"volumes": volumes}, "status": {"phase": "Running"}})
    };
    for (local, expected) in [(false, ""), (true, "--accept-local-data-loss")] {
        let pods = vec![pod("proxy", "DaemonSet", true), pod("web-1", "ReplicaSet", local)];
        let observation = block_on(see(&management(), &below(pods), &order(Path::Evict), None)).unwrap();
        let against = propose(&order(Path::Evict), &observation).against.join("; ");
        assert!(against.contains(expected) && against.is_empty() == expected.is_empty(), "{against}");
    }
}

#[test]
fn a_volume_that_can_be_on_this_node_alone_is_data_there() {
    let volume = |name: &str, key: &str, value: &str, claimed: bool| {
        let claim =
            if claimed { json!({"namespace": "shop", "name": format!("data-{name}")}) } else { Value::Null };
        let asked = json!([{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}]);
        json!({"metadata": {"name": name},
               "spec": {"claimRef": claim, "nodeAffinity": {"required": {"nodeSelectorTerms": asked}}}})
    };
    let hostname = "kubernetes.io/hostname";
    let volumes = vec![
        volume("pv-1", hostname, "w-3", true),
        volume("pv-2", hostname, "w-1", true),
        volume("pv-3", hostname, "w-3", false),
        volume("pv-4", "topology.kubernetes.io/zone", "a", true),
        json!({"metadata": {"name": "pv-5"}, "spec": {"claimRef": {"namespace": "shop", "name": "anywhere"}}}),
    ];
    let mut below = below(Vec::new());
    below.lists.insert("/api/v1/persistentvolumes".to_owned(), volumes);
    let observation = block_on(see(&management(), &below, &order(Path::Evict), None)).unwrap();
    assert_eq!(observation.volumes, Some(vec!["shop/data-pv-1 (pv-1)".to_owned()]));
    below.forbidden.push("persistentvolumes".to_owned());
    let observation = block_on(see(&management(), &below, &order(Path::Evict), None)).unwrap();
    assert!(
        propose(&order(Path::Evict), &observation).against.join("; ").contains("volumes could not be read")
    );
}

#[test]
fn both_parts_are_written_by_one_put_on_the_read_revision() {
    let api = management();
    assert_eq!(done(&api, &write("5", "uid-machine-h46dc")), Outcome::Accepted);
    let asked: Vec<Verb> = api.asked.borrow().iter().map(|(verb, _)| *verb).collect();
    assert_eq!(asked, [Verb::Get, Verb::Put]);
    let sent = api.bodies.borrow()[0].clone();
    assert_eq!(sent["spec"]["customConfig"]["address"], "10.0.0.3");
    assert_eq!(sent["status"]["rkeNode"]["role"], json!(["worker"]));
    assert_eq!(sent["metadata"]["resourceVersion"], "5");
    assert_eq!(
        sent["metadata"]["labels"]["management.cattle.io/nodename"], "w-3",
        "what we do not change stays"
    );
}

#[test]
fn record_with_other_revision_or_uid_is_left_alone() {
    for act in [write("4", "uid-machine-h46dc"), write("5", "another")] {
        let api = management();
        assert_eq!(done(&api, &act), Outcome::Moved);
        assert!(api.bodies.borrow().is_empty());
    }
}

#[test]
fn what_was_written_is_taken_out_again_and_nothing_else() {
    let mut api = management();
    let mut record = mirrored("machine-h46dc", "w-3", "10.0.0.3");
    record["spec"]["customConfig"] = json!({"address": "10.0.0.3"});
    record["status"]["rkeNode"] = json!({"address": "10.0.0.3"});
    record["status"]["later"] = json!({"kept": true});
    api.lists.get_mut(RECORDS).unwrap()[1] = record;
    let back = Act::PutBack {
        record: RecordName("machine-h46dc".to_owned()),
        uid: "uid-machine-h46dc".to_owned(),
        revision: "5".to_owned(),
        draft: draft(),
    };
    assert_eq!(done(&api, &back), Outcome::Accepted);
    let sent = api.bodies.borrow()[0].clone();
    assert!(sent["spec"].get("customConfig").is_none() && sent["status"].get("rkeNode").is_none());
    assert_eq!(sent["status"]["later"]["kept"], true);
}

#[test]
fn deletions_carry_the_uid_and_what_is_not_there_is_so_already() {
    let api = management();
    let delete =
        |name: &str| Act::DeleteRecord { record: RecordName(name.to_owned()), uid: "u-1".to_owned() };
    assert_eq!(done(&api, &delete("machine-h46dc")), Outcome::Accepted);
    assert_eq!(api.bodies.borrow()[0]["preconditions"]["uid"], "u-1");
    assert_eq!(done(&api, &delete("machine-gone")), Outcome::AlreadySo);
    assert!(matches!(done(&api, &delete("a/../b")), Outcome::Refused { .. }));
}

#[test]
fn a_copy_of_a_record_holds_no_key_and_no_plan() {
    let (api, mut copies) = (management(), Copies::default());
    let act = Act::Save { records: vec![RecordName("m-0123456789ab".to_owned())] };
    assert_eq!(
        block_on(perform(&api, &below(Vec::new()), &order(Path::Evict), &act, &mut copies)),
        Outcome::Accepted
    );
    assert!(copies.0[0].contains("10.0.0.1") && !copies.0[0].contains("canary"), "{}", copies.0[0]);
}
