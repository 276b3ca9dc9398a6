//! Courses that a reader of the code found, each red before its mend.

use std::sync::Arc;

use reveille_core::effect::{Outcome, ReadError, ReadErrorKind};
use reveille_core::event::{CloudFact, ClusterFact, Event};
use reveille_core::model::hosting::Hosting;
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::InstanceState;
use reveille_core::model::node::{Node, NodeEvent, Provider, Ready};
use reveille_core::model::time::Span;

use super::fixture::{CLOUD, Field, node, roster, stamp};
use super::next_process::Ledger;
use super::steps::{made, min, next, set, without_rejoin};

/// What the kubelet said of this Node, and the controller manager after it: the API server keeps both for an hour.
fn drain_is_told(field: &mut Field, node: &str) {
    for (reason, reporter) in [("NodeNotSchedulable", "kubelet"), ("RemovingNode", "node-controller")] {
        let event = NodeEvent {
            node: node.into(),
            uid: None,
            reason: reason.into(),
            message: "".into(),
            reporter: reporter.into(),
            stamped: None,
        };
        field.feed(Event::Cluster(ClusterFact::NodeEvent(event)));
    }
}

/// For three quarters of an hour no process runs (an upgrade that went wrong). In that time a machine is made, joins, serves, and
/// a person drains it, deletes its Node and keeps the machine; or etcd is restored from a backup of before it joined, and it
/// serves still. It may have served, so that it is not replaced.
#[test]
fn machine_made_and_joined_in_a_short_gap_is_not_replaced() {
    let mut touched = Vec::new();
    for (gap, told) in [(45, false), (45, true), (62, false)] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        let last = field.now;
        field.now = field.now + min(5);
        field.add_machine("new", false);
        field.now = field.now + min(gap - 5);
        let mut field = next(field, roster(), last);
        field.sync_nodes();
        if told {
            drain_is_told(&mut field, "node-new");
        }
        field.run(min(6 * 60));
        touched.push((gap, told, made(&field)));
    }
    let replaced = |made: &[String]| made.iter().any(|call| call.starts_with("delete instance"));
    assert!(touched.iter().all(|(.., made)| !replaced(made)), "gap in minutes, told by events: {touched:#?}");
}

/// The same where a list showed it being built just before the gap.
#[test]
fn machine_built_before_a_gap_and_drained_in_it_is_left_alone() {
    let mut touched = Vec::new();
    for restart in [true, false] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        field.add_machine("new", false);
        field.instances.get_mut("new").unwrap().state = InstanceState::Building;
        field.run(min(1));
        field.instances.get_mut("new").unwrap().state = InstanceState::Active;
        if restart {
            let last = field.now;
            field.now = field.now + min(45);
            field = next(field, roster(), last);
        } else {
            let refused =
                ReadError { kind: ReadErrorKind::Unavailable, text: "refused".into(), retry_after: None };
            for _ in 0..45 * 6 {
                field.now = field.now + Span::from_s(10);
                field.list_cloud();
                field.feed(Event::Cluster(ClusterFact::Failed(refused.clone())));
            }
        }
        field.sync_nodes();
        drain_is_told(&mut field, "node-new");
        field.run(min(6 * 60));
        touched.push((restart, made(&field)));
    }
    assert!(touched.iter().all(|(_, made)| made.is_empty()), "restart: {touched:#?}");
}

fn cloud_fails(field: &mut Field) {
    let error = ReadError { kind: ReadErrorKind::Unavailable, text: "503".into(), retry_after: None };
    field.feed(Event::Cloud { cloud: CLOUD.into(), fact: CloudFact::Failed(error) });
}

/// The cloud's API does not answer us for so long; the watch of the nodes goes on, and each Node is told as it is.
fn cloud_away(field: &mut Field, span: Span) {
    let end = field.now + span;
    while field.now < end {
        field.now = field.now + Span::from_s(10);
        if (field.now.ms / 10_000) % 3 == 0 {
            cloud_fails(field);
        }
        field.sync_nodes();
        field.list_leases();
        field.feed(Event::Cluster(ClusterFact::Alive));
    }
}

/// Our credential for the cloud is refused for two hours (or its listing fails), while others go on making machines. One joins in
/// our sight, serves for half an hour, and a person drains it and deletes its Node, in our sight as well.
#[test]
fn machine_drained_before_its_cloud_lists_it_is_left_alone() {
    let mut touched = Vec::new();
    for (settles, restarts) in [(0, false), (0, true), (5, false)] {
        let mut wanted = roster();
        if settles > 0 {
            wanted.settles.insert(CLOUD.into(), min(settles));
        }
        let mut field = Field::new(wanted.clone()).populate(10);
        field.run(min(20));
        cloud_away(&mut field, min(10));
        field.add_machine("new", true);
        cloud_away(&mut field, min(30));
        field.nodes.get_mut("new").unwrap().cordoned = true;
        cloud_away(&mut field, min(5));
        field.nodes.remove("new");
        cloud_away(&mut field, min(5));
        if restarts {
            field = field.restarted(wanted);
        }
        field.run(min(6 * 60));
        touched.push((settles, restarts, made(&field)));
    }
    assert!(touched.iter().all(|(.., made)| made.is_empty()), "settles, restarts: {touched:#?}");
}

fn applies(field: &mut Field, change: impl FnOnce(&mut Node)) {
    let node = field.nodes.get_mut("i004").unwrap();
    change(node);
    let node = Arc::new(node.clone());
    field.now = field.now + Span::from_ms(20);
    field.feed(Event::Cluster(ClusterFact::Applied(node)));
}

/// Two programs quarrel about the cordon of a Node. Then a person drains it; we are restarted a minute later, and they delete the
/// Node in these seconds.
#[test]
fn machine_drained_amid_a_cordon_quarrel_is_left_alone() {
    let mut touched = Vec::new();
    for changes in [0, 30] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        for number in 0..changes {
            applies(&mut field, |node| node.cordoned = number % 2 == 0);
        }
        applies(&mut field, |node| node.cordoned = true);
        field.watch_for(Span::from_s(60));
        field.nodes.remove("i004");
        let mut field = field.restarted(roster());
        field.run(min(3 * 60));
        touched.push((changes, made(&field)));
    }
    assert!(touched.iter().all(|(_, made)| made.is_empty()), "{touched:#?}");
}

fn held(field: &Field, id: &str) -> String {
    let kinds = [FaultKind::NeverJoined, FaultKind::Vanished, FaultKind::NotReady, FaultKind::Errored];
    let open = kinds.into_iter().filter(|kind| field.case(id, *kind).is_some());
    open.map(|kind| format!("{kind:?}: {}", field.held(id, kind))).collect::<Vec<_>>().join("; ")
}

/// Bare metal and k3s: the Node names no instance, its UUID is the hardware's, and its address is of an interface that the cloud
/// does not know. Nova makes the host name of a server's name: lower case, with `-` for a blank or `_` (nova/utils.py,
/// `sanitize_hostname`), and a kubelet takes the host name in lower case. Such a machine joins and serves.
#[test]
fn ready_node_of_sanitized_host_name_protects_its_machine() {
    let mut touched = Vec::new();
    for name in ["node-new-1", "Node-New-1", "node_new_1"] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        field.add_machine("new", false);
        let instance = field.instances.get_mut("new").unwrap();
        // As the adapter for OpenStack tells it, where that is not the server's name.
        (instance.name, instance.hostname) = (name.into(), Some("node-new-1".into()));
        field.run(min(2));
        let mut joined = node("new", Ready::True);
        (joined.name, joined.provider) = ("node-new-1".into(), Provider::Unread("k3s://node-new-1".into()));
        joined.system_uuid = Some("4c4c4544-0042-3510-8052-b4c04f4e4a32".into());
        joined.addresses = Box::new(["172.16.0.9".parse().unwrap()]);
        field.nodes.insert("new".into(), joined);
        field.run(min(4 * 60));
        touched.push((name, made(&field)));
    }
    assert!(touched.iter().all(|(_, made)| made.is_empty()), "{touched:#?}");
}

/// As `machine_with_renewed_lease_is_kept_though_node_is_unlisted`, on a cloud whose servers have names in upper case.
#[test]
fn renewed_lease_of_sanitized_host_name_protects_its_machine() {
    let mut touched = Vec::new();
    for name in ["node-new-1", "Node-New-1", "node_new_1"] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        field.add_machine("new", false);
        let instance = field.instances.get_mut("new").unwrap();
        // As the adapter for OpenStack tells it, where that is not the server's name.
        (instance.name, instance.hostname) = (name.into(), Some("node-new-1".into()));
        field.unlisted_leases.push("node-new-1".into());
        field.run(min(4 * 60));
        touched.push((name, made(&field)));
    }
    assert!(touched.iter().all(|(_, made)| made.is_empty()), "{touched:#?}");
}

/// A spot instance that no Auto Scaling group keeps (Karpenter makes such ones). EC2's adapter reboots it in place, and refuses
/// to stop and start it: "it is a spot instance, which cannot be stopped and started by itself". The roster allows to replace it.
#[test]
fn dead_spot_instance_is_replaced_where_the_roster_says_so() {
    let mut replaced = Vec::new();
    for spot in [false, true] {
        let mut wanted = without_rejoin();
        wanted.settles.insert(CLOUD.into(), min(5));
        let mut field = Field::new(wanted).populate(10);
        for instance in field.instances.values_mut() {
            instance.hosting = Some(Arc::new(Hosting { spot, ..Hosting::default() }));
        }
        field.run(min(20));
        set(&mut field, "i004", Ready::Unknown);
        field.run_until(min(60), |field| !field.calls.is_empty());
        let end = field.now + min(48 * 60);
        while field.now < end && !made(&field).iter().any(|call| call.starts_with("delete")) {
            let refused = Outcome::Refused { text: "it is a spot instance".into() };
            // What is a reboot now is a stop and start.
            let case = field.case("i004", FaultKind::NotReady);
            let is_hard = case.is_some_and(|case| case.incident.tries > 0 && case.incident.repair_step == 1);
            let power_cycles = spot && is_hard;
            field.refuses = power_cycles.then_some(refused);
            field.run(Span::from_s(10));
        }
        let last = made(&field).last().cloned();
        replaced.push((spot, last, field.calls.len(), held(&field, "i004")));
    }
    assert!(
        replaced.iter().all(|(_, last, ..)| last.as_deref() == Some("delete instance i004")),
        "{replaced:#?}"
    );
}

/// An operator takes the marks off a machine that is being built, to have it for a test. It joins and serves without them, in our
/// sight; a day later they drain it, delete its Node and put the marks back, to look at it.
#[test]
fn machine_drained_without_its_marks_is_left_alone() {
    let mut touched = Vec::new();
    for (restarts, drained) in [(false, true), (true, true)] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        field.add_machine("new", false);
        field.instances.get_mut("new").unwrap().state = InstanceState::Building;
        field.run(min(1));
        let marks = std::mem::take(&mut field.instances.get_mut("new").unwrap().marks);
        field.instances.get_mut("new").unwrap().state = InstanceState::Active;
        field.run(min(1));
        field.nodes.insert("new".into(), node("new", Ready::True));
        field.run(min(60));
        field.nodes.get_mut("new").unwrap().cordoned = drained;
        field.run(min(1));
        field.nodes.remove("new");
        field.run(min(1));
        if restarts {
            field = field.restarted(roster());
            field.run(min(1));
        }
        field.instances.get_mut("new").unwrap().marks = marks;
        field.run(min(6 * 60));
        touched.push((restarts, drained, made(&field)));
    }
    assert!(touched.iter().all(|(.., made)| made.is_empty()), "restarts, drained: {touched:#?}");
}

/// The cloud takes no writes for a night: a database that is read only, a gateway in maintenance, which answers each write with
/// 503, and lists go on. In the morning it takes them again.
#[test]
fn repair_goes_on_after_a_night_without_writes() {
    let mut left = Vec::new();
    for (fault, hours) in [("group", 2), ("group", 14), ("silent", 2), ("silent", 14)] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        match fault {
            "group" => field.ports.get_mut("i004").unwrap().groups = Default::default(),
            _ => set(&mut field, "i004", Ready::Unknown),
        }
        field.refuses = Some(Outcome::Failed { text: "503 Service Unavailable".into(), retry_after: None });
        field.run(min(hours * 60));
        field.refuses = None;
        let (tried, before) = (field.made.len(), field.calls.len());
        field.run(min(24 * 60));
        left.push((fault, hours, before, field.made.len() - tried));
    }
    assert!(
        left.iter().all(|(.., made)| *made > 0),
        "fault, hours, calls in the night, made on the day after: {left:#?}"
    );
}

/// Which reading comes first after a restart: an API server answers in milliseconds, Nova in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
enum First {
    Nodes,
    Cloud,
}

fn first_lists(field: &mut Field, first: First) {
    match first {
        First::Nodes => {
            field.sync_nodes();
            field.list_cloud();
        }
        First::Cloud => {
            field.list_cloud();
            field.sync_nodes();
        }
    }
}

/// As `machine_made_and_joined_in_a_short_gap_is_not_replaced`, where no process ran for a night: after an hour no event tells of
/// the drain any more. Which list comes first makes no difference, nor does one more restart in the morning.
#[test]
fn machine_made_in_a_night_without_us_is_not_replaced() {
    let mut touched = Vec::new();
    for (first, restarts) in
        [(First::Cloud, false), (First::Nodes, false), (First::Cloud, true), (First::Nodes, true)]
    {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        let last = field.now;
        field.now = field.now + min(60);
        field.add_machine("new", false);
        field.now = field.now + min(7 * 60);
        let mut field = next(field, without_rejoin(), last);
        first_lists(&mut field, first);
        field.run(min(5));
        if restarts {
            field = field.restarted(without_rejoin());
            first_lists(&mut field, first);
        }
        field.run(min(6 * 60));
        touched.push((first, restarts, made(&field), held(&field, "new")));
    }
    let replaced = |made: &[String]| made.iter().any(|call| call.starts_with("delete instance new"));
    assert!(touched.iter().all(|(.., made, _)| !replaced(made)), "first list, restarts again: {touched:#?}");
}

/// We start, the API server answers at once and the cloud does not for a while. A machine that the ledger does not know is there;
/// a person drains it and deletes its Node, in our sight. The first listing of the cloud tells whose Node that was. We are
/// restarted later on, or not.
#[test]
fn machine_drained_before_first_listing_is_left_alone() {
    let mut touched = Vec::new();
    for (known, restarts) in [(true, false), (true, true), (false, false), (false, true)] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        if known {
            field.add_machine("new", true);
            field.run(min(20));
        }
        let mut field = field.restarted(roster());
        // What the ledger lacks is what this is about: the fixture would say so before any machine is touched.
        field.ledger = Ledger::unknown();
        if !known {
            field.add_machine("new", true);
        }
        cloud_away(&mut field, min(5));
        field.nodes.get_mut("new").unwrap().cordoned = true;
        cloud_away(&mut field, min(1));
        field.nodes.remove("new");
        cloud_away(&mut field, min(1));
        field.run(min(5));
        if restarts {
            field = field.restarted(roster());
        }
        field.run(min(6 * 60));
        touched.push((known, restarts, made(&field)));
    }
    assert!(touched.iter().all(|(.., made)| made.is_empty()), "known to the ledger, restarts: {touched:#?}");
}

/// An admission policy answers the deletion of a left-over Node with 422 for half an hour, until its owner has mended it.
#[test]
fn left_over_node_is_cleaned_up_once_its_deletion_is_allowed() {
    let mut left = Vec::new();
    for outcome in [
        Outcome::Denied { text: "403".into() },
        Outcome::Refused { text: "422: ValidatingAdmissionPolicy 'x' denied request".into() },
    ] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        set(&mut field, "i004", Ready::Unknown);
        field.delete_machine("i004");
        field.refuses = Some(outcome.clone());
        field.run_until(min(120), |field| !field.calls.is_empty());
        field.run(min(30));
        field.refuses = None;
        let (tried, before) = (field.made.len(), field.calls.len());
        field.run(min(24 * 60));
        left.push((outcome, before, field.made.len() - tried));
    }
    assert!(left.iter().all(|(.., made)| *made > 0), "calls before, made since: {left:#?}");
}

/// As `machine_drained_before_first_listing_is_left_alone`: at the first start of all, within the seconds that
/// the first listing of the cloud takes.
#[test]
fn machine_drained_during_first_listing_is_left_alone() {
    let mut touched = Vec::new();
    for restarts in [false, true] {
        let mut field = Field::new(roster()).populate(10);
        field.ledger = Ledger::unknown();
        field.nodes.get_mut("i004").unwrap().cordoned = true;
        field.sync_nodes();
        field.now = field.now + Span::from_s(3);
        let gone = field.nodes.remove("i004").unwrap();
        field.feed(Event::Cluster(ClusterFact::Deleted { name: gone.name, uid: gone.uid }));
        field.now = field.now + Span::from_s(3);
        field.list_cloud();
        field.run(min(5));
        if restarts {
            field = field.restarted(roster());
        }
        field.run(min(6 * 60));
        touched.push((restarts, made(&field)));
    }
    assert!(touched.iter().all(|(_, made)| made.is_empty()), "restarts: {touched:#?}");
}

/// Nova tells of tags in full listings alone, one an hour. A person makes a server, lets it join without the tags, tries it,
/// drains it and deletes its Node, and then puts the tags on: all of that between two full listings, and in our sight.
#[test]
fn machine_drained_before_its_tags_were_put_on_is_left_alone() {
    let mut touched = Vec::new();
    for restarts in [false, true] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        field.unnamed = vec!["none".into()];
        field.run(min(1));
        field.add_machine("new", false);
        let marks = std::mem::take(&mut field.instances.get_mut("new").unwrap().marks);
        field.run(min(3));
        field.nodes.insert("new".into(), node("new", Ready::True));
        field.run(min(30));
        field.nodes.get_mut("new").unwrap().cordoned = true;
        field.run(min(1));
        field.nodes.remove("new");
        field.run(min(5));
        field.instances.get_mut("new").unwrap().marks = marks;
        field.unnamed.clear();
        field.run(min(1));
        if restarts {
            field = field.restarted(roster());
        }
        field.run(min(6 * 60));
        touched.push((restarts, made(&field)));
    }
    assert!(touched.iter().all(|(_, made)| made.is_empty()), "restarts: {touched:#?}");
}

/// The same, with an agent on it that is heard: it is asked to undo what the person did.
#[test]
fn agent_of_machine_drained_before_its_tags_is_not_asked() {
    let mut field = Field::new(roster()).populate(10);
    field.run(min(20));
    field.unnamed = vec!["none".into()];
    field.run(min(1));
    field.add_machine("new", true);
    let marks = std::mem::take(&mut field.instances.get_mut("new").unwrap().marks);
    field = field.with_agents(&["new"]);
    field.run(min(30));
    field.nodes.get_mut("new").unwrap().cordoned = true;
    field.run(min(1));
    field.nodes.remove("new");
    field.run(min(5));
    field.instances.get_mut("new").unwrap().marks = marks;
    field.unnamed.clear();
    field.run(min(2 * 60));
    assert!(field.calls.is_empty(), "{:?}", made(&field));
}

/// While no process runs, a machine is made, joins, and a person drains it. Its kubelet has said so, of a Node that is called as
/// the machine or by a qualified name (7000148). The next process lists the machine at its start, or it gets its tags an hour and
/// a half later (7000072).
#[test]
fn machine_made_and_drained_in_a_gap_is_left_alone() {
    let mut touched = Vec::new();
    for (domain, tagged_late) in [("", false), (".example.com", false), ("", true), (".example.com", true)] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        let last = field.now;
        field.now = field.now + min(5);
        field.add_machine("new", false);
        let marks = field.instances["new"].marks.clone();
        if tagged_late {
            field.instances.get_mut("new").unwrap().marks = Arc::default();
        }
        field.now = field.now + min(40);
        let mut field = next(field, roster(), last);
        field.sync_nodes();
        drain_is_told(&mut field, &format!("node-new{domain}"));
        field.run(min(if tagged_late { 90 } else { 1 }));
        field.instances.get_mut("new").unwrap().marks = marks;
        field.run(min(6 * 60));
        touched.push((domain, tagged_late, made(&field)));
    }
    assert!(touched.iter().all(|(.., made)| made.is_empty()), "domain, tagged late: {touched:#?}");
}

/// Bare metal and k3s: neither the provider ID nor the UUID of the Node of `new` is an instance's.
fn names_no_instance(field: &mut Field) {
    let node = field.nodes.get_mut("new").unwrap();
    node.provider = Provider::Unread("k3s://node-new".into());
    node.system_uuid = Some("4c4c4544-0000".into());
}

/// Bare metal and k3s: the Node names no instance. A machine without its tags is tried and drained in our sight, and tagged a
/// quarter of an hour later (7000084).
#[test]
fn untagged_machine_whose_node_names_no_instance_is_left_alone() {
    let mut field = Field::new(roster()).populate(10);
    field.run(min(20));
    field.add_machine("new", true);
    let marks = std::mem::take(&mut field.instances.get_mut("new").unwrap().marks);
    names_no_instance(&mut field);
    field.run(min(60));
    drain_is_told(&mut field, "node-new");
    field.nodes.get_mut("new").unwrap().cordoned = true;
    field.run(min(2));
    field.nodes.remove("new");
    field.run(min(15));
    field.instances.get_mut("new").unwrap().marks = marks;
    field.run(min(6 * 60));
    assert!(made(&field).is_empty(), "{:?}", made(&field));
}

/// The same with its tags, while its cloud does not answer us for half an hour (7001094).
#[test]
fn bare_metal_drained_while_its_cloud_fails_is_left_alone() {
    let mut field = Field::new(roster()).populate(10);
    field.run(min(20));
    cloud_away(&mut field, min(5));
    let of_now = field.now;
    field.add_machine("new", true);
    field.instances.get_mut("new").unwrap().created = Some(stamp(of_now));
    names_no_instance(&mut field);
    cloud_away(&mut field, min(20));
    drain_is_told(&mut field, "node-new");
    field.nodes.get_mut("new").unwrap().cordoned = true;
    cloud_away(&mut field, min(2));
    field.nodes.remove("new");
    cloud_away(&mut field, min(10));
    field.run(min(6 * 60));
    assert!(made(&field).is_empty(), "{:?}", made(&field));
}
