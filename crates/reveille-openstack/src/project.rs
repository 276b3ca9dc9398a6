//! One project of one cloud: the connection that all requests of this crate use.
//!
//! Connecting logs in once and asks Nova once which microversions it offers. What changes rarely is remembered here
//! with the connection: Neutron's extensions for good, the route limit for some minutes, limits that refusals taught us.
//! Cheap to clone; all clones share one token, one set of counters and one memory.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use reqwest::header::HeaderValue;
use reqwest::{StatusCode, Url};
use reveille_cloud::failure::Failure;
use reveille_cloud::http::TrafficCount;
use reveille_cloud::limits::{LIMIT_TTL, LearnedLimits};
use reveille_cloud::report::{Place, Reading};
use reveille_cloud::text::message;
use reveille_cloud::tls::TransportError;
use reveille_core::effect::{ReadError, ReadErrorKind};
use reveille_core::model::id::{CloudName, RequestId, RouterId};
use serde::Deserialize;
use thiserror::Error;
use tokio::sync::OnceCell;

use crate::catalog::Service;
use crate::client::{Client, LoginError, NewClientError, Request, SendError};
use crate::clouds::{CloudConfig, ConfigError, Environment};
use crate::refusal::Refusal;

/// Tags can be read from here on: below it, nothing proves whose an instance is.
const MICROVERSION_LEAST: Microversion = Microversion(2, 26);
/// The newest that this adapter was run against.
const MICROVERSION_TESTED: Microversion = Microversion(2, 96);

/// A compute API microversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Microversion(u16, u16);

impl Microversion {
    fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once('.')?;
        Some(Self(major.parse().ok()?, minor.parse().ok()?))
    }
}

impl std::fmt::Display for Microversion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// Why there is no connection. Each text says what was tried, what went wrong and what to look at.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// clouds.yaml does not say how.
    #[error("openstack: cannot connect: {source}")]
    Config {
        /// Why.
        source: ConfigError,
    },
    /// TLS cannot be set up.
    #[error("openstack: cannot connect to cloud {cloud}: {source}")]
    Transport {
        /// Which entry of clouds.yaml.
        cloud: String,
        /// Why.
        source: TransportError,
    },
    /// Keystone did not let us in, or did not answer.
    #[error("openstack: cannot log in to cloud {cloud}: {source}")]
    Login {
        /// Which entry of clouds.yaml.
        cloud: String,
        /// Why.
        source: LoginError,
    },
    /// Nova did not say which versions it offers.
    #[error("{}", source.text)]
    Versions {
        /// Why.
        source: ReadError,
    },
    /// Nova is too old to prove whose an instance is.
    #[error(
        "openstack: cloud {cloud} offers compute API {offered}; {MICROVERSION_LEAST} is needed, because older ones do \
         not show tags, and without them nothing proves whose an instance is"
    )]
    TooOld {
        /// Which entry of clouds.yaml.
        cloud: String,
        /// What it offers.
        offered: String,
    },
}

impl ConnectError {
    /// The same as a failed read of the cloud, for an engine that waits for one: nothing is known of it.
    pub fn as_read_error(&self) -> ReadError {
        let (kind, retry_after) = match self {
            Self::Config { .. } | Self::TooOld { .. } => (ReadErrorKind::Forbidden, None),
            Self::Transport { .. } => (ReadErrorKind::Unavailable, None),
            Self::Login { source, .. } => (source.read_kind(), source.retry_after()),
            Self::Versions { source } => (source.kind, source.retry_after),
        };
        ReadError { kind, text: Arc::from(self.to_string()), retry_after }
    }
}

/// A connected project.
#[derive(Clone, Debug)]
pub struct Project {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    client: Client,
    cloud: CloudName,
    id: Arc<str>,
    name: Arc<str>,
    place: Place,
    microversion: Microversion,
    extensions: OnceCell<BTreeSet<String>>,
    quota: Mutex<Option<Quota>>,
    route_limits: LearnedLimits,
}

/// How many routes a router of the project may hold, and when that was read; `None` where the cloud does not tell or has no
/// limit.
type Quota = (Instant, Option<u32>);

impl Project {
    /// Logs in and asks Nova for its versions.
    ///
    /// # Errors
    /// See [`ConnectError`]. Nothing is retried; a caller that wants to waits and connects again.
    pub async fn connect(config: &CloudConfig) -> Result<Self, ConnectError> {
        Self::connect_in(config, Environment::of_process()).await
    }

    /// [`Project::connect`] under a given environment.
    ///
    /// # Errors
    /// As [`Project::connect`].
    pub async fn connect_in(config: &CloudConfig, env: Environment) -> Result<Self, ConnectError> {
        let cloud = || config.cloud.clone();
        let client = Client::new(config.clone(), env).map_err(|error| match error {
            NewClientError::Config(source) => ConnectError::Config { source },
            NewClientError::Transport(source) => ConnectError::Transport { cloud: cloud(), source },
        })?;
        let session =
            client.session(None).await.map_err(|source| ConnectError::Login { cloud: cloud(), source })?;
        let grant = &session.grant;
        let name: Arc<str> = Arc::from(grant.project_name.as_str());
        let place = Place::new("openstack", format!("project {}", message(&name)));
        let (microversion, root) =
            discover(&client, &grant.compute, &grant.project_id, &place, config).await?;
        let header = HeaderValue::try_from(microversion.to_string())
            .map_err(|_| ConnectError::TooOld { cloud: cloud(), offered: microversion.to_string() })?;
        client.set_compute(header, root);
        Ok(Self {
            inner: Arc::new(Inner {
                client,
                cloud: config.name.clone(),
                id: Arc::from(grant.project_id.as_str()),
                name,
                place,
                microversion,
                extensions: OnceCell::new(),
                quota: Mutex::default(),
                route_limits: LearnedLimits::default(),
            }),
        })
    }

    /// The roster's name for it.
    pub fn cloud(&self) -> &CloudName {
        &self.inner.cloud
    }

    /// Keystone's id of it.
    pub fn id(&self) -> &Arc<str> {
        &self.inner.id
    }

    /// Keystone's name of it.
    pub fn name(&self) -> &Arc<str> {
        &self.inner.name
    }

    /// The compute microversion in use, such as `2.96`.
    pub fn microversion(&self) -> String {
        self.inner.microversion.to_string()
    }

    /// What was exchanged so far.
    pub fn traffic(&self) -> TrafficCount {
        self.inner.client.traffic().count()
    }

    /// False where clouds.yaml says not to verify certificates: then any host on the path can read along and answer.
    pub fn verifies(&self) -> bool {
        self.inner.client.verifies()
    }

    pub(crate) fn client(&self) -> &Client {
        &self.inner.client
    }

    pub(crate) fn place(&self) -> &Place {
        &self.inner.place
    }

    /// Reads one thing; `None` where the service itself says that there is no such thing.
    pub(crate) async fn read(
        &self,
        request: &Request,
        reading: &Reading,
    ) -> Result<Option<Vec<u8>>, ReadError> {
        match self.client().send(request).await {
            Ok(reply) => Ok(Some(reply.body)),
            Err(error) if error.refusal().is_some_and(Refusal::says_absent) => Ok(None),
            Err(error) => Err(reading.failed(&error)),
        }
    }

    /// Sends one change; gives Nova's or Neutron's handle on it.
    pub(crate) async fn send(&self, request: &Request) -> Result<Option<RequestId>, SendError> {
        self.client().change(request).await.map(|reply| reply.request)
    }

    /// True when Neutron has this extension. Asked once per connection; a failed question is asked again next time.
    pub(crate) async fn has_extension(&self, alias: &str) -> Result<bool, ReadError> {
        #[derive(Deserialize)]
        struct Extensions {
            extensions: Vec<Extension>,
        }
        #[derive(Deserialize)]
        struct Extension {
            alias: String,
        }
        let extensions = self
            .inner
            .extensions
            .get_or_try_init(|| async {
                let reading = self.place().look("read the network API's extensions");
                let request = Request::get(Service::Network, &["extensions"]);
                let reply = self.client().send(&request).await.map_err(|error| reading.failed(&error))?;
                let body: Extensions = reading.json(&reply.body)?;
                Ok(body.extensions.into_iter().map(|extension| extension.alias).collect())
            })
            .await?;
        Ok(extensions.contains(alias))
    }

    /// How many routes this router may hold, where the cloud tells or a refusal taught us.
    ///
    /// Reads the project's quota at most every ten minutes. A cloud that does not show it, or has no such quota, is no
    /// error: then only a refusal tells.
    pub(crate) async fn route_limit(&self, router: &RouterId) -> Option<u32> {
        let known = self.quota().filter(|(read_at, _)| read_at.elapsed() < LIMIT_TTL);
        let quota = match known {
            Some((_, quota)) => quota,
            None => self.read_quota().await,
        };
        quota.or_else(|| self.inner.route_limits.of(router))
    }

    /// A refusal named the limit of this router.
    pub(crate) fn learn_route_limit(&self, router: &RouterId, limit: u32) {
        self.inner.route_limits.learn(router, limit);
    }

    fn quota(&self) -> MutexGuard<'_, Option<Quota>> {
        self.inner.quota.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read_quota(&self) -> Option<u32> {
        #[derive(Deserialize)]
        struct Body {
            quota: QuotaReply,
        }
        #[derive(Deserialize)]
        struct QuotaReply {
            /// Negative: no limit.
            router_route: Option<i64>,
        }
        let request = Request::get(Service::Network, &["quotas", self.id()]);
        let answer = self.client().send(&request).await;
        let quota = match answer {
            Ok(reply) => serde_json::from_slice::<Body>(&reply.body).ok(),
            // There is none, or not for us: as good as not told, and not worth asking each time.
            Err(SendError::Refused(refusal)) if matches!(refusal.status.as_u16(), 403 | 404) => None,
            // The limit is not known now; the last known limit stays the best guess, and the next question asks again.
            Err(_) => return self.quota().and_then(|(_, quota)| quota),
        }
        .and_then(|body| body.quota.router_route)
        .and_then(|limit| u32::try_from(limit).ok());
        *self.quota() = Some((Instant::now(), quota));
        quota
    }
}

/// Asks the compute endpoint which microversions it offers. Also gives the API's root where the endpoint is not it.
async fn discover(
    client: &Client,
    compute: &Url,
    project_id: &str,
    place: &Place,
    config: &CloudConfig,
) -> Result<(Microversion, Option<Url>), ConnectError> {
    #[derive(Deserialize)]
    struct Version {
        id: String,
        #[serde(default)]
        version: String,
        #[serde(default)]
        min_version: String,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Document {
        One { version: Version },
        Many { versions: Vec<Version> },
    }
    let reading = place.connecting("read the compute API's versions");
    let failed = |source| ConnectError::Versions { source };
    let mut root = compute.clone();
    let path = compute.path().trim_end_matches('/');
    let path = match path.rsplit_once('/') {
        Some((base, last)) if last.ends_with(project_id) => base,
        _ => path,
    };
    root.set_path(&format!("{path}/"));
    let reply = client.send_to_root(&root).await.map_err(|error| failed(reading.failed(&error)))?;
    if !reply.status.is_success() && reply.status != StatusCode::MULTIPLE_CHOICES {
        return Err(failed(reading.failed(&Refusal::read(&reply, Service::Compute))));
    }
    let document: Document = reading.json(&reply.body).map_err(failed)?;
    let (version, api_root) = match document {
        Document::One { version } => (Some(version), None),
        Document::Many { versions } => {
            root.set_path(&format!("{path}/v2.1"));
            (versions.into_iter().find(|version| version.id == "v2.1"), Some(root))
        }
    };
    let offered = version.as_ref().map_or("no v2.1", |version| version.version.as_str());
    let too_old = || ConnectError::TooOld {
        cloud: config.cloud.clone(),
        offered: if offered.is_empty() { "2.0 without microversions".to_owned() } else { message(offered) },
    };
    let newest = Microversion::parse(offered).filter(|v| *v >= MICROVERSION_LEAST).ok_or_else(too_old)?;
    let oldest = version.as_ref().and_then(|version| Microversion::parse(&version.min_version));
    let wanted = newest.min(MICROVERSION_TESTED).max(oldest.unwrap_or(MICROVERSION_LEAST));
    Ok((wanted, api_root))
}
