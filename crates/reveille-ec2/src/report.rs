//! Failures in the engine's terms: a read without a result, a write that did or did not happen.
//!
//! This one module decides what a code means for the engine, so that a listing, a look and a change never disagree about it. The
//! rule for writes: a refused write did not happen. A write that got an error of the service itself, or no answer, may have
//! happened.

use std::sync::Arc;

use reveille_core::effect::{Outcome, ReadError, ReadErrorKind};
use reveille_core::model::time::Span;

use crate::client::SendError;
use crate::http::ExchangeError;
use crate::refusal::Refusal;

/// What is being read, for the text of a failure.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    /// `list instances`, `read instance i-0…`.
    what: String,
    /// The account and region.
    place: Arc<str>,
    /// What follows from the failure.
    consequence: &'static str,
    /// From 1; told from the second on.
    pub(crate) page: u32,
}

/// A failed listing says nothing about any machine.
pub(crate) const NO_LISTING: &str = "Nothing is judged from this listing.";
/// A failed look says nothing about the one thing it looked at.
pub(crate) const NO_ANSWER: &str = "Nothing is concluded from this.";

impl Reading {
    pub(crate) fn new(what: impl Into<String>, place: &Arc<str>, consequence: &'static str) -> Self {
        Self { what: what.into(), place: place.clone(), consequence, page: 1 }
    }

    pub(crate) fn error(&self, kind: ReadErrorKind, cause: &str) -> ReadError {
        let page = if self.page > 1 { format!(" (page {})", self.page) } else { String::new() };
        let text =
            format!("ec2: cannot {} of {}{page}: {cause}. {}", self.what, self.place, self.consequence);
        // A page after the first that fails leaves a listing with a hole in it, whatever the reason.
        let kind = if self.page > 1 { ReadErrorKind::Incomplete } else { kind };
        ReadError { kind, text: Arc::from(text), retry_after: None }
    }

    /// No answer at all, or the answer no.
    pub(crate) fn failed(&self, error: &SendError) -> ReadError {
        let kind = match error {
            SendError::Refused(refusal) => return self.refused(refusal),
            SendError::Credentials(_) | SendError::Unsigned(_) => ReadErrorKind::Unauthorized,
            SendError::Exchange(ExchangeError::TimedOut { .. }) => ReadErrorKind::TimedOut,
            SendError::Exchange(ExchangeError::TooLarge) => ReadErrorKind::Malformed,
            SendError::Exchange(_) => ReadErrorKind::Unavailable,
        };
        self.error(kind, &error.to_string())
    }

    fn refused(&self, refusal: &Refusal) -> ReadError {
        let kind = match refusal {
            _ if refusal.says_throttled() => ReadErrorKind::Throttled,
            _ if refusal.says_forbidden() => ReadErrorKind::Forbidden,
            _ if refusal.says_unknown_caller() => ReadErrorKind::Unauthorized,
            _ if refusal.is_of_the_service() || refusal.code.is_empty() => ReadErrorKind::Unavailable,
            _ => ReadErrorKind::Malformed,
        };
        ReadError { retry_after: refusal.retry_after, ..self.error(kind, &refusal.to_string()) }
    }

    /// Not now: asked again after so long it may be told.
    pub(crate) fn undecided(&self, cause: &str, again_in: Span) -> ReadError {
        ReadError { retry_after: Some(again_in), ..self.error(ReadErrorKind::Unavailable, cause) }
    }
}

/// What a write tries, for the text of its outcome.
#[derive(Clone, Debug)]
pub(crate) struct Writing {
    what: String,
}

impl Writing {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into() }
    }

    pub(crate) fn text(&self, cause: &str) -> Arc<str> {
        Arc::from(format!("ec2: cannot {}: {cause}", self.what))
    }

    /// Refused by us, before anything was sent.
    pub(crate) fn refuse(&self, cause: &str) -> Outcome {
        Outcome::Refused { text: self.text(cause) }
    }

    /// It is another than when it was decided upon.
    pub(crate) fn moved(&self, cause: &str) -> Outcome {
        Outcome::Moved { text: self.text(cause) }
    }

    /// What had to be read first could not be: nothing was changed.
    pub(crate) fn unread(&self, error: &ReadError) -> Outcome {
        match error.kind {
            ReadErrorKind::Forbidden | ReadErrorKind::Unauthorized => {
                Outcome::Denied { text: self.text(&error.text) }
            }
            _ => Outcome::Failed { text: self.text(&error.text), retry_after: error.retry_after },
        }
    }

    /// How a change that did not succeed ended.
    pub(crate) fn failed(&self, error: &SendError) -> Outcome {
        let text = self.text(&error.to_string());
        match error {
            SendError::Refused(refusal) => Self::refused(refusal, text),
            SendError::Credentials(_) | SendError::Unsigned(_) => Outcome::Failed { text, retry_after: None },
            SendError::Exchange(error) if error.never_sent() => Outcome::Failed { text, retry_after: None },
            SendError::Exchange(_) => Outcome::Unknown { text },
        }
    }

    fn refused(refusal: &Refusal, text: Arc<str>) -> Outcome {
        let retry_after = refusal.retry_after;
        match refusal {
            _ if refusal.says_throttled() => Outcome::Failed { text, retry_after },
            _ if refusal.says_limit() => Outcome::Limit { limit: None, text },
            _ if refusal.says_moved() => Outcome::Moved { text },
            _ if refusal.says_forbidden() || refusal.says_unknown_caller() => Outcome::Denied { text },
            _ if refusal.is_of_the_service() => Outcome::Unknown { text },
            // Not AWS's own words: something in between did not let it through.
            _ if refusal.code.is_empty() => Outcome::Failed { text, retry_after },
            _ => Outcome::Refused { text },
        }
    }
}
