//! Makes the HTTP client of a connection: our deadlines, and the certificates that an operator names.
//!
//! Certificate files in, a client out, or why there is none. Which files, an adapter reads from its own configuration.

use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::{Certificate, ClientBuilder, Identity};
use thiserror::Error;

use crate::http::innermost;

const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

/// A client with our deadlines, which trusts what the machine trusts.
pub fn builder(deadline: Duration) -> ClientBuilder {
    reqwest::Client::builder()
        .user_agent(concat!("reveille/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_DEADLINE)
        .timeout(deadline)
        .pool_idle_timeout(Duration::from_secs(50))
        .redirect(reqwest::redirect::Policy::none())
}

/// What an operator says of the certificates, theirs and ours.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The only authority that is trusted; `None`: those that the machine trusts.
    pub authority: Option<PathBuf>,
    /// Our own certificate and its key; the same path twice where one file holds both.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// False: any certificate is taken.
    pub verify: bool,
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

impl Tls {
    /// A client with these certificates.
    ///
    /// # Errors
    /// See [`TransportError`].
    pub fn client(&self, deadline: Duration) -> Result<reqwest::Client, TransportError> {
        let shown = |path: &Path| path.display().to_string();
        let read = |path: &Path| {
            std::fs::read(path).map_err(|source| TransportError::Read { path: shown(path), source })
        };
        let setup = |what: String| move |source| TransportError::Setup { what, source };
        let mut builder = builder(deadline);
        if let Some(path) = &self.authority {
            let certificates = Certificate::from_pem_bundle(&read(path)?).map_err(setup(shown(path)))?;
            if certificates.is_empty() {
                return Err(TransportError::Empty { path: shown(path) });
            }
            // As for the OpenStack client: the authority that is named is the only one.
            builder = builder.tls_certs_only(certificates);
        }
        if let Some((certificate, key)) = &self.identity {
            let mut pem = read(certificate)?;
            if key != certificate {
                pem.push(b'\n');
                pem.extend(read(key)?);
            }
            builder = builder.identity(Identity::from_pem(&pem).map_err(setup(shown(certificate)))?);
        }
        if !self.verify {
            builder = builder.tls_danger_accept_invalid_certs(true);
        }
        builder.build().map_err(setup("client".to_owned()))
    }
}
