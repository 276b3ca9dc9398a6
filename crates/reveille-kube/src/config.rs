//! Which cluster, and how to log in to it: a kubeconfig, a context of it, or the pod we run in.
//!
//! [`ClusterConfig`] goes in, a client of kube comes out, with our deadlines and without kube's own retries. Precedence is
//! kubectl's: the named file, else every existing file of `KUBECONFIG` merged (first one wins), else `~/.kube/config`, else
//! the service account of the pod. Proxies are `proxy`'s business.
//!
//! Nothing here talks to the API server; a credential plugin of the kubeconfig may run. Errors never quote a kubeconfig,
//! because that is where keys and tokens are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::header::{HeaderValue, USER_AGENT};
use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use thiserror::Error;
use tokio::sync::Semaphore;

use crate::{failure, plugin, proxy};

/// Making a connection, TLS included.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Logging in: a credential plugin may ask an identity provider, and must come back.
const LOG_IN_WITHIN: Duration = if cfg!(test) { Duration::from_millis(400) } else { Duration::from_secs(60) };

/// What is said of a login whose task ended before it did.
const CUT_SHORT: &str = "logging in was cut short";

/// One login to each server at a time, in the whole process. A credential plugin that hangs holds its turn until it is killed;
/// without this each try to connect would start another one.
static TURNS: Mutex<BTreeMap<Arc<str>, Arc<Semaphore>>> = Mutex::new(BTreeMap::new());

fn turn_of(server: &Arc<str>) -> Arc<Semaphore> {
    let mut turns = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    // Only a turn that a task holds or waits for must be kept.
    turns.retain(|_, turn| Arc::strong_count(turn) > 1);
    Arc::clone(turns.entry(Arc::clone(server)).or_insert_with(|| Arc::new(Semaphore::new(1))))
}

/// Where the cluster is and who we are there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterConfig {
    /// The kubeconfig to read; `None`: `KUBECONFIG`, `~/.kube/config`, or the pod we run in, whichever is there first.
    pub kubeconfig: Option<PathBuf>,
    /// The context of it; `None`: its current one.
    pub context: Option<String>,
}

/// Why there is no connection to the cluster's API. Each says what to do next.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// A kubeconfig cannot be read.
    #[error("cannot read the kubeconfig {path}: {source}. Name another with --kubeconfig or KUBECONFIG.")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A kubeconfig cannot be understood. The parser's own words are left out: they quote the file, keys included.
    #[error(
        "the kubeconfig {path} is not a valid one. `kubectl config view --kubeconfig {path}` shows where it breaks."
    )]
    Parse {
        /// Which.
        path: PathBuf,
    },
    /// There is no such context.
    #[error("the kubeconfig has no context {wanted:?}. It has: {known}.")]
    NoContext {
        /// What was asked for.
        wanted: String,
        /// What there is.
        known: String,
    },
    /// No context was named and the kubeconfig has no current one.
    #[error("the kubeconfig has no current context. Name one of: {known}.")]
    NoCurrentContext {
        /// What there is.
        known: String,
    },
    /// A context was named, and there is no kubeconfig to look it up in.
    #[error(
        "there is no kubeconfig to find context {wanted:?} in. Name one in the roster (cluster.kubeconfig) or with KUBECONFIG."
    )]
    NoKubeconfig {
        /// What was asked for.
        wanted: String,
    },
    /// Neither a kubeconfig nor a pod's service account.
    #[error(
        "found neither a kubeconfig (cluster.kubeconfig of the roster, KUBECONFIG, ~/.kube/config) nor the service account \
         of a pod: {source}"
    )]
    NotConfigured {
        /// Why the pod's own account does not do.
        source: InClusterError,
    },
    /// The context is there, and something that it names is not or cannot be used.
    #[error("cannot use the kubeconfig's context {context:?}: {source}")]
    Load {
        /// Which context.
        context: String,
        /// What is wrong with the kubeconfig.
        source: KubeconfigError,
    },
    /// No client can be made from it (certificates, keys, credential plugin, proxy).
    #[error("cannot log in to {server}: {cause}")]
    Client {
        /// `host:port`.
        server: Arc<str>,
        /// What is wrong, in words that hold no secret; kube's own may.
        cause: String,
    },
    /// The credential plugin does not come back.
    #[error("cannot log in to {server}: the credential plugin did not come back within {after_s} s")]
    TimedOut {
        /// `host:port`.
        server: Arc<str>,
        /// How long we waited.
        after_s: u64,
    },
}

/// One context of the kubeconfig, for a person to choose from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextInfo {
    /// Its name.
    pub name: String,
    /// The name of its cluster.
    pub cluster: String,
    /// The API server's URL, where the kubeconfig has that cluster.
    pub server: Option<String>,
    /// True for the one that counts when none is named.
    pub current: bool,
}

/// The contexts to choose from, in the kubeconfig's order. Empty without a kubeconfig.
///
/// # Errors
/// When a kubeconfig is there and cannot be read or understood.
pub fn contexts(config: &ClusterConfig) -> Result<Vec<ContextInfo>, ConnectError> {
    let Some(file) = config.file()? else { return Ok(Vec::new()) };
    let wanted = config.context.as_ref().or(file.current_context.as_ref());
    let server_of = |cluster: &str| {
        let named = file.clusters.iter().find(|named| named.name == cluster)?;
        named.cluster.as_ref()?.server.clone()
    };
    let info = |named: &kube::config::NamedContext| {
        let cluster = named.context.as_ref().map_or_else(String::new, |context| context.cluster.clone());
        ContextInfo {
            name: named.name.clone(),
            server: server_of(&cluster),
            cluster,
            current: wanted == Some(&named.name),
        }
    };
    Ok(file.contexts.iter().map(info).collect())
}

impl ClusterConfig {
    /// Logs in: a client, which knows when its credentials end, and the server's `host:port`.
    pub(crate) async fn client(&self) -> Result<(Client, Arc<str>), ConnectError> {
        let config = self.load().await?;
        let server = server_of(&config.cluster_url);
        if config.accept_invalid_certs {
            tracing::warn!(%server, "cluster: the kubeconfig turns off the check of the server's certificate");
        }
        let turn = turn_of(&server);
        let login = async {
            let turn = turn.acquire_owned().await;
            // In a task of its own: the turn ends with the plugin and not with the caller that waits for it.
            tokio::spawn(async move { (log_in(config).await, turn).0 }).await
        };
        let client = match tokio::time::timeout(LOG_IN_WITHIN, login).await {
            Ok(Ok(Ok(client))) => client,
            Ok(Ok(Err(cause))) => return Err(ConnectError::Client { server, cause }),
            Ok(Err(_)) => return Err(ConnectError::Client { server, cause: CUT_SHORT.to_owned() }),
            Err(_) => return Err(ConnectError::TimedOut { server, after_s: LOG_IN_WITHIN.as_secs() }),
        };
        Ok((client, server))
    }

    async fn load(&self) -> Result<Config, ConnectError> {
        let Some(file) = self.file()? else {
            if let Some(wanted) = &self.context {
                return Err(ConnectError::NoKubeconfig { wanted: wanted.clone() });
            }
            let config = Config::incluster().map_err(|source| ConnectError::NotConfigured { source })?;
            return Ok(ours(config));
        };
        let known = known(&file);
        let context = match self.context.clone().or_else(|| file.current_context.clone()) {
            Some(context) if !context.is_empty() => context,
            _ => return Err(ConnectError::NoCurrentContext { known }),
        };
        let Some(named) = file.contexts.iter().find(|named| named.name == context) else {
            return Err(ConnectError::NoContext { wanted: context, known });
        };
        let cluster = named.context.as_ref().map(|context| context.cluster.clone()).unwrap_or_default();
        let stated = file
            .clusters
            .iter()
            .find(|named| named.name == cluster)
            .and_then(|named| named.cluster.as_ref()?.proxy_url.clone().filter(|url| !url.is_empty()));
        let options = KubeConfigOptions { context: Some(context.clone()), ..Default::default() };
        let mut config = Config::from_custom_kubeconfig(file, &options)
            .await
            .map_err(|source| ConnectError::Load { context, source })?;
        if stated.is_none() {
            config.proxy_url = proxy::from_environment(&config.cluster_url);
        }
        Ok(ours(config))
    }

    /// The kubeconfig, merged; `None` when there is none and the operator named none.
    fn file(&self) -> Result<Option<Kubeconfig>, ConnectError> {
        if let Some(path) = &self.kubeconfig {
            return read(path).map(Some);
        }
        let listed = std::env::var_os("KUBECONFIG").unwrap_or_default();
        let listed: Vec<PathBuf> =
            std::env::split_paths(&listed).filter(|path| !path.as_os_str().is_empty()).collect();
        if let Some(first) = listed.first() {
            // kubectl passes over files of the list that are not there; all of them missing is a mistake.
            let there: Vec<&PathBuf> = listed.iter().filter(|path| path.exists()).collect();
            if there.is_empty() {
                return read(first).map(Some);
            }
            let merge = |merged: Kubeconfig, path: &&PathBuf| {
                merged.merge(read(path)?).map_err(|_| ConnectError::Parse { path: path.to_path_buf() })
            };
            return there.iter().try_fold(Kubeconfig::default(), merge).map(Some);
        }
        let home = std::env::home_dir().map(|home| home.join(".kube").join("config"));
        home.filter(|path| path.exists()).map(|path| read(&path)).transpose()
    }
}

/// A client for this configuration that has nothing to renew; it knows when its credentials end. Or why not, in words that
/// hold no secret.
async fn log_in(mut config: Config) -> Result<Client, String> {
    let settled = plugin::settle(&mut config.auth_info).await;
    let ends = settled.map_err(|error| format!("no credentials: {error}"))?;
    // Certificates are read from disk, and the command of an old provider runs on the spot and may take its time.
    let made = tokio::task::spawn_blocking(move || Client::try_from(config)).await;
    let client = made.map_err(|_| CUT_SHORT.to_owned())?.map_err(|error| in_words(&error))?;
    Ok(client.with_valid_until(ends))
}

fn read(path: &Path) -> Result<Kubeconfig, ConnectError> {
    Kubeconfig::read_from(path).map_err(|error| match error {
        KubeconfigError::ReadConfig(source, path) => ConnectError::Read { path, source },
        _ => ConnectError::Parse { path: path.to_path_buf() },
    })
}

fn known(file: &Kubeconfig) -> String {
    let names: Vec<&str> = file.contexts.iter().map(|named| named.name.as_str()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Our deadlines. Reading has none here, because a watch may be quiet; every request brings its own.
fn ours(mut config: Config) -> Config {
    config.connect_timeout = Some(CONNECT_WITHIN);
    config.read_timeout = None;
    config.default_retry = false;
    config
        .headers
        .push((USER_AGENT, HeaderValue::from_static(concat!("reveille/", env!("CARGO_PKG_VERSION")))));
    config
}

fn server_of(url: &http::Uri) -> Arc<str> {
    let host = url.host().unwrap_or("?");
    let port = url.port_u16().unwrap_or(if url.scheme_str() == Some("http") { 80 } else { 443 });
    Arc::from(format!("{host}:{port}"))
}

fn in_words(error: &kube::Error) -> String {
    match error {
        kube::Error::Auth(error) => failure::credentials(error),
        kube::Error::ProxyProtocolUnsupported { .. } => {
            "its proxy is neither http, https nor socks5".to_owned()
        }
        kube::Error::ProxyProtocolDisabled { .. } => "its kind of proxy is not built in".to_owned(),
        other => {
            let words = other.to_string();
            if words.contains("UnsupportedCertVersion") {
                return "its client certificate is of X.509 version 1, which TLS here does not take; have one of \
                        version 3 issued (openssl makes one as soon as it is given an extension)"
                    .to_owned();
            }
            failure::cut(&words)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str, text: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("reveille-kube-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        path
    }

    const TWO: &str = r#"
apiVersion: v1
kind: Config
current-context: one
clusters:
- {name: c1, cluster: {server: "http://127.0.0.1:8001"}}
- {name: c2, cluster: {server: "https://api.example:6443"}}
contexts:
- {name: one, context: {cluster: c1, user: u}}
- {name: two, context: {cluster: c2, user: u}}
users:
- {name: u, user: {token: s3cret}}
"#;

    #[test]
    fn contexts_are_listed_with_their_servers() {
        let path = scratch("two", TWO);
        let config = ClusterConfig { kubeconfig: Some(path.clone()), context: None };
        let listed = contexts(&config).unwrap();
        std::fs::remove_file(path).unwrap();
        let told: Vec<_> = listed.iter().map(|c| (c.name.as_str(), c.server.as_deref(), c.current)).collect();
        assert_eq!(
            told,
            [("one", Some("http://127.0.0.1:8001"), true), ("two", Some("https://api.example:6443"), false)]
        );
    }

    #[tokio::test]
    async fn a_context_that_is_not_there_is_answered_with_those_that_are() {
        let path = scratch("nocontext", TWO);
        let config = ClusterConfig { kubeconfig: Some(path.clone()), context: Some("three".into()) };
        let error = config.client().await.err().unwrap();
        std::fs::remove_file(path).unwrap();
        assert_eq!(error.to_string(), "the kubeconfig has no context \"three\". It has: one, two.");
    }

    /// A plugin that hangs holds its turn: the next tries wait for it and start no other.
    #[tokio::test]
    async fn hanging_plugin_is_started_once() {
        let runs = std::env::temp_dir().join(format!("reveille-plugin-{}", std::process::id()));
        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: one\nclusters:\n- name: c\n  cluster: {{server: 'https://127.0.0.1:8009'}}\n\
             contexts:\n- name: one\n  context: {{cluster: c, user: u}}\nusers:\n- name: u\n  user:\n    exec:\n\
             \x20     apiVersion: client.authentication.k8s.io/v1\n      interactiveMode: Never\n      command: sh\n\
             \x20     args: [-c, 'echo run >> {}; sleep 3']\n",
            runs.display()
        );
        let path = scratch("plugin", &kubeconfig);
        let config = ClusterConfig { kubeconfig: Some(path.clone()), context: None };
        for _ in 0..3 {
            let error = config.client().await.err().unwrap();
            assert!(matches!(error, ConnectError::TimedOut { .. }), "{error:?}");
        }
        let started = std::fs::read_to_string(&runs).unwrap();
        std::fs::remove_file(path).unwrap();
        std::fs::remove_file(runs).unwrap();
        assert_eq!(started.lines().count(), 1);
    }

    #[tokio::test]
    async fn a_broken_kubeconfig_is_not_quoted() {
        let path = scratch("broken", "users:\n- name: u\n  user: {token: s3cret\ncontexts: [");
        let config = ClusterConfig { kubeconfig: Some(path.clone()), context: None };
        let error = config.client().await.err().unwrap();
        std::fs::remove_file(path).unwrap();
        assert!(matches!(error, ConnectError::Parse { .. }), "{error:?}");
        assert!(!format!("{error} {error:?}").contains("s3cret"));
    }

    #[tokio::test]
    async fn a_plain_server_needs_no_tls_and_is_named_with_its_port() {
        let path = scratch("plain", TWO);
        let config = ClusterConfig { kubeconfig: Some(path.clone()), context: None };
        let (_, server) = config.client().await.unwrap();
        std::fs::remove_file(path).unwrap();
        assert_eq!(&*server, "127.0.0.1:8001");
    }
}
