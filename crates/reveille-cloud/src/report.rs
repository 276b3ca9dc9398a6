//! Failures in the engine's terms: a read without a result, a change that did or did not happen.
//!
//! ```text
//!  an adapter's error: Failure ─┬─ Reading::failed ─▶ ReadError, with what was read, where, on which page
//!                               └─ Writing::failed ─▶ Outcome, with what was tried
//! ```
//!
//! An adapter says once, in its [`Failure`], what its service's words mean, so that a listing, a look and a change never
//! disagree about it. The rule for changes: a refused change did not happen. A change that got an error of the service itself, or
//! no answer, may have happened. No code or status of a service is known here.

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;

use reveille_core::effect::{Outcome, ReadError, ReadErrorKind};
use reveille_core::model::id::RequestId;
use reveille_core::model::instance::Mark;
use reveille_core::model::roster::Ownership;
use reveille_core::model::time::Span;
use serde::Deserialize;
use thiserror::Error;

use crate::failure::{Ending, Failure};
use crate::http::ExchangeError;
use crate::text::message;

/// Why a request had no success: `A` is why there were no credentials for it, `R` the service's refusal.
#[derive(Debug, Error)]
pub enum RequestError<A, R> {
    /// No credentials: the request was not sent, or refused for their sake and not carried out.
    #[error("{0}")]
    Unauthenticated(#[source] A),
    /// The exchange failed.
    #[error("{0}")]
    Exchange(#[source] ExchangeError),
    /// The answer is no.
    #[error("{0}")]
    Refused(#[source] R),
}

impl<A, R> RequestError<A, R> {
    /// The refusal, when it is one.
    pub const fn refusal(&self) -> Option<&R> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Unauthenticated(_) | Self::Exchange(_) => None,
        }
    }
}

impl<A: Failure + Error + 'static, R: Failure + Error + 'static> RequestError<A, R> {
    fn cause(&self) -> &dyn Failure {
        match self {
            Self::Unauthenticated(error) => error,
            Self::Exchange(error) => error,
            Self::Refused(refusal) => refusal,
        }
    }
}

impl<A: Failure + Error + 'static, R: Failure + Error + 'static> Failure for RequestError<A, R> {
    fn read_kind(&self) -> ReadErrorKind {
        self.cause().read_kind()
    }

    fn retry_after(&self) -> Option<Span> {
        self.cause().retry_after()
    }

    fn ending(&self) -> Ending {
        self.cause().ending()
    }
}

/// Where an adapter reads and changes: one project, one account.
#[derive(Clone, Debug)]
pub struct Place {
    /// The adapter's name, with which its texts begin: `openstack`.
    cloud: &'static str,
    /// `project prod`.
    name: Arc<str>,
}

impl Place {
    /// `cloud` begins every text; `name` stands in those about reads, as in "cannot list servers of …".
    pub fn new(cloud: &'static str, name: impl Into<Arc<str>>) -> Self {
        Self { cloud, name: name.into() }
    }

    /// A listing: `list servers`. A failed one says nothing about any machine.
    pub fn listing(&self, what: impl Into<String>) -> Reading {
        self.reading(what, "Nothing is judged from this listing.")
    }

    /// A look at one thing: `read router 3f0c…`. A failed one says nothing about it.
    pub fn look(&self, what: impl Into<String>) -> Reading {
        self.reading(what, "Nothing is concluded from this.")
    }

    /// A read without which there is no connection.
    pub fn connecting(&self, what: impl Into<String>) -> Reading {
        self.reading(what, "Nothing is done there.")
    }

    fn reading(&self, what: impl Into<String>, consequence: &'static str) -> Reading {
        Reading { what: what.into(), place: self.clone(), consequence, page: 1 }
    }

    /// A change: `reboot instance 3f0c…`.
    pub fn writing(&self, what: impl Into<String>) -> Writing {
        Writing { what: what.into(), cloud: self.cloud }
    }
}

/// What is being read, for the text of a failure.
#[derive(Clone, Debug)]
pub struct Reading {
    what: String,
    place: Place,
    /// What follows from the failure.
    consequence: &'static str,
    /// From 1; told from the second on.
    pub(crate) page: u32,
}

impl Reading {
    /// A failure of this kind.
    pub fn error(&self, kind: ReadErrorKind, cause: &str) -> ReadError {
        let page = if self.page > 1 { format!(" (page {})", self.page) } else { String::new() };
        let Place { cloud, name } = &self.place;
        let text = format!("{cloud}: cannot {} of {name}{page}: {cause}. {}", self.what, self.consequence);
        // A page after the first that fails leaves a listing with a hole in it, whatever the reason.
        let kind = if self.page > 1 { ReadErrorKind::Incomplete } else { kind };
        ReadError { kind, text: Arc::from(text), retry_after: None }
    }

    /// No answer, or the answer no.
    pub fn failed(&self, failure: &impl Failure) -> ReadError {
        let error = self.error(failure.read_kind(), &failure.to_string());
        ReadError { retry_after: failure.retry_after(), ..error }
    }

    /// Not now: asked again after so long it may be told.
    pub fn undecided(&self, cause: &str, again_in: Span) -> ReadError {
        ReadError { retry_after: Some(again_in), ..self.error(ReadErrorKind::Unavailable, cause) }
    }

    /// Reads an answer in JSON.
    ///
    /// # Errors
    /// See [`Self::malformed`].
    pub fn json<'a, T: Deserialize<'a>>(&self, body: &'a [u8]) -> Result<T, ReadError> {
        serde_json::from_slice(body).map_err(|error| self.malformed(&error))
    }

    /// Whether the answer is about the thing that was asked for. A cache or a gateway in between may give the answer to another
    /// question, and its marks would then prove whose this thing is.
    ///
    /// # Errors
    /// When it is about another thing.
    pub fn same(&self, asked: &str, answered: &str) -> Result<(), ReadError> {
        match answered.eq_ignore_ascii_case(asked) {
            true => Ok(()),
            false => {
                let cause = format!(
                    "the answer is about {}: something in between may have answered",
                    message(answered)
                );
                Err(self.error(ReadErrorKind::Malformed, &cause))
            }
        }
    }

    /// An answer in JSON that cannot be read. One that ends too early is incomplete rather than wrong.
    pub fn malformed(&self, error: &serde_json::Error) -> ReadError {
        let kind = if error.is_eof() { ReadErrorKind::Incomplete } else { ReadErrorKind::Malformed };
        // The parser's words may quote the answer, which may quote user data; its place is enough.
        let (line, column) = (error.line(), error.column());
        self.error(kind, &format!("the answer cannot be read as expected at line {line}, column {column}"))
    }
}

/// What a change tries, for the text of its outcome.
#[derive(Clone, Debug)]
pub struct Writing {
    what: String,
    cloud: &'static str,
}

impl Writing {
    /// "cannot …", and why.
    pub fn text(&self, cause: &str) -> Arc<str> {
        Arc::from(format!("{}: cannot {}: {cause}", self.cloud, self.what))
    }

    /// How a single request ended; a success gives the operator's handle on it, where the answer says it.
    pub fn outcome(&self, sent: Result<Option<RequestId>, impl Failure>) -> Outcome {
        match sent {
            Ok(request) => Outcome::Accepted { request },
            Err(failure) => self.failed(&failure),
        }
    }

    /// No answer, or the answer no.
    pub fn failed(&self, failure: &impl Failure) -> Outcome {
        let text = self.text(&failure.to_string());
        match failure.ending() {
            Ending::NotDone(retry_after) => Outcome::Failed { text, retry_after },
            Ending::Unknown => Outcome::Unknown { text },
            Ending::Denied => Outcome::Denied { text },
            Ending::Limit(limit) => Outcome::Limit { limit, text },
            Ending::Moved => Outcome::Moved { text },
            Ending::Refused => Outcome::Refused { text },
        }
    }

    /// It is not what the call rests on any more: nothing was sent.
    pub fn moved(&self, cause: &str) -> Outcome {
        Outcome::Moved { text: self.text(cause) }
    }

    /// It is refused here, before anything is sent.
    pub fn refuse(&self, cause: &str) -> Outcome {
        Outcome::Refused { text: self.text(cause) }
    }

    /// It did not happen, because something that had to be read first could not be.
    pub fn unread(&self, error: &ReadError) -> Outcome {
        let text = self.text(&error.text);
        match error.kind {
            ReadErrorKind::Forbidden | ReadErrorKind::Unauthorized => Outcome::Denied { text },
            _ => Outcome::Failed { text, retry_after: error.retry_after },
        }
    }

    /// Whether a machine that was just read carries the marks on which the call rests. `noun` is the cloud's word for it. An
    /// operator who cuts a machine off takes its marks away, and no listing need have shown that yet.
    ///
    /// # Errors
    /// The outcome of the call, when a mark is missing: nothing is sent then.
    pub fn owned(&self, noun: &str, marks: &BTreeSet<Mark>, owned: &Ownership) -> Result<(), Outcome> {
        match owned.lacking(marks) {
            Some(mark) => Err(self.moved(&format!("the {noun} does not carry {mark}"))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    struct Busy;

    impl fmt::Display for Busy {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("429 Too Many Requests")
        }
    }

    impl Failure for Busy {
        fn read_kind(&self) -> ReadErrorKind {
            ReadErrorKind::Throttled
        }

        fn retry_after(&self) -> Option<Span> {
            Some(Span::from_s(20))
        }

        fn ending(&self) -> Ending {
            Ending::NotDone(self.retry_after())
        }
    }

    #[test]
    fn a_failure_says_what_was_tried_where_and_what_follows() {
        let place = Place::new("cloud", "project prod");
        let first = place.listing("list servers").failed(&Busy);
        assert_eq!((first.kind, first.retry_after), (ReadErrorKind::Throttled, Some(Span::from_s(20))));
        assert_eq!(
            &*first.text,
            "cloud: cannot list servers of project prod: 429 Too Many Requests. Nothing is judged from this listing."
        );
        let second = Reading { page: 2, ..place.look("read router r1") }.failed(&Busy);
        assert_eq!((second.kind, second.retry_after), (ReadErrorKind::Incomplete, Some(Span::from_s(20))));
        assert_eq!(
            &*second.text,
            "cloud: cannot read router r1 of project prod (page 2): 429 Too Many Requests. Nothing is concluded from this."
        );
        let outcome = place.writing("reboot instance a").failed(&Busy);
        let text = Arc::from("cloud: cannot reboot instance a: 429 Too Many Requests");
        assert_eq!(outcome, Outcome::Failed { text, retry_after: Some(Span::from_s(20)) });
    }
}
