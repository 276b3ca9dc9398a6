//! What the cluster says of a machine beside its console: which objects are asked about, and the answers, not judged yet.
//!
//! ```text
//!  engine ─▶ Look::LogEvidence(instance, query) ─┬▶ cloud: its console ──────────────┬▶ judged at the edge ─▶ LogFindings
//!                                                └▶ cluster: Said (node, events, csr) ┘
//! ```
//!
//! An [`EvidenceQuery`] says which machine the question is about and what it is for. The cloud and the cluster answer each
//! for its part, and the performer of the read judges both parts together, so that there is one ranking. No part of
//! [`Said`] reaches a decision except through that judgement. Each part fails by itself, because rights to read certificate
//! requests are rarer than rights to read Nodes. A part that could not be read is named ([`Unread`]), and never taken for
//! "there is none".

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::evidence::Source;
use super::id::NodeName;
use super::node::{Node, NodeEvent};

/// Which machine the evidence is about, and what it is taken for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EvidenceQuery {
    /// The Node that it has, or had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeName>,
    /// The name that its kubelet asks for a certificate by.
    pub asks_as: NodeName,
    /// What its console says of trouble counts. A machine that has joined may be chatty about what it survived.
    pub console_counts: bool,
}

/// What the cluster's API says of one machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Said {
    /// Its Node, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<Arc<Node>>,
    /// Events about that Node, oldest first.
    pub events: Vec<NodeEvent>,
    /// Requests for certificates in its name, newest first. Bounded.
    pub requests: Vec<CertificateRequest>,
    /// What could not be read.
    pub unread: Vec<Unread>,
}

/// A CertificateSigningRequest, cut down to what explains a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CertificateRequest {
    /// The object's name: `csr-82bb8`.
    pub name: Arc<str>,
    /// `spec.signerName`: which kind of certificate.
    pub signer: Arc<str>,
    /// `spec.username`: who asked, a bootstrap token or the node itself.
    pub requester: Arc<str>,
    /// What became of it.
    pub state: RequestState,
    /// Why, in the words of the approver or signer that decided.
    pub message: Arc<str>,
    /// When it was made, in the API server's words.
    pub stamped: Arc<str>,
}

/// What became of a request for a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestState {
    /// No approver has decided.
    Pending,
    /// Approved, and no certificate is there: no signer issues it.
    Approved,
    /// The certificate is there.
    Issued,
    /// An approver denied the request.
    Denied,
    /// The signer could not, or would not.
    Failed,
}

impl RequestState {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Pending, Self::Approved, Self::Issued, Self::Denied, Self::Failed];

    /// The word for it, as `kubectl get csr` prints it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Approved => "Approved",
            Self::Issued => "Approved,Issued",
            Self::Denied => "Denied",
            Self::Failed => "Approved,Failed",
        }
    }
}

/// Something that could have told, and was not to be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Unread {
    /// What.
    pub source: Source,
    /// Why, in a clause.
    pub why: Arc<str>,
}
