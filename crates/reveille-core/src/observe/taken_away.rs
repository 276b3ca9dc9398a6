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
use crate::model::time::Time;

/// So many are remembered. The oldest makes room.
const TAKEN_MAX: usize = 1024;

/// The Nodes that went.
#[derive(Clone, Debug, Default)]
pub struct TakenAway {
    taken: BTreeMap<NodeName, Taken>,
    /// The order in which they went.
    order: VecDeque<NodeName>,
}

#[derive(Clone, Debug)]
struct Taken {
    sign: Arc<str>,
    /// When the Node had come into sight.
    came_at: Time,
}

impl TakenAway {
    /// It went by this sign, and had come into sight then.
    pub fn note(&mut self, node: NodeName, sign: Arc<str>, came_at: Time) {
        self.forget(&node);
        if self.order.len() == TAKEN_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.taken.remove(&oldest);
        }
        self.order.push_back(node.clone());
        self.taken.insert(node, Taken { sign, came_at });
    }

    /// A Node of that name is there.
    pub fn forget(&mut self, node: &NodeName) {
        if self.taken.remove(node).is_some() {
            self.order.retain(|known| known != node);
        }
    }

    /// By which sign it went.
    pub fn sign(&self, node: &NodeName) -> Option<&Arc<str>> {
        self.taken.get(node).map(|taken| &taken.sign)
    }

    /// The first of them that a machine of this name may have stood as, of those that came into sight later than this, where it
    /// is known since when there was such a machine: one that was there before was a namesake's.
    pub fn called<'a>(&'a self, machine: &'a str, since: Option<Time>) -> Option<&'a NodeName> {
        let mut taken = host_name::of_host(&self.taken, machine);
        let is_its = |taken: &Taken| since.is_none_or(|since| taken.came_at > since);
        taken.find(|(_, taken)| is_its(taken)).map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(min: i64) -> Time {
        Time::from_ms(min * 60_000)
    }

    #[test]
    fn taken_node_that_was_there_before_the_machine_was_a_namesakes() {
        let mut taken = TakenAway::default();
        taken.note("a".into(), "drained".into(), at(5));
        assert_eq!(taken.called("a", Some(at(5))), None);
        assert_eq!(taken.called("a", Some(at(4))), Some(&"a".into()));
    }

    #[test]
    fn taken_nodes_are_found_by_either_name_until_they_are_back() {
        let mut taken = TakenAway::default();
        taken.note("a.example.com".into(), "drained".into(), at(5));
        taken.note("b".into(), "drained".into(), at(5));
        assert_eq!(taken.called("a", None), Some(&"a.example.com".into()));
        assert_eq!(taken.called("b.example.com", None), Some(&"b".into()));
        assert_eq!(taken.called("c", None), None);
        taken.forget(&"b".into());
        assert_eq!((taken.called("b", None), taken.sign(&"b".into())), (None, None));
    }

    #[test]
    fn oldest_taken_node_makes_room() {
        let mut taken = TakenAway::default();
        for number in 0..=TAKEN_MAX {
            taken.note(format!("n{number}").as_str().into(), "drained".into(), at(5));
        }
        assert_eq!((taken.taken.len(), taken.order.len()), (TAKEN_MAX, TAKEN_MAX));
        assert!(taken.sign(&"n0".into()).is_none() && taken.sign(&"n1".into()).is_some());
    }
}
