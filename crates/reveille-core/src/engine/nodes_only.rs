//! Nodes that no listed instance explains: an instance that the cloud denied leaves an orphaned Node (ghost), and an
//! instance without our mark is not ours.
//!
//! ```text
//!  node, not Ready, no link ─▶ its instance is asked for by id ─┬─ denied twice by each cloud ─▶ ghost
//!                                                             ├─ there, no mark ─▶ told as unmarked, or asked again much later
//!                                                             └─ not answered ──▶ asked again
//! ```
//!
//! `plan` decides what to do about an orphaned Node, as about everything else.

use std::sync::Arc;

use crate::diagnose::{faults, hosting};
use crate::effect::Look;
use crate::model::id::{CloudName, InstanceId, NodeName};
use crate::model::incident::{MachineKey, Subject};
use crate::model::node::{Provider, Ready};
use crate::model::time::{Span, Time};
use crate::observe::cloud::Unlisted;

use super::cases::Blind;
use super::{LookFor, State, Wake};

/// The longest wait where no cloud's answer can be read. A client that may create Nodes may write a providerID that names
/// something else than an instance (`openstack:///detail`); asked for each ten seconds, each such Node cost 360 reads an hour.
const UNREAD_AGAIN: Span = Span::from_min(15);

/// How often a machine is asked for that is there and carries no mark of ours. Whether it is gone is not urgent: it may be of
/// another roster. Asked for each ten seconds, as long as its node was not Ready, it cost 360 reads an hour.
const ANOTHERS_AGAIN: Span = Span::from_min(90);

impl State {
    /// The cluster's mark is the one by which every program knows it. Machines of another roster of this cluster carry that
    /// mark too; where each roster has marks of its own, a machine without ours may be of another roster.
    fn shares_its_mark(&self) -> bool {
        self.roster.pools.values().any(|pool| pool.owned.cluster.is_known_to_all())
    }

    /// A node without a known instance: ours only if its instance was, and a ghost only if its id is denied.
    pub(super) fn judge_node_only(&mut self, key: &MachineKey, name: &NodeName) {
        let mut faults = Vec::new();
        let listed = self.clouds.values().all(|view| view.is_known(self.now));
        let found = self.cluster.nodes.get(name);
        let unlinked = found.filter(|seen| seen.link.is_none() && seen.node.ready != Ready::True);
        if unlinked.is_some() && !listed {
            // A dead kubelet changes its Node no more: it is judged again when the last cloud has been listed.
            self.unsure.insert(key.clone());
        }
        // Where no list has shown its machine since the restart, this is all that is known of that.
        let ids = found.into_iter().flat_map(|seen| seen.node.named_instances());
        let of = |id: &InstanceId, cloud: &CloudName| MachineKey::Instance(cloud.clone(), id.clone());
        let machines = ids.flat_map(|id| self.roster.clouds.iter().map(move |cloud| of(id, cloud)));
        let unseen: Vec<MachineKey> =
            machines.filter(|key| self.out_of_sight.unseen().contains_key(key)).collect();
        self.dirty.extend(unseen);
        let unlinked = unlinked.filter(|_| listed).cloned();
        if let Some(seen) = unlinked
            && let Provider::Instance(id) = &seen.node.provider
        {
            let denials = seen.denials(&self.roster.clouds);
            if seen.unmarked && denials == 0 && self.shares_its_mark() {
                faults.push(hosting::unmarked(name, id, self.now));
            } else if denials >= Unlisted::DENIALS {
                faults.push(faults::ghost_without_memory(name, id, denials, self.now));
            } else {
                // One that is being deleted may stay so for ever.
                let later = Unlisted::APART.doubled(seen.found, ANOTHERS_AGAIN);
                let again = if seen.unmarked { ANOTHERS_AGAIN } else { later };
                self.ask_for_namesakes(name, id, seen.last_answer, again);
                self.timers.set(self.now + again, Wake::Machine(key.clone()));
            }
        }
        let label: Arc<str> = name.shared();
        let blind = if self.cluster.source.trust(self.now).is_given() { Blind::No } else { Blind::Yes };
        self.settle_cases(&Subject::Machine(key.clone()), faults, blind, label, None);
    }

    fn ask_for_namesakes(
        &mut self,
        name: &NodeName,
        id: &InstanceId,
        last_answer: Option<Time>,
        again: Span,
    ) {
        if last_answer.is_some_and(|last| self.now.since(last) < again) {
            return;
        }
        // All clouds wait for the one that fails: a denial counts only where every cloud denies.
        let failed = self.clouds.values().filter_map(|view| view.failed_reads(id));
        if failed.map(|it| it.again(Unlisted::APART, UNREAD_AGAIN)).max().is_some_and(|at| self.now < at) {
            return;
        }
        for cloud in self.roster.clouds.clone() {
            // Another Node of the machine may ask at this moment. That the machine is there is told to both; that it is not
            // counts for the other alone, which asks no more once it is a ghost.
            if !self.reads.is_asked_as_namesake(&cloud, id) {
                let purpose = LookFor::Namesake(cloud.clone(), id.clone(), name.clone());
                self.reads.ask(Look::Instance(cloud, id.clone()), purpose);
            }
        }
    }
}
