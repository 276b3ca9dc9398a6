//! The state of a machine, and why it is not expected, or its state is not known, as closed lists.
//!
//! ```text
//!  absence, service: the facts ─▶ MachineState ─┬─▶ the engine counts, opens and closes by it
//!                                               └─▶ Display: the line that people read
//! ```
//!
//! What the controller concludes of an absence is an [`Absence`] with its finding, whose words are made elsewhere
//! (`model::evidence`). Nothing here judges.

use std::fmt;
use std::sync::Arc;

use crate::model::hosting::OwnerGroup;
use crate::model::id::CloudName;
use crate::model::incident::{FaultKind, Finding};
use crate::model::time::{Span, Time};

/// The state of one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MachineState {
    /// It is here.
    Answers,
    /// It is not a Ready Node, and the controller does not expect it: it leaves on purpose, or a rule says that it has not
    /// come yet.
    Excused(Excuse),
    /// Its node is Ready, and it is not in service yet: it still carries this startup taint.
    Starting(Arc<str>),
    /// It is not here.
    Absent(Absence),
    /// Its state is unknown, and why.
    CannotTell(Unknown),
}

/// Why a machine is not expected to be a Ready Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Excuse {
    /// Its instance was denied by id, and left no Node.
    Gone,
    /// Its cloud deletes it.
    BeingDeleted,
    /// Its cloud builds it.
    BeingBuilt,
    /// Its group keeps it ready and out of service.
    InReserve(OwnerGroup),
    /// Its group takes it away.
    TakenByGroup(OwnerGroup),
    /// A client removes its Node on purpose, and by which sign.
    NodeLeaves(Arc<str>),
    /// A client removed its Node on purpose, and by which sign.
    NodeLeft(Arc<str>),
}

/// Why the state of a machine is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// Its cloud cannot be believed, and why.
    Cloud(CloudName, Arc<str>),
    /// The cluster cannot be believed, and why.
    Cluster(Arc<str>),
    /// The list of its cloud has lacked it for so long, and its Node is Ready.
    UnlistedAndReady(Span),
    /// The list of its cloud has lacked it for so long, and its id is not denied yet.
    NotProvedGone(Span),
    /// Its Node is in no list that can be believed.
    NodeLost,
}

/// One way of not being here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absence {
    /// Which way.
    pub kind: FaultKind,
    /// What the objects themselves say of the reason.
    pub finding: Finding,
    /// How long this is waited for from first sight. `None`: reported, never acted on.
    pub due_after: Option<Span>,
    /// Timers rest on the cluster's view as well as the cloud's.
    pub rests_on_cluster: bool,
    /// Its time is counted from no earlier moment than this.
    pub counted_from: Time,
}

impl fmt::Display for MachineState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answers => f.write_str("its node is Ready"),
            Self::Excused(excuse) => excuse.fmt(f),
            Self::Starting(taint) => {
                write!(f, "its node is Ready and still carries the startup taint {taint}")
            }
            Self::Absent(absence) => absence.kind.fmt(f),
            Self::CannotTell(unknown) => unknown.fmt(f),
        }
    }
}

impl fmt::Display for Excuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("its instance is gone"),
            Self::BeingDeleted => f.write_str("it is being deleted"),
            Self::BeingBuilt => f.write_str("it is being built"),
            Self::InReserve(OwnerGroup { name, word, .. }) => {
                write!(f, "its group {name} keeps it in reserve ({word})")
            }
            Self::TakenByGroup(OwnerGroup { name, word, .. }) => {
                write!(f, "its group {name} takes it away ({word})")
            }
            Self::NodeLeaves(sign) => write!(f, "it is being removed on purpose ({sign})"),
            Self::NodeLeft(sign) => write!(f, "its node was removed on purpose ({sign})"),
        }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cloud(name, why) => write!(f, "{name}: {why}"),
            Self::Cluster(why) => write!(f, "cluster: {why}"),
            Self::UnlistedAndReady(age) => {
                write!(f, "not in the listing for {age}, yet its node is Ready: the cloud's view is wrong")
            }
            Self::NotProvedGone(age) => {
                write!(f, "not in the listing for {age}; asked by id: not yet proved gone")
            }
            Self::NodeLost => f.write_str("its node is in no list that can be believed"),
        }
    }
}
