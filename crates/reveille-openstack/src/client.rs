//! Requests to Nova and Neutron, with a token that is fetched, renewed and replaced behind them.
//!
//! ```text
//! Request ─▶ session (login only when there is none, it nears its end, or a 401 says so) ─▶ exchange ─▶ Reply
//! ```
//!
//! One login at a time: a request whose token is refused waits for the task that already fetches another. A login that fails is
//! not tried again at once, least of all one that was refused: Keystone locks users who try too often. A login can also work
//! while a service still refuses its token, for example a service that cannot reach Keystone to validate it. Each such login
//! within a minute of the last one waits twice as long. A login reads clouds.yaml again, so rotated credentials count, but never
//! into another project than the first one. The client retries nothing but the one request that met a 401.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, IF_MATCH};
use reqwest::{Method, StatusCode, Url};
use reveille_cloud::failure::{Ending, Failure};
use reveille_cloud::http::{CertificateAdvice, Dialect, ExchangeError, Reply, Traffic, Transport};
use reveille_cloud::report::RequestError;
use reveille_cloud::text::message;
use reveille_cloud::tls::TransportError;
use reveille_core::effect::ReadErrorKind;
use reveille_core::model::time::Span;
use serde_json::Value;
use thiserror::Error;
use tokio::sync::Mutex;

use crate::catalog::{CatalogError, Grant, Service};
use crate::clouds::{self, CloudConfig, ConfigError, Environment};
use crate::refusal::Refusal;

/// After a login that the other side refused, the next one waits this long.
const HOLD_REFUSED: Duration = Duration::from_secs(60);
/// After a login that went wrong otherwise.
const HOLD_FAILED: Duration = Duration::from_secs(3);
/// After a login that Keystone put off, it says for how long: not for longer than this.
const HOLD_TOLD_MAX: Duration = Duration::from_secs(600);
/// Tokens that are refused so soon after each other are refused for another reason than their age.
const REFUSED_ALIKE: Duration = Duration::from_secs(60);
/// A token is replaced this long before its end, or at four fifths of a short life.
const RENEW_MARGIN_MAX: Duration = Duration::from_secs(300);
/// Where Keystone does not say how long a token lives.
const LIFETIME_UNKNOWN: Duration = Duration::from_secs(1800);
/// Where the clock of Keystone stands still, or its policy gives tokens no time, each request would log in. If such a token is
/// really dead, a service refuses it, and the wait after a refusal counts.
const LIFETIME_LEAST: Duration = Duration::from_secs(5);

static DIALECT: Dialect = Dialect {
    place: "cloud",
    // A page of a thousand servers is about 3 MB; ports of a very large project, 40 MB.
    body_max_bytes: 96 * 1024 * 1024,
    request_ids: &["x-openstack-request-id", "x-compute-request-id"],
    retry_after: &["x-retry-after", "x-ratelimit-retry-after"],
    certificates: CertificateAdvice {
        unknown_authority: ". Name its authority with cacert in clouds.yaml (or OS_CACERT)",
        other_host: ". The certificate is not for this host: correct auth_url in clouds.yaml, or the endpoints in the catalogue",
        other: ". The cloud's operator has to renew or correct it",
    },
};

/// Why no token could be had.
#[derive(Clone, Debug, Error)]
pub enum LoginError {
    /// The entry of clouds.yaml cannot be used.
    #[error("{source}")]
    Config {
        /// Why.
        source: Arc<ConfigError>,
    },
    /// Keystone did not answer.
    #[error("Keystone did not answer: {source}")]
    Exchange {
        /// Why.
        source: Arc<ExchangeError>,
    },
    /// Keystone answered no.
    #[error("Keystone does not let {who} in: {source}")]
    Refused {
        /// Who tried.
        who: String,
        /// In its words.
        source: Refusal,
    },
    /// The token does not lead to the services.
    #[error("{source}")]
    Catalog {
        /// Why.
        source: CatalogError,
    },
    /// Keystone accepted and sent no usable token.
    #[error("Keystone's answer carries no token")]
    NoToken,
    /// Keystone gives tokens, and a service refuses each of them.
    #[error(
        "a service refuses each token that Keystone gives; the next login is in {} s or later. Look whether that service can \
         reach Keystone (keystone_authtoken) and both trust the same fernet keys",
        wait.as_secs()
    )]
    TokensRefused {
        /// How long from now.
        wait: Duration,
    },
    /// The credentials changed and now open another project.
    #[error("the entry now opens project {now} and not {before}; nothing is done there until a restart")]
    OtherProject {
        /// The project that we were connected to.
        before: String,
        /// The one that the credentials open now.
        now: String,
    },
}

impl LoginError {
    fn hold(&self) -> Duration {
        let least = match self.read_kind() {
            ReadErrorKind::Unauthorized if matches!(self, Self::Refused { .. }) => HOLD_REFUSED,
            _ => HOLD_FAILED,
        };
        let told = self.retry_after().map_or(Duration::ZERO, Duration::from);
        least.max(told.min(HOLD_TOLD_MAX))
    }
}

impl Failure for LoginError {
    fn read_kind(&self) -> ReadErrorKind {
        match self {
            Self::Refused { source, .. } if source.says_throttled() => ReadErrorKind::Throttled,
            Self::Refused { source, .. } => match source.status {
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST => {
                    ReadErrorKind::Unauthorized
                }
                _ => ReadErrorKind::Unavailable,
            },
            Self::Exchange { source } if matches!(**source, ExchangeError::TimedOut { .. }) => {
                ReadErrorKind::TimedOut
            }
            Self::Exchange { .. } => ReadErrorKind::Unavailable,
            Self::Config { .. } | Self::OtherProject { .. } | Self::TokensRefused { .. } => {
                ReadErrorKind::Unauthorized
            }
            Self::Catalog { .. } | Self::NoToken => ReadErrorKind::Malformed,
        }
    }

    fn retry_after(&self) -> Option<Span> {
        match self {
            Self::Refused { source, .. } => source.retry_after,
            Self::TokensRefused { wait } => Some((*wait).into()),
            _ => None,
        }
    }

    fn ending(&self) -> Ending {
        Ending::NotDone(self.retry_after())
    }
}

/// Why a request has no success. A token that a service refused leads to another login first.
pub(crate) type SendError = RequestError<LoginError, Refusal>;

/// One request to a service.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) service: Service,
    method: Method,
    segments: Vec<String>,
    query: Vec<(&'static str, Cow<'static, str>)>,
    body: Option<Value>,
    if_match: Option<u64>,
}

impl Request {
    fn new(service: Service, method: Method, segments: &[&str]) -> Self {
        let segments = segments.iter().map(|segment| (*segment).to_owned()).collect();
        Self { service, method, segments, query: Vec::new(), body: None, if_match: None }
    }

    pub(crate) fn get(service: Service, segments: &[&str]) -> Self {
        Self::new(service, Method::GET, segments)
    }

    pub(crate) fn delete(service: Service, segments: &[&str]) -> Self {
        Self::new(service, Method::DELETE, segments)
    }

    pub(crate) fn post(service: Service, segments: &[&str], body: Value) -> Self {
        Self { body: Some(body), ..Self::new(service, Method::POST, segments) }
    }

    pub(crate) fn put(service: Service, segments: &[&str], body: Value) -> Self {
        Self { body: Some(body), ..Self::new(service, Method::PUT, segments) }
    }

    /// Puts something that its address says whole.
    pub(crate) fn put_nothing(service: Service, segments: &[&str]) -> Self {
        Self::new(service, Method::PUT, segments)
    }

    /// Adds a query pair; the same key may stand several times.
    pub(crate) fn query(mut self, key: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.query.push((key, value.into()));
        self
    }

    /// Adds the same key once for each value.
    pub(crate) fn queries<V: Into<Cow<'static, str>>>(
        self,
        key: &'static str,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        values.into_iter().fold(self, |request, value| request.query(key, value))
    }

    /// Carried out only while the object is at this revision.
    pub(crate) fn if_revision(self, revision: u64) -> Self {
        Self { if_match: Some(revision), ..self }
    }

    /// How the service answers a change that it takes: Nova an action with 202 and a deletion with 204, Keystone with 204,
    /// Neutron with the object, or with 204 where it is gone.
    fn is_answered_by(&self, reply: &Reply) -> bool {
        match (self.service, reply.status.as_u16()) {
            (Service::Compute, 202 | 204) | (Service::Network | Service::Identity, 204) => true,
            (Service::Network, 200 | 201) => {
                let body = serde_json::from_slice::<serde_json::Map<String, Value>>(&reply.body);
                body.is_ok_and(|body| {
                    !["NeutronError", "error"].iter().any(|fault| body.contains_key(*fault))
                })
            }
            _ => false,
        }
    }

    fn url(&self, base: &Url) -> Url {
        let mut url = base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(&self.segments);
        }
        if !self.query.is_empty() {
            url.query_pairs_mut().extend_pairs(self.query.iter().map(|(key, value)| (key, value.as_ref())));
        }
        url
    }
}

/// A token and what it opens. The token's header is marked sensitive, so that no Debug output shows it.
#[derive(Debug)]
pub(crate) struct Session {
    generation: u64,
    token: HeaderValue,
    /// From here on a new one is fetched, and this one serves while that fails.
    renew_at: Instant,
    ends_at: Instant,
    pub(crate) grant: Grant,
}

#[derive(Debug, Default)]
struct Logins {
    session: Option<Arc<Session>>,
    /// The last failure and when the next try may be.
    failed: Option<(Instant, LoginError)>,
    /// The last login that a refused token led to, and how long after it no other refusal leads to one.
    renewed: Option<(Instant, Duration)>,
    count: u64,
}

impl Logins {
    /// How long a refused token leads to no login yet.
    fn rest(&self) -> Duration {
        let rest = |(at, wait): (Instant, Duration)| (at + wait).saturating_duration_since(Instant::now());
        self.renewed.map_or(Duration::ZERO, rest)
    }

    /// A refused token led to a login. The first one may be refused for a reason that goes with it; after that the wait doubles.
    fn note_renewal(&mut self) {
        let wait = match self.renewed {
            Some((at, wait)) if at.elapsed() < REFUSED_ALIKE + wait => {
                (wait * 2).clamp(HOLD_FAILED, HOLD_REFUSED)
            }
            _ => Duration::ZERO,
        };
        self.renewed = Some((Instant::now(), wait));
    }
}

/// The way to one project of one cloud.
#[derive(Debug)]
pub(crate) struct Client {
    config: CloudConfig,
    env: Environment,
    transport: Transport,
    verifies: bool,
    logins: Mutex<Logins>,
    compute_microversion: OnceLock<HeaderValue>,
    /// The compute API's own root, where discovery found another one than the catalogue's.
    compute_root: OnceLock<Url>,
}

impl Client {
    /// Sets up the transport; logs in nowhere yet.
    pub(crate) fn new(config: CloudConfig, env: Environment) -> Result<Self, NewClientError> {
        let cloud = clouds::load(&config, &env).map_err(NewClientError::Config)?;
        let http = cloud.tls.client(cloud.deadline).map_err(NewClientError::Transport)?;
        let transport = Transport::new(http, cloud.deadline, &DIALECT);
        let verifies = cloud.tls.verify;
        if !verifies {
            tracing::warn!(
                cloud = %config.cloud,
                "openstack: certificates are not verified, as clouds.yaml says: any host in between can read the password \
                 and answer in the cloud's place. Name the authority with cacert instead"
            );
        }
        Ok(Self {
            config,
            env,
            transport,
            verifies,
            logins: Mutex::default(),
            compute_microversion: OnceLock::new(),
            compute_root: OnceLock::new(),
        })
    }

    pub(crate) const fn verifies(&self) -> bool {
        self.verifies
    }

    pub(crate) const fn traffic(&self) -> &Traffic {
        self.transport.traffic()
    }

    /// From now on, every compute request names this microversion.
    pub(crate) fn set_compute(&self, microversion: HeaderValue, root: Option<Url>) {
        // Both are set once, by the connection's only discovery; a second discovery would say the same.
        let _ = self.compute_microversion.set(microversion);
        if let Some(root) = root {
            let _ = self.compute_root.set(root);
        }
    }

    /// A session that is good now. `refused` is one that a service answered 401 to.
    pub(crate) async fn session(&self, refused: Option<&Session>) -> Result<Arc<Session>, LoginError> {
        let mut logins = self.logins.lock().await;
        let current = logins.session.as_ref().map(|held| held.generation);
        let is_refused = refused.is_some_and(|refused| Some(refused.generation) == current);
        let held = logins.session.clone().filter(|held| !is_refused && Instant::now() < held.ends_at);
        if let Some(held) = held.as_ref().filter(|held| Instant::now() < held.renew_at) {
            return Ok(held.clone());
        }
        if let Some((until, error)) = &logins.failed
            && Instant::now() < *until
        {
            return held.ok_or_else(|| error.clone());
        }
        let wait = logins.rest();
        if is_refused && !wait.is_zero() {
            return Err(LoginError::TokensRefused { wait });
        }
        logins.count += 1;
        let before = logins.session.as_ref().map(|session| session.grant.project_id.clone());
        match self.login(logins.count, before).await {
            Ok(session) => {
                let session = Arc::new(session);
                logins.session = Some(session.clone());
                logins.failed = None;
                if is_refused {
                    logins.note_renewal();
                }
                Ok(session)
            }
            Err(error) => {
                logins.failed = Some((Instant::now() + error.hold(), error.clone()));
                held.ok_or(error)
            }
        }
    }

    async fn login(&self, generation: u64, before: Option<String>) -> Result<Session, LoginError> {
        let cloud = clouds::load(&self.config, &self.env)
            .map_err(|source| LoginError::Config { source: Arc::new(source) })?;
        let mut url = cloud.keystone.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["auth", "tokens"]);
        }
        self.traffic().count_login();
        let begun = Instant::now();
        let body = cloud.credentials.body().to_string().into_bytes();
        let (reply, headers) = self
            .transport
            .exchange_with_headers(Method::POST, url, json_headers(), Some(body))
            .await
            .map_err(|source| LoginError::Exchange { source: Arc::new(source) })?;
        if reply.status != StatusCode::CREATED {
            let source = Refusal::read(&reply, Service::Identity);
            return Err(LoginError::Refused { who: cloud.credentials.who(), source });
        }
        let mut token = headers.get("x-subject-token").cloned().ok_or(LoginError::NoToken)?;
        token.set_sensitive(true);
        let grant = Grant::read(&reply.body, &cloud).map_err(|source| LoginError::Catalog { source })?;
        if let Some(before) = before.filter(|before| *before != grant.project_id) {
            return Err(LoginError::OtherProject {
                before: message(&before),
                now: message(&grant.project_id),
            });
        }
        let lifetime = grant.lifetime.unwrap_or(LIFETIME_UNKNOWN).max(LIFETIME_LEAST);
        let renew_at = begun + lifetime.saturating_sub(RENEW_MARGIN_MAX.min(lifetime / 5));
        Ok(Session { generation, token, renew_at, ends_at: begun + lifetime, grant })
    }

    /// Sends the request; gives the answer of a success.
    pub(crate) async fn send(&self, request: &Request) -> Result<Reply, SendError> {
        let reply = self.send_recognised(request).await?;
        if reply.status.is_success() {
            return Ok(reply);
        }
        Err(SendError::Refused(Refusal::read(&reply, request.service)))
    }

    /// Sends a change; gives the answer that the service documents for it. Any other success may be a gateway's page, and the
    /// change was perhaps never made.
    pub(crate) async fn change(&self, request: &Request) -> Result<Reply, SendError> {
        let reply = self.send(request).await?;
        match request.is_answered_by(&reply) {
            true => Ok(reply),
            false => Err(SendError::Refused(Refusal::unclear(&reply, request.service))),
        }
    }

    /// A 401 leads to one login and one more try.
    async fn send_recognised(&self, request: &Request) -> Result<Reply, SendError> {
        let session = self.session(None).await.map_err(SendError::Unauthenticated)?;
        let reply = self.send_once(request, &session).await.map_err(SendError::Exchange)?;
        if reply.status != StatusCode::UNAUTHORIZED {
            return Ok(reply);
        }
        let session = self.session(Some(&session)).await.map_err(SendError::Unauthenticated)?;
        self.send_once(request, &session).await.map_err(SendError::Exchange)
    }

    /// Asks the root of an API, whose address is not below the endpoint's.
    pub(crate) async fn send_to_root(&self, root: &Url) -> Result<Reply, SendError> {
        let session = self.session(None).await.map_err(SendError::Unauthenticated)?;
        let headers = Self::headers(&session);
        self.transport.exchange(Method::GET, root.clone(), headers, None).await.map_err(SendError::Exchange)
    }

    fn headers(session: &Session) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_static("x-auth-token"), session.token.clone());
        headers.insert(reqwest::header::ACCEPT, HeaderValue::from_static("application/json"));
        headers
    }

    async fn send_once(&self, request: &Request, session: &Session) -> Result<Reply, ExchangeError> {
        let base = match request.service {
            Service::Compute => self.compute_root.get().unwrap_or(&session.grant.compute),
            Service::Network => &session.grant.network,
            Service::Identity => &session.grant.identity,
        };
        let mut headers = Self::headers(session);
        if let (Service::Compute, Some(version)) = (request.service, self.compute_microversion.get()) {
            headers.insert(HeaderName::from_static("x-openstack-nova-api-version"), version.clone());
            if let Ok(value) = HeaderValue::try_from([b"compute ", version.as_bytes()].concat()) {
                headers.insert(HeaderName::from_static("openstack-api-version"), value);
            }
        }
        if let Some(revision) = request.if_match
            && let Ok(value) = HeaderValue::try_from(format!("revision_number={revision}"))
        {
            headers.insert(IF_MATCH, value);
        }
        let body = request.body.as_ref().map(|body| body.to_string().into_bytes());
        if body.is_some() {
            headers.extend(json_headers());
        }
        let url = request.url(base);
        tracing::debug!(method = %request.method, path = url.path(), "openstack request");
        let reply = self.transport.exchange(request.method.clone(), url, headers, body).await?;
        tracing::debug!(
            status = reply.status.as_u16(),
            took_ms = reply.took.as_millis() as u64,
            bytes = reply.body.len(),
            request = reply.request.as_ref().map(tracing::field::display),
            "openstack answer"
        );
        Ok(reply)
    }
}

fn json_headers() -> HeaderMap {
    HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))])
}

/// Why there is no client.
#[derive(Debug, Error)]
pub(crate) enum NewClientError {
    #[error("{0}")]
    Config(#[source] ConfigError),
    #[error("{0}")]
    Transport(#[source] TransportError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_that_keystone_puts_off_waits_as_long_as_it_says() {
        let table = [
            (429, None, 3),
            (429, Some(30), 30),
            (503, Some(1), 3),
            (401, Some(30), 60),
            (429, Some(7200), 600),
        ];
        for (status, told, wait_s) in table {
            let status = StatusCode::from_u16(status).unwrap();
            let reply = Reply { status, retry_after: told.map(Span::from_s), ..Reply::default() };
            let error =
                LoginError::Refused { who: "u".to_owned(), source: Refusal::read(&reply, Service::Identity) };
            assert_eq!(error.hold().as_secs(), wait_s, "{status} {told:?}");
        }
    }
}
