//! Reads one file into its rosters: documents, headers, and checks across several rosters.

use std::collections::BTreeMap;

use reveille_core::model::id::{PoolName, RosterName};
use reveille_core::model::instance::Mark;
use reveille_core::model::roster::{Pool, Roster};

use super::complaint::{Complaints, Refusal, Spot, Written, quote};
use super::section::{Field, Section};
use super::shape::{DOCUMENT, HOT, METADATA, SPEC};
use super::tree::{self, Tree};
use super::{
    API_VERSION, CheckedRoster, CloudRef, KIND, Origin, access, clouds, hot, network, pools, rancher, timing,
};

/// Reads and checks the text; returns all rosters or none.
pub(super) fn read(text: &str, origin: &Origin<'_>) -> Result<Vec<CheckedRoster>, Refusal> {
    let mut complaints = Complaints::default();
    let rosters = match tree::read(text) {
        Ok(trees) => documents(&trees, origin, &mut complaints),
        Err(not_yaml) => {
            let spot = Spot { at: not_yaml.at, field: String::new() };
            let wrong = format!("this is not YAML that can be read: {}", not_yaml.text);
            complaints.add(&spot, wrong, "mend the YAML here first");
            Vec::new()
        }
    };
    match complaints.into_refusal(origin.name) {
        Some(refusal) => Err(refusal),
        None => Ok(rosters),
    }
}

fn documents(trees: &[Tree], origin: &Origin<'_>, complaints: &mut Complaints) -> Vec<CheckedRoster> {
    if trees.is_empty() {
        let instead = "write one, or let `reveille init` propose one";
        complaints.add(&Spot::default(), "there is no roster in the file", instead);
    }
    let read: Vec<(CheckedRoster, Spot)> =
        trees.iter().filter_map(|tree| document(tree, origin, complaints)).collect();
    let mut first_of: BTreeMap<RosterName, Spot> = BTreeMap::new();
    for (checked, spot) in &read {
        let name = &checked.roster.name;
        if let Some(first) = first_of.get(name) {
            let wrong = format!("a roster named \"{name}\" is on line {} already", first.at.line);
            complaints.add(spot, wrong, "give each roster a name of its own");
        } else {
            first_of.insert(name.clone(), spot.clone());
        }
    }
    shared_marks(&read, complaints);
    read.into_iter().map(|(checked, _)| checked).collect()
}

/// Two rosters with the same cluster mark in the same project would both act on the same machines.
fn shared_marks(read: &[(CheckedRoster, Spot)], complaints: &mut Complaints) {
    let mut holders: Vec<(&CloudRef, &Mark, &RosterName)> = Vec::new();
    for (checked, spot) in read {
        let earlier = holders.len();
        for pool in checked.roster.pools.values() {
            let Some(cloud) = checked.clouds.get(&pool.cloud) else { continue };
            let mark = &pool.owned.cluster;
            let same = |holder: &&(&CloudRef, &Mark, &RosterName)| holder.0 == cloud && holder.1 == mark;
            if let Some((_, _, other)) = holders[..earlier].iter().find(same) {
                let wrong = format!(
                    "pool \"{}\" has the cluster {mark} in a project where roster \"{other}\" has it too, so both would act on the same machines",
                    pool.name
                );
                complaints.add(spot, wrong, "put the pools of one cluster into one roster");
            }
            holders.push((cloud, mark, &checked.roster.name));
        }
    }
}

fn document(tree: &Tree, origin: &Origin<'_>, complaints: &mut Complaints) -> Option<(CheckedRoster, Spot)> {
    let field = Field { spot: Spot { at: tree.at, field: String::new() }, tree };
    let section = Section::open(&field, DOCUMENT, complaints)?;
    let known = [("apiVersion", API_VERSION), ("kind", KIND)]
        .map(|(name, expected)| header(&section, name, expected, complaints));
    if known.contains(&Header::Foreign) {
        return None;
    }
    let metadata = section
        .require("metadata", "write metadata: {name: …}", complaints)
        .and_then(|field| Section::open(&field, METADATA, complaints));
    let named = metadata
        .and_then(|section| section.require("name", "name the roster, as in {name: prod}", complaints));
    let name = named.as_ref().and_then(|field| field.name("the roster's name", complaints));
    let spec = section.require("spec", "write spec with pools", complaints);
    let spec = Section::open(&spec?, SPEC, complaints)?;
    let cluster = clouds::cluster(spec.take("cluster"), origin, complaints);
    let rancher = rancher::rancher(spec.take("rancher"), origin, complaints);
    let hot = hot::hot(spec.take("hot"), HOT, complaints);
    let clouds = match spec.take("clouds") {
        None if !spec.has_empty() => clouds::alone::clouds(&cluster, spec.spot.clone()),
        listed => clouds::clouds(listed, origin, complaints),
    };
    let network = network::network(spec.take("network"), &clouds, complaints);
    let access = access::access(spec.take("access"), &clouds, complaints);
    let limits = timing::limits(spec.take("limits"), complaints);
    let timing = timing::timing(spec.take("timing"), complaints);
    let pool_list = spec.require("pools", "list the pools of machines that should answer", complaints);
    let pools = pools::pools(pool_list, &clouds, &timing, complaints);
    let written = |(name, (_, spot)): (&PoolName, &(Pool, Spot))| {
        let Spot { at, field } = spot.clone();
        (name.clone(), Written { file: origin.name.to_owned(), at, field })
    };
    let written = pools.iter().map(written).collect();
    let pools = pools.into_iter().map(|(name, (pool, _))| (name, pool)).collect();
    let roster = Roster {
        name: RosterName::from(name?),
        clouds: clouds.keys().cloned().collect(),
        settles: clouds
            .iter()
            .filter_map(|(name, (cloud, _))| Some((name.clone(), cloud.settles_within()?)))
            .collect(),
        network,
        access,
        pools,
        limits,
        timing,
    };
    let clouds = clouds.into_iter().map(|(name, (cloud, _))| (name, cloud)).collect();
    Some((CheckedRoster { roster, cluster, clouds, rancher, hot, written }, named?.spot))
}

/// Whether a document is a roster at all. The fields of another document are not checked: each would give a complaint.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Header {
    Ours,
    Unsaid,
    Foreign,
}

fn header(section: &Section<'_>, name: &'static str, expected: &str, complaints: &mut Complaints) -> Header {
    let instead = format!("write {name}: {expected}");
    let field = section.require(name, &instead, complaints);
    let Some((text, field)) = field.and_then(|field| Some((field.text(expected, complaints)?, field))) else {
        return Header::Unsaid;
    };
    if text == expected {
        return Header::Ours;
    }
    complaints.add(&field.spot, format!("{} is not known to this version", quote(text)), instead);
    Header::Foreign
}
