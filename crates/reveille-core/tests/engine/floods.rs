//! A Node whose signs and requests change many times a second: the ledger is told of some, and of the last.

use std::sync::Arc;

use reveille_core::event::{ClusterFact, Event};
use reveille_core::model::node::{Asks, Node};
use reveille_core::model::signs;
use reveille_core::model::time::Span;
use reveille_core::record::Record;

use super::fixture::{Field, roster};

/// The watch tells of this Node as it is now, with no time between.
fn writes(field: &mut Field, change: impl FnOnce(&mut Node)) {
    let node = field.nodes.get_mut("i004").unwrap();
    change(node);
    let node = Arc::new(node.clone());
    field.now = field.now + Span::from_ms(20);
    field.feed(Event::Cluster(ClusterFact::Applied(node)));
}

/// A kubelet may annotate its own Node, fifty times a second. Each line is an fsync, and nine segments are all that the ledger
/// keeps: what it knew of others was pushed out of its history within a night. The last value is heard in the end.
#[test]
fn requests_of_one_node_fill_no_ledger() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    let before = field.records.len();
    for number in 0..1000 {
        writes(&mut field, |node| {
            let asks = Asks { repair: Some(format!("OPS-{number}").into()), ..Asks::default() };
            node.intent.asks = Some(Box::new(asks));
        });
    }
    let asked = |record: &&Record| matches!(record, Record::Asked { .. });
    let count = field.records[before..].iter().filter(asked).count();
    assert!(count <= 100, "{count} records of requests in twenty seconds");
    field.run(Span::from_min(3));
    let last = field.records.iter().rev().find_map(|record| match record {
        Record::Asked { value, .. } => Some(&**value),
        _ => None,
    });
    assert_eq!(last, Some("OPS-999"));
}

/// Three minutes in which the Node stays as it is. A process that began in the first two of them would read its last sign from
/// the Node alone, so that this does without the check that the ledger has all.
fn pass_minutes(field: &mut Field) {
    for _ in 0..18 {
        field.now = field.now + Span::from_s(10);
        writes(field, |_| ());
    }
}

/// The last sign that the ledger knows of a machine's Node, and whether it is a cordon.
fn last_sign(field: &Field) -> Option<(String, bool)> {
    field.records.iter().rev().find_map(|record| match record {
        Record::Cordoned { sign, cordoned, .. } => {
            Some((sign.as_deref().unwrap_or_default().to_owned(), *cordoned))
        }
        _ => None,
    })
}

/// The same with a pause that comes and goes.
#[test]
fn pauses_of_one_node_fill_no_ledger() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    let before = field.records.len();
    for number in 0..1000 {
        writes(&mut field, |node| node.intent.paused = number % 2 == 0);
    }
    let count = field.records.len() - before;
    assert!(count <= 200, "{count} records in twenty seconds");
    writes(&mut field, |node| node.intent.paused = true);
    pass_minutes(&mut field);
    assert_eq!(last_sign(&field), Some((signs::PAUSE.to_owned(), false)));
}

/// And with a cordon.
#[test]
fn cordons_of_one_node_fill_no_ledger() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    let before = field.records.len();
    for number in 0..1000 {
        writes(&mut field, |node| node.cordoned = number % 2 == 0);
    }
    let count = field.records.len() - before;
    assert!(count <= 200, "{count} records in twenty seconds");
    writes(&mut field, |node| node.cordoned = true);
    pass_minutes(&mut field);
    assert_eq!(last_sign(&field), Some((String::new(), true)));
}

/// After a quiet time a person's request counts at once, however often the kubelet asked before.
#[test]
fn request_after_a_quiet_time_is_heard_at_once() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    let ask = |field: &mut Field, value: &str| {
        writes(field, |node| {
            node.intent.asks = Some(Box::new(Asks { repair: Some(value.into()), ..Asks::default() }));
        });
    };
    (0..1000).for_each(|number| ask(&mut field, &format!("OPS-{number}")));
    field.run(Span::from_min(5));
    ask(&mut field, "of-a-person");
    let heard = |record: &Record| matches!(record, Record::Asked { value, .. } if **value == *"of-a-person");
    assert!(field.records.iter().any(heard));
}
