//! The registry: which machines may join, which are known, and what each is told. One function: an event comes in,
//! effects go out.
//!
//! ```text
//!  Invite, Remove ─▶ invite ────┐
//!  Enrol, Renew ───▶ enrol ─────┼─▶ Record ─▶ Index::apply       durable: invitations, machines, ways, clusters
//!  Arrived, Said ──▶ session ───┤
//!  PlansRead, ClusterSaid, TokenMade ─▶ provide ─▶ Plan, Token, Wait      what a machine lacks, to each machine with a session
//!  Order ──────────▶ orders ────┤
//!  Tick ───────────▶ what has ended: invitations, tokens, orders, silence
//!                   Registry::step(now, event) -> Vec<Effect>
//! ```
//!
//! The index is what the registry remembers; only records change it. The registry does not remember connections, tokens
//! and orders: a start forgets them, and agents come again and say what they hold. Time, random bytes and what the
//! cluster says are arguments. Everything that can grow has a bound ([`Settings`]). The registry never sees a token: of
//! an invitation's token it knows the hash, of a join's token that there is one.

mod away;
mod claims;
mod denied;
mod departed;
mod enrol;
pub mod event;
pub mod flow;
pub mod ids;
pub mod index;
pub mod invariants;
pub mod invitation;
mod invite;
mod joins;
pub mod machine;
mod masked;
mod neighbours;
mod orders;
pub mod plans;
mod provide;
mod rates;
mod rebuilt;
pub mod record;
mod rivals;
mod session;
pub mod settings;
pub mod trace;
mod whereabouts;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reveille_core::model::id::RosterName;
use reveille_core::model::time::{Span, Time};
use reveille_wire::agent::{Reason, Role};

pub use claims::{is_one_name, node_name};
pub use denied::{Denied, Named};
pub use event::{Effect, Event, Heard, NoAnswer, NodeIds, NodeSaid, Peer, Reply, What, Who};
pub use flow::{JoinEnd, JoinFlow, JoinOver};
pub use ids::{Ask, AuthorityHash, Conn, InvitationId, KeyHash, MachineId, OrderId, TokenHash};
pub use index::Index;
pub use invitation::{Invitation, InvitationOver, Reimage, Wish};
pub use machine::{Machine, Removal};
pub use plans::{Plans, Template};
pub use record::Record;
pub use settings::Settings;

use orders::Given;
use provide::Token;
use session::Session;

/// The whole registry.
#[derive(Clone, Debug)]
pub struct Registry {
    settings: Settings,
    index: Index,
    started_at: Time,
    plans: Plans,
    /// The roles that exist now. That a cluster was there before is in the index: it does not end with its API server.
    cluster: BTreeMap<RosterName, Option<BTreeSet<Role>>>,
    sessions: BTreeMap<Conn, Session>,
    conn_of: BTreeMap<MachineId, Conn>,
    heard_at: BTreeMap<MachineId, Time>,
    told_silent: BTreeSet<MachineId>,
    invitation_ends: BTreeMap<InvitationId, Time>,
    tokens: BTreeMap<MachineId, Token>,
    orders: BTreeMap<OrderId, Given>,
    rivals: rivals::Notices,
    rates: rates::Rates,
    last_session: u64,
    round: neighbours::Round,
    /// Authorities that were retired since this process started. The process never loads authorities that were retired
    /// before.
    retired: BTreeSet<AuthorityHash>,
}

/// One step: its time, and its effects.
struct Turn {
    now: Time,
    out: Vec<Effect>,
}

impl Turn {
    fn reply(&mut self, ask: Ask, reply: impl Into<Reply>) {
        self.out.push(Effect::Reply(ask, reply.into()));
    }

    fn close(&mut self, conn: Conn, reason: Reason) {
        self.out.push(Effect::Close(conn, reason.into()));
    }

    fn tell(&mut self, machine: &Machine, what: What) {
        let who = Who {
            machine: machine.id.clone(),
            roster: machine.roster.clone(),
            node_name: machine.node_name.clone(),
            identity: machine.identity.clone(),
        };
        self.out.push(Effect::Tell(Heard { who: Arc::new(who), what }));
    }
}

impl Registry {
    /// A registry that starts with the given records.
    pub fn restore(settings: Settings, now: Time, records: &[Record]) -> Self {
        let mut index = Index::default();
        records.iter().for_each(|record| index.apply(record));
        Self {
            invitation_ends: Self::ends_of(&index, now),
            settings,
            index,
            started_at: now,
            plans: Plans::default(),
            cluster: BTreeMap::new(),
            sessions: BTreeMap::new(),
            conn_of: BTreeMap::new(),
            heard_at: BTreeMap::new(),
            told_silent: BTreeSet::new(),
            tokens: BTreeMap::new(),
            orders: BTreeMap::new(),
            rivals: rivals::Notices::default(),
            rates: rates::Rates::default(),
            last_session: 0,
            round: neighbours::Round::default(),
            retired: BTreeSet::new(),
        }
    }

    /// Takes an event in and returns the effects.
    pub fn step(&mut self, now: Time, event: Event) -> Vec<Effect> {
        let mut turn = Turn { now, out: Vec::new() };
        match event {
            Event::Tick => self.tick(&mut turn),
            Event::PlansRead(plans) => {
                self.plans = plans;
                self.provide_all(&mut turn, |_| true);
            }
            Event::Invite { ask, wish, id, hash } => self.invite(&mut turn, ask, &wish, id, hash),
            Event::Enrol { .. } => self.enrol(&mut turn, event),
            Event::Renew { ask, peer, key } => self.renew(&mut turn, ask, &peer, key),
            Event::Retired(authorities) => self.retired.extend(authorities),
            Event::Arrived { conn, peer, hello } => self.arrived(&mut turn, conn, &peer, hello),
            Event::Said { conn, n, frame } => self.said(&mut turn, conn, n, frame),
            Event::Gone(conn) => self.gone(&mut turn, conn),
            Event::ClusterSaid { roster, present } => {
                if present.is_some() && !self.index.has_answered(&roster) {
                    self.record(&mut turn, Record::ClusterAnswered { roster: roster.clone() });
                }
                self.cluster.insert(roster.clone(), present);
                self.provide_all(&mut turn, |machine| machine.roster == roster);
            }
            Event::TokenMade { machine, outcome } => self.token_made(&mut turn, &machine, outcome),
            Event::Order { id, machine, verb, within } => self.order(&mut turn, id, &machine, verb, within),
            Event::Revoke { ask, id } => self.revoke(&mut turn, ask, &id),
            Event::Remove { ask, machine, what } => self.remove(&mut turn, ask, &machine, what),
            Event::InstancesSeen { roster, instances, gone } => {
                self.instances_seen(&mut turn, &roster, &instances, gone);
            }
            Event::ClockSet { by } => self.clock_set(&mut turn, by),
        }
        turn.out
    }

    /// What the registry remembers.
    pub const fn index(&self) -> &Index {
        &self.index
    }

    /// The settings in force.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The number of the machine's session, where it has one.
    pub fn session_of(&self, machine: &MachineId) -> Option<u64> {
        let conn = self.conn_of.get(machine)?;
        self.sessions.get(conn).map(|session| session.number)
    }

    /// The last message of a machine since this server's start.
    pub fn heard_at(&self, machine: &MachineId) -> Option<Time> {
        self.heard_at.get(machine).copied()
    }

    /// Checks whether a session of this machine would be admitted, without admitting it.
    ///
    /// # Errors
    ///
    /// The reason why not.
    pub fn stands(&self, peer: &Peer) -> Result<(), Reason> {
        if self.retired.contains(&peer.authority) {
            return Err(Reason::CertificateUnknown);
        }
        let known = self.index.machine(&peer.machine).ok_or_else(|| self.unknown(&peer.machine))?;
        if !known.has_key(&peer.key) {
            return Err(Reason::CertificateRevoked);
        }
        known.removed.map_or(Ok(()), |what| Err(what.reason()))
    }

    /// The key is one of its machine's, which may be removed.
    pub fn counts(&self, peer: &Peer) -> bool {
        let known = self.index.machine(&peer.machine);
        !self.retired.contains(&peer.authority) && known.is_some_and(|known| known.has_key(&peer.key))
    }

    /// The token is of an invitation that the index holds, open or not.
    pub fn knows(&self, id: &InvitationId, hash: &TokenHash) -> bool {
        self.index.invitation(id).is_some_and(|invitation| invitation.opens(hash))
    }

    /// This token would admit a machine now.
    pub fn opens(&self, now: Time, id: &InvitationId, hash: &TokenHash) -> bool {
        let invitation = self.index.invitation(id).filter(|invitation| invitation.opens(hash));
        invitation.is_some_and(|invitation| invitation.trouble(now).is_none())
    }

    /// The number of sessions.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Since when the machine is silent, if it has been silent for too long; counted from this server's start at the
    /// earliest.
    pub fn silent_since(&self, now: Time, machine: &MachineId) -> Option<Time> {
        let since = self.heard_at(machine).unwrap_or(self.started_at);
        (now.since(since) >= self.settings.silent_after).then_some(since)
    }

    /// Applies a change to the index, and asks the server to make it durable.
    fn record(&mut self, turn: &mut Turn, record: Record) {
        self.index.apply(&record);
        turn.out.push(Effect::Record(record));
    }

    fn tick(&mut self, turn: &mut Turn) {
        self.mark_invitations(turn);
        self.forget_invitations(turn);
        self.end_orders(turn);
        self.tend_tokens(turn);
        self.notice_silence(turn);
        self.end_with_certificates(turn);
        self.end_late_joins(turn);
        self.forget_departed(turn);
        self.tell_neighbours(turn);
        self.rivals.forget(turn.now);
        self.rates.forget(turn.now);
    }

    fn notice_silence(&mut self, turn: &mut Turn) {
        // This includes machines that were silent since this server's start: they may have left while no server ran.
        let fresh: Vec<(MachineId, Time)> = self
            .index
            .machines()
            .filter(|machine| machine.removed.is_none() && !self.told_silent.contains(&machine.id))
            .filter_map(|machine| Some((machine.id.clone(), self.silent_since(turn.now, &machine.id)?)))
            .collect();
        for (id, since) in fresh {
            if let Some(conn) = self.conn_of.get(&id).copied() {
                // The server closes a connection without messages, whatever the state of its socket.
                turn.close(conn, Reason::Unavailable);
                self.gone(turn, conn);
            }
            if let Some(machine) = self.index.machine(&id) {
                turn.tell(machine, What::Silent);
            }
            self.note_silence(turn, &id, since);
            self.told_silent.insert(id);
        }
    }

    /// The clock was set. The registry shifts its times, so that no machine becomes silent, or was heard in the future,
    /// because an operator or NTP set the clock. Ends that other parties count as well (of tokens, invitations,
    /// certificates) stay as they are. But no invitation ends for good, and no join is late, before it had its whole
    /// time.
    fn clock_set(&mut self, turn: &mut Turn, by: Span) {
        let orders = self.orders.values_mut().map(|order| &mut order.until);
        let times = self.heard_at.values_mut().chain(orders).chain([&mut self.started_at]);
        let times = times.chain(self.invitation_ends.values_mut());
        times.for_each(|at| *at = *at + by);
        self.rivals.clock_set(by);
        self.rates.clock_set(by);
        self.tokens.values_mut().for_each(|token| token.clock_set(by));
        self.round.clock_set(by);
        self.joins_clock_set(turn, by);
    }

    fn heard(&mut self, turn: &mut Turn, machine: &MachineId) {
        self.heard_at.insert(machine.clone(), turn.now);
        self.told_silent.remove(machine);
        self.note_heard(turn, machine);
    }
}

#[cfg(test)]
mod tests;
