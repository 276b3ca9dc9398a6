//! What a simulated world starts with: pools of machines that all answer, perhaps a neighbour, perhaps a router.
//!
//! A [`Layout`] is plain data with two readings: [`Layout::roster`] says what should be, for the engine, and
//! `World::new` builds what is. Both come from the same lines, so that a test cannot describe one fleet and watch another.

use std::collections::BTreeMap;
use std::sync::Arc;

use ipnet::IpNet;
use reveille_core::model::id::{CloudName, PoolName, RouterId, ZoneName};
use reveille_core::model::instance::Mark;
use reveille_core::model::roster::Access;
use reveille_core::model::roster::{
    Deadlines, GroupRef, Keep, Limits, Mode, Network, Ownership, Pool, Repair, Roster, Timing,
};
use reveille_core::model::time::{Span, Time};

use super::agent_plan::AgentPlan;
use super::vm::Trouble;

/// The cloud of every simulated roster: one project.
pub const CLOUD: &str = "os";
/// Another project, with pools of the same cluster, where a fleet has them.
pub const OTHER_CLOUD: &str = "os2";
/// The one router.
pub const ROUTER: &str = "8d1f6c52-7a40-4c1e-9b1d-0f3a5f0f7e21";
/// The id of the group that every pool's ports carry.
pub const GROUP: &str = "5f0c2b8e-3c0a-4a55-8d7f-6f1d2e9b7a10";
/// The same in the other project.
pub const OTHER_GROUP: &str = "7d2e4a90-5e5c-4c77-af90-8f3b40bd9c32";
/// Their name, by which rosters name them.
pub const GROUP_NAME: &str = "k8s-nodes";
/// The condition that says that a node's pods cannot be reached.
pub const ROUTE_BROKEN: &str = "RouteBroken";

/// The other one that rosters name unless they say otherwise.
const POD_NETWORK: &str = "PodNetworkUnreachable";

/// A fleet, before anything happens to it.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Everything random follows from it.
    pub seed: u64,
    /// When the world begins.
    pub start: Time,
    /// The pools.
    pub pools: Vec<PoolPlan>,
    /// Machines of another cluster in the same project, with names as like ours as names can be.
    pub neighbours: u32,
    /// Pod routes lie on a router, and ports allow pod ranges.
    pub routed: bool,
    /// The lease of a deleted Node goes on being renewed. Otherwise it is garbage-collected after its Node, as by
    /// clusters of today.
    pub lease_outlives_node: bool,
    /// Machines of the first pool that run from the beginning on, with this trouble and without a node: their state before the
    /// first process watched is not known.
    pub nodeless: Vec<Trouble>,
    /// Ports carry the project's default group as well.
    pub default_group: bool,
    /// Machines are called by their pool and a number, in the order in which they are made. Otherwise names are as random
    /// as an owner's tool makes them.
    pub plain_names: bool,
    /// With plain names: a name that is free is given again.
    pub names_reused: bool,
    /// Nodes are called as their instances, with this after it.
    pub node_suffix: String,
    /// Listings, leases and proofs of life that say nothing new are left out for as long as the roster's ages allow: for
    /// long hunts, where a healthy day should cost next to nothing. Whatever is news arrives when it otherwise would.
    pub news_only: bool,
    /// How long the cloud takes to delete an instance, at the least and at the most.
    pub deletes_within: (Span, Span),
    /// The world's own delays (builds, boots, calls on their way) are divided by this: one where machines are hardware, more
    /// where they are made up, as on the rig.
    pub pace: i64,
    /// The controller manager calls a node Unknown when nothing was heard of it for this long.
    pub node_grace: Span,
    /// How much may be done at once.
    pub limits: Limits,
    /// Ages and rhythms.
    pub timing: Timing,
    /// Service users and what they must hold.
    pub access: Access,
    /// Every instance of the project carries this tag, strangers included.
    pub common_tag: Option<String>,
    /// So long after an instance was made, parts of the cloud may not know it yet; none where they always agree.
    pub settles: Option<Span>,
    /// Agents on the machines, and what they find there.
    pub agents: AgentPlan,
    /// What this fleet has as real ones do.
    pub variety: Variety,
    /// The roster as its file was read, where the file says other than this layout.
    pub read: Option<Box<Roster>>,
}

/// What real fleets have and a simple world lacks; nothing of it unless a scenario or a seed says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variety {
    /// A boot takes so much longer until anything runs: bare metal tests its memory first.
    pub boots_slowly: Option<Span>,
    /// When the first readings of each process come.
    pub first_reads: FirstReads,
    /// The API server tells which cluster it is of, as each one does that lets us read its namespace `kube-system`.
    pub identity: bool,
    /// A kubelet that registers under the name of a Node that is there takes that object over, as every kubelet does.
    pub adopts: bool,
    /// Machines as of bare metal or k3s: a Node's UUID is its hardware's and its provider ID names no instance, and servers have
    /// names that are no host names, of which the cloud made the host names.
    pub own_hardware: bool,
    /// Nodes have their servers' UUIDs and name no instance, as with k3s on OpenStack.
    pub k3s: bool,
    /// So many machines of the first pool begin without any mark of the roster.
    pub unmarked: u32,
    /// So many VIPs, each with a route in the pod range through it: in turn an address with a port of its own (keepalived's or
    /// Octavia's, `device_owner` empty or `Octavia`), an allowed address pair of a machine's port, a router leg.
    pub vips: u32,
    /// A refusal for want of room on the router names no number: Neutron's quota engine says
    /// `Quota exceeded for resources: ['router_route'].` (neutron_lib `exceptions.OverQuota`).
    pub untold_route_limit: bool,
    /// Faults of listings and reads of the cloud are the other project's, where there is one. Otherwise they are the first's.
    pub troubled_other: bool,
    /// The API server does not keep what changes while a process of ours sleeps for over five minutes, so that it lists again
    /// when it wakes up: etcd is compacted every five minutes (kube-apiserver `--etcd-compaction-interval`). Otherwise the
    /// window of the watch cache is long enough for everything, as where little changes.
    pub lists_after_sleep: bool,
    /// How far the cloud's clock and the cluster's are ahead of ours, in milliseconds: what each writes is by its own.
    pub clocks_ms: [i64; 2],
}

/// When the sources of a process that starts answer for the first time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstReads {
    /// The cloud and the cluster within a second, and mostly in this order.
    #[default]
    Soon,
    /// The nodes within milliseconds and the cloud half a minute later, as Nova does where a project has many servers.
    CloudLate,
    /// Each within half a minute, in any order.
    AnyOrder,
}

/// One pool.
#[derive(Clone, Debug)]
pub struct PoolPlan {
    /// Its name.
    pub name: PoolName,
    /// The project that its machines are in.
    pub cloud: CloudName,
    /// How many machines its owner keeps.
    pub machines: u32,
    /// The zones that they are dealt out to, in turn.
    pub zones: Vec<ZoneName>,
    /// The least that may be left.
    pub min: u32,
    /// What may be done.
    pub repair: Repair,
    /// Deadlines of its machines.
    pub deadlines: Deadlines,
    /// Taints that its nodes register with, and that an add-on takes away.
    pub startup_taints: Vec<Arc<str>>,
    /// Failed machines are kept.
    pub keep: Option<Keep>,
    /// How its machines are hosted, where the cloud tells of that.
    pub hosting: Option<PoolHosting>,
}

/// How the machines of a pool are hosted, as a cloud like EC2 tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolHosting {
    /// A group of the cloud keeps them: it is the pool's owner.
    pub group: bool,
    /// The roster lets them be replaced through that group.
    pub through: bool,
    /// They are sold until the provider wants them back.
    pub spot: bool,
    /// They have disks whose data is lost when they stop.
    pub loses_disks: bool,
}

/// Everything switched on.
pub const ACT: Repair = Repair {
    network: Mode::Act,
    rejoin: Mode::Act,
    reboot: Mode::Act,
    replace: Mode::Act,
    cleanup: Mode::Act,
};

impl Layout {
    /// One pool of so many machines in three zones, acting, with default limits.
    pub fn fleet(seed: u64, machines: u32) -> Self {
        Self {
            seed,
            // 2026-03-02T08:00:00Z: any moment would do, and a real one reads better in logs.
            start: Time::from_ms(1_772_438_400_000),
            pools: vec![PoolPlan::new("workers", machines)],
            neighbours: 0,
            routed: false,
            lease_outlives_node: false,
            nodeless: Vec::new(),
            default_group: false,
            plain_names: false,
            names_reused: false,
            node_suffix: String::new(),
            news_only: false,
            deletes_within: (Span::from_s(5), Span::from_s(20)),
            pace: 1,
            node_grace: Span::from_s(40),
            limits: Limits::default(),
            timing: Timing::default(),
            agents: AgentPlan::default(),
            access: Access::default(),
            common_tag: None,
            settles: None,
            variety: Variety::default(),
            read: None,
        }
    }

    /// The same with pod routes on a router.
    #[must_use]
    pub fn routed(mut self) -> Self {
        self.routed = true;
        self
    }

    /// The same with these limits.
    #[must_use]
    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// The same with the first pool changed.
    #[must_use]
    pub fn pool(mut self, change: impl FnOnce(&mut PoolPlan)) -> Self {
        if let Some(pool) = self.pools.first_mut() {
            change(pool);
        }
        self
    }

    /// The cloud tells how it hosts machines of this pool.
    pub(crate) fn hosting_of(&self, pool: &PoolName) -> Option<PoolHosting> {
        self.pools.iter().find(|plan| plan.name == *pool)?.hosting
    }

    /// The projects that its machines are in.
    pub(crate) fn clouds(&self) -> Vec<CloudName> {
        let other = self.pools.iter().find(|plan| plan.cloud.as_str() == OTHER_CLOUD);
        std::iter::once(CLOUD.into()).chain(other.map(|plan| plan.cloud.clone())).collect()
    }

    /// The project that a pool's machines are in.
    pub(crate) fn cloud_of(&self, pool: &PoolName) -> CloudName {
        let plan = self.pools.iter().find(|plan| plan.name == *pool);
        plan.map_or_else(|| CLOUD.into(), |plan| plan.cloud.clone())
    }

    /// The project that faults of listings and reads are about.
    pub(crate) fn is_troubled(&self, cloud: &CloudName) -> bool {
        (cloud.as_str() == OTHER_CLOUD) == self.variety.troubled_other
    }

    /// The cloud tells how it hosts machines: all that there are or were, in each of its listings.
    pub(crate) fn is_told_of_hosting(&self) -> bool {
        self.pools.iter().any(|plan| plan.hosting.is_some())
    }

    /// Everything as quick as a roster may have it, and the world as quick as one whose machines are made up: ages and
    /// rhythms are the shortest that are allowed, deadlines as short as services on a busy machine keep.
    pub fn quicken(&mut self) {
        self.pace = 4;
        self.node_grace = Span::from_s(20);
        self.deletes_within = (Span::from_s(1), Span::from_s(3));
        self.timing = Timing {
            cloud_period: Span::from_s(5),
            cloud_full_period: Span::from_s(20),
            cloud_stale_after: Span::from_s(40),
            cluster_stale_after: Span::from_s(15),
            lease_silent_after: Span::from_s(20),
            backoff_min: Span::from_s(2),
            backoff_max: Span::from_s(20),
            verify_within: Span::from_s(10),
            settle: Span::from_s(5),
            rollout_quiet: Span::from_s(1),
            ..self.timing
        };
        for pool in &mut self.pools {
            pool.deadlines = Deadlines {
                join_within: Some(Span::from_s(45)),
                build_within: Span::from_min(1),
                delete_within: Span::from_s(30),
                not_ready_within: Span::from_s(20),
                vanished_within: Span::from_s(5),
                dwell: Span::from_s(5),
                in_service_within: Span::from_s(30),
                ..pool.deadlines
            };
        }
    }

    /// What should be: the roster of this fleet.
    pub fn roster(&self) -> Roster {
        if let Some(read) = &self.read {
            return (**read).clone();
        }
        let pools =
            self.pools.iter().map(|plan| (plan.name.clone(), plan.pool())).collect::<BTreeMap<_, _>>();
        Roster {
            name: "prod".into(),
            settles: self
                .settles
                .into_iter()
                .flat_map(|span| self.clouds().into_iter().map(move |cloud| (cloud, span)))
                .collect(),
            clouds: self.clouds(),
            network: Network {
                pod_ranges: vec![pod_net()],
                router: self.routed.then(|| (CloudName::from(CLOUD), RouterId::from(ROUTER))),
                address_pairs: self.routed,
                unreachable_conditions: vec![ROUTE_BROKEN.into(), POD_NETWORK.into()],
            },
            pools,
            access: self.access.clone(),
            limits: self.limits,
            timing: self.timing,
        }
    }
}

impl PoolPlan {
    /// An acting pool with default deadlines, in three zones.
    pub fn new(name: &str, machines: u32) -> Self {
        Self {
            name: name.into(),
            cloud: CLOUD.into(),
            machines,
            zones: ["nova-a", "nova-b", "nova-c"].map(ZoneName::from).to_vec(),
            min: 1,
            repair: ACT,
            deadlines: Deadlines::default(),
            startup_taints: Vec::new(),
            keep: None,
            hosting: None,
        }
    }

    fn pool(&self) -> Pool {
        Pool {
            name: self.name.clone(),
            cloud: self.cloud.clone(),
            owned: Ownership { cluster: cluster_mark(), pool: Some(pool_mark(&self.name)) },
            groups: vec![GroupRef::Name(GROUP_NAME.into())],
            min: self.min,
            deadlines: self.deadlines,
            repair: self.repair,
            paused: false,
            startup_taints: self.startup_taints.clone(),
            keep: self.keep,
            through_group: self.hosting.is_some_and(|hosting| hosting.through),
        }
    }
}

/// The pools' group of a project.
pub(crate) fn group_in(cloud: &CloudName) -> &'static str {
    if cloud.as_str() == OTHER_CLOUD { OTHER_GROUP } else { GROUP }
}

/// The tag that says which cluster.
pub(crate) fn cluster_mark() -> Mark {
    Mark::Tag("k8s-cluster=prod".into())
}

/// The tag of the neighbour, whose names look like ours.
pub(crate) fn neighbour_mark() -> Mark {
    Mark::Tag("k8s-cluster=prod-workers".into())
}

/// The tag that says which pool.
pub(crate) fn pool_mark(pool: &PoolName) -> Mark {
    Mark::Tag(format!("k8s-pool={pool}").into())
}

/// The cluster's pod range.
pub(crate) fn pod_net() -> IpNet {
    IpNet::from(ipnet::Ipv4Net::new_assert(std::net::Ipv4Addr::new(100, 64, 0, 0), 10))
}
