//! A fleet of any size as events: four pools, two zones each, every machine with a port, a node and a lease.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use reveille_core::effect::{Effect, Outcome};
use reveille_core::engine::{Start, State};
use reveille_core::event::{CloudFact, CloudSnapshot, ClusterFact, Event, Scope};
use reveille_core::model::id::{
    CloudName, Fence, GroupId, ImageId, InstanceId, NetworkId, PoolName, ZoneName,
};
use reveille_core::model::instance::{Instance, InstanceState, Mark, Port, PortStatus};
use reveille_core::model::network::SecurityGroup;
use reveille_core::model::node::{LeaseFact, Node, NodeIntent, Provider, Ready};
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
    shared: Shared,
    size: usize,
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

pub(crate) fn roster(cloud: &CloudName) -> Roster {
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
    };
    Roster {
        name: "bench".into(),
        clouds: vec![cloud.clone()],
        network: Network::default(),
        pools: (0..POOLS).map(|number| (pool_name(number), pool(number))).collect(),
        limits: Limits::default(),
        timing: Timing::default(),
    }
}

impl Fleet {
    /// A fleet of which everybody answers.
    pub(crate) fn new(size: usize) -> Self {
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
        let state = State::new(roster(&shared.cloud), start);
        let nodes = (0..size).map(|number| Arc::new(node(&shared, number))).collect();
        let mut fleet = Self { state, now: Time::from_ms(1_000_000_000), nodes, shared, size };
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
        let snapshot = Arc::new(self.snapshot(grouped));
        let cloud = self.shared.cloud.clone();
        self.feed(Event::Cloud { cloud, fact: CloudFact::Snapshot(snapshot) });
    }

    pub(crate) fn snapshot(&self, grouped: &dyn Fn(usize) -> bool) -> CloudSnapshot {
        let shared = &self.shared;
        CloudSnapshot {
            instances: (0..self.size).map(|number| Arc::new(instance(shared, number))).collect(),
            scope: Scope::Full,
            ports: (0..self.size)
                .map(|number| (instance_id(number), Arc::new(port(shared, number, grouped(number)))))
                .collect(),
            groups: vec![Arc::new(SecurityGroup {
                id: shared.group.clone(),
                name: Arc::from("k8s-nodes"),
                project: None,
                rules: Vec::new(),
            })],
            routers: Vec::new(),
        }
    }

    /// All leases, renewed for the `round`-th time.
    pub(crate) fn leases(&mut self, round: u64) {
        let renewed: Arc<str> = Arc::from(format!("2026-11-21T00:00:{round:06}Z"));
        let list =
            self.nodes.iter().map(|node| LeaseFact { node: node.name.clone(), renewed: renewed.clone() });
        let list = list.collect();
        self.feed(Event::Cluster(ClusterFact::Leases(list)));
    }

    /// One event; whatever is to be recorded is at once, calls are accepted, reads are left unanswered.
    pub(crate) fn feed(&mut self, event: Event) {
        let mut effects = self.state.step(self.now, event);
        while let Some(effect) = effects.pop() {
            match effect {
                Effect::Record { id, .. } => effects.extend(self.state.step(self.now, Event::Recorded(id))),
                Effect::Call { intent, .. } => {
                    let outcome = Outcome::Accepted { request: None };
                    effects.extend(self.state.step(self.now, Event::Done { intent, outcome }));
                }
                _ => {}
            }
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
    let range = Ipv4Addr::from(0x6440_0000 + (number as u32) * 256);
    Node {
        name: format!("kks-bench-pool-{}-{number:05}", number % POOLS).as_str().into(),
        uid: format!("{number:08x}-bbbb-4b0e-9f5e-0f6f0a3b8c12").as_str().into(),
        provider: Provider::Instance(instance_id(number)),
        system_uuid: Some(instance_id(number)),
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
    }
}

/// Keeps the map type in one place for the table of sizes.
pub(crate) type BySize = BTreeMap<usize, f64>;
