//! Objects that are being deleted, with the finaliser that deletes what stands behind them.
//!
//! Cluster API's Machine and Karpenter's `NodeClaim` share this: once the object is marked, its controller deletes the
//! instance, asks again until it is gone, then takes the Node object, and forgets. The mark is in an API and outlives the
//! controller's process. Sources: the Machine controller of Cluster API (`internal/controllers/machine`) and Karpenter's
//! termination controllers (`pkg/controllers/nodeclaim/lifecycle`, `pkg/controllers/node/termination`).
//!
//! Left out: drains, volume detachment and their time-outs. Nothing here waits for a pod, which favours the originals'
//! time to cure; every act of theirs that the comparison judges happens all the same.

use std::collections::{BTreeMap, BTreeSet};

use reveille_core::model::id::InstanceId;

use super::Deed;
use super::observations::{NodeSeen, Presence};

/// Machines whose objects are marked as deleted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Removals {
    marked: BTreeSet<InstanceId>,
}

impl Removals {
    /// Deletes the object; true when it was not deleted before.
    pub(crate) fn mark(&mut self, id: &InstanceId) -> bool {
        self.marked.insert(id.clone())
    }

    /// Whose objects are marked.
    pub(crate) const fn marked(&self) -> &BTreeSet<InstanceId> {
        &self.marked
    }

    /// What the finalisers do now.
    pub(crate) fn go_on(
        &mut self,
        presence: &BTreeMap<InstanceId, Presence>,
        nodes: Option<&[NodeSeen]>,
    ) -> Vec<Deed> {
        let mut deeds = Vec::new();
        self.marked.retain(|id| match presence.get(id).copied().unwrap_or(Presence::There) {
            Presence::There => {
                deeds.push(Deed::Delete(id.clone()));
                true
            }
            Presence::Leaving | Presence::Unknown => true,
            Presence::Gone => {
                let Some(nodes) = nodes else { return true };
                let own = nodes.iter().filter(|node| node.provider.as_ref() == Some(id));
                deeds.extend(own.map(|node| Deed::DeleteNode(node.name.clone(), node.uid.clone())));
                false
            }
        });
        deeds
    }
}
