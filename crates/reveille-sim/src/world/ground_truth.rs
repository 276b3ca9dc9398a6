//! What a careful operator in front of a machine would know: the truth by which the oracle judges acts.
//!
//! Read from the world itself, not from any view of it. Nothing here changes anything.

use std::sync::Arc;

use reveille_core::model::hosting::Hosting;
use reveille_core::model::id::{InstanceId, NodeName, NodeUid, PoolName, PortId, ZoneName};
use reveille_core::model::instance::{InstanceState, Mark};
use reveille_core::model::node::{Node, Provider};
use reveille_core::model::time::{Span, Time};
use reveille_core::plan::annotations::KEEP_MARK;
use reveille_core::plan::budget::normalise_fault;

use super::World;
use super::project::Server;
use super::vm::{FirstBoot, Vm};

/// One machine and its surroundings, as they are now.
#[derive(Clone, Debug)]
pub(crate) struct GroundTruth {
    pub(crate) pool: Option<PoolName>,
    pub(crate) zone: Option<ZoneName>,
    pub(crate) state: InstanceState,
    pub(crate) locked: bool,
    pub(crate) task: bool,
    /// When its cloud last changed anything about it.
    pub(crate) changed_at: Time,
    /// A node of it carries the sign of the client that takes it away, or a person cordoned and deleted its node.
    pub(crate) leaving: bool,
    /// Nodes of it that the API has shown.
    pub(crate) nodes: usize,
    pub(crate) first_boot_failed: bool,
    /// It is on its way up, and nothing inside it is broken: it comes back by itself.
    pub(crate) comes_up: bool,
    /// Security groups can be put on its ports.
    pub(crate) takes_groups: bool,
    /// What a person wrote on it about keeping it for a look.
    pub(crate) keep: Option<bool>,
    /// Why its cloud gave it up, without what differs from machine to machine.
    pub(crate) fault: Option<Arc<str>>,
    /// What its provider says of how it hosts it.
    pub(crate) hosting: Option<Arc<Hosting>>,
}

/// Which machines count as ours. No list of changes shows that marks changed, so that for a while a controller may take either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ours {
    /// Those that their owner keeps in a pool.
    Kept,
    /// Those of them that carry the marks of their pool. Who gave a machine away has the say over when it is silent (seed
    /// 5751632).
    Marked,
}

impl Ours {
    pub(crate) const BOTH: [Self; 2] = [Self::Kept, Self::Marked];
}

/// How many machines of ours there are somewhere, and how many of them are heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) machines: u32,
    pub(crate) heard: u32,
    /// Of those that are not heard: they have no Node that could tell, because they have not registered yet or it was deleted.
    pub(crate) nodeless: u32,
}

impl World {
    pub(crate) fn ground_truth(&self, id: &InstanceId) -> Option<GroundTruth> {
        let server = self.project.servers.get(id)?;
        let vm = self.vms.get(id);
        let own = || {
            self.cluster.nodes.values().filter(|node| {
                node.system_uuid.as_ref() == Some(id) || node.provider == Provider::Instance(id.clone())
            })
        };
        let instance = &server.instance;
        Some(GroundTruth {
            pool: server.pool.clone(),
            comes_up: self.comes_up(id),
            zone: instance.zone.clone(),
            state: instance.state,
            locked: instance.locked,
            task: instance.task.is_some(),
            changed_at: server.changed_at,
            leaving: own().filter_map(|node| self.as_shown(node)).any(|node| node.intent.leaving.is_some())
                || self.is_shown_removed(id),
            nodes: own().filter(|node| self.is_shown(&node.name)).count(),
            first_boot_failed: vm.is_some_and(|vm| vm.first_boot == FirstBoot::Failed),
            takes_groups: self
                .project
                .ports
                .values()
                .filter(|(owner, _)| owner == id)
                .all(|(_, port)| port.security),
            keep: {
                let on_node = own().filter_map(|node| node.intent.asks.as_ref()?.keep);
                let on_instance = instance.marks.iter().filter_map(|mark| match mark {
                    Mark::Metadata(key, value) if &**key == KEEP_MARK => value.parse().ok(),
                    _ => None,
                });
                on_node.chain(on_instance).max()
            },
            fault: instance.fault.as_ref().map(|fault| normalise_fault(&fault.message)),
            hosting: instance.hosting.clone(),
        })
    }

    /// This Node as lists and the watch show it: while the cluster shows an old state, a taint that a person adds is in neither
    /// (seed 9400302).
    fn as_shown<'a>(&'a self, node: &'a Arc<Node>) -> Option<&'a Arc<Node>> {
        let Some(old) = &self.network_faults.old_nodes else { return Some(node) };
        old.iter().find(|known| known.name == node.name)
    }

    /// A client may know of this Node: one that registers while the cluster shows an old state is in no list and no watch
    /// (seed 6105725), and neither is a second Node that was made while the watch was down.
    fn is_shown(&self, node: &NodeName) -> bool {
        let old = self.network_faults.old_nodes.as_ref();
        let is_old = |old: &Vec<Arc<Node>>| old.iter().any(|known| known.name == *node);
        old.is_none_or(is_old) && !self.lies.unseen_twins.contains(node)
    }

    /// Machines of a pool that are there and stay, as far as the cloud knows.
    pub(crate) fn machines_of(&self, pool: &PoolName) -> usize {
        let stays =
            |server: &&Server| server.pool.as_ref() == Some(pool) && !server.instance.state.is_leaving();
        self.project.servers.values().filter(stays).count()
    }

    /// No list tells which machines are silent: Nodes are shown as they were, and leases not at all.
    pub(crate) fn shows_no_silence(&self) -> bool {
        self.lies.leases_empty && self.network_faults.old_nodes.is_some()
    }

    /// Machines of a pool that leave, and since when.
    pub(crate) fn leaving_from(&self, pool: &PoolName) -> impl Iterator<Item = (&InstanceId, Time)> {
        let leaves =
            |server: &&Server| server.pool.as_ref() == Some(pool) && server.instance.state.is_leaving();
        self.project.servers.values().filter(leaves).map(|server| (&server.instance.id, server.changed_at))
    }

    /// Our running machines of a zone, or of all zones.
    pub(crate) fn heard_in(&self, zone: Option<&ZoneName>, ours: Ours) -> Heard {
        let mut heard = Heard::default();
        for (id, server) in &self.project.servers {
            let here = zone.is_none_or(|zone| server.instance.zone.as_ref() == Some(zone));
            if here && Self::is_ours(server, ours) && server.instance.state == InstanceState::Active {
                heard.machines += 1;
                let vm = self.vms.get(id);
                heard.heard += u32::from(vm.is_some_and(|vm| vm.heard));
                let is_shown = |vm: &Vm| vm.joined && !self.cluster.of(id).is_empty();
                heard.nodeless += u32::from(vm.is_none_or(|vm| !vm.heard && !is_shown(vm)));
            }
        }
        heard
    }

    pub(super) fn is_ours(server: &Server, ours: Ours) -> bool {
        server.pool.as_ref().is_some_and(|pool| ours == Ours::Kept || Self::is_marked(server, pool))
    }

    /// The machine behind a node, if it is still this object, and of this boot where one is named.
    pub(crate) fn machine_behind(
        &self,
        node: &NodeName,
        uid: &NodeUid,
        boot_id: Option<&Arc<str>>,
    ) -> Option<InstanceId> {
        let node = self.cluster.nodes.get(node).filter(|node| node.uid == *uid)?;
        let same_boot = boot_id.is_none_or(|boot| node.boot_id.as_ref() == Some(boot));
        node.system_uuid.clone().filter(|_| same_boot)
    }

    /// No poll since then, because the process slept: the next listing of changes begins there.
    pub(crate) fn listings_lost_since(&mut self, then: Time) {
        self.listings.values_mut().for_each(|listings| listings.lost_since(then));
    }

    /// True while no kubelet renews its lease although kubelets run.
    pub(crate) const fn leases_stand_still(&self) -> bool {
        self.lies.leases_frozen
    }

    /// True while the cloud denies single servers that are there, in lists and by id: no client could tell. A server made minutes
    /// ago is the exception: every client that knows such clouds could tell.
    pub(crate) fn single_servers_are_denied(&self) -> bool {
        let settles = self.layout.settles.unwrap_or(Span::ZERO);
        let is_old = |id: &InstanceId| {
            self.project.servers.get(id).is_some_and(|server| self.now.since(server.made_at) >= settles)
        };
        self.lies.unlisted.as_ref().is_some_and(|lie| lie.only.is_some() && lie.denies)
            || self.lies.unknown.iter().any(is_old)
    }

    /// The same, or they were so lately that who asked then has had no reason to ask again.
    pub(crate) fn single_servers_were_denied_within(&self, span: Span) -> bool {
        self.single_servers_are_denied()
            || self.lies.denied_until.is_some_and(|at| self.now.since(at) <= span)
    }

    /// Routes on the router now.
    pub(crate) fn routes_held(&self) -> usize {
        self.project.routes().len()
    }

    /// Changes with everything that the oracle looks around for: who is heard, what there is, what its owners want.
    pub(crate) const fn scenery(&self) -> (Time, u64, u64, bool) {
        (self.stirred, self.project.edition, self.wanted, self.lies.leases_frozen)
    }

    /// Zones that our machines are in.
    pub(crate) fn zones(&self) -> std::collections::BTreeSet<ZoneName> {
        self.project.servers.values().filter_map(|server| server.instance.zone.clone()).collect()
    }

    /// The newest image that a machine of the pool was made from, as a version of the pool's owner, and since when there is one.
    /// An image that the owner wants and has made nothing from yet is invisible to every client.
    pub(crate) fn image_of(&self, pool: &PoolName) -> (u32, Time) {
        self.pools.get(pool).map_or((0, self.layout.start), |kept| kept.shown)
    }

    /// Instances of a pool that are gone because another client deleted them. The last deletion counts: an earlier one without
    /// effect removed no machine.
    pub(crate) fn deleted_by_others(&self) -> impl Iterator<Item = (&InstanceId, &PoolName)> {
        let dead = self.project.tombs.iter().map(|(id, (_, server))| (id, server));
        dead.filter_map(|(id, server)| {
            let last = server.actions.iter().find(|action| &*action.action == "delete");
            let by_other = last.is_some_and(|last| last.user.as_deref() != Some(super::calls::OURSELVES));
            let pool = server.pool.as_ref().filter(|_| by_other)?;
            // One without the pool's marks belonged to no pool, as far as could be seen.
            Self::is_marked(server, pool).then_some((id, pool))
        })
    }

    /// When a machine of the pool last became well, of those that are well now and were made after the beginning.
    pub(crate) fn newest_join(&self, pool: &PoolName) -> Option<Time> {
        let well = self.vms.iter().filter(|(id, _)| {
            self.project.servers.get(*id).is_some_and(|server| server.pool.as_ref() == Some(pool))
        });
        well.filter_map(|(_, vm)| vm.well_since).max()
    }

    /// The instance ran before any process watched.
    pub(crate) fn was_there_before(&self, id: &InstanceId) -> bool {
        self.project.servers.get(id).is_some_and(|server| server.made_at <= self.layout.start)
    }

    /// True while reads of the cloud fail.
    pub(crate) const fn cloud_is_silent(&self) -> bool {
        self.lies.cloud_fails.is_some() || self.lies.unlisted.is_some() || self.lies.elsewhere
    }

    /// The machine that a port belongs to.
    pub(crate) fn machine_of_port(&self, port: &PortId) -> Option<InstanceId> {
        self.project.ports.get(port).map(|(instance, _)| instance.clone())
    }
}
