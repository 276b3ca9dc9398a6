//! Why the server refuses what an operator asked for. These texts are for an operator at the server's command line, never
//! for a machine.
//!
//! ```text
//!  reveille invite --remove w-3 ─▶ the socket ─▶ Registry::step ─▶ Reply::Denied ─▶ a sentence with what to write instead
//! ```
//!
//! Machines are refused by the closed list of the protocol ([`reveille_wire::agent::Reason`]), whose words are for an
//! operator who reads an agent's log. An operator who mistyped a name needs neither a code nor a word about versions.

use reveille_core::model::id::RosterName;
use reveille_wire::agent::identity::Part;
use reveille_wire::agent::text::Word;
use thiserror::Error;

use super::ids::{InvitationId, MachineId};
use super::machine::Machine;

/// The number of records that an answer names; the answer counts the others.
const NAMED_MAX: usize = 8;

/// Why the server refuses, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Denied {
    /// No machine has this name.
    #[error("No machine is known as {:?}. Use its record (m-...), instance id, machine id or Node name", .0.as_str())]
    NoMachine(Word),
    /// Several machines have this name.
    #[error("{} machines are known as {:?}: {}. Use the record of the one that is meant", .1.len(), .0.as_str(), listed(.1))]
    Several(Word, Vec<Named>),
    /// Another machine has taken the place of this one.
    #[error(
        "{machine} cannot come again: by now its {} is that of {by}. Remove that one first, if this one is meant",
        part.name()
    )]
    Taken {
        /// The machine.
        machine: MachineId,
        /// The name that the other machine has.
        part: Part,
        /// The other machine.
        by: Named,
    },
    /// No invitation has this id.
    #[error("There is no invitation {:?}. Its id is the middle of its token; reveille invite --list shows all", .0.as_str())]
    NoInvitation(InvitationId),
    /// An invitation that no machine could use.
    #[error("the invitation could not be used: it lasts no time, or has no uses; ask for another one")]
    Unusable,
    /// Reimaging a machine needs an invitation of its own.
    #[error(
        "one machine is reimaged once, in its own roster, {0}: leave --uses out, and name that roster with --of"
    )]
    NotOneMachine(RosterName),
    /// The Node is removed.
    #[error("the Node of {} was removed on purpose: let it in again first, reveille invite --readmit {}", .0, .0.machine)]
    NodeAway(Named),
    /// The registry keeps its maximum of invitations.
    #[error(
        "{0} invitations are kept, and no more: wait until those that are over are forgotten, a week after their end"
    )]
    Full(usize),
}

/// A machine as an answer names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The machine's record.
    pub machine: MachineId,
    /// The name of the machine's Node.
    pub node_name: Word,
    /// The machine's roster.
    pub roster: RosterName,
    /// The machine was removed.
    pub is_removed: bool,
}

impl From<&Machine> for Named {
    fn from(of: &Machine) -> Self {
        Self {
            machine: of.id.clone(),
            node_name: of.node_name.clone(),
            roster: of.roster.clone(),
            is_removed: of.removed.is_some(),
        }
    }
}

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let removed = if self.is_removed { ", removed" } else { "" };
        write!(f, "{} ({} of {}{removed})", self.machine, self.node_name, self.roster)
    }
}

fn listed(all: &[Named]) -> String {
    let mut text = all.iter().take(NAMED_MAX).map(Named::to_string).collect::<Vec<_>>().join(", ");
    if all.len() > NAMED_MAX {
        text.push_str(&format!(" and {} more", all.len() - NAMED_MAX));
    }
    text
}
