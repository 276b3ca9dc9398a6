//! What comes and goes without an end: servers of another image, Nodes that name machines which no cloud has.

use std::sync::Arc;

use reveille_core::event::{ClusterFact, Event};
use reveille_core::model::node::{Node, Ready};
use reveille_core::model::time::Span;

use super::fixture::{Field, node, roster};
use super::steps::{made, min, set};

/// A client with a pool's marks makes a server of another image, deletes it after 25 minutes and makes the next one. Each was a
/// rollout that had just begun, and nothing of the pool was repaired any more.
#[test]
fn server_that_comes_and_goes_is_no_endless_rollout() {
    let mut field = Field::new(roster()).populate(10);
    field.run(min(20));
    for number in 0..8 {
        let (before, id) = (format!("x{number}"), format!("x{}", number + 1));
        field.delete_machine(&before);
        field.nodes.remove(&before);
        field.run(min(1));
        field.add_machine(&id, true);
        field.instances.get_mut(&id).unwrap().image = Some("other-image".into());
        if number == 2 {
            set(&mut field, "i004", Ready::Unknown);
        }
        field.run(min(24));
    }
    assert!(made(&field).iter().any(|call| call.contains("i004")), "{:?}", made(&field));
}

/// A client may make Nodes that name instances which no cloud has, and delete them: with a cordon, each is remembered as a
/// machine that was drained. 300 of them pushed a drained machine out of memory whose cell was down, and it was rebooted and
/// deleted.
#[test]
fn drained_machine_is_remembered_beside_made_up_ids() {
    let mut field = Field::new(roster()).populate(10);
    field.run(min(20));
    field.nodes.get_mut("i003").unwrap().cordoned = true;
    field.run(min(2));
    field.nodes.remove("i003");
    field.run(min(2));
    let instance = field.instances.remove("i003").unwrap();
    let port = field.ports.remove("i003").unwrap();
    field.run(min(60));
    for number in 0..300 {
        let drained = node(&format!("made-up-{number}"), Ready::False);
        let drained = Node { cordoned: true, ..drained };
        let deleted = ClusterFact::Deleted { name: drained.name.clone(), uid: drained.uid.clone() };
        for fact in [ClusterFact::Applied(Arc::new(drained)), deleted] {
            field.now = field.now + Span::from_ms(10);
            field.feed(Event::Cluster(fact));
        }
    }
    field.instances.insert("i003".into(), instance);
    field.ports.insert("i003".into(), port);
    field.run(min(6 * 60));
    assert!(made(&field).is_empty(), "{:?}", made(&field));
}
