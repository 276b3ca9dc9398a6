//! One HTTP exchange: a request out, status, headers and bounded body back, or exactly how far it got.
//!
//! ```text
//!  request ─▶ a free slot? ─▶ sent ─▶ status, headers ─▶ body, up to its bound ─▶ Reply
//!               NoSlot       NotSent      TimedOut, Lost        TooLarge
//! ```
//!
//! Knows nothing of credentials or services; what differs between APIs is a [`Dialect`]. [`ExchangeError`] keeps apart what a
//! caller must keep apart: a request that never left us, and one that may have been carried out. At most [`SLOTS`] exchanges run
//! at a time, each has a deadline, no redirect is followed (the credentials would go along), nothing is retried.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use reqwest::{Method, StatusCode, Url};
use reveille_core::effect::ReadErrorKind;
use reveille_core::model::id::RequestId;
use reveille_core::model::time::Span;
use thiserror::Error;
use tokio::sync::Semaphore;

use crate::failure::{Ending, Failure};
use crate::text::bounded;

/// Exchanges at a time.
const SLOTS: usize = 8;
/// No more than this is set aside because a header announces it.
const ROOM_MAX_BYTES: usize = 8 * 1024 * 1024;
/// A server that asks for more patience than this is asked again after this.
const RETRY_AFTER_MAX_S: i64 = 3600;
const REQUEST_ID_MAX_BYTES: usize = 80;

/// What differs between the HTTP APIs of clouds.
#[derive(Debug)]
pub struct Dialect {
    /// For whom requests wait, in errors: `cloud`, `account`.
    pub place: &'static str,
    /// An answer above this is no true one.
    pub body_max_bytes: usize,
    /// Headers with the operator's handle on an answer, the best first. Empty: it stands in the body.
    pub request_ids: &'static [&'static str],
    /// Headers that say how long to wait, beside `Retry-After`.
    pub retry_after: &'static [&'static str],
    /// What to do about a certificate that is not believed: texts that follow the TLS library's own words.
    pub certificates: CertificateAdvice,
}

/// What to do about a certificate that is not believed.
#[derive(Debug, Default)]
pub struct CertificateAdvice {
    /// Its authority is not known here.
    pub unknown_authority: &'static str,
    /// It is for another host.
    pub other_host: &'static str,
    /// Anything else, such as its age.
    pub other: &'static str,
}

impl CertificateAdvice {
    /// The TLS library's own words are all there is to go by.
    fn of(&self, error: &reqwest::Error) -> &'static str {
        let cause = innermost(error);
        if !cause.contains("certificate") {
            ""
        } else if ["UnknownIssuer", "BadSignature", "CaUsedAsEndEntity"]
            .iter()
            .any(|word| cause.contains(word))
        {
            self.unknown_authority
        } else if cause.contains("not valid for name") {
            self.other_host
        } else {
            self.other
        }
    }
}

/// What was exchanged so far. Counted up for the life of a connection; cheap enough to read at any time.
#[derive(Debug, Default)]
pub struct Traffic {
    calls: AtomicU64,
    retries: AtomicU64,
    logins: AtomicU64,
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
}

/// What was exchanged with one cloud so far, over its [`Transport`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficCount {
    /// Requests sent, logins among them.
    pub calls: u64,
    /// Those of them that were sent again because the one before was not answered, or answered "later".
    pub retries: u64,
    /// Logins tried.
    pub logins: u64,
    /// Bytes of request bodies.
    pub sent_bytes: u64,
    /// Bytes of answer bodies, unpacked.
    pub received_bytes: u64,
}

impl Traffic {
    /// The counts now.
    pub fn count(&self) -> TrafficCount {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        TrafficCount {
            calls: read(&self.calls),
            retries: read(&self.retries),
            logins: read(&self.logins),
            sent_bytes: read(&self.sent_bytes),
            received_bytes: read(&self.received_bytes),
        }
    }

    /// The next request is a repetition.
    pub fn count_retry(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    /// The next request is a login.
    pub fn count_login(&self) {
        self.logins.fetch_add(1, Ordering::Relaxed);
    }
}

/// How an exchange failed to give an answer.
#[derive(Debug, Error)]
pub enum ExchangeError {
    /// Nothing was sent: no address, connection refused, TLS not agreed.
    #[error("no connection: {}{advice}", innermost(source))]
    NotSent {
        /// What went wrong.
        source: reqwest::Error,
        /// What to do about it, where that is known.
        advice: &'static str,
    },
    /// Nothing was sent: too many other exchanges hang.
    #[error("nothing was sent: {SLOTS} other requests are still waiting for this {place}")]
    NoSlot {
        /// For whom they wait.
        place: &'static str,
    },
    /// Sent, as far as we know, and not answered in time.
    #[error("no answer within {} s", after.as_secs())]
    TimedOut {
        /// How long we waited.
        after: Duration,
    },
    /// Sent, at least in part, and then the connection broke.
    #[error("the connection broke: {}", innermost(source))]
    Lost {
        /// What went wrong.
        source: reqwest::Error,
    },
    /// The answer is larger than any true one.
    #[error("the answer is larger than {} MiB", max_bytes / 1024 / 1024)]
    TooLarge {
        /// The bound.
        max_bytes: usize,
    },
}

impl ExchangeError {
    /// True when the other side cannot have acted on it.
    const fn never_sent(&self) -> bool {
        matches!(self, Self::NotSent { .. } | Self::NoSlot { .. })
    }
}

impl Failure for ExchangeError {
    fn read_kind(&self) -> ReadErrorKind {
        match self {
            Self::TimedOut { .. } => ReadErrorKind::TimedOut,
            Self::TooLarge { .. } => ReadErrorKind::Malformed,
            Self::NotSent { .. } | Self::NoSlot { .. } | Self::Lost { .. } => ReadErrorKind::Unavailable,
        }
    }

    fn retry_after(&self) -> Option<Span> {
        None
    }

    fn ending(&self) -> Ending {
        if self.never_sent() { Ending::NotDone(None) } else { Ending::Unknown }
    }
}

/// The deepest cause says it best: `Connection refused (os error 111)`.
pub fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

/// What came back.
#[derive(Debug, Default)]
pub struct Reply {
    /// Its status.
    pub status: StatusCode,
    /// Its operator's handle on it, where a header says it.
    pub request: Option<RequestId>,
    /// Not before this long, when the other side said so.
    pub retry_after: Option<Span>,
    /// The other side's clock, to the second, when it sent this answer.
    pub date: Option<Timestamp>,
    /// From the request's beginning to its whole answer, on our clock.
    pub took: Duration,
    /// The whole body.
    pub body: Vec<u8>,
}

/// The way to one cloud.
#[derive(Debug)]
pub struct Transport {
    http: reqwest::Client,
    slots: Semaphore,
    deadline: Duration,
    dialect: &'static Dialect,
    traffic: Traffic,
}

impl Transport {
    /// Sends by this client, see [`crate::tls`]. `deadline` is the client's, for one request with its answer.
    pub fn new(http: reqwest::Client, deadline: Duration, dialect: &'static Dialect) -> Self {
        Self { http, slots: Semaphore::new(SLOTS), deadline, dialect, traffic: Traffic::default() }
    }

    /// What was exchanged so far.
    pub const fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Sends one request and reads the whole answer.
    ///
    /// # Errors
    /// See [`ExchangeError`]; an answer of any status is none.
    pub async fn exchange(
        &self,
        method: Method,
        url: Url,
        headers: HeaderMap,
        body: Option<Vec<u8>>,
    ) -> Result<Reply, ExchangeError> {
        self.exchange_with_headers(method, url, headers, body).await.map(|(reply, _)| reply)
    }

    /// As [`Self::exchange`], with all headers of the answer: a login's may carry the token.
    ///
    /// # Errors
    /// As [`Self::exchange`].
    pub async fn exchange_with_headers(
        &self,
        method: Method,
        url: Url,
        headers: HeaderMap,
        body: Option<Vec<u8>>,
    ) -> Result<(Reply, HeaderMap), ExchangeError> {
        let slot = tokio::time::timeout(self.deadline, self.slots.acquire()).await;
        let Ok(Ok(_slot)) = slot else { return Err(ExchangeError::NoSlot { place: self.dialect.place }) };
        self.traffic.calls.fetch_add(1, Ordering::Relaxed);
        let mut request = self.http.request(method, url).headers(headers);
        if let Some(body) = body {
            self.traffic.sent_bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
            request = request.body(body);
        }
        let begun = Instant::now();
        let mut response = request.send().await.map_err(|error| self.classify(error))?;
        // Room for what is announced: a page that grew by doubling would take up to twice its size.
        let announced = response.content_length().and_then(|length| usize::try_from(length).ok());
        let mut body = Vec::with_capacity(announced.unwrap_or_default().min(ROOM_MAX_BYTES));
        let max_bytes = self.dialect.body_max_bytes;
        while let Some(chunk) = response.chunk().await.map_err(|error| self.classify(error))? {
            if body.len() + chunk.len() > max_bytes {
                return Err(ExchangeError::TooLarge { max_bytes });
            }
            body.extend_from_slice(&chunk);
        }
        self.traffic.received_bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
        let headers = std::mem::take(response.headers_mut());
        let date = value(&headers, DATE.as_str()).and_then(http_date);
        let request = self.dialect.request_ids.iter().find_map(|name| value(&headers, name));
        let reply = Reply {
            status: response.status(),
            request: request.map(|id| RequestId::from(bounded(id, REQUEST_ID_MAX_BYTES))),
            retry_after: retry_after(&headers, self.dialect.retry_after, date),
            date,
            took: begun.elapsed(),
            body,
        };
        Ok((reply, headers))
    }

    fn classify(&self, error: reqwest::Error) -> ExchangeError {
        let source = error.without_url();
        if source.is_connect() || source.is_builder() {
            let advice = self.dialect.certificates.of(&source);
            ExchangeError::NotSent { source, advice }
        } else if source.is_timeout() {
            ExchangeError::TimedOut { after: self.deadline }
        } else {
            ExchangeError::Lost { source }
        }
    }
}

fn value<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim)
}

fn http_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::parse(text).ok().map(|zoned| zoned.timestamp())
}

/// Reads `Retry-After` and these headers. A date counts from the answer's own `Date`, so that two clocks are never mixed.
fn retry_after(headers: &HeaderMap, more: &[&'static str], date: Option<Timestamp>) -> Option<Span> {
    let seconds = std::iter::once(RETRY_AFTER.as_str()).chain(more.iter().copied()).find_map(|name| {
        let value = value(headers, name)?;
        if let Ok(seconds) = value.parse::<f64>() {
            return seconds.is_finite().then(|| seconds.ceil().clamp(0.0, RETRY_AFTER_MAX_S as f64) as i64);
        }
        Some((http_date(value)?.as_second() - date?.as_second()).clamp(0, RETRY_AFTER_MAX_S))
    })?;
    Some(Span::from_s(seconds))
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    const MORE: &[&str] = &["x-retry-after", "x-ratelimit-retry-after"];

    #[test]
    fn every_spelling_of_retry_after_is_read() {
        let date = http_date("Sat, 21 Nov 2026 10:00:00 GMT");
        assert!(date.is_some());
        let cases: [(&'static str, &'static str, Option<i64>); 8] = [
            ("retry-after", "7", Some(7)),
            ("x-retry-after", "12", Some(12)),
            ("x-ratelimit-retry-after", "0.4", Some(1)),
            ("retry-after", "Sat, 21 Nov 2026 10:00:30 GMT", Some(30)),
            ("retry-after", "Sat, 21 Nov 2026 09:00:00 GMT", Some(0)),
            ("retry-after", "99999999", Some(RETRY_AFTER_MAX_S)),
            ("retry-after", "soon", None),
            ("retry-later", "7", None),
        ];
        for (name, value, seconds) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            assert_eq!(retry_after(&headers, MORE, date), seconds.map(Span::from_s), "{name}: {value}");
        }
    }

    #[test]
    fn a_date_to_wait_for_means_nothing_without_the_clock_it_is_of() {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_static("Sat, 21 Nov 2026 10:00:30 GMT"));
        assert_eq!(retry_after(&headers, MORE, None), None);
    }
}
