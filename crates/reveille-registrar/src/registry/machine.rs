//! A machine as this server knows it, durably.

use std::collections::BTreeSet;

use reveille_core::model::id::{PoolName, RosterName};
use reveille_core::model::time::Time;
use reveille_wire::agent::identity::{Part, normal};
use reveille_wire::agent::plan::Held;
use reveille_wire::agent::text::Word;
use reveille_wire::agent::{Facts, Identity, Reason, Role};
use serde::{Deserialize, Serialize};

use super::course::Course;
use super::ids::{AuthorityHash, InvitationId, KeyHash, MachineId};
use super::trace::Trace;

/// A machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Its record.
    pub id: MachineId,
    /// Of which roster.
    pub roster: RosterName,
    /// In which pool.
    pub pool: PoolName,
    /// As what.
    pub roles: BTreeSet<Role>,
    /// Who it is.
    pub identity: Identity,
    /// What it said of itself last.
    pub facts: Facts,
    /// The name of its node.
    pub node_name: Word,
    /// Its key.
    pub key: KeyHash,
    /// Keys that it asked a certificate for, the newest last. Each counts beside its key until it is welcomed with one of them.
    pub next_keys: Vec<KeyHash>,
    /// By which authority the certificate is that its last session came with; none before the first one with this key. What is
    /// shown without a welcome is not here: it may be a copy of the key that shows it.
    pub shown_by: Option<AuthorityHash>,
    /// When it was enrolled last.
    pub enrolled_at: Time,
    /// By which invitation.
    pub invitation: InvitationId,
    /// It is to stay away.
    pub removed: Option<Removal>,
    /// Since when its instance is known to be gone for good.
    pub departed: Option<Time>,
    /// Its plan; version 0 when it has none.
    pub plan: Held,
    /// How far it came.
    pub trace: Trace,
    /// Its join, while one is under way.
    pub course: Option<Box<Course>>,
    /// The highest report that was kept.
    pub reports_kept: u64,
}

impl Machine {
    /// The instance that it is on: its instance id, or its system UUID where it knows no instance.
    pub fn instance(&self) -> Option<&str> {
        instance_of(&self.identity)
    }

    /// A certificate for this key is one of its own.
    pub fn has_key(&self, key: &KeyHash) -> bool {
        self.key == *key || self.next_keys.contains(key)
    }

    /// It has to have a certificate of this authority before those before are ended: nothing of it was seen since, and it is
    /// one that is to come again. One of which only the Node stays away keeps its certificate, and needs it when it is let in.
    pub fn waits_for(&self, newest: &AuthorityHash) -> bool {
        let is_to_come = self.removed != Some(Removal::Machine) && self.departed.is_none();
        is_to_come && self.shown_by.as_ref() != Some(newest)
    }

    /// It is on this instance.
    pub fn is_on(&self, instance: &str) -> bool {
        self.instance().is_some_and(|id| normal(id) == normal(instance))
    }
}

/// The instance that one with this identity is on.
pub(super) fn instance_of(identity: &Identity) -> Option<&str> {
    identity.part(Part::InstanceId).or_else(|| identity.part(Part::SystemUuid))
}

/// What of a machine is to stay away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Removal {
    /// Its node; the machine may stay and be asked.
    Node,
    /// All of it.
    Machine,
}

impl Removal {
    /// What the machine is told.
    pub const fn reason(self) -> Reason {
        match self {
            Self::Node => Reason::NodeRemoved,
            Self::Machine => Reason::MachineRemoved,
        }
    }
}
