//! One try at a repair: the call, what came of it, and what a fresh read said.
//!
//! Whether a try counts, whether it may still come to pass and whether the next is the same again is decided from these types;
//! words of an answer are for people.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::blocker::Blocker;
use super::call::Call;
use super::id::{IntentId, RequestId};
use super::outcome::Outcome;
use super::time::Time;

/// One try: an intent, what came of its call, and what a fresh read said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Attempt {
    /// The intent's number.
    pub intent: IntentId,
    /// What was to be done.
    pub call: Call,
    /// When it was decided.
    pub at: Time,
    /// What came of the call, once known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// What a fresh read said, once there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readback: Option<Readback>,
    /// A fresh read showed that it took effect, whatever came of it: that it did not help is another readback.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub seen: bool,
    /// The request by which the cloud logs it, where no answer told that and the log tells that it is ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logged_as: Option<RequestId>,
}

/// What came of an attempt's call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Ending {
    /// It was never made: what it rested on was not so any more.
    Dropped {
        /// When.
        at: Time,
        /// Why.
        why: Why,
    },
    /// The performer that was to make the call says how it ended.
    Answered {
        /// When.
        at: Time,
        /// How.
        outcome: Outcome,
    },
}

/// Why a recorded intent was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Why {
    /// Its fault is over.
    FaultOver,
    /// Its fault looks cleared, and is watched until its dwell is over.
    FaultCleared,
    /// This blocks it by now.
    Held(Blocker),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FaultOver => f.write_str("the fault is over"),
            Self::FaultCleared => f.write_str("the fault cleared before the call"),
            Self::Held(blocker) => write!(f, "{blocker}"),
        }
    }
}

/// What a fresh read said of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Readback {
    /// When.
    pub at: Time,
    /// It took effect.
    pub held: bool,
    /// What was seen, for people.
    pub text: Arc<str>,
}

impl Ending {
    /// When it was known.
    pub const fn at(&self) -> Time {
        match self {
            Self::Dropped { at, .. } | Self::Answered { at, .. } => *at,
        }
    }

    /// Nothing happened, and nothing will of this call.
    const fn is_final_nothing(&self) -> bool {
        match self {
            Self::Dropped { .. } => true,
            Self::Answered { outcome, .. } => outcome.never_happened(),
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dropped { why, .. } => write!(f, "dropped: {why}"),
            Self::Answered { outcome, .. } => write!(f, "{outcome}"),
        }
    }
}

impl Attempt {
    /// It was decided, and nothing has come of it yet.
    pub const fn new(intent: IntentId, call: Call, at: Time) -> Self {
        Self { intent, call, at, ending: None, readback: None, seen: false, logged_as: None }
    }

    /// What the performer that was to make the call said; none while that is not known, and where the call was dropped.
    pub const fn outcome(&self) -> Option<&Outcome> {
        match &self.ending {
            Some(Ending::Answered { outcome, .. }) => Some(outcome),
            _ => None,
        }
    }

    /// The credential lacked the right: nothing happened.
    pub const fn denied(&self) -> bool {
        matches!(self.outcome(), Some(Outcome::Denied { .. }))
    }

    /// The credential may not, or the other side was in no state for it: this was no try of the remedy.
    pub const fn was_not_made(&self) -> bool {
        matches!(
            self.outcome(),
            Some(Outcome::Denied { .. } | Outcome::Moved { .. } | Outcome::NotSent { .. })
        )
    }

    /// What it rested on was not so any more when the ledger had it.
    pub const fn was_dropped(&self) -> bool {
        matches!(self.ending, Some(Ending::Dropped { .. }))
    }

    /// Nothing happened: the call was not made, or the other side did not take it. Or it is unknown whether it was made,
    /// and a fresh read found nothing of it. A call that was refused for good was a try.
    pub fn came_to_nothing(&self) -> bool {
        match &self.ending {
            None => false,
            Some(Ending::Dropped { .. }) => true,
            Some(Ending::Answered { outcome, .. }) => match outcome {
                Outcome::Unknown { .. } => {
                    !self.seen && self.readback.as_ref().is_some_and(|readback| !readback.held)
                }
                Outcome::Refused { .. } => false,
                outcome => outcome.denies(),
            },
        }
    }

    /// It may come to pass yet, for all that is known: it left us, was not turned down, and was not seen to take effect. What a
    /// gateway answers with 504 is carried out all the same, at once or minutes later.
    pub fn may_come_late(&self) -> bool {
        !self.seen && !self.ending.as_ref().is_some_and(Ending::is_final_nothing)
    }

    /// The machine booted by it, or may have, or may yet.
    pub fn may_boot(&self) -> bool {
        matches!(self.call, Call::Reboot(_) | Call::Start(_)) && (self.seen || self.may_come_late())
    }

    /// What a fresh read said of it.
    pub fn judge(&mut self, at: Time, held: bool, text: Arc<str>) {
        self.readback = Some(Readback { at, held, text });
        self.seen |= held;
    }

    /// A fresh read said that it took effect.
    pub const fn held(&self) -> bool {
        matches!(self.readback, Some(Readback { held: true, .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::call::Reboot;
    use crate::model::instance::Mark;
    use crate::model::roster::Ownership;

    fn reboot() -> Call {
        let owned = Ownership::of_cluster(Mark::Tag(Arc::from("k8s")));
        Call::Reboot(Reboot { cloud: "os".into(), instance: "7f3a".into(), hard: false, owned })
    }

    #[test]
    fn what_came_to_nothing_is_told_from_what_did_not() {
        let text = || Arc::from("x");
        let table = [
            (Outcome::Accepted { request: None }, false, false, true),
            (Outcome::AlreadySo { text: text() }, false, false, true),
            (Outcome::Refused { text: text() }, false, false, false),
            (Outcome::Denied { text: text() }, true, true, false),
            (Outcome::Moved { text: text() }, true, true, false),
            (Outcome::NotSent { text: text(), retry_after: None }, true, true, false),
            (Outcome::Limit { limit: None, text: text() }, true, true, false),
            (Outcome::Failed { text: text(), retry_after: None }, true, true, true),
            (Outcome::Unknown { text: text() }, false, true, true),
            (Outcome::Fenced {}, true, true, false),
        ];
        for (outcome, before_a_read, once_nothing_was_seen, late) in table {
            let at = Time::from_ms(0);
            let ending = Some(Ending::Answered { at, outcome: outcome.clone() });
            let bare = Attempt { ending, ..Attempt::new(IntentId(1), reboot(), at) };
            let mut read = bare.clone();
            read.judge(at, false, text());
            assert_eq!(bare.came_to_nothing(), before_a_read, "{outcome}");
            assert_eq!(read.came_to_nothing(), once_nothing_was_seen, "{outcome}");
            assert_eq!((bare.may_come_late(), read.may_come_late()), (late, late), "{outcome}");
            let mut seen = bare;
            seen.judge(at, true, text());
            assert!(!seen.may_come_late(), "{outcome}");
            // It took effect, and did not help: that was a try.
            seen.judge(at, false, text());
            assert!(!seen.may_come_late(), "{outcome}");
            assert_eq!(seen.came_to_nothing(), before_a_read, "{outcome}");
        }
    }
}
