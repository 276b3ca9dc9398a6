//! A fleet of any size as events: four pools, two zones each, every machine with a port, a node and a lease.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use reveille_core::effect::{Effect, Look, Outcome};
use reveille_core::engine::{Start, State};
use reveille_core::event::{Answer, CloudFact, CloudSnapshot, ClusterFact, Event, Scope};
use reveille_core::model::id::{
    CloudName, Fence, GroupId, ImageId, InstanceId, LookId, NetworkId, PoolName, ZoneName,
};
use reveille_core::model::instance::{Instance, InstanceState, Mark, Port, PortStatus};
use reveille_core::model::lease::{Leases, Renewal};
use reveille_core::model::network::SecurityGroup;
use reveille_core::model::node::{Node, NodeIntent, Provider, Ready};
use reveille_core::model::roster::Access;
use reveille_core::model::roster::{
    Deadlines, GroupRef, Limits, Mode, Network, Ownership, Pool, Repair, Roster, Timing,
};
use reveille_core::model::time::{Span, Time};

/// Pools of the fleet.
const POOLS: usize = 4;

/// What all machines share.
pub(crate) struct Shared {
    cloud: CloudName,
    group: GroupId,
    network: NetworkId,
    image: ImageId,
    zones: Vec<ZoneName>,
    marks: Vec<Arc<std::collections::BTreeSet<Mark>>>,
    kubelet: Arc<str>,
}

/// A fleet and the engine that watches it.
pub(crate) struct Fleet {
    pub(crate) state: State,
    pub(crate) now: Time,
    pub(crate) nodes: Vec<Arc<Node>>,
    /// As listed last.
    leases: Leases,
    shared: Shared,
    size: usize,
    /// So many machines, the first ones, have a silent kubelet.
    silent: usize,
}

/// An observer of an event and of all that follows from it.
pub(crate) trait Onlooker {
    /// A step has this effect. For a read: its answer, if it is to have one.
    fn sees(&mut self, effect: &Effect) -> Option<Answer>;
    /// The step that took in the answer to this read is over.
    fn took_in(&mut self, look: LookId);
}

struct NoOnlooker;

impl Onlooker for NoOnlooker {
    fn sees(&mut self, _: &Effect) -> Option<Answer> {
        None
    }

    fn took_in(&mut self, _: LookId) {}
}

fn pool_name(pool: usize) -> PoolName {
    PoolName::new(format!("pool-{pool}"))
}

fn cluster_mark() -> Mark {
    Mark::Tag(Arc::from("k8s-cluster=bench"))
}

fn pool_mark(pool: usize) -> Mark {
    Mark::Tag(Arc::from(format!("k8s-pool={pool}")))
}

pub(crate) fn roster(cloud: &CloudName, limits: Limits) -> Roster {
    let pool = |number: usize| Pool {
        name: pool_name(number),
        cloud: cloud.clone(),
        owned: Ownership { cluster: cluster_mark(), pool: Some(pool_mark(number)) },
        groups: vec![GroupRef::Name(Arc::from("k8s-nodes"))],
        min: 1,
        deadlines: Deadlines::default(),
        repair: Repair {
            network: Mode::Act,
            rejoin: Mode::Act,
            reboot: Mode::Act,
            replace: Mode::Act,
            cleanup: Mode::Act,
        },
        paused: false,
        startup_taints: Vec::new(),
        keep: None,
        through_group: false,
    };
    Roster {
        name: "bench".into(),
        clouds: vec![cloud.clone()],
        settles: BTreeMap::new(),
        network: Network::default(),
        access: Access::default(),
        pools: (0..POOLS).map(|number| (pool_name(number), pool(number))).collect(),
        limits,
        timing: Timing::default(),
    }
}

impl Fleet {
    /// A fleet in which every machine answers.
    pub(crate) fn new(size: usize) -> Self {
        Self::with_limits(size, Limits::default())
    }

    /// The same, with other budgets than the default ones.
    pub(crate) fn with_limits(size: usize, limits: Limits) -> Self {
        let shared = Shared {
            cloud: "os".into(),
            group: "9d9e7f1a-0000-4000-8000-000000000001".into(),
            network: "9d9e7f1a-0000-4000-8000-000000000002".into(),
            image: "9d9e7f1a-0000-4000-8000-000000000003".into(),
            zones: (0..2).map(|zone| ZoneName::new(format!("zone-{zone}"))).collect(),
            marks: (0..POOLS).map(|pool| Arc::new([cluster_mark(), pool_mark(pool)].into())).collect(),
            kubelet: Arc::from("v1.36.3"),
        };
        let start = Start { fence: Fence(1), acting: true };
        let state = State::new(roster(&shared.cloud, limits), start);
        let nodes = (0..size).map(|number| Arc::new(node(&shared, number))).collect();
        let (now, leases) = (Time::from_ms(1_000_000_000), Leases::default());
        let mut fleet = Self { state, now, nodes, leases, shared, size, silent: 0 };
        fleet.settle();
        fleet
    }

    fn settle(&mut self) {
        for _ in 0..4 {
            self.list(&|_| true);
            let nodes = self.nodes.clone();
            self.feed(Event::Cluster(ClusterFact::Synced(nodes)));
            self.leases(0);
            self.now = self.now + Span::from_s(30);
        }
    }

    /// A full listing; machines for which `grouped` is false lack their security group.
    pub(crate) fn list(&mut self, grouped: &dyn Fn(usize) -> bool) {
        let event = self.listed(grouped);
        self.feed(event);
    }

    /// The same as an event, not handed over yet.
    pub(crate) fn listed(&self, grouped: &dyn Fn(usize) -> bool) -> Event {
        let fact = CloudFact::read(self.snapshot(grouped));
        Event::Cloud { cloud: self.shared.cloud.clone(), fact }
    }

    /// The listing that the engine has last seen, shared with it: what the adapter hands over while nothing changes.
    pub(crate) fn relisted(&self) -> Event {
        let view = &self.state.context().clouds[&self.shared.cloud];
        let ports = view
            .instances
            .iter()
            .flat_map(|(id, seen)| seen.ports.iter().map(|port| (id.clone(), port.clone())));
        let snapshot = CloudSnapshot {
            instances: view.instances.values().map(|seen| seen.instance.clone()).collect(),
            scope: Scope::Full,
            ports: ports.collect(),
            groups: Some(view.groups.clone()),
            begun: None,
            in_use: Arc::default(),
            routers: Vec::new(),
        };
        Event::Cloud { cloud: self.shared.cloud.clone(), fact: CloudFact::read(snapshot) }
    }

    /// Every instance and every port differs from what the engine has last seen; texts that did not change are shared with it,
    /// as the adapter shares them.
    pub(crate) fn overturned(&self) -> Event {
        let known = &self.state.context().clouds[&self.shared.cloud].instances;
        let mut snapshot = self.snapshot(&|_| true);
        for fresh in &mut snapshot.instances {
            let known = &known[&fresh.id];
            let fresh = Arc::make_mut(fresh);
            fresh.config_drive = !known.instance.config_drive;
            fresh.share_texts_of(&known.instance);
        }
        for (id, fresh) in &mut snapshot.ports {
            let Some((known_id, seen)) = known.get_key_value(id) else { continue };
            id.clone_from(known_id);
            let fresh = Arc::make_mut(fresh);
            fresh.revision += 1;
            fresh.share_texts_of(&seen.ports[0]);
        }
        Event::Cloud { cloud: self.shared.cloud.clone(), fact: CloudFact::read(snapshot) }
    }

    /// All of it newly made; ids are shared within it, as the adapter shares them.
    fn snapshot(&self, grouped: &dyn Fn(usize) -> bool) -> CloudSnapshot {
        let shared = &self.shared;
        let instances: Vec<_> = (0..self.size).map(|number| Arc::new(instance(shared, number))).collect();
        CloudSnapshot {
            scope: Scope::Full,
            ports: instances
                .iter()
                .enumerate()
                .map(|(number, instance)| {
                    (instance.id.clone(), Arc::new(port(shared, number, grouped(number))))
                })
                .collect(),
            instances,
            groups: Some(vec![Arc::new(SecurityGroup {
                id: shared.group.clone(),
                name: Arc::from("k8s-nodes"),
                project: None,
                rules: Vec::new(),
            })]),
            begun: None,
            in_use: Arc::default(),
            routers: Vec::new(),
        }
    }

    /// All leases, renewed for the `round`-th time, each with a time of its own.
    pub(crate) fn leases(&mut self, round: u64) {
        let list = self.renewed(round);
        self.feed(Event::Cluster(ClusterFact::Leases(list)));
    }

    /// The kubelets of the first so many machines renew nothing from now on.
    pub(crate) const fn silence(&mut self, machines: usize) {
        self.silent = machines;
    }

    /// The list of leases after the `round`-th renewal.
    pub(crate) fn renewed(&mut self, round: u64) -> Leases {
        // As the adapter does: names are those of the list before, as long as they are the same.
        let mut next = self.leases.next();
        for (number, node) in (0_u64..).zip(&self.nodes) {
            let round = if number < self.silent as u64 { 0 } else { round };
            let renewal = Renewal::nth(round << 24 | number);
            next.take(|known| *known == node.name, || node.name.clone(), renewal);
        }
        self.leases = next.end();
        self.leases.clone()
    }

    /// One event; whatever is to be recorded is at once, calls are accepted, reads are answered as of a machine that is well.
    pub(crate) fn feed(&mut self, event: Event) {
        self.drive(event, &mut NoOnlooker);
    }

    /// The same, with an observer that may answer reads otherwise.
    pub(crate) fn drive(&mut self, event: Event, onlooker: &mut dyn Onlooker) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let looked = if let Event::Looked { look, .. } = &event { Some(*look) } else { None };
            let effects = self.state.step(self.now, event);
            if let Some(look) = looked {
                onlooker.took_in(look);
            }
            for effect in effects {
                let answer = onlooker.sees(&effect).or_else(|| self.answer(&effect));
                match effect {
                    Effect::Record { id, .. } => events.push_back(Event::Recorded(id)),
                    Effect::Call { intent, .. } => {
                        events
                            .push_back(Event::Done { intent, outcome: Outcome::Accepted { request: None } });
                    }
                    Effect::Look { id, .. } => {
                        events.extend(answer.map(|answer| Event::Looked { look: id, answer: Ok(answer) }));
                    }
                    _ => {}
                }
            }
        }
    }

    pub(crate) fn answer(&self, effect: &Effect) -> Option<Answer> {
        let Effect::Look { look, .. } = effect else { return None };
        match look {
            // Ids begin with the machine's number, in hexadecimal.
            Look::Ports(_, id) => {
                let number = usize::from_str_radix(id.as_str().get(..8)?, 16).ok()?;
                Some(Answer::Ports(vec![Arc::new(port(&self.shared, number, true))]))
            }
            Look::Actions(..) => Some(Answer::Actions(Vec::new())),
            Look::Console(..) | Look::LogEvidence(..) => Some(Answer::NoConsole(Arc::from("no console"))),
            _ => None,
        }
    }

    /// The node with another Ready condition.
    pub(crate) fn turned(&self, number: usize, ready: Ready) -> Arc<Node> {
        let mut node = (*self.nodes[number]).clone();
        node.ready = ready;
        Arc::new(node)
    }
}

fn instance_id(number: usize) -> InstanceId {
    InstanceId::new(format!("{number:08x}-7c1e-4b0e-9f5e-0f6f0a3b8c12"))
}

fn address(number: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + number as u32 + 1))
}

fn instance(shared: &Shared, number: usize) -> Instance {
    Instance {
        id: instance_id(number),
        name: format!("kks-bench-pool-{}-{number:05}", number % POOLS).as_str().into(),
        state: InstanceState::Active,
        task: None,
        fault: None,
        zone: Some(shared.zones[number % 2].clone()),
        image: Some(shared.image.clone()),
        marks: shared.marks[number % POOLS].clone(),
        addresses: Box::new([address(number)]),
        config_drive: true,
        locked: false,
        created: Some(Arc::from("2026-11-21T00:00:00Z")),
        hostname: None,
        hosting: None,
    }
}

fn port(shared: &Shared, number: usize, grouped: bool) -> Port {
    Port {
        id: format!("{number:08x}-aaaa-4b0e-9f5e-0f6f0a3b8c12").as_str().into(),
        network: shared.network.clone(),
        addresses: Box::new([address(number)]),
        groups: if grouped { Box::new([shared.group.clone()]) } else { Box::new([]) },
        pairs: Box::new([]),
        security: true,
        status: PortStatus::Active,
        revision: 4,
    }
}

fn node(shared: &Shared, number: usize) -> Node {
    let id = instance_id(number);
    let range = Ipv4Addr::from(0x6440_0000 + (number as u32) * 256);
    Node {
        name: format!("kks-bench-pool-{}-{number:05}", number % POOLS).as_str().into(),
        uid: format!("{number:08x}-bbbb-4b0e-9f5e-0f6f0a3b8c12").as_str().into(),
        provider: Provider::Instance(id.clone()),
        system_uuid: Some(id),
        boot_id: Some(Arc::from(format!("{number:08x}-cccc-4b0e-9f5e-0f6f0a3b8c12"))),
        kubelet: Some(shared.kubelet.clone()),
        addresses: Box::new([address(number)]),
        pod_ranges: ipnet::Ipv4Net::new(range, 24).map(ipnet::IpNet::V4).into_iter().collect(),
        ready: Ready::True,
        conditions: Box::new([]),
        zone: Some(shared.zones[number % 2].clone()),
        cordoned: false,
        intent: NodeIntent::default(),
        uninitialized: false,
        taints: Box::default(),
    }
}

/// Keeps the map type in one place for the table of sizes.
pub(crate) type BySize = BTreeMap<usize, f64>;
