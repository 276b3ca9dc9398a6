//! Before a session: the server says what it is, and gives a certificate for a token, or a new certificate for an old one.
//!
//! The token travels in the header (`Authorization: Bearer rvi1.ID.SECRET`), never in a body that may be logged whole.
//! The machine makes the key and keeps it; only a request for a certificate travels.

use serde::{Deserialize, Serialize};

use super::identity::{Facts, Identity};
use super::text::{List, Sentence, Text, Word};

/// A certificate, or a request for one, as PEM.
pub type Pem = Text<{ 16 << 10 }>;

/// What the server says about itself. A proxy or another server answers something else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ping {
    /// [`super::PRODUCT`].
    pub product: Word,
    /// The program's version.
    pub version: Word,
    /// The protocols that the server speaks.
    pub protocols: List<u32, 16>,
    /// The server's clock, RFC 3339. An operator compares it to find a wrong clock; the machine judges
    /// certificates by its own clock.
    pub time: Word,
}

/// A machine asks to be enrolled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Enrol {
    /// The protocol that the machine speaks.
    pub protocol: u32,
    /// Which machine it is.
    pub identity: Identity,
    /// What the machine reports about itself.
    #[serde(default)]
    pub facts: Facts,
    /// The name for the machine's Node; its host name where none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<Word>,
    /// A request for a certificate (PKCS 10), signed by the machine's own key: ECDSA P-256 or Ed25519. The
    /// server ignores its subject.
    pub csr: Pem,
}

/// A machine asks for its next certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Renew {
    /// The protocol that the machine speaks.
    pub protocol: u32,
    /// A request for a certificate, by the same key or by the next one.
    pub csr: Pem,
}

/// The machine is enrolled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enrolled {
    /// The machine's record, which is also the name in the certificate.
    pub machine: Word,
    /// The machine's certificate.
    pub certificate: Pem,
    /// The certificate authorities of this server.
    pub authorities: Pem,
    /// The pins of these authorities.
    pub ca_pins: List<Word, 8>,
    /// The name of the machine's Node.
    pub node_name: Word,
    /// The certificate ends after this many seconds from now.
    pub ttl_s: u64,
    /// The machine renews the certificate after this many seconds from now.
    pub renew_after_s: u64,
    /// What to do next, for an operator.
    #[serde(default)]
    pub next: Sentence,
}
