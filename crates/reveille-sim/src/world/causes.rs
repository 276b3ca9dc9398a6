//! Why a machine really fails, in the words of diagnoses, so that a right one can be told from a lucky one.
//!
//! The causes are derived from the true state (ports, nodes, the inside of the machine), never from the drawn fault. A fault that
//! missed, was overtaken or was repaired explains nothing. A former state counts for a while, because a diagnosis rests on what
//! was read.

use std::collections::BTreeSet;

use reveille_core::model::cause::Cause;
use reveille_core::model::hosting::{Check, Hosting};
use reveille_core::model::id::InstanceId;
use reveille_core::model::instance::InstanceState;
use reveille_core::model::time::Span;

use crate::catalogue;

use super::World;
use super::layout::ROUTE_BROKEN;
use super::said::condition_names;
use super::trouble::Bites;
use super::vm::{FirstBoot, Trouble};

/// What was so this long ago still explains what is said now.
const REMEMBERED: Span = Span::from_min(15);

impl World {
    /// Everything that is wrong with this machine now, each as the cause that names it.
    pub fn causes_of(&self, id: &InstanceId) -> BTreeSet<Cause> {
        let mut causes = BTreeSet::new();
        self.causes_in_the_cloud(id, &mut causes);
        self.causes_inside(id, &mut causes);
        self.causes_in_the_cluster(id, &mut causes);
        causes
    }

    fn causes_in_the_cloud(&self, id: &InstanceId, causes: &mut BTreeSet<Cause>) {
        // A cloud that denies a machine by its id, again and again, cannot be told from one that tells the truth.
        if self.is_denied(id) {
            causes.insert(Cause::InstanceGone);
        }
        let Some(server) = self.project.servers.get(id) else {
            causes.insert(Cause::InstanceGone);
            let ended = self.project.ended(id).and_then(|instance| instance.hosting.as_ref());
            if ended.is_some_and(|hosting| hosting.ended.is_some()) {
                causes.insert(Cause::TakenBack);
            }
            return;
        };
        if let Some(hosting) = &server.instance.hosting {
            causes.extend(said_by_its_provider(hosting));
        }
        match server.instance.state {
            InstanceState::Errored => drop(causes.insert(Cause::InstanceErrored)),
            InstanceState::Building => drop(causes.insert(Cause::StuckBuilding)),
            InstanceState::Deleting => causes.extend([Cause::StuckDeleting, Cause::RemovedOnPurpose]),
            InstanceState::Stopped => drop(causes.insert(Cause::InstanceStopped)),
            _ => {}
        }
        let claimed = server.pool.as_ref().map_or(0, |_| {
            let marked = |pool: &&reveille_core::model::id::PoolName| {
                server.instance.marks.contains(&super::layout::pool_mark(pool))
            };
            self.pools.keys().filter(marked).count()
        });
        if claimed == 0 {
            causes.insert(Cause::Unclaimed);
        } else if claimed > 1 {
            causes.insert(Cause::Contested);
        }
        for port in self.project.ports_of(id) {
            if !port.security {
                causes.insert(Cause::PortUnsecurable);
            }
            if !self.project.is_grouped(id, &port) {
                causes.insert(Cause::SecurityGroupMissing);
            }
            if self.layout.routed && port.pairs.is_empty() {
                causes.insert(Cause::AddressPairMissing);
            }
        }
        if self.project.called(&server.instance.name) > 1 {
            causes.insert(Cause::DuplicateInstance);
        }
    }

    fn causes_inside(&self, id: &InstanceId, causes: &mut BTreeSet<Cause>) {
        let Some(vm) = self.vms.get(id) else { return };
        causes.extend(vm.trouble.and_then(Trouble::cause));
        if vm.first_boot == FirstBoot::Failed {
            // Whatever made it fail, that it failed is so.
            causes.extend(catalogue::cause("userdata-script-failed"));
            // Of a port that leads nowhere the guest knows no more than that it has no network.
            if vm.bites() == Some(Bites::Wire) {
                causes.extend(catalogue::cause("no-network-at-boot"));
            }
        }
        if !vm.heard {
            causes.insert(Cause::KubeletSilent);
        }
        if vm.powered && !self.connected(id) {
            causes.extend(catalogue::cause("apiserver-unreachable"));
        }
    }

    fn causes_in_the_cluster(&self, id: &InstanceId, causes: &mut BTreeSet<Cause>) {
        if let Some(who) = self.node_deleted_by.get(id) {
            causes.insert(who.clone());
        }
        let nodes = self.nodes_of(id);
        for node in nodes.iter().filter_map(|name| self.cluster.nodes.get(name)) {
            if node.ready != reveille_core::model::node::Ready::True {
                causes.insert(Cause::NodeNotReady);
                causes.extend(condition_names(node).and_then(catalogue::cause));
            }
            if node.intent.leaving.is_some() {
                causes.insert(Cause::RemovedOnPurpose);
            }
            if node.conditions.iter().any(|condition| &*condition.kind == ROUTE_BROKEN) {
                causes.insert(Cause::PodsUnreachable);
            }
            for range in &node.pod_ranges {
                let there = |route: &&reveille_core::model::network::Route| route.destination == *range;
                let routes = self.project.routes().iter().filter(there);
                let right = routes.clone().any(|route| node.addresses.contains(&route.next_hop));
                if self.layout.routed && !right {
                    causes.insert(Cause::MissingRoute);
                }
            }
        }
        // Where its own Node is gone, a second one that names it is all that a client sees, and its kubelet is silent (seed
        // 5800014).
        if nodes.is_empty() && self.cluster.naming(id) > 0 {
            causes.insert(Cause::KubeletSilent);
        }
        if self.cluster.naming(id) > 1 {
            causes.insert(Cause::DuplicateNode);
        }
    }

    /// Keeps what is wrong with this machine now for what is said of it later.
    pub(super) fn note_causes(&mut self, id: &InstanceId) {
        for cause in self.causes_of(id) {
            self.causes.insert((id.clone(), cause), self.now);
        }
    }

    /// Whether this cause is, or was a moment ago, why the machine fails.
    pub fn explains(&self, id: &InstanceId, cause: &Cause) -> bool {
        let cause = Cause::from_code(cause.code()).unwrap_or_else(|| cause.clone());
        self.causes_of(id).contains(&cause)
            || self.causes.get(&(id.clone(), cause)).is_some_and(|at| self.now.since(*at) <= REMEMBERED)
    }
}

/// The provider's check is the only evidence: no other component can tell a wrong finding of it from a right one.
fn said_by_its_provider(hosting: &Hosting) -> impl Iterator<Item = Cause> {
    let host = (hosting.checks.host == Check::Impaired).then_some(Cause::HostImpaired);
    let guest = (hosting.checks.guest == Check::Impaired).then_some(Cause::GuestImpaired);
    let announced = (!hosting.notices.is_empty()).then_some(Cause::Announced);
    let taken = hosting.ended.is_some().then_some(Cause::TakenBack);
    host.into_iter().chain(guest).chain(announced).chain(taken)
}
