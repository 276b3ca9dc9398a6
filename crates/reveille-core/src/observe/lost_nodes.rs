//! Machines that are held because a person may have drained them: their Nodes went together or unwatched, or nothing tells
//! whether they ever had one.
//!
//! ```text
//!  Nodes went together ─▶ insert ────────────────┐
//!  by itself, and no watch told ─▶ insert_alone ─┤
//!  a life that nothing tells of ─▶ hold ─────────┴▶ held, until the machine has a Node again ─▶ remove
//!                                              └─ together: how many Nodes were lost so, which counts for the next ones
//! ```
//!
//! The ledger keeps all kinds alike (`Record::LostTogether`): whether it had a Node follows from whether the machine had joined,
//! and one that stands in a record by itself went by itself.

use std::collections::BTreeSet;

use crate::model::incident::MachineKey;

/// The machines.
#[derive(Clone, Debug, Default)]
pub struct LostNodes {
    held: BTreeSet<MachineKey>,
    /// Those of them that are not known to have had a Node.
    without_node: BTreeSet<MachineKey>,
    /// Those whose Node went by itself: each counts as one that is missing, and not as part of a loss of many.
    alone: BTreeSet<MachineKey>,
}

impl LostNodes {
    /// Its Node went together with others, or unwatched. False where it was held already.
    pub fn insert(&mut self, machine: MachineKey) -> bool {
        self.without_node.remove(&machine);
        self.alone.remove(&machine);
        self.held.insert(machine)
    }

    /// No watch saw its Node go, and others are there. False where it was held already.
    pub fn insert_alone(&mut self, machine: MachineKey) -> bool {
        let is_new = self.held.insert(machine.clone());
        if is_new {
            self.alone.insert(machine);
        }
        is_new
    }

    /// The ledger names it by itself.
    pub fn set_alone(&mut self, machine: &MachineKey) {
        if self.had_node(machine) {
            self.alone.insert(machine.clone());
        }
    }

    /// It is held, and its Node went by itself.
    pub fn went_alone(&self, machine: &MachineKey) -> bool {
        self.alone.contains(machine)
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
        self.alone.remove(machine);
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

    /// How many of them went together.
    pub fn together(&self) -> usize {
        self.nodes() - self.alone.len()
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
