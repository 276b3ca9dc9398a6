//! Where a cloud is and which user logs in there: clouds.yaml, secure.yaml and the `OS_*` variables, read as the OpenStack client
//! reads them.
//!
//! ```text
//! files, environment ─▶ Document ─▶ Entry, layers filled ─▶ Cloud: checked, ready to log in
//! ```
//!
//! The first clouds.yaml found counts (a named file, `OS_CLIENT_CONFIG_FILE`, the working directory, the user's and the system's
//! configuration folder); secure.yaml lies over it. The entry `envvars` is made of `OS_*` variables. Each login reads the files
//! again, so that rotated credentials work without a restart. Text of these files never reaches an error: only file, line and
//! column do. Vendor profiles that are a URL are not fetched.

mod credentials;
mod entry;
mod files;

use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Url;
use reveille_cloud::tls::Tls;
use reveille_core::model::id::CloudName;
use thiserror::Error;

pub(crate) use self::credentials::Credentials;
use self::entry::Entry;
pub use self::files::Environment;
use self::files::{Files, from_environment};

/// How long one request may take where the entry does not say: longer than the 20 s for which rate limiters are known to
/// hold a request back.
const DEADLINE: Duration = Duration::from_secs(25);

/// The entry that stands for the `OS_*` variables.
const ENVIRONMENT_ENTRY: &str = "envvars";

/// Which cloud a roster means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudConfig {
    /// The roster's name for it.
    pub name: CloudName,
    /// The entry of clouds.yaml; `envvars` for the `OS_*` variables.
    pub cloud: String,
    /// That file and no other. `None`: where the OpenStack client looks.
    pub clouds_file: Option<PathBuf>,
}

/// One entry of clouds.yaml, as far as it says without a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudEntry {
    /// Its name in the file.
    pub cloud: String,
    /// Keystone's address.
    pub auth_url: Option<String>,
    /// The region.
    pub region: Option<String>,
    /// The project, where the entry names one (an application credential does not).
    pub project: Option<String>,
}

/// Why an entry cannot be used. Each text says which file or key to look at, and none repeats what stands there.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// No clouds.yaml anywhere.
    #[error("no clouds.yaml found (looked at {looked}); name one, or set OS_CLIENT_CONFIG_FILE")]
    NoFile {
        /// Where we looked.
        looked: String,
    },
    /// A file is there and cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not what it should be. The parser's own words may quote a secret, so only the place is kept.
    #[error("cannot read {} as YAML: look at line {line}, column {column}", path.display())]
    Parse {
        /// Which.
        path: PathBuf,
        /// Line, from 1; 0 where unknown.
        line: u64,
        /// Column, from 1; 0 where unknown.
        column: u64,
    },
    /// No such entry.
    #[error("{file} has no cloud `{cloud}`; it has: {has}")]
    NoCloud {
        /// Which was asked for.
        cloud: String,
        /// Where.
        file: String,
        /// What there is.
        has: String,
    },
    /// The entry's profile is unknown.
    #[error(
        "cloud `{cloud}` uses profile `{profile}`, which is in no clouds-public.yaml here; write its auth_url into the entry"
    )]
    NoProfile {
        /// Which entry.
        cloud: String,
        /// Which profile.
        profile: String,
    },
    /// A key is missing.
    #[error("cloud `{cloud}` lacks `{key}`; add it to its entry")]
    Lacks {
        /// Which entry.
        cloud: String,
        /// Which key.
        key: &'static str,
    },
    /// A value is not possible.
    #[error("cloud `{cloud}`: `{key}` is not {wanted}")]
    Value {
        /// Which entry.
        cloud: String,
        /// Which key.
        key: &'static str,
        /// What it should be.
        wanted: &'static str,
    },
    /// A way of logging in that a server cannot use.
    #[error(
        "cloud `{cloud}` logs in by `{auth_type}`; a controller needs v3password or v3applicationcredential"
    )]
    AuthType {
        /// Which entry.
        cloud: String,
        /// What it says.
        auth_type: String,
    },
}

impl ConfigError {
    fn lacks(cloud: &str, key: &'static str) -> Self {
        Self::Lacks { cloud: cloud.to_owned(), key }
    }
}

/// Which of a service's addresses is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interface {
    Public,
    Internal,
    Admin,
}

impl Interface {
    /// Reads `public`, `publicURL` and the like.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix("URL").unwrap_or(text) {
            "public" => Some(Self::Public),
            "internal" => Some(Self::Internal),
            "admin" => Some(Self::Admin),
            _ => None,
        }
    }

    /// Keystone's word for it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Internal => "internal",
            Self::Admin => "admin",
        }
    }
}

/// A cloud that can be logged in to.
#[derive(Clone, Debug)]
pub(crate) struct Cloud {
    /// Keystone's v3 root, without a slash at its end.
    pub(crate) keystone: Url,
    pub(crate) credentials: Credentials,
    pub(crate) region: Option<String>,
    pub(crate) interface: Interface,
    pub(crate) compute: Option<Url>,
    pub(crate) network: Option<Url>,
    pub(crate) tls: Tls,
    /// How long one request may take (`api_timeout`).
    pub(crate) deadline: Duration,
}

/// What clouds.yaml offers, without a secret and in order of the names. Ends with `envvars` where `OS_AUTH_URL` is set.
///
/// # Errors
/// A file that is there and cannot be read is an error; no file at all only where no variable speaks for a cloud.
pub fn list_clouds(clouds_file: Option<&Path>) -> Result<Vec<CloudEntry>, ConfigError> {
    list_clouds_in(clouds_file, &Environment::of_process())
}

/// [`list_clouds`] under a given environment.
///
/// # Errors
/// As [`list_clouds`].
pub fn list_clouds_in(clouds_file: Option<&Path>, env: &Environment) -> Result<Vec<CloudEntry>, ConfigError> {
    let from_variables = from_environment(env);
    let files = match Files::read(clouds_file, env) {
        Ok(files) => files,
        Err(ConfigError::NoFile { .. }) if from_variables.is_some() => Files::default(),
        Err(error) => return Err(error),
    };
    let in_files = files.names().filter_map(|cloud| Some((cloud.clone(), files.written(cloud)?)));
    let all = in_files.chain(from_variables.map(|entry| (ENVIRONMENT_ENTRY.to_owned(), entry)));
    Ok(all
        .map(|(cloud, entry)| {
            let login = entry.login();
            CloudEntry {
                cloud,
                auth_url: login.auth_url,
                region: entry.place.region_name,
                project: login.project_name.or(login.project_id).or(login.tenant_name).or(login.tenant_id),
            }
        })
        .collect())
}

/// Reads and checks the entry that `config` names.
pub(crate) fn load(config: &CloudConfig, env: &Environment) -> Result<Cloud, ConfigError> {
    let from_variables = (config.cloud == ENVIRONMENT_ENTRY).then(|| from_environment(env)).flatten();
    let entry = match from_variables {
        Some(entry) => entry,
        None => Files::read(config.clouds_file.as_deref(), env)?.entry(&config.cloud)?,
    };
    check(&config.cloud, &entry, env)
}

fn check(cloud: &str, entry: &Entry, env: &Environment) -> Result<Cloud, ConfigError> {
    let place = &entry.place;
    let url = |key, text: &str| {
        Url::parse(text)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| ConfigError::Value {
                cloud: cloud.to_owned(),
                key,
                wanted: "a http or https address",
            })
    };
    let login = entry.login();
    let auth_url = login.auth_url.ok_or_else(|| ConfigError::lacks(cloud, "auth.auth_url"))?;
    let interface = place.interface.as_deref().or(place.endpoint_type.as_deref()).unwrap_or("public");
    let interface = Interface::parse(interface).ok_or_else(|| ConfigError::Value {
        cloud: cloud.to_owned(),
        key: "interface",
        wanted: "public, internal or admin",
    })?;
    let says = |value: &Option<String>, words: &[&str]| {
        value.as_ref().is_some_and(|text| words.contains(&text.to_ascii_lowercase().as_str()))
    };
    let unverified = says(&place.verify, &["false", "no", "off", "0"])
        || says(&place.insecure, &["true", "yes", "on", "1"]);
    let deadline = match place.api_timeout.as_deref().map(str::parse::<u64>) {
        None => DEADLINE,
        Some(Ok(seconds @ 1..=300)) => Duration::from_secs(seconds),
        Some(_) => {
            let key = "api_timeout";
            return Err(ConfigError::Value { cloud: cloud.to_owned(), key, wanted: "1 to 300 seconds" });
        }
    };
    Ok(Cloud {
        deadline,
        keystone: keystone_root(url("auth.auth_url", &auth_url)?),
        credentials: Credentials::check(cloud, entry)?,
        region: place.region_name.clone(),
        interface,
        compute: place
            .compute_endpoint_override
            .as_deref()
            .map(|text| url("compute_endpoint_override", text))
            .transpose()?,
        network: place
            .network_endpoint_override
            .as_deref()
            .map(|text| url("network_endpoint_override", text))
            .transpose()?,
        tls: Tls {
            verify: !unverified,
            authority: place.cacert.as_deref().map(|path| env.path(path)),
            identity: match (&place.cert, &place.key) {
                (Some(cert), Some(key)) => Some((env.path(cert), env.path(key))),
                (Some(cert), None) => Some((env.path(cert), env.path(cert))),
                _ => None,
            },
        },
    })
}

/// `…/identity`, `…:5000/` and `…/v2.0` all mean the v3 API beside them.
fn keystone_root(mut url: Url) -> Url {
    let path = url.path().trim_end_matches('/');
    let base = path.strip_suffix("/v3").or_else(|| path.strip_suffix("/v2.0")).unwrap_or(path);
    let path = format!("{base}/v3");
    url.set_path(&path);
    url.set_query(None);
    url
}
