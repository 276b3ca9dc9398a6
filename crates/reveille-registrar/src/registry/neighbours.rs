//! The registry tells each machine about its neighbours: when the machine begins a session, and whenever the neighbours
//! change.
//!
//! ```text
//!  a machine came, went or moved ─▶ due in 10 s, however many do ─▶ a round: 256 sessions a second ─▶ Peers, where they differ
//! ```
//!
//! The neighbours of a machine are the machines that follow it in a circle over its roster. So each machine is asked by
//! as many machines as it asks, and only a few miss a machine that leaves. A whole rack that comes at once causes one
//! round. Changes during a round are for the next round.

use std::ops::Bound;

use reveille_core::model::time::{Span, Time};
use reveille_wire::agent::ServerFrame;
use reveille_wire::agent::frame::Peer as Neighbour;
use reveille_wire::agent::text::{List, Word};

use super::ids::{Conn, MachineId};
use super::machine::Machine;
use super::whereabouts::is_of_a_peer;
use super::{Effect, Registry, Turn};

/// The delay from a change to its round.
const SETTLES: Span = Span::from_s(10);
/// The number of sessions that one tick handles.
const EACH_TICK: usize = 256;

/// The state of the rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct Round {
    /// The time of the next round.
    due: Option<Time>,
    /// A round is under way, and continues after this machine.
    after: Option<Option<MachineId>>,
}

impl Round {
    pub(super) fn clock_set(&mut self, by: Span) {
        self.due = self.due.map(|due| due + by);
    }
}

impl Registry {
    /// A machine began or ended a session, or changed what it says about itself.
    pub(super) fn neighbours_changed(&mut self, turn: &Turn) {
        self.round.due.get_or_insert(turn.now + SETTLES);
    }

    /// Continues the round that is under way, or begins the one that is due.
    pub(super) fn tell_neighbours(&mut self, turn: &mut Turn) {
        if self.round.after.is_none() && self.round.due.is_some_and(|due| due <= turn.now) {
            self.round = Round { due: None, after: Some(None) };
        }
        let Some(after) = self.round.after.clone() else { return };
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let some: Vec<(MachineId, Conn)> = self
            .conn_of
            .range::<MachineId, _>((from.as_ref(), Bound::Unbounded))
            .take(EACH_TICK)
            .map(|(machine, conn)| (machine.clone(), *conn))
            .collect();
        for (_, conn) in &some {
            self.tell_peers(turn, *conn);
        }
        let last = some.last().filter(|_| some.len() == EACH_TICK);
        self.round.after = last.map(|(machine, _)| Some(machine.clone()));
    }

    /// Tells a machine about its neighbours, unless it knows them.
    pub(super) fn tell_peers(&mut self, turn: &mut Turn, conn: Conn) {
        let Some(machine) = self.sessions.get(&conn).map(|session| session.machine.clone()) else { return };
        let peers = self.neighbours(&machine);
        let Some(session) = self.sessions.get_mut(&conn) else { return };
        if session.told_peers != peers {
            session.told_peers = peers.clone();
            turn.out.push(Effect::Send(conn, ServerFrame::Peers { peers }));
        }
    }

    fn neighbours(&self, machine: &MachineId) -> List<Neighbour, 256> {
        let Some(known) = self.index.machine(machine) else { return List::default() };
        let after = self.conn_of.range::<MachineId, _>((Bound::Excluded(machine), Bound::Unbounded));
        let before = self.conn_of.range::<MachineId, _>(..machine);
        let others = after.chain(before).filter_map(|(id, _)| self.index.machine(id));
        let of_roster = others.filter(|other| other.roster == known.roster);
        let also_loopback = self.settings.peers_on_loopback;
        List::first(of_roster.take(self.settings.peers_told).map(|other| neighbour(other, also_loopback)))
    }
}

fn neighbour(of: &Machine, also_loopback: bool) -> Neighbour {
    Neighbour {
        machine: Word::cut(of.id.as_str()),
        node_name: of.node_name.clone(),
        zone: of.facts.zone.clone(),
        addresses: List::first(of.facts.addresses.iter().cloned()),
        // The address is checked again here: a ledger of an earlier version may hold any word.
        answers_at: of.facts.answers_at.clone().filter(|at| is_of_a_peer(at, also_loopback)),
    }
}
