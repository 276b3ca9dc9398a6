//! Words that many of these tests say: how long, which roster, which Node, what was called.

use reveille_core::effect::Call;
use reveille_core::model::node::Ready;
use reveille_core::model::roster::{Mode, Pool, Roster};
use reveille_core::model::time::Span;

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
