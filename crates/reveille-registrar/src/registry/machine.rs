//! A machine as this server knows it; durable.

use std::collections::BTreeSet;

use reveille_core::model::id::{PoolName, RosterName};
use reveille_core::model::time::Time;
use reveille_wire::agent::identity::{Part, normal};
use reveille_wire::agent::plan::Held;
use reveille_wire::agent::text::Word;
use reveille_wire::agent::{Facts, Identity, Reason, Role};
use serde::{Deserialize, Serialize};

use super::flow::JoinFlow;
use super::ids::{AuthorityHash, InvitationId, KeyHash, MachineId};
use super::trace::Trace;

/// A machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// The machine's record.
    pub id: MachineId,
    /// The machine's roster.
    pub roster: RosterName,
    /// The machine's pool.
    pub pool: PoolName,
    /// The machine's roles.
    pub roles: BTreeSet<Role>,
    /// The machine's identity.
    pub identity: Identity,
    /// What the machine last said about itself.
    pub facts: Facts,
    /// The name of the machine's Node.
    pub node_name: Word,
    /// The machine's key.
    pub key: KeyHash,
    /// Keys for which the machine asked a certificate, the newest last. Each counts beside its key until a welcome with
    /// one of them.
    pub next_keys: Vec<KeyHash>,
    /// The authority of the certificate with which the last session began; none before the first session with this key. A
    /// certificate that was shown without a welcome does not count: the client may hold a copy of the key.
    pub shown_by: Option<AuthorityHash>,
    /// The time of the last enrolment.
    pub enrolled_at: Time,
    /// The invitation of the last enrolment.
    pub invitation: InvitationId,
    /// The machine or its Node was removed.
    pub removed: Option<Removal>,
    /// Since when the machine's instance is known to be gone for good.
    pub departed: Option<Time>,
    /// The machine's plan; version 0 when it has none.
    pub plan: Held,
    /// The stages that the machine has reached.
    pub trace: Trace,
    /// The machine's join, while one is under way.
    pub flow: Option<Box<JoinFlow>>,
    /// The highest number of a kept report.
    pub reports_kept: u64,
}

impl Machine {
    /// The machine's instance: its instance id, or its system UUID where no instance id is known.
    pub fn instance(&self) -> Option<&str> {
        instance_of(&self.identity)
    }

    /// A certificate for this key belongs to the machine.
    pub fn has_key(&self, key: &KeyHash) -> bool {
        self.key == *key || self.next_keys.contains(key)
    }

    /// The machine needs a certificate of this authority before the older ones are retired: it has not shown one, and it
    /// is expected to come again. A machine of which only the Node was removed keeps its certificate, and needs it when
    /// it is readmitted.
    pub fn waits_for(&self, newest: &AuthorityHash) -> bool {
        let is_to_come = self.removed != Some(Removal::Machine) && self.departed.is_none();
        is_to_come && self.shown_by.as_ref() != Some(newest)
    }

    /// The machine runs on this instance.
    pub fn is_on(&self, instance: &str) -> bool {
        self.instance().is_some_and(|id| normal(id) == normal(instance))
    }
}

/// The instance of a machine with this identity.
pub(super) fn instance_of(identity: &Identity) -> Option<&str> {
    identity.part(Part::InstanceId).or_else(|| identity.part(Part::SystemUuid))
}

/// What was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Removal {
    /// The Node; the machine may stay connected and answer.
    Node,
    /// The machine itself.
    Machine,
}

impl Removal {
    /// The reason that the server tells the machine.
    pub const fn reason(self) -> Reason {
        match self {
            Self::Node => Reason::NodeRemoved,
            Self::Machine => Reason::MachineRemoved,
        }
    }
}
