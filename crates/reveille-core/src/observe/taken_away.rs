//! Nodes that were taken away on purpose when no machine was known to stand as them, by name.
//!
//! ```text
//!  a Node that names no instance goes with a sign ─▶ note        a machine of that name comes into sight ─▶ called
//!  a Node of that name registers ─▶ forget
//! ```
//!
//! On bare metal and with k3s neither the provider ID nor the UUID of a Node is an instance's: a machine that gets its marks
//! hours after a person tried and drained it is known by its name alone. This is the memory of one process; the ledger keeps what
//! is known of machines.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::model::host_name;
use crate::model::id::NodeName;

/// So many are remembered. The oldest makes room.
const TAKEN_MAX: usize = 1024;

/// The Nodes, and by which sign each went.
#[derive(Clone, Debug, Default)]
pub struct TakenAway {
    signs: BTreeMap<NodeName, Arc<str>>,
    /// The order in which they went.
    order: VecDeque<NodeName>,
}

impl TakenAway {
    /// It went.
    pub fn note(&mut self, node: NodeName, sign: Arc<str>) {
        self.forget(&node);
        if self.order.len() == TAKEN_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.signs.remove(&oldest);
        }
        self.order.push_back(node.clone());
        self.signs.insert(node, sign);
    }

    /// A Node of that name is there.
    pub fn forget(&mut self, node: &NodeName) {
        if self.signs.remove(node).is_some() {
            self.order.retain(|known| known != node);
        }
    }

    /// By which sign it went.
    pub fn sign(&self, node: &NodeName) -> Option<&Arc<str>> {
        self.signs.get(node)
    }

    /// The first of them that a machine of this name may have stood as.
    pub fn called<'a>(&'a self, machine: &'a str) -> Option<&'a NodeName> {
        host_name::of_host(&self.signs, machine).map(|(name, _)| name).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taken_nodes_are_found_by_either_name_until_they_are_back() {
        let mut taken = TakenAway::default();
        taken.note("a.example.com".into(), "drained".into());
        taken.note("b".into(), "drained".into());
        assert_eq!(taken.called("a"), Some(&"a.example.com".into()));
        assert_eq!(taken.called("b.example.com"), Some(&"b".into()));
        assert_eq!(taken.called("c"), None);
        taken.forget(&"b".into());
        assert_eq!((taken.called("b"), taken.sign(&"b".into())), (None, None));
    }

    #[test]
    fn oldest_taken_node_makes_room() {
        let mut taken = TakenAway::default();
        for number in 0..=TAKEN_MAX {
            taken.note(format!("n{number}").as_str().into(), "drained".into());
        }
        assert_eq!((taken.signs.len(), taken.order.len()), (TAKEN_MAX, TAKEN_MAX));
        assert!(taken.sign(&"n0".into()).is_none() && taken.sign(&"n1".into()).is_some());
    }
}
