//! Each predicate with an example and a near miss; a healthy cluster of each kind says nothing.

use std::collections::{BTreeMap, BTreeSet};

use reveille_core::model::id::{NodeName, NodeUid};
use reveille_core::model::time::Span;

use super::*;
use crate::model::{Address, AgentPod, Cluster, ClusterId, CustomConfig, Node, RkeNode, Role, Sample};
use crate::stamp::ServerTime;

const CLUSTER: &str = "c-abcde";

fn at(minute: u32) -> ServerTime {
    ServerTime::of_stamp(&format!("2026-11-22T20:{minute:02}:00Z")).unwrap()
}

fn addresses(ip: &str, name: &str) -> Vec<Address> {
    let address = |kind: &str, address: &str| Address { kind: kind.to_owned(), address: address.to_owned() };
    vec![address("InternalIP", ip), address("Hostname", name)]
}

fn registered(record: &str, node: &str, ip: &str) -> Record {
    Record {
        name: RecordName(record.to_owned()),
        uid: format!("uid-{record}"),
        created: Some(at(0)),
        node_label: Some(NodeName::from(node)),
        is_synced: true,
        is_created: true,
        requested_hostname: node.to_owned(),
        imported: true,
        roles: BTreeSet::from([Role::Worker]),
        custom_config: Some(CustomConfig { address: ip.to_owned(), internal_address: String::new() }),
        node_name: Some(NodeName::from(node)),
        rke_node: Some(RkeNode {
            node_name: format!("{CLUSTER}:{record}"),
            hostname_override: node.to_owned(),
            address: ip.to_owned(),
            internal_address: String::new(),
            roles: BTreeSet::from([Role::Worker]),
        }),
        addresses: addresses(ip, node),
        has_docker_info: true,
        has_plan: true,
        ..Record::default()
    }
}

fn mirrored(record: &str, node: &str, ip: &str) -> Record {
    Record {
        imported: false,
        custom_config: None,
        rke_node: None,
        has_docker_info: false,
        has_plan: false,
        ..registered(record, node, ip)
    }
}

fn node(name: &str, ip: &str) -> Node {
    Node {
        name: NodeName::from(name),
        uid: NodeUid::from(format!("uid-{name}").as_str()),
        revision: "1".to_owned(),
        addresses: addresses(ip, name),
        roles: BTreeSet::from([Role::Worker]),
        ready: "True".to_owned(),
        unschedulable: false,
        is_ignored: false,
        is_paused: false,
        created: Some(at(0)),
    }
}

fn sample(kind: Kind, driver: &str, records: Vec<Record>, nodes: Vec<Node>) -> Sample {
    Sample {
        cluster: Cluster {
            id: ClusterId(CLUSTER.to_owned()),
            driver: driver.to_owned(),
            kind,
            ..Cluster::default()
        },
        server_now: Some(at(30)),
        records: Some(records.into_iter().map(|record| (record.name.clone(), record)).collect()),
        nodes: Some(nodes.into_iter().map(|node| (node.name.clone(), node)).collect()),
        pods: Some(BTreeMap::new()),
        ..Sample::default()
    }
}

/// Two machines that registered, and that are well.
fn two() -> Sample {
    let records = vec![
        registered("m-0123456789ab", "w-1", "10.0.0.1"),
        registered("m-0123456789ac", "w-2", "10.0.0.2"),
    ];
    sample(
        Kind::Managed,
        "rancherKubernetesEngine",
        records,
        vec![node("w-1", "10.0.0.1"), node("w-2", "10.0.0.2")],
    )
}

fn codes(sample: &Sample) -> String {
    let found = judge(sample, None);
    found.iter().map(|finding| finding.predicate.code()).collect::<Vec<_>>().join(" ")
}

fn first(sample: &mut Sample) -> &mut Record {
    sample.records.as_mut().unwrap().values_mut().next().unwrap()
}

fn changed(change: impl FnOnce(&mut Sample)) -> Sample {
    let mut sample = two();
    change(&mut sample);
    sample
}

fn put(sample: &mut Sample, record: Record) {
    sample.records.as_mut().unwrap().insert(record.name.clone(), record);
}

fn take(sample: &mut Sample, name: &str) {
    sample.records.as_mut().unwrap().remove(&RecordName(name.to_owned()));
}

#[test]
fn healthy_clusters_of_each_kind_say_nothing() {
    assert_eq!(codes(&two()), "");
    for driver in ["imported", "local", "k3s", "rke2", "googleKubernetesEngine"] {
        let records =
            vec![mirrored("machine-abcde", "w-1", "10.0.0.1"), mirrored("machine-abcdf", "w-2", "10.0.0.1")];
        let nodes = vec![node("w-1", "10.0.0.1"), node("w-2", "10.0.0.1"), node("w-3", "10.0.0.3")];
        assert_eq!(codes(&sample(Kind::Mirrored, driver, records, nodes)), "", "{driver}");
    }
    let of_pool = changed(|s| {
        take(s, "m-0123456789ab");
        let pooled = Record {
            custom_config: None,
            pool: "np-1".to_owned(),
            ..registered("m-abcde", "w-1", "10.0.0.1")
        };
        let rke = RkeNode { node_name: format!("{CLUSTER}:m-abcde"), ..pooled.rke_node.clone().unwrap() };
        put(s, Record { rke_node: Some(rke), ..pooled });
    });
    assert_eq!(codes(&of_pool), "");
}

type Change = Box<dyn Fn(&mut Sample)>;
type Row = (&'static str, Change, &'static str);

/// A record that no registration and no pool made, or that was not finished.
fn of_owners() -> Vec<Row> {
    let mirror = |s: &mut Sample| {
        take(s, "m-0123456789ab");
        put(s, mirrored("machine-h46dc", "w-1", "10.0.0.1"));
    };
    vec![
        ("a mirror in a managed cluster is all three", Box::new(mirror), "P1 P2 P3"),
        (
            "a mirror whose fields another client filled is still a mirror",
            Box::new(|s| {
                take(s, "m-0123456789ab");
                let named = RkeNode {
                    node_name: format!("{CLUSTER}:machine-h46dc"),
                    ..first(s).rke_node.clone().unwrap()
                };
                let rke =
                    RkeNode { hostname_override: "w-1".to_owned(), address: "10.0.0.1".to_owned(), ..named };
                put(s, Record { rke_node: Some(rke), ..registered("machine-h46dc", "w-1", "10.0.0.1") });
            }),
            "P1",
        ),
        (
            "a template is an owner",
            Box::new(|s| {
                first(s).custom_config = None;
                first(s).template = "nt-1".to_owned();
            }),
            "",
        ),
        ("no owner", Box::new(|s| first(s).custom_config = None), "P2"),
        ("no rkeNode for half an hour", Box::new(|s| first(s).rke_node = None), "P3"),
        (
            "no rkeNode for ten minutes",
            Box::new(|s| {
                first(s).rke_node = None;
                first(s).created = Some(at(20));
            }),
            "",
        ),
        (
            "no rkeNode, age unknown",
            Box::new(|s| {
                first(s).rke_node = None;
                s.server_now = None;
            }),
            "",
        ),
        (
            "no rkeNode, on its way out",
            Box::new(|s| {
                first(s).rke_node = None;
                first(s).deleting = Some(at(29));
            }),
            "",
        ),
    ]
}

/// Two records, no record, a deletion.
fn of_pairs() -> Vec<Row> {
    vec![
        ("one label twice", Box::new(|s| first(s).node_label = Some(NodeName::from("w-2"))), "P4 P5"),
        (
            "one address twice",
            Box::new(|s| first(s).addresses.push(addresses("10.0.0.2", "").remove(0))),
            "P4",
        ),
        (
            "one external address twice",
            Box::new(|s| {
                let shared = Address { kind: "ExternalIP".to_owned(), address: "192.0.2.1".to_owned() };
                for record in s.records.as_mut().unwrap().values_mut() {
                    record.addresses.push(shared.clone());
                }
            }),
            "",
        ),
        ("a Node without a record", Box::new(|s| take(s, "m-0123456789ab")), "P5"),
        (
            "a Node that the syncer ignores",
            Box::new(|s| {
                take(s, "m-0123456789ab");
                for node in s.nodes.as_mut().unwrap().values_mut() {
                    node.is_ignored = true;
                }
            }),
            "",
        ),
        (
            "a Node without a record, beside a record that cannot be decoded",
            Box::new(|s| {
                take(s, "m-0123456789ab");
                s.garbled = 1;
            }),
            "",
        ),
        ("a deletion of half an hour", Box::new(|s| first(s).deleting = Some(at(0))), "P6"),
        ("a deletion of four minutes", Box::new(|s| first(s).deleting = Some(at(26))), ""),
        (
            "a long deletion whose Node is gone",
            Box::new(|s| {
                first(s).deleting = Some(at(0));
                s.nodes.as_mut().unwrap().remove(&NodeName::from("w-1"));
            }),
            "",
        ),
    ]
}

/// No Node, parts that contradict each other, what was not read.
fn of_parts() -> Vec<Row> {
    vec![
        (
            "no Node",
            Box::new(|s| {
                s.nodes.as_mut().unwrap().remove(&NodeName::from("w-1"));
            }),
            "P7",
        ),
        (
            "no Node yet",
            Box::new(|s| {
                s.nodes.as_mut().unwrap().remove(&NodeName::from("w-1"));
                first(s).created = Some(at(25));
            }),
            "",
        ),
        ("Nodes were not read", Box::new(|s| s.nodes = None), ""),
        (
            "nodeName of another",
            Box::new(|s| first(s).rke_node.as_mut().unwrap().node_name = "c-abcde:m-x".to_owned()),
            "P8",
        ),
        (
            "roles that contradict",
            Box::new(|s| {
                first(s).rke_node.as_mut().unwrap().roles.insert(Role::Etcd);
            }),
            "P8",
        ),
        (
            "an address of no machine",
            Box::new(|s| first(s).rke_node.as_mut().unwrap().address = "10.9.9.9".to_owned()),
            "P8",
        ),
        ("no addresses yet", Box::new(|s| first(s).addresses.clear()), ""),
        (
            "the cluster is on its way out",
            Box::new(|s| {
                first(s).rke_node = None;
                s.cluster.deleting = true;
            }),
            "",
        ),
        ("records were not read", Box::new(|s| s.records = None), ""),
    ]
}

#[test]
fn each_predicate_has_an_example_and_a_near_miss() {
    for (name, change, expected) in of_owners().into_iter().chain(of_pairs()).chain(of_parts()) {
        assert_eq!(codes(&changed(change)), expected, "{name}");
    }
}

#[test]
fn earlier_look_at_same_object_replaces_unknown_age() {
    let now = changed(|s| {
        first(s).rke_node = None;
        s.server_now = None;
    });
    let found = |earlier: &Sample, before| {
        judge(&now, Some(Earlier { sample: earlier, before: Span::from_min(before) })).len()
    };
    assert_eq!(found(&now, 11), 1);
    assert_eq!(found(&now, 9), 0);
    assert_eq!(found(&two(), 11), 0, "it had one then");
    let another = changed(|s| {
        first(s).rke_node = None;
        first(s).uid = "another".to_owned();
    });
    assert_eq!(found(&another, 11), 0, "it was another object");
}

#[test]
fn a_record_without_a_node_is_sure_only_when_its_agent_lives() {
    let gone = |pods: Vec<AgentPod>| {
        let sample = changed(|s| {
            s.nodes.as_mut().unwrap().remove(&NodeName::from("w-1"));
            s.pods = Some(pods.into_iter().map(|pod| (pod.name.clone(), pod)).collect());
        });
        judge(&sample, None)[0].certainty
    };
    let pod = AgentPod {
        name: "cattle-node-agent-x".to_owned(),
        node: "w-1".to_owned(),
        phase: "Running".to_owned(),
        ready: true,
    };
    assert_eq!(gone(vec![pod.clone()]), Certainty::High);
    assert_eq!(gone(vec![AgentPod { ready: false, ..pod.clone() }]), Certainty::Medium);
    assert_eq!(gone(vec![AgentPod { node: "w-2".to_owned(), ..pod }]), Certainty::Medium);
}

#[test]
fn a_mirror_is_shown_beside_the_same_healthy_sibling_each_time() {
    let sample = changed(|s| {
        take(s, "m-0123456789ab");
        put(s, mirrored("machine-h46dc", "w-1", "10.0.0.1"));
        put(
            s,
            Record { roles: BTreeSet::from([Role::Etcd]), ..registered("m-000000000000", "e-1", "10.0.0.9") },
        );
    });
    let found = judge(&sample, None);
    let record = &sample.records.as_ref().unwrap()[&RecordName("machine-h46dc".to_owned())];
    let comparison = compare(&sample, &found, record).unwrap();
    assert_eq!(comparison.sibling.0, "m-0123456789ac", "of its own roles, though another comes first");
    let fields: Vec<&str> = comparison.differences.iter().map(|difference| difference.field).collect();
    let seeds = [
        "metadata.name",
        "spec.customConfig",
        "spec.imported",
        "status.rkeNode",
        "status.dockerInfo",
        "status.nodePlan",
    ];
    assert_eq!(fields, seeds);
}
