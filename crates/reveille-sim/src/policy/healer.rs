//! A model of magnum-auto-healer, for worker nodes.
//!
//! Source: kubernetes/cloud-provider-openstack at c453fb7c, `pkg/autohealing`: `controller/controller.go` (who is looked
//! at), `healthcheck/plugin_nodecondition.go` (who is unhealthy), `cloudprovider/openstack/provider.go` (`Repair`,
//! `firstTimeRepair`), `config/config.go` (defaults).
//!
//! * Every 60 s the healer lists all Nodes. It passes over one younger than ten minutes (`check-delay-after-add`).
//! * A machine is unhealthy when its Ready condition has not been `True` for 300 s. The healer never sees a machine without a
//!   Node.
//! * The first time, the healer reboots the machine softly. It does not remember a reboot that the cloud refuses.
//! * A machine found unhealthy again within five minutes of its reboot is left alone (`rebuild-delay-after-reboot`). Later, the
//!   healer removes it by a resize of its Magnum cluster, and forgets it.
//! * While the cluster is being updated, no pass repairs any machine; within one pass every resize is accepted (`cluster_resize`
//!   in Magnum's conductor takes one during an update).
//! * After a pass, the healer deletes the Node object of every machine that was neither rebooted nor left alone. These are the
//!   removed ones, and those whose reboot was refused, unless because one is under way. The second kind keeps its server, and the
//!   healer never sees it again.
//! * The healer remembers its reboots in the process's memory only.
//!
//! Left out: masters and the endpoint check, cordons, the detaching of volumes and the power-off before a resize, the ten
//! seconds between two resizes, and the time that Magnum and Heat take beyond deleting the server.

use std::collections::{BTreeMap, BTreeSet};

use reveille_core::effect::Outcome;
use reveille_core::model::id::{InstanceId, NodeName, NodeUid};
use reveille_core::model::node::Ready;
use reveille_core::model::time::{Span, Time};

use super::Deed;
use super::observations::NodeSeen;

/// `monitor-interval`.
pub(crate) const EVERY: Span = Span::from_s(60);
/// `check-delay-after-add`.
const CHECK_DELAY_AFTER_ADD: Span = Span::from_min(10);
/// `unhealthy-duration`.
const UNHEALTHY_DURATION: Span = Span::from_s(300);
/// `rebuild-delay-after-reboot`.
const REBUILD_DELAY_AFTER_REBOOT: Span = Span::from_min(5);

/// The healer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Healer {
    rebooted: BTreeMap<InstanceId, Time>,
    /// Asked for and not answered yet, with their nodes.
    rebooting: BTreeMap<InstanceId, (NodeName, NodeUid)>,
    /// Removed by a resize; the stack is being updated while one of them is there. This is Magnum's, not the healer's.
    resizing: BTreeSet<InstanceId>,
}

impl Healer {
    /// Its process died: which nodes it rebooted is forgotten.
    pub(crate) fn restart(&mut self) {
        self.rebooted.clear();
        self.rebooting.clear();
    }

    /// The cloud answered a reboot.
    pub(crate) fn answered(&mut self, now: Time, id: &InstanceId, outcome: &Outcome) -> Option<Deed> {
        let (name, uid) = self.rebooting.remove(id)?;
        match outcome {
            Outcome::Accepted { .. } => {
                self.rebooted.insert(id.clone(), now);
                None
            }
            Outcome::Refused { text } if text.contains("Rebooting") => None,
            _ => Some(Deed::DeleteNode(name, uid)),
        }
    }

    /// What one pass does. `present`: the servers of the cluster's stack.
    pub(crate) fn pass(
        &mut self,
        now: Time,
        nodes: Option<&[NodeSeen]>,
        present: &BTreeSet<InstanceId>,
    ) -> Vec<Deed> {
        self.resizing.retain(|id| present.contains(id));
        let Some(nodes) = nodes.filter(|_| self.resizing.is_empty()) else { return Vec::new() };
        let mut deeds = Vec::new();
        let unhealthy = nodes.iter().filter(|node| {
            now.since(node.made) >= CHECK_DELAY_AFTER_ADD
                && node.ready != Ready::True
                && now.since(node.since) >= UNHEALTHY_DURATION
        });
        for node in unhealthy {
            let Some(id) = &node.machine else { continue };
            match self.rebooted.get(id) {
                None => {
                    self.rebooting.insert(id.clone(), (node.name.clone(), node.uid.clone()));
                    deeds.push(Deed::Reboot(id.clone()));
                }
                Some(at) if now.since(*at) < REBUILD_DELAY_AFTER_REBOOT => {}
                Some(_) => {
                    self.rebooted.remove(id);
                    self.resizing.insert(id.clone());
                    deeds.push(Deed::Delete(id.clone()));
                    deeds.push(Deed::DeleteNode(node.name.clone(), node.uid.clone()));
                }
            }
        }
        deeds
    }
}
