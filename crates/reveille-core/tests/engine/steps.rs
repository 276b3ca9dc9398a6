//! Words that many of these tests say: how long, which roster, which Node, what was called.

use reveille_core::effect::Call;
use reveille_core::engine::{Restored, State};
use reveille_core::model::node::Ready;
use reveille_core::model::roster::{Mode, Pool, Roster};
use reveille_core::model::time::{Span, Time};

use super::fixture::{Field, roster};

pub const fn min(minutes: i64) -> Span {
    Span::from_min(minutes)
}

/// The roster, with its pool changed so.
pub fn roster_with(change: impl FnOnce(&mut Pool)) -> Roster {
    let mut roster = roster();
    change(roster.pools.values_mut().next().unwrap());
    roster
}

/// No kubelet is restarted before the reboot.
pub fn without_rejoin() -> Roster {
    roster_with(|pool| pool.repair.rejoin = Mode::Off)
}

pub fn set(field: &mut Field, id: &str, ready: Ready) {
    field.nodes.get_mut(id).unwrap().ready = ready;
}

/// What was called, for people.
pub fn made(field: &Field) -> Vec<String> {
    field.calls.iter().map(Call::to_string).collect()
}

/// The next process, which begins now; the one before was alive until then.
pub fn next(field: Field, roster: Roster, last_alive: Time) -> Field {
    let how = Restored { last_alive: Some(last_alive), ..field.next_begins() };
    let mut next = Field::with(State::restore(roster, how, field.records.clone()));
    (next.now, next.records, next.made) = (field.now, field.records, field.made);
    (next.instances, next.ports, next.nodes) = (field.instances, field.ports, field.nodes);
    (next.by_others, next.cloud_behind) = (field.by_others, field.cloud_behind);
    next
}

/// Our clock is set ahead by so much, and no other.
pub fn set_ahead(field: &mut Field, by: Span) {
    field.now = field.now + by;
    field.cloud_behind = Span::from_ms(field.cloud_behind.ms + by.ms);
}

/// A process that lived until a moment ago is followed by another, as at an upgrade. Its ledger was rotated before, or not.
pub fn upgraded(mut field: Field, roster: Roster, rotated: bool) -> Field {
    let last = field.now;
    if rotated {
        field.records = field.state.checkpoint();
    }
    field.now = last + Span::from_s(5);
    next(field, roster, last)
}
