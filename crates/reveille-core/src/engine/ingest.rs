//! Takes events into views: it takes in what the cluster and the clouds say, and marks machines that changed as dirty. `links`
//! says which machine a Node stands for.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::effect::{Effect, Look};
use crate::event::{CloudFact, CloudSnapshot, ClusterFact, Scope};
use crate::model::id::{CloudName, InstanceId, NodeName};
use crate::model::incident::{IncidentKey, MachineKey, Subject};
use crate::model::node::{Provider, Ready};
use crate::model::time::Span;
use crate::observe::cloud::{CloudChange, CloudView, NodeOf, Seen};
use crate::observe::cluster::{ClusterChange, ClusterView, NodeSeen};
use crate::observe::remembered::Remembered;
use crate::record::Record;
use crate::safeguard::{Safeguard, stands};

use super::{AskedInFull, LookFor, State};

impl State {
    pub(super) fn on_cloud(&mut self, name: &CloudName, fact: CloudFact) {
        match fact {
            CloudFact::Failed(error) => {
                if let Some(view) = self.clouds.get_mut(name) {
                    view.source.failed(self.now, error);
                }
            }
            CloudFact::Snapshot { snapshot, took } => self.on_snapshot(name, &snapshot, took),
        }
    }

    fn on_snapshot(&mut self, name: &CloudName, snapshot: &CloudSnapshot, took: Span) {
        let Some(mut view) = self.clouds.remove(name) else { return };
        let trusted_before = view.source.trust(self.now).is_given();
        let silent_after = self.roster.timing.lease_silent_after;
        let (cluster, now) = (&self.cluster, self.now);
        // Needed only where a listing lacks a machine, which is rare.
        let shown = OnceCell::new();
        let node_of = |id: &InstanceId| {
            let shown = shown.get_or_init(|| nodes_of_instances(cluster, silent_after, name));
            shown.get(id).copied().unwrap_or(NodeOf::None)
        };
        let unseen = self.out_of_sight.unseen_in(name);
        let first = !view.listed_once();
        let change = view.apply(&self.roster, now, now - took, snapshot, &unseen, &node_of);
        let same = !change.network;
        let trusted = view.source.trust(now).is_given();
        self.clouds.insert(name.clone(), view);
        self.remember_joined(name);
        self.give_back_unseen(name);
        if first && self.resumed {
            self.note_made_meanwhile(name);
        }
        self.bind_pauses_of(name, &change.touched);
        self.doubt_lives(name, &change.touched);
        self.begin_access(name);
        self.locate_operations();
        self.after_cloud_change(name, change);
        // Also by a list of changes: the only machine with the new image may be gone by the next full one (seed 3436907).
        self.review_rollouts(name);
        match snapshot.scope {
            Scope::Full => {
                self.ask_for_the_unlisted(name);
                self.review_fates(name);
            }
            // Only a full listing can end a doubt; until its period comes round, everything would stand still.
            Scope::Changes if !trusted => self.ask_in_full(name),
            Scope::Changes => {}
        }
        if trusted {
            self.asked_in_full.remove(name);
        }
        if trusted != trusted_before || !self.unsure.is_empty() {
            self.dirty.append(&mut self.unsure);
        }
        if !(same && trusted && self.settled_projects.contains(name)) {
            self.dirty_projects.insert(name.clone());
        }
        // A next hop of the router may be in any of the clouds.
        if let Some((router_in, _)) = &self.roster.network.router
            && router_in != name
            && !(same && self.routes.dead_since().is_empty())
        {
            self.dirty_projects.insert(router_in.clone());
        }
        self.review_node_list_beside(name);
    }

    /// Asks for a full listing at once, and for the next ones later and later: a cloud whose listings cannot be believed is in
    /// trouble already. Asked at each listing of changes, one doubt made 286 listings in 599 s instead of 20.
    fn ask_in_full(&mut self, name: &CloudName) {
        let timing = self.roster.timing;
        let (now, last) = (self.now, self.asked_in_full.get(name).copied());
        let wait = |asked: AskedInFull| {
            timing.cloud_period.doubled(asked.times, timing.cloud_full_period.max(timing.cloud_period))
        };
        // The clock may have gone back behind the last request: then there is no wait.
        let waits = |asked: AskedInFull| asked.at <= now && now.since(asked.at) < wait(asked);
        if last.is_some_and(waits) && stands(Safeguard::AsksInFullSeldom) {
            return;
        }
        let times = last.map_or(0, |asked| asked.times).saturating_add(1);
        self.asked_in_full.insert(name.clone(), AskedInFull { at: now, times });
        self.outbox.push(Effect::List { cloud: name.clone() });
    }

    pub(super) fn after_cloud_change(&mut self, name: &CloudName, change: CloudChange) {
        change.disowned.iter().for_each(|former| self.let_go_of_nodes(former));
        let key_of = |former: &Seen| MachineKey::Instance(name.clone(), former.instance.id.clone());
        self.disown(change.disowned.iter().map(|former| (key_of(former), Remembered::of(former))).collect());
        for former in &change.disowned {
            former.joined.iter().for_each(|node| self.note_heir(node));
        }
        for id in change.leaving {
            self.note_foreign(&MachineKey::Instance(name.clone(), id));
        }
        self.ask_for_missing(name, change.ask);
        self.relink_hinted(name, &change.touched);
        if change.touched.is_empty() {
            return;
        }
        let weakly: Vec<NodeName> = change
            .touched
            .iter()
            .filter_map(|id| self.clouds.get(name).and_then(|view| view.instances.get(id)))
            .flat_map(|seen| seen.nodes.iter().cloned())
            .collect();
        for node in weakly {
            self.relink(&node);
            // What its own instance has as well, is no sign that it runs on another one.
            self.mark_sharing(&node);
        }
        self.relink_agents();
        self.note_born(name, &change.touched);
        for id in &change.touched {
            for node in self.cluster.with_uuid(id).to_vec() {
                self.note_adopted(&node);
                self.mark_node(&node);
            }
        }
        self.mark(name, change.touched);
    }

    /// Of a pool's machine that was made in sight and has not joined, the next process knows that, too, however soon it begins:
    /// one that is built meanwhile would never be replaced. One that came late, while the nodes are not seen, may turn out to be
    /// drained when they are.
    fn note_born(&mut self, cloud: &CloudName, touched: &BTreeSet<InstanceId>) {
        let sees_nodes = self.cluster.source.trust(self.now).is_given();
        let Some(view) = self.clouds.get_mut(cloud) else { return };
        let mut born = Vec::new();
        for id in touched {
            let Some(seen) = view.instances.get_mut(id) else { continue };
            let is_known = seen.born_kept || seen.joined.is_some() || seen.pool().is_none();
            let is_sure = sees_nodes || !seen.came_late;
            if seen.is_known_since_birth() && is_sure && !is_known {
                seen.born_kept = true;
                born.push((seen.known_since, MachineKey::Instance(cloud.clone(), id.clone())));
            }
        }
        for (at, machine) in born {
            self.outbox.record(Record::Born { at, machine });
        }
    }

    pub(super) fn on_cluster(&mut self, fact: ClusterFact) {
        if self.refuses(&fact) {
            return;
        }
        let now = self.now;
        let trusted_before = self.cluster.source.trust(now).is_given();
        match fact {
            ClusterFact::Identity(cluster) => self.on_identity(cluster),
            ClusterFact::IdentityUnread(error) => self.cluster.identity.fail(error.text),
            ClusterFact::Synced(list) => {
                self.count_missing_nodes();
                self.count_nodes();
                let first = !self.cluster.synced_once();
                let replaced = self.replaced_in(&list);
                let mut change = self.cluster.sync(now, &list);
                let is_after_gap = self.is_long_unseen();
                self.note_list_seen(first, &replaced);
                // Judged before the new nodes are linked: one that took the place of a lost one finds it gone.
                let judged = self.judge_nodes();
                self.note_list_judged();
                change.removed.extend(judged.removed);
                change.lost_together.extend(judged.lost_together);
                change.applied.retain(|name| self.cluster.nodes.contains_key(name));
                self.after_cluster_change(change);
                // Where no cloud has shown a machine since the restart, its Node is all that is known of it.
                self.dirty.extend(self.out_of_sight.unseen().keys().cloned());
                if is_after_gap {
                    self.doubt_births();
                }
                self.review_node_list();
                for cloud in self.roster.clouds.clone() {
                    if first {
                        self.ask_for_the_unseen(&cloud);
                    }
                    self.review_rollouts(&cloud);
                }
            }
            ClusterFact::Applied(node) => {
                let mut change = ClusterChange::default();
                self.cluster.apply(now, &node, &mut change);
                self.note_is_there(&node.name);
                self.cluster.is_alive(now);
                self.after_cluster_change(change);
                self.review_node_list_after_one();
            }
            ClusterFact::Deleted { name, uid } => {
                let mut change = ClusterChange::default();
                self.cluster.delete(&name, &uid, &mut change);
                self.note_told_gone(&change.removed);
                self.cluster.is_alive(now);
                self.after_cluster_change(change);
            }
            ClusterFact::Leases(list) => {
                let (clouds, remembered) = (&self.clouds, self.out_of_sight.unseen());
                // Needed only where a list lacks a lease that has no Node, which is rare.
                let joined = OnceCell::new();
                let is_machine = |name: &NodeName| is_name_of_machine(clouds, remembered, &joined, name);
                let are_listed = clouds.values().all(CloudView::listed_once);
                if self.cluster.leases(now, &self.roster.timing, list, are_listed, is_machine) {
                    self.review_silent();
                    self.review_unproved();
                }
            }
            ClusterFact::NodeEvent(event) => {
                let name = event.node.clone();
                self.cluster.remember(now, event);
                self.mark_former(&name);
            }
            ClusterFact::Alive => {
                self.cluster.is_alive(now);
                self.note_watch_current();
                self.review_unproved();
            }
            ClusterFact::Failed(error) => self.cluster.source.failed(now, error),
        }
        if !trusted_before && self.cluster.source.trust(now).is_given() {
            self.dirty.append(&mut self.unsure);
        }
    }

    /// A watch event alone never makes the first sight: only a complete list does.
    pub(super) fn after_cluster_change(&mut self, change: ClusterChange) {
        if !(change.applied.is_empty() && change.removed.is_empty()) {
            self.settled_projects.clear();
        }
        self.note_lost_together(change.lost_together);
        for gone in change.removed {
            let sharing = self.context().views().machines_of(&gone);
            self.dirty.extend(sharing);
            self.unlink(&gone);
        }
        // A machine that shared the identity that this Node had before is contested no more. Two patches within a millisecond
        // left a dead one judged as a duplicate until a restart.
        for before in &change.moved {
            let sharing = self.context().views().machines_of(before);
            self.dirty.extend(sharing);
        }
        for name in &change.applied {
            self.taken_away.forget(name);
            self.relink(name);
            self.note_joined(name);
            self.note_adopted(name);
            self.mark_node(name);
            self.mark_sharing(name);
        }
        self.relink_shaken();
        self.note_signs_out_of_sight(&change.applied);
    }

    /// An intent that a restart took over counts where its machine is, as soon as that is known.
    fn locate_operations(&mut self) {
        let lost = self.book.operations.iter().filter(|(_, operation)| {
            operation.domain.is_none() && operation.repair_step.class().is_destructive()
        });
        let found: Vec<_> = lost
            .filter_map(|(intent, operation)| {
                Some((*intent, self.domain_of(self.incidents.get(&operation.key)?)?))
            })
            .collect();
        for (intent, domain) in found {
            if let Some(operation) = self.book.operations.get_mut(&intent) {
                operation.domain = Some(domain);
            }
        }
    }

    /// Incidents of the ledger whose machine no listing has shown since the restart: it went meanwhile, or is listed late.
    /// Nothing else would ever ask for it, because no view holds it.
    fn ask_for_the_unlisted(&mut self, cloud: &CloudName) {
        let Some(view) = self.clouds.get(cloud) else { return };
        let unlisted = |key: &IncidentKey| match &key.subject {
            Subject::Machine(machine @ MachineKey::Instance(name, id)) => {
                let known =
                    view.instances.contains_key(id) || self.out_of_sight.unseen().contains_key(machine);
                (name == cloud && !known).then(|| id.clone())
            }
            _ => None,
        };
        let ids: BTreeSet<InstanceId> = self.incidents.open().keys().filter_map(unlisted).collect();
        self.ask_for_missing(cloud, ids);
    }

    /// What the ledger knows and the first listing lacked was asked for at once, and an answer that came before the first list of
    /// nodes could not be used. Now it can: others may have deleted it a moment ago, and be at work on more.
    fn ask_for_the_unseen(&mut self, cloud: &CloudName) {
        let Some(view) = self.clouds.get(cloud).filter(|view| view.listed_once()) else { return };
        let mut ids = self.out_of_sight.unseen_in(cloud);
        ids.retain(|id| !view.instances.contains_key(id));
        self.ask_for_missing(cloud, ids);
    }

    /// Asks the cloud by id for what no listing shows. Where such a read failed, it is repeated later and later.
    fn ask_for_missing(&mut self, cloud: &CloudName, ids: impl IntoIterator<Item = InstanceId>) {
        for id in ids {
            if self.clouds.get(cloud).is_some_and(|view| view.may_ask(self.now, &id)) {
                self.reads
                    .ask(Look::Instance(cloud.clone(), id.clone()), LookFor::Missing(cloud.clone(), id));
            }
        }
    }

    /// An event about a node that is no more concerns the machine that it stood for.
    fn mark_former(&mut self, name: &NodeName) {
        for (cloud, view) in &self.clouds {
            let former = |id: &&InstanceId| view.instances.contains_key(*id);
            for id in view.named(name.as_str()).iter().filter(former) {
                self.dirty.insert(MachineKey::Instance(cloud.clone(), id.clone()));
            }
        }
        self.dirty.extend(self.incidents.joined_as(name).cloned());
    }

    /// A pool that got another image or kubelet version lately is rolling.
    fn review_rollouts(&mut self, cloud: &CloudName) {
        let Some(view) = self.clouds.get(cloud) else { return };
        // Versions are told by nodes: before they are known, every one of them would turn up as a change.
        if self.cluster.synced_once() && view.listed_once() {
            let records = self.rollouts.review(&self.roster, view, &self.cluster, self.now);
            records.into_iter().for_each(|record| self.outbox.record(record));
        }
    }
}

/// A machine has this name, or joined under it. `joined` is worked out once.
fn is_name_of_machine<'a>(
    clouds: &'a BTreeMap<CloudName, CloudView>,
    remembered: &'a BTreeMap<MachineKey, Remembered>,
    joined: &OnceCell<BTreeSet<&'a NodeName>>,
    name: &NodeName,
) -> bool {
    let is_named = |cloud: &CloudView| {
        !cloud.named(name.as_str()).is_empty() || cloud.qualified(name.as_str()).next().is_some()
    };
    let all = || {
        let seen = clouds.values().flat_map(|cloud| cloud.instances.values());
        let seen = seen.filter_map(|seen| seen.joined.as_ref());
        seen.chain(remembered.values().filter_map(|memory| memory.node.as_ref())).collect()
    };
    clouds.values().any(is_named) || joined.get_or_init(all).contains(name)
}

/// What the cluster shows of the instances of this cloud that have a Node.
fn nodes_of_instances(
    cluster: &ClusterView,
    silent_after: Span,
    cloud: &CloudName,
) -> BTreeMap<InstanceId, NodeOf> {
    let mut shown = BTreeMap::new();
    for seen in cluster.nodes.values() {
        // One whose instance no list has shown since the restart is linked to nothing yet, and names it.
        let id = match (&seen.link, &seen.node.provider) {
            (Some(link), _) if link.cloud == *cloud => &link.instance,
            (None, Provider::Instance(id)) => id,
            _ => continue,
        };
        let now = shown_by(cluster, silent_after, seen);
        let known = shown.entry(id.clone()).or_insert(now);
        *known = now.max(*known);
    }
    shown
}

/// What this Node shows of the instance that it stands for.
pub(super) fn shown_by(cluster: &ClusterView, silent_after: Span, seen: &NodeSeen) -> NodeOf {
    // What a list lacks that is not doubted lives by its lease alone. It stayed because the list of a cloud was doubted, and that
    // doubt waited for it (seed 9003198).
    let is_listed = !seen.lost || cluster.source.doubted().is_some();
    match is_listed && seen.node.ready == Ready::True || cluster.renews(&seen.node.name, silent_after) {
        true => NodeOf::Lives,
        false if seen.lost => NodeOf::None,
        false => NodeOf::Silent,
    }
}
