//! The steps of each task of an agent, and the time limit of each step.
//!
//! Data only. The agent has the token before it throws anything away. It disarms the watchdog before a join begins. It
//! inspects the machine after a wait, not before. The memory of an act is durable before the act.

use reveille_core::model::time::Span;

use crate::effect::Verb;
use crate::rejoin::RepairStep;
use crate::settings::Settings;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Reboot,
    Rejoin(RepairStep),
    /// The Node stays: the agent forgets its attempts.
    Forget,
    /// An operator or a controller removes the machine, or took the removal back: the memory of that outlives this
    /// process.
    Remember,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Wait until the watchdog is proved disarmed.
    Disarm,
    /// Wait for an inspection that the agent asks for now.
    Look,
    /// Make the memory of the act durable.
    Record,
    Reboot,
    Do(Verb),
    /// Wait until the Node is Ready and stays so.
    Verify,
    /// Make it durable that the Node is healthy.
    Settle,
}

/// The time limit for a durable memory.
const RECORD_WITHIN: Span = Span::from_s(10);
/// The time limit for disarming the watchdog: a few tries.
const DISARM_WITHIN: Span = Span::from_min(1);
/// The time limit for a new inspection.
const LOOK_WITHIN: Span = Span::from_min(1);

impl Task {
    pub(crate) const fn steps(self) -> &'static [Step] {
        use Step::{Disarm, Do, Look, Record, Settle, Verify};
        use Verb::{Bootstrap, Join, RequestToken, Reset, RestartKubelet};
        match self {
            Self::Reboot => &[Record, Step::Reboot],
            Self::Rejoin(RepairStep::RestartKubelet) => &[Look, Record, Do(RestartKubelet), Verify, Settle],
            Self::Rejoin(RepairStep::NewToken) => {
                &[Do(RequestToken), Disarm, Look, Record, Do(Bootstrap), Verify, Settle]
            }
            Self::Rejoin(RepairStep::Reset) => {
                &[Do(RequestToken), Disarm, Look, Record, Do(Reset), Do(Join), Verify, Settle]
            }
            Self::Rejoin(RepairStep::Join) => {
                &[Do(RequestToken), Disarm, Look, Record, Do(Join), Verify, Settle]
            }
            Self::Forget => &[Settle],
            Self::Remember => &[Record],
        }
    }
}

/// The time limit for the process's answer to a verb; the verb has its own deadlines, which are shorter.
const fn of_verb(verb: Verb) -> Span {
    match verb {
        Verb::RequestToken => Span::from_s(30),
        Verb::RestartKubelet | Verb::Bootstrap => Span::from_min(1),
        Verb::Reset => Span::from_min(3),
        Verb::Join => Span::from_min(5),
        // The settings give the time limit.
        Verb::RebootByWatchdog | Verb::RebootBySystem => Span::ZERO,
    }
}

impl Step {
    /// The step's time limit.
    pub(crate) fn within(self, settings: &Settings) -> Span {
        match self {
            Self::Disarm => DISARM_WITHIN,
            Self::Look => LOOK_WITHIN,
            Self::Record | Self::Settle => RECORD_WITHIN,
            Self::Reboot => settings.reboot_within,
            Self::Do(verb) => of_verb(verb),
            // The Node has its dwell after the last moment at which it may come back.
            Self::Verify => settings.back_within + settings.dwell,
        }
    }
}
