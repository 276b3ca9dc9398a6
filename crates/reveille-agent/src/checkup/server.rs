//! What the agent reads about one API server, from its name to its answers.

use std::fmt;
use std::net::IpAddr;

use super::reading::Reading;

/// One address to join, and how far the agent got with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// `host:port`.
    pub endpoint: String,
    /// The host name or address in `endpoint`.
    pub host: String,
    /// The result of the DNS lookup.
    pub lookup: Reading<Lookup>,
    /// The result of the TCP connection.
    pub connect: Reading<Connect>,
    /// The TLS handshake, without verifying the server.
    pub tls: Reading<Tls>,
    /// CAs that came as documents, and their sources: cluster-info, a kubeconfig.
    pub authorities: Reading<Vec<Authority>>,
    /// The TLS handshake, verified with the trusted CA.
    pub verified: Reading<Verified>,
    /// The answer to a request for the version.
    pub api: Reading<Api>,
    /// The server's clock minus ours, in seconds, by the Date header of an answer.
    pub offset_s: Reading<i64>,
    /// What the ConfigMap cluster-info tells a machine that wants to join.
    pub cluster_info: Reading<ClusterInfo>,
    /// The hash of the CA bundle that a k3s or RKE2 supervisor serves; `None` when the answer is not a CA bundle.
    pub bundle: Reading<Option<String>>,
    /// The server's answer to the token.
    pub token: Reading<TokenSeen>,
}

/// The result of a DNS lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The addresses; the host itself where it is an address.
    Found(Vec<IpAddr>),
    /// There is no such name.
    NoSuchName(String),
    /// No resolver answered.
    NoAnswer(String),
}

/// The result of a TCP connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Connect {
    /// Connected, from our address to the server's address.
    Made {
        /// Our address.
        from: IpAddr,
        /// The server's address.
        to: IpAddr,
    },
    /// The host answers with a reset: no process listens on the port.
    Refused(IpAddr),
    /// The host does not answer.
    Silent(IpAddr),
    /// The network reports that there is no route: its words.
    NoWay(IpAddr, String),
}

/// A TLS handshake, without verifying the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tls {
    /// The server sent these certificates, its own first.
    Shown(Vec<Certificate>),
    /// The server does not speak TLS: its first words.
    NotTls(String),
    /// The handshake broke off: the reason.
    Broken(String),
    /// The server accepts the connection and sends nothing.
    Silent,
}

/// A certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The subject.
    pub subject: String,
    /// The issuer.
    pub issuer: String,
    /// Valid from.
    pub not_before_s: i64,
    /// Valid until.
    pub not_after_s: i64,
    /// The hash of the public key.
    pub pin: Option<String>,
    /// The names and addresses that the certificate is valid for.
    pub names: Vec<String>,
}

/// A CA certificate that came as a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// The certificate.
    pub certificate: Certificate,
    /// The source: "the cluster's own word", "/etc/kubernetes/kubelet.conf".
    pub from: String,
}

/// A TLS handshake, verified with the trusted CA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verified {
    /// The certificate is valid for the server.
    Yes,
    /// The certificate is for other names.
    WrongName,
    /// The certificate has expired.
    Expired,
    /// The certificate is not valid yet.
    NotYet,
    /// Another CA signed the certificate.
    OtherAuthority,
    /// Another error: its text.
    No(String),
}

/// The answer to a request for the version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Api {
    /// An API server of this version.
    Is(String),
    /// An API server that refuses the request or is not healthy: status and words.
    Refuses(u16, String),
    /// Another kind of server: status and first words.
    Else(u16, String),
    /// The server does not answer in time.
    Silent,
}

/// What the ConfigMap cluster-info holds: the cluster's CA, signed with bootstrap tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterInfo {
    /// The ConfigMap exists.
    There(Signature),
    /// The ConfigMap does not exist.
    Absent,
    /// Anonymous clients may not read the ConfigMap.
    Forbidden(String),
    /// The ConfigMap exists and cannot be used: the reason.
    Malformed(String),
}

/// Whether the ConfigMap is signed with the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signature {
    /// The signature is right.
    Good,
    /// There is no signature of that token id: the ids that did sign.
    Missing(Vec<String>),
    /// The signature of that token id was made with another secret or over another text.
    Wrong,
    /// There is no token to check with.
    NoToken,
}

/// The server's answer to the bootstrap token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenSeen {
    /// The server accepts the token.
    Accepted,
    /// The server refuses the token (401).
    Refused,
}

impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subject, issuer, pin, .. } = self;
        write!(f, "\"{subject}\" of \"{issuer}\", {}", pin.as_deref().unwrap_or("key unreadable"))
    }
}
