//! The link to the registration server: be enrolled, hold a session, renew, and say why not.
//!
//! ```text
//!  Link { server, pins } ─▶ dial: name, TCP, TLS 1.3 under the pins ─▶ http: one request ─┬▶ enrol ─▶ Credential ─▶ keyring
//!                                                                                        ├▶ renew ─▶ the next Credential
//!                                                                                        └▶ session ─▶ WebSocket, long poll
//!  Session: say(AgentFrame) ─▶ numbered ─▶ server      next() ◀─ ServerFrame, or why there is none any more
//! ```
//!
//! Every step has a deadline, and every failure is a [`LinkError`] that names the step, with the code of the server's own list
//! where there is one: a wrong pin, a proxy and another server are told apart here, because nobody else can. A connection is
//! used for one thing. When to try again is decided by whoever holds the link ([`LinkError::retry_after_s`] is what the server
//! asks for).
//!
//! Deliberately not here: what an agent reports, what it does when it is told to, and its backoff.

mod dial;
mod enrol;
mod http;
mod keyring;
mod poll;
mod session;
mod socket;

use std::time::Duration;

use reveille_wire::agent::{Ping, Reason, Refused};
use thiserror::Error;

pub use enrol::{Enrolment, RenewError};
pub use keyring::{Credential, Kept, Keyring, KeyringError};
pub(crate) use session::is_whole;
pub use session::{Carrier, Session};

use crate::pin::Pins;
use crate::target::Endpoint;

/// Longest for each step of a connection.
pub(crate) const STEP_WITHIN: Duration = Duration::from_secs(10);
/// Longest for an answer that is not held back. The server itself gives up a little earlier.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// Where the server is, and by which keys it is known.
#[derive(Clone, Debug)]
pub struct Link {
    /// Where.
    pub server: Endpoint,
    /// By which keys.
    pub pins: Pins,
}

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum LinkError {
    /// The name has no address.
    #[error("the name {host:?} of the registration server cannot be resolved")]
    Resolve {
        /// Which.
        host: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Nobody accepts a connection.
    #[error("the registration server {server} does not accept a connection")]
    Connect {
        /// Which.
        server: String,
        /// What the system said, of the last address that was tried.
        source: std::io::Error,
    },
    /// The handshake failed for another reason than the pins.
    #[error("the TLS handshake with {server} failed: {what}")]
    Tls {
        /// With which.
        server: String,
        /// Why.
        what: String,
    },
    /// The server refused, or what answered is not the server: a code of the one list.
    #[error("{0}")]
    Refused(Box<Refused>),
    /// A step did not end in time.
    #[error("{step} of {server} took longer than {within_s} s")]
    Late {
        /// Which step.
        step: &'static str,
        /// Of which server.
        server: String,
        /// Its deadline.
        within_s: u64,
    },
    /// The connection ended in the middle.
    #[error("the connection to {server} broke: {what}")]
    Broken {
        /// To which.
        server: String,
        /// How.
        what: String,
    },
    /// The machine's own key or request could not be made.
    #[error("a key for this machine cannot be made: {0}")]
    Key(String),
}

impl LinkError {
    /// The code of the one list, where there is one.
    pub fn reason(&self) -> Option<&Reason> {
        match self {
            Self::Refused(refused) => Some(&refused.reason),
            _ => None,
        }
    }

    /// When the server, or what was found, asks to be asked again; none where it says nothing of it.
    pub fn retry_after_s(&self) -> Option<u32> {
        match self {
            Self::Refused(refused) => refused.retry_after_s,
            _ => None,
        }
    }

    /// Nothing comes of asking again before a person did something.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Refused(refused) if refused.retry_after_s.is_none() && !refused.reason.is_wait())
    }

    /// Why, with its causes, for people.
    pub fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(inner) = cause {
            text.push_str(": ");
            text.push_str(&inner.to_string());
            cause = inner.source();
        }
        text
    }

    pub(crate) fn refused(reason: Reason) -> Self {
        Self::Refused(Box::new(reason.into()))
    }
}

impl Link {
    /// Who answers there.
    ///
    /// # Errors
    ///
    /// Nobody, or somebody else.
    pub async fn ping(&self) -> Result<Ping, LinkError> {
        let mut line = dial::dial(self, None).await?;
        line.get(reveille_wire::agent::path::PING).await
    }

    pub(crate) fn late(&self, step: &'static str, within: Duration) -> LinkError {
        LinkError::Late { step, server: self.server.to_string(), within_s: within.as_secs() }
    }

    pub(crate) fn broken(&self, what: impl std::fmt::Display) -> LinkError {
        LinkError::Broken { server: self.server.to_string(), what: what.to_string() }
    }
}
