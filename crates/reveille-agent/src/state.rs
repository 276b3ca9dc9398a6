//! The one function of the agent: an event comes in, effects go out.
//!
//! ```text
//!  step: did we sleep? ─▶ take the event in ─▶ contact, answering, observation, work, watchdog, each what is due ─▶ WakeAt
//! ```
//!
//! Each part keeps what it waits for, at most one effect of a kind, and says when it has to run again; the earliest of
//! these times is the wake-up. Work runs before the watchdog, because an act that begins may be a reason to disarm the
//! watchdog.

mod work;

use reveille_core::model::agent::Ask;
use reveille_core::model::id::NodeName;
use reveille_core::model::time::{Span, Time};

use crate::answering::Answering;
use crate::contact::Contact;
use crate::effect::{Effect, Report};
use crate::event::Event;
use crate::memory::Memory;
use crate::model::{Leaving, Machine, NodeSeen};
use crate::observation::Observation;
use crate::rejoin::{self, Blocker, Known, RepairStep};
use crate::safety::{self, Unable};
use crate::settings::{Config, Settings, Warning};
use crate::step_context::StepContext;
use crate::watchdog::Watchdog;

use work::Work;

/// A machine that wakes later than asked by more than this has slept.
const LATE: Span = Span::from_s(30);

/// What an agent starts with.
#[derive(Clone, Debug)]
pub struct Start {
    /// The name of the machine's Node.
    pub name: NodeName,
    /// The settings in force.
    pub config: Config,
    /// The settings that were raised.
    pub warnings: Vec<Warning>,
    /// The memory of an earlier agent process.
    pub memory: Memory,
}

/// The whole state of an agent.
#[derive(Clone, Debug)]
pub struct State {
    name: NodeName,
    config: Config,
    machine: Option<Machine>,
    memory: Memory,
    pub(crate) contact: Contact,
    answering: Answering,
    pub(crate) observation: Observation,
    watchdog: Watchdog,
    work: Option<Work>,
    /// An effect that was given up may still complete until then: the agent begins no act before.
    busy_until: Option<Time>,
    pub(crate) cancelled: bool,
    is_ordered: bool,
    /// What the controller that leads asks for, until the request succeeds or fails.
    asked: Option<Ask>,
    reboot_failed: bool,
    told_blocker: Option<Blocker>,
    told_end: bool,
    told_spent: bool,
    told_unable: Option<Option<Unable>>,
    warnings: Vec<Warning>,
    last_operation: u64,
    stepped_at: Option<Time>,
    wake_at: Option<Time>,
}

impl State {
    /// The state of an agent that starts.
    pub fn new(start: Start) -> Self {
        Self {
            name: start.name,
            config: start.config,
            machine: None,
            observation: Observation::remembering(start.memory.leaving),
            memory: start.memory,
            contact: Contact::default(),
            answering: Answering::default(),
            watchdog: Watchdog::default(),
            work: None,
            busy_until: None,
            cancelled: false,
            is_ordered: false,
            asked: None,
            reboot_failed: false,
            told_blocker: None,
            told_end: false,
            told_spent: false,
            told_unable: None,
            warnings: start.warnings,
            last_operation: 0,
            stepped_at: None,
            wake_at: None,
        }
    }

    /// Takes an event in and returns the effects.
    pub fn step(&mut self, now: Time, event: Event) -> Vec<Effect> {
        let settings = *self.config.settings();
        let mut context =
            StepContext { now, settings: &settings, out: Vec::new(), last_operation: self.last_operation };
        for warning in std::mem::take(&mut self.warnings) {
            context.report(Report::Raised(warning));
        }
        self.notice_sleep(now);
        self.stepped_at = Some(now);
        self.take(&mut context, event);
        let zone = self.machine.as_ref().and_then(|machine| machine.zone.clone());
        self.contact.advance(&mut context, &self.name, zone.as_ref());
        self.answering.advance(&mut context);
        self.advance_work(&mut context);
        self.observation.advance(&mut context, self.contact.is_there());
        self.tend_watchdog(&mut context);
        self.tell_unable(&mut context);
        let wake = self.moments().min();
        if wake != self.wake_at {
            context.out.extend(wake.map(Effect::WakeAt));
        }
        self.wake_at = wake;
        self.last_operation = context.last_operation;
        context.out
    }

    /// Why the agent cannot reboot its machine now; none when it can.
    pub fn unable(&self) -> Option<Unable> {
        let against = safety::against(self.machine.as_ref(), self.cancelled, self.is_rejoining());
        let failed = || self.reboot_failed.then_some(Unable::DidNotHappen);
        let no_way = || {
            let machine = self.machine.as_ref().filter(|_| !self.watchdog.is_armed())?;
            safety::no_way(machine)
        };
        against.or_else(failed).or_else(no_way)
    }

    /// What the agent remembers.
    pub const fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The settings in force.
    pub const fn settings(&self) -> &Settings {
        self.config.settings()
    }

    /// The repair step that the last inspection calls for.
    pub(crate) fn choice(&self, attempts: u32) -> Result<Option<RepairStep>, Blocker> {
        let Some(found) = self.observation.found() else { return Err(Blocker::CannotTell) };
        let chosen = rejoin::choose(Known {
            machine: self.machine.as_ref(),
            found,
            readings: self.observation.readings(),
            leaving: self.observation.leaving(),
            attempts,
            is_reset: self.memory.is_reset,
            is_ordered: self.is_ordered,
            settings: self.config.settings(),
        });
        // The API server accepts the credentials, and the Node is not Ready: joining does not repair that, but the
        // controller asked for a restart.
        let restart = self.asked == Some(Ask::RestartKubelet) && found.node == NodeSeen::NotReady;
        match chosen {
            Ok(None) if restart => Ok(Some(RepairStep::RestartKubelet)),
            chosen => chosen,
        }
    }

    fn take(&mut self, context: &mut StepContext<'_>, event: Event) {
        match event {
            Event::Tick => {}
            Event::Found(machine) => {
                // Another device or another permission: a reboot may work now.
                self.reboot_failed &= self.machine.as_ref() == Some(&machine);
                self.machine = Some(machine);
            }
            Event::PeersListed(peers) => self.contact.know(&self.name, peers),
            Event::ApiChecked { operation, silent } => {
                self.contact.checked(context, operation, silent.is_some())
            }
            Event::PeerAnswered { operation, peer, answer } => {
                self.contact.answered(context, operation, peer, answer)
            }
            Event::PeerAsked { from, ask } => self.answering.asked(context, from, ask),
            Event::OrdersRead { operation, orders } => {
                self.answering.read(context, operation, orders.as_ref().ok())
            }
            Event::Inspected { operation, found } => self.observation.inspected(context, operation, found),
            Event::WatchdogSet { operation, outcome } => self.watchdog.was_set(context, operation, &outcome),
            Event::WatchdogRead { operation, found } => self.watchdog.was_read(context, operation, found),
            Event::Recorded(operation) => self.work_answered(operation, true),
            Event::Done { operation, outcome } => {
                self.work_answered(operation, outcome == crate::model::Outcome::Done);
            }
            Event::Ordered => self.take_order(),
            Event::Planned => self.take_plan(),
            Event::Asked(ask) => self.take_ask(ask),
            Event::Readmitted => {
                if self.observation.leaving() == Some(Leaving::Removed) {
                    self.take_order();
                }
            }
            Event::Cancelled => {
                self.cancelled = true;
                self.cancel_reboot(context);
            }
            Event::Resumed => self.cancelled = false,
        }
    }

    /// Makes one more attempt now. An act that is under way goes on.
    fn take_ask(&mut self, ask: Ask) {
        if self.cancelled {
            return;
        }
        self.asked = Some(ask);
        if self.work.is_none() {
            let most = self.config.settings().attempts;
            self.memory.attempts = self.memory.attempts.min(most.saturating_sub(1));
            self.memory.not_before = None;
            self.observation.look_again();
        }
        (self.told_blocker, self.told_end) = (None, false);
    }

    /// An operator, or the first plan, overrides what the agent remembered.
    fn take_order(&mut self) {
        self.take_plan();
        self.observation.start_over();
    }

    /// The machine has to join: the agent counts attempts from zero.
    fn take_plan(&mut self) {
        self.is_ordered = true;
        (self.memory.attempts, self.memory.not_before) = (0, None);
        self.observation.look_again();
        (self.told_blocker, self.told_end) = (None, false);
    }

    /// After a sleep the agent knows nothing: it drops what it waited for, and every count begins at zero.
    fn notice_sleep(&mut self, now: Time) {
        let Some(before) = self.stepped_at else { return };
        let late = self.wake_at.is_some_and(|at| now.since(at) > LATE);
        if late || now < before {
            self.contact.slept();
            self.answering.slept();
            self.observation.slept();
            self.watchdog.slept();
            let slept_ms = now.ms - self.wake_at.filter(|_| late).unwrap_or(before).ms;
            if let Some(work) = &mut self.work {
                work.postpone(slept_ms);
            }
        }
    }

    fn tend_watchdog(&mut self, context: &mut StepContext<'_>) {
        let device = self.machine.as_ref().map(|machine| machine.watchdog);
        let against = safety::against(self.machine.as_ref(), self.cancelled, self.is_rejoining());
        let wanted = against.is_none().then_some(context.settings.watchdog_timeout);
        let feeds = !self.lets_bite();
        self.watchdog.advance(context, device, wanted, feeds);
    }

    fn tell_unable(&mut self, context: &mut StepContext<'_>) {
        let unable = self.unable();
        if unable == Some(Unable::NotLooked) || self.told_unable == Some(unable) {
            return;
        }
        self.told_unable = Some(unable);
        context.report(unable.map_or(Report::CanReboot, Report::CannotReboot));
    }

    fn moments(&self) -> impl Iterator<Item = Time> {
        let contact = self.contact.moments();
        let observation = self.observation.moments(self.contact.is_there());
        let watchdog = self.watchdog.moments(!self.lets_bite());
        contact.chain(self.answering.moments()).chain(observation).chain(watchdog).chain(self.work_moments())
    }
}
