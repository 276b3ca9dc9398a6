//! The true content of the cloud: instances, ports, the pools' group, the router.
//!
//! It is one project, or two that hold pools of the same cluster. Each server belongs to one of them; a listing, and a read
//! by id, tell of one of them only. The router is the first one's, and each has a group of its own by the same name.
//!
//! The rest of the world changes it; `observations` reads it and may lie about it. Objects are shared (`Arc`) and copied only
//! when they change, so that a listing of a thousand machines costs a thousand counters and no strings.
//!
//! It knows no nodes and no time of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use ipnet::{IpNet, Ipv4Net};
use reveille_core::event::{CloudSnapshot, Scope};
use reveille_core::model::id::{
    CloudName, GroupId, InstanceId, InstanceName, PoolName, PortId, RequestId, RuleId,
};
use reveille_core::model::instance::{
    Fault, Instance, InstanceAction, InstanceState, Mark, Port, PortStatus,
};
use reveille_core::model::network::{
    Direction, Family, GroupRule, Protocol, Remote, Route, Router, RuleSpec, SecurityGroup,
};
use reveille_core::model::time::{Span, Time};

use super::access::{OTHER_PROJECT, PROJECT};
use super::layout::{CLOUD, GROUP, GROUP_NAME, OTHER_CLOUD, OTHER_GROUP, ROUTER, group_in, pod_net};
use super::stamp;

/// One instance with what its cloud keeps about it.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) instance: Arc<Instance>,
    /// The project that it is in, by its name in the roster.
    pub(crate) cloud: CloudName,
    /// The pool that its owner keeps it in; none for those of neighbours.
    pub(crate) pool: Option<PoolName>,
    pub(crate) port: PortId,
    /// Newest first.
    pub(crate) actions: Vec<InstanceAction>,
    pub(crate) changed_at: Time,
    pub(crate) made_at: Time,
    /// Who the cloud will name as the one that deletes it, and whether deleting it ever ends.
    pub(crate) never_ends: bool,
}

/// The project, or the two.
#[derive(Clone, Debug)]
pub(crate) struct Project {
    pub(crate) servers: BTreeMap<InstanceId, Server>,
    /// Deleted a while ago: a listing of changes still tells of them.
    pub(crate) tombs: BTreeMap<InstanceId, (Time, Server)>,
    pub(crate) ports: BTreeMap<PortId, (InstanceId, Arc<Port>)>,
    /// The ports of each instance, in order of id.
    legs: BTreeMap<InstanceId, Vec<PortId>>,
    /// How many servers have a name.
    names: BTreeMap<InstanceName, u32>,
    /// The ports of each project in order of their instances, as last listed, while none has changed.
    listed: BTreeMap<CloudName, Vec<(InstanceId, Arc<Port>)>>,
    pub(crate) group: Arc<SecurityGroup>,
    /// The group of the second project, when there is one.
    other_group: Option<Arc<SecurityGroup>>,
    /// Another group of the same name, when there is one.
    twin: Option<Arc<SecurityGroup>>,
    pub(crate) router: Option<Arc<Router>>,
    /// Addresses of ports that belong to no instance.
    pub(crate) vips: BTreeSet<IpAddr>,
    /// What else is in use in each project, as last listed, while none of it has changed.
    in_use: BTreeMap<CloudName, Arc<BTreeSet<IpNet>>>,
    /// The limit that the router keeps without telling it.
    pub(crate) hidden_limit: u32,
    pub(crate) next_host: u32,
    next_request: u64,
    next_rule: u64,
    /// Counts changes of anything that a listing shows.
    pub(crate) edition: u64,
    /// When an instance last changed, came or went.
    pub(crate) changed_at: Time,
    /// How far the cloud's clock is off, milliseconds.
    pub(crate) skew_ms: i64,
    /// What has ended is told of for a while, in every listing and by its id.
    pub(crate) shows_ended: bool,
}

/// Changes older than this are told by full listings only.
const TOMBS_KEPT: Span = Span::from_min(30);

/// The pools' group of a project.
fn pool_group(id: &str, project: &str, rules: &str) -> Arc<SecurityGroup> {
    let (project, rules) = (Some(project.into()), pod_rules(rules));
    Arc::new(SecurityGroup { id: id.into(), name: GROUP_NAME.into(), project, rules })
}

/// The three rules that let pods of other nodes in; their ids begin like this.
fn pod_rules(ids: &str) -> Vec<GroupRule> {
    let rule = |(index, protocol): (usize, Protocol)| GroupRule {
        id: RuleId::new(format!("{ids}-0000-4000-8000-00000000000{index}")),
        allows: RuleSpec {
            direction: Direction::Ingress,
            family: Family::V4,
            protocol: Some(protocol),
            ports: None,
            remote: Remote::Prefix(pod_net()),
        },
        description: "".into(),
    };
    [Protocol::TCP, Protocol::UDP, Protocol::ICMP].into_iter().enumerate().map(rule).collect()
}

impl Project {
    pub(crate) fn new(clouds: &[CloudName], routed: bool, shows_ended: bool) -> Self {
        let second = clouds.iter().any(|cloud| cloud.as_str() == OTHER_CLOUD);
        let router = Router { id: ROUTER.into(), routes: Vec::new(), limit: None };
        Self {
            servers: BTreeMap::new(),
            tombs: BTreeMap::new(),
            ports: BTreeMap::new(),
            legs: BTreeMap::new(),
            names: BTreeMap::new(),
            listed: BTreeMap::new(),
            group: pool_group(GROUP, PROJECT, "0b9c1d00"),
            other_group: second.then(|| pool_group(OTHER_GROUP, OTHER_PROJECT, "1c8d2e11")),
            twin: None,
            router: routed.then(|| Arc::new(router)),
            vips: BTreeSet::new(),
            in_use: BTreeMap::new(),
            hidden_limit: u32::MAX,
            next_host: 10,
            next_request: 1,
            next_rule: 1,
            edition: 0,
            changed_at: Time::from_ms(i64::MIN),
            skew_ms: 0,
            shows_ended,
        }
    }

    /// A host number that no machine had before: addresses are not used twice within a run.
    pub(crate) const fn host(&mut self) -> u32 {
        self.next_host += 1;
        self.next_host
    }

    /// The request id of the next call.
    pub(crate) fn request(&mut self) -> RequestId {
        self.next_request += 1;
        RequestId::new(format!("req-{:08x}", self.next_request))
    }

    /// Takes in a new instance with one port.
    pub(crate) fn add(
        &mut self,
        now: Time,
        instance: Instance,
        (cloud, pool): (CloudName, Option<PoolName>),
        port: Port,
    ) {
        self.edition += 1;
        self.changed_at = now;
        let (id, port_id) = (instance.id.clone(), port.id.clone());
        self.put_port(&id, port);
        *self.names.entry(instance.name.clone()).or_default() += 1;
        let mut server = Server {
            instance: Arc::new(instance),
            cloud,
            pool,
            port: port_id,
            actions: Vec::new(),
            changed_at: now,
            made_at: now,
            never_ends: false,
        };
        let request = self.request();
        server.note(request, "create", "pool-owner", now, None);
        self.servers.insert(id, server);
    }

    fn forget_listed(&mut self) {
        self.listed.clear();
        self.in_use.clear();
    }

    fn put_port(&mut self, id: &InstanceId, port: Port) {
        self.forget_listed();
        let legs = self.legs.entry(id.clone()).or_default();
        legs.push(port.id.clone());
        legs.sort_unstable();
        self.ports.insert(port.id.clone(), (id.clone(), Arc::new(port)));
    }

    /// How many servers have this name.
    pub(crate) fn called(&self, name: &InstanceName) -> u32 {
        self.names.get(name).copied().unwrap_or(0)
    }

    /// Gives an instance another name.
    pub(crate) fn rename(&mut self, now: Time, id: &InstanceId, name: &InstanceName) {
        let Some(before) = self.servers.get(id).map(|server| server.instance.name.clone()) else { return };
        if let Some(count) = self.names.get_mut(&before) {
            *count = count.saturating_sub(1);
        }
        *self.names.entry(name.clone()).or_default() += 1;
        self.change(now, id, |instance| instance.name = name.clone());
    }

    /// Changes an instance, but not its name, and marks it as changed.
    pub(crate) fn change(&mut self, now: Time, id: &InstanceId, change: impl FnOnce(&mut Instance)) {
        self.edition += 1;
        self.changed_at = now;
        if let Some(server) = self.servers.get_mut(id) {
            change(Arc::make_mut(&mut server.instance));
            server.changed_at = now;
        }
    }

    /// Changes what an instance is marked with. That is no change of the instance: Nova keeps tags and metadata in tables of
    /// their own (`nova/objects/tag.py`, `nova/db/main/api.py`), `updated_at` of the server stays, and a list by
    /// `changes-since` does not name it. Only a full listing, or a read by id, shows it.
    pub(crate) fn change_marks(&mut self, id: &InstanceId, change: impl FnOnce(&mut BTreeSet<Mark>)) {
        self.edition += 1;
        if let Some(server) = self.servers.get_mut(id) {
            change(Arc::make_mut(&mut Arc::make_mut(&mut server.instance).marks));
        }
    }

    /// Puts an instance into a state, with the task that goes with it.
    pub(crate) fn set_state(&mut self, now: Time, id: &InstanceId, state: InstanceState, task: Option<&str>) {
        self.change(now, id, |instance| {
            instance.state = state;
            instance.task = task.map(Arc::from);
        });
    }

    /// Gives an instance up with the cloud's reason.
    pub(crate) fn set_fault(&mut self, now: Time, id: &InstanceId, message: &str) {
        self.change(now, id, |instance| {
            instance.state = InstanceState::Errored;
            instance.task = None;
            instance.fault = Some(Fault { code: 500, message: message.into() });
        });
    }

    /// Writes a line into an instance's log of actions.
    pub(crate) fn note(&mut self, now: Time, id: &InstanceId, action: &str, user: &str) -> RequestId {
        let request = self.request();
        if let Some(server) = self.servers.get_mut(id) {
            let now = Time::from_ms(now.ms + self.skew_ms);
            server.note(request.clone(), action, user, now, None);
        }
        request
    }

    /// Changes an instance's port; each change moves its revision on.
    pub(crate) fn change_port(&mut self, id: &PortId, change: impl FnOnce(&mut Port)) {
        self.edition += 1;
        self.forget_listed();
        if let Some((_, port)) = self.ports.get_mut(id) {
            let port = Arc::make_mut(port);
            change(port);
            port.revision += 1;
        }
    }

    /// The port of an instance.
    pub(crate) fn port_of(&self, id: &InstanceId) -> Option<&Arc<Port>> {
        let server = self.servers.get(id)?;
        self.ports.get(&server.port).map(|(_, port)| port)
    }

    /// The project that an instance is in, or was in until lately.
    pub(crate) fn cloud_of(&self, id: &InstanceId) -> Option<&CloudName> {
        let ended = || self.tombs.get(id).map(|(_, server)| &server.cloud);
        self.servers.get(id).map(|server| &server.cloud).or_else(ended)
    }

    /// The group that an instance's ports must carry: that of its project.
    pub(crate) fn group_of(&self, id: &InstanceId) -> &'static str {
        self.cloud_of(id).map_or(GROUP, group_in)
    }

    /// The port carries it.
    pub(crate) fn is_grouped(&self, id: &InstanceId, port: &Port) -> bool {
        let wanted = self.group_of(id);
        port.groups.iter().any(|group| group.as_str() == wanted)
    }

    /// What its cloud says of one that has ended, where it still does.
    pub(crate) fn ended(&self, id: &InstanceId) -> Option<&Arc<Instance>> {
        self.tombs.get(id).filter(|_| self.shows_ended).map(|(_, server)| &server.instance)
    }

    /// The instance is gone for good, and its port with it.
    pub(crate) fn bury(&mut self, now: Time, id: &InstanceId) {
        self.edition += 1;
        self.changed_at = now;
        let Some(mut server) = self.servers.remove(id) else { return };
        self.forget_listed();
        for port in self.legs.remove(id).unwrap_or_default() {
            self.ports.remove(&port);
        }
        if let Some(count) = self.names.get_mut(&server.instance.name) {
            *count = count.saturating_sub(1);
        }
        let instance = Arc::make_mut(&mut server.instance);
        instance.state = InstanceState::Gone;
        instance.task = None;
        self.tombs.insert(id.clone(), (now, server));
        self.tombs.retain(|_, (at, _)| now.since(*at) < TOMBS_KEPT);
    }

    /// Puts rules that are not there yet.
    pub(crate) fn add_rules(&mut self, rules: &[RuleSpec], description: &str) {
        self.add_rules_to(&GroupId::from(GROUP), rules, description);
    }

    /// The same, for this one of the pools' groups.
    pub(crate) fn add_rules_to(&mut self, id: &GroupId, rules: &[RuleSpec], description: &str) {
        self.edition += 1;
        let other = self.other_group.as_mut().filter(|group| group.id == *id);
        let group = Arc::make_mut(other.unwrap_or(&mut self.group));
        for allows in rules {
            if group.rules.iter().any(|rule| rule.allows == *allows) {
                continue;
            }
            self.next_rule += 1;
            group.rules.push(GroupRule {
                id: RuleId::new(format!("7c2e0a11-0000-4000-9000-{:012x}", self.next_rule)),
                allows: allows.clone(),
                description: description.into(),
            });
        }
    }

    /// Takes out every rule that matches.
    pub(crate) fn drop_rules(&mut self, matches: impl Fn(&GroupRule) -> bool) {
        self.edition += 1;
        Arc::make_mut(&mut self.group).rules.retain(|rule| !matches(rule));
    }

    /// One rule for every protocol and the wider half of the address space takes the place of all.
    pub(crate) fn widen_rules(&mut self) {
        let wide = RuleSpec {
            direction: Direction::Ingress,
            family: Family::V4,
            protocol: None,
            ports: None,
            remote: Remote::Prefix(IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::UNSPECIFIED, 0))),
        };
        self.drop_rules(|_| true);
        self.add_rules(&[wide], "one for all");
    }

    /// Another group of the same name, as a project may have.
    pub(crate) fn add_group_twin(&mut self) {
        self.edition += 1;
        let mut twin = (*self.group).clone();
        twin.id = "6e1d3c9f-4d1b-4b66-9e8f-7a2e3fac8b21".into();
        twin.rules.clear();
        self.twin = Some(Arc::new(twin));
    }

    /// A second leg of a machine, without the pool's group.
    pub(crate) fn add_second_port(&mut self, id: &InstanceId, port_id: PortId) {
        self.edition += 1;
        let host = self.host();
        let mut leg = port(port_id.clone(), host, false);
        leg.groups = Box::new([GroupId::from("default")]);
        self.put_port(id, leg);
    }

    /// All ports of an instance, in order of id.
    pub(crate) fn ports_of(&self, id: &InstanceId) -> Vec<Arc<Port>> {
        let own = self.legs.get(id).into_iter().flatten().filter_map(|port| self.ports.get(port));
        own.map(|(_, port)| port.clone()).collect()
    }

    /// Changes the router's routes.
    pub(crate) fn change_routes(&mut self, change: impl FnOnce(&mut Vec<Route>)) {
        self.edition += 1;
        if let Some(router) = &mut self.router {
            change(&mut Arc::make_mut(router).routes);
        }
    }

    /// Every route there is.
    pub(crate) fn routes(&self) -> &[Route] {
        self.router.as_ref().map_or(&[], |router| &router.routes)
    }

    /// What a true listing of a project says: everything, or what changed since then.
    pub(crate) fn snapshot(&mut self, cloud: &CloudName, since: Option<Time>) -> CloudSnapshot {
        let recent = |at: Time| since.is_none_or(|since| at >= since);
        let mut instances: Vec<Arc<Instance>> = self
            .servers
            .values()
            .filter(|server| server.cloud == *cloud && recent(server.changed_at))
            .map(|server| server.instance.clone())
            .collect();
        if since.is_some() || self.shows_ended {
            let gone = self.tombs.values().filter(|(at, server)| server.cloud == *cloud && recent(*at));
            instances.extend(gone.map(|(_, server)| server.instance.clone()));
        }
        if self.shows_ended {
            instances.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        }
        // In order of the instances, as an adapter hands them over.
        let (legs, all, servers) = (&self.legs, &self.ports, &self.servers);
        let here = |id: &InstanceId| servers.get(id).is_some_and(|server| server.cloud == *cloud);
        let ports = || legs.iter().filter(|(id, _)| here(id)).flat_map(|(_, ports)| ports);
        let in_order = || ports().filter_map(|port| all.get(port)).cloned().collect();
        let listed = self.listed.entry(cloud.clone()).or_insert_with(in_order).clone();
        let routers = self.router.iter().filter(|_| cloud.as_str() == CLOUD).cloned().collect();
        CloudSnapshot {
            instances,
            begun: None,
            scope: if since.is_some() { Scope::Changes } else { Scope::Full },
            ports: listed,
            in_use: self.in_use(cloud),
            groups: Some(self.groups(cloud)),
            routers,
        }
    }

    /// Addresses of a project's ports that belong to no instance, the router's leg among them, and the allowed address pairs of
    /// all its ports.
    pub(crate) fn in_use(&mut self, cloud: &CloudName) -> Arc<BTreeSet<IpNet>> {
        let (vips, ports, servers) = (&self.vips, &self.ports, &self.servers);
        let here = |id: &InstanceId| servers.get(id).is_some_and(|server| server.cloud == *cloud);
        let pairs =
            ports.values().filter(|(id, _)| here(id)).flat_map(|(_, port)| port.pairs.iter().copied());
        let first = cloud.as_str() == CLOUD;
        let vips = vips.iter().filter(|_| first).copied().map(IpNet::from);
        let leg = self.router.iter().filter(|_| first).map(|_| IpNet::from(address(ROUTER_LEG)));
        let all = || Arc::new(vips.chain(leg).chain(pairs).collect());
        self.in_use.entry(cloud.clone()).or_insert_with(all).clone()
    }

    /// The address is on a port of this project, or inside an allowed address pair of one: Neutron lists no other project's.
    pub(crate) fn uses(&mut self, cloud: &CloudName, address: &IpAddr) -> bool {
        let here = |id: &InstanceId| self.cloud_of(id) == Some(cloud);
        let on_port = |(id, port): &(InstanceId, Arc<Port>)| here(id) && port.addresses.contains(address);
        self.ports.values().any(on_port) || self.in_use(cloud).iter().any(|net| net.contains(address))
    }

    /// Changes which addresses ports without an instance have.
    pub(crate) fn change_vips(&mut self, change: impl FnOnce(&mut BTreeSet<IpAddr>)) {
        self.edition += 1;
        self.in_use.clear();
        change(&mut self.vips);
    }

    /// Every security group of a project.
    pub(crate) fn groups(&self, cloud: &CloudName) -> Vec<Arc<SecurityGroup>> {
        match &self.other_group {
            Some(group) if cloud.as_str() == OTHER_CLOUD => vec![group.clone()],
            _ => std::iter::once(&self.group).chain(&self.twin).cloned().collect(),
        }
    }

    /// The groups whose rules pods travel by, one for each project.
    pub(crate) fn pool_groups(&self) -> impl Iterator<Item = &Arc<SecurityGroup>> {
        std::iter::once(&self.group).chain(&self.other_group)
    }

    /// Instances of a pool that its owner counts: all that are not leaving.
    pub(crate) fn kept_of<'a>(&'a self, pool: &'a PoolName) -> impl Iterator<Item = &'a Server> {
        self.servers
            .values()
            .filter(move |server| server.pool.as_ref() == Some(pool) && !server.instance.state.is_leaving())
    }

    /// Every address that is on a port.
    pub(crate) fn addresses(&self) -> BTreeSet<IpAddr> {
        self.ports.values().flat_map(|(_, port)| port.addresses.iter().copied()).collect()
    }
}

impl Server {
    fn note(&mut self, request: RequestId, action: &str, user: &str, now: Time, message: Option<&str>) {
        let action = InstanceAction {
            request,
            action: action.into(),
            started: stamp(now),
            user: Some(user.into()),
            message: message.map(Arc::from),
        };
        self.actions.insert(0, action);
    }
}

/// The port of a machine: wired, grouped, and allowing its pod range where pods travel bare.
pub(crate) fn port(id: PortId, host: u32, pairs: bool) -> Port {
    Port {
        id,
        network: "2ad1f3c4-5b6e-4f70-8a91-b2c3d4e5f607".into(),
        addresses: Box::new([address(host)]),
        groups: Box::new([GroupId::from(GROUP)]),
        pairs: if pairs { Box::new([pod_range(host)]) } else { Box::new([]) },
        security: true,
        status: PortStatus::Active,
        revision: 1,
    }
}

/// The machine's address.
pub(crate) fn address(host: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 180, 0, 0)) + host))
}

/// The pod range of the machine's node.
pub(crate) fn pod_range(host: u32) -> IpNet {
    let first = Ipv4Addr::from(u32::from(Ipv4Addr::new(100, 64, 0, 0)) + (host << 8));
    IpNet::V4(Ipv4Net::new_assert(first, 24))
}

/// The host number of the port by which the router reaches into the network: its gateway.
const ROUTER_LEG: u32 = 1;

/// The address of a VIP: far from those of machines.
pub(crate) fn vip(number: u32) -> IpAddr {
    address(50_000 + number)
}

/// The part of the pod range that leads through a VIP: far from those of nodes.
pub(crate) fn vip_range(number: u32) -> IpNet {
    pod_range(16_000 + number)
}

/// A range of another cluster, outside of ours.
pub(crate) fn foreign_range(number: u32) -> IpNet {
    let first = Ipv4Addr::from(u32::from(Ipv4Addr::new(172, 20, 0, 0)) + (number << 8));
    IpNet::V4(Ipv4Net::new_assert(first, 24))
}
