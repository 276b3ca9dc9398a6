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

use reveille_core::model::id::{InstanceId, NodeName, NodeUid, PoolName};
use reveille_core::model::instance::InstanceState;
use reveille_core::model::node::Node;
use reveille_core::model::time::{Span, Time};

use super::cluster::{EVENTS_KEPT, Registration};
use super::fault::Fault;
use super::{Life, Task, World, project};

/// Between a person's cordon and the deletion of the Node: the pods are evicted meanwhile.
const DRAIN: Span = Span::from_min(2);

/// By so much clocks and reads may differ about which events can still be read.
const UNSURE: Span = Span::from_min(5);

/// What changed of machines' identities.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    /// Machines whose Nodes a person cordoned and deleted.
    pub(super) removed: BTreeSet<InstanceId>,
    /// Machines whose cordon a watch of ours carried, or their kubelets told: of others it cannot be known.
    shown: BTreeMap<InstanceId, Shown>,
    /// Machines that were made under the name of another one, by that one.
    remade: BTreeMap<InstanceId, InstanceId>,
}

/// Who could know of a cordon.
#[derive(Clone, Copy, Debug)]
struct Shown {
    at: Time,
    /// The kubelet said it: the API server keeps that for an hour.
    said: bool,
    /// A process of ours has heard it.
    heard: Option<Heard>,
}

/// How a process of ours has heard of a cordon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    /// It saw the Node itself.
    Watch,
    /// It read the event, and may not have listed the machine yet.
    Event,
    /// It has not: the machine was made since a process ran, and before the first event that a process can still read. One that
    /// served and was drained meanwhile cannot be told from one that never joined, so neither may be touched.
    Age,
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
            let heard = self.watching() && self.network_faults.other_cluster.is_none();
            let said = self.is_well(id);
            if heard || said {
                self.hands.cordoned_unseen.remove(id);
            } else if is_new {
                self.hands.cordoned_unseen.insert(id.clone());
            }
            let heard = heard.then_some(Heard::Watch);
            if (heard.is_some() || said) && (is_new || !self.identity.shown.contains_key(id)) {
                self.identity.shown.insert(id.clone(), Shown { at: self.now, said, heard });
            }
            if said {
                let message = format!("Node {name} status is now: NodeNotSchedulable");
                let event =
                    self.cluster.say(self.now, (&name, None), "NodeNotSchedulable", message, "kubelet");
                self.said(event);
            }
        }
    }

    /// A client takes the cordon of the machine's nodes back, and its kubelet says so.
    pub(super) fn uncordon(&mut self, id: &InstanceId) {
        for name in self.nodes_of(id) {
            let mut was = false;
            let uncordon = |node: &mut Node| was = std::mem::replace(&mut node.cordoned, false);
            if let Some(node) = self.cluster.change(&name, uncordon) {
                self.watched(node);
            }
            if was && self.is_well(id) {
                let message = format!("Node {name} status is now: NodeSchedulable");
                let event = self.cluster.say(self.now, (&name, None), "NodeSchedulable", message, "kubelet");
                self.said(event);
            }
        }
        if !self.is_removed_on_purpose(id) {
            self.identity.shown.remove(id);
        }
    }

    /// A person deletes the machine's nodes.
    pub(super) fn delete_node_by_person(&mut self, id: &InstanceId) {
        for name in self.nodes_of(id) {
            self.delete_node(&name);
        }
    }

    /// A watch of ours lists, and the events with it: what kubelets said within the hour is heard.
    pub(super) fn hear_said_cordons(&mut self) {
        let now = self.now;
        let is_kept = |shown: &&mut Shown| shown.said && now.since(shown.at) < EVENTS_KEPT;
        self.identity.shown.values_mut().filter(is_kept).for_each(|shown| {
            shown.heard.get_or_insert(Heard::Event);
        });
    }

    /// Our process ends, and what only it had seen goes with it: a kubelet has said the cordon in an event, which the next
    /// process reads if it comes within the hour. While it slept it saw nothing, whatever its watch carried (seed 3900407).
    /// Of a machine that had no marks, and whose Node names no instance, the ledger knows nothing; nor, surely, of one of
    /// which only an event told: no list may have shown it (seeds 7000198, 7000212).
    /// What it saw after its ledger began to refuse is in no ledger (seed 9100007).
    pub(crate) fn forget_what_one_process_saw(
        &mut self,
        asleep_since: Option<Time>,
        refused_since: Option<Time>,
    ) {
        let shown = std::mem::take(&mut self.identity.shown);
        let blind_since = asleep_since.into_iter().chain(refused_since).min();
        let unseen = |at: Time| blind_since.is_some_and(|since| at >= since);
        let unnamed = |id: &InstanceId| {
            self.names_no_instance() && !self.project.servers.get(id).is_some_and(Self::has_marks)
        };
        let in_ledger = |id: &InstanceId, shown: &Shown| {
            shown.heard == Some(Heard::Watch)
                && self.is_removed_on_purpose(id)
                && !unseen(shown.at)
                && !unnamed(id)
        };
        let left = |(id, shown): (InstanceId, Shown)| {
            let heard = shown.heard.filter(|_| in_ledger(&id, &shown));
            (heard.is_some() || shown.said).then_some((id, Shown { heard, ..shown }))
        };
        self.identity.shown = shown.into_iter().filter_map(left).collect();
        // Until another one listens, no watch carries anything.
        self.watch.synced = false;
        self.watch.unheard = true;
    }

    /// A process begins after such a gap by its clock, and the one before took its last step then. Of a machine that was made in
    /// the gap neither ledger nor events say whether it served: it has to be doubted (seed 7202253).
    pub(crate) fn account_for_unseen(&mut self, gap: Span, alive_at: Time) {
        let told_from = self.now - EVENTS_KEPT - UNSURE;
        let servers = &self.project.servers;
        let is_unseen = |id: &&InstanceId| {
            servers.get(*id).is_some_and(|server| server.made_at > alive_at && server.made_at < told_from)
        };
        if gap <= EVENTS_KEPT {
            return;
        }
        let unseen: Vec<InstanceId> = self.identity.removed.iter().filter(is_unseen).cloned().collect();
        for id in unseen {
            let shown = Shown { at: self.now, said: false, heard: None };
            self.identity.shown.entry(id).or_insert(shown).heard.get_or_insert(Heard::Age);
        }
    }

    /// The same, and it could be known: a kubelet that did not run when the cordon came says nothing of it, and where no watch
    /// ran then either, nothing does, unless the machine's age tells that it may have served.
    pub(crate) fn is_shown_removed(&self, id: &InstanceId) -> bool {
        self.is_removed_on_purpose(id)
            && self.identity.shown.get(id).is_some_and(|shown| shown.heard.is_some())
    }

    /// A person cordoned and deleted its node, and it has not registered since.
    pub(crate) fn is_removed_on_purpose(&self, id: &InstanceId) -> bool {
        self.identity.removed.contains(id)
    }

    /// A person makes a machine, tries it for a while, drains it and keeps it.
    pub(super) fn make_to_try(
        &mut self,
        pool: &PoolName,
        serves: Span,
        marked_after: Option<Span>,
        keeps: Span,
    ) {
        let id = self.make(pool, None);
        if let Some(after) = marked_after {
            self.set_marks(&id, false);
            self.plan(serves + DRAIN + after, Task::Inject(Fault::Marked(id.clone())));
        }
        let built = self.soon(15_000, 45_000);
        self.plan(built, Task::Life(id.clone(), Life::Built));
        self.plan(serves, Task::Inject(Fault::Drained(id, keeps)));
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
