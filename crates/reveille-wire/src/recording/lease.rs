//! Lists of node leases, written as who is in them and who did *not* renew since the list before.
//!
//! The reader makes up a text for each renewal (`renewal 17`), because all that matters of it is that it changed. A node that
//! left the list and came back begins anew, as it does in the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reveille_core::model::id::NodeName;
use reveille_core::model::node::LeaseFact;
use serde::{Deserialize, Serialize};

use super::Broken;
use super::list::{Edit, Shelf};

/// A list of leases. Places are counted from the one before, the first from the beginning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct WireLeases {
    nodes: Vec<Edit<Arc<str>>>,
    /// Those that are as they were; everybody else renewed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    same: Vec<usize>,
    /// Instead, where most are as they were: those that renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    renewed: Option<Vec<usize>>,
}

/// The leases as they were last.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeaseShelf {
    nodes: Shelf<NodeName>,
    facts: Vec<LeaseFact>,
    renewals: BTreeMap<NodeName, u64>,
}

impl LeaseShelf {
    /// Writes.
    pub(crate) fn put(&mut self, leases: &[LeaseFact]) -> WireLeases {
        let names: Vec<NodeName> = leases.iter().map(|lease| lease.node.clone()).collect();
        let same: Vec<usize> = self.unchanged(leases);
        self.facts = leases.to_vec();
        let nodes = self.nodes.put(&names, Clone::clone);
        if same.len() * 2 <= leases.len() {
            return WireLeases { nodes, same: gaps(same.into_iter()), renewed: None };
        }
        let same: BTreeSet<usize> = same.into_iter().collect();
        let renewed = (0..leases.len()).filter(|place| !same.contains(place));
        WireLeases { nodes, same: Vec::new(), renewed: Some(gaps(renewed)) }
    }

    /// Places of leases that say what they said in the list before.
    fn unchanged(&self, leases: &[LeaseFact]) -> Vec<usize> {
        let mut by_name: Option<BTreeMap<&NodeName, &LeaseFact>> = None;
        let mut same = Vec::new();
        for (place, lease) in leases.iter().enumerate() {
            let before = match self.facts.get(place).filter(|before| before.node == lease.node) {
                Some(before) => Some(before),
                None => by_name
                    .get_or_insert_with(|| self.facts.iter().map(|fact| (&fact.node, fact)).collect())
                    .get(&lease.node)
                    .copied(),
            };
            if before.is_some_and(|before| before.renewed == lease.renewed) {
                same.push(place);
            }
        }
        same
    }

    /// Reads.
    pub(crate) fn take(&mut self, wire: WireLeases) -> Result<Vec<LeaseFact>, Broken> {
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
            leases.push(LeaseFact { node, renewed: Arc::from(format!("renewal {count}")) });
        }
        self.renewals = renewals;
        Ok(leases)
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

    fn list(text: &str) -> Vec<LeaseFact> {
        let lease =
            |word: &str| LeaseFact { node: NodeName::from(&word[..1]), renewed: Arc::from(&word[1..]) };
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
            let (mut wrote, mut read): (BTreeMap<NodeName, Arc<str>>, BTreeMap<NodeName, Arc<str>>) = Default::default();
            for round in rounds {
                let text: Vec<String> = round.iter().map(|(name, number)| format!("{name}{number}")).collect();
                let leases = list(&text.join(" "));
                let back = reader.take(writer.put(&leases)).unwrap();
                prop_assert_eq!(leases.len(), back.len());
                for (ours, theirs) in leases.iter().zip(&back) {
                    prop_assert_eq!(&ours.node, &theirs.node);
                    let changed = wrote.get(&ours.node) != Some(&ours.renewed);
                    prop_assert_eq!(changed, read.get(&theirs.node) != Some(&theirs.renewed));
                }
                wrote = leases.into_iter().map(|lease| (lease.node, lease.renewed)).collect();
                read = back.into_iter().map(|lease| (lease.node, lease.renewed)).collect();
            }
        }
    }
}
