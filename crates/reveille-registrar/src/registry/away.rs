//! A removed machine comes back only when an operator allows it: by --readmit, or by an invitation that names it.
//!
//! ```text
//!  a claim ─▶ an instance id, machine id, system UUID or key of a removed machine?
//!             no  ─▶ not a removed machine: a Node name alone identifies none, so a new machine may have a removed one's name
//!             yes ─▶ the invitation is for one of its names ─▶ its own record, with the new key      else MACHINE_REMOVED
//! ```
//!
//! The refusal does not count as a conflict of the invitation: a removed machine that keeps trying would void the
//! invitation for the rest of its rack.

use std::collections::BTreeSet;

use reveille_wire::agent::identity::normal;
use reveille_wire::agent::{Identity, Reason};

use super::Registry;
use super::claims;
use super::ids::{KeyHash, MachineId};
use super::invitation::Invitation;
use super::machine::{Machine, Removal};

impl Registry {
    /// The removed machines that match this identity and key. The machine that has the key comes first.
    pub(super) fn away(&self, identity: &Identity, key: &KeyHash) -> Vec<MachineId> {
        let is_removed = |known: &&Machine| known.removed == Some(Removal::Machine);
        let holder = self.index.holder(key).filter(is_removed).map(|known| known.id.clone());
        let mut of_ids: BTreeSet<MachineId> = self.index.away_with(identity).cloned().collect();
        if let Some(holder) = &holder {
            of_ids.remove(holder);
        }
        holder.into_iter().chain(of_ids).collect()
    }

    /// The invitation names each of these machines, so they may come back with it.
    pub(super) fn let_in_again(&self, invitation: &Invitation, away: &[MachineId]) -> Result<(), Reason> {
        let is_meant = |id: &MachineId| self.is_for(invitation, id);
        if away.iter().all(is_meant) { Ok(()) } else { Err(Reason::MachineRemoved) }
    }

    /// The invitation is for the machine of this record: it names the record, or, where it names none, the machine has
    /// its name.
    pub(super) fn is_for(&self, invitation: &Invitation, id: &MachineId) -> bool {
        let Some(bound) = &invitation.machine else { return false };
        let is_called = |known: &Machine| claims::is_called(&known.identity, &known.node_name, bound);
        match &invitation.record {
            Some(record) => record == id,
            None => id.as_str() == bound.as_str() || self.index.machine(id).is_some_and(is_called),
        }
    }

    /// The two records are of one machine: one was removed when the other was admitted.
    pub(super) fn is_another_of(&self, one: &MachineId, other: &MachineId) -> bool {
        let (Some(one), Some(other)) = (self.index.machine(one), self.index.machine(other)) else {
            return false;
        };
        let has = |word: &str| other.identity.lasting().any(|(_, theirs)| normal(theirs) == normal(word));
        one.identity.lasting().any(|(_, word)| has(word))
    }
}
