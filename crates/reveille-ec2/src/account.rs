//! One account in one region: the connection that all requests of this crate use.
//!
//! Connecting finds region and credentials as every AWS program does, and asks STS once for the account and identity. So wrong
//! credentials are reported at once, and the same account under two names is one account. An `Account` is cheap to clone; all
//! clones share one set of credentials, one set of counters and one memory of what was seen.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use aws_config::{BehaviorVersion, ConfigLoader, SdkConfig};
use aws_types::region::Region;
use aws_types::service_config::ServiceConfigKey;
use reqwest::Url;
use reveille_cloud::http::{TrafficCount, Transport};
use reveille_cloud::limits::LearnedLimits;
use reveille_cloud::report::{Place, Reading};
use reveille_cloud::tls::builder;
use reveille_core::effect::{ReadError, ReadErrorKind};
use reveille_core::model::id::{CloudName, InstanceId, RouterId};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::actions::{GET_CALLER_IDENTITY, Service};
use crate::bridge::Bridge;
use crate::client::{Client, DIALECT, Endpoints, Pace, SendError};
use crate::credentials::{CredentialError, Keyring};
use crate::doubt::{Belief, Sightings};
use crate::endpoint::{self, Variant};
use crate::query_protocol::Request;
use crate::reply::decode;

/// One request.
const DEADLINE: Duration = Duration::from_secs(30);

/// Which account, and how to reach it. What is not said here is found where every AWS program finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ec2Config {
    /// The roster's name for it.
    pub name: CloudName,
    /// The region; `None`: that of the environment, the profile or the machine.
    pub region: Option<String>,
    /// A profile of the AWS configuration files; `None`: the default one.
    pub profile: Option<String>,
    /// Where all its services are, instead of AWS's own addresses.
    pub endpoint: Option<Url>,
    /// The `<id>` of the tag `kubernetes.io/cluster/<id>`.
    pub cluster: Arc<str>,
    /// How many routes a route table may hold, where a person knows it. AWS tells it nowhere that these rights reach.
    pub routes_max: Option<u32>,
    /// How long one request may take; `None`: half a minute.
    pub deadline: Option<Duration>,
}

impl Ec2Config {
    /// The account that the environment leads to.
    pub fn new(name: CloudName, cluster: impl Into<Arc<str>>) -> Self {
        let cluster = cluster.into();
        Self { name, region: None, profile: None, endpoint: None, cluster, routes_max: None, deadline: None }
    }
}

/// Why there is no connection. Each text says what was tried, what went wrong and what to look at.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// Neither the roster nor the environment nor the profile names a region.
    #[error(
        "ec2: cannot connect to cloud {cloud}: no region is named. Give it in the roster, in AWS_REGION or in the profile"
    )]
    NoRegion {
        /// The roster's name of the account.
        cloud: CloudName,
    },
    /// An address that the settings name is none.
    #[error("ec2: cannot connect to cloud {cloud}: {address:?} is no address of a service")]
    Address {
        /// The roster's name of the account.
        cloud: CloudName,
        /// What the settings say.
        address: String,
    },
    /// TLS cannot be set up.
    #[error("ec2: cannot connect to cloud {cloud}: TLS cannot be set up: {source}")]
    Transport {
        /// The roster's name of the account.
        cloud: CloudName,
        /// Why.
        source: reqwest::Error,
    },
    /// There are no credentials.
    #[error("ec2: cannot connect to cloud {cloud}: {source}")]
    Credentials {
        /// The roster's name of the account.
        cloud: CloudName,
        /// Why.
        source: CredentialError,
    },
    /// AWS does not say whose the credentials are.
    #[error("{}", source.text)]
    Caller {
        /// Why.
        source: ReadError,
    },
}

impl ConnectError {
    /// The same as a failed read of the cloud, for an engine that waits for one: nothing is known of it.
    pub fn as_read_error(&self) -> ReadError {
        let (kind, retry_after) = match self {
            Self::NoRegion { .. } | Self::Address { .. } => (ReadErrorKind::Forbidden, None),
            Self::Transport { .. } => (ReadErrorKind::Unavailable, None),
            Self::Credentials { .. } => (ReadErrorKind::Unauthorized, None),
            Self::Caller { source } => (source.kind, source.retry_after),
        };
        ReadError { kind, text: Arc::from(self.to_string()), retry_after }
    }
}

/// A connected account.
#[derive(Clone, Debug)]
pub struct Account {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    client: Client,
    config: Ec2Config,
    id: Arc<str>,
    place: Place,
    sightings: Mutex<Sightings>,
    limits: LearnedLimits,
    /// Whether a type of machines has disks on its host. AWS has some hundred types.
    disks: Mutex<BTreeMap<String, bool>>,
}

impl Account {
    /// Finds credentials and asks whose they are.
    ///
    /// # Errors
    /// See [`ConnectError`]. A caller that wants to try again waits and connects again.
    pub async fn connect(config: &Ec2Config) -> Result<Self, ConnectError> {
        Self::connect_by(config, aws_config::defaults(BehaviorVersion::latest()), Pace::default()).await
    }

    /// [`Account::connect`] with settings found by this loader.
    pub(crate) async fn connect_by(
        config: &Ec2Config,
        loader: ConfigLoader,
        pace: Pace,
    ) -> Result<Self, ConnectError> {
        let cloud = || config.name.clone();
        let transport = |source| ConnectError::Transport { cloud: cloud(), source };
        let mut loader = loader.http_client(Bridge::new().map_err(transport)?);
        if let Some(profile) = &config.profile {
            loader = loader.profile_name(profile);
        }
        if let Some(region) = &config.region {
            loader = loader.region(Region::new(region.clone()));
        }
        let found = loader.load().await;
        let region = found.region().map(ToString::to_string).filter(|region| !region.is_empty());
        let region = region.ok_or_else(|| ConnectError::NoRegion { cloud: cloud() })?;
        let endpoints = endpoints(config, &found, &region)?;
        let provider = found.credentials_provider();
        let provider = provider
            .ok_or_else(|| ConnectError::Credentials { cloud: cloud(), source: CredentialError::None })?;
        let deadline = config.deadline.unwrap_or(DEADLINE);
        let sending = Transport::new(builder(deadline).build().map_err(transport)?, deadline, &DIALECT);
        let client = Client::new(region.clone(), endpoints, Keyring::new(provider), sending, pace);
        let id = whose(&client, config).await?;
        let place = Place::new("ec2", format!("account {id} in {region}"));
        let (sightings, limits, disks) = Default::default();
        Ok(Self {
            inner: Arc::new(Inner { client, config: config.clone(), id, place, sightings, limits, disks }),
        })
    }

    /// The roster's name for it.
    pub fn cloud(&self) -> &CloudName {
        &self.inner.config.name
    }

    /// The account's twelve digits.
    pub fn id(&self) -> &Arc<str> {
        &self.inner.id
    }

    /// The region.
    pub fn region(&self) -> &str {
        self.inner.client.region()
    }

    /// The `<id>` of the tag `kubernetes.io/cluster/<id>`.
    pub fn cluster(&self) -> &Arc<str> {
        &self.inner.config.cluster
    }

    /// What was exchanged so far.
    pub fn traffic(&self) -> TrafficCount {
        self.inner.client.transport().traffic().count()
    }

    pub(crate) fn client(&self) -> &Client {
        &self.inner.client
    }

    pub(crate) fn place(&self) -> &Place {
        &self.inner.place
    }

    /// Reads one thing; `None` where AWS itself says that there is no such thing.
    pub(crate) async fn read<T: DeserializeOwned>(
        &self,
        request: &Request,
        reading: &Reading,
    ) -> Result<Option<T>, ReadError> {
        match self.client().send(request).await {
            Ok(body) => decode(&body, request.action, reading).map(Some),
            Err(SendError::Refused(refusal)) if refusal.says_absent() => Ok(None),
            Err(error) => Err(reading.failed(&error)),
        }
    }

    /// These were listed, and those of them that have ended.
    pub(crate) fn sighted<'a>(&self, listed: impl Iterator<Item = (&'a InstanceId, bool)>) {
        self.sightings().sighted(Instant::now(), listed);
    }

    /// AWS denies that there is such an instance.
    pub(crate) fn denied(&self, id: &InstanceId) -> Belief {
        self.sightings().denied(Instant::now(), id)
    }

    fn sightings(&self) -> std::sync::MutexGuard<'_, Sightings> {
        self.inner.sightings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether machines of this type have disks on their host, where it was asked.
    pub(crate) fn has_disks(&self, kind: &str) -> Option<bool> {
        self.inner.disks.lock().unwrap_or_else(PoisonError::into_inner).get(kind).copied()
    }

    pub(crate) fn learn_disks(&self, kind: &str, has: bool) {
        self.inner.disks.lock().unwrap_or_else(PoisonError::into_inner).insert(kind.to_owned(), has);
    }

    /// How many routes this table may hold, where EC2 told it.
    pub(crate) fn routes_max(&self, router: &RouterId) -> Option<u32> {
        self.inner.limits.of(router).or(self.inner.config.routes_max)
    }

    /// A refusal said that the table is full, and so many are in it.
    pub(crate) fn learn_routes_max(&self, router: &RouterId, limit: u32) {
        self.inner.limits.learn(router, limit);
    }
}

/// Whose the credentials are.
async fn whose(client: &Client, config: &Ec2Config) -> Result<Arc<str>, ConnectError> {
    #[derive(Deserialize)]
    struct Body {
        #[serde(rename = "GetCallerIdentityResult")]
        result: Caller,
    }
    #[derive(Deserialize)]
    struct Caller {
        #[serde(rename = "Account")]
        account: String,
    }
    let place = Place::new("ec2", format!("cloud {} in {}", config.name, client.region()));
    let reading = place.connecting("learn whose the credentials are");
    let body = match client.send(&Request::new(GET_CALLER_IDENTITY)).await {
        Ok(body) => body,
        Err(SendError::Unauthenticated(source)) if !matches!(source, CredentialError::Unusable(_)) => {
            return Err(ConnectError::Credentials { cloud: config.name.clone(), source });
        }
        Err(error) => return Err(ConnectError::Caller { source: reading.failed(&error) }),
    };
    let body: Body =
        decode(&body, GET_CALLER_IDENTITY, &reading).map_err(|source| ConnectError::Caller { source })?;
    Ok(Arc::from(body.result.account.trim()))
}

/// Each service's address: the roster's, else the service's own setting, else the general one, else AWS's.
fn endpoints(config: &Ec2Config, found: &SdkConfig, region: &str) -> Result<Endpoints, ConnectError> {
    let variant = Variant {
        fips: found.use_fips().unwrap_or_default(),
        dualstack: found.use_dual_stack().unwrap_or_default(),
    };
    let own = |service: Service| {
        let key = ServiceConfigKey::builder()
            .service_id(service.id())
            .env("AWS_ENDPOINT_URL")
            .profile("endpoint_url")
            .build()
            .ok()?;
        found.service_config()?.load_config(key)
    };
    let of = |service: Service| {
        if let Some(url) = &config.endpoint {
            return Ok(url.clone());
        }
        let address = own(service)
            .or_else(|| found.endpoint_url().map(str::to_owned))
            .unwrap_or_else(|| endpoint::of(service, region, variant));
        let no_address = || ConnectError::Address { cloud: config.name.clone(), address: address.clone() };
        Url::parse(&address).ok().filter(|url| url.has_host()).ok_or_else(no_address)
    };
    Ok(Endpoints { ec2: of(Service::Ec2)?, autoscaling: of(Service::AutoScaling)?, sts: of(Service::Sts)? })
}
