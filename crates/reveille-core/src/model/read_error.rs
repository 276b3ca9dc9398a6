//! Why a read could not tell: what adapters say of a failed read, for the views and for people.
//!
//! A failed read never means "it is not there", which is an answer. What becomes of a source that fails, `observe::source` says.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::time::Span;

/// Why a read could not tell. Never "it is not there": that is an answer.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[error("{text}")]
pub struct ReadError {
    /// What kind of failure.
    pub kind: ReadErrorKind,
    /// What was tried, what went wrong, what comes next: one sentence, no secrets.
    pub text: Arc<str>,
    /// Not before this long, when the other side said so.
    #[serde(rename = "retryAfterMs", skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Span>,
}

/// Kinds of failed reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadErrorKind {
    /// The credentials were not accepted, also after logging in once more.
    Unauthorized,
    /// They were, and may not do this.
    Forbidden,
    /// Too many requests (429, 498).
    Throttled,
    /// The other side does not answer, or answers 5xx.
    Unavailable,
    /// No answer in time.
    TimedOut,
    /// A page was missing, repeated or cut: the whole listing is void.
    Incomplete,
    /// The answer could not be read.
    Malformed,
    /// The watch lost its place, and the adapter must list again.
    Gap,
}
