//! What an agent may never do, as assertions over the events that it received and the effects that it asked for.
//!
//! ```text
//!  event ─▶ InvariantChecker::hear ─▶ what was really said ─┐
//!  effects ─▶ InvariantChecker::check ──────────────────────┴─▶ Violation, or not
//! ```
//!
//! The invariant checker keeps its own record of the same events and never looks into the agent's state. A check that asked the
//! guard under test would pass even with a broken guard. The simulator and the tests run the invariant checker after every step.
//!
//! 1. No reset of a machine whose Node is Ready or not known, that runs a control plane, or that belongs to another
//!    cluster. No reset while the credentials are accepted, or were not found stale often enough in a row. No act at all
//!    on a machine that is to be removed.
//! 2. No reboot without a quorum, and none while a reason forbids it.
//! 3. Never two effects of one kind in flight, and never two acts.
//! 4. Every wait has a deadline, and a wake-up no later than the deadline.
//! 5. The watchdog is armed only while the machine may be rebooted, and the agent feeds it until it has asked for a
//!    reboot.
//! 6. An act that changes the machine is in a durable memory first, and happens no oftener than the settings allow.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use reveille_core::model::id::NodeName;
use reveille_core::model::time::{Span, Time};

use crate::effect::{Effect, Report, Verb};
use crate::event::Event;
use crate::memory::DAY;
use crate::model::{
    Credentials, Device, ForeignCluster, Inspection, Leaving, Machine, NodeSeen, OperationId, Outcome,
    PeerAnswer, Role, WatchdogSeen,
};
use crate::settings::Settings;
use crate::verdict::QUORUM_LEAST;

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant's number, as in the list of this module.
    pub invariant: u8,
    /// The effect that broke the invariant.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "agent invariant {}: {}", self.invariant, self.what)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Check,
    Peers,
    Orders,
    Inspection,
    WatchdogSet,
    WatchdogRead,
    Record,
    Act,
}

/// A watchdog as it was read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Armed {
    No,
    /// The watchdog fires when it is not fed for this span; it was last fed, or armed, at this time.
    Bites(Span, Time),
}

/// The peers that the agent asked, and the first answer of each.
#[derive(Clone, Debug, Default)]
struct Asked {
    operation: OperationId,
    peers: Vec<NodeName>,
    answers: BTreeMap<NodeName, PeerAnswer>,
}

/// The events and effects over an agent's life.
#[derive(Clone, Debug)]
pub struct InvariantChecker {
    settings: Settings,
    in_flight: BTreeMap<Kind, (OperationId, Time)>,
    heard_at: Option<Time>,
    wake_at: Option<Time>,
    machine: Option<Machine>,
    cancelled: bool,
    leaving: Option<Leaving>,
    /// A join was ordered, and no join has held since.
    ordered: bool,
    /// The API server answered the last check that ended.
    api_answers: bool,
    known_peers: BTreeSet<NodeName>,
    name: NodeName,
    asked: Option<Asked>,
    found: Option<Inspection>,
    stale_in_a_row: u32,
    /// The number of acts that a durable memory covers.
    covered: u32,
    reset_recorded: bool,
    /// The memory of an earlier agent says that a reset was begun.
    reset_begun: bool,
    /// The watchdog's state as read back; none when the agent has not read it since it set it.
    armed: Option<Armed>,
    rebooting_until: Option<Time>,
    reboots: Vec<Time>,
}

/// A machine that wakes later than asked by more than this has slept.
const SLEPT: Span = Span::from_s(30);

type Checked = Result<(), Violation>;

fn ensure(holds: bool, invariant: u8, what: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(Violation { invariant, what: what() }) }
}

/// The credentials can be those of an earlier join.
const fn may_be_stale(credentials: &Credentials) -> bool {
    matches!(
        credentials,
        Credentials::Expired
            | Credentials::Refused
            | Credentials::Interrupted
            | Credentials::Foreign(ForeignCluster::Replaced)
    )
}

impl InvariantChecker {
    /// A checker for an agent of this name with these settings.
    pub const fn new(name: NodeName, settings: Settings) -> Self {
        Self {
            settings,
            in_flight: BTreeMap::new(),
            heard_at: None,
            wake_at: None,
            machine: None,
            cancelled: false,
            leaving: None,
            ordered: false,
            api_answers: false,
            known_peers: BTreeSet::new(),
            name,
            asked: None,
            found: None,
            stale_in_a_row: 0,
            covered: 0,
            reset_recorded: false,
            reset_begun: false,
            armed: None,
            rebooting_until: None,
            reboots: Vec::new(),
        }
    }

    /// The process restarted: answers to earlier effects reach no agent any more.
    pub fn restart(&mut self) {
        self.in_flight.clear();
        (self.wake_at, self.heard_at, self.asked, self.found) = (None, None, None, None);
        (self.machine, self.rebooting_until, self.covered) = (None, None, 0);
        (self.cancelled, self.api_answers, self.leaving) = (false, false, None);
        self.ordered = false;
        self.stale_in_a_row = 0;
        self.known_peers.clear();
    }

    /// Records an event that the agent is about to receive.
    pub fn hear(&mut self, now: Time, event: &Event) {
        self.notice_sleep(now);
        match event {
            Event::Found(machine) => self.machine = Some(machine.clone()),
            Event::Cancelled => (self.cancelled, self.rebooting_until) = (true, None),
            Event::Resumed => self.cancelled = false,
            Event::PeersListed(peers) => {
                self.known_peers = peers.keys().filter(|peer| **peer != self.name).cloned().collect();
            }
            Event::ApiChecked { operation, silent } if self.lands(Kind::Check, *operation) => {
                self.api_answers = silent.is_none();
                if self.api_answers {
                    self.asked = None;
                    self.in_flight.remove(&Kind::Peers);
                }
            }
            Event::PeerAnswered { operation, peer, answer } => {
                if let Some(asked) = self.asked.as_mut().filter(|asked| asked.operation == *operation)
                    && asked.peers.contains(peer)
                {
                    let first = *asked.answers.entry(peer.clone()).or_insert(*answer);
                    // The round ends before all answers are there if one peer said "no order", which is believed on its
                    // own.
                    if first == PeerAnswer::NoOrder || asked.answers.len() == asked.peers.len() {
                        self.in_flight.remove(&Kind::Peers);
                    }
                }
            }
            Event::Inspected { operation, found } if self.lands(Kind::Inspection, *operation) => {
                let same = self.found.as_ref().is_some_and(|before| before.credentials == found.credentials);
                let before = if same { self.stale_in_a_row } else { 0 };
                self.stale_in_a_row = if may_be_stale(&found.credentials) { before + 1 } else { 0 };
                let ready = found.node == NodeSeen::Ready;
                self.leaving = found.leaving.or(self.leaving.filter(|_| !ready));
                self.found = Some(found.clone());
            }
            Event::Ordered => (self.ordered, self.leaving) = (true, None),
            Event::Planned => self.ordered = true,
            Event::Readmitted => {
                // An earlier agent process may have received the message that the machine was removed.
                self.ordered = true;
                self.leaving = self.leaving.filter(|how| *how != Leaving::Removed);
            }
            Event::OrdersRead { operation, .. } => drop(self.lands(Kind::Orders, *operation)),
            Event::WatchdogSet { operation, .. } => drop(self.lands(Kind::WatchdogSet, *operation)),
            Event::WatchdogRead { operation, found } if self.lands(Kind::WatchdogRead, *operation) => {
                self.armed = match found {
                    WatchdogSeen::Armed(timeout) => Some(Armed::Bites(*timeout, now)),
                    WatchdogSeen::Disarmed => Some(Armed::No),
                    WatchdogSeen::CannotTell => None,
                };
            }
            Event::Recorded(operation) if self.lands(Kind::Record, *operation) => {
                // One act; a reset and its join are two acts.
                self.covered = if self.reset_recorded { 2 } else { 1 };
            }
            Event::Done { operation, outcome } if self.lands(Kind::Act, *operation) => {
                // A reboot that the system refused does not happen: the agent has to feed the watchdog again.
                self.rebooting_until = self.rebooting_until.filter(|_| *outcome == Outcome::Done);
            }
            _ => {}
        }
    }

    /// A machine that slept drops all waits except the one for an act on itself, which keeps its remaining time.
    fn notice_sleep(&mut self, now: Time) {
        let late = self.wake_at.filter(|at| now.since(*at) > SLEPT);
        let back = self.heard_at.filter(|at| now < *at);
        if let Some(from) = late.or(back) {
            self.in_flight.retain(|kind, _| matches!(kind, Kind::Record | Kind::Act));
            let shifted = |at: Time| Time::from_ms(at.ms + now.ms - from.ms);
            self.in_flight.values_mut().for_each(|(_, until)| *until = shifted(*until));
            self.rebooting_until = self.rebooting_until.map(shifted);
            (self.asked, self.found, self.stale_in_a_row) = (None, None, 0);
        }
        self.heard_at = Some(now);
    }

    /// The answer belongs to an effect in flight.
    fn lands(&mut self, kind: Kind, operation: OperationId) -> bool {
        let lands = self.in_flight.get(&kind).is_some_and(|(known, _)| *known == operation);
        if lands {
            self.in_flight.remove(&kind);
        }
        lands
    }

    /// Checks the effects that the agent asks for.
    ///
    /// # Errors
    ///
    /// The first invariant that is broken.
    pub fn check(&mut self, now: Time, effects: &[Effect]) -> Checked {
        // A check without an answer in time also failed.
        self.api_answers &= self.in_flight.get(&Kind::Check).is_none_or(|(_, until)| *until > now);
        self.in_flight.retain(|_, (_, until)| *until > now);
        self.rebooting_until = self.rebooting_until.filter(|until| *until > now);
        for effect in effects {
            self.check_effect(now, effect)?;
        }
        self.check_is_fed()?;
        let due = self.in_flight.values().map(|(_, until)| *until).min();
        let awake = due.is_none_or(|due| self.wake_at.is_some_and(|wake| wake <= due));
        ensure(awake, 4, || format!("no wake-up is set before its deadline: {:?}", self.in_flight))
    }

    fn check_effect(&mut self, now: Time, effect: &Effect) -> Checked {
        match effect {
            Effect::CheckApi(id, within) => self.flies(now, Kind::Check, *id, *within),
            Effect::AskPeers(id, peers, within) => {
                self.flies(now, Kind::Peers, *id, *within)?;
                let most = self.settings.peers_asked as usize;
                ensure(peers.len() <= most, 3, || format!("{} peers are asked at once", peers.len()))?;
                ensure(!peers.contains(&self.name), 3, || "it asks itself".to_owned())?;
                let once: BTreeSet<&NodeName> = peers.iter().collect();
                ensure(once.len() == peers.len(), 3, || "a peer is asked twice in a round".to_owned())?;
                self.asked = Some(Asked { operation: *id, peers: peers.clone(), answers: BTreeMap::new() });
                Ok(())
            }
            Effect::ReadOrders(id, within) => self.flies(now, Kind::Orders, *id, *within),
            Effect::Inspect(id, within) => self.flies(now, Kind::Inspection, *id, *within),
            Effect::SetWatchdog(id, to, within) => {
                self.flies(now, Kind::WatchdogSet, *id, *within)?;
                if to.is_some() {
                    self.armed = None;
                    return self.ensure_safe(5, "the watchdog is armed");
                }
                Ok(())
            }
            Effect::ReadWatchdog(id, within) => self.flies(now, Kind::WatchdogRead, *id, *within),
            Effect::FeedWatchdog => {
                if let Some(Armed::Bites(_, fed_at)) = &mut self.armed {
                    *fed_at = now;
                }
                ensure(self.rebooting_until.is_none(), 5, || {
                    "it feeds the watchdog that is to bite".to_owned()
                })
            }
            Effect::Record(id, memory, within) => {
                self.flies(now, Kind::Record, *id, *within)?;
                self.covered = 0;
                self.reset_begun = self.reset_recorded;
                self.reset_recorded = memory.is_reset;
                let most = self.settings.attempts;
                ensure(memory.attempts <= most, 6, || format!("attempt {} of {most}", memory.attempts))
            }
            Effect::Act(id, verb, within) => {
                self.flies(now, Kind::Act, *id, *within)?;
                self.check_act(now, *verb, *within)
            }
            Effect::WakeAt(at) => {
                self.wake_at = Some(*at);
                Ok(())
            }
            Effect::Report(Report::Back) => {
                self.ordered = false;
                Ok(())
            }
            Effect::AnswerPeer { .. } | Effect::Report(_) => Ok(()),
        }
    }

    fn flies(&mut self, now: Time, kind: Kind, id: OperationId, within: Span) -> Checked {
        let bounded = within > Span::ZERO && within <= Span::from_min(60);
        ensure(bounded, 4, || format!("{kind:?} is waited for {within}"))?;
        let twice = self.in_flight.insert(kind, (id, now + within));
        ensure(twice.is_none(), 3, || format!("two of {kind:?} are in flight"))
    }

    fn check_act(&mut self, now: Time, verb: Verb, within: Span) -> Checked {
        if verb == Verb::RequestToken {
            return Ok(());
        }
        ensure(self.covered > 0, 6, || format!("{verb}, and no durable memory covers it"))?;
        self.covered -= 1;
        ensure(!self.cancelled, 2, || format!("{verb}, and it was told to do nothing"))?;
        if verb.is_reboot() {
            self.ensure_safe(2, "a reboot")?;
            self.ensure_quorum()?;
            if verb == Verb::RebootByWatchdog {
                ensure(matches!(self.armed, Some(Armed::Bites(..))), 5, || {
                    "a watchdog that was not proved is to bite".to_owned()
                })?;
                self.rebooting_until = Some(now + within);
            }
            self.reboots.retain(|at| now.since(*at) < DAY);
            self.reboots.push(now);
            let (most, count) = (self.settings.reboots_a_day as usize, self.reboots.len());
            return ensure(count <= most, 6, || format!("reboot {count} of {most} in a day"));
        }
        ensure(self.leaving.is_none(), 1, || format!("{verb}, and the machine is to go"))?;
        let worker = self.machine.as_ref().is_some_and(|machine| machine.role == Role::Worker);
        match verb {
            Verb::Reset => {
                ensure(worker, 1, || "a control plane is reset".to_owned())?;
                let bites = matches!(self.armed, Some(Armed::Bites(..))) && self.has_watchdog();
                ensure(!bites, 5, || "a join begins under an armed watchdog".to_owned())?;
                self.ensure_stale()
            }
            Verb::Join => {
                ensure(worker, 1, || "a control plane is joined as a worker".to_owned())?;
                let begun = self.reset_recorded;
                ensure(begun, 6, || "a join, and no memory says that one was begun".to_owned())
            }
            _ => {
                let there = self.found.as_ref().is_some_and(|found| found.node == NodeSeen::Ready);
                ensure(!there, 1, || format!("{verb}, and its node is Ready"))
            }
        }
    }

    fn has_watchdog(&self) -> bool {
        self.machine.as_ref().is_some_and(|machine| machine.watchdog == Device::Usable)
    }

    fn ensure_stale(&self) -> Checked {
        let Some(found) = &self.found else {
            return ensure(false, 1, || "a reset, and nothing was looked at".to_owned());
        };
        let gone = matches!(found.node, NodeSeen::Absent | NodeSeen::NotReady);
        ensure(gone, 1, || format!("a reset, and its node is {:?}", found.node))?;
        ensure(may_be_stale(&found.credentials), 1, || {
            format!("a reset, and its credentials are {:?}", found.credentials)
        })?;
        let interrupted = found.credentials == Credentials::Interrupted;
        ensure(!interrupted || self.ordered || self.reset_begun, 1, || {
            "a reset of a join that another process began".to_owned()
        })?;
        let (read, needed) = (self.stale_in_a_row, self.settings.stale_readings);
        ensure(read >= needed, 1, || format!("a reset after {read} stale readings of {needed}"))?;
        ensure(self.api_answers, 1, || "a reset, and the API server does not answer".to_owned())
    }

    fn ensure_safe(&self, invariant: u8, what: &str) -> Checked {
        let Some(machine) = &self.machine else {
            return ensure(false, invariant, || format!("{what}, and nothing is known of the machine"));
        };
        ensure(!self.cancelled, invariant, || format!("{what}, and it was told to do nothing"))?;
        ensure(!machine.joining, invariant, || format!("{what} in the middle of a join"))?;
        let needed = matches!(machine.role, Role::ControlPlane { spare: false });
        ensure(!needed, invariant, || format!("{what} where the control plane needs the machine"))
    }

    fn ensure_quorum(&self) -> Checked {
        ensure(!self.api_answers, 2, || "a reboot, and the API server answers".to_owned())?;
        let Some(asked) = &self.asked else {
            let alone = self.known_peers.is_empty() && self.settings.min_peers == 0;
            return ensure(alone, 2, || "a reboot, and no peer was asked".to_owned());
        };
        let count = asked.peers.len() as u32;
        let said = |wanted| asked.answers.values().filter(|answer| **answer == wanted).count() as u32;
        let ordered = said(PeerAnswer::Order) >= (count / 2 + 1).max(QUORUM_LEAST);
        let alone = asked.answers.is_empty() && count >= QUORUM_LEAST;
        let fine = said(PeerAnswer::NoOrder);
        ensure(fine == 0 && (ordered || alone), 2, || {
            format!("a reboot without a quorum: of {count} peers {:?}", asked.answers)
        })
    }

    /// The agent wakes to feed the watchdog before the watchdog fires.
    fn check_is_fed(&self) -> Checked {
        let Some(Armed::Bites(timeout, fed_at)) = self.armed else { return Ok(()) };
        let needed = self.has_watchdog() && self.rebooting_until.is_none();
        let awake = self.wake_at.is_some_and(|wake| wake < fed_at + timeout);
        ensure(!needed || awake, 5, || "no wake-up is set to feed the watchdog before it fires".to_owned())
    }
}
