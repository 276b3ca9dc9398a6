//! Finds and reads the files that describe clouds, and the variables that stand for one.
//!
//! The order of places is the OpenStack client's. The process's environment is taken once, as a value, so that nothing
//! below depends on it. Nothing here checks what an entry says.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::ConfigError;
use super::entry::{Document, Entry, Login, Place};

/// The variables that matter, taken once, so that nothing below reads the process's environment.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// `OS_*`, `HOME` and `XDG_CONFIG_HOME` of this process.
    pub fn of_process() -> Self {
        let wanted = |key: &str| key.starts_with("OS_") || key == "HOME" || key == "XDG_CONFIG_HOME";
        Self(
            std::env::vars_os()
                .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
                .filter(|(key, value)| wanted(key) && !value.is_empty())
                .collect(),
        )
    }

    /// Exactly these.
    pub fn of<K: Into<String>, V: Into<String>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        Self(pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
    }

    fn get(&self, key: &str) -> Option<&String> {
        self.0.get(key)
    }

    /// `~/` becomes the home directory.
    pub(super) fn path(&self, text: &str) -> PathBuf {
        match (text.strip_prefix("~/"), self.get("HOME")) {
            (Some(rest), Some(home)) => Path::new(home).join(rest),
            _ => PathBuf::from(text),
        }
    }

    fn folders(&self) -> Vec<PathBuf> {
        let user = self
            .get("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .or_else(|| self.get("HOME").map(|home| Path::new(home).join(".config")));
        let mut folders = vec![PathBuf::from(".")];
        folders.extend(user.map(|user| user.join("openstack")));
        folders.push(PathBuf::from("/etc/openstack"));
        folders
    }

    /// The first of `<folder>/<stem>.{yaml,yml,json}` that exists; a variable that names a file goes first.
    fn find(&self, variable: &str, stem: &str) -> Option<PathBuf> {
        let named = self.get(variable).map(|path| self.path(path));
        named.into_iter().chain(self.candidates(stem)).find(|path| path.is_file())
    }

    fn candidates(&self, stem: &str) -> Vec<PathBuf> {
        let names = ["yaml", "yml", "json"].map(|extension| format!("{stem}.{extension}"));
        self.folders().iter().flat_map(|folder| names.iter().map(|name| folder.join(name))).collect()
    }
}

/// Only the names: values may be secrets.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The `OS_*` variables as an entry, where they name a Keystone.
pub(super) fn from_environment(env: &Environment) -> Option<Entry> {
    env.get("OS_AUTH_URL")?;
    let get = |key: &str| env.get(key).cloned();
    let secret = |key: &str| get(key).map(Into::into);
    let login = Login {
        auth_url: get("OS_AUTH_URL"),
        username: get("OS_USERNAME"),
        user_id: get("OS_USER_ID"),
        user_domain_name: get("OS_USER_DOMAIN_NAME"),
        user_domain_id: get("OS_USER_DOMAIN_ID"),
        project_name: get("OS_PROJECT_NAME"),
        project_id: get("OS_PROJECT_ID"),
        tenant_name: get("OS_TENANT_NAME"),
        tenant_id: get("OS_TENANT_ID"),
        project_domain_name: get("OS_PROJECT_DOMAIN_NAME"),
        project_domain_id: get("OS_PROJECT_DOMAIN_ID"),
        default_domain: get("OS_DEFAULT_DOMAIN"),
        application_credential_id: get("OS_APPLICATION_CREDENTIAL_ID"),
        application_credential_name: get("OS_APPLICATION_CREDENTIAL_NAME"),
        password: secret("OS_PASSWORD"),
        application_credential_secret: secret("OS_APPLICATION_CREDENTIAL_SECRET"),
    };
    let place = Place {
        auth_type: get("OS_AUTH_TYPE"),
        region_name: get("OS_REGION_NAME"),
        interface: get("OS_INTERFACE"),
        endpoint_type: get("OS_ENDPOINT_TYPE"),
        insecure: get("OS_INSECURE"),
        cacert: get("OS_CACERT"),
        cert: get("OS_CERT"),
        key: get("OS_KEY"),
        api_timeout: get("OS_API_TIMEOUT"),
        compute_endpoint_override: get("OS_COMPUTE_ENDPOINT_OVERRIDE"),
        network_endpoint_override: get("OS_NETWORK_ENDPOINT_OVERRIDE"),
        ..Place::default()
    };
    Some(Entry { auth: login, place })
}

/// The three files that describe clouds.
#[derive(Default)]
pub(super) struct Files {
    path: PathBuf,
    clouds: Document,
    secure: Document,
    public: Document,
}

impl Files {
    pub(super) fn read(named: Option<&Path>, env: &Environment) -> Result<Self, ConfigError> {
        let path = match named {
            Some(path) => path.to_path_buf(),
            None => env.find("OS_CLIENT_CONFIG_FILE", "clouds").ok_or_else(|| ConfigError::NoFile {
                looked: env.folders().iter().map(|f| f.display().to_string()).collect::<Vec<_>>().join(", "),
            })?,
        };
        let beside = path.parent().map(|folder| folder.join("secure.yaml")).filter(|path| path.is_file());
        // A file that was named stands alone with what lies beside it: another folder's secrets belong to other clouds.
        let secure = match env.get("OS_CLIENT_SECURE_FILE") {
            Some(file) => Some(env.path(file)),
            None if named.is_some() => beside,
            None => beside.or_else(|| env.find("OS_CLIENT_SECURE_FILE", "secure")),
        };
        let public = env.find("OS_CLIENT_VENDOR_FILE", "clouds-public");
        Ok(Self {
            clouds: read_document(&path)?,
            secure: secure.as_deref().map(read_document).transpose()?.unwrap_or_default(),
            public: public.as_deref().map(read_document).transpose()?.unwrap_or_default(),
            path,
        })
    }

    /// The clouds that clouds.yaml names, in order.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.clouds.clouds.keys()
    }

    /// The entry as the files have it: secure.yaml over clouds.yaml. `None` where clouds.yaml has no such entry.
    pub(super) fn written(&self, cloud: &str) -> Option<Entry> {
        let mut entry = self.secure.clouds.get(cloud).cloned().unwrap_or_default();
        entry.fill_from(self.clouds.clouds.get(cloud)?);
        let profile = entry.place.profile.clone();
        if let Some(shared) = profile.and_then(|profile| self.public.profiles.get(&profile)) {
            entry.fill_from(shared);
        }
        Some(entry)
    }

    /// The entry with all its layers, or why it cannot be had.
    pub(super) fn entry(&self, cloud: &str) -> Result<Entry, ConfigError> {
        let entry = self.written(cloud).ok_or_else(|| ConfigError::NoCloud {
            cloud: cloud.to_owned(),
            file: self.path.display().to_string(),
            has: self.names().cloned().collect::<Vec<_>>().join(", "),
        })?;
        match &entry.place.profile {
            Some(profile) if entry.login().auth_url.is_none() => {
                Err(ConfigError::NoProfile { cloud: cloud.to_owned(), profile: profile.clone() })
            }
            _ => Ok(entry),
        }
    }
}

fn read_document(path: &Path) -> Result<Document, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Read { path: path.to_path_buf(), source })?;
    serde_saphyr::from_str(&text).map_err(|error| {
        let place = error.location();
        ConfigError::Parse {
            path: path.to_path_buf(),
            line: place.map_or(0, |place| place.line()),
            column: place.map_or(0, |place| place.column()),
        }
    })
}
