//! `spec.pools`: the machines that should be Ready nodes, and which repairs are allowed when they are not.
//!
//! The reader checks every pool alone, then all together: names, marks that conflict with each other, clouds that no pool
//! uses. It compares deadlines with the polling intervals, because a deadline shorter than one interval would pass before
//! the controller read the cloud once. A missing field takes the core's default; a roster starts by proposing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reveille_core::model::id::{CloudName, GroupId, PoolName};
use reveille_core::model::roster::{Deadlines, GroupRef, Keep, Mode, Pool, Repair, Timing};
use reveille_core::model::time::Span;

use super::CloudRef;
use super::clouds::alone::is_alone;
use super::clouds::{Clouds, KINDS};
use super::complaint::{Complaints, Spot, quote};
use super::marks::{self, Claimant, Owned};
use super::network::cloud_of;
use super::section::{Field, Section};
use super::shape::{DEADLINES, GROUP, JOIN, KEEP, POOL, REPAIR};
use super::tree::Kind;
use crate::duration;

/// A pool keeps its last machine unless its roster says otherwise.
pub const MIN_UNLESS_WRITTEN: u32 = 1;

/// Reads `spec.pools`: each with the place of its marks.
pub(super) fn pools(
    field: Option<Field<'_>>,
    clouds: &Clouds,
    timing: &Timing,
    complaints: &mut Complaints,
) -> BTreeMap<PoolName, (Pool, Spot)> {
    let Some(field) = field else { return BTreeMap::new() };
    let items = field.items("pools", complaints);
    if items.is_empty() && matches!(field.tree.kind, Kind::List(_)) {
        let wrong = "no pool is listed, so no machine is expected";
        complaints.add(&field.spot, wrong, "list at least one pool");
    }
    let mut read: Vec<Draft> = Vec::new();
    let (mut used, mut astray) = (BTreeSet::new(), false);
    for item in items {
        let Some(section) = Section::open(&item, POOL, complaints) else { continue };
        let cloud = cloud(&section, clouds, complaints);
        astray |= cloud.is_none();
        used.extend(cloud.clone());
        let at = cloud.as_ref().and_then(|name| clouds.get(name)).map(|(at, _)| at);
        let Some(draft) = pool(&section, cloud, at, timing, complaints) else { continue };
        if let Some(first) = read.iter().find(|known| known.pool.name == draft.pool.name) {
            let wrong =
                format!("a pool named \"{}\" is on line {} already", draft.pool.name, first.named.at.line);
            complaints.add(&draft.named, wrong, "give each pool a name of its own");
            continue;
        }
        read.push(draft);
    }
    for (name, (_, spot)) in clouds.iter().filter(|_| !astray) {
        if !used.contains(name) {
            let wrong = format!("no pool is in cloud \"{name}\"");
            complaints.add(spot, wrong, "take the cloud out, or name it in a pool");
        }
    }
    let claimants: Vec<Claimant<'_>> = read.iter().map(Draft::claimant).collect();
    marks::contests(&claimants, complaints);
    read.into_iter().map(|draft| (draft.pool.name.clone(), (draft.pool, draft.owned.spot))).collect()
}

/// The cloud that the pool is in.
fn cloud(section: &Section<'_>, clouds: &Clouds, complaints: &mut Complaints) -> Option<CloudName> {
    if !is_alone(clouds) {
        let cloud = section.require("cloud", "name the cloud that the pool is in", complaints);
        return cloud.and_then(|field| cloud_of(&field, clouds, complaints));
    }
    for (name, wrong) in OF_CLOUDS {
        if let Some(field) = section.take(name) {
            let instead =
                if name == "owned" { "write selector: {matchLabels: {key: value}}" } else { LIST_CLOUDS };
            complaints.add(&field.spot, wrong, instead);
        }
    }
    clouds.keys().next().cloned()
}

/// Fields of a pool that need a cloud, and why.
const OF_CLOUDS: [(&str, &str); 4] = [
    ("cloud", "the roster lists no cloud"),
    ("owned", "the roster lists no cloud, and its machines are told by their labels"),
    ("securityGroups", "the roster lists no cloud that could have security groups"),
    ("throughGroup", "the roster lists no cloud that could have groups of machines"),
];
const LIST_CLOUDS: &str = "take the line out, or list the cloud under spec.clouds";

struct Draft {
    pool: Pool,
    named: Spot,
    owned: Owned,
}

impl Draft {
    fn claimant(&self) -> Claimant<'_> {
        let Repair { reboot, replace, cleanup, .. } = self.pool.repair;
        Claimant {
            pool: self.pool.name.as_str(),
            cloud: self.pool.cloud.as_str(),
            acts: [reboot, replace, cleanup].contains(&Mode::Act),
            owned: &self.owned,
        }
    }
}

fn pool(
    section: &Section<'_>,
    cloud: Option<CloudName>,
    at: Option<&CloudRef>,
    timing: &Timing,
    complaints: &mut Complaints,
) -> Option<Draft> {
    let named = section.require("name", "name the pool", complaints);
    let name = named.as_ref().and_then(|field| field.name("the pool's name", complaints));
    let owned = owned(section, at, complaints);
    let groups = section.take("securityGroups").map_or_else(Vec::new, |field| groups(&field, complaints));
    let min = section.take("min").and_then(|field| field.count((0, 100_000), "", complaints));
    let deadlines = deadlines(section, timing, complaints);
    let repair = repair(section, at, complaints);
    let startup_taints = section.take("startupTaints").map(|field| taints(&field, complaints));
    let keep = section.take("keep").and_then(|field| keep(&field, complaints));
    let paused = section.take("paused").and_then(|field| field.switch(complaints));
    let through_group = section.take("throughGroup").and_then(|field| field.switch(complaints));
    let (named, owned) = (named?.spot, owned?);
    let pool = Pool {
        name: PoolName::from(name?),
        cloud: cloud?,
        owned: owned.marks.clone(),
        groups,
        min: min.unwrap_or(MIN_UNLESS_WRITTEN),
        deadlines,
        repair,
        paused: paused.unwrap_or(false),
        startup_taints: startup_taints.unwrap_or_default(),
        keep,
        through_group: through_group.unwrap_or(false),
    };
    Some(Draft { pool, named, owned })
}

/// What proves on a machine that it is the pool's.
fn owned(section: &Section<'_>, at: Option<&CloudRef>, complaints: &mut Complaints) -> Option<Owned> {
    if at.is_some_and(CloudRef::is_cluster) {
        return marks::selected(section, complaints);
    }
    if let Some(field) = section.take("selector") {
        let instead = "write owned, with the marks on the instances; labels prove nothing there";
        complaints.add(&field.spot, "a pool in a cloud is told by marks of its instances", instead);
    }
    let owned = section.require(
        "owned",
        "say which mark on the instances proves that they are yours: owned: {tag: \"key=value\"}",
        complaints,
    );
    marks::owned(&owned?, at, complaints)
}

fn groups(field: &Field<'_>, complaints: &mut Complaints) -> Vec<GroupRef> {
    let mut groups: Vec<GroupRef> = Vec::new();
    for item in field.items("security groups", complaints) {
        let Some(group) = group(&item, complaints) else { continue };
        if groups.contains(&group) {
            complaints.add(&item.spot, "this group is listed twice", "keep one");
            continue;
        }
        groups.push(group);
    }
    groups
}

/// A group by name or id. Plain text in the form of an id (a UUID; `sg-…` of EC2) is an id; `{name: …}` makes it a name.
fn group(item: &Field<'_>, complaints: &mut Complaints) -> Option<GroupRef> {
    const WHAT: &str = "a security group's name or id";
    if !matches!(item.tree.kind, Kind::Map(_)) {
        let text = item.text(WHAT, complaints)?;
        return Some(if is_group_id(text) {
            GroupRef::Id(GroupId::from(text.to_ascii_lowercase().as_str()))
        } else {
            GroupRef::Name(Arc::from(text))
        });
    }
    let section = Section::open(item, GROUP, complaints)?;
    match (section.take("name"), section.take("id")) {
        (Some(field), None) => Some(GroupRef::Name(Arc::from(field.text(WHAT, complaints)?))),
        (None, Some(field)) => Some(GroupRef::Id(GroupId::from(field.text(WHAT, complaints)?))),
        _ => {
            complaints.add(
                &section.spot,
                "exactly one of name and id is needed",
                "write {name: …} or {id: …}",
            );
            None
        }
    }
}

/// True for text that the reader takes for a group's id without further information.
pub(super) fn is_group_id(text: &str) -> bool {
    KINDS.iter().any(|kind| (kind.is_group_id)(text))
}

fn deadlines(pool: &Section<'_>, timing: &Timing, complaints: &mut Complaints) -> Deadlines {
    const SLOWER: &str = "the cloud is not looked at more often (spec.timing.cloudPeriod)";
    let mut deadlines = Deadlines::default();
    let look = timing.cloud_period;
    let join = pool.take("join").and_then(|field| Section::open(&field, JOIN, complaints));
    if let Some(field) = join.and_then(|section| section.take("within")) {
        deadlines.join_within = match &field.tree.kind {
            Kind::Text(text) if text == "never" => None,
            Kind::Text(text) if duration::parse(text) == Ok(Span::ZERO) => None,
            _ => field.span(look, SLOWER, complaints).or(deadlines.join_within),
        };
    }
    let Some(section) = pool.take("deadlines").and_then(|field| Section::open(&field, DEADLINES, complaints))
    else {
        return deadlines;
    };
    let fields: [(&'static str, &mut Span, Span, &str); 6] = [
        ("build", &mut deadlines.build_within, look, SLOWER),
        ("delete", &mut deadlines.delete_within, look, SLOWER),
        (
            "notReady",
            &mut deadlines.not_ready_within,
            timing.lease_silent_after,
            "a node may lose Ready as long as its lease may be silent (spec.timing.leaseSilentAfter)",
        ),
        ("vanished", &mut deadlines.vanished_within, look, SLOWER),
        ("inService", &mut deadlines.in_service_within, look, SLOWER),
        (
            "dwell",
            &mut deadlines.dwell,
            Span::from_s(1),
            "an incident that closes at the first good sign opens again at the next bad one",
        ),
    ];
    for (name, value, min, why) in fields {
        let read = section.take(name).and_then(|field| field.span(min, why, complaints));
        *value = read.unwrap_or(*value);
    }
    let confirm = section.take("confirm").and_then(|field| field.switch(complaints));
    deadlines.confirm = confirm.unwrap_or(deadlines.confirm);
    deadlines
}

/// Keys of taints; the value or effect of a taint does not tell what it waits for.
fn taints(field: &Field<'_>, complaints: &mut Complaints) -> Vec<Arc<str>> {
    let mut taints: Vec<Arc<str>> = Vec::new();
    for item in field.items("taints", complaints) {
        let Some(key) = item.text("a taint's key such as node.cilium.io/agent-not-ready", complaints) else {
            continue;
        };
        let shaped = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
        if !key.chars().all(shaped) || key.matches('/').count() > 1 {
            let wrong = format!("{} cannot be a taint's key", quote(key));
            complaints.add(&item.spot, wrong, "write the key alone, without value and effect");
        } else if ALWAYS_THERE.contains(&key) {
            let wrong = format!("{} comes and goes with what a node is, and not with its start", quote(key));
            complaints.add(&item.spot, wrong, "name the taint that its add-on takes away");
        } else if taints.iter().any(|known| &**known == key) {
            complaints.add(&item.spot, "this taint is listed twice", "keep one");
        } else {
            taints.push(Arc::from(key));
        }
    }
    taints
}

/// Taints that the node controller puts on nodes that are not Ready, cordoned or under pressure.
const ALWAYS_THERE: [&str; 7] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/out-of-service",
];

/// How long failed machines are kept for an inspection.
fn keep(field: &Field<'_>, complaints: &mut Complaints) -> Option<Keep> {
    const HASTY: &str = "a machine cannot be looked at in less";
    const NONE: &str = "write 1 or more; to keep none take keep out";
    let section = Section::open(field, KEEP, complaints)?;
    let within = section.require("for", "say for how long, as in {for: 24h}", complaints);
    let within = within.and_then(|field| field.span(Span::from_min(1), HASTY, complaints));
    let at_most = section.take("atMost").map(|field| field.count((1, 1_000), NONE, complaints));
    let failed = section.take("when").map(|field| match field.text("marked or failed", complaints) {
        Some("failed") => Some(true),
        Some("marked") => Some(false),
        Some(other) => {
            let wrong = format!("{} is no choice", quote(other));
            complaints.add(&field.spot, wrong, "write marked (those that a person marks) or failed (all)");
            None
        }
        None => None,
    });
    Some(Keep {
        within: within?,
        at_most: at_most.unwrap_or(Some(1))?,
        failed: failed.unwrap_or(Some(false))?,
    })
}

/// What may be done where nothing is written and there is no cloud: the agent of a machine can bring its Node back.
const BY_AGENTS: Repair = Repair {
    network: Mode::Off,
    rejoin: Mode::Propose,
    reboot: Mode::Off,
    replace: Mode::Off,
    cleanup: Mode::Off,
};

/// Without a cloud nothing can be done to a machine but through its agent.
const BY_CLOUDS: &str = "the roster lists no cloud by which it could be done";

fn repair(pool: &Section<'_>, at: Option<&CloudRef>, complaints: &mut Complaints) -> Repair {
    let mut repair = if at.is_some_and(CloudRef::is_cluster) { BY_AGENTS } else { Repair::default() };
    let Some(section) = pool.take("repair").and_then(|field| Section::open(&field, REPAIR, complaints))
    else {
        return repair;
    };
    let fields: [(&'static str, &mut Mode); 5] = [
        ("network", &mut repair.network),
        ("rejoin", &mut repair.rejoin),
        ("reboot", &mut repair.reboot),
        ("replace", &mut repair.replace),
        ("cleanup", &mut repair.cleanup),
    ];
    for (name, mode) in fields {
        let Some(field) = section.take(name) else { continue };
        *mode = field.mode(complaints).unwrap_or(*mode);
        if *mode == Mode::Act && name != "rejoin" && at.is_some_and(CloudRef::is_cluster) {
            complaints.add(
                &field.spot,
                BY_CLOUDS,
                "write propose or off, or list the cloud under spec.clouds",
            );
        }
    }
    repair
}
