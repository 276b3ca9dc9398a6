//! Machines that are held because a person may have drained them: their Nodes went together or unwatched, or nothing tells
//! whether they ever had one.
//!
//! ```text
//!  a Node went so ─▶ insert ─────────────┐
//!  a life that nothing tells of ─▶ hold ─┴▶ held, until the machine has a Node again ─▶ remove
//!                                              └─ nodes: how many Nodes were lost, which counts for the next ones
//! ```
//!
//! The ledger keeps both kinds alike (`Record::LostTogether`): which it is follows from whether the machine had joined.

use std::collections::BTreeSet;

use crate::model::incident::MachineKey;

/// The machines.
#[derive(Clone, Debug, Default)]
pub struct LostNodes {
    held: BTreeSet<MachineKey>,
    /// Those of them that are not known to have had a Node.
    without_node: BTreeSet<MachineKey>,
}

impl LostNodes {
    /// Its Node went together with others, or unwatched. False where it was held already.
    pub fn insert(&mut self, machine: MachineKey) -> bool {
        self.without_node.remove(&machine);
        self.held.insert(machine)
    }

    /// Nothing tells whether it had a Node. False where it was held already.
    pub fn hold(&mut self, machine: MachineKey) -> bool {
        let is_new = self.held.insert(machine.clone());
        if is_new {
            self.without_node.insert(machine);
        }
        is_new
    }

    /// It is held no more. False where it was not.
    pub fn remove(&mut self, machine: &MachineKey) -> bool {
        self.without_node.remove(machine);
        self.held.remove(machine)
    }

    /// It is held.
    pub fn contains(&self, machine: &MachineKey) -> bool {
        self.held.contains(machine)
    }

    /// It is held, and its Node was lost.
    pub fn had_node(&self, machine: &MachineKey) -> bool {
        self.held.contains(machine) && !self.without_node.contains(machine)
    }

    /// How many Nodes were lost.
    pub fn nodes(&self) -> usize {
        self.held.len() - self.without_node.len()
    }

    /// All that are held, in order.
    pub fn iter(&self) -> impl Iterator<Item = &MachineKey> {
        self.held.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_without_a_node_are_held_and_no_lost_nodes() {
        let machine = |id: &str| MachineKey::Instance("c".into(), id.into());
        let mut lost = LostNodes::default();
        assert!(lost.insert(machine("a")) && lost.hold(machine("b")) && !lost.hold(machine("a")));
        assert_eq!((lost.nodes(), lost.iter().count()), (1, 2));
        assert!(
            lost.had_node(&machine("a")) && !lost.had_node(&machine("b")) && lost.contains(&machine("b"))
        );
        // It turns out that it had one.
        assert!(!lost.insert(machine("b")));
        assert_eq!(lost.nodes(), 2);
        assert!(lost.remove(&machine("a")) && !lost.remove(&machine("a")));
        assert_eq!((lost.nodes(), lost.iter().count()), (1, 1));
    }
}
