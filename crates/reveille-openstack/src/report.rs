//! Failures in the engine's terms: a read without a result, a write that did or did not happen.
//!
//! This one module decides what an HTTP status means, so that a listing, a look and a change never disagree about it. The rule
//! for writes: a refused write did not happen. A write that got an error of the service itself, or no answer, may have happened.

use std::sync::Arc;

use reqwest::StatusCode;
use reveille_core::effect::{Outcome, ReadError, ReadErrorKind};

use crate::catalog::Service;
use crate::client::SendError;
use crate::http::{ExchangeError, Reply};
use crate::refusal::Refusal;

/// What is being read, for the text of a failure.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    /// `list servers`, `read router 3f0c…`.
    pub(crate) what: String,
    /// The project's name.
    pub(crate) project: Arc<str>,
    /// What follows from the failure.
    pub(crate) consequence: &'static str,
    /// From 1; told from the second on.
    pub(crate) page: u32,
}

/// A failed listing says nothing about any machine.
pub(crate) const NO_LISTING: &str = "Nothing is judged from this listing.";
/// A failed look says nothing about the one thing it looked at.
pub(crate) const NO_ANSWER: &str = "Nothing is concluded from this.";

impl Reading {
    pub(crate) fn new(what: impl Into<String>, project: &Arc<str>, consequence: &'static str) -> Self {
        Self { what: what.into(), project: project.clone(), consequence, page: 1 }
    }

    pub(crate) fn error(&self, kind: ReadErrorKind, cause: &str) -> ReadError {
        let page = if self.page > 1 { format!(" (page {})", self.page) } else { String::new() };
        let text = format!(
            "openstack: cannot {} of project {}{page}: {cause}. {}",
            self.what, self.project, self.consequence
        );
        // A page after the first that fails leaves a listing with a hole in it, whatever the reason.
        let kind = if self.page > 1 { ReadErrorKind::Incomplete } else { kind };
        ReadError { kind, text: Arc::from(text), retry_after: None }
    }

    /// No answer at all.
    pub(crate) fn unanswered(&self, error: &SendError) -> ReadError {
        let (kind, retry_after) = match error {
            SendError::Login(error) => (error.kind(), error.retry_after()),
            SendError::Exchange(ExchangeError::TimedOut { .. }) => (ReadErrorKind::TimedOut, None),
            SendError::Exchange(ExchangeError::TooLarge) => (ReadErrorKind::Malformed, None),
            SendError::Exchange(_) => (ReadErrorKind::Unavailable, None),
        };
        ReadError { retry_after, ..self.error(kind, &error.to_string()) }
    }

    /// An answer, and it is no.
    pub(crate) fn refused(&self, refusal: &Refusal) -> ReadError {
        let kind = match refusal.status {
            _ if refusal.says_throttled() => ReadErrorKind::Throttled,
            StatusCode::UNAUTHORIZED => ReadErrorKind::Unauthorized,
            StatusCode::FORBIDDEN => ReadErrorKind::Forbidden,
            StatusCode::NOT_FOUND => ReadErrorKind::Unavailable,
            status if status.is_server_error() => ReadErrorKind::Unavailable,
            _ => ReadErrorKind::Malformed,
        };
        ReadError { retry_after: refusal.retry_after, ..self.error(kind, &refusal.to_string()) }
    }

    /// An answer that cannot be read. One that ends too early is incomplete rather than wrong.
    pub(crate) fn malformed(&self, error: &serde_json::Error) -> ReadError {
        let kind = if error.is_eof() { ReadErrorKind::Incomplete } else { ReadErrorKind::Malformed };
        // The parser's words may quote the answer, which may quote user data; its place is enough.
        let cause = format!(
            "the answer cannot be read as expected at line {}, column {}",
            error.line(),
            error.column()
        );
        self.error(kind, &cause)
    }
}

/// What a write tries, for the text of its outcome.
#[derive(Clone, Debug)]
pub(crate) struct Writing {
    /// `reboot instance 3f0c…`.
    pub(crate) what: String,
    pub(crate) service: Service,
}

impl Writing {
    pub(crate) fn new(service: Service, what: impl Into<String>) -> Self {
        Self { what: what.into(), service }
    }

    /// Reads how a single write ended.
    pub(crate) fn outcome(&self, sent: Result<Reply, SendError>) -> Outcome {
        match sent {
            Ok(reply) if reply.status.is_success() => Outcome::Accepted { request: reply.request },
            Ok(reply) => self.refused(&Refusal::read(&reply)),
            Err(error) => self.unanswered(&error),
        }
    }

    /// No answer: the request was not sent, or its outcome is not known.
    pub(crate) fn unanswered(&self, error: &SendError) -> Outcome {
        let text = self.text(&error.to_string());
        match error {
            SendError::Login(error) => Outcome::Failed { text, retry_after: error.retry_after() },
            SendError::Exchange(error) if error.never_sent() => Outcome::Failed { text, retry_after: None },
            SendError::Exchange(_) => Outcome::Unknown { text },
        }
    }

    /// An answer that is not a success.
    pub(crate) fn refused(&self, refusal: &Refusal) -> Outcome {
        let text = self.text(&refusal.to_string());
        match refusal.status.as_u16() {
            _ if refusal.says_limit() => Outcome::Limit { limit: refusal.number(), text },
            412 => Outcome::Moved { text },
            // Nova's conflict is with the present state of the instance. That can be a lock, which a user lifts again.
            409 if self.service == Service::Compute => Outcome::Moved { text },
            // Of the credential, not of the thing: a quota's 403 is told apart above.
            401 | 403 => Outcome::Denied { text },
            408 | 413 | 429 | 498 | 503 => Outcome::Failed { text, retry_after: refusal.retry_after },
            // Not from the service: a proxy on the way answered and did not pass the request on.
            404 if !refusal.says_absent(self.service) => Outcome::Failed { text, retry_after: None },
            501 => Outcome::Refused { text },
            500.. => Outcome::Unknown { text },
            300..=399 => Outcome::Failed { text, retry_after: None },
            _ => Outcome::Refused { text },
        }
    }

    /// It is not what the call rests on any more: nothing was sent.
    pub(crate) fn moved(&self, why: &str) -> Outcome {
        Outcome::Moved { text: self.text(why) }
    }

    /// It is refused here, before anything is sent.
    pub(crate) fn refuse(&self, why: &str) -> Outcome {
        Outcome::Refused { text: self.text(why) }
    }

    /// It did not happen, because something that had to be read first could not be.
    pub(crate) fn unread(&self, error: &ReadError) -> Outcome {
        let text = self.text(&error.text);
        match error.kind {
            ReadErrorKind::Forbidden | ReadErrorKind::Unauthorized => Outcome::Denied { text },
            _ => Outcome::Failed { text, retry_after: error.retry_after },
        }
    }

    pub(crate) fn text(&self, cause: &str) -> Arc<str> {
        Arc::from(format!("openstack: cannot {}: {cause}", self.what))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use reveille_core::model::time::Span;

    use super::*;

    fn refusal(status: u16, body: &str, retry_after: Option<Span>) -> Refusal {
        Refusal::read(&Reply {
            status: StatusCode::from_u16(status).unwrap(),
            request: None,
            retry_after,
            date: None,
            took: Duration::ZERO,
            body: body.as_bytes().to_vec(),
        })
    }

    #[test]
    fn a_status_has_one_meaning_for_reads() {
        use ReadErrorKind::{Forbidden, Malformed, Throttled, Unauthorized, Unavailable};
        let reading = Reading::new("list servers", &Arc::from("prod"), NO_LISTING);
        let cases = [
            (401, Unauthorized),
            (403, Forbidden),
            (413, Throttled),
            (429, Throttled),
            (498, Throttled),
            (500, Unavailable),
            (503, Unavailable),
            (404, Unavailable),
            (400, Malformed),
            (302, Malformed),
        ];
        for (status, kind) in cases {
            let error = reading.refused(&refusal(status, "", Some(Span::from_s(9))));
            assert_eq!((error.kind, error.retry_after), (kind, Some(Span::from_s(9))), "{status}");
        }
        let second = Reading { page: 2, ..reading };
        let error = second.refused(&refusal(429, "", Some(Span::from_s(20))));
        assert_eq!(error.kind, ReadErrorKind::Incomplete);
        assert_eq!(error.retry_after, Some(Span::from_s(20)));
        assert_eq!(
            &*error.text,
            "openstack: cannot list servers of project prod (page 2): 429 Too Many Requests. \
             Nothing is judged from this listing."
        );
    }

    #[test]
    fn a_status_has_one_meaning_for_writes() {
        let nova = |fault: &str, text: &str| format!(r#"{{"{fault}": {{"code": 0, "message": "{text}"}}}}"#);
        let neutron = |fault: &str, text: &str| {
            format!(r#"{{"NeutronError": {{"type": "{fault}", "message": "{text}", "detail": ""}}}}"#)
        };
        let (compute, network) = (Service::Compute, Service::Network);
        let cases = [
            (compute, 409, nova("conflictingRequest", "Instance a is locked"), "changed"),
            (
                compute,
                409,
                nova("conflictingRequest", "Cannot 'reboot' while in vm_state stopped"),
                "changed",
            ),
            (compute, 404, nova("itemNotFound", "no"), "refused"),
            (compute, 404, "<html>".to_owned(), "failed"),
            (compute, 403, nova("forbidden", "Policy doesn't allow it"), "denied"),
            (compute, 403, nova("forbidden", "Quota exceeded for cores"), "limit"),
            (compute, 500, nova("computeFault", "Unexpected API Error"), "unknown"),
            (compute, 501, nova("notImplemented", "no"), "refused"),
            (compute, 503, String::new(), "failed"),
            (compute, 504, String::new(), "unknown"),
            (network, 429, String::new(), "failed"),
            (network, 498, String::new(), "failed"),
            (network, 412, neutron("RevisionNumberConstraintFailed", "x"), "changed"),
            (network, 409, neutron("OverQuota", "x"), "limit"),
            (network, 400, neutron("RoutesExhausted", "exceeds the maximum 30."), "limit"),
            (network, 400, neutron("InvalidRoutes", "the nexthop is not connected"), "refused"),
            (network, 409, neutron("AddressPairAndPortSecurityRequired", "x"), "refused"),
            (network, 401, String::new(), "denied"),
        ];
        for (service, status, body, begins) in cases {
            let outcome = Writing::new(service, "do it").refused(&refusal(status, &body, None));
            assert!(outcome.to_string().starts_with(begins), "{status} {body}: {outcome}");
        }
    }
}
