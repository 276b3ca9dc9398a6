//! A refusal in JSON: the code of the reason, and text for a person who does not know the list of codes.
//!
//! ```text
//!  Reason ─▶ Refused {code, says, next, retry_after_s} ─▶ JSON ─▶ an agent's log, or a person with curl
//! ```
//!
//! The sender may replace the reason's own sentence where it knows more about the case; the code stays.

use serde::{Deserialize, Serialize};

use super::reason::Reason;
use super::text::Sentence;

/// A reason with the text for a reader who does not know the list of codes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The reason.
    #[serde(flatten)]
    pub reason: Reason,
    /// The reason as a sentence.
    pub says: Sentence,
    /// What to do.
    pub next: Sentence,
    /// The client asks again after this many seconds; `None`: not before an operator acted.
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
