//! What each task of an agent is made of, step by step, and how long each step may take.
//!
//! Data only. The token is there before anything is thrown away; the watchdog is disarmed before a join begins; the machine is
//! looked at afresh after the waiting, not before it; and the memory of what is to be done is durable before it is done.

use reveille_core::model::time::Span;

use crate::effect::Verb;
use crate::rejoin::Rung;
use crate::settings::Settings;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Reboot,
    Rejoin(Rung),
    /// The node stays: attempts are forgotten.
    Forget,
    /// Somebody takes the machine away, or thought better of it: that outlives this process.
    Remember,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Wait until the watchdog is proved disarmed.
    Disarm,
    /// Wait for an inspection that is asked for now.
    Look,
    /// Make the memory of it durable.
    Record,
    Reboot,
    Do(Verb),
    /// Wait until the node is Ready and stays.
    Verify,
    /// Make it durable that all is well.
    Settle,
}

/// Within this a memory is durable.
const RECORD_WITHIN: Span = Span::from_s(10);
/// Within this the watchdog is disarmed: a few tries.
const DISARM_WITHIN: Span = Span::from_min(1);
/// Within this a fresh inspection is there.
const LOOK_WITHIN: Span = Span::from_min(1);

impl Task {
    pub(crate) const fn steps(self) -> &'static [Step] {
        use Step::{Disarm, Do, Look, Record, Settle, Verify};
        use Verb::{Bootstrap, Join, RequestToken, Reset, RestartKubelet};
        match self {
            Self::Reboot => &[Record, Step::Reboot],
            Self::Rejoin(Rung::RestartKubelet) => &[Look, Record, Do(RestartKubelet), Verify, Settle],
            Self::Rejoin(Rung::NewToken) => {
                &[Do(RequestToken), Disarm, Look, Record, Do(Bootstrap), Verify, Settle]
            }
            Self::Rejoin(Rung::Reset) => {
                &[Do(RequestToken), Disarm, Look, Record, Do(Reset), Do(Join), Verify, Settle]
            }
            Self::Rejoin(Rung::Join) => &[Do(RequestToken), Disarm, Look, Record, Do(Join), Verify, Settle],
            Self::Forget => &[Settle],
            Self::Remember => &[Record],
        }
    }
}

/// Within this the performer of a verb answers; the verb has deadlines of its own, which are shorter.
const fn of_verb(verb: Verb) -> Span {
    match verb {
        Verb::RequestToken => Span::from_s(30),
        Verb::RestartKubelet | Verb::Bootstrap => Span::from_min(1),
        Verb::Reset => Span::from_min(3),
        Verb::Join => Span::from_min(5),
        // The settings say.
        Verb::RebootByWatchdog | Verb::RebootBySystem => Span::ZERO,
    }
}

impl Step {
    /// How long it may take.
    pub(crate) fn within(self, settings: &Settings) -> Span {
        match self {
            Self::Disarm => DISARM_WITHIN,
            Self::Look => LOOK_WITHIN,
            Self::Record | Self::Settle => RECORD_WITHIN,
            Self::Reboot => settings.reboot_within,
            Self::Do(verb) => of_verb(verb),
            // It has its dwell after the last moment at which it may come.
            Self::Verify => settings.back_within + settings.dwell,
        }
    }
}
