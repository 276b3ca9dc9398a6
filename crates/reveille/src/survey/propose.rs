//! Makes a roster that an operator can start from, out of the result of the survey.

use std::collections::BTreeMap;

use anyhow::anyhow;
use reveille_core::model::id::RosterName;
use reveille_core::model::instance::Mark;
use reveille_core::model::roster::Limits;
use reveille_wire::roster::render::{Proposal, ProposedCloud};

use super::network::network;
use super::{Gap, Place, Survey, cluster_mark, pools};
use crate::cli::failure::Failure;
use reveille_cloud::site::{Settled, Site};

/// The most names of Nodes that are listed one by one.
const NAMES_MAX: usize = 5;

/// A proposal, and what could not be found out.
pub(crate) struct Proposed {
    /// The roster.
    pub(crate) proposal: Proposal,
    /// What the operator has to find out or to do.
    pub(crate) unknown: Vec<Gap>,
}

/// Decides what the roster says about its cloud.
///
/// # Errors
/// When no Node runs on it, or only an operator can tell which cluster is meant.
pub(crate) fn settle(survey: &Survey, site: &dyn Site) -> Result<Settled, Failure> {
    let ours = survey.our_ids();
    if ours.is_empty() {
        return Err(Failure::cannot_tell(anyhow!(
            "none of the {} nodes names one of the {} instances of {}, so nothing tells which of them are this cluster's",
            survey.nodes.len(),
            survey.inventory.instances.len(),
            site.called()
        ))
        .next(format!("check {}; nodes name their instance in spec.providerID", site.options())));
    }
    Ok(site.settle(&survey.inventory, &ours)?)
}

/// Proposes a roster.
pub(crate) fn roster(survey: &Survey, place: &Place<'_>) -> Proposed {
    let ours = survey.ours();
    let mut unknown = Vec::new();
    unplaced(survey, place, &mut unknown);
    let known = |mark: &Mark| ours.iter().any(|instance| instance.marks.contains(mark));
    let cluster = match &place.settled.cluster {
        Some(mark) => Some(mark.clone()).filter(|mark| known(mark)),
        None => cluster_mark(&ours),
    };
    let (pools, commented) = match cluster {
        Some(cluster) => pools::marked(survey, &ours, &cluster, place, &mut unknown),
        None => (Vec::new(), pools::unmarked(survey, &ours, place, &mut unknown)),
    };
    let network = network(survey, place, &mut unknown);
    let notes = vec![
        "Written by `reveille init` from what it found. Check it, correct it, then enable kinds of repair one by one."
            .to_owned(),
        format!(
            "{} nodes were seen; {} of them are instances of {}, which has {}.",
            survey.nodes.len(),
            ours.len(),
            place.site.called(),
            survey.inventory.instances.len()
        ),
    ];
    let told = unknown.iter().flat_map(|gap| {
        let commands = gap.commands.iter().map(|command| format!("    {command}"));
        std::iter::once(format!("Not found out: {}", gap.what)).chain(commands)
    });
    let notes = notes.into_iter().chain(told).collect();
    let proposal = Proposal {
        name: RosterName::from(place.roster.as_str()),
        notes,
        cluster: place.cluster.clone(),
        clouds: vec![ProposedCloud {
            name: place.cloud.clone(),
            at: place.settled.at.clone(),
            notes: networks(survey),
        }],
        network,
        pools,
        commented,
        limits: Limits::default(),
    };
    Proposed { proposal, unknown }
}

/// Nodes that run on no machine of this cloud.
fn unplaced(survey: &Survey, place: &Place<'_>, unknown: &mut Vec<Gap>) {
    let nodes: Vec<&str> = survey
        .nodes
        .iter()
        .filter(|node| survey.instance_of(node).is_none())
        .map(|node| node.name.as_str())
        .collect();
    if nodes.is_empty() {
        return;
    }
    let shown = nodes.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
    let more = if nodes.len() > NAMES_MAX { ", …" } else { "" };
    unknown.push(Gap::new(format!(
        "what {} nodes are on: they name no instance of {} ({shown}{more}). They are not watched",
        nodes.len(),
        place.site.called()
    )));
}

/// The networks of the Nodes' ports, in a cloud whose networks are parts of larger ones: a line for each larger network.
fn networks(survey: &Survey) -> Vec<String> {
    let ours = survey.our_ids();
    let mut within: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for (id, port) in &survey.inventory.ports {
        if ours.contains(id)
            && let Some(larger) = survey.inventory.within.get(&port.network)
        {
            *within.entry(larger).or_default().entry(port.network.as_str()).or_default() += 1;
        }
    }
    let line = |(larger, parts): (&str, BTreeMap<&str, usize>)| {
        let parts: Vec<String> = parts.iter().map(|(part, count)| format!("{part} ({count})")).collect();
        format!("The nodes' interfaces are in {larger}: {}.", parts.join(", "))
    };
    within.into_iter().map(line).collect()
}
