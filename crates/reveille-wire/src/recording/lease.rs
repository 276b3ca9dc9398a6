//! Lists of node leases, written as the nodes in them and the nodes that did *not* renew since the list before.
//!
//! The reader counts renewals and reads no times, because only the renewal matters. For a node that left the list and
//! came back the count starts again, as it does in the engine.

use std::collections::{BTreeMap, BTreeSet};

use reveille_core::model::id::NodeName;
use reveille_core::model::lease::{Leases, Renewal};
use serde::{Deserialize, Serialize};

use super::Broken;
use super::list::{Edit, Shelf};

/// A list of leases. Each position is relative to the one before, the first to the beginning of the list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct WireLeases {
    nodes: Vec<Edit<NodeName>>,
    /// The leases that did not change; all others were renewed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    same: Vec<usize>,
    /// Used instead where most did not change: the leases that were renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    renewed: Option<Vec<usize>>,
}

/// The leases of the last list.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeaseShelf {
    nodes: Shelf<NodeName>,
    last: Leases,
    renewals: BTreeMap<NodeName, u64>,
}

impl LeaseShelf {
    /// Converts a list for writing.
    pub(crate) fn put(&mut self, leases: &Leases) -> WireLeases {
        let same: Vec<usize> = self.unchanged(leases);
        self.last = leases.clone();
        let nodes = self.nodes.put(leases.names(), Clone::clone);
        if same.len() * 2 <= leases.len() {
            return WireLeases { nodes, same: gaps(same.into_iter()), renewed: None };
        }
        let same: BTreeSet<usize> = same.into_iter().collect();
        let renewed = (0..leases.len()).filter(|place| !same.contains(place));
        WireLeases { nodes, same: Vec::new(), renewed: Some(gaps(renewed)) }
    }

    /// Positions of leases that are the same as in the list before.
    fn unchanged(&self, leases: &Leases) -> Vec<usize> {
        let mut by_name: Option<BTreeMap<&NodeName, Renewal>> = None;
        let mut same = Vec::new();
        for (place, (name, renewal)) in leases.iter().enumerate() {
            let before = match self.last.names().get(place).filter(|before| *before == name) {
                Some(_) => self.last.renewals().get(place),
                None => by_name.get_or_insert_with(|| self.last.iter().collect()).get(name),
            };
            if before == Some(&renewal) {
                same.push(place);
            }
        }
        same
    }

    /// Converts a list that was read.
    pub(crate) fn take(&mut self, wire: WireLeases) -> Result<Leases, Broken> {
        let names = self.nodes.take(wire.nodes)?;
        let is_same: Box<dyn Fn(usize) -> bool> = match wire.renewed {
            None => {
                let same = places(&wire.same);
                Box::new(move |place| same.contains(&place))
            }
            Some(renewed) => {
                let renewed = places(&renewed);
                Box::new(move |place| !renewed.contains(&place))
            }
        };
        let mut renewals = BTreeMap::new();
        let mut leases = Vec::with_capacity(names.len());
        for (place, node) in names.into_iter().enumerate() {
            let before = self.renewals.get(&node).copied();
            let count = match before {
                Some(count) if is_same(place) => count,
                Some(count) => count + 1,
                None => 1,
            };
            renewals.insert(node.clone(), count);
            leases.push((node, Renewal::nth(count)));
        }
        self.renewals = renewals;
        Ok(leases.into_iter().collect())
    }
}

fn gaps(places: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut next = 0;
    places
        .map(|place| {
            let gap = place - next;
            next = place + 1;
            gap
        })
        .collect()
}

fn places(gaps: &[usize]) -> BTreeSet<usize> {
    let mut next = 0_usize;
    gaps.iter()
        .map(|gap| {
            let place = next.saturating_add(*gap);
            next = place.saturating_add(1);
            place
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list(text: &str) -> Leases {
        let lease = |word: &str| (NodeName::from(&word[..1]), Renewal::of(&word[1..]));
        text.split_whitespace().map(lease).collect()
    }

    #[test]
    fn only_who_renewed_is_written() {
        let mut shelf = LeaseShelf::default();
        let table = [
            ("a1 b1 c1 d1", r#"{"nodes":[{"new":"a"},{"new":"b"},{"new":"c"},{"new":"d"}]}"#),
            ("a2 b2 c2 d2", r#"{"nodes":[{"keep":[0,4]}]}"#),
            ("a3 b2 c3 d2", r#"{"nodes":[{"keep":[0,4]}],"same":[1,1]}"#),
            ("a3 b2 c3 d3", r#"{"nodes":[{"keep":[0,4]}],"renewed":[3]}"#),
            ("a3 c4 d4", r#"{"nodes":[{"keep":[0,1]},{"keep":[2,2]}],"same":[0]}"#),
        ];
        for (now, expected) in table {
            assert_eq!(serde_json::to_string(&shelf.put(&list(now))).unwrap(), expected, "{now}");
        }
    }

    proptest! {
        /// A lease changes for the reader exactly where it changed for the writer.
        #[test]
        fn the_reader_sees_every_renewal(rounds in prop::collection::vec(prop::collection::btree_map("[a-f]", 0..3_u8, 0..6), 1..8)) {
            let (mut writer, mut reader) = (LeaseShelf::default(), LeaseShelf::default());
            let (mut wrote, mut read): (BTreeMap<NodeName, Renewal>, BTreeMap<NodeName, Renewal>) = Default::default();
            for round in rounds {
                let text: Vec<String> = round.iter().map(|(name, number)| format!("{name}{number}")).collect();
                let leases = list(&text.join(" "));
                let back = reader.take(writer.put(&leases)).unwrap();
                prop_assert_eq!(leases.len(), back.len());
                for ((name, ours), (same_name, theirs)) in leases.iter().zip(back.iter()) {
                    prop_assert_eq!(name, same_name);
                    prop_assert_eq!(wrote.get(name) != Some(&ours), read.get(name) != Some(&theirs));
                }
                let kept = |leases: &Leases| leases.iter().map(|(name, mark)| (name.clone(), mark)).collect();
                (wrote, read) = (kept(&leases), kept(&back));
            }
        }
    }
}
