//! Acts that never happened, and machines that somebody else has in hand: neither is a reason for a harsher act.

use reveille_core::model::instance::InstanceState;
use reveille_core::model::node::Ready;
use reveille_core::model::time::Span;

use super::fixture::{Field, roster};

const fn s(seconds: i64) -> Span {
    Span::from_s(seconds)
}

/// A person puts a server into rescue mode (Nova: RESCUE, no task), to look at its disk.
#[test]
fn rescued_machine_is_not_deleted() {
    not_deleted_in(InstanceState::Other);
}

/// A person starts a stopped EC2 instance of bare metal: `pending` for a quarter of an hour, with no task.
#[test]
fn machine_that_is_started_by_somebody_is_not_deleted() {
    not_deleted_in(InstanceState::Rebooting);
}

fn not_deleted_in(state: InstanceState) {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    field.instances.get_mut("i004").unwrap().state = state;
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    let begun = field.now;
    while field.calls.is_empty() && field.now.since(begun) < Span::from_min(60) {
        field.run(s(10));
    }
    assert!(field.calls.is_empty(), "after {}: {:?}", field.now.since(begun), field.calls);
    // Once nobody has it in hand any more, it is repaired as any other, gently first.
    field.instances.get_mut("i004").unwrap().state = InstanceState::Active;
    field.run(Span::from_min(10));
    assert!(
        matches!(field.calls.first(), Some(reveille_core::effect::Call::Reboot { .. })),
        "{:?}",
        field.calls
    );
}
