//! Node lists that lack many Nodes: the engine's side of the doubt in `observe::cluster::nodes_listed`.
//!
//! ```text
//!  a list, a node, a listing of a cloud ─▶ review_node_list ─▶ judge_list ─┬▶ names to ask for ─▶ on_lost_answer ─▶ review …
//!                                                                         └▶ believed: which went together ─▶ ledger
//! ```
//!
//! `observe::cluster::nodes_listed` says what a list means; `plan::interlock` says which repairs it blocks.

use crate::effect::{Look, ReadError};
use crate::event::Answer;
use crate::model::id::{CloudName, InstanceId, NodeName};
use crate::model::incident::{FaultKind, IncidentKey, MachineKey, Subject};
use crate::model::time::Time;
use crate::observe::cluster::ClusterChange;
use crate::observe::cluster::nodes_listed::Fleet;
use crate::record::Record;
use crate::safeguard::{Safeguard, stands};

use super::{JOINED_MAX, LookFor, State};

impl State {
    /// A cloud was listed: what its machines are may contradict a list of nodes that came earlier.
    pub(super) fn review_node_list_beside(&mut self, cloud: &CloudName) {
        if !self.cluster.awaits_judgement() {
            return;
        }
        if self.cluster.source.doubted().is_none() && !stands(Safeguard::JudgedAgain) {
            return;
        }
        self.count_nodes();
        let believed = self.cluster.source.trust(self.now).is_given();
        self.review_node_list();
        if believed && !self.cluster.source.trust(self.now).is_given() {
            let ids = self.clouds.get(cloud).map(|view| view.instances.keys().cloned().collect());
            let ids: Vec<InstanceId> = ids.unwrap_or_default();
            self.mark(cloud, ids);
        }
    }

    /// How many machines have a Node before a list is judged.
    pub(super) fn count_nodes(&mut self) {
        self.cluster.count_linked(Fleet { clouds: &self.clouds, timing: self.roster.timing });
    }

    /// The meaning of the last Node list may have changed.
    pub(super) fn review_node_list(&mut self) {
        if self.cluster.awaits_judgement() {
            let change = self.judge_nodes();
            self.after_cluster_change(change);
        }
    }

    /// How many machines are without their Node already: the next list is held against them as well. Those that are known to
    /// have gone together are no sign of more.
    pub(super) fn count_missing_nodes(&mut self) {
        let lost = &self.cluster.lost_together;
        let went_alone = |machine: &MachineKey| !lost.contains(machine) || lost.went_alone(machine);
        let is_single = |key: &&IncidentKey| self.whose_node_went(key).is_some_and(went_alone);
        self.cluster.missing_before = self.incidents.open().keys().filter(is_single).count();
    }

    /// The machine of this incident, where the Node that it joined as went. One that serves in an error state, or for which a
    /// left-over Node stands as well, has an incident of another name: it was deleted when its Node had gone with those of twenty
    /// others (4400021).
    fn whose_node_went<'a>(&self, key: &'a IncidentKey) -> Option<&'a MachineKey> {
        let Subject::Machine(machine) = &key.subject else { return None };
        let is_without = || {
            let seen = self.context().seen(machine).map(|(_, seen)| seen);
            seen.is_some_and(|seen| seen.joined.as_ref().is_some_and(|name| !seen.nodes.contains(name)))
        };
        let went = match key.kind {
            FaultKind::Vanished => true,
            FaultKind::Errored | FaultKind::NotReady => is_without(),
            _ => false,
        };
        went.then_some(machine)
    }

    pub(super) fn judge_nodes(&mut self) -> ClusterChange {
        let fleet = Fleet { clouds: &self.clouds, timing: self.roster.timing };
        let change = self.cluster.judge_list(self.now, fleet);
        for name in self.cluster.names_to_ask(self.now, fleet) {
            self.reads.ask(Look::Node(name.clone()), LookFor::Lost(name));
        }
        change
    }

    /// A node that a doubted list lacks was asked for by name.
    pub(super) fn on_lost_answer(
        &mut self,
        name: &NodeName,
        answer: &Result<Answer, ReadError>,
        asked_at: Time,
    ) {
        match answer {
            Ok(Answer::Node(None)) => self.cluster.node_denied(asked_at, name),
            Ok(Answer::Node(Some(_))) => self.cluster.node_found(self.now, name),
            _ => return,
        }
        self.review_node_list_after_one();
    }

    /// One node is told, by the watch or by its name.
    pub(super) fn review_node_list_after_one(&mut self) {
        if self.cluster.may_mean_more() {
            self.review_node_list();
        }
    }

    /// One more Node went while many are lost together: a store that is restored once more, and no fault of this machine for
    /// all that is known.
    pub(super) fn note_lost_with_others(&mut self, key: &IncidentKey) {
        let Some(machine) = self.whose_node_went(key) else { return };
        let lost = self.cluster.lost_together.together();
        if lost <= self.roster.timing.may_lack(self.cluster.linked_nodes() + lost) {
            return;
        }
        if self.cluster.lost_together.insert(machine.clone()) {
            self.outbox.record(Record::LostTogether { at: self.now, machines: vec![machine.clone()] });
        }
    }

    /// Nodes went together. Those that went before, in a list that lacked too few to be doubted, and are not back, went with
    /// them: a store that is restored twice, or a watch that tells the first of many.
    pub(super) fn note_lost_together(&mut self, mut machines: Vec<MachineKey>) {
        if machines.is_empty() {
            return;
        }
        let went = self.incidents.open().keys().filter_map(|key| self.whose_node_went(key)).cloned();
        for machine in went.collect::<Vec<_>>() {
            if self.cluster.lost_together.insert(machine.clone()) {
                machines.push(machine);
            }
        }
        for machines in machines.chunks(JOINED_MAX) {
            self.outbox.record(Record::LostTogether { at: self.now, machines: machines.to_vec() });
        }
    }
}
