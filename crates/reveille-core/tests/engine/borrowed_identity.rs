//! What one kubelet, or any client that may write events, can say of the machine of another: it ends no hold, and unsays no
//! drain.

use reveille_core::event::{ClusterFact, Event};
use reveille_core::model::node::{NodeEvent, Provider};
use reveille_core::model::time::Span;

use super::fixture::{Field, roster, stamp};
use super::steps::{made, min, next};

/// How Nodes are linked to their machines.
const FLEETS: [&str; 3] = ["uuid", "address", "provider"];

fn fleet(how: &str) -> Field {
    let mut field = Field::new(roster()).populate(10);
    for (id, node) in field.nodes.iter_mut().filter(|_| how != "provider") {
        node.provider = Provider::Unread(format!("k3s://node-{id}").as_str().into());
        let uuid = if how == "uuid" { id.clone() } else { format!("hardware-{id}") };
        node.system_uuid = Some(uuid.as_str().into());
        node.addresses = field.ports[id].addresses.clone();
    }
    field.run(min(20));
    field
}

/// The kubelet of i007 shows the identity of i003 for a minute, renews its own lease, and takes it back. Later its machine goes.
fn borrow_identity(field: &mut Field, how: &str) {
    let before = field.nodes["i007"].clone();
    let addresses = field.ports["i003"].addresses.clone();
    let its = field.nodes.get_mut("i007").unwrap();
    match how {
        "uuid" => its.system_uuid = Some("i003".into()),
        "address" => its.addresses = addresses,
        _ => (its.uid, its.provider) = ("another".into(), Provider::Instance("i003".into())),
    }
    field.run(min(1));
    field.nodes.insert("i007".into(), before);
    field.run(min(6 * 60));
    field.delete_machine("i007");
    field.nodes.remove("i007");
    field.run(min(12 * 60));
}

fn say(field: &mut Field, reason: &str) {
    field.feed(Event::Cluster(ClusterFact::NodeEvent(NodeEvent {
        node: "node-i003".into(),
        uid: None,
        reason: reason.into(),
        message: "".into(),
        reporter: "kubelet".into(),
        stamped: Some(stamp(field.now)),
    })));
    field.now = field.now + Span::from_ms(1);
}

/// A person drained i003 and keeps it. By the lease of another Node, which stood for it for a minute, it had come back: it was
/// rebooted, power-cycled and deleted.
#[test]
fn kubelet_of_another_machine_ends_no_removal() {
    for how in FLEETS {
        let mut field = fleet(how);
        field.nodes.get_mut("i003").unwrap().cordoned = true;
        field.run(min(2));
        field.nodes.remove("i003");
        field.run(min(60));
        borrow_identity(&mut field, how);
        assert!(made(&field).is_empty(), "{how}: {:?}", made(&field));
    }
}

/// The same of one whose Node went in a night without us.
#[test]
fn kubelet_of_another_machine_ends_no_hold() {
    for how in FLEETS {
        let mut field = fleet(how);
        let last = field.now;
        field.now = field.now + min(5 * 60);
        field.nodes.remove("i003");
        let mut field = next(field, roster(), last);
        field.run(min(60));
        borrow_identity(&mut field, how);
        assert!(made(&field).is_empty(), "{how}: {:?}", made(&field));
    }
}

/// A machine is drained while no process runs, or while the watch is away, and only its kubelet tells of it. A client writes that
/// it was uncordoned, or so many events that the cordon has no room.
#[test]
fn written_uncordon_takes_no_cordon_back() {
    let mut touched = Vec::new();
    for restarts in [false, true] {
        for (written, times) in [("", 0), ("NodeSchedulable", 1), ("NodeReady", 64)] {
            let mut field = fleet("provider");
            if restarts {
                let last = field.now;
                field.now = field.now + min(10);
                field.nodes.remove("i003");
                field = next(field, roster(), last);
            }
            say(&mut field, "NodeNotSchedulable");
            (0..times).for_each(|_| say(&mut field, written));
            field.nodes.remove("i003");
            field.sync_nodes();
            field.run(min(6 * 60));
            touched.push((restarts, written, made(&field)));
        }
    }
    assert!(touched.iter().all(|(.., made)| made.is_empty()), "{touched:#?}");
}
