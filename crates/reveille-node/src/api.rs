//! The API server as one machine asks it: a path, a deadline, an answer of bounded size.
//!
//! The caller says whom the connection trusts and what it shows: [`Trust`] and [`Shown`]. An answer is an answer whatever
//! its status. Only a missing answer is a failure, and each kind has its own variant: "refused", "silent" and "another
//! server answered" need different repairs. Like the kubelet, the connection uses no proxy from the environment. This
//! module never repeats a question.

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

use crate::pins;
use crate::short_chain::ShortChain;
use crate::target::Endpoint;
use crate::target::kubeconfig::Client;
use crate::verifier::Judged;

/// No answer that the agent reads is longer: a Node with many images has some hundred KiB.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The time limit for a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Whom to trust as the server.
pub enum Trust {
    /// These CAs, for the server's name.
    Authorities(Arc<RootCertStore>),
    /// The verifier decides.
    Verifier(Arc<dyn ServerCertVerifier>),
}

/// What the client shows to the server.
#[derive(Clone, Copy)]
pub enum Shown<'a> {
    /// No credentials.
    Nothing,
    /// A bootstrap token.
    Token(&'a SecretString),
    /// A user's password, as the supervisors of k3s and RKE2 accept it.
    Password(&'a str, &'a SecretString),
    /// A client certificate.
    Certificate(&'a Client),
}

/// A connection to one API server.
#[derive(Clone, Debug)]
pub struct Api {
    http: reqwest::Client,
    endpoint: Endpoint,
    authorization: Option<SecretString>,
}

/// The server's answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The server's `Date` header, as written.
    pub date: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// No answer came, or no question was sent.
#[derive(Debug, Error)]
pub enum ApiError {
    /// The credentials cannot be used.
    #[error("cannot connect to {endpoint} with the kubelet's certificate: {cause}")]
    Credentials {
        /// The server.
        endpoint: Endpoint,
        /// The cause.
        cause: String,
    },
    /// The connection cannot be set up.
    #[error("cannot set up a connection to {endpoint}: {source}")]
    SetUp {
        /// The server.
        endpoint: Endpoint,
        /// The cause.
        source: reqwest::Error,
    },
    /// A server answered that is not trusted.
    #[error("{endpoint} is not who was pinned or known: {cause}")]
    Untrusted {
        /// The server.
        endpoint: Endpoint,
        /// The cause.
        cause: String,
    },
    /// The server's certificate is not valid at this time, by this machine's clock.
    #[error("the certificate of {endpoint} {cause}: compare the clocks of this machine and of the server")]
    OutOfDate {
        /// The server.
        endpoint: Endpoint,
        /// When the certificate begins or ended.
        cause: String,
    },
    /// The server did not answer in time.
    #[error("{endpoint} did not answer within {within_s} s")]
    Silent {
        /// The server.
        endpoint: Endpoint,
        /// The time limit.
        within_s: u64,
    },
    /// There is no connection, or it broke.
    #[error("{endpoint} cannot be reached: {cause}")]
    Unreachable {
        /// The server.
        endpoint: Endpoint,
        /// The innermost cause.
        cause: String,
    },
    /// The answer is longer than any valid answer.
    #[error("{endpoint} answers more than {ANSWER_BYTES_MAX} bytes")]
    TooLong {
        /// The server.
        endpoint: Endpoint,
    },
}

impl Api {
    /// Sets a connection up; sends nothing yet.
    ///
    /// # Errors
    ///
    /// The credentials cannot be read as certificate and key.
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

    /// The server.
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Asks for a path.
    ///
    /// # Errors
    ///
    /// No whole answer came within the time limit.
    pub async fn get(&self, path: &str, within: Duration) -> Result<Answer, ApiError> {
        self.get_as(path, &[], within).await
    }

    /// Asks for a path with additional headers, whose values are never logged.
    ///
    /// # Errors
    ///
    /// No whole answer came within the time limit.
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

    /// The failure, by its innermost cause: the outer causes only say that a request was being sent.
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
            return ApiError::Untrusted { endpoint, cause: pins::explain(untrusted) };
        }
        ApiError::Unreachable { endpoint, cause: cause.to_string() }
    }
}

/// The TLS failure inside, where a certificate caused it. An I/O error skips the error that it wraps when it is asked for
/// its source, and may wrap another one, so this opens each.
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

/// How the dates of a certificate caused its refusal.
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

    /// A server with this certificate that sends nothing after the handshake; the client asks it as `127.0.0.1`.
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
    async fn untrusted_silent_and_unreachable_servers_are_distinguished() {
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
    async fn certificate_outside_validity_is_clock_error_not_untrusted() {
        let ours = Authority::new("ours");
        for (years, says) in [(2000..2001, "expired"), (2900..2901, "is valid only in")] {
            let failure = asked(ours.server_of("127.0.0.1", years), &ours).await;
            assert!(matches!(failure, ApiError::OutOfDate { .. }), "{failure}");
            assert!(failure.to_string().contains(says), "{failure}");
        }
    }
}
