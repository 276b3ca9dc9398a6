//! One request that did not give what was asked for: what kind, in which words, and how far it came.
//!
//! Whatever can go wrong between us and the API server ends here, once: transport errors, refusals, time-outs, bodies
//! that cannot be read. A [`Failure`] becomes a [`ReadError`] for reads and an `Outcome` for calls (see `act`). How far
//! the request came ([`Reached`]) is kept because a call that was never sent did not happen, and one that was sent and
//! not answered may have.
//!
//! Errors of credential plugins are put into words here and not quoted: kube prints a plugin's whole output, and that
//! is where the token is.

use std::error::Error;
use std::fmt;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use kube::client::AuthError;
use reveille_core::effect::{ReadError, ReadErrorKind};
use reveille_core::model::time::Span;

/// Longest quotation of what the other side said, in bytes.
const QUOTE_MAX_BYTES: usize = 300;

/// Longest cause: a sentence of ours with a quotation of theirs and the server's address. It goes into logs and records.
const CAUSE_MAX_BYTES: usize = 1024;

/// A request that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What kind.
    pub(crate) kind: ReadErrorKind,
    /// What went wrong, as a clause: `connection refused (127.0.0.1:6443)`.
    pub(crate) cause: String,
    /// How long the server asks us to wait.
    pub(crate) retry_after: Option<Duration>,
    /// How far the request came.
    pub(crate) reached: Reached,
}

/// How far a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    /// It never left: no connection, no credentials, no valid request.
    NotSent,
    /// It may have arrived; no complete answer did.
    Unanswered,
    /// It was answered, at greater length than we read.
    TooLong,
    /// The server answered with this code.
    Answered {
        /// HTTP status.
        code: u16,
        /// True when the API server itself says, of the very object that was asked for, that it does not exist. A 404 of a
        /// proxy or of a wrong path is not that.
        missing: bool,
    },
}

impl Failure {
    /// A failure of this kind that no answer stands behind.
    pub(crate) fn new(kind: ReadErrorKind, reached: Reached, cause: impl Into<String>) -> Self {
        Self { kind, cause: first_line(&cause.into(), CAUSE_MAX_BYTES), retry_after: None, reached }
    }

    /// `what` came, and is not as this crate reads it. The parser's own words quote the field at which it stopped, which may have
    /// a megabyte, or be a secret; so only the place is told.
    pub(crate) fn unread(what: impl fmt::Display, error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        Self::malformed(format!("{what} cannot be read (line {line}, column {column})"))
    }

    /// The answer came and makes no sense.
    pub(crate) fn malformed(cause: impl Into<String>) -> Self {
        Self::new(ReadErrorKind::Malformed, Reached::Answered { code: 200, missing: false }, cause)
    }

    /// A list of several pages that does not fit together.
    pub(crate) fn incomplete(cause: impl Into<String>) -> Self {
        Self::new(ReadErrorKind::Incomplete, Reached::Answered { code: 200, missing: false }, cause)
    }

    /// The watch lost its place: only a new list tells what is there.
    pub(crate) fn gap(cause: impl Into<String>) -> Self {
        Self::new(ReadErrorKind::Gap, Reached::Answered { code: 410, missing: false }, cause)
    }

    /// No answer within the deadline.
    pub(crate) fn timed_out(after: Duration, server: &str) -> Self {
        let cause = format!("no answer within {} s ({server})", after.as_secs());
        Self::new(ReadErrorKind::TimedOut, Reached::Unanswered, cause)
    }

    /// The request could not be built.
    pub(crate) fn unsendable(error: &kube::core::request::Error) -> Self {
        Self::new(ReadErrorKind::Malformed, Reached::NotSent, format!("the request is not valid: {error}"))
    }

    /// What kube's client reports.
    pub(crate) fn of_client(error: &kube::Error, server: &str) -> Self {
        if let kube::Error::Auth(error) = error {
            return Self::new(ReadErrorKind::Unauthorized, Reached::NotSent, credentials(error));
        }
        Self::of_transport(error, server)
    }

    /// An error anywhere below HTTP: the connection, TLS, or a body that broke off.
    pub(crate) fn of_transport(error: &(dyn Error + 'static), server: &str) -> Self {
        let mut connecting = false;
        let mut io = None;
        let mut deepest: &(dyn Error + 'static) = error;
        for link in chain(error) {
            connecting |= link
                .downcast_ref::<hyper_util::client::legacy::Error>()
                .is_some_and(hyper_util::client::legacy::Error::is_connect);
            if let Some(found) = link.downcast_ref::<std::io::Error>() {
                io = Some(found.kind());
            }
            deepest = link;
        }
        let reached = if connecting { Reached::NotSent } else { Reached::Unanswered };
        let (kind, words) = match io {
            Some(ErrorKind::ConnectionRefused) => {
                (ReadErrorKind::Unavailable, "connection refused".to_owned())
            }
            Some(ErrorKind::ConnectionReset) => (ReadErrorKind::Unavailable, "connection reset".to_owned()),
            Some(ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted) => {
                (ReadErrorKind::Unavailable, "the server closed the connection".to_owned())
            }
            Some(ErrorKind::TimedOut) => (ReadErrorKind::TimedOut, "no connection in time".to_owned()),
            _ => (ReadErrorKind::Unavailable, cut(&deepest.to_string())),
        };
        Self::new(kind, reached, format!("{words} ({server})"))
    }

    /// A refusal. `words` is the server's message, or what its body holds instead.
    pub(crate) fn of_status(code: u16, words: &str, retry_after: Option<Duration>, missing: bool) -> Self {
        let kind = match code {
            401 => ReadErrorKind::Unauthorized,
            403 => ReadErrorKind::Forbidden,
            410 => ReadErrorKind::Gap,
            429 => ReadErrorKind::Throttled,
            408 | 504 => ReadErrorKind::TimedOut,
            500..=599 => ReadErrorKind::Unavailable,
            _ => ReadErrorKind::Malformed,
        };
        let name = http::StatusCode::from_u16(code).ok().and_then(|c| c.canonical_reason()).unwrap_or("?");
        let words = cut(words);
        let cause =
            if words.is_empty() { format!("{code} {name}") } else { format!("{code} {name}: {words}") };
        Self { kind, cause, retry_after, reached: Reached::Answered { code, missing } }
    }

    /// True when the API server itself says that the object does not exist.
    pub(crate) const fn is_missing(&self) -> bool {
        matches!(self.reached, Reached::Answered { missing: true, .. })
    }

    /// As a failed read: `what` was tried, and comes next in `next`, if anything does.
    pub(crate) fn read_error(&self, what: &str, next: Option<Duration>) -> ReadError {
        let mut text = format!("cluster: cannot {what}: {}", self.cause.trim_end_matches('.'));
        text.push_str(". No machine is marked as missing because of this.");
        if let Some(next) = next {
            let seconds = next.as_millis().div_ceil(1000).max(1);
            text.push_str(&format!(" Next try in {seconds} s."));
        }
        ReadError { kind: self.kind, text: Arc::from(text), retry_after: self.retry_after.map(Span::from) }
    }
}

/// The first line of a text, cut to a quotation's length at a character's border.
pub(crate) fn cut(text: &str) -> String {
    first_line(text, QUOTE_MAX_BYTES)
}

fn first_line(text: &str, most_bytes: usize) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    line[..line.floor_char_boundary(most_bytes)].to_owned()
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |link: &&'a (dyn Error + 'static)| (*link).source())
}

/// What went wrong with the credentials, without what they are.
pub(crate) fn credentials(error: &AuthError) -> String {
    let words = match error {
        AuthError::AuthExecRun { out, .. } => format!("the credential plugin failed ({})", out.status),
        AuthError::AuthExecStart(cause) => format!("the credential plugin cannot be started: {cause}"),
        AuthError::ReadTokenFile(cause, path) => {
            format!("the token file {} cannot be read: {cause}", path.display())
        }
        AuthError::MissingCommand => "the kubeconfig names a credential plugin without a command".to_owned(),
        AuthError::AuthExecParse(_) | AuthError::ParseTokenKey(_) | AuthError::ExecPluginFailed => {
            "the credential plugin's output cannot be read".to_owned()
        }
        _ => "the kubeconfig's credentials cannot be used".to_owned(),
    };
    format!("no credentials: {words}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_code_has_one_kind() {
        let table = [
            (401, ReadErrorKind::Unauthorized),
            (403, ReadErrorKind::Forbidden),
            (404, ReadErrorKind::Malformed),
            (408, ReadErrorKind::TimedOut),
            (410, ReadErrorKind::Gap),
            (429, ReadErrorKind::Throttled),
            (500, ReadErrorKind::Unavailable),
            (503, ReadErrorKind::Unavailable),
            (504, ReadErrorKind::TimedOut),
        ];
        for (code, kind) in table {
            assert_eq!(Failure::of_status(code, "", None, false).kind, kind, "{code}");
        }
    }

    #[test]
    fn failure_text_tells_the_attempt_the_error_and_next_try() {
        let refused = std::io::Error::from(ErrorKind::ConnectionRefused);
        let failure = Failure::of_transport(&refused, "127.0.0.1:6443");
        let error = failure.read_error("list nodes", Some(Duration::from_millis(3200)));
        assert_eq!(
            &*error.text,
            "cluster: cannot list nodes: connection refused (127.0.0.1:6443). No machine is marked as missing because of this. \
             Next try in 4 s."
        );
        assert_eq!(error.kind, ReadErrorKind::Unavailable);
    }

    #[test]
    fn a_quotation_is_one_line_and_ends_at_a_character() {
        let long = format!("{}ä\nsecond line", "x".repeat(QUOTE_MAX_BYTES - 1));
        assert_eq!(cut(&long), "x".repeat(QUOTE_MAX_BYTES - 1));
    }

    #[test]
    fn a_plugins_output_is_not_quoted() {
        use std::os::unix::process::ExitStatusExt;
        let out = std::process::Output {
            status: std::process::ExitStatus::from_raw(256),
            stdout: b"token: s3cret".to_vec(),
            stderr: b"s3cret".to_vec(),
        };
        let error = kube::Error::Auth(AuthError::AuthExecRun {
            cmd: "get-token --key s3cret".into(),
            out: Box::new(out),
        });
        let failure = Failure::of_client(&error, "api");
        assert!(!format!("{failure:?}").contains("s3cret"));
        assert_eq!(failure.cause, "no credentials: the credential plugin failed (exit status: 1)");
    }
}
