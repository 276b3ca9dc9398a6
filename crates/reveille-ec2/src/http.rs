//! One HTTP exchange: a request out, status, headers and bounded body back, or exactly how far it got.
//!
//! Knows nothing of signatures or services. [`ExchangeError`] keeps apart what a caller must keep apart: a request that
//! never left us, and one that may have been carried out. At most [`SLOTS`] exchanges run at a time, each has a
//! deadline, no redirect is followed (a signature would go along), nothing is retried.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use reqwest::{StatusCode, Url};
use reveille_core::model::time::Span;
use thiserror::Error;
use tokio::sync::Semaphore;

const CONNECT_DEADLINE: Duration = Duration::from_secs(5);
const SLOTS: usize = 8;
/// A page of a thousand instances is about 8 MB.
const BODY_MAX: usize = 64 * 1024 * 1024;
/// No more than this is set aside because a header announces it.
const ROOM_MAX: usize = 8 * 1024 * 1024;
/// A server that asks for more patience than this is asked again after this.
const RETRY_AFTER_MAX_S: i64 = 3600;

/// What was exchanged with one account so far. Counted up for the life of a connection.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    calls: AtomicU64,
    retries: AtomicU64,
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
}

/// What was exchanged with one account so far. Requests for credentials are not among it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficCount {
    /// Requests sent.
    pub calls: u64,
    /// Those of them that were sent again because the one before was not answered, or answered "later".
    pub retries: u64,
    /// Bytes of request bodies.
    pub sent_bytes: u64,
    /// Bytes of answer bodies, unpacked.
    pub received_bytes: u64,
}

impl Traffic {
    /// The counts now.
    pub(crate) fn count(&self) -> TrafficCount {
        TrafficCount {
            calls: self.calls.load(Ordering::Relaxed),
            retries: self.retries.load(Ordering::Relaxed),
            sent_bytes: self.sent_bytes.load(Ordering::Relaxed),
            received_bytes: self.received_bytes.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn count_retry(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }
}

/// How an exchange failed to give an answer.
#[derive(Debug, Error)]
pub enum ExchangeError {
    /// Nothing was sent: no address, connection refused, TLS not agreed.
    #[error("no connection: {}", innermost(source))]
    NotSent {
        /// What went wrong.
        source: reqwest::Error,
    },
    /// Nothing was sent: too many other exchanges hang.
    #[error("nothing was sent: {SLOTS} other requests are still waiting for this account")]
    NoSlot,
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
    #[error("the answer is larger than {} MiB", BODY_MAX / 1024 / 1024)]
    TooLarge,
}

impl ExchangeError {
    /// True when the other side cannot have acted on it.
    pub(crate) const fn never_sent(&self) -> bool {
        matches!(self, Self::NotSent { .. } | Self::NoSlot)
    }
}

/// The deepest cause says it best: `Connection refused (os error 111)`.
pub(crate) fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    /// Not before this long, when the other side said so.
    pub(crate) retry_after: Option<Span>,
    /// The other side's clock, to the second, when it sent this answer.
    pub(crate) date: Option<Timestamp>,
    pub(crate) body: Vec<u8>,
}

/// The client of one account.
#[derive(Debug)]
pub(crate) struct Transport {
    http: reqwest::Client,
    slots: Semaphore,
    deadline: Duration,
    traffic: Arc<Traffic>,
}

/// A client with our deadlines. `direct`: past every proxy, for what is only reachable from this machine itself.
pub(crate) fn client(deadline: Duration, direct: bool) -> Result<reqwest::Client, reqwest::Error> {
    let builder = reqwest::Client::builder()
        .user_agent(concat!("reveille/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_DEADLINE)
        .timeout(deadline)
        .pool_idle_timeout(Duration::from_secs(50))
        .redirect(reqwest::redirect::Policy::none());
    let builder = if direct { builder.no_proxy() } else { builder };
    builder.build()
}

impl Transport {
    pub(crate) fn new(deadline: Duration) -> Result<Self, reqwest::Error> {
        let http = client(deadline, false)?;
        Ok(Self { http, slots: Semaphore::new(SLOTS), deadline, traffic: Arc::default() })
    }

    pub(crate) fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Posts one form and reads the whole answer.
    pub(crate) async fn exchange(
        &self,
        url: Url,
        headers: HeaderMap,
        body: String,
    ) -> Result<Reply, ExchangeError> {
        let slot = tokio::time::timeout(self.deadline, self.slots.acquire()).await;
        let Ok(Ok(_slot)) = slot else { return Err(ExchangeError::NoSlot) };
        self.traffic.calls.fetch_add(1, Ordering::Relaxed);
        self.traffic.sent_bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
        let request = self.http.post(url).headers(headers).body(body);
        let mut response = request.send().await.map_err(|error| self.classify(error))?;
        let announced = response.content_length().and_then(|length| usize::try_from(length).ok());
        let mut body = Vec::with_capacity(announced.unwrap_or_default().min(ROOM_MAX));
        while let Some(chunk) = response.chunk().await.map_err(|error| self.classify(error))? {
            if body.len() + chunk.len() > BODY_MAX {
                return Err(ExchangeError::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        self.traffic.received_bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::trim);
        Ok(Reply {
            status: response.status(),
            retry_after: header(RETRY_AFTER).and_then(retry_after),
            date: header(DATE).and_then(http_date),
            body,
        })
    }

    fn classify(&self, error: reqwest::Error) -> ExchangeError {
        let source = error.without_url();
        if source.is_connect() || source.is_builder() {
            ExchangeError::NotSent { source }
        } else if source.is_timeout() {
            ExchangeError::TimedOut { after: self.deadline }
        } else {
            ExchangeError::Lost { source }
        }
    }
}

/// At most `max` bytes of it, cut between characters.
pub(crate) fn bounded(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

fn http_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::parse(text).ok().map(|zoned| zoned.timestamp())
}

/// Whole seconds; AWS writes nothing else.
fn retry_after(text: &str) -> Option<Span> {
    let seconds: i64 = text.parse().ok()?;
    Some(Span::from_s(seconds.clamp(0, RETRY_AFTER_MAX_S)))
}
