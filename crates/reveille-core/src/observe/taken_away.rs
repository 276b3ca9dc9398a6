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
use crate::model::time::{Span, Time};

/// So many are remembered. The oldest makes room, of those first that were never Ready.
const TAKEN_MAX: usize = 1024;

/// The Nodes that went.
#[derive(Clone, Debug, Default)]
pub struct TakenAway {
    taken: BTreeMap<NodeName, Taken>,
    /// The order in which those went that had been Ready once.
    order: VecDeque<NodeName>,
    /// That of all others. A client that makes cordoned Nodes and deletes them pushed out the drain of a machine that had served.
    order_unserved: VecDeque<NodeName>,
    /// How many short lives were told since when.
    told: (Time, u32),
}

/// So many in so long.
const TOLD_MAX: u32 = 60;
const TOLD_WITHIN: Span = Span::from_min(10);

#[derive(Clone, Debug)]
struct Taken {
    sign: Arc<str>,
    /// When the Node had come into sight.
    came_at: Time,
    /// It was Ready once.
    served: bool,
}

impl TakenAway {
    /// It went by this sign, and had come into sight then; `served`: it was Ready once.
    pub fn note(&mut self, node: NodeName, sign: Arc<str>, came_at: Time, served: bool) {
        self.forget(&node);
        if self.taken.len() == TAKEN_MAX {
            let made_up = self.order_unserved.pop_front();
            if let Some(oldest) = made_up.or_else(|| self.order.pop_front()) {
                self.taken.remove(&oldest);
            }
        }
        let order = if served { &mut self.order } else { &mut self.order_unserved };
        order.push_back(node.clone());
        self.taken.insert(node, Taken { sign, came_at, served });
    }

    /// Whether one more Node that was there for a moment may be told of: so many machines join and lose theirs at once where a
    /// cloud controller does not know them yet.
    pub fn may_tell(&mut self, now: Time) -> bool {
        let (since, told) = &mut self.told;
        if now < *since || now.since(*since) > TOLD_WITHIN {
            (*since, *told) = (now, 0);
        }
        *told += 1;
        *told <= TOLD_MAX
    }

    /// A Node of that name is there.
    pub fn forget(&mut self, node: &NodeName) {
        if let Some(taken) = self.taken.remove(node) {
            let order = if taken.served { &mut self.order } else { &mut self.order_unserved };
            order.retain(|known| known != node);
        }
    }

    /// By which sign it went.
    pub fn sign(&self, node: &NodeName) -> Option<&Arc<str>> {
        self.taken.get(node).map(|taken| &taken.sign)
    }

    /// The first of them that a machine of this name may have stood as, by when they had come into sight: one that was there
    /// before the machine was made was a namesake's.
    pub fn called<'a>(&'a self, machine: &'a str, may_be_its: impl Fn(Time) -> bool) -> Option<&'a NodeName> {
        let mut taken = host_name::of_host(&self.taken, machine);
        taken.find(|(_, taken)| may_be_its(taken.came_at)).map(|(name, _)| name)
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
        taken.note("a".into(), "drained".into(), at(5), true);
        assert_eq!(taken.called("a", |came_at| came_at > at(5)), None);
        assert_eq!(taken.called("a", |came_at| came_at > at(4)), Some(&"a".into()));
    }

    #[test]
    fn taken_nodes_are_found_by_either_name_until_they_are_back() {
        let mut taken = TakenAway::default();
        taken.note("a.example.com".into(), "drained".into(), at(5), true);
        taken.note("b".into(), "drained".into(), at(5), true);
        assert_eq!(taken.called("a", |_| true), Some(&"a.example.com".into()));
        assert_eq!(taken.called("b.example.com", |_| true), Some(&"b".into()));
        assert_eq!(taken.called("c", |_| true), None);
        taken.forget(&"b".into());
        assert_eq!((taken.called("b", |_| true), taken.sign(&"b".into())), (None, None));
    }

    #[test]
    fn oldest_taken_node_makes_room() {
        let mut taken = TakenAway::default();
        for number in 0..=TAKEN_MAX {
            taken.note(format!("n{number}").as_str().into(), "drained".into(), at(5), true);
        }
        assert_eq!((taken.taken.len(), taken.order.len()), (TAKEN_MAX, TAKEN_MAX));
        assert!(taken.sign(&"n0".into()).is_none() && taken.sign(&"n1".into()).is_some());
    }
}
