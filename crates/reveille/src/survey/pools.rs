//! Pools from marks: which instances carry the cluster's mark, which other key separates the pools, and
//! which instances lack either.
//!
//! ```text
//!  instances of nodes ─▶ the cluster's mark, on most of them ─▶ a key that separates the pools, on most of them ─▶ pools
//!                          none: pools as comments, by name       ├▶ the rest: a key of their own ─▶ pools
//!                                                                 ├▶ instances without one: the command that marks them
//!  Auto Scaling groups without machines ──────────────────────────┴▶ pools as comments
//! ```
//!
//! The mark that most instances carry is the cluster's mark, even if some lack it: a machine that lost it still belongs to
//! the cluster. The report lists the instances that lack it; they stay outside the roster until an operator marks them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reveille_core::model::id::{InstanceId, PoolName};
use reveille_core::model::instance::{Instance, Mark};
use reveille_core::model::roster::{Ownership, Repair};
use reveille_core::model::time::Span;
use reveille_wire::roster::render::ProposedPool;

use super::hints::{by_stem, commands, stem};
use super::rules::{PoolGroups, groups};
use super::{Gap, Place, Survey, pair, plain_name};

/// The key of the pool mark in the commands for operators.
const POOL_KEY: &str = "k8s-pool";
/// The key of the cluster mark in these commands, where the provider has no key of its own.
const CLUSTER_KEY: &str = "k8s-cluster";

/// The pools of a cluster whose machines are marked, and those that are comments.
pub(crate) fn marked(
    survey: &Survey,
    ours: &[&Arc<Instance>],
    cluster: &Mark,
    place: &Place<'_>,
    unknown: &mut Vec<Gap>,
) -> (Vec<ProposedPool>, Vec<ProposedPool>) {
    let marked: Vec<&Arc<Instance>> =
        survey.inventory.instances.values().filter(|one| one.marks.contains(cluster)).collect();
    unmarked_nodes(ours, cluster, place, unknown);
    unmarked_strangers(survey, ours, cluster, place, unknown);
    let mut names = Names::default();
    let mut marks = split_by_pool(&marked, cluster);
    let Some(example) = marks.first().cloned() else {
        unknown.push(Gap::new("which mark names a machine's pool; all machines are in one pool here"));
        return (vec![proposed(survey, "machines", None, cluster, &marked, place)], Vec::new());
    };
    let rest = |marks: &[Mark]| -> Vec<&Arc<Instance>> {
        marked.iter().copied().filter(|one| !marks.iter().any(|mark| one.marks.contains(mark))).collect()
    };
    // Machines that are not created in series often have other keys. A mark that a pool's machine carries as well
    // separates nothing.
    let own = split_by_pool(&rest(&marks), cluster);
    let first = marks.clone();
    let shared = |mark: &Mark| {
        marked.iter().any(|one| one.marks.contains(mark) && first.iter().any(|mark| one.marks.contains(mark)))
    };
    marks.extend(own.into_iter().filter(|mark| !shared(mark)));
    let mut pools: Vec<ProposedPool> = Vec::new();
    for mark in &marks {
        let members: Vec<&Arc<Instance>> =
            marked.iter().copied().filter(|one| one.marks.contains(mark)).collect();
        let name = names.take(&value_of(mark));
        pools.push(proposed(survey, &name, Some(mark.clone()), cluster, &members, place));
    }
    pools.sort_by(|a, b| a.name.cmp(&b.name));
    let loose = rest(&marks);
    let mut commented = poolless(survey, &loose, &example, cluster, (place, &mut names), unknown);
    commented.extend(empty_keepers(survey, &marks, cluster, place, &mut names));
    (pools, commented)
}

/// Possible pools for a cluster without marks: guessed from names, so every one is a comment.
pub(crate) fn unmarked(
    survey: &Survey,
    ours: &[&Arc<Instance>],
    place: &Place<'_>,
    unknown: &mut Vec<Gap>,
) -> Vec<ProposedPool> {
    let own = || place.site.mark(CLUSTER_KEY, &place.roster);
    let cluster = place.settled.cluster.clone().unwrap_or_else(own);
    let what = format!(
        "a mark that tells whose an instance is: the {} instances of the nodes share no tag and no metadata that names a cluster. The pools in the file are comments, guessed from names, which prove nothing. Mark the instances, then take the # away:",
        ours.len()
    );
    let (pools, commands) = by_names(survey, ours, &cluster, true, (place, &mut Names::default()));
    unknown.push(Gap { what, commands });
    pools
}

/// Machines of the cluster without a pool mark: the command that gives them one, and pools as comments where operators
/// cannot set the marks of the other pools.
fn poolless(
    survey: &Survey,
    loose: &[&Arc<Instance>],
    example: &Mark,
    cluster: &Mark,
    (place, names): (&Place<'_>, &mut Names),
    unknown: &mut Vec<Gap>,
) -> Vec<ProposedPool> {
    if loose.is_empty() {
        return Vec::new();
    }
    let what = format!("the pool of {} instances that carry {cluster} and no pool's mark.", loose.len());
    if place.site.may_be_put(example) {
        let what = format!("{what} Mark each with its own, for example:");
        unknown.push(Gap { what, commands: commands(place.site, &[example], loose) });
        return Vec::new();
    }
    let (pools, commands) = by_names(survey, loose, cluster, false, (place, names));
    let what = format!(
        "{what} No {} keeps them. They are comments in the file, guessed from names, which prove nothing. Mark them, then take the # away:",
        place.site.keeper()
    );
    unknown.push(Gap { what, commands });
    pools
}

/// Pools guessed from names, and all commands that would mark their machines; with the cluster's mark, or the pool's alone.
fn by_names(
    survey: &Survey,
    instances: &[&Arc<Instance>],
    cluster: &Mark,
    with_cluster: bool,
    (place, names): (&Place<'_>, &mut Names),
) -> (Vec<ProposedPool>, Vec<String>) {
    let (mut pools, mut all) = (Vec::new(), Vec::new());
    for (stem, members) in by_stem(instances) {
        let name = names.take(stem);
        let mark = place.site.mark(POOL_KEY, &name);
        let marks = if with_cluster { vec![cluster, &mark] } else { vec![&mark] };
        let lines = commands(place.site, &marks, &members);
        all.extend(lines.iter().cloned());
        let mut pool = proposed(survey, &name, Some(mark), cluster, &members, place);
        let whose = if with_cluster { "instances of nodes" } else { "instances of the cluster" };
        pool.notes = vec![format!(
            "{} {whose} have names like this. A name proves nothing: mark them first, if they are this pool.",
            members.len()
        )];
        pool.notes.extend(lines.into_iter().map(|line| format!("  {line}")));
        pools.push(pool);
    }
    (pools, all)
}

/// Auto Scaling groups that would give the cluster's mark to their next machine and have no machine: no instance carries
/// their pool's mark yet.
fn empty_keepers(
    survey: &Survey,
    marks: &[Mark],
    cluster: &Mark,
    place: &Place<'_>,
    names: &mut Names,
) -> Vec<ProposedPool> {
    let empty = survey.inventory.keepers.iter().filter(|keeper| {
        keeper.machines.is_empty()
            && keeper.gives.contains(cluster)
            && !keeper.gives.iter().any(|mark| marks.contains(mark))
    });
    empty
        .map(|keeper| {
            // The key that separates the other pools, where this group sets it as well.
            let alike = keeper.gives.iter().find(|mark| marks.iter().any(|other| pair(other).0 == pair(mark).0));
            let mark = alike.unwrap_or(&keeper.mark).clone();
            let name = names.take(&value_of(&mark));
            let mut pool = proposed(survey, &name, Some(mark), cluster, &[], place);
            pool.through_group = Some(false);
            pool.notes = vec![format!(
                "{} {} is this cluster's and has no machine now. Take this up when it has one: a pool whose marks no machine carries is paused.",
                place.site.keeper(),
                keeper.name
            )];
            pool
        })
        .collect()
}

/// Nodes whose instances lack the mark that the others carry.
fn unmarked_nodes(ours: &[&Arc<Instance>], cluster: &Mark, place: &Place<'_>, unknown: &mut Vec<Gap>) {
    let lacking: Vec<&Arc<Instance>> =
        ours.iter().copied().filter(|instance| !instance.marks.contains(cluster)).collect();
    if lacking.is_empty() {
        return;
    }
    let what = format!(
        "whose {} of the nodes' {} instances are: they lack {cluster} and are not watched. To mark them:",
        lacking.len(),
        ours.len()
    );
    unknown.push(Gap { what, commands: commands(place.site, &[cluster], &lacking) });
}

/// Instances without a Node and without the mark, whose names resemble those of Nodes: they may have been started for
/// this cluster and never have joined.
fn unmarked_strangers(
    survey: &Survey,
    ours: &[&Arc<Instance>],
    cluster: &Mark,
    place: &Place<'_>,
    unknown: &mut Vec<Gap>,
) {
    let stems: BTreeSet<&str> =
        ours.iter().map(|one| stem(one.name.as_str())).filter(|it| !it.is_empty()).collect();
    let nodes: BTreeSet<&InstanceId> = ours.iter().map(|instance| &instance.id).collect();
    let key = |mark: &Mark| family(pair(mark).0).to_owned();
    let alike = |instance: &&Arc<Instance>| {
        !nodes.contains(&instance.id)
            && !instance.marks.contains(cluster)
            && !instance.state.is_leaving()
            && stems.contains(stem(instance.name.as_str()))
            && !instance.marks.iter().any(|mark| key(mark) == key(cluster))
    };
    let alike: Vec<&Arc<Instance>> = survey.inventory.instances.values().filter(alike).collect();
    if alike.is_empty() {
        return;
    }
    let what = format!(
        "whose {} instances are that have names like the nodes', no node and no {cluster}. They are not watched; if they are this cluster's:",
        alike.len()
    );
    unknown.push(Gap { what, commands: commands(place.site, &[cluster], &alike) });
}

/// The common part of the keys of all clusters: for `kubernetes.io/cluster/prod`, which has the cluster in the key, the
/// text before the cluster.
fn family(key: &str) -> &str {
    match key.rsplit_once('/') {
        Some((family, _)) if family.ends_with("/cluster") => family,
        _ => key,
    }
}

/// A key that most instances carry, none of them twice, and whose name means pools: each of its values is a pool's mark.
fn split_by_pool(marked: &[&Arc<Instance>], cluster: &Mark) -> Vec<Mark> {
    let mut keys: BTreeSet<(u8, &str)> = BTreeSet::new();
    for mark in marked.iter().flat_map(|instance| instance.marks.iter()).filter(|mark| *mark != cluster) {
        let (key, value) = pair(mark);
        if value.is_some_and(|value| !value.is_empty())
            && let Some(rank) = speaks_of_pools(key)
        {
            keys.insert((rank, key));
        }
    }
    let tells = |key: &str| {
        let counts = marked
            .iter()
            .map(|instance| instance.marks.iter().filter(|mark| pair(mark).0 == key).count())
            .collect::<Vec<_>>();
        counts.iter().all(|count| *count <= 1) && counts.iter().sum::<usize>() * 2 > marked.len()
    };
    let Some((_, key)) = keys.into_iter().find(|(_, key)| tells(key)) else { return Vec::new() };
    let marks = marked.iter().flat_map(|instance| instance.marks.iter()).filter(|mark| {
        let (of, value) = pair(mark);
        of == key && value.is_some_and(|value| !value.is_empty())
    });
    marks.cloned().collect::<BTreeSet<Mark>>().into_iter().collect()
}

fn speaks_of_pools(key: &str) -> Option<u8> {
    let key = key.to_ascii_lowercase();
    ["pool", "nodegroup", "node-group", "node_group", "group", "role"]
        .iter()
        .position(|word| key.contains(word))
        .and_then(|rank| u8::try_from(rank).ok())
}

/// The name of a pool from its mark: the value, or the end of the key where the value only says yes (`…/role/master=1`).
fn value_of(mark: &Mark) -> String {
    let (key, value) = pair(mark);
    let end = || key.rsplit(['/', ':']).next().unwrap_or(key);
    match value.unwrap_or_default() {
        "1" | "true" | "yes" | "owned" => end().to_owned(),
        value => value.to_owned(),
    }
}

/// Names of pools in the form of the roster, each used once.
#[derive(Default)]
struct Names {
    taken: BTreeSet<String>,
}

impl Names {
    fn take(&mut self, wanted: &str) -> String {
        let plain = plain_name(wanted);
        let plain = if plain.is_empty() { "machines".to_owned() } else { plain };
        let numbered = (2..).map(|number: u32| format!("{plain}-{number}"));
        let mut free =
            std::iter::once(plain.clone()).chain(numbered).filter(|name| !self.taken.contains(name));
        // There is always a next number.
        let name = free.next().unwrap_or(plain.clone());
        self.taken.insert(name.clone());
        name
    }
}

fn proposed(
    survey: &Survey,
    name: &str,
    mark: Option<Mark>,
    cluster: &Mark,
    members: &[&Arc<Instance>],
    place: &Place<'_>,
) -> ProposedPool {
    let ids: BTreeSet<&InstanceId> = members.iter().map(|instance| &instance.id).collect();
    let nodes = survey
        .nodes
        .iter()
        .filter(|node| survey.instance_of(node).is_some_and(|instance| ids.contains(&instance.id)));
    let nodes = nodes.count();
    let mut notes =
        vec![format!("{} instances carry these marks, {nodes} of them are nodes.", members.len())];
    let kept = kept(members, place);
    notes.extend(kept.clone());
    let PoolGroups { needed, notes: of_groups } = groups(survey, &ids);
    notes.extend(of_groups);
    ProposedPool {
        name: PoolName::from(name),
        cloud: place.cloud.clone(),
        owned: Ownership { cluster: cluster.clone(), pool: mark },
        groups: needed,
        min: u32::try_from(nodes.div_ceil(2)).unwrap_or(u32::MAX).max(1),
        join_within: Some(Span::from_min(15)),
        repair: Repair::default(),
        through_group: kept.map(|_| false),
        notes,
    }
}

/// Which Auto Scaling groups manage how many of them.
fn kept(members: &[&Arc<Instance>], place: &Place<'_>) -> Option<String> {
    let mut by: BTreeMap<&str, usize> = BTreeMap::new();
    for group in members.iter().filter_map(|one| one.hosting.as_ref()?.group.as_ref()) {
        *by.entry(&group.name).or_default() += 1;
    }
    if by.is_empty() {
        return None;
    }
    let all: usize = by.values().sum();
    let groups: Vec<String> = by.iter().map(|(name, count)| format!("{name} ({count})")).collect();
    let none = match members.len() - all {
        0 => String::new(),
        others => format!(" {others} of them have no owner."),
    };
    Some(format!(
        "Kept by {} {}, which replaces machines by rules of its own; they are left to it.{none}",
        place.site.keeper(),
        groups.join(", ")
    ))
}
