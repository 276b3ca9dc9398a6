//! The API server as one machine asks it: a path, a deadline, an answer of bounded size.
//!
//! Whom it trusts and what it shows are given when it is made: [`Trust`] and [`Shown`]. An answer is an answer whatever its
//! status; what is a failure is that none came, and each kind of that is a variant, because "refused", "silent" and
//! "somebody else answered" lead to different doors. No proxy of the environment is used: a kubelet uses none either. Nothing
//! is asked twice here.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{ACCEPT, AUTHORIZATION, DATE, HeaderValue};
use reveille_core::model::time::Span;
use secrecy::{ExposeSecret as _, SecretString};
use thiserror::Error;
use tokio_rustls::rustls;

use rustls::RootCertStore;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::pin;
use crate::short_chain::ShortChain;
use crate::target::Endpoint;
use crate::target::kubeconfig::Client;
use crate::verifier::Judged;

/// No answer that is read here is longer: a Node with many images is some hundred KiB.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Within this a connection is made, or it is not going to be.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Whom to trust as the server.
pub enum Trust {
    /// These authorities, for the server's name.
    Authorities(Arc<RootCertStore>),
    /// Whatever this verifier says.
    Verifier(Arc<dyn ServerCertVerifier>),
}

/// What the server is shown.
#[derive(Clone, Copy)]
pub enum Shown<'a> {
    /// Nothing.
    Nothing,
    /// A bootstrap token.
    Token(&'a SecretString),
    /// A user's password, as the supervisors of k3s and RKE2 take it.
    Password(&'a str, &'a SecretString),
    /// A client's certificate.
    Certificate(&'a Client),
}

/// A connection to one API server.
#[derive(Clone, Debug)]
pub struct Api {
    http: reqwest::Client,
    endpoint: Endpoint,
    authorization: Option<SecretString>,
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The server's `Date`, as it wrote it.
    pub date: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// No answer came, or none was asked for.
#[derive(Debug, Error)]
pub enum ApiError {
    /// What it should show cannot be shown.
    #[error("cannot connect to {endpoint} with the kubelet's certificate: {cause}")]
    Credentials {
        /// Which server.
        endpoint: Endpoint,
        /// Why.
        cause: String,
    },
    /// The connection cannot be set up.
    #[error("cannot set up a connection to {endpoint}: {source}")]
    SetUp {
        /// Which server.
        endpoint: Endpoint,
        /// Why.
        source: reqwest::Error,
    },
    /// Somebody answered who is not trusted.
    #[error("{endpoint} is not who was pinned or known: {cause}")]
    Untrusted {
        /// Which server.
        endpoint: Endpoint,
        /// Why.
        cause: String,
    },
    /// Its certificate is not valid at this time, by this machine's clock.
    #[error("the certificate of {endpoint} {cause}: compare the clocks of this machine and of the server")]
    OutOfDate {
        /// Which server.
        endpoint: Endpoint,
        /// When it begins, or ended.
        cause: String,
    },
    /// Nobody answered in time.
    #[error("{endpoint} did not answer within {within_s} s")]
    Silent {
        /// Which server.
        endpoint: Endpoint,
        /// What it was given.
        within_s: u64,
    },
    /// No connection, or one that broke.
    #[error("{endpoint} cannot be reached: {cause}")]
    Unreachable {
        /// Which server.
        endpoint: Endpoint,
        /// The innermost cause.
        cause: String,
    },
    /// More than any answer that belongs here.
    #[error("{endpoint} answers more than {ANSWER_BYTES_MAX} bytes")]
    TooLong {
        /// Which server.
        endpoint: Endpoint,
    },
}

impl Api {
    /// Sets a connection up; nothing is sent yet.
    ///
    /// # Errors
    ///
    /// What it should show cannot be read as certificate and key.
    pub fn new(endpoint: &Endpoint, trust: Trust, shown: Shown<'_>) -> Result<Self, ApiError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let credentials = |cause: String| ApiError::Credentials { endpoint: endpoint.clone(), cause };
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|failure| credentials(failure.to_string()))?;
        let config = match trust {
            Trust::Authorities(roots) => config
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Judged::by(ShortChain::new(roots)))),
            Trust::Verifier(verifier) => config.dangerous().with_custom_certificate_verifier(verifier),
        };
        let mut config = match shown {
            Shown::Certificate(client) => {
                let (chain, key) = identity(client).map_err(credentials)?;
                config
                    .with_client_auth_cert(chain, key)
                    .map_err(|failure| credentials(failure.to_string()))?
            }
            Shown::Nothing | Shown::Token(_) | Shown::Password(..) => config.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(config)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("reveille/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_WITHIN)
            .build()
            .map_err(|source| ApiError::SetUp { endpoint: endpoint.clone(), source })?;
        let authorization = match shown {
            Shown::Token(token) => Some(format!("Bearer {}", token.expose_secret()).into()),
            Shown::Password(user, password) => {
                let pair = STANDARD.encode(format!("{user}:{}", password.expose_secret()));
                Some(format!("Basic {pair}").into())
            }
            Shown::Nothing | Shown::Certificate(_) => None,
        };
        Ok(Self { http, endpoint: endpoint.clone(), authorization })
    }

    /// Which server it asks.
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Asks for a path.
    ///
    /// # Errors
    ///
    /// No whole answer came within this.
    pub async fn get(&self, path: &str, within: Duration) -> Result<Answer, ApiError> {
        self.get_as(path, &[], within).await
    }

    /// Asks for a path with headers of its own, whose values nobody logs.
    ///
    /// # Errors
    ///
    /// No whole answer came within this.
    pub async fn get_as(
        &self,
        path: &str,
        headers: &[(String, SecretString)],
        within: Duration,
    ) -> Result<Answer, ApiError> {
        let asked = tokio::time::timeout(within, self.ask(path, headers)).await;
        asked.unwrap_or_else(|_| {
            Err(ApiError::Silent { endpoint: self.endpoint.clone(), within_s: within.as_secs() })
        })
    }

    async fn ask(&self, path: &str, headers: &[(String, SecretString)]) -> Result<Answer, ApiError> {
        let mut request = self.http.get(format!("https://{}{path}", self.endpoint));
        request = request.header(ACCEPT, "application/json");
        let own = self.authorization.as_ref().map(|value| (AUTHORIZATION.as_str(), value));
        for (name, value) in own.into_iter().chain(headers.iter().map(|(name, value)| (name.as_str(), value)))
        {
            let mut value =
                HeaderValue::from_str(value.expose_secret()).map_err(|_| ApiError::Credentials {
                    endpoint: self.endpoint.clone(),
                    cause: "what is to be shown holds what no header may".to_owned(),
                })?;
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        let mut response = request.send().await.map_err(|failure| self.failed(&failure))?;
        let date = response.headers().get(DATE).and_then(|date| date.to_str().ok()).map(str::to_owned);
        let status = response.status().as_u16();
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|failure| self.failed(&failure))? {
            if body.len() + piece.len() > ANSWER_BYTES_MAX {
                return Err(ApiError::TooLong { endpoint: self.endpoint.clone() });
            }
            body.extend_from_slice(&piece);
        }
        Ok(Answer { status, date, body })
    }

    /// What failed, by its innermost cause: the outer ones only say that something was being sent.
    fn failed(&self, failure: &reqwest::Error) -> ApiError {
        let endpoint = self.endpoint.clone();
        let mut cause: &(dyn std::error::Error + 'static) = failure;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        if let Some(untrusted) = tls_failure(failure) {
            if let Some(cause) = out_of_date(untrusted) {
                return ApiError::OutOfDate { endpoint, cause };
            }
            return ApiError::Untrusted { endpoint, cause: pin::explain(untrusted) };
        }
        ApiError::Unreachable { endpoint, cause: cause.to_string() }
    }
}

/// The TLS failure within, where a certificate was the matter. An I/O error passes over what it wraps when it is asked for its
/// source, and one may wrap another, so each is opened.
fn tls_failure(failure: &reqwest::Error) -> Option<&rustls::Error> {
    let mut cause = failure.source();
    while let Some(inner) = cause {
        if let Some(tls @ rustls::Error::InvalidCertificate(_)) = inner.downcast_ref() {
            return Some(tls);
        }
        let wrapped = inner.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        cause = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => inner.source(),
        };
    }
    None
}

/// What the dates of a certificate have to do with its refusal.
fn out_of_date(failure: &rustls::Error) -> Option<String> {
    use rustls::CertificateError as Refused;
    let rustls::Error::InvalidCertificate(why) = failure else { return None };
    let span = |seconds: u64| Span::from_s(i64::try_from(seconds).unwrap_or(i64::MAX / 1000));
    match why {
        Refused::Expired => Some("has expired".to_owned()),
        Refused::NotValidYet => Some("is not valid yet".to_owned()),
        Refused::ExpiredContext { time, not_after } => {
            let ago = time.as_secs().saturating_sub(not_after.as_secs());
            Some(format!("expired {} ago", span(ago)))
        }
        Refused::NotValidYetContext { time, not_before } => {
            let ahead = not_before.as_secs().saturating_sub(time.as_secs());
            Some(format!("is valid only in {}", span(ahead)))
        }
        _ => None,
    }
}

fn identity(client: &Client) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
    let chain = client.certificates();
    if chain.is_empty() {
        return Err("there is no certificate in it".to_owned());
    }
    let pem = client.key_pem().ok_or("its key is not there")?;
    let key = PrivateKeyDer::from_pem_slice(pem.expose_secret().as_bytes());
    Ok((chain, key.map_err(|_| "its key cannot be read as PEM")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Authority;
    use tokio::net::TcpListener;

    /// A server with this certificate that says nothing after the handshake; asked as `127.0.0.1`.
    async fn asked(server: crate::testing::Server, trusted: &Authority) -> ApiError {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = Endpoint { host: "127.0.0.1".to_owned(), port: listener.local_addr().unwrap().port() };
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(server.config()));
        let serve = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let accepted = acceptor.accept(stream).await;
            tokio::time::sleep(Duration::from_secs(60)).await;
            drop(accepted);
        });
        let mut roots = RootCertStore::empty();
        roots.add(trusted.der()).unwrap();
        let api = Api::new(&endpoint, Trust::Authorities(Arc::new(roots)), Shown::Nothing).unwrap();
        let failure = api.get("/version", Duration::from_secs(2)).await.unwrap_err();
        serve.abort();
        failure
    }

    #[tokio::test]
    async fn a_stranger_is_told_from_one_who_is_silent_and_one_who_is_not_there() {
        let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
        let stranger = asked(theirs.server("127.0.0.1"), &ours).await;
        assert!(matches!(stranger, ApiError::Untrusted { .. }), "{stranger}");
        let misnamed = asked(ours.server("api.test"), &ours).await;
        assert!(matches!(misnamed, ApiError::Untrusted { .. }), "{misnamed}");
        let silent = asked(ours.server("127.0.0.1"), &ours).await;
        assert!(matches!(silent, ApiError::Silent { .. }), "{silent}");
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let endpoint = Endpoint { host: "127.0.0.1".to_owned(), port: closed.port() };
        let none = Trust::Authorities(Arc::new(RootCertStore::empty()));
        let api = Api::new(&endpoint, none, Shown::Nothing).unwrap();
        let gone = api.get("/version", Duration::from_secs(5)).await.unwrap_err();
        assert!(matches!(gone, ApiError::Unreachable { .. }), "{gone}");
    }

    #[tokio::test]
    async fn a_certificate_out_of_its_time_is_a_matter_of_clocks_and_no_stranger() {
        let ours = Authority::new("ours");
        for (years, says) in [(2000..2001, "expired"), (2900..2901, "is valid only in")] {
            let failure = asked(ours.server_of("127.0.0.1", years), &ours).await;
            assert!(matches!(failure, ApiError::OutOfDate { .. }), "{failure}");
            assert!(failure.to_string().contains(says), "{failure}");
        }
    }
}
