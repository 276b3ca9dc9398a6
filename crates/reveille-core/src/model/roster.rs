//! The roster: which machines are expected, where they live, and what Reveille may do when they are not Ready.
//!
//! This is the *checked* form: every number is possible, every name resolves, every default is filled in. `reveille-wire`
//! reads the file that people write, refuses what is wrong in it, with line and field, and hands this form on. Nothing here
//! can be invalid, so nothing here is checked again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ipnet::IpNet;

use serde::{Deserialize, Serialize};

use super::access::{RoleRef, UserRef};
use super::id::{CloudName, GroupId, PoolName, RosterName, RouterId};
use super::instance::{Instance, Mark};
use super::time::Span;
use crate::safeguard::{Safeguard, stands};

/// A checked roster: one cluster, its clouds and its pools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Roster {
    /// Its name.
    pub name: RosterName,
    /// The clouds that its pools live in.
    pub clouds: Vec<CloudName>,
    /// Clouds whose answers take a while to agree: for so long after an instance was first seen, "no such id" and a list
    /// without it prove nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settles: BTreeMap<CloudName, Span>,
    /// The pod network.
    pub network: Network,
    /// Who must be able to do what in the projects.
    pub access: Access,
    /// The pools by name.
    pub pools: BTreeMap<PoolName, Pool>,
    /// How much may be done at once.
    pub limits: Limits,
    /// How old a source may be, and how long things may take.
    pub timing: Timing,
}

/// What the roster says of the pod network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Network {
    /// The cluster's pod ranges, both families. Empty where an overlay needs no rules.
    pub pod_ranges: Vec<IpNet>,
    /// The router that carries pod routes and the cloud it is in; none where an overlay does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub router: Option<(CloudName, RouterId)>,
    /// True when ports must allow their node's pod range as an address pair.
    pub address_pairs: bool,
    /// Node conditions whose `True` says that a node's pods cannot be reached.
    pub unreachable_conditions: Vec<Arc<str>>,
}

impl Network {
    /// The range is one of the cluster's pod ranges, or within one.
    pub fn holds(&self, range: &IpNet) -> bool {
        self.pod_ranges.iter().any(|pods| pods.contains(range))
    }
}

/// One pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pool {
    /// Its name.
    pub name: PoolName,
    /// The cloud it lives in.
    pub cloud: CloudName,
    /// What proves, on the object itself, that an instance is of this cluster and of this pool.
    pub owned: Ownership,
    /// Groups that every port of its machines must carry.
    pub groups: Vec<GroupRef>,
    /// Never fewer live instances than this through our own acts.
    pub min: u32,
    /// Deadlines of its machines.
    pub deadlines: Deadlines,
    /// What may be done.
    pub repair: Repair,
    /// The roster's file says: hands off.
    pub paused: bool,
    /// Taints that a node carries until what it needs to serve is there. While one is on it, it is not in service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub startup_taints: Vec<Arc<str>>,
    /// Machines that failed are kept for a while, so that a person can look at them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<Keep>,
    /// Machines that a group of their cloud keeps may be replaced, through that group. False: they are left to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub through_group: bool,
}

/// How failed machines of a pool are kept before they are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Keep {
    /// For how long, from when they would have been deleted.
    pub within: Span,
    /// How many machines are kept at the same time; the controller deletes further failed machines as usual.
    pub at_most: u32,
    /// True: every machine that failed. False: only those that a person marks.
    pub failed: bool,
}

/// Proof of ownership. Both marks must be on the object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ownership {
    /// Says which cluster.
    pub cluster: Mark,
    /// Says which pool. `None` only when the roster has one pool with this cluster mark.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<Mark>,
}

impl Ownership {
    /// The cluster's mark alone.
    pub const fn of_cluster(cluster: Mark) -> Self {
        Self { cluster, pool: None }
    }

    /// All that an instance must carry.
    pub fn marks(&self) -> impl Iterator<Item = &Mark> {
        std::iter::once(&self.cluster).chain(&self.pool)
    }

    /// The first of them that is not among the marks which the object carries now; `None`: the object is proved to be the
    /// pool's. Every performer asks this of a read that it makes directly before an act on an instance: Nova does not count
    /// a tag as a change of the server, so the engine may learn of a tag that is gone only from the next full listing.
    pub fn lacking(&self, marks: &BTreeSet<Mark>) -> Option<&Mark> {
        self.marks().find(|mark| !marks.contains(mark)).filter(|_| stands(Safeguard::OwnedAtTheAct))
    }
}

/// A security group by name or id, as the roster gives it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum GroupRef {
    /// By its id.
    Id(GroupId),
    /// By its name, which must be unique in the project.
    Name(Arc<str>),
}

/// How long each part of a machine's life may take, on our own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Deadlines {
    /// From first seen running to Ready. `None`: never act on missing nodes, still report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub join_within: Option<Span>,
    /// From first seen building to running.
    pub build_within: Span,
    /// From first seen leaving to gone.
    pub delete_within: Span,
    /// From Ready lost to a step.
    pub not_ready_within: Span,
    /// From node lost to a step.
    pub vanished_within: Span,
    /// How long it must have been well before an incident closes.
    pub dwell: Span,
    /// From Ready, with a startup taint, to telling about it.
    pub in_service_within: Span,
    /// However long it has been well: a person must confirm it before an incident closes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirm: bool,
}

impl Deadlines {
    /// How long a machine that boots may take until it has been well for its dwell. Where a join may take for ever, a reboot
    /// may not.
    pub fn boot_patience(&self) -> Span {
        self.join_within.unwrap_or(Span::from_min(15)) + self.dwell
    }
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            join_within: Some(Span::from_min(15)),
            build_within: Span::from_min(10),
            delete_within: Span::from_min(10),
            not_ready_within: Span::from_min(5),
            vanished_within: Span::from_min(2),
            dwell: Span::from_s(60),
            in_service_within: Span::from_min(10),
            confirm: false,
        }
    }
}

/// What may be done, by class of remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Repair {
    /// Groups, rules, routes, address pairs: nothing is lost by it.
    pub network: Mode,
    /// Making a running machine join again (kubelet restart through its agent).
    pub rejoin: Mode,
    /// Rebooting or starting the instance.
    pub reboot: Mode,
    /// Deleting the instance, so that the controller that keeps the pool at its size makes another.
    pub replace: Mode,
    /// Deleting the Node object of an instance that is proved gone.
    pub cleanup: Mode,
}

impl Default for Repair {
    /// A roster starts by looking.
    fn default() -> Self {
        Self {
            network: Mode::Propose,
            rejoin: Mode::Propose,
            reboot: Mode::Propose,
            replace: Mode::Off,
            cleanup: Mode::Off,
        }
    }
}

/// Whether a class of remedy is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Not even proposed.
    Off,
    /// Told, not done.
    Propose,
    /// Done.
    Act,
}

/// How much may be done at once. Counts only remedies that can hurt (reboot, replace, cleanup) unless said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Limits {
    /// Machines under repair at the same time, over the whole roster.
    pub at_once: u32,
    /// Repairs begun within any hour, over the whole roster. Half of them at most are cleanups.
    pub per_hour: u32,
    /// Above this share of absent or faulty machines (of a pool, or of the roster) nothing is done to any. Percent, 1–100.
    pub freeze_above_pct: u8,
    /// Network repairs under way at the same time.
    pub network_at_once: u32,
    /// After this many errored instances of one pool with the same fault, deleting them stops.
    pub same_fault_stops_at: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { at_once: 1, per_hour: 4, freeze_above_pct: 30, network_at_once: 8, same_fault_stops_at: 3 }
    }
}

impl Limits {
    /// How many of `total` may have a problem before every repair stops: the share, rounded up, so that one of three is
    /// one.
    pub const fn tolerated(&self, total: u32) -> u32 {
        (total as u64 * self.freeze_above_pct as u64).div_ceil(100) as u32
    }

    /// How many of the repairs of an hour may be deletions of Nodes that are left over: half, and one at least.
    pub const fn cleanups_per_hour(&self) -> u32 {
        if self.per_hour < 2 { 1 } else { self.per_hour / 2 }
    }

    /// More of `total` have a problem than the roster tolerates.
    pub const fn are_too_many(&self, unhealthy: u32, total: u32) -> bool {
        unhealthy > self.tolerated(total)
    }
}

/// Ages and rhythms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Timing {
    /// How often a cloud is listed.
    pub cloud_period: Span,
    /// How often every n-th listing must be a full one: the longest time between full listings.
    pub cloud_full_period: Span,
    /// A cloud listing older than this proves nothing.
    pub cloud_stale_after: Span,
    /// Silence of the API server longer than this proves nothing.
    pub cluster_stale_after: Span,
    /// A node lease not renewed for this long (seen by us) is silent.
    pub lease_silent_after: Span,
    /// An agent not heard for this long (by us) is silent. Its longest pause between two tries to reach us is shorter.
    pub agent_silent_after: Span,
    /// A gap between two steps longer than this means that the process slept: every timer starts from zero.
    pub pause_jump: Span,
    /// The longest share of a listing that may go missing at once before the listing is doubted. Percent.
    pub shrink_pct: u8,
    /// First wait after a repair that did not hold; doubles up to `backoff_max`.
    pub backoff_min: Span,
    /// Longest wait between two tries.
    pub backoff_max: Span,
    /// Tries of one repair step before the next repair step or a person.
    pub tries: u32,
    /// How long an accepted call may take to show before it counts as "did not hold".
    pub verify_within: Span,
    /// How long we wait, after sight returns, before anything that can hurt.
    pub settle: Span,
    /// A pool whose images or kubelet versions changed less than this ago is rolling.
    pub rollout_quiet: Span,
}

impl Timing {
    /// So many of `known` objects may be missing from one listing before the listing itself is doubted.
    pub const fn may_lack(&self, known: usize) -> usize {
        let share = known * self.shrink_pct as usize / 100;
        if share > 1 { share } else { 1 }
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            cloud_period: Span::from_s(30),
            cloud_full_period: Span::from_min(10),
            cloud_stale_after: Span::from_s(120),
            cluster_stale_after: Span::from_s(30),
            lease_silent_after: Span::from_s(40),
            agent_silent_after: Span::from_s(90),
            pause_jump: Span::from_s(60),
            shrink_pct: 30,
            backoff_min: Span::from_s(60),
            backoff_max: Span::from_min(30),
            tries: 4,
            verify_within: Span::from_s(60),
            settle: Span::from_s(60),
            rollout_quiet: Span::from_min(30),
        }
    }
}

/// Whose an instance is, as the marks on the object prove it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It carries none of the roster's cluster marks: not ours, never touched.
    Foreign,
    /// It carries a cluster mark and no pool's: a stray.
    Unclaimed,
    /// Exactly one pool claims it.
    Pool(PoolName),
    /// Several pools claim it: reported, never touched.
    Contested(Vec<PoolName>),
}

impl Roster {
    /// Reads an instance's marks.
    pub fn claim(&self, cloud: &CloudName, instance: &Instance) -> Claim {
        let here = || self.pools.values().filter(|pool| pool.cloud == *cloud);
        let marked = |mark: &Mark| instance.marks.contains(mark);
        if !stands(Safeguard::Ownership) {
            return here().next().map_or(Claim::Foreign, |pool| Claim::Pool(pool.name.clone()));
        }
        if !here().any(|pool| marked(&pool.owned.cluster)) {
            return Claim::Foreign;
        }
        let mut claimants: Vec<PoolName> = here()
            .filter(|pool| marked(&pool.owned.cluster) && pool.owned.pool.as_ref().is_none_or(marked))
            .map(|pool| pool.name.clone())
            .collect();
        match claimants.len() {
            0 => Claim::Unclaimed,
            1 => Claim::Pool(claimants.remove(0)),
            _ => Claim::Contested(claimants),
        }
    }
}

/// What the roster says of service users.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Access {
    /// Each user of each cloud at most once.
    pub users: Vec<ServiceUser>,
    /// Whether a missing role is assigned.
    pub repair: Mode,
    /// How often the controller reads each user's roles while none is missing.
    pub check_every: Span,
}

impl Default for Access {
    /// The default names no user, proposes and does not act, and reads seldom: roles change a few times a year, and to read
    /// them is work for Keystone.
    fn default() -> Self {
        Self { users: Vec::new(), repair: Mode::Propose, check_every: Span::from_min(60) }
    }
}

impl Access {
    /// The service user of that cloud, when the roster names it.
    pub fn user(&self, cloud: &CloudName, user: &UserRef) -> Option<&ServiceUser> {
        self.users.iter().find(|known| known.cloud == *cloud && *known.user == *user)
    }
}

/// A user and the roles that it must hold on a cloud's project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServiceUser {
    /// On the project of this cloud.
    pub cloud: CloudName,
    /// Who.
    pub user: Arc<UserRef>,
    /// What it must hold there. Never empty, each once.
    pub roles: Vec<RoleRef>,
}
