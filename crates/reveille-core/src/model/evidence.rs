//! What a finding rests on: where something was read, and what it says, as types.
//!
//! ```text
//!  views, testimonies ─ diagnose ─▶ Evidence { source, fact, … } ─▶ Finding ─▶ ledger, as it is
//!                                                                      └▶ words ─▶ reports, pages, logs: text
//! ```
//!
//! A [`Fact`] is one statement with the ids, spans and names that it is made of, so that another part of the program can ask
//! for them, and a sentence can be reworded without a look at what decides. `words` is the one place that makes text of
//! both. What others said (a line of a console, a message of an API) stays text, cut to size: [`quoted`] cuts one text and
//! [`shown`] a list, so that an incident stays small however much they say. Not here: what follows from a fact.

use std::fmt::Display;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::access::UserRef;
use super::id::{NodeName, PoolName, PortId, RouterId};
use super::roster::GroupRef;
use super::time::Time;

mod fact;
mod words;

pub use fact::{Fact, GuestFact, MachineFact, NetworkFact, NodeFact};

/// One fact, and where it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Evidence {
    /// Where it was read.
    pub source: Source,
    /// What it says.
    pub fact: Fact,
    /// When we read it.
    pub read_at: Time,
    /// Which line of the source it is, where the source has lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<Line>,
}

/// A line that carries a sign of a catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Line {
    /// From 1; 0 where the source is a statement and has no lines.
    pub number: u64,
    /// How often lines like it were seen in that source.
    pub times: u64,
    /// The sign: what in the line proves the cause.
    pub sign: Arc<str>,
}

impl Evidence {
    /// Longer texts are cut: an incident must stay small however talkative a console is.
    pub const TEXT_BYTES_MAX: usize = 512;

    /// A fact that is no line of its source.
    pub fn new(source: Source, fact: impl Into<Fact>, read_at: Time) -> Self {
        Self { source, fact: fact.into(), read_at, line: None }
    }
}

/// A text of others, cut to size at a character border.
pub fn quoted(text: &str) -> Arc<str> {
    Arc::from(&text[..text.floor_char_boundary(Evidence::TEXT_BYTES_MAX)])
}

/// As many items as a text of that size has room for.
pub fn shown<T: Display>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut bytes = 0;
    let fits = |item: &T| {
        let room = bytes < Evidence::TEXT_BYTES_MAX;
        bytes += item.to_string().len();
        room
    };
    items.into_iter().take_while(fits).collect()
}

/// Where something was read. Findings of one problem are compared by it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Source {
    /// The instance, as its cloud describes it.
    Instance,
    /// The tags and metadata of the instance.
    Marks,
    /// The Node that is linked to the machine.
    OwnNode,
    /// A Node.
    Node(NodeName),
    /// The list of Nodes.
    Nodes,
    /// A port of the machine.
    Port(PortId),
    /// A security group.
    Group(GroupRef),
    /// A group of the roster that is not exactly one group of the project, and the pool that names it.
    GroupOfPool(Arc<str>, PoolName),
    /// A router.
    Router(RouterId),
    /// A service user.
    User(Arc<UserRef>),
    /// The machine's console.
    Console,
    /// What the cloud logs of acts on the instance.
    ActionLog,
    /// The agent on the machine.
    Agent,
    /// What the provider announces.
    Provider,
    /// The provider's own checks.
    StatusChecks,
    /// The machine's disks.
    Disks,
    /// The cloud's group that keeps the machine.
    ScalingGroup,
    /// The cluster's API.
    Cluster,
    /// The cloud's API.
    Cloud,
    /// Our own memory.
    Ledger,
    /// The lease of the Node.
    Lease,
    /// A taint of the Node.
    Taint,
    /// An event about a Node, by its reason.
    Event(Arc<str>),
    /// The events about a Node.
    Events,
    /// Requests for certificates in the machine's name.
    CertificateRequests,
    /// A source that the reader of a catalogue names: `csr csr-82bb8`, `node condition Ready`.
    Named(Arc<str>),
}
