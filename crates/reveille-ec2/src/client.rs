//! Signed requests, with credentials that are fetched and replaced behind them.
//!
//! ```text
//! Request ─▶ credentials ─▶ sign (our clock + what theirs differs by) ─▶ exchange ─▶ answer
//!               ▲                                                           │
//!               │ refused: others, once        the clock is wrong: corrected by their Date, once
//!               └───────────────────────────────────────────────────────────┤
//!                            reads only: throttled, 5xx, no answer: again, after a growing and random wait, with an end
//! ```
//!
//! The client never sends a change twice, with one exception: AWS answered that it did not recognise the caller, so nothing was
//! done. The engine decides whether a throttled change is worth another try.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4::SigningParams;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use reveille_cloud::http::{CertificateAdvice, Dialect, ExchangeError, Transport};
use reveille_cloud::report::RequestError;
use reveille_core::model::time::ServiceTime;

use crate::actions::{Action, Service};
use crate::credentials::{CredentialError, Held, Keyring};
use crate::query_protocol::Request;
use crate::refusal::Refusal;

/// A read is sent so often at the most.
const TRIES: u32 = 4;
const WAIT_MAX: Duration = Duration::from_secs(5);
/// No further try begins this long after the first.
const TRYING_MAX: Duration = Duration::from_secs(45);
/// AWS accepts signatures that are five minutes off; a clock this far off is wrong, and a minute is left for delays.
const SKEW_LEAST_S: i64 = 240;
/// An answer without a Date.
const NOT_TOLD: i64 = i64::MIN;
const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";

/// AWS's handle on an answer stands in its body, and its certificates are everybody's.
pub(crate) static DIALECT: Dialect = Dialect {
    place: "account",
    // A page of a thousand instances is about 8 MB.
    body_max_bytes: 64 * 1024 * 1024,
    request_ids: &[],
    retry_after: &[],
    certificates: CertificateAdvice { unknown_authority: "", other_host: "", other: "" },
};

/// How long is waited where nothing but time helps. Tests wait less.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// The first wait between two tries is random up to twice this; each further one up to twice the one before.
    pub(crate) wait_base: Duration,
    /// A stop takes seconds where the guest obeys and some minutes where it does not; the caller reads the state again after
    /// this.
    pub(crate) stop_within: Duration,
    pub(crate) stop_look_every: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            wait_base: Duration::from_millis(300),
            stop_within: Duration::from_secs(60),
            stop_look_every: Duration::from_secs(3),
        }
    }
}

/// Why a request came to nothing.
pub(crate) type SendError = RequestError<CredentialError, Refusal>;

/// Asking the same again, a little later, may go better.
fn may_pass(error: &SendError) -> bool {
    match error {
        SendError::Refused(refusal) => refusal.says_throttled() || refusal.is_of_the_service(),
        SendError::Exchange(error) => !matches!(error, ExchangeError::TooLarge { .. }),
        SendError::Unauthenticated(_) => false,
    }
}

/// Where each service is.
#[derive(Clone, Debug)]
pub(crate) struct Endpoints {
    pub(crate) ec2: Url,
    pub(crate) autoscaling: Url,
    pub(crate) sts: Url,
}

impl Endpoints {
    const fn of(&self, service: Service) -> &Url {
        match service {
            Service::Ec2 => &self.ec2,
            Service::AutoScaling => &self.autoscaling,
            Service::Sts => &self.sts,
        }
    }
}

/// The way to one account in one region.
#[derive(Debug)]
pub(crate) struct Client {
    region: String,
    endpoints: Endpoints,
    keyring: Keyring,
    transport: Transport,
    pace: Pace,
    /// Their clock less ours, in seconds; what a refusal taught us.
    skew_s: AtomicI64,
    /// Their clock in the last answer, seconds, or [`NOT_TOLD`].
    answered_s: AtomicI64,
}

impl Client {
    pub(crate) fn new(
        region: String,
        endpoints: Endpoints,
        keyring: Keyring,
        transport: Transport,
        pace: Pace,
    ) -> Self {
        Self {
            region,
            endpoints,
            keyring,
            transport,
            pace,
            skew_s: AtomicI64::new(0),
            answered_s: AtomicI64::new(NOT_TOLD),
        }
    }

    pub(crate) fn region(&self) -> &str {
        &self.region
    }

    pub(crate) const fn pace(&self) -> Pace {
        self.pace
    }

    pub(crate) const fn transport(&self) -> &Transport {
        &self.transport
    }

    /// Sends the request; gives the body of a success.
    pub(crate) async fn send(&self, request: &Request) -> Result<Vec<u8>, SendError> {
        let begun = Instant::now();
        let tries = if request.action.is_read() { TRIES } else { 1 };
        let mut tried = 1;
        loop {
            let error = match self.send_recognised(request).await {
                Ok(body) => return Ok(body),
                Err(error) => error,
            };
            let wait = wait(self.pace.wait_base, tried);
            if tried >= tries || !may_pass(&error) || begun.elapsed() + wait > TRYING_MAX {
                return Err(error);
            }
            tried += 1;
            self.transport.traffic().count_retry();
            tokio::time::sleep(wait).await;
        }
    }

    /// Sends it once, and once more where the clock was wrong or other credentials are to be had.
    async fn send_recognised(&self, request: &Request) -> Result<Vec<u8>, SendError> {
        let held = self.keyring.get(None).await.map_err(SendError::Unauthenticated)?;
        let (refusal, date) = match self.send_once(request, &held).await? {
            Ok(body) => return Ok(body),
            Err(refused) => refused,
        };
        if !refusal.says_unknown_caller() {
            return Err(SendError::Refused(refusal));
        }
        let held = if refusal.says_clock() && self.learn_skew(date) {
            held
        } else {
            match self.keyring.get(Some(&held)).await {
                Ok(other) if !is_same(&other, &held) => other,
                _ => return Err(SendError::Refused(refusal)),
            }
        };
        self.send_once(request, &held).await?.map_err(|(refusal, _)| SendError::Refused(refusal))
    }

    async fn send_once(
        &self,
        request: &Request,
        held: &Held,
    ) -> Result<Result<Vec<u8>, (Refusal, Option<jiff::Timestamp>)>, SendError> {
        let url = self.endpoints.of(request.action.service).clone();
        let body = request.form();
        let headers = self
            .sign(request.action, &url, &body, held)
            .map_err(|why| SendError::Unauthenticated(CredentialError::Unusable(why)))?;
        tracing::debug!(action = request.action.name, "ec2 request");
        let exchange = self.transport.exchange(Method::POST, url, headers, Some(body.into_bytes()));
        let reply = exchange.await.map_err(SendError::Exchange)?;
        let answered = reply.date.map_or(NOT_TOLD, |date| date.as_second());
        self.answered_s.store(answered, Ordering::Relaxed);
        if reply.status.is_success() {
            return Ok(Ok(reply.body));
        }
        Ok(Err((Refusal::read(&reply, &request.action.iam()), reply.date)))
    }

    /// Their clock when they sent the last answer, to the second; none where that answer did not tell.
    pub(crate) fn answered_at(&self) -> Option<ServiceTime> {
        let s = self.answered_s.load(Ordering::Relaxed);
        (s != NOT_TOLD).then(|| ServiceTime::from_s(s))
    }

    /// True when their clock differs from the one that was signed by: from now on, it is signed by theirs.
    fn learn_skew(&self, date: Option<jiff::Timestamp>) -> bool {
        let Some(date) = date else { return false };
        let skew_s = date.as_second() - jiff::Timestamp::now().as_second();
        if (skew_s - self.skew_s.load(Ordering::Relaxed)).abs() < SKEW_LEAST_S {
            return false;
        }
        tracing::warn!(skew_s, "ec2: this machine's clock is wrong; requests are signed by the service's");
        self.skew_s.store(skew_s, Ordering::Relaxed);
        true
    }

    fn sign(&self, action: &Action, url: &Url, body: &str, held: &Held) -> Result<HeaderMap, String> {
        let skew_s = self.skew_s.load(Ordering::Relaxed);
        let skew = Duration::from_secs(skew_s.unsigned_abs());
        let now = SystemTime::now();
        let time = if skew_s < 0 { now.checked_sub(skew) } else { now.checked_add(skew) }.unwrap_or(now);
        let identity = held.credentials.0.clone().into();
        let params = SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name(action.service.prefix())
            .time(time)
            .settings(SigningSettings::default())
            .build()
            .map_err(|error| error.to_string())?
            .into();
        let signed = [("content-type", FORM)];
        let signable = SignableRequest::new(
            "POST",
            url.as_str(),
            signed.into_iter(),
            SignableBody::Bytes(body.as_bytes()),
        )
        .map_err(|error| error.to_string())?;
        let (instructions, _) = sign(signable, &params).map_err(|error| error.to_string())?.into_parts();
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(FORM));
        for (name, value) in instructions.headers() {
            let name = HeaderName::try_from(name).map_err(|error| error.to_string())?;
            let mut value =
                HeaderValue::try_from(value).map_err(|_| "odd characters in a token".to_owned())?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(headers)
    }
}

/// Static keys are the same however often they are fetched.
fn is_same(one: &Held, other: &Held) -> bool {
    let (one, other) = (&one.credentials.0, &other.credentials.0);
    one.access_key_id() == other.access_key_id() && one.session_token() == other.session_token()
}

/// A random part of a growing wait, so that many who were throttled together do not come back together.
fn wait(base: Duration, tried: u32) -> Duration {
    base.saturating_mul(1 << tried.min(6)).min(WAIT_MAX).mul_f64(fastrand::f64())
}
