//! Credentials, held until shortly before their end, fetched by one at a time.
//!
//! ```text
//! request ─▶ held and not near their end? ─ yes ─▶ these
//!                                         └ no ──▶ the standard chain (environment, profiles, SSO, web identity, ECS, IMDSv2)
//! ```
//!
//! A request whose credentials are refused waits for the task that already fetches others. A fetch that failed is not tried again
//! at once; while the old credentials last, they serve. No key and no token reaches a log, an error or a Debug output. An error
//! names the source that failed and the kind of its failure.

use std::error::Error as _;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use reveille_cloud::failure::{Ending, Failure};
use reveille_cloud::text::{bounded, message};
use reveille_core::effect::ReadErrorKind;
use reveille_core::model::time::Span;
use thiserror::Error;
use tokio::sync::Mutex;

/// The chain asks several sources, one after another, and metadata has retries of its own.
const FETCH_DEADLINE: Duration = Duration::from_secs(30);
/// Credentials are fetched again so long before their end.
const RENEW_MARGIN: Duration = Duration::from_secs(300);
/// After a fetch that failed, the next one waits this long.
const HOLD_FAILED: Duration = Duration::from_secs(5);

/// Why there are no credentials.
#[derive(Clone, Debug, Error)]
pub enum CredentialError {
    /// No source of the chain has any.
    #[error(
        "no credentials were found: neither in the environment, nor in a profile, nor from web identity, nor from \
         container or instance metadata. Name a profile, or give the machine or service account a role"
    )]
    None,
    /// A source has some, and its settings are wrong.
    #[error("the credentials' settings cannot be used: {text}")]
    Settings {
        /// What is wrong.
        text: Arc<str>,
    },
    /// A source was asked, and failed.
    #[error("credentials could not be fetched: {text}")]
    Source {
        /// In its words.
        text: Arc<str>,
    },
    /// A source did not answer in time.
    #[error("credentials could not be fetched within {} s", FETCH_DEADLINE.as_secs())]
    TimedOut,
    /// There are some, and they cannot sign a request.
    #[error("the request cannot be signed: {0}")]
    Unusable(String),
}

impl Failure for CredentialError {
    fn read_kind(&self) -> ReadErrorKind {
        ReadErrorKind::Unauthorized
    }

    fn retry_after(&self) -> Option<Span> {
        None
    }

    fn ending(&self) -> Ending {
        Ending::NotDone(None)
    }
}

impl CredentialError {
    fn of(error: &CredentialsError) -> Self {
        let text = || Arc::from(said(error));
        match error {
            CredentialsError::CredentialsNotLoaded(_) => Self::None,
            CredentialsError::InvalidConfiguration(_) => Self::Settings { text: text() },
            CredentialsError::ProviderTimedOut(_) => Self::TimedOut,
            _ => Self::Source { text: text() },
        }
    }
}

/// Each cause once; the outer ones of the chain say little.
fn said(error: &CredentialsError) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut at = error.source();
    while let Some(cause) = at {
        let text = cause.to_string();
        if !parts.iter().any(|part| part.contains(&text)) {
            parts.push(bounded(&message(&text), 200).to_owned());
        }
        at = cause.source();
    }
    if parts.is_empty() { error.to_string() } else { parts.join(": ") }
}

/// Credentials that were handed out, with a number to tell later ones from them.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    generation: u64,
    pub(crate) credentials: Arc<Hidden>,
}

/// Credentials without a Debug output.
pub(crate) struct Hidden(pub(crate) Credentials);

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("credentials")
    }
}

#[derive(Debug, Default)]
struct State {
    held: Option<Held>,
    /// From here on others are fetched, and these serve while that fails.
    renew_at: Option<Instant>,
    ends_at: Option<Instant>,
    /// The last failure and when the next try may be.
    failed: Option<(Instant, CredentialError)>,
    count: u64,
}

/// Where credentials come from.
#[derive(Debug)]
pub(crate) struct Keyring {
    provider: SharedCredentialsProvider,
    state: Mutex<State>,
}

impl Keyring {
    pub(crate) fn new(provider: SharedCredentialsProvider) -> Self {
        Self { provider, state: Mutex::default() }
    }

    /// Credentials that are good now. `refused` are some that a service did not accept.
    pub(crate) async fn get(&self, refused: Option<&Held>) -> Result<Held, CredentialError> {
        let mut state = self.state.lock().await;
        let now = Instant::now();
        let is_past = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let held = state.held.clone().filter(|held| {
            let refused = refused.is_some_and(|refused| refused.generation == held.generation);
            !refused && !is_past(state.ends_at)
        });
        if let Some(held) = held.as_ref().filter(|_| !is_past(state.renew_at)) {
            return Ok(held.clone());
        }
        if let Some((until, error)) = &state.failed
            && now < *until
        {
            return held.ok_or_else(|| error.clone());
        }
        match self.fetch().await {
            Ok(credentials) => {
                let lifetime =
                    credentials.expiry().map(|end| end.duration_since(SystemTime::now()).unwrap_or_default());
                state.count += 1;
                let held = Held { generation: state.count, credentials: Arc::new(Hidden(credentials)) };
                state.ends_at = lifetime.map(|lifetime| now + lifetime);
                state.renew_at =
                    lifetime.map(|lifetime| now + lifetime.saturating_sub(RENEW_MARGIN.min(lifetime / 5)));
                state.failed = None;
                state.held = Some(held.clone());
                Ok(held)
            }
            Err(error) => {
                state.failed = Some((now + HOLD_FAILED, error.clone()));
                held.ok_or(error)
            }
        }
    }

    async fn fetch(&self) -> Result<Credentials, CredentialError> {
        match tokio::time::timeout(FETCH_DEADLINE, self.provider.provide_credentials()).await {
            Ok(Ok(credentials)) => Ok(credentials),
            Ok(Err(error)) => Err(CredentialError::of(&error)),
            Err(_) => Err(CredentialError::TimedOut),
        }
    }
}
