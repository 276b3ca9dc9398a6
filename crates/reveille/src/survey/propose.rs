//! From what was found to a roster that a person can start from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use reveille_core::model::id::{CloudName, GroupId, InstanceId, PoolName, RosterName};
use reveille_core::model::instance::{Instance, Mark};
use reveille_core::model::roster::{GroupRef, Limits, Ownership, Repair};
use reveille_core::model::time::Span;
use reveille_wire::roster::render::{Proposal, ProposedCloud, ProposedNetwork, ProposedPool};
use reveille_wire::roster::{CloudRef, ClusterRef};

use super::{Survey, cluster_mark, pair};
use crate::cli::failure::Failure;

/// Where everything is.
pub(crate) struct Place {
    /// Name of the roster.
    pub(crate) roster: String,
    /// The cluster.
    pub(crate) cluster: ClusterRef,
    /// The roster's name for the cloud.
    pub(crate) cloud: CloudName,
    /// Entry of clouds.yaml.
    pub(crate) entry: String,
    /// The file, where it was named.
    pub(crate) clouds_file: Option<PathBuf>,
    /// Name of the project.
    pub(crate) project: String,
}

/// A proposal, and what could not be found out.
pub(crate) struct Proposed {
    /// The roster.
    pub(crate) proposal: Proposal,
    /// One line each.
    pub(crate) unknown: Vec<String>,
}

/// Proposes a roster.
pub(crate) fn roster(survey: &Survey, place: &Place) -> Result<Proposed, Failure> {
    let ours: Vec<&Arc<Instance>> = survey.nodes.iter().filter_map(|node| survey.instance_of(node)).collect();
    if ours.is_empty() {
        return Err(Failure::cannot_tell(anyhow!(
            "none of the {} nodes names an instance of project {}, so nothing tells which instances are this cluster's",
            survey.nodes.len(),
            place.project
        ))
        .next("check --context and --cloud; nodes name their instance in spec.providerID"));
    }
    let Some(cluster) = cluster_mark(&ours) else {
        return Err(Failure::cannot_tell(anyhow!(
            "the instances of the {} nodes share no tag and no metadata that names a cluster",
            ours.len()
        ))
        .next(
            "mark them, for example: openstack server set --tag k8s-cluster=NAME SERVER; then run this again",
        ));
    };
    let mut unknown = Vec::new();
    let pools = pools(survey, &ours, &cluster, place, &mut unknown);
    let network = network(survey, place, &mut unknown);
    let at = CloudRef::OpenStack { cloud: place.entry.clone(), clouds_file: place.clouds_file.clone() };
    let notes = vec![
        "Written by `reveille init` from what it saw. Read it, correct it, then switch remedies on."
            .to_owned(),
        format!(
            "{} nodes were seen; {} of them are instances of project {}.",
            survey.nodes.len(),
            ours.len(),
            place.project
        ),
    ];
    let notes =
        notes.into_iter().chain(unknown.iter().map(|line| format!("Not found out: {line}"))).collect();
    let proposal = Proposal {
        name: RosterName::from(place.roster.as_str()),
        notes,
        cluster: place.cluster.clone(),
        clouds: vec![ProposedCloud { name: place.cloud.clone(), at, notes: Vec::new() }],
        network,
        pools,
        limits: Limits::default(),
    };
    Ok(Proposed { proposal, unknown })
}

fn pools(
    survey: &Survey,
    ours: &[&Arc<Instance>],
    cluster: &Mark,
    place: &Place,
    unknown: &mut Vec<String>,
) -> Vec<ProposedPool> {
    let marked: Vec<&Arc<Instance>> =
        survey.instances.values().filter(|instance| instance.marks.contains(cluster)).collect();
    let by_mark = split_by_pool(ours, cluster);
    if by_mark.is_empty() {
        unknown.push("which mark names a machine's pool; all machines are in one pool here".to_owned());
        return vec![proposed(survey, "machines", None, cluster, &marked, place)];
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

/// A key that every instance carries exactly once, whose name speaks of pools: each of its values is a pool.
fn split_by_pool(ours: &[&Arc<Instance>], cluster: &Mark) -> BTreeMap<String, Mark> {
    let mut keys: BTreeSet<(u8, String)> = BTreeSet::new();
    for mark in ours.iter().flat_map(|instance| instance.marks.iter()).filter(|mark| *mark != cluster) {
        let (key, value) = pair(mark);
        if value.is_some()
            && let Some(rank) = speaks_of_pools(key)
        {
            keys.insert((rank, key.to_owned()));
        }
    }
    let once = |key: &str| {
        ours.iter().all(|instance| instance.marks.iter().filter(|mark| pair(mark).0 == key).count() == 1)
    };
    let Some((_, key)) = keys.into_iter().find(|(_, key)| once(key)) else { return BTreeMap::new() };
    let marks = ours.iter().flat_map(|instance| instance.marks.iter()).filter(|mark| pair(mark).0 == key);
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

fn network(survey: &Survey, place: &Place, unknown: &mut Vec<String>) -> ProposedNetwork {
    let ranges: Vec<IpNet> = survey.nodes.iter().flat_map(|node| node.pod_ranges.iter().copied()).collect();
    let pod_ranges = cover(&ranges);
    if pod_ranges.is_empty() {
        unknown.push(
            "the pod ranges: no node has one; right where an overlay gives pods their addresses".to_owned(),
        );
        return ProposedNetwork::default();
    }
    let mut notes = vec![
        "The smallest networks that cover the pod ranges of the nodes seen. The cluster's own (--cluster-cidr) may be wider."
            .to_owned(),
    ];
    let carries = |router: &&Arc<reveille_core::model::network::Router>| {
        router.routes.iter().any(|route| pod_ranges.iter().any(|range| range.contains(&route.destination)))
    };
    let router = survey.routers.iter().find(carries).map(|router| (place.cloud.clone(), router.id.clone()));
    if let Some(id) = &survey.missing_router {
        unknown.push(format!("router {id}: the project has no router of that id"));
    } else if let (None, Some(seen)) = (&router, survey.routers.first()) {
        unknown.push(format!("router {} holds no route into the pod ranges, so it is left out", seen.id));
    } else if router.is_none() {
        unknown.push("the router that carries pod routes, if one does: name it with --router ID".to_owned());
    }
    if router.is_none() {
        notes.push("If a router carries pod routes, name it here: router: ID".to_owned());
    }
    ProposedNetwork { pod_ranges, router, notes }
}

/// The smallest network of each family that covers all of them.
pub(crate) fn cover(ranges: &[IpNet]) -> Vec<IpNet> {
    let mut v4: Option<Ipv4Net> = None;
    let mut v6: Option<Ipv6Net> = None;
    for range in ranges {
        match range {
            IpNet::V4(net) => {
                let mut wide = v4.unwrap_or(*net).trunc();
                while !wide.contains(net) {
                    let Some(wider) = wide.supernet() else { break };
                    wide = wider;
                }
                v4 = Some(wide);
            }
            IpNet::V6(net) => {
                let mut wide = v6.unwrap_or(*net).trunc();
                while !wide.contains(net) {
                    let Some(wider) = wide.supernet() else { break };
                    wide = wider;
                }
                v6 = Some(wide);
            }
        }
    }
    v4.map(IpNet::V4).into_iter().chain(v6.map(IpNet::V6)).collect()
}
