//! Sessions: a machine that is there, over one connection at a time.
//!
//! Whoever comes with the machine's certificate and the machine's identity is the machine, and a newer connection of the same
//! boot takes over from the older one: the older one is what is left of a network that broke. A second boot while the first one
//! is heard is a second machine with a copied key; it is refused until the first has been silent.

use reveille_core::model::stage::Stage;
use reveille_core::model::time::Time;
use reveille_wire::agent::frame::{Hello, Peer as Neighbour, StageReport, StageStep, Welcome};
use reveille_wire::agent::identity::Part;
use reveille_wire::agent::plan::Held;
use reveille_wire::agent::text::{List, Word};
use reveille_wire::agent::{AgentFrame, PROTOCOL, Reason, ServerFrame};

use super::course::JoinEnd;
use super::event::What;
use super::ids::{Conn, MachineId, OrderId};
use super::machine::Machine;
use super::masked::masked;
use super::rates::Costs;
use super::record::{Record, Staged};
use super::trace::Report;
use super::whereabouts;
use super::{Effect, Peer, Registry, Turn};

/// A session.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) machine: MachineId,
    pub(super) number: u64,
    boot_id: Word,
    /// The highest frame that was taken.
    taken: u64,
    /// Frames that it may still send at once, in thousandths.
    allowance: u64,
    pub(super) refilled_at: Time,
    pub(super) holds: Held,
    pub(super) joined: bool,
    /// The neighbours that it was told last.
    pub(super) told_peers: List<Neighbour, 256>,
    /// The last wait that it was told, by its code and what it says.
    pub(super) told_wait: Option<Reason>,
}

impl Registry {
    pub(super) fn arrived(&mut self, turn: &mut Turn, conn: Conn, peer: &Peer, mut hello: Hello) {
        if self.sessions.contains_key(&conn) {
            return turn.close(conn, super::invite::bad("hello", "a session begins with one hello"));
        }
        let nowhere = whereabouts::believed(&mut hello.facts, self.settings.peers_on_loopback);
        if let Err(reason) = self.welcome(turn, conn, peer, &hello) {
            return turn.close(conn, reason);
        }
        self.heard(turn, &peer.machine);
        if let Some(known) = self.book.machine(&peer.machine) {
            let session = self.last_session;
            turn.tell(known, What::Arrived { session, joined: hello.joined });
            if let Some(at) = nowhere {
                turn.tell(known, What::NoPeerAt(at));
            }
        }
        self.tell_peers(turn, conn);
        self.provide(turn, conn);
    }

    fn welcome(&mut self, turn: &mut Turn, conn: Conn, peer: &Peer, hello: &Hello) -> Result<(), Reason> {
        if hello.protocol != PROTOCOL {
            return Err(Reason::Version { spoken: List::first([PROTOCOL]) });
        }
        self.recognise(turn, peer)?;
        self.spend(turn.now, &peer.machine, Costs::Session)?;
        let Some(known) = self.book.machine(&peer.machine) else { return Err(self.unknown(&peer.machine)) };
        if let Some(part) = known.identity.differs(&hello.identity) {
            return Err(self.refuse_rival(turn, part, &peer.machine, &hello.identity, &hello.facts));
        }
        let (boot_before, reports_kept) = (known.identity.boot_id.clone(), known.reports_kept);
        let shown_before = known.shown_by;
        let facts_differ = known.facts != hello.facts;
        if let Some(before) = self.conn_of.get(&peer.machine).copied() {
            let other_boot =
                self.sessions.get(&before).is_some_and(|session| session.boot_id != hello.identity.boot_id);
            if other_boot && self.is_lively(turn.now, &peer.machine) {
                return Err(self.refuse_rival(
                    turn,
                    Part::BootId,
                    &peer.machine,
                    &hello.identity,
                    &hello.facts,
                ));
            }
            turn.close(before, Reason::Replaced);
            if other_boot {
                self.orders_lost(turn, &peer.machine);
            } else {
                self.collecting_lost(turn, &peer.machine);
            }
            self.taken_over(turn, before);
        }
        if facts_differ || boot_before != hello.identity.boot_id {
            let (boot_id, facts) = (hello.identity.boot_id.clone(), hello.facts.clone());
            self.record(turn, Record::Described { machine: peer.machine.clone(), boot_id, facts });
        }
        if shown_before != Some(peer.authority) {
            let (machine, authority) = (peer.machine.clone(), peer.authority);
            self.record(turn, Record::Shown { machine, authority });
        }
        // Higher than before a restart, too: no two sessions of a machine have one number.
        self.last_session = self.last_session.saturating_add(1).max(u64::try_from(turn.now.ms).unwrap_or(0));
        let session = Session {
            machine: peer.machine.clone(),
            number: self.last_session,
            boot_id: hello.identity.boot_id.clone(),
            taken: 0,
            allowance: u64::from(self.settings.frames_burst) * 1000,
            refilled_at: turn.now,
            holds: hello.plan.clone().unwrap_or_default(),
            joined: hello.joined,
            told_peers: List::default(),
            told_wait: None,
        };
        self.sessions.insert(conn, session);
        self.conn_of.insert(peer.machine.clone(), conn);
        self.neighbours_changed(turn);
        let welcome = Welcome {
            machine: Word::cut(peer.machine.as_str()),
            session: self.last_session,
            heartbeat_s: u32::try_from(self.settings.heartbeat.ms / 1000).unwrap_or(u32::MAX),
            // Whoever sends it knows the authorities.
            ca_pins: List::default(),
            reports_kept,
        };
        turn.out.push(Effect::Send(conn, ServerFrame::Welcome(welcome)));
        Ok(())
    }

    /// Heard within two heartbeats.
    fn is_lively(&self, now: Time, machine: &MachineId) -> bool {
        let period = self.settings.heartbeat;
        self.heard_at(machine).is_some_and(|at| now.since(at) < period + period)
    }

    pub(super) fn gone(&mut self, turn: &mut Turn, conn: Conn) {
        let Some(machine) = self.sessions.get(&conn).map(|session| session.machine.clone()) else { return };
        self.orders_lost(turn, &machine);
        self.taken_over(turn, conn);
    }

    /// Over, but for its orders.
    fn taken_over(&mut self, turn: &mut Turn, conn: Conn) {
        let Some(session) = self.sessions.remove(&conn) else { return };
        if self.conn_of.get(&session.machine) == Some(&conn) {
            self.conn_of.remove(&session.machine);
            self.neighbours_changed(turn);
        }
        if let Some(known) = self.book.machine(&session.machine) {
            turn.tell(known, What::Left);
        }
    }

    pub(super) fn said(&mut self, turn: &mut Turn, conn: Conn, n: u64, frame: AgentFrame) {
        let rate = u64::from(self.settings.frames_per_s);
        let most = u64::from(self.settings.frames_burst) * 1000;
        let Some(session) = self.sessions.get_mut(&conn) else { return };
        let passed_ms = u64::try_from(turn.now.since(session.refilled_at).ms).unwrap_or(0);
        session.allowance = session.allowance.saturating_add(passed_ms.saturating_mul(rate)).min(most);
        session.refilled_at = turn.now;
        if session.allowance < 1000 {
            turn.close(conn, Reason::TooMany { of: "frames".into() });
            return self.gone(turn, conn);
        }
        session.allowance -= 1000;
        if n <= session.taken {
            return;
        }
        session.taken = n;
        let machine = session.machine.clone();
        self.heard(turn, &machine);
        self.take(turn, conn, &machine, n, masked(frame));
    }

    fn take(&mut self, turn: &mut Turn, conn: Conn, machine: &MachineId, n: u64, frame: AgentFrame) {
        let Some(known) = self.book.machine(machine).cloned() else { return };
        let kept = match frame {
            AgentFrame::Hello(_) => {
                turn.close(conn, super::invite::bad("hello", "a session begins with one hello"));
                return self.gone(turn, conn);
            }
            AgentFrame::Stage(report) => {
                self.staged(turn, &known, report);
                true
            }
            AgentFrame::Heartbeat(beat) => {
                turn.tell(
                    &known,
                    What::Alive {
                        stage: beat.stage.map(|stage| stage.0),
                        joined: beat.joined,
                        account: beat.account.map(Box::new),
                    },
                );
                self.joined(turn, conn, machine, beat.joined);
                // The stage stands beside it: what an agent remembers of an earlier join is no word about this one.
                if beat.joined && beat.stage.is_some_and(|stage| stage.0 == Stage::Stay) {
                    self.end_join(turn, machine, JoinEnd::Held);
                }
                false
            }
            AgentFrame::Step(outcome) => {
                turn.tell(&known, What::Stepped(outcome));
                true
            }
            AgentFrame::Done(done) => {
                if self.order_done(machine, OrderId(done.id)) {
                    turn.tell(&known, What::Answered(OrderId(done.id), done));
                }
                true
            }
            AgentFrame::Evidence(part) => {
                if self.may_send_evidence(machine, &part) {
                    turn.tell(&known, What::Evidence(OrderId(part.id), part));
                }
                true
            }
            AgentFrame::TokenWanted {} => {
                self.joined(turn, conn, machine, false);
                self.provide(turn, conn);
                false
            }
            AgentFrame::Unknown => false,
        };
        if kept && self.sessions.contains_key(&conn) {
            turn.out.push(Effect::Send(conn, ServerFrame::Ack { up_to: n }));
        }
    }

    fn staged(&mut self, turn: &mut Turn, known: &Machine, said: StageReport) {
        if said.seq <= known.reports_kept {
            return;
        }
        let report = Report {
            seq: said.seq,
            stage: said.stage.0,
            step: said.step,
            attempts: said.attempts,
            error: said.error,
            stamp: said.stamp,
        };
        self.record(turn, Record::Staged(Staged::of(turn.now, &known.id, &report)));
        if report.stage >= Stage::Register && report.step == StageStep::Left {
            self.drop_token(turn, &known.id);
        }
        let end = Self::ends_by(&report);
        turn.tell(known, What::Staged(report));
        if let Some(end) = end {
            self.end_join(turn, &known.id, end);
        }
    }

    /// Whether its node is there decides whether it needs a token.
    fn joined(&mut self, turn: &mut Turn, conn: Conn, machine: &MachineId, joined: bool) {
        let Some(session) = self.sessions.get_mut(&conn) else { return };
        let before = std::mem::replace(&mut session.joined, joined);
        if joined {
            self.drop_token(turn, machine);
        } else if before {
            self.provide(turn, conn);
        }
    }
}
