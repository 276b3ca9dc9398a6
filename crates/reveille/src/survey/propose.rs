//! From what was found to a roster that a person can start from.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use reveille_core::model::id::{CloudName, RosterName};
use reveille_core::model::instance::Instance;
use reveille_core::model::roster::Limits;
use reveille_wire::roster::render::{Proposal, ProposedCloud};
use reveille_wire::roster::{CloudRef, ClusterRef};

use super::network::network;
use super::{Survey, cluster_mark, pools};
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
    /// What a person has to find out or to do.
    pub(crate) unknown: Vec<Gap>,
}

/// Something that could not be found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    /// What, on one line.
    pub(crate) what: String,
    /// Commands that would mend it.
    pub(crate) commands: Vec<String>,
}

impl Gap {
    /// A gap that no command mends.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), commands: Vec::new() }
    }
}

/// Proposes a roster.
pub(crate) fn roster(survey: &Survey, place: &Place) -> Result<Proposed, Failure> {
    let ours: Vec<&Arc<Instance>> = survey.nodes.iter().filter_map(|node| survey.instance_of(node)).collect();
    if ours.is_empty() {
        return Err(Failure::cannot_tell(anyhow!(
            "none of the {} nodes names one of the {} instances of project {}, so nothing tells which of them are this cluster's",
            survey.nodes.len(),
            survey.instances.len(),
            place.project
        ))
        .next("check --context and --cloud; nodes name their instance in spec.providerID"));
    }
    let mut unknown = Vec::new();
    let (pools, commented) = match cluster_mark(&ours) {
        Some(cluster) => (pools::marked(survey, &ours, &cluster, place, &mut unknown), Vec::new()),
        None => (Vec::new(), pools::unmarked(survey, &ours, place, &mut unknown)),
    };
    let network = network(survey, &place.cloud, &mut unknown);
    let at = CloudRef::OpenStack { cloud: place.entry.clone(), clouds_file: place.clouds_file.clone() };
    let notes = vec![
        "Written by `reveille init` from what it saw. Read it, correct it, then switch remedies on."
            .to_owned(),
        format!(
            "{} nodes were seen; {} of them are instances of project {}, which has {}.",
            survey.nodes.len(),
            ours.len(),
            place.project,
            survey.instances.len()
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
        clouds: vec![ProposedCloud { name: place.cloud.clone(), at, notes: Vec::new() }],
        network,
        pools,
        commented,
        limits: Limits::default(),
    };
    Ok(Proposed { proposal, unknown })
}
