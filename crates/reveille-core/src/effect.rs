//! Everything that the engine can ask of the outside: one closed list.
//!
//! `engine::step` returns [`Effect`]s and does nothing itself. The controller performs them with real adapters; the
//! simulator performs them on its world, late, twice, out of order or not at all. The performer of an effect answers with
//! an event: `Record` with `Recorded`, `Look` with `Looked`, `Call` with `Done`. An answer may be "I do not know".
//!
//! A [`Call`] is only ever emitted after the intent that announces it was recorded (docs/SAFETY.md, invariant 6),
//! with a fencing number: a performer that holds another one refuses.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::access::{RoleRef, UserRef};
pub use crate::model::call::Call;
use crate::model::id::{
    CloudName, Fence, GroupId, InstanceId, IntentId, LookId, NodeName, RecordId, RouterId,
};
use crate::model::log_evidence::EvidenceQuery;
pub use crate::model::outcome::Outcome;
pub use crate::model::read_error::{ReadError, ReadErrorKind};
use crate::model::time::Time;
use crate::record::Record;

/// One thing to be done outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Effect {
    /// Make this record durable, then say `Recorded`.
    Record {
        /// Its number, to be echoed.
        id: RecordId,
        /// What to keep.
        record: Record,
    },
    /// Change something outside. Its intent is in the ledger already.
    Call {
        /// Whose call this is.
        intent: IntentId,
        /// Who may make it. A performer that holds another number refuses.
        fence: Fence,
        /// What to do.
        call: Call,
    },
    /// Read one thing afresh, past every cache, then say `Looked`.
    Look {
        /// Its number, to be echoed.
        id: LookId,
        /// What to read.
        look: Look,
    },
    /// Take a full listing of this cloud as soon as its pace allows ([`crate::pace`]), rather than at its next full period.
    /// A listing of changes does not answer this, nor does one that fails: the wish stays until a full listing was read.
    List {
        /// Which one.
        cloud: CloudName,
    },
    /// Send a `Tick` at this time, at the latest. The newest replaces older ones.
    #[serde(rename = "wake")]
    WakeAt(Time),
}

/// A targeted read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Look {
    /// The instance by its id.
    Instance(CloudName, InstanceId),
    /// The instance's ports.
    Ports(CloudName, InstanceId),
    /// The group with its rules.
    Group(CloudName, GroupId),
    /// The router with its routes.
    Router(CloudName, RouterId),
    /// The last lines of the instance's console.
    Console(CloudName, InstanceId),
    /// Everything that explains the machine by words: the last lines of its console, and what the cluster says of it. The
    /// cloud and the cluster answer each for its part; the performer of the read judges both together.
    #[serde(rename = "testimony")]
    LogEvidence(CloudName, InstanceId, Arc<EvidenceQuery>),
    /// The instance's log of actions.
    Actions(CloudName, InstanceId),
    /// Which roles the user holds on the project, and whether it lacks any of these.
    Roles(CloudName, Arc<UserRef>, Vec<RoleRef>),
    /// The Node by its name.
    Node(NodeName),
    /// The events about that node.
    NodeEvents(NodeName),
}

impl Look {
    /// The cloud that it is put to; none where it is put to the cluster. What explains a machine by words, from both,
    /// counts as the cloud's.
    pub const fn cloud(&self) -> Option<&CloudName> {
        match self {
            Self::Instance(cloud, _)
            | Self::Ports(cloud, _)
            | Self::Group(cloud, _)
            | Self::Router(cloud, _)
            | Self::Console(cloud, _)
            | Self::LogEvidence(cloud, ..)
            | Self::Actions(cloud, _)
            | Self::Roles(cloud, ..) => Some(cloud),
            Self::Node(_) | Self::NodeEvents(_) => None,
        }
    }
}
