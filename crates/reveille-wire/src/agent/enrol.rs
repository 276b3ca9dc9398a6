//! Before a session: who is there, a token for a certificate, a certificate for a newer one.
//!
//! The token travels in the header (`Authorization: Bearer rvi1.ID.SECRET`), never in a body that may be logged whole. The key
//! is made on the machine and stays there; a request for a certificate travels.

use serde::{Deserialize, Serialize};

use super::identity::{Facts, Identity};
use super::text::{List, Sentence, Text, Word};

/// A certificate, or a request for one, as PEM.
pub type Pem = Text<{ 16 << 10 }>;

/// Who answers here. A proxy or another server says something else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ping {
    /// [`super::PRODUCT`].
    pub product: Word,
    /// The program's version.
    pub version: Word,
    /// Protocols that are spoken.
    pub protocols: List<u32, 16>,
    /// The server's clock, RFC 3339. For a person who looks for a wrong clock; certificates are judged by the machine's own.
    pub time: Word,
}

/// A machine asks to be known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Enrol {
    /// The protocol it speaks.
    pub protocol: u32,
    /// Which machine it is.
    pub identity: Identity,
    /// What it says of itself.
    #[serde(default)]
    pub facts: Facts,
    /// The name that its node is to have; its host name where none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<Word>,
    /// A request for a certificate (PKCS 10), signed by the machine's own key: ECDSA P-256 or Ed25519. Its subject is not read.
    pub csr: Pem,
}

/// A machine asks for its next certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Renew {
    /// The protocol it speaks.
    pub protocol: u32,
    /// A request for a certificate, by the same key or by the next one.
    pub csr: Pem,
}

/// The machine is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enrolled {
    /// Its record; also the name in the certificate.
    pub machine: Word,
    /// Its certificate.
    pub certificate: Pem,
    /// The authorities that this server is known by.
    pub authorities: Pem,
    /// Their pins.
    pub ca_pins: List<Word, 8>,
    /// The name of its node.
    pub node_name: Word,
    /// The certificate ends after so long, seconds from now on.
    pub ttl_s: u64,
    /// Renew it after so long, seconds from now on.
    pub renew_after_s: u64,
    /// How to go on, for a person.
    #[serde(default)]
    pub next: Sentence,
}
