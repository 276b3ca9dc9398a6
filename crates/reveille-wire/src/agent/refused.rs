//! A refusal as it travels: the reason by its code, and beside it what a person reads who does not know the list.
//!
//! ```text
//!  Reason ─▶ Refused {code, says, next, retry_after_s} ─▶ JSON ─▶ an agent's log, or a person with curl
//! ```
//!
//! Whoever refuses may say it in other words than the reason's own, where he knows more of the case; the code stays.

use serde::{Deserialize, Serialize};

use super::reason::Reason;
use super::text::Sentence;

/// A reason with all that a reader needs who does not know the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Why.
    #[serde(flatten)]
    pub reason: Reason,
    /// That, as a sentence.
    pub says: Sentence,
    /// What to do.
    pub next: Sentence,
    /// Ask again after so long, seconds; none: not before somebody did something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<u32>,
}

impl From<Reason> for Refused {
    fn from(reason: Reason) -> Self {
        let (says, next) = reason.words();
        let retry_after_s = reason.retry_after_s();
        Self { says: Sentence::cut(&says), next: Sentence::cut(next), retry_after_s, reason }
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}; {}", self.reason.code(), self.says, self.next)
    }
}
