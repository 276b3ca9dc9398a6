//! One HTTP exchange: a request out, status, headers and bounded body back, or exactly how far it got.
//!
//! Knows nothing of tokens or services. [`ExchangeError`] keeps apart what a caller must keep apart: a request that
//! never left us, and one that may have been carried out. At most [`SLOTS`] exchanges run at a time, each has a
//! deadline, no redirect is followed (a token would go along), nothing is retried.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use reqwest::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};
use reqwest::{Certificate, Identity, Method, StatusCode, Url};
use reveille_core::model::id::RequestId;
use reveille_core::model::time::Span;
use thiserror::Error;
use tokio::sync::Semaphore;

use crate::clouds::Tls;

const CONNECT_DEADLINE: Duration = Duration::from_secs(5);
const SLOTS: usize = 8;
/// A page of a thousand servers is about 3 MB; ports of a very large project, 40 MB.
const BODY_MAX: usize = 96 * 1024 * 1024;
/// No more than this is set aside because a header announces it.
const ROOM_MAX: usize = 8 * 1024 * 1024;
/// A server that asks for more patience than this is asked again after this.
const RETRY_AFTER_MAX_S: i64 = 3600;

/// What was exchanged with one cloud so far. Counted up for the life of a connection; cheap enough to read at any time.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    calls: AtomicU64,
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
    logins: AtomicU64,
}

/// What was exchanged with one cloud so far, logins included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficCount {
    /// Requests sent, logins among them.
    pub calls: u64,
    /// Bytes of request bodies.
    pub sent_bytes: u64,
    /// Bytes of answer bodies, unpacked.
    pub received_bytes: u64,
    /// Logins tried.
    pub logins: u64,
}

impl Traffic {
    /// The counts now.
    pub(crate) fn count(&self) -> TrafficCount {
        TrafficCount {
            calls: self.calls.load(Ordering::Relaxed),
            sent_bytes: self.sent_bytes.load(Ordering::Relaxed),
            received_bytes: self.received_bytes.load(Ordering::Relaxed),
            logins: self.logins.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn count_login(&self) {
        self.logins.fetch_add(1, Ordering::Relaxed);
    }
}

/// How an exchange failed to give an answer.
#[derive(Debug, Error)]
pub enum ExchangeError {
    /// Nothing was sent: no address, connection refused, TLS not agreed.
    #[error("no connection: {}{}", innermost(source), advice(source))]
    NotSent {
        /// What went wrong.
        source: reqwest::Error,
    },
    /// Nothing was sent: too many other exchanges hang.
    #[error("nothing was sent: {SLOTS} other requests are still waiting for this cloud")]
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

/// What to do about a certificate that is not believed. The TLS library's own words are all there is to go by here.
fn advice(error: &reqwest::Error) -> &'static str {
    let cause = innermost(error);
    if !cause.contains("certificate") {
        ""
    } else if ["UnknownIssuer", "BadSignature", "CaUsedAsEndEntity"].iter().any(|word| cause.contains(word)) {
        ". Name its authority with cacert in clouds.yaml (or OS_CACERT)"
    } else if cause.contains("not valid for name") {
        ". The certificate is not for this host: correct auth_url in clouds.yaml, or the endpoints in the catalogue"
    } else {
        ". The cloud's operator has to renew or correct it"
    }
}

/// Why no client could be made.
#[derive(Debug, Error)]
pub enum TransportError {
    /// A certificate file cannot be read.
    #[error("cannot read certificate file {path}: {source}")]
    Read {
        /// Which.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A CA file holds no certificate. TLS would then trust no server, and each refusal would blame the cloud.
    #[error("certificate file {path} holds no certificate; it has to hold the cloud's authority in PEM form")]
    Empty {
        /// Which.
        path: String,
    },
    /// A certificate file holds no certificate or key that can be used, or TLS cannot be set up.
    #[error("cannot set up TLS ({what}): {}", innermost(source))]
    Setup {
        /// With what.
        what: String,
        /// Why.
        source: reqwest::Error,
    },
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) request: Option<RequestId>,
    /// Not before this long, when the other side said so.
    pub(crate) retry_after: Option<Span>,
    /// The other side's clock, to the second, when it sent this answer.
    pub(crate) date: Option<Timestamp>,
    /// From the request's beginning to its whole answer, on our clock.
    pub(crate) took: Duration,
    pub(crate) body: Vec<u8>,
}

/// The client of one cloud.
#[derive(Debug)]
pub(crate) struct Transport {
    http: reqwest::Client,
    slots: Semaphore,
    deadline: Duration,
    traffic: Arc<Traffic>,
}

impl Transport {
    pub(crate) fn new(tls: &Tls, deadline: Duration) -> Result<Self, TransportError> {
        let read = |path: &std::path::Path| {
            std::fs::read(path)
                .map_err(|source| TransportError::Read { path: path.display().to_string(), source })
        };
        let setup = |what: String| move |source| TransportError::Setup { what, source };
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("reveille/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_DEADLINE)
            .timeout(deadline)
            .pool_idle_timeout(Duration::from_secs(50))
            .redirect(reqwest::redirect::Policy::none());
        if let Some(path) = &tls.authority {
            let certificates =
                Certificate::from_pem_bundle(&read(path)?).map_err(setup(path.display().to_string()))?;
            if certificates.is_empty() {
                return Err(TransportError::Empty { path: path.display().to_string() });
            }
            // As for the OpenStack client: the authority that is named is the only one.
            builder = builder.tls_certs_only(certificates);
        }
        if let Some((certificate, key)) = &tls.identity {
            let mut pem = read(certificate)?;
            if key != certificate {
                pem.push(b'\n');
                pem.extend(read(key)?);
            }
            let identity = Identity::from_pem(&pem).map_err(setup(certificate.display().to_string()))?;
            builder = builder.identity(identity);
        }
        if !tls.verify {
            builder = builder.tls_danger_accept_invalid_certs(true);
        }
        let http = builder.build().map_err(setup("client".to_owned()))?;
        Ok(Self { http, slots: Semaphore::new(SLOTS), deadline, traffic: Arc::default() })
    }

    pub(crate) fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    /// Sends one request and reads the whole answer.
    pub(crate) async fn exchange(
        &self,
        method: Method,
        url: Url,
        headers: HeaderMap,
        body: Option<Vec<u8>>,
    ) -> Result<Reply, ExchangeError> {
        self.exchange_with_headers(method, url, headers, body).await.map(|(reply, _)| reply)
    }

    /// As [`Self::exchange`], with all headers of the answer: a login's carry the token.
    pub(crate) async fn exchange_with_headers(
        &self,
        method: Method,
        url: Url,
        headers: HeaderMap,
        body: Option<Vec<u8>>,
    ) -> Result<(Reply, HeaderMap), ExchangeError> {
        let slot = tokio::time::timeout(self.deadline, self.slots.acquire()).await;
        let Ok(Ok(_slot)) = slot else { return Err(ExchangeError::NoSlot) };
        self.traffic.calls.fetch_add(1, Ordering::Relaxed);
        let mut request = self.http.request(method, url).headers(headers);
        if let Some(body) = body {
            self.traffic.sent_bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
            request = request.header("content-type", "application/json").body(body);
        }
        let begun = Instant::now();
        let mut response = request.send().await.map_err(|error| self.classify(error))?;
        // Room for what is announced: a page that grew by doubling would take up to twice its size.
        let announced = response.content_length().and_then(|length| usize::try_from(length).ok());
        let mut body = Vec::with_capacity(announced.unwrap_or_default().min(ROOM_MAX));
        while let Some(chunk) = response.chunk().await.map_err(|error| self.classify(error))? {
            if body.len() + chunk.len() > BODY_MAX {
                return Err(ExchangeError::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        self.traffic.received_bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
        let headers = response.headers();
        let date = text(headers, &DATE).and_then(http_date);
        let reply = Reply {
            status: response.status(),
            request: ["x-openstack-request-id", "x-compute-request-id"]
                .into_iter()
                .find_map(|name| text(headers, &HeaderName::from_static(name)))
                .map(|id| RequestId::from(bounded(id, 80))),
            retry_after: retry_after(headers, date),
            date,
            took: begun.elapsed(),
            body,
        };
        Ok((reply, response.headers().clone()))
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

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim)
}

/// At most `max` bytes of it, cut between characters.
pub(crate) fn bounded(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

fn http_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::parse(text).ok().map(|zoned| zoned.timestamp())
}

/// Reads the three headers in use. A date counts from the answer's own `Date`, so that two clocks are never mixed.
fn retry_after(headers: &HeaderMap, date: Option<Timestamp>) -> Option<Span> {
    let named = ["x-retry-after", "x-ratelimit-retry-after"].map(HeaderName::from_static);
    let seconds = std::iter::once(&RETRY_AFTER).chain(&named).find_map(|name| {
        let value = text(headers, name)?;
        if let Ok(seconds) = value.parse::<f64>() {
            return seconds.is_finite().then(|| seconds.ceil().clamp(0.0, RETRY_AFTER_MAX_S as f64) as i64);
        }
        Some((http_date(value)?.as_second() - date?.as_second()).clamp(0, RETRY_AFTER_MAX_S))
    })?;
    Some(Span::from_s(seconds))
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

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
            assert_eq!(retry_after(&headers, date), seconds.map(Span::from_s), "{name}: {value}");
        }
    }

    #[test]
    fn a_date_to_wait_for_means_nothing_without_the_clock_it_is_of() {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_static("Sat, 21 Nov 2026 10:00:30 GMT"));
        assert_eq!(retry_after(&headers, None), None);
    }
}
