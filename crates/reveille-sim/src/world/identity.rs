//! The identity of a machine in its cluster, and how that changes: Nodes that another kubelet takes over, Nodes that a person
//! removes, marks that come and go.
//!
//! ```text
//!  Remade:  instance deleted, another of its name made ─▶ its kubelet finds the Node ─▶ status of the new one, spec of the old
//!  Drained: cordon ─ two minutes ─▶ Node deleted by a person ─▶ the instance stays for a while ─▶ deleted by that person
//! ```
//!
//! A kubelet that may not create its Node because there is one takes that object over (kubernetes,
//! pkg/kubelet/kubelet_node_status.go, tryRegisterWithAPIServer): labels and capacity are reconciled, the status becomes the
//! new machine's. `spec.providerID` stays, because it may only be changed from "" (pkg/apis/core/validation/validation.go,
//! ValidateNodeUpdate); `spec.podCIDRs` and `spec.unschedulable` stay as well.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reveille_core::model::id::{InstanceId, NodeName, NodeUid};
use reveille_core::model::instance::InstanceState;
use reveille_core::model::node::Node;
use reveille_core::model::time::{Span, Time};

use super::cluster::Registration;
use super::fault::Fault;
use super::{Task, World, project};

/// Between a person's cordon and the deletion of the Node: the pods are evicted meanwhile.
const DRAIN: Span = Span::from_min(2);
/// A change of tags is listed within this, also where one full listing failed.
const LISTED_WITHIN: Span = Span::from_min(25);

/// What changed of machines' identities.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    /// Machines whose Nodes a person cordoned and deleted.
    pub(super) removed: BTreeSet<InstanceId>,
    /// Machines whose cordon a watch of ours carried, or their kubelets told, and when: of others it cannot be known.
    shown: BTreeMap<InstanceId, Time>,
    /// Machines that carried no marks of their pool at first, and since when they do.
    pub(super) unclaimed: BTreeMap<InstanceId, Option<Time>>,
    /// Machines that were made under the name of another one, by that one.
    remade: BTreeMap<InstanceId, InstanceId>,
}

impl World {
    pub(super) fn strike_identity(&mut self, id: &InstanceId, fault: &Fault) {
        match fault {
            Fault::Drained(..) => {
                self.cordon(id);
                self.plan(DRAIN, Task::Inject(Fault::NodeDeletedByPerson(id.clone())));
            }
            Fault::Remade(..) => self.remake(id),
            Fault::MarksAway(..) => self.set_marks(id, false),
            Fault::Marked(_) => self.set_marks(id, true),
            _ => {}
        }
    }

    pub(super) fn mend_identity(&mut self, fault: &Fault) {
        match fault {
            Fault::Drained(id, _) if self.is_removed_on_purpose(id) => {
                self.delete_instance(id, "erin");
            }
            Fault::MarksAway(id, _) => self.set_marks(id, true),
            Fault::Remade(id, _) => {
                let Some(new) = self.identity.remade.remove(id) else { return };
                self.delete_node_by_person(&new);
                self.restart_kubelet(&new);
            }
            _ => {}
        }
    }

    /// A person, or the owner's tool, sets the marks of a machine: those of its own pool, or none.
    pub(super) fn set_marks(&mut self, id: &InstanceId, marked: bool) {
        let Some(server) = self.project.servers.get(id) else { return };
        let Some(pool) = server.pool.clone() else { return };
        // Its owner does not give marks to a machine that it deletes: no client would see them before it is gone.
        if marked && server.actions.first().is_some_and(|newest| &*newest.action == "delete") {
            return;
        }
        let own = Self::marks(&pool);
        if let Some(since) = self.identity.unclaimed.get_mut(id).filter(|_| marked) {
            since.get_or_insert(self.now);
        }
        self.project.change_marks(id, |marks| {
            marks.retain(|mark| !own.contains(mark));
            marks.extend(own.into_iter().filter(|_| marked));
        });
    }

    /// A client cordons the machine's nodes.
    pub(super) fn cordon(&mut self, id: &InstanceId) {
        for name in self.nodes_of(id) {
            let mut is_new = false;
            let cordon = |node: &mut Node| is_new = !std::mem::replace(&mut node.cordoned, true);
            if let Some(node) = self.cluster.change(&name, cordon) {
                self.watched(node);
            }
            // Its kubelet says so at its next look at the Node (kubernetes: pkg/kubelet/kubelet_node_status.go,
            // `recordNodeSchedulableEvent`), and the event outlives the Node.
            if self.watching() && self.network_faults.other_cluster.is_none() || self.is_well(id) {
                let shown_at = self.identity.shown.entry(id.clone()).or_insert(self.now);
                if is_new {
                    *shown_at = self.now;
                }
            }
            if self.is_well(id) {
                let message = format!("Node {name} status is now: NodeNotSchedulable");
                let event =
                    self.cluster.say(self.now, (&name, None), "NodeNotSchedulable", message, "kubelet");
                self.said(event);
            }
        }
    }

    /// A person deletes the machine's nodes.
    pub(super) fn delete_node_by_person(&mut self, id: &InstanceId) {
        // Of one whose marks come only later, or came since the last full listing, what became of its Node is kept nowhere (seeds
        // 3256583 and 3264454): Nova's listings of changes do not tell that an instance was tagged.
        let is_new = |since: &Option<Time>| since.is_none_or(|at| self.now.since(at) <= LISTED_WITHIN);
        if self.identity.unclaimed.get(id).is_some_and(is_new) {
            self.identity.shown.remove(id);
        }
        for name in self.nodes_of(id) {
            self.delete_node(&name);
        }
    }

    /// Our process ends, and what only it had seen goes with it: a kubelet that runs has said the cordon in an event. While it
    /// slept it saw nothing, whatever its watch carried (seed 3900407).
    pub(crate) fn forget_what_one_process_saw(&mut self, asleep_since: Option<Time>) {
        let shown = std::mem::take(&mut self.identity.shown);
        let unseen = |at: Time| asleep_since.is_some_and(|since| at >= since);
        let lasts = |(id, at): &(InstanceId, Time)| {
            self.is_removed_on_purpose(id) && !unseen(*at) || self.is_well(id)
        };
        self.identity.shown = shown.into_iter().filter(lasts).collect();
        // Until another one listens, no watch carries anything.
        self.watch.synced = false;
        self.watch.unheard = true;
    }

    /// The same, and it could be known: a kubelet that did not run when the cordon came says nothing of it, and where no watch
    /// ran then either, nothing does.
    pub(crate) fn is_shown_removed(&self, id: &InstanceId) -> bool {
        self.is_removed_on_purpose(id) && self.identity.shown.contains_key(id)
    }

    /// A person cordoned and deleted its node, and it has not registered since.
    pub(crate) fn is_removed_on_purpose(&self, id: &InstanceId) -> bool {
        self.identity.removed.contains(id)
    }

    /// The owner deletes the machine and makes another of its name, from an image that boots at once.
    fn remake(&mut self, id: &InstanceId) {
        let Some(server) = self.project.servers.get(id) else { return };
        let (Some(pool), name) = (server.pool.clone(), server.instance.name.clone()) else { return };
        self.delete_instance(id, "pool-owner");
        let new = self.make(&pool, None);
        self.project.rename(self.now, &new, &name);
        self.project.set_state(self.now, &new, InstanceState::Active, None);
        self.identity.remade.insert(id.clone(), new.clone());
        self.boot(&new);
    }

    /// The kubelet finds a Node of its name that another machine registered, and takes it over.
    pub(super) fn adopt_node(&mut self, id: &InstanceId, name: &NodeName) -> Option<Arc<Node>> {
        let vm = self.vms.get(id).filter(|_| self.layout.variety.adopts)?;
        let by = Registration {
            name: name.clone(),
            uid: NodeUid::from(""),
            instance: id.clone(),
            boot_id: vm.boot_id.clone(),
            address: project::address(vm.host),
            range: project::pod_range(vm.host),
        };
        self.cluster.adopt(name, &by)
    }
}
