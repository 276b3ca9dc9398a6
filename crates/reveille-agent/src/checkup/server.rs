//! What is read of one API server: from its name to what it says.

use std::fmt;
use std::net::IpAddr;

use super::reading::Reading;

/// One address that is to be joined, and how far it was come by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// `host:port`.
    pub endpoint: String,
    /// The name or address in it.
    pub host: String,
    /// The address of the name.
    pub lookup: Reading<Lookup>,
    /// A connection.
    pub connect: Reading<Connect>,
    /// The handshake, without judging who answers.
    pub tls: Reading<Tls>,
    /// Authorities that came as documents, and from where: the cluster's own word, a kubeconfig.
    pub authorities: Reading<Vec<Authority>>,
    /// The handshake under the authority that is trusted.
    pub verified: Reading<Verified>,
    /// What it says when it is asked for its version.
    pub api: Reading<Api>,
    /// Its clock less ours, seconds, by the date of an answer.
    pub offset_s: Reading<i64>,
    /// What the cluster tells those who want to join.
    pub cluster_info: Reading<ClusterInfo>,
    /// The hash of the bundle of authorities that a supervisor tells; `None` when what it tells is none.
    pub bundle: Reading<Option<String>>,
    /// What it says to the token.
    pub token: Reading<TokenSeen>,
}

/// The address of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Addresses; the host itself where it is one.
    Found(Vec<IpAddr>),
    /// There is no such name.
    NoSuchName(String),
    /// Nobody could say.
    NobodyAnswers(String),
}

/// A connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Connect {
    /// It was made, from this address of ours to that one.
    Made {
        /// Ours.
        from: IpAddr,
        /// Theirs.
        to: IpAddr,
    },
    /// Somebody is there, and nobody listens.
    Refused(IpAddr),
    /// Nobody answers.
    Silent(IpAddr),
    /// The network says that there is no way: its words.
    NoWay(IpAddr, String),
}

/// A handshake, without judging who answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tls {
    /// These certificates were shown, the server's own first.
    Shown(Vec<Certificate>),
    /// What answers does not speak TLS: its first words.
    NotTls(String),
    /// It broke off: why.
    Broken(String),
    /// The connection is taken, and nothing is said on it.
    Silent,
}

/// A certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Whose.
    pub subject: String,
    /// Who signed it.
    pub issuer: String,
    /// Valid from.
    pub not_before_s: i64,
    /// Valid until.
    pub not_after_s: i64,
    /// The hash of its key.
    pub pin: Option<String>,
    /// The names and addresses that it is for.
    pub names: Vec<String>,
}

/// An authority that came as a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// It.
    pub certificate: Certificate,
    /// From where: "the cluster's own word", "/etc/kubernetes/kubelet.conf".
    pub from: String,
}

/// A handshake under the authority that is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verified {
    /// It is who it should be.
    Yes,
    /// Its certificate is for other names.
    WrongName,
    /// Its certificate has run out.
    Expired,
    /// Its certificate is not valid yet.
    NotYet,
    /// Its certificate is of another authority.
    OtherAuthority,
    /// Something else: what.
    No(String),
}

/// What it says when it is asked for its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Api {
    /// An API server of this version.
    Is(String),
    /// An API server that refuses to say, or is not well: status and words.
    Refuses(u16, String),
    /// Something else: status and first words.
    Else(u16, String),
    /// Nothing, in time.
    Silent,
}

/// What the cluster tells those who want to join: its authority, signed with tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterInfo {
    /// It is there.
    There(Signature),
    /// It is not.
    Absent,
    /// Strangers may not read it.
    Forbidden(String),
    /// It is there and cannot be used: why.
    Malformed(String),
}

/// Whether it is signed with the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signature {
    /// It is.
    Good,
    /// Not with a token of that id: the ids that it is signed with.
    Missing(Vec<String>),
    /// With a token of that id and another secret, or over another text.
    Wrong,
    /// There is no token to check with.
    NoToken,
}

/// What the server says to the bootstrap token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenSeen {
    /// It knows it.
    Accepted,
    /// It does not (401).
    Refused,
}

impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subject, issuer, pin, .. } = self;
        write!(f, "\"{subject}\" of \"{issuer}\", {}", pin.as_deref().unwrap_or("key unreadable"))
    }
}
