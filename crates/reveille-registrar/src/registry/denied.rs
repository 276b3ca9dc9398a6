//! Why what a person asked for is not done: for whoever sits at a screen on the server, never for a machine.
//!
//! ```text
//!  reveille invite --remove w-3 ─▶ the socket ─▶ Registry::step ─▶ Reply::Denied ─▶ a sentence with what to write instead
//! ```
//!
//! Machines are refused by the closed list of the protocol ([`reveille_wire::agent::Reason`]), whose words are for whoever looks
//! at an agent. A person who mistyped a name needs neither a code nor a word about versions.

use reveille_core::model::id::RosterName;
use reveille_wire::agent::identity::Part;
use reveille_wire::agent::text::Word;
use thiserror::Error;

use super::ids::{InvitationId, MachineId};
use super::machine::Machine;

/// Records that an answer names; how many more there are is said.
const NAMED_MAX: usize = 8;

/// Why not, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Denied {
    /// A name that nobody has.
    #[error("No machine is known as {:?}. Use its record (m-...), instance id, machine id or Node name", .0.as_str())]
    NoMachine(Word),
    /// A name that several have.
    #[error("{} machines are known as {:?}: {}. Use the record of the one that is meant", .1.len(), .0.as_str(), listed(.1))]
    Several(Word, Vec<Named>),
    /// Another one has taken its place.
    #[error(
        "{machine} cannot come again: by now its {} is that of {by}. Remove that one first, if this one is meant",
        part.name()
    )]
    Taken {
        /// The machine.
        machine: MachineId,
        /// What the other one has.
        part: Part,
        /// The other one.
        by: Named,
    },
    /// An id that no invitation has.
    #[error("There is no invitation {:?}. Its id is the middle of its token; reveille invite --list shows all", .0.as_str())]
    NoInvitation(InvitationId),
    /// An invitation that nobody could use.
    #[error("the invitation could not be used: it lasts no time, or has no uses; ask for another one")]
    Unusable,
    /// A machine is made anew by its own invitation.
    #[error(
        "one machine is made anew once, in its own roster, {0}: leave --uses out, and name that roster with --of"
    )]
    NotOneMachine(RosterName),
    /// Its node stays away.
    #[error("the Node of {} was removed on purpose: let it in again first, reveille invite --readmit {}", .0, .0.machine)]
    NodeAway(Named),
    /// The registry has its bound.
    #[error(
        "{0} invitations are kept, and no more: wait until those that are over are forgotten, a week after their end"
    )]
    Full(usize),
}

/// A machine in an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its record.
    pub machine: MachineId,
    /// The name of its node.
    pub node_name: Word,
    /// Of which roster.
    pub roster: RosterName,
    /// It is to stay away.
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
