//! A roster for a cluster alone: no cloud, pools by the labels of its machines, and nothing that could be done to one.
//!
//! ```text
//!  machines: Nodes, records ─▶ the label that tells a pool ─▶ pools ─▶ Proposal ─▶ a file (`init`), or a look without a roster
//! ```
//!
//! Pure. What a cloud would add, the notes of the proposal say.

use std::collections::BTreeMap;

use reveille_core::model::id::{CloudName, PoolName, RosterName};
use reveille_core::model::roster::{Limits, Mode, Ownership, Repair};
use reveille_core::model::time::Span;
use reveille_machines::inventory::Machine;
use reveille_machines::pool::PoolLabel;
use reveille_wire::roster::render::{Proposal, ProposedCloud, ProposedNetwork, ProposedPool};
use reveille_wire::roster::{CLUSTER_CLOUD, CloudRef, ClusterRef, MIN_UNLESS_WRITTEN, cluster_mark};

use super::plain_name;

/// A machine without a Node may take so long to join.
const JOIN_WITHIN: Span = Span::from_min(15);

/// Proposes a roster. `notes` say why no cloud is listed.
pub(crate) fn propose(
    machines: &[Machine],
    name: String,
    cluster: ClusterRef,
    notes: Vec<String>,
) -> Proposal {
    let mut members: BTreeMap<&PoolLabel, usize> = BTreeMap::new();
    for machine in machines {
        *members.entry(&machine.pool).or_default() += 1;
    }
    let mut notes = notes;
    let mut largest: Vec<(&PoolLabel, usize)> = members.into_iter().collect();
    if largest.len() > POOLS_MAX {
        largest.sort_by_key(|(label, count)| (std::cmp::Reverse(*count), *label));
        let more = largest.split_off(POOLS_MAX).len();
        notes.push(format!("{more} smaller pools are left out: one label for all of them is better."));
        largest.sort();
    }
    let mut names = BTreeMap::new();
    let pools = largest.into_iter().map(|(label, count)| pool(label, count, &mut names)).collect();
    let place = CloudRef::Cluster(cluster.clone());
    Proposal {
        name: RosterName::from(name.as_str()),
        notes,
        cluster,
        clouds: vec![ProposedCloud { name: CloudName::from(CLUSTER_CLOUD), at: place, notes: Vec::new() }],
        network: ProposedNetwork::default(),
        pools,
        commented: Vec::new(),
        limits: Limits::default(),
    }
}

/// More pools than this are read by no person. Any client that may create records may make as many.
const POOLS_MAX: usize = 64;

fn pool(label: &PoolLabel, count: usize, names: &mut BTreeMap<String, usize>) -> ProposedPool {
    let plain = plain_name(label.name());
    let plain = if plain.is_empty() { "machines".to_owned() } else { plain };
    let alike = names.entry(plain.clone()).or_default();
    *alike += 1;
    let name = if *alike == 1 { plain } else { format!("{plain}--{alike}") };
    let maker = label.maker.map_or_else(String::new, |maker| format!(", as {maker} labels them"));
    let machines = if count == 1 { "machine" } else { "machines" };
    ProposedPool {
        name: PoolName::from(name.as_str()),
        cloud: CloudName::from(CLUSTER_CLOUD),
        owned: Ownership { cluster: cluster_mark(), pool: Some(label.mark.clone()) },
        groups: Vec::new(),
        min: MIN_UNLESS_WRITTEN,
        join_within: Some(JOIN_WITHIN),
        // Without a cloud there is nothing else to do to a machine than to have its agent bring its Node back.
        repair: Repair { rejoin: Mode::Propose, ..NOTHING },
        through_group: None,
        notes: vec![format!("{count} {machines}{maker}")],
    }
}

const NOTHING: Repair = Repair {
    network: Mode::Off,
    rejoin: Mode::Off,
    reboot: Mode::Off,
    replace: Mode::Off,
    cleanup: Mode::Off,
};
