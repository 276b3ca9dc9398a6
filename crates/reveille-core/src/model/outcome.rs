//! How a call ended, as its performer says.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::id::RequestId;
use super::time::Span;

/// How a call ended. "I do not know" is an answer of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Outcome {
    /// The other side accepted it. Proves nothing about its effect.
    Accepted {
        /// The other side's request id, for its operator.
        #[serde(skip_serializing_if = "Option::is_none")]
        request: Option<RequestId>,
    },
    /// The other side says that it was so already.
    AlreadySo {
        /// In its words.
        text: Arc<str>,
    },
    /// It moved on since we read it (412, uid conflict): read again, then decide again. Nothing happened.
    Moved {
        /// In its words.
        text: Arc<str>,
    },
    /// A limit or quota is reached (400 RoutesExhausted, 409 OverQuota, 403 quota): stop, do not retry.
    Limit {
        /// The limit, where the answer names it.
        #[serde(skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
        /// In its words.
        text: Arc<str>,
    },
    /// The credential lacks the right, or is not accepted (401, a policy's 403, `UnauthorizedOperation`). Nothing happened.
    /// The right may come back at any time and nothing says when, so this ends no repair.
    Denied {
        /// In its words.
        text: Arc<str>,
    },
    /// Refused for good: trying the same again is useless (400, 404, locked).
    Refused {
        /// In its words.
        text: Arc<str>,
    },
    /// It did not happen, and may later (429, 503, connection refused).
    Failed {
        /// In its words.
        text: Arc<str>,
        /// Not before this long, when the other side said so.
        #[serde(rename = "retryAfterMs", skip_serializing_if = "Option::is_none")]
        retry_after: Option<Span>,
    },
    /// It never left us: that we lead, or are alone, was not proved in time, or this process is stopping. Nothing happened, and
    /// the other side was not even asked.
    NotSent {
        /// Why.
        text: Arc<str>,
        /// Not before this long.
        #[serde(rename = "retryAfterMs", skip_serializing_if = "Option::is_none")]
        retry_after: Option<Span>,
    },
    /// It is unknown whether the call happened (time-out after sending, connection lost, restart of the controller).
    Unknown {
        /// What is known.
        text: Arc<str>,
    },
    /// The performer's fencing number is another one: another process leads now. With braces, because serde takes any field of
    /// a variant without.
    Fenced {},
}

impl Outcome {
    /// It is certain that nothing happened.
    pub const fn never_happened(&self) -> bool {
        self.denies() && !matches!(self, Self::Failed { .. })
    }

    /// The other side says that the call had no effect. If the effect shows later all the same, another client may have
    /// caused it.
    pub const fn denies(&self) -> bool {
        matches!(
            self,
            Self::Moved { .. }
                | Self::Limit { .. }
                | Self::Denied { .. }
                | Self::Refused { .. }
                | Self::Failed { .. }
                | Self::NotSent { .. }
                | Self::Fenced {}
        )
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accepted { request: Some(request) } => write!(f, "accepted ({request})"),
            Self::Accepted { request: None } => f.write_str("accepted"),
            Self::AlreadySo { text } => write!(f, "was so already: {text}"),
            Self::Moved { text } => write!(f, "changed meanwhile: {text}"),
            Self::Limit { text, .. } => write!(f, "limit reached: {text}"),
            Self::Denied { text } => write!(f, "denied: {text}"),
            Self::Refused { text } => write!(f, "refused: {text}"),
            Self::Failed { text, .. } => write!(f, "failed: {text}"),
            Self::NotSent { text, .. } => write!(f, "not sent: {text}"),
            Self::Unknown { text } => write!(f, "unknown: {text}"),
            Self::Fenced {} => f.write_str("refused here: another process leads"),
        }
    }
}
