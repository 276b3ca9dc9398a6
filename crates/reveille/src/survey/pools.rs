//! Pools from marks: who carries the cluster's, which other key tells pools apart, and who lacks either.
//!
//! ```text
//!  instances of nodes ─▶ the cluster's mark, on most of them ─▶ a key that tells pools apart, on most of them ─▶ pools
//!                          none: pools as comments, by name       └▶ who lacks one: the command that marks it
//! ```
//!
//! A mark that most carry and some lack is the mark: a machine that lost it must not make it nobody's. Those that lack
//! it are told of, and stay strangers until somebody marks them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reveille_core::model::id::{GroupId, InstanceId, PoolName};
use reveille_core::model::instance::{Instance, Mark};
use reveille_core::model::roster::{GroupRef, Ownership, Repair};
use reveille_core::model::time::Span;
use reveille_wire::roster::render::ProposedPool;

use super::hints::{by_stem, commands, stem};
use super::propose::{Gap, Place};
use super::{Survey, pair};

/// The pools of a cluster that is marked.
pub(crate) fn marked(
    survey: &Survey,
    ours: &[&Arc<Instance>],
    cluster: &Mark,
    place: &Place,
    unknown: &mut Vec<Gap>,
) -> Vec<ProposedPool> {
    let marked: Vec<&Arc<Instance>> =
        survey.instances.values().filter(|instance| instance.marks.contains(cluster)).collect();
    unmarked_nodes(ours, cluster, unknown);
    unmarked_strangers(survey, ours, cluster, unknown);
    let by_mark = split_by_pool(&marked, cluster);
    if by_mark.is_empty() {
        unknown.push(Gap::new("which mark names a machine's pool; all machines are in one pool here"));
        return vec![proposed(survey, "machines", None, cluster, &marked, place)];
    }
    let poolless: Vec<&Arc<Instance>> =
        marked.iter().copied().filter(|i| !by_mark.values().any(|mark| i.marks.contains(mark))).collect();
    if let (false, Some(example)) = (poolless.is_empty(), by_mark.values().next()) {
        let what = format!(
            "the pool of {} instances that carry {cluster} and no pool's mark. Mark each with its own, for example:",
            poolless.len()
        );
        unknown.push(Gap { what, commands: commands(&[example], &poolless) });
    }
    by_mark
        .into_iter()
        .map(|(name, mark)| {
            let members: Vec<&Arc<Instance>> =
                marked.iter().copied().filter(|instance| instance.marks.contains(&mark)).collect();
            proposed(survey, &name, Some(mark), cluster, &members, place)
        })
        .collect()
}

/// Pools as they might be, for a cluster of which nothing is marked: guessed from names, so every one is a comment.
pub(crate) fn unmarked(
    survey: &Survey,
    ours: &[&Arc<Instance>],
    place: &Place,
    unknown: &mut Vec<Gap>,
) -> Vec<ProposedPool> {
    let cluster = Mark::Tag(Arc::from(format!("k8s-cluster={}", place.roster)));
    let what = format!(
        "a mark that tells whose an instance is: the {} instances of the nodes share no tag and no metadata that names a cluster. The pools in the file are comments, guessed from names, which prove nothing. Mark the instances, then take the # away:",
        ours.len()
    );
    let (mut pools, mut all) = (Vec::new(), Vec::new());
    for (name, members) in by_stem(ours) {
        let name = pool_name(name);
        let mark = Mark::Tag(Arc::from(format!("k8s-pool={name}")));
        let lines = commands(&[&cluster, &mark], &members);
        all.extend(lines.iter().cloned());
        let mut pool = proposed(survey, &name, Some(mark), &cluster, &members, place);
        pool.notes = vec![format!(
            "{} instances of nodes have names like this. A name proves nothing: mark them first, if they are this pool.",
            members.len()
        )];
        pool.notes.extend(lines.into_iter().map(|line| format!("  {line}")));
        pools.push(pool);
    }
    unknown.push(Gap { what, commands: all });
    pools
}

/// Nodes whose instances lack the mark that the others carry.
fn unmarked_nodes(ours: &[&Arc<Instance>], cluster: &Mark, unknown: &mut Vec<Gap>) {
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
    unknown.push(Gap { what, commands: commands(&[cluster], &lacking) });
}

/// Instances without a node and without the mark, whose names are like those of nodes: they may have been started for
/// this cluster and never have joined.
fn unmarked_strangers(survey: &Survey, ours: &[&Arc<Instance>], cluster: &Mark, unknown: &mut Vec<Gap>) {
    let stems: BTreeSet<&str> = ours.iter().map(|instance| stem(instance.name.as_str())).collect();
    let nodes: BTreeSet<&InstanceId> = ours.iter().map(|instance| &instance.id).collect();
    let alike = |instance: &&Arc<Instance>| {
        !nodes.contains(&instance.id)
            && !instance.marks.contains(cluster)
            && !instance.state.is_leaving()
            && stems.contains(stem(instance.name.as_str()))
            && !instance.marks.iter().any(|mark| pair(mark).0 == pair(cluster).0)
    };
    let alike: Vec<&Arc<Instance>> = survey.instances.values().filter(alike).collect();
    if alike.is_empty() {
        return;
    }
    let what = format!(
        "whose {} instances are that have names like the nodes', no node and no {cluster}. They are not watched; if they are this cluster's:",
        alike.len()
    );
    unknown.push(Gap { what, commands: commands(&[cluster], &alike) });
}

/// A key that most instances carry and none carries twice, whose name speaks of pools: each of its values is a pool.
fn split_by_pool(marked: &[&Arc<Instance>], cluster: &Mark) -> BTreeMap<String, Mark> {
    let mut keys: BTreeSet<(u8, &str)> = BTreeSet::new();
    for mark in marked.iter().flat_map(|instance| instance.marks.iter()).filter(|mark| *mark != cluster) {
        let (key, value) = pair(mark);
        if value.is_some()
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
    let Some((_, key)) = keys.into_iter().find(|(_, key)| tells(key)) else { return BTreeMap::new() };
    let marks = marked.iter().flat_map(|instance| instance.marks.iter()).filter(|mark| pair(mark).0 == key);
    marks.map(|mark| (pool_name(pair(mark).1.unwrap_or_default()), mark.clone())).collect()
}

fn speaks_of_pools(key: &str) -> Option<u8> {
    let key = key.to_ascii_lowercase();
    ["pool", "nodegroup", "node-group", "node_group", "group", "role"]
        .iter()
        .position(|word| key.contains(word))
        .and_then(|rank| u8::try_from(rank).ok())
}

fn pool_name(value: &str) -> String {
    let plain: String =
        value.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let plain = plain.trim_matches('-');
    if plain.is_empty() { "machines".to_owned() } else { plain.to_owned() }
}

fn proposed(
    survey: &Survey,
    name: &str,
    mark: Option<Mark>,
    cluster: &Mark,
    members: &[&Arc<Instance>],
    place: &Place,
) -> ProposedPool {
    let ids: BTreeSet<&InstanceId> = members.iter().map(|instance| &instance.id).collect();
    let nodes = survey
        .nodes
        .iter()
        .filter(|node| survey.instance_of(node).is_some_and(|instance| ids.contains(&instance.id)));
    let nodes = nodes.count();
    let (groups, seldom) = groups(survey, &ids);
    let mut notes =
        vec![format!("{} instances carry these marks, {nodes} of them are nodes.", members.len())];
    for name in seldom {
        notes.push(format!(
            "Group {name} is on some of their ports only and is left out; add it if all need it."
        ));
    }
    ProposedPool {
        name: PoolName::from(name),
        cloud: place.cloud.clone(),
        owned: Ownership { cluster: cluster.clone(), pool: mark },
        groups,
        min: u32::try_from(nodes.div_ceil(2)).unwrap_or(u32::MAX).max(1),
        join_within: Some(Span::from_min(15)),
        repair: Repair::default(),
        notes,
    }
}

/// Groups that every port of the pool carries, and those that only some do. `default` is on every port by default and
/// says nothing.
fn groups(survey: &Survey, ids: &BTreeSet<&InstanceId>) -> (Vec<GroupRef>, Vec<String>) {
    let ports: Vec<_> =
        survey.ports.iter().filter(|(id, _)| ids.contains(id)).map(|(_, port)| port).collect();
    let all: BTreeSet<&GroupId> = ports.iter().flat_map(|port| port.groups.iter()).collect();
    let (mut every, mut some) = (Vec::new(), Vec::new());
    for id in all {
        let name = survey.groups.get(id).map(|group| group.name.clone());
        if name.as_deref() == Some("default") {
            continue;
        }
        let carried = ports.iter().filter(|port| port.groups.contains(id)).count();
        // A machine that lost its group just now must not teach that nobody needs it.
        if carried * 2 > ports.len() {
            let twins = survey.groups.values().filter(|group| Some(&group.name) == name.as_ref()).count();
            every.push(match name {
                Some(name) if twins == 1 => GroupRef::Name(name),
                _ => GroupRef::Id(id.clone()),
            });
        } else {
            some.push(name.map_or_else(|| id.to_string(), |name| name.to_string()));
        }
    }
    (every, some)
}
