//! A machine that is reimaged: the same instance with another disk, and so with another key and another machine id.
//!
//! ```text
//!  an invitation with --reimage, for this machine ─▶ silent for long enough, or a person says that it is no more
//!      ─▶ called as before, on the instance of before ─▶ Nodes with what it claims: its own, or what is left of it ─▶ its record
//! ```
//!
//! The holder of such an invitation has it for one machine. If the claim held another name or instance, it would be the
//! claim of another machine. The record would then speak for that machine: the engine finds a machine by its record's
//! ids.

use reveille_wire::agent::identity::{Part, normal};
use reveille_wire::agent::text::{Sentence, Word};
use reveille_wire::agent::{Identity, Reason, Refused};

use super::claims;
use super::event::NodeIds;
use super::ids::MachineId;
use super::invitation::{Invitation, Reimage};
use super::machine::Machine;
use super::{Registry, Turn};

impl Registry {
    /// The claim has the name and the instance of the machine before: a rebuild keeps the instance's id. The claim may
    /// leave the instance id out where the system UUID is the same; the UUID stands for the instance where no id is
    /// known.
    pub(super) fn is_rebuilt_as_itself(
        &self,
        before: &MachineId,
        claim: (&Identity, &Word),
    ) -> Result<(), Refused> {
        let Some(before) = self.index.machine(before) else { return Ok(()) };
        let (identity, node_name) = claim;
        if !claims::is_one_name(&before.node_name, node_name) {
            return Err(is_another(before, "Node name"));
        }
        let has = |part| {
            let both = before.identity.part(part).zip(identity.part(part));
            both.map(|(own, claimed)| normal(own) == normal(claimed))
        };
        let lasting = [Part::InstanceId, Part::SystemUuid];
        let Some(part) = lasting.into_iter().find(|part| before.identity.part(*part).is_some()) else {
            return Ok(());
        };
        match has(part) {
            Some(true) => Ok(()),
            Some(false) => Err(is_another(before, part.name())),
            None if has(Part::SystemUuid) == Some(true) => Ok(()),
            None => Err(Reason::IdentityIncomplete { part }.into()),
        }
    }

    /// The invitation allows this machine to be reimaged.
    pub(super) fn is_to_be_rebuilt(&self, invitation: &Invitation, machine: &MachineId) -> bool {
        let meant = self.meant_by(invitation);
        invitation.reimage.is_some()
            && meant.is_some_and(|meant| meant.id == *machine && meant.removed.is_none())
    }

    /// The machine that the invitation is for, where it is known.
    pub(super) fn meant_by(&self, invitation: &Invitation) -> Option<&Machine> {
        match &invitation.record {
            Some(record) => self.index.machine(record),
            None => self.index.find(invitation.machine.as_deref()?),
        }
    }

    /// The invitation allows this machine to be reimaged now.
    pub(super) fn may_be_rebuilt(&self, turn: &Turn, invitation: &Invitation, machine: &MachineId) -> bool {
        if !self.is_to_be_rebuilt(invitation, machine) {
            return false;
        }
        match invitation.reimage {
            None => false,
            Some(Reimage::AtOnce) => true,
            Some(Reimage::WhenSilent) => {
                let heard_at = self.heard_at(machine).unwrap_or(self.started_at);
                !self.conn_of.contains_key(machine) && turn.now.since(heard_at) >= self.settings.reimage_after
            }
        }
    }
}

/// This Node carries only the name and ids of this machine: it is the leftover Node of the machine.
pub(super) fn is_left_of(before: &Machine, node: &NodeIds) -> bool {
    let is_own = |id: &str| before.identity.lasting().any(|(_, own)| normal(own) == normal(id));
    claims::is_one_name(&node.name, &before.node_name)
        && [&node.instance, &node.system_uuid].into_iter().flatten().all(|id| is_own(id))
}

/// The invitation is for this machine, and the claim comes from another one. The refusal does not tell the other ids of
/// the invited machine.
fn is_another(before: &Machine, what: &str) -> Refused {
    let name = &before.node_name;
    let says = format!(
        "this invitation reimages the machine {name}, which keeps its Node name and its instance; this one has another {what}"
    );
    let next = format!(
        "give it the name {name} and its ids again; if it is to be another machine: reveille invite --remove {name}, and an invitation of its own"
    );
    let reason = Reason::TokenForeign { bound_to: "machine".into() };
    Refused { says: Sentence::cut(&says), next: Sentence::cut(&next), retry_after_s: None, reason }
}
