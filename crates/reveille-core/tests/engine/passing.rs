//! How time passes for a fixture: what a step of ten seconds brings, as in production.

use std::collections::BTreeSet;

use reveille_core::event::{ClusterFact, Event};
use reveille_core::model::id::{NodeName, NodeUid};
use reveille_core::model::time::Span;

use super::fixture::Field;

impl Field {
    /// Lets time pass in steps of ten seconds, with listings, leases and proofs of life as in production.
    pub fn run(&mut self, span: Span) {
        let end = self.now + span;
        while self.now < end {
            self.now = self.now + Span::from_s(10);
            self.lists();
        }
    }

    /// Runs until it is so, for this long at most.
    pub fn run_until(&mut self, within: Span, is_so: impl Fn(&Self) -> bool) {
        let end = self.now + within;
        while !is_so(self) && self.now < end {
            self.run(Span::from_s(10));
        }
    }

    pub fn lists(&mut self) {
        self.hear_agents();
        if (self.now.ms / 10_000) % 3 == 0 {
            self.list_cloud();
        }
        if !self.lists_alone {
            self.tell_gone();
        }
        self.sync_nodes();
        self.list_leases();
        self.feed(Event::Cluster(ClusterFact::Alive));
        self.assert_next_process_knows_the_same();
    }

    /// Lets time pass as [`Field::run`] does, but lists no nodes: a watch that has nothing to tell only proves that it lives.
    pub fn watch_for(&mut self, span: Span) {
        let end = self.now + span;
        while self.now < end {
            self.now = self.now + Span::from_s(10);
            self.hear_agents();
            if (self.now.ms / 10_000) % 3 == 0 {
                self.list_cloud();
            }
            self.list_leases();
            self.feed(Event::Cluster(ClusterFact::Alive));
        }
    }

    /// The watch tells which Nodes went since they were listed.
    fn tell_gone(&mut self) {
        let there: BTreeSet<&NodeUid> = self.nodes.values().map(|node| &node.uid).collect();
        let is_gone = |(_, uid): &(NodeName, NodeUid)| !there.contains(uid);
        let gone: Vec<_> = self.shown.iter().filter(|it| is_gone(it)).cloned().collect();
        for (name, uid) in gone {
            self.feed(Event::Cluster(ClusterFact::Deleted { name, uid }));
        }
    }
}
