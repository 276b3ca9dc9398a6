//! Sessions: a connected machine, over one connection at a time.
//!
//! A client that has the machine's certificate and its identity is the machine. A newer connection of the same boot takes
//! over from the older one, which is left over from a broken network. A second boot while the first one sends messages is
//! a second machine with a copied key. The registry refuses it until the first has been silent.

use reveille_core::model::stage::Stage;
use reveille_core::model::time::Time;
use reveille_wire::agent::frame::{Hello, Peer as Neighbour, StageReport, StageStep, Welcome};
use reveille_wire::agent::identity::Part;
use reveille_wire::agent::plan::Held;
use reveille_wire::agent::text::{List, Word};
use reveille_wire::agent::{AgentFrame, PROTOCOL, Reason, Refused, ServerFrame};

use super::event::What;
use super::flow::JoinEnd;
use super::ids::{Conn, MachineId, OrderId};
use super::machine::Machine;
use super::masked::masked;
use super::rates::Costs;
use super::record::{Record, Staged};
use super::trace::Report;
use super::whereabouts;
use super::{Effect, Peer, Registry, Turn};

/// No clock gives a report a higher number.
const NUMBER_MOST: u64 = i64::MAX.unsigned_abs();

/// A session of a machine.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) machine: MachineId,
    pub(super) number: u64,
    /// The end of the certificate that opened the session.
    not_after: Time,
    boot_id: Word,
    /// The highest number of a frame that was taken.
    taken: u64,
    pub(super) holds: Held,
    pub(super) joined: bool,
    /// The neighbours that the machine was told last.
    pub(super) told_peers: List<Neighbour, 256>,
    /// The last wait that the machine was told, by its code and text.
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
        if let Some(known) = self.index.machine(&peer.machine) {
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
        self.stands(peer)?;
        self.is_itself(turn, peer, hello)?;
        self.spend(turn.now, &peer.machine, Costs::Session)?;
        self.take_over(turn, peer, hello);
        self.remember(turn, peer, hello);
        let reports_kept = self.index.machine(&peer.machine).map_or(0, |known| known.reports_kept);
        // The number is higher than those before a restart: no two sessions of a machine have the same one.
        self.last_session = self.last_session.saturating_add(1).max(u64::try_from(turn.now.ms).unwrap_or(0));
        let session = Session {
            machine: peer.machine.clone(),
            number: self.last_session,
            not_after: peer.not_after,
            boot_id: hello.identity.boot_id.clone(),
            taken: 0,
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
            // The server's thread fills the pins in: it knows the authorities.
            ca_pins: List::default(),
            reports_kept,
        };
        turn.out.push(Effect::Send(conn, ServerFrame::Welcome(welcome)));
        Ok(())
    }

    /// The client that holds the certificate is its machine, in the boot that sends the hello. A refusal here leaves no
    /// trace. Until the machine itself is welcomed with its next key, the key before counts, whichever client asked for
    /// the next one.
    fn is_itself(&mut self, turn: &mut Turn, peer: &Peer, hello: &Hello) -> Result<(), Reason> {
        let machine = &peer.machine;
        let Some(known) = self.index.machine(machine) else { return Err(self.unknown(machine)) };
        let left_out = known.identity.left_out_by(&hello.identity);
        let differs = known.identity.differs(&hello.identity);
        let is_second = || self.is_other_boot(machine, hello) && self.is_lively(turn.now, machine);
        if let Some(part) = differs.or_else(|| is_second().then_some(Part::BootId)) {
            return Err(self.refuse_rival(turn, part, machine, &hello.identity, &hello.facts));
        }
        left_out.map_or(Ok(()), |part| Err(Reason::IdentityIncomplete { part }))
    }

    /// The machine's session is of another boot.
    fn is_other_boot(&self, machine: &MachineId, hello: &Hello) -> bool {
        let session = self.conn_of.get(machine).and_then(|conn| self.sessions.get(conn));
        session.is_some_and(|session| session.boot_id != hello.identity.boot_id)
    }

    /// Ends the session that the machine has.
    fn take_over(&mut self, turn: &mut Turn, peer: &Peer, hello: &Hello) {
        let Some(before) = self.conn_of.get(&peer.machine).copied() else { return };
        let is_other_boot = self.is_other_boot(&peer.machine, hello);
        turn.close(before, Reason::Replaced);
        if is_other_boot {
            self.orders_lost(turn, &peer.machine);
        } else {
            self.collecting_lost(turn, &peer.machine);
        }
        self.taken_over(turn, before);
    }

    /// Records what a welcome changes.
    fn remember(&mut self, turn: &mut Turn, peer: &Peer, hello: &Hello) {
        let Some(known) = self.index.machine(&peer.machine) else { return };
        let machine = || peer.machine.clone();
        let mut records = Vec::new();
        if known.key != peer.key {
            records.push(Record::KeyTaken { machine: machine(), key: Some(peer.key) });
        }
        if known.facts != hello.facts || known.identity.boot_id != hello.identity.boot_id {
            let (boot_id, facts) = (hello.identity.boot_id.clone(), hello.facts.clone());
            records.push(Record::Described { machine: machine(), boot_id, facts });
        }
        if known.shown_by != Some(peer.authority) {
            records.push(Record::Shown { machine: machine(), authority: peer.authority });
        }
        records.into_iter().for_each(|record| self.record(turn, record));
    }

    /// The machine sent a message within two heartbeats.
    fn is_lively(&self, now: Time, machine: &MachineId) -> bool {
        let period = self.settings.heartbeat;
        self.heard_at(machine).is_some_and(|at| now.since(at) < period + period)
    }

    /// Ends sessions whose certificates have expired. The reason is not `CERTIFICATE_EXPIRED`: an agent that has renewed
    /// since would use an invitation because of it. An agent that has not renewed hears that reason when it comes again.
    pub(super) fn end_with_certificates(&mut self, turn: &mut Turn) {
        let over = |(conn, session): (&Conn, &Session)| (session.not_after <= turn.now).then_some(*conn);
        let over: Vec<Conn> = self.sessions.iter().filter_map(over).collect();
        for conn in over {
            let refused = Refused {
                says: "the certificate that opened this session is over".into(),
                next: "nothing: the agent comes again with the certificate that it has by now".into(),
                retry_after_s: Some(1),
                reason: Reason::Unavailable,
            };
            turn.out.push(Effect::Close(conn, refused));
            self.gone(turn, conn);
        }
    }

    pub(super) fn gone(&mut self, turn: &mut Turn, conn: Conn) {
        let Some(machine) = self.sessions.get(&conn).map(|session| session.machine.clone()) else { return };
        self.orders_lost(turn, &machine);
        self.taken_over(turn, conn);
    }

    /// Ends the session, except for its orders.
    fn taken_over(&mut self, turn: &mut Turn, conn: Conn) {
        let Some(session) = self.sessions.remove(&conn) else { return };
        if self.conn_of.get(&session.machine) == Some(&conn) {
            self.conn_of.remove(&session.machine);
            self.neighbours_changed(turn);
        }
        if let Some(known) = self.index.machine(&session.machine) {
            turn.tell(known, What::Left);
        }
    }

    pub(super) fn said(&mut self, turn: &mut Turn, conn: Conn, n: u64, frame: AgentFrame) {
        let Some(machine) = self.sessions.get(&conn).map(|session| session.machine.clone()) else { return };
        if let Err(reason) = self.spend(turn.now, &machine, Costs::Frame) {
            turn.close(conn, reason);
            return self.gone(turn, conn);
        }
        let Some(session) = self.sessions.get_mut(&conn) else { return };
        if n <= session.taken {
            return;
        }
        session.taken = n;
        self.heard(turn, &machine);
        self.take(turn, conn, &machine, n, masked(frame));
    }

    fn take(&mut self, turn: &mut Turn, conn: Conn, machine: &MachineId, n: u64, frame: AgentFrame) {
        let Some(known) = self.index.machine(machine).cloned() else { return };
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
                // The stage must fit too: an agent that remembers an earlier join says nothing about this one.
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
        // A report's number is the agent's clock, or one more than the number before. Higher numbers than any clock gives
        // are cut. So a higher number always exists, and an attacker who acts as the machine for a moment cannot end its
        // reports.
        let most = NUMBER_MOST.max(known.reports_kept.saturating_add(1));
        let report = Report {
            seq: said.seq.min(most),
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

    /// The machine needs a token only while its Node does not exist.
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
