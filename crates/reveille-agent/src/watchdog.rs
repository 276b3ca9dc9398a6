//! The watchdog: the agent sets it, reads it back and feeds it, and arms it only while this machine may be rebooted.
//!
//! ```text
//!  wanted ≠ proved ─▶ SetWatchdog ─▶ ReadWatchdog ─┬─ as wanted ─▶ proved, told
//!       ▲                                          └─ not, or silent ─▶ a pause, and again, so many times
//!       └── wanted changes: the tries start over ◀───────┘
//! ```
//!
//! The agent feeds every watchdog that may be armed, whether or not it should be armed. Otherwise a device that refuses
//! to close would reboot a machine that should keep running. Only a reboot that this agent has begun ends the feeding.

use reveille_core::model::time::{Span, Time};

use crate::effect::{Effect, Report};
use crate::model::{Device, Operation, OperationId, Outcome, WatchdogSeen};
use crate::step_context::StepContext;

/// The time limit for setting a device, and for reading it.
const DEVICE_WITHIN: Span = Span::from_s(5);
/// The first pause between two tries.
const AGAIN: Span = Span::from_s(10);
/// The longest pause between two tries.
const AGAIN_MAX: Span = Span::from_min(5);
/// The number of tries, until something changes.
const TRIES: u32 = 5;
/// The agent feeds the watchdog this often within its timeout: two feeds may be late.
const FEEDS: i64 = 3;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// The agent never read the watchdog, or its state differs from what was set.
    #[default]
    Unproved,
    /// The agent asked for this state.
    Setting(Operation, Option<Span>),
    /// The agent set this state, and is reading it back.
    Reading(Operation, Option<Span>),
    /// The agent read back the state that it set.
    Proved(Option<Span>),
}

/// What the agent knows about the watchdog.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watchdog {
    stage: Stage,
    /// The state that the watchdog should have.
    wanted: Option<Span>,
    /// The agent has read the watchdog at least once: before that, an earlier process may have armed it.
    is_known: bool,
    /// The watchdog may be armed, and the agent feeds it at this interval.
    fed_every: Option<Span>,
    next_feed_at: Option<Time>,
    tries: u32,
    again_at: Option<Time>,
    told_unproved: bool,
}

impl Watchdog {
    /// Armed, as read back, and meant to be armed.
    pub(crate) const fn is_armed(&self) -> bool {
        matches!(self.stage, Stage::Proved(Some(_))) && self.wanted.is_some()
    }

    /// Disarmed, as read back, and meant to be disarmed; or there is no device that could be armed.
    pub(crate) const fn is_disarmed(&self, device: Option<Device>) -> bool {
        matches!(device, Some(Device::Absent | Device::Forbidden))
            || (matches!(self.stage, Stage::Proved(None)) && self.wanted.is_none())
    }

    pub(crate) fn was_set(&mut self, context: &mut StepContext<'_>, id: OperationId, outcome: &Outcome) {
        let Stage::Setting(operation, to) = self.stage else { return };
        if operation.id != id {
            return;
        }
        match outcome {
            Outcome::Done => {
                let operation = context.fly(DEVICE_WITHIN);
                context.out.push(Effect::ReadWatchdog(operation.id, DEVICE_WITHIN));
                self.stage = Stage::Reading(operation, to);
            }
            Outcome::Failed(_) => self.fail(context),
        }
    }

    pub(crate) fn was_read(&mut self, context: &mut StepContext<'_>, id: OperationId, found: WatchdogSeen) {
        let Stage::Reading(operation, to) = self.stage else { return };
        if operation.id != id {
            return;
        }
        let proved = match found {
            WatchdogSeen::CannotTell => return self.fail(context),
            WatchdogSeen::Armed(timeout) => Some(timeout),
            WatchdogSeen::Disarmed => None,
        };
        self.is_known = true;
        self.feed_within(context, proved);
        if proved != to {
            return self.fail(context);
        }
        self.stage = Stage::Proved(proved);
        (self.tries, self.again_at, self.told_unproved) = (0, None, false);
        // If the agent wants another state by now, it sets the watchdog again and reports nothing.
        if proved == self.wanted {
            context.report(if proved.is_some() { Report::WatchdogArmed } else { Report::WatchdogDisarmed });
        }
    }

    fn fail(&mut self, context: &mut StepContext<'_>) {
        self.stage = Stage::Unproved;
        self.tries += 1;
        self.again_at = (self.tries < TRIES).then(|| context.now + AGAIN.doubled(self.tries - 1, AGAIN_MAX));
        if !std::mem::replace(&mut self.told_unproved, true) {
            context.report(Report::WatchdogUnproved);
        }
    }

    fn feed_within(&mut self, context: &StepContext<'_>, timeout: Option<Span>) {
        self.fed_every = timeout.map(|timeout| Span::from_ms((timeout.ms / FEEDS).max(1)));
        self.next_feed_at = self.fed_every.map(|_| context.now);
    }

    /// Does what is due. `wanted`: the timeout, while it may be armed. `feeds`: no reboot has begun.
    pub(crate) fn advance(
        &mut self,
        context: &mut StepContext<'_>,
        device: Option<Device>,
        wanted: Option<Span>,
        feeds: bool,
    ) {
        if device != Some(Device::Usable) {
            // A request of a moment ago may still be answered.
            let waits = |operation: Operation| !context.is_over(operation);
            if !matches!(self.stage, Stage::Setting(operation, _) | Stage::Reading(operation, _) if waits(operation))
            {
                *self = Self::default();
            }
            return;
        }
        match self.stage {
            Stage::Setting(operation, _) | Stage::Reading(operation, _) if context.is_over(operation) => {
                self.fail(context)
            }
            _ => {}
        }
        if wanted != self.wanted {
            // A try that is under way ends first, with its read-back; then the new state is tried.
            self.wanted = wanted;
            (self.tries, self.again_at) = (0, None);
        }
        let idle = match self.stage {
            Stage::Unproved => self.tries < TRIES && self.again_at.is_none_or(|at| at <= context.now),
            Stage::Proved(proved) => proved != self.wanted,
            Stage::Setting(..) | Stage::Reading(..) => false,
        };
        if idle {
            let operation = context.fly(DEVICE_WITHIN);
            context.out.push(Effect::SetWatchdog(operation.id, self.wanted, DEVICE_WITHIN));
            self.stage = Stage::Setting(operation, self.wanted);
            if self.wanted.is_some() {
                self.feed_within(context, self.wanted);
            }
        }
        if !self.is_known && self.fed_every.is_none() {
            self.feed_within(context, Some(context.settings.watchdog_timeout));
        }
        if !feeds {
            return;
        }
        if let Some(every) = self.fed_every
            && self.next_feed_at.is_none_or(|at| at <= context.now)
        {
            context.out.push(Effect::FeedWatchdog);
            self.next_feed_at = Some(context.now + every);
        }
    }

    /// A read or a set that was under way counts as failed. The device may have been fed too late, or not.
    pub(crate) fn slept(&mut self) {
        if !matches!(self.stage, Stage::Proved(_)) {
            self.stage = Stage::Unproved;
        }
        (self.again_at, self.next_feed_at) = (None, None);
    }

    pub(crate) fn moments(&self, feeds: bool) -> impl Iterator<Item = Time> {
        let waited = match self.stage {
            Stage::Setting(operation, _) | Stage::Reading(operation, _) => Some(operation.until),
            Stage::Unproved => self.again_at,
            Stage::Proved(_) => None,
        };
        waited.into_iter().chain(self.next_feed_at.filter(|_| feeds))
    }
}
