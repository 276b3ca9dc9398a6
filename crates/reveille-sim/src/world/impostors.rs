//! Kubelets that write the identity of another machine on their own Node.
//!
//! ```text
//!  truth: a Node of machine A ─ A's kubelet writes B's UUID or addresses into its status ─▶ told: a Node of A shows B
//! ```
//!
//! A kubelet may write the whole status of its own Node (kubernetes: plugin/pkg/admission/noderestriction), UUID and addresses
//! among it; the provider ID, once set, it may not change (pkg/apis/core/validation, `ValidateNodeUpdate`). A cloned disk, a
//! wrong `--node-ip` or an intruder does. Within the world everything keeps its own identity: only what is told differs.

use reveille_core::model::id::InstanceId;
use reveille_core::model::node::Node;
use reveille_core::model::time::Span;

use super::World;
use super::fault::{Fault, Shows};

/// A kubelet that is dead when it should write its own identity again writes nothing: it is asked once more after this.
const AGAIN: Span = Span::from_min(1);

impl World {
    /// From now on the kubelet of the first, if it lives, shows the second.
    pub(super) fn show_identity(&mut self, liar: &InstanceId, of: &InstanceId, shows: Shows) {
        if self.is_well(liar) && liar != of {
            self.lies.shown.insert(liar.clone(), (of.clone(), shows));
            self.tell_nodes_of(liar);
        }
    }

    /// It shows its own again. True when it did, or is gone.
    pub(super) fn shows_itself(&mut self, fault: &Fault) -> bool {
        let Fault::ShowsIdentity { liar, .. } = fault else { return true };
        if self.vms.contains_key(liar) && !self.is_well(liar) && self.lies.shown.contains_key(liar) {
            self.plan(AGAIN, super::Task::Mend(fault.clone()));
            return false;
        }
        if self.lies.shown.remove(liar).is_some() {
            self.tell_nodes_of(liar);
        }
        true
    }

    fn tell_nodes_of(&mut self, id: &InstanceId) {
        for name in self.nodes_of(id) {
            if let Some(node) = self.cluster.change(&name, |_| {}) {
                self.watched(node);
            }
        }
    }

    /// What its kubelet writes into this Node, as it shows it.
    pub(super) fn as_kubelet_shows(&self, liar: &InstanceId, told: &mut Node) {
        let Some((of, shows)) = self.lies.shown.get(liar) else { return };
        let Some(server) = self.project.servers.get(of) else { return };
        if matches!(shows, Shows::Uuid | Shows::Both) {
            told.system_uuid = Some(of.clone());
        }
        if matches!(shows, Shows::Addresses | Shows::Both) && !server.instance.addresses.is_empty() {
            told.addresses = server.instance.addresses.iter().copied().collect();
        }
    }
}
