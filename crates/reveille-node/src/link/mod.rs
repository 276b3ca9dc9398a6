//! The link to the registration server: enrol, hold a session, renew, and report failures.
//!
//! ```text
//!  Link { server, pins } ─▶ dial: name, TCP, TLS 1.3 under the pins ─▶ http: one request ─┬▶ enrol ─▶ Credential ─▶ keyring
//!                                                                                        ├▶ renew ─▶ the next Credential
//!                                                                                        └▶ session ─▶ WebSocket, long poll
//!  Session: say(AgentFrame) ─▶ numbered ─▶ server      next() ◀─ ServerFrame, or why there is none any more
//! ```
//!
//! Every step has a deadline, and every failure is a [`LinkError`] that names the step, with the code of the server's own
//! list where there is one. A wrong pin, a proxy and another server are distinguished in this module, because only the
//! machine can see the difference. A connection has one use. The holder of the link decides when to try again
//! ([`LinkError::retry_after_s`] is what the server asks for).
//!
//! Not in this module on purpose: the agent's reports, its reaction to orders, and its backoff.

mod dial;
mod enrol;
mod http;
mod keyring;
mod poll;
mod session;
mod socket;
mod wires;

use std::time::Duration;

use reveille_wire::agent::{Ping, Reason, Refused};
use thiserror::Error;

pub use enrol::{Enrolment, RenewError};
pub use keyring::{Credential, Kept, Keyring, KeyringError};
pub(crate) use session::is_whole;
pub use session::{Carrier, Session};

use crate::pins::Pins;
use crate::target::Endpoint;

/// The time limit of each step of a connection.
pub(crate) const STEP_WITHIN: Duration = Duration::from_secs(10);
/// The time limit of an answer that the server does not hold. The server itself gives up a little earlier.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// The server's address, and its pins.
#[derive(Clone, Debug)]
pub struct Link {
    /// The address.
    pub server: Endpoint,
    /// The pins.
    pub pins: Pins,
}

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum LinkError {
    /// The name has no address.
    #[error("the name {host:?} of the registration server cannot be resolved")]
    Resolve {
        /// The name.
        host: String,
        /// The error.
        source: std::io::Error,
    },
    /// No server accepts a connection.
    #[error("the registration server {server} does not accept a connection")]
    Connect {
        /// The server.
        server: String,
        /// The error of the last tried address.
        source: std::io::Error,
    },
    /// The handshake failed for another reason than the pins.
    #[error("the TLS handshake with {server} failed: {what}")]
    Tls {
        /// The server.
        server: String,
        /// The reason.
        what: String,
    },
    /// The server refused, or the other end is not the server: a code of the protocol's list.
    #[error("{0}")]
    Refused(Box<Refused>),
    /// A step did not end in time.
    #[error("{step} of {server} took longer than {within_s} s")]
    Late {
        /// The step.
        step: &'static str,
        /// The server.
        server: String,
        /// The time limit.
        within_s: u64,
    },
    /// The connection broke.
    #[error("the connection to {server} broke: {what}")]
    Broken {
        /// The server.
        server: String,
        /// How it broke.
        what: String,
    },
    /// The machine's own key or request could not be made.
    #[error("a key for this machine cannot be made: {0}")]
    Key(String),
}

impl LinkError {
    /// The code of the protocol's list, where there is one.
    pub fn reason(&self) -> Option<&Reason> {
        match self {
            Self::Refused(refused) => Some(&refused.reason),
            _ => None,
        }
    }

    /// When to ask again, as the server or the finding says; none where it says nothing.
    pub fn retry_after_s(&self) -> Option<u32> {
        match self {
            Self::Refused(refused) => refused.retry_after_s,
            _ => None,
        }
    }

    /// Asking again is useless until an operator acts.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Refused(refused) if refused.retry_after_s.is_none() && !refused.reason.is_wait())
    }

    /// The error with its causes, for people.
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
    /// Asks the server for its name and version.
    ///
    /// # Errors
    ///
    /// The server does not answer, or another server does.
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
