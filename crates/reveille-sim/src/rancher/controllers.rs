//! What Rancher's controllers do between two moments: the syncer, the hook of a deletion, the planner.
//!
//! The syncer follows its own rules: a Node without a record that is not being deleted gets a mirror; a record without a
//! Node goes, if the syncer had adopted it. A record that is deleted goes when its hook has done its work; one that gets
//! its `rkeNode` is planned, and the cluster is busy meanwhile. Each may be late; two syncers mirror twice.

use reveille_core::model::id::{NodeName, NodeUid};
use reveille_core::model::time::Time;
use reveille_rancher::model::{Condition, Node, Record};

use super::world::{ADDRESS, SUBJECT, World, mirror, stamped};

impl World {
    /// It is this moment: enough has passed for every controller to have had its turn.
    pub fn settle(&mut self, now: Time) {
        self.now = now;
        if !self.lasts(self.spells.syncer_down) {
            self.sync();
        }
        self.finish_deletions();
        self.plan();
        let (from, to) =
            if self.lasts(self.spells.sibling_silent) { ("True", "Unknown") } else { ("Unknown", "True") };
        if self.spells.sibling_silent != Time::default() {
            let siblings = self.nodes.iter_mut().filter(|(name, _)| name.as_str() != SUBJECT);
            for (_, node) in siblings.filter(|(_, node)| node.ready == from) {
                to.clone_into(&mut node.ready);
            }
        }
        if !self.lasts(self.spells.records_stale) {
            self.stale = None;
        }
        self.version += 1;
    }

    fn sync(&mut self) {
        let is_known = |records: &Self, node: &Node| {
            records.records.values().any(|record| record.deleting.is_none() && record.is_of(node))
        };
        let missing: Vec<Node> = self.nodes.values().filter(|node| !is_known(self, node)).cloned().collect();
        let syncers = if self.lasts(self.spells.syncer_twice) { 2 } else { 1 };
        for node in missing {
            for _ in 0..syncers {
                self.mirrors_made += 1;
                let ip = node.internal_ips().first().copied().unwrap_or(ADDRESS).to_owned();
                let name = format!("machine-x{:04}", self.mirrors_made);
                let made = mirror(&name, node.name.as_str(), &ip, node.roles.clone());
                self.records.insert(made.name.clone(), made);
            }
        }
        let nodes: Vec<Node> = self.nodes.values().cloned().collect();
        let has_node = |record: &Record| nodes.iter().any(|node| record.is_of(node));
        for record in self.records.values_mut() {
            if record.is_synced && record.deleting.is_none() && !has_node(record) {
                record.deleting = stamped();
                // Seen by the hook at its next turn.
                record.revision.push('d');
            }
        }
    }

    /// A finalizer has done its work by the turn after the deletion.
    fn finish_deletions(&mut self) {
        if self.lasts(self.spells.hooks_late) {
            return;
        }
        self.records.retain(|_, record| record.deleting.is_none() || !record.finalizers.is_empty());
        for record in self.records.values_mut().filter(|record| record.deleting.is_some()) {
            record.finalizers.clear();
        }
    }

    fn plan(&mut self) {
        self.busy_for = self.busy_for.saturating_sub(1);
        let is_late = self.lasts(self.spells.planner_late) || !self.plans;
        let unplanned =
            self.records.values_mut().find(|record| record.rke_node.is_some() && !record.has_plan);
        if let Some(record) = unplanned.filter(|_| !is_late) {
            record.has_plan = true;
            self.busy_for = self.update_turns;
        }
        let is_busy = self.busy_for > 0 || self.lasts(self.spells.cluster_busy);
        let message = if is_busy && self.replaces_etcd {
            "Etcd plane nodes are replaced. Stopping provisioning.".to_owned()
        } else {
            String::new()
        };
        let status = if is_busy { "Unknown" } else { "True" }.to_owned();
        self.cluster
            .conditions
            .insert("Updated".to_owned(), Condition { status, message, ..Condition::default() });
    }

    /// The subject's kubelet is started: it makes its Node, if there is none.
    pub(super) fn start_kubelet(&mut self) {
        let name = NodeName::from(SUBJECT);
        if self.nodes.contains_key(&name) {
            return;
        }
        let Some(like) = self.nodes.values().next().cloned() else { return };
        self.version += 1;
        let uid = NodeUid::from(format!("uid-{SUBJECT}-{}", self.version).as_str());
        let addresses = super::world::addresses(ADDRESS);
        let back = Node { name: name.clone(), uid, addresses, unschedulable: false, ..like };
        self.nodes.insert(name, back);
        self.came_back = Some(self.now);
    }
}
