//! The content of Keystone's token: the project it opens, how long it lives, and where the services are.
//!
//! [`Grant::read`] takes the body of a login. An endpoint is chosen by service type, interface and region; where the
//! entry names no region and the catalogue has several, nothing is chosen: a wrong region is a wrong cloud.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::Url;
use reveille_cloud::text::{bounded, message};
use serde::Deserialize;
use thiserror::Error;

use crate::clouds::{Cloud, Interface};

/// So many names of the catalogue are shown where none fits: more than a cloud has regions.
const SHOWN_MAX: usize = 24;
/// Each of them up to here: `network internal` and a region.
const SHOWN_MAX_BYTES: usize = 72;

/// A service that is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    Compute,
    Network,
    /// Keystone, for who may do what; logins have a way of their own.
    Identity,
}

impl Service {
    /// Its type in the catalogue, and its name in error texts.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Network => "network",
            Self::Identity => "identity",
        }
    }
}

/// Why a token does not lead to the services.
#[derive(Clone, Debug, Error)]
pub enum CatalogError {
    /// The login's answer cannot be read. The parser's own words may quote a token, so only the place is kept.
    #[error("Keystone's answer cannot be read as expected at line {line}, column {column}")]
    Malformed {
        /// Line, from 1; 0 where unknown.
        line: usize,
        /// Column, from 1; 0 where unknown.
        column: usize,
    },
    /// The token opens no project.
    #[error("the token is not scoped to a project; name one in clouds.yaml (auth.project_name)")]
    NoProject,
    /// The catalogue has no such service.
    #[error("the catalogue has no {interface} {service} endpoint in {region}; it has: {has}")]
    NoEndpoint {
        /// Which service.
        service: &'static str,
        /// Which interface was wanted.
        interface: &'static str,
        /// Which region was wanted.
        region: String,
        /// What there is.
        has: String,
    },
    /// Several regions and none named.
    #[error("the catalogue has several regions ({regions}); name one in clouds.yaml (region_name)")]
    ManyRegions {
        /// Which.
        regions: String,
    },
    /// An endpoint that is no address.
    #[error("the catalogue's {service} endpoint is not an address")]
    BadEndpoint {
        /// Which service.
        service: &'static str,
    },
}

#[derive(Deserialize)]
struct Body {
    token: Token,
}

#[derive(Deserialize)]
struct Token {
    issued_at: Option<Timestamp>,
    expires_at: Option<Timestamp>,
    project: Option<Project>,
    #[serde(default)]
    catalog: Vec<Listed>,
}

#[derive(Deserialize)]
struct Project {
    id: String,
    name: String,
}

#[derive(Deserialize)]
struct Listed {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    endpoints: Vec<Endpoint>,
}

#[derive(Deserialize)]
struct Endpoint {
    interface: String,
    region_id: Option<String>,
    region: Option<String>,
    url: String,
}

impl Endpoint {
    fn region(&self) -> Option<&str> {
        self.region_id.as_deref().or(self.region.as_deref())
    }
}

/// What a login opened.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    pub(crate) project_id: String,
    pub(crate) project_name: String,
    /// How long the token lives, by Keystone's own clock at both ends.
    pub(crate) lifetime: Option<Duration>,
    /// Nova's address without a slash at its end.
    pub(crate) compute: Url,
    /// Neutron's v2.0 root without a slash at its end.
    pub(crate) network: Url,
    /// Keystone's v3 root, where the login went.
    pub(crate) identity: Url,
}

impl Grant {
    /// Reads the answer of `POST /v3/auth/tokens`.
    pub(crate) fn read(body: &[u8], cloud: &Cloud) -> Result<Self, CatalogError> {
        let Body { token } = serde_json::from_slice(body)
            .map_err(|error| CatalogError::Malformed { line: error.line(), column: error.column() })?;
        let project = token.project.ok_or(CatalogError::NoProject)?;
        let lifetime = token.issued_at.zip(token.expires_at).and_then(|(issued, expires)| {
            u64::try_from(expires.as_second() - issued.as_second()).ok().map(Duration::from_secs)
        });
        let compute = match &cloud.compute {
            Some(url) => url.clone(),
            None => choose(&token.catalog, Service::Compute, cloud)?,
        };
        let mut network = match &cloud.network {
            Some(url) => url.clone(),
            None => choose(&token.catalog, Service::Network, cloud)?,
        };
        if !network.path().trim_end_matches('/').ends_with("/v2.0") {
            let path = format!("{}/v2.0", network.path().trim_end_matches('/'));
            network.set_path(&path);
        }
        Ok(Self {
            project_id: project.id,
            project_name: project.name,
            lifetime,
            compute: bare(compute),
            network: bare(network),
            identity: bare(cloud.keystone.clone()),
        })
    }
}

fn bare(mut url: Url) -> Url {
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&path);
    url.set_query(None);
    url
}

/// Names of the catalogue as they may stand in a sentence: its operator, or a gateway, may write anything there.
fn shown<T: AsRef<str>>(names: BTreeSet<T>) -> String {
    let names = names.iter().take(SHOWN_MAX);
    let names = names.map(|name| bounded(&message(name.as_ref()), SHOWN_MAX_BYTES).to_owned());
    names.collect::<Vec<_>>().join(", ")
}

fn choose(catalog: &[Listed], service: Service, cloud: &Cloud) -> Result<Url, CatalogError> {
    let wanted = |endpoint: &&Endpoint| Interface::parse(&endpoint.interface) == Some(cloud.interface);
    let all: Vec<&Endpoint> = catalog
        .iter()
        .filter(|listed| listed.kind == service.name())
        .flat_map(|listed| &listed.endpoints)
        .filter(wanted)
        .collect();
    let regions: BTreeSet<&str> = all.iter().filter_map(|endpoint| endpoint.region()).collect();
    if cloud.region.is_none() && regions.len() > 1 {
        return Err(CatalogError::ManyRegions { regions: shown(regions) });
    }
    let here = |endpoint: &&&Endpoint| match (&cloud.region, endpoint.region()) {
        (Some(wanted), Some(region)) => wanted == region,
        _ => true,
    };
    let endpoint = all.iter().find(here).ok_or_else(|| CatalogError::NoEndpoint {
        service: service.name(),
        interface: cloud.interface.name(),
        region: cloud.region.as_ref().map_or_else(|| "any region".to_owned(), |r| format!("region {r}")),
        has: shown(
            catalog
                .iter()
                .flat_map(|listed| listed.endpoints.iter().map(move |endpoint| (listed, endpoint)))
                .map(|(listed, endpoint)| {
                    format!("{} {} {}", listed.kind, endpoint.interface, endpoint.region().unwrap_or("-"))
                })
                .collect::<BTreeSet<_>>(),
        ),
    })?;
    Url::parse(&endpoint.url).map_err(|_| CatalogError::BadEndpoint { service: service.name() })
}
