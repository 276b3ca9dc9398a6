//! All other clients at work: the pool's owner, the cloud controller, the autoscaler, neighbours.
//!
//! They read the truth (or what they mistake for it) and change it, at their own pace. None of them knows the engine,
//! and none of them is known to it but by what they leave behind: events on nodes, entries in logs of actions, taints.

use std::collections::BTreeSet;
use std::sync::Arc;

use reveille_core::model::cause::Cause;
use reveille_core::model::id::{InstanceId, NodeName, NodeUid, PoolName, ZoneName};
use reveille_core::model::instance::{Instance, InstanceState, PortStatus};
use reveille_core::model::node::{Provider, Ready};
use reveille_core::model::time::Span;

use super::cluster::UNINITIALIZED;
use super::cluster::{Lease, set_ready};
use super::ground_truth::Ours;
use super::layout::neighbour_mark;
use super::trouble::Bites;
use super::vm::{FirstBoot, Kubelet, Trouble, Vm};
use super::written::TO_BE_DELETED;
use super::{Life, Task, World, project, stamp};

/// Between two looks of a pool's owner.
const OWNER_LOOKS: Span = Span::from_s(20);
/// Between two looks of the cloud controller at nodes that are not Ready.
const CONTROLLER_LOOKS: Span = Span::from_s(5);

impl World {
    /// Everything that stands at the beginning: every pool at its size, all Ready, and the neighbours.
    pub(super) fn settle_in(&mut self) {
        let pools: Vec<(PoolName, u32)> =
            self.pools.iter().map(|(name, kept)| (name.clone(), kept.size)).collect();
        let mut nodeless = self.layout.nodeless.clone().into_iter();
        let mut unmarked = 0..self.layout.variety.unmarked;
        for (pool, size) in pools {
            for _ in 0..size {
                let trouble = nodeless.next();
                let id = self.make(&pool, trouble);
                if unmarked.next().is_some() {
                    self.set_marks(&id, false);
                }
                if trouble.is_some() {
                    self.project.set_state(self.now, &id, InstanceState::Active, None);
                    self.boot(&id);
                } else {
                    self.settle(&id);
                }
            }
        }
        for number in 0..self.layout.neighbours {
            self.add_neighbour(number);
        }
        for number in 0..self.layout.variety.vips {
            self.add_vip(number);
        }
    }

    /// An address that no instance has, and a route in the pod range through it, as an operator puts for an egress gateway or a
    /// part of the pods that a pair of routers serves.
    fn add_vip(&mut self, number: u32) {
        let (address, port) = (project::vip(number), self.project.ports.keys().next().cloned());
        match (number % 3, port) {
            (1, Some(port)) => self.project.change_port(&port, |port| {
                let mut pairs = port.pairs.to_vec();
                pairs.push(address.into());
                port.pairs = pairs.into();
            }),
            _ => self.project.change_vips(|vips| {
                vips.insert(address);
            }),
        }
        let route = reveille_core::model::network::Route {
            destination: project::vip_range(number),
            next_hop: address,
        };
        self.project.change_routes(|held| held.push(route));
    }

    /// A machine that has long been there: running, registered, initialised, Ready, routed.
    fn settle(&mut self, id: &InstanceId) {
        self.project.set_state(self.now, id, InstanceState::Active, None);
        let name = self.node_name_of(id);
        let Some(vm) = self.vms.get_mut(id) else { return };
        vm.powered = true;
        vm.boot = 1;
        vm.first_boot = FirstBoot::Done;
        vm.kubelet = Kubelet::Registered;
        vm.joined = true;
        vm.heard = true;
        let (host, boot_id) = (vm.host, vm.boot_id.clone());
        let mut node = super::cluster::registered(super::cluster::Registration {
            name: name.clone(),
            uid: NodeUid::new(self.names.uuid()),
            instance: id.clone(),
            boot_id,
            address: project::address(host),
            range: project::pod_range(host),
        });
        node.provider = Provider::Instance(id.clone());
        node.uninitialized = false;
        node.taints = Box::default();
        node.zone = self.project.servers.get(id).and_then(|server| server.instance.zone.clone());
        set_ready(&mut node, Ready::True);
        let uid = node.uid.clone();
        let lease = Lease { instance: id.clone(), renewed: self.renewal_of(id), held: true };
        self.cluster.put_lease(name.clone(), lease);
        self.cluster.put(Arc::new(node));
        self.make_route(&name, &uid);
        self.settle_hosting(id);
        self.note_health(id);
        self.start_agent(id);
    }

    /// The pool's owner orders a machine; the cloud begins to build it.
    pub(super) fn make(&mut self, pool: &PoolName, trouble: Option<Trouble>) -> InstanceId {
        let host = self.project.host();
        let id = InstanceId::new(self.names.uuid());
        let name = self.name_for(pool);
        let plan = self.layout.pools.iter().find(|plan| plan.name == *pool);
        let zones: Vec<ZoneName> = plan.map(|plan| plan.zones.clone()).unwrap_or_default();
        let now = self.now;
        let (made, version) = self.pools.get_mut(pool).map_or((0, 1), |kept| {
            kept.made += 1;
            if kept.shown.0 != kept.version {
                kept.shown = (kept.version, now);
            }
            (kept.made - 1, kept.version)
        });
        let zone = (!zones.is_empty()).then(|| zones[made % zones.len()].clone());
        let instance = Instance {
            id: id.clone(),
            name: name.as_str().into(),
            state: InstanceState::Building,
            task: Some("spawning".into()),
            fault: None,
            zone,
            image: Some(format!("flatcar-stable-{version}").as_str().into()),
            marks: Arc::new(self.with_common_tag(Self::marks(pool))),
            addresses: Box::new([project::address(host)]),
            config_drive: !matches!(trouble, Some(Trouble::MetadataDown | Trouble::PayloadGone)),
            locked: false,
            created: Some(stamp(self.cloud_time())),
            hostname: None,
            hosting: self.new_hosting(pool),
        };
        let mut port = project::port(self.names.uuid().as_str().into(), host, false);
        let cloud = self.layout.cloud_of(pool);
        let group = super::layout::group_in(&cloud);
        port.groups = match self.layout.default_group {
            true => Box::new([group.into(), "default".into()]),
            false => Box::new([group.into()]),
        };
        if trouble.is_some_and(|trouble| trouble.bites() == Bites::Wire) {
            port.status = PortStatus::Down;
        }
        self.project.add(self.now, instance, (cloud, Some(pool.clone())), port);
        let boot_id = self.names.uuid().into();
        let mut vm = Vm::new(host, trouble, boot_id);
        vm.kubelet_credentials = self.credentials_of_old(&id);
        self.vms.insert(id.clone(), vm);
        self.begin_unknown(pool, &id);
        id
    }

    /// What the pool's owner calls the next machine.
    fn name_for(&mut self, pool: &PoolName) -> String {
        let suffix = self.names.suffix(5);
        if !self.layout.plain_names {
            return format!("kks-prod-{pool}-{suffix}");
        }
        let made = self.pools.get(pool).map_or(0, |kept| kept.made);
        let plain = |number: usize| format!("{pool}-{number}");
        let taken = |name: &String| {
            let is_its = |server: &project::Server| server.instance.name.as_str() == name.as_str();
            self.is_guests_name(name) || self.project.servers.values().any(is_its)
        };
        let again = if self.layout.names_reused { made } else { 0 };
        let free = (1..=again).map(plain).find(|name| !taken(name));
        free.unwrap_or_else(|| plain(made + 1))
    }

    /// Keeps every pool at its size. An instance in an error state takes up a place until it is deleted.
    pub(super) fn run_pool_owner(&mut self) {
        let seen = (self.project.edition, self.wanted);
        if self.owner_saw == Some(seen) {
            self.plan(self.owner_looks(), Task::PoolOwner);
            return;
        }
        let pools: Vec<(PoolName, usize)> =
            self.pools.iter().map(|(name, kept)| (name.clone(), kept.size as usize)).collect();
        for (pool, size) in pools {
            let have = self.project.kept_of(&pool).count();
            for _ in have..size {
                let trouble = self.pools.get_mut(&pool).and_then(|kept| {
                    if kept.next.is_empty() { kept.image } else { Some(kept.next.remove(0)) }
                });
                let id = self.make(&pool, trouble);
                let name = self.name_of(&id);
                self.tell(format!("the owner of pool {pool} orders {name}"));
                let after = self.soon(15_000, 45_000);
                self.plan(after, Task::Life(id, Life::Built));
            }
        }
        self.owner_saw = Some((self.project.edition, self.wanted)).filter(|now| *now == seen);
        let waiting = self.agenda.values().filter(|task| matches!(***task, Task::PoolOwner)).count();
        if waiting == 0 {
            self.plan(self.owner_looks(), Task::PoolOwner);
        }
    }

    fn owner_looks(&self) -> Span {
        Span::from_ms(OWNER_LOOKS.ms / self.layout.pace.max(1))
    }

    /// The cloud controller gives a node its provider ID, zone and addresses.
    pub(super) fn initialise(&mut self, name: &NodeName, uid: &NodeUid) {
        let unknown = self.owner_of(name, uid).is_some_and(|id| self.lies.unknown.contains(&id));
        if self.cloud_controller.down || unknown {
            self.plan(CONTROLLER_LOOKS, Task::Initialise(name.clone(), uid.clone()));
            return;
        }
        let Some(id) = self.owner_of(name, uid) else { return };
        if self.vms.get(&id).and_then(Vm::bites) == Some(Bites::Initialisation) {
            return;
        }
        let zone = self.project.servers.get(&id).and_then(|server| server.instance.zone.clone());
        let heard = self.vms.get(&id).is_some_and(|vm| vm.heard);
        let node = self.cluster.change(name, |node| {
            node.provider = Provider::Instance(id);
            node.zone = zone;
            node.uninitialized = false;
            node.taints = node.taints.iter().filter(|taint| ***taint != *UNINITIALIZED).cloned().collect();
            if !heard {
                set_ready(node, Ready::Unknown);
            }
        });
        if let Some(node) = node {
            self.watched(node);
        }
    }

    /// The cloud controller makes a node's route and lets its port send from the pod range.
    pub(super) fn make_route(&mut self, name: &NodeName, uid: &NodeUid) {
        let Some(id) = self.owner_of(name, uid).filter(|_| self.layout.routed) else { return };
        if self.cloud_controller.routeless.contains(name) || self.cloud_controller.down {
            return;
        }
        let Some(host) = self.vms.get(&id).map(|vm| vm.host) else { return };
        let route = reveille_core::model::network::Route {
            destination: project::pod_range(host),
            next_hop: project::address(host),
        };
        let full = self.project.routes().len() >= self.project.hidden_limit as usize;
        if !full && !self.project.routes().contains(&route) {
            self.project.change_routes(|held| held.push(route));
        }
        let port = self.project.port_of(&id).filter(|port| port.pairs.is_empty()).map(|port| port.id.clone());
        if let Some(port) = port {
            self.project.change_port(&port, |port| port.pairs = Box::new([project::pod_range(host)]));
        }
    }

    /// After a node went: its route goes, too, unless the machine has a node again by now.
    pub(super) fn review_route(&mut self, id: &InstanceId) {
        let nodes = self.nodes_of(id);
        if nodes.is_empty() {
            self.drop_routes_of(id);
        }
        for name in nodes {
            if let Some(uid) = self.cluster.nodes.get(&name).map(|node| node.uid.clone()) {
                self.make_route(&name, &uid);
            }
        }
    }

    /// Takes out the routes that lead to this machine.
    pub(super) fn drop_routes_of(&mut self, id: &InstanceId) {
        let host = self.vms.get(id).map(|vm| vm.host);
        let gone = self.project.tombs.get(id).map(|(_, server)| server.instance.addresses.clone());
        let address = host.map(project::address).or_else(|| gone.and_then(|all| all.first().copied()));
        if let Some(address) = address {
            self.project.change_routes(|held| held.retain(|route| route.next_hop != address));
        }
    }

    pub(super) fn start_cloud_controller(&mut self) {
        if !self.cloud_controller.ticking {
            self.cloud_controller.ticking = true;
            self.plan(CONTROLLER_LOOKS, Task::CloudController);
        }
    }

    /// The cloud controller asks the cloud about every node that is not Ready, and deletes those whose instance is gone.
    pub(super) fn run_cloud_controller(&mut self) {
        let editions = (self.cluster.edition, self.project.edition);
        if self.cloud_controller.left_alone == Some(editions) {
            self.plan(CONTROLLER_LOOKS, Task::CloudController);
            return;
        }
        let silent = |node: &&Arc<reveille_core::model::node::Node>| node.ready == Ready::Unknown;
        let nodes: Vec<_> = self.cluster.nodes.values().filter(silent).cloned().collect();
        self.cloud_controller.ticking = !nodes.is_empty();
        if self.cloud_controller.ticking {
            self.plan(CONTROLLER_LOOKS, Task::CloudController);
        }
        if self.cloud_controller.down {
            return;
        }
        self.cloud_controller.left_alone = self.cloud_controller.ticking.then_some(editions);
        for node in nodes {
            let gone = node.system_uuid.as_ref().is_some_and(|id| !self.project.servers.contains_key(id));
            if gone {
                self.delete_node_for(&node.name, "it does not exist in the cloud provider");
            }
        }
    }

    /// The cloud controller finds no instance where there is one.
    pub(super) fn mistake_for_gone(&mut self, id: &InstanceId) {
        for name in self.nodes_of(id) {
            self.delete_node_for(&name, "it does not exist in the cloud provider");
        }
    }

    fn delete_node_for(&mut self, name: &NodeName, why: &str) {
        let message = format!("Deleting node {name} because {why}");
        let about = (name, self.cluster.nodes.get(name).map(|node| node.uid.clone()));
        let event =
            self.cluster.say(self.now, about, "DeletingNode", message, "cloud-node-lifecycle-controller");
        self.said(event);
        let last = self.cluster.nodes.get(name).and_then(|node| node.system_uuid.clone());
        self.delete_node(name);
        let machines: BTreeSet<InstanceId> = last.into_iter().chain(self.registered_as(name)).collect();
        for id in machines {
            self.node_deleted_by.insert(id.clone(), Cause::NodeDeletedByCloudController);
            self.note_causes(&id);
        }
    }

    /// Machines whose kubelets registered under this name. Each of several that are called the same updates the Node of that
    /// name, and loses it when it is deleted (seed 5702055).
    fn registered_as(&self, name: &NodeName) -> impl Iterator<Item = InstanceId> {
        let is_registered = |id: &&InstanceId| {
            self.vms.get(*id).is_some_and(|vm| vm.kubelet == Kubelet::Registered)
                && self.node_name_of(id) == *name
        };
        self.vms.keys().filter(is_registered).cloned()
    }

    /// The Node object goes, whichever client deleted it; the controller manager says so, and its lease is collected.
    pub(super) fn delete_node(&mut self, name: &NodeName) {
        let Some(node) = self.cluster.take(name) else { return };
        self.watched_gone(name.clone(), node.uid.clone());
        let message = format!("Node {name} event: Removing Node {name} from Controller");
        let about = (name, Some(node.uid.clone()));
        let event = self.cluster.say(self.now, about, "RemovingNode", message, "node-controller");
        self.said(event);
        if !self.layout.lease_outlives_node {
            let after = self.soon(5_000, 40_000);
            self.plan(after, Task::CollectLease(name.clone()));
        }
        if let Some(id) = node.system_uuid.clone() {
            // Whichever client deleted it: a cordoned Node means that a person works on the machine, and it must not come back by
            // itself.
            if node.cordoned {
                self.identity.removed.insert(id.clone());
            }
            self.node_deleted_by.insert(id.clone(), Cause::NodeDeletedByPerson);
            self.note_health(&id);
            self.note_causes(&id);
            let after = self.soon(3_000, 15_000);
            self.plan(after, Task::Unroute(id));
        }
    }

    /// A store without these nodes replaces the one that had them. No client deleted them, so no event and no watch says so; the
    /// garbage collector finds their leases without an owner.
    pub(super) fn lose_nodes(&mut self, machines: &[InstanceId]) {
        for id in machines {
            let nodes = self.nodes_of(id).to_vec();
            // Whose Node was deleted before lost none by this (seed 3231163).
            if !nodes.is_empty() {
                self.node_deleted_by.insert(id.clone(), Cause::NodeDeletedByPerson);
            }
            for name in &nodes {
                self.cluster.take(name);
                if !self.layout.lease_outlives_node {
                    self.plan(Span::from_s(20), Task::CollectLease(name.clone()));
                }
            }
            // One that had none came to no further harm.
            if !nodes.is_empty() || !self.restored.contains_key(id) {
                self.restored.insert(id.clone(), self.now);
            }
            self.note_health(id);
            self.note_causes(id);
        }
    }

    /// How many machines that run lost their Node with a restored store, so long ago or longer, and have none since.
    pub(crate) fn nodeless_since_restore(&self, for_at_least: Span, ours: Ours) -> usize {
        let early = self.restored.iter().filter(|(_, at)| self.now.since(**at) >= for_at_least);
        let runs = |id: &InstanceId| {
            let server = self.project.servers.get(id).filter(|server| Self::is_ours(server, ours));
            server.is_some_and(|server| server.instance.state == InstanceState::Active)
        };
        early.filter(|(id, _)| runs(id) && self.lacks_node_since_restore(id)).count()
    }

    /// The Node of this machine went with a restored store and has not come back.
    pub(crate) fn lacks_node_since_restore(&self, id: &InstanceId) -> bool {
        self.restored.contains_key(id) && self.vms.contains_key(id) && self.nodes_of(id).is_empty()
    }

    /// The garbage collector takes the lease of a node that is not there.
    pub(super) fn collect_lease(&mut self, name: &NodeName) {
        if !self.cluster.nodes.contains_key(name) {
            self.cluster.drop_lease(name);
        }
    }

    /// The autoscaler's way: the taint first, then the node, then the instance, and one machine fewer to keep.
    pub(super) fn scale_down(&mut self, id: &InstanceId) {
        for name in self.nodes_of(id) {
            self.cluster.change(&name, |node| node.cordoned = true);
            let tainted =
                self.cluster.write(&name, |written| written.taints.extend([TO_BE_DELETED.to_owned()]));
            if let Some(node) = tainted {
                self.watched(node);
            }
            self.delete_node(&name);
        }
        let pool = self.project.servers.get(id).and_then(|server| server.pool.clone());
        if let Some(kept) = pool.and_then(|pool| self.pools.get_mut(&pool)) {
            kept.size = kept.size.saturating_sub(1);
            self.wanted += 1;
        }
        self.delete_instance(id, "cluster-autoscaler");
    }

    /// A second node, of another name, that names the same instance.
    pub(super) fn add_node_twin(&mut self, id: &InstanceId) {
        let Some(name) = self.nodes_of(id).into_iter().next() else { return };
        let Some(node) = self.cluster.nodes.get(&name) else { return };
        let mut twin = (**node).clone();
        twin.name = format!("{name}-old").as_str().into();
        twin.uid = NodeUid::new(self.names.uuid());
        twin.system_uuid = None;
        twin.pod_ranges = Box::new([]);
        set_ready(&mut twin, Ready::Unknown);
        let twin = Arc::new(twin);
        if !self.watching() {
            self.lies.unseen_twins.insert(twin.name.clone());
        }
        self.cluster.put(twin.clone());
        self.watched(twin);
    }

    /// A second instance of the same name in the same pool, whose kubelet never registers: its name is taken.
    pub(super) fn add_name_twin(&mut self, id: &InstanceId) {
        let Some(server) = self.project.servers.get(id).cloned() else { return };
        let Some(pool) = server.pool else { return };
        if let Some(kept) = self.pools.get_mut(&pool) {
            kept.size += 1;
        }
        let twin = self.make(&pool, Some(Trouble::Broken));
        let name = server.instance.name.clone();
        self.project.change(self.now, &twin, |instance| instance.name = name);
        self.project.set_state(self.now, &twin, InstanceState::Active, None);
        self.boot(&twin);
    }

    /// Another cluster's machine: a name as of ours, marks of its own, no node here.
    fn add_neighbour(&mut self, number: u32) {
        let host = self.project.host();
        let id = InstanceId::new(self.names.uuid());
        let instance = Instance {
            id: id.clone(),
            name: format!("kks-prod-workers-{}", self.names.suffix(5)).as_str().into(),
            state: if number.is_multiple_of(3) { InstanceState::Errored } else { InstanceState::Active },
            task: None,
            fault: None,
            zone: Some("nova-a".into()),
            image: Some("flatcar-stable-1".into()),
            marks: Arc::new(self.with_common_tag([neighbour_mark()].into())),
            addresses: Box::new([project::address(host)]),
            config_drive: true,
            locked: false,
            created: Some(stamp(self.cloud_time())),
            hostname: None,
            hosting: None,
        };
        let mut port = project::port(self.names.uuid().as_str().into(), host, false);
        port.groups = Box::new([]);
        self.project.add(self.now, instance, (super::layout::CLOUD.into(), None), port);
    }
}
