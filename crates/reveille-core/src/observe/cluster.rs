//! The cluster as the controller sees it: its Nodes, their leases, and what was said about Nodes that are deleted.
//!
//! Watch events and complete lists go in; the names of Nodes to judge again come out. Nodes that a complete list lacks stay
//! in the view, marked as lost, until `nodes_listed` has judged the list. An etcd restored from a backup and a wrong
//! endpoint look just like "every Node was deleted" (flight control D6: 100 of 100 deleted).
//!
//! The view compares lease times only for "it changed since the last list", on the controller's clock.

pub mod nodes_listed;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use crate::model::id::{CloudName, InstanceId, NodeName, NodeUid};
use crate::model::incident::MachineKey;
use crate::model::jump::Jump;
use crate::model::lease::{Leases, Renewal};
use crate::model::node::{Node, NodeEvent, Ready};
use crate::model::roster::{Network, Timing};
use crate::model::time::{Span, Time};
use crate::safeguard::{Safeguard, stands};

use super::identities::Identities;
use super::identity::Identity;
use super::leases::LeaseBook;
use super::lost_nodes::LostNodes;
use super::node_events::NodeEvents;
use super::pack::{Growth, pack};
use super::source::Source;

use nodes_listed::{Awaited, ByName};

/// A node and what we remember of it.
#[derive(Clone, Debug)]
pub struct NodeSeen {
    /// As last described.
    pub node: Arc<Node>,
    /// The instance that it stands for, and how that was found.
    pub link: Option<Link>,
    /// Since when Ready has had its present value.
    pub ready_since: Time,
    /// A doubted list lacks it.
    pub lost: bool,
    /// When it came into sight.
    pub first_seen: Time,
    /// It came into sight after the first complete list: it registered in our sight, or an API server showed an old state.
    pub appeared: bool,
    /// When its kubelet last wrote another system UUID than before, in our sight: a Node goes on with its UUID through reboots.
    pub changed_host: Option<Time>,
    /// The instance that it names is there, and carries none of the roster's marks.
    pub unmarked: bool,
    /// How often in a row its instance was found when it was asked for.
    pub found: u32,
    /// Its providerID names an instance that these clouds deny by id: so often each, since one of them last found it. An id says
    /// nothing of the project, so that all clouds of the roster are asked.
    pub denied_by: BTreeMap<CloudName, u8>,
    /// When its cloud was last heard about that instance, or failed to answer.
    pub last_answer: Option<Time>,
    /// Since when its taints and signs are on it; none where there are none, as on nearly every node.
    marked: Option<Box<Marked>>,
    /// What it asks for stood on it when it was first seen.
    pub found_asking: bool,
    /// Its machine is gone, or leaves: its silence says nothing of the fleet.
    left_over: bool,
}

/// Since when something stands on a node.
#[derive(Clone, Debug)]
struct Marked {
    /// Each of its taints, in their order.
    taints: Box<[Time]>,
    /// When a sign that a client takes the Node away was first seen, or its deletion itself.
    leaving: Option<Time>,
}

impl NodeSeen {
    fn new(now: Time, node: &Arc<Node>, appeared: bool) -> Self {
        Self {
            node: node.clone(),
            link: None,
            ready_since: now,
            lost: false,
            first_seen: now,
            appeared,
            changed_host: None,
            unmarked: false,
            found: 0,
            denied_by: BTreeMap::new(),
            last_answer: None,
            marked: Marked::of(node, |_| now, now),
            found_asking: node.intent.asks.is_some(),
            left_over: false,
        }
    }

    /// Takes a new description of the same Node object.
    fn is_now(&mut self, now: Time, node: &Arc<Node>) {
        if self.node.ready != node.ready {
            self.ready_since = now;
        }
        if self.node.system_uuid != node.system_uuid {
            self.changed_host = Some(now);
        }
        let since = |key: &Arc<str>| self.tainted_since(key).unwrap_or(now);
        self.marked = Marked::of(node, since, self.leaving_since().unwrap_or(now));
        self.found_asking &= self.node.intent.asks == node.intent.asks;
        self.node = node.clone();
        self.lost = false;
    }

    /// Its times go over a jump.
    fn over(&mut self, jump: Jump) {
        let Self {
            ready_since,
            first_seen,
            last_answer,
            marked,
            node: _,
            link: _,
            lost: _,
            appeared: _,
            changed_host,
            unmarked: _,
            found: _,
            denied_by: _,
            found_asking: _,
            left_over: _,
        } = self;
        // For how long a cloud may deny the instance of a new Node: our clock was set back by three hours, and no person was told
        // of a left-over Node until it had come as far again.
        jump.counts([first_seen]);
        // Their deadlines are counted from the first sight after a jump at the earliest (`JudgeContext::cluster_since`).
        jump.stands([ready_since]);
        jump.stands(changed_host);
        if let Some(Marked { taints, leaving }) = marked.as_deref_mut() {
            jump.stands(taints);
            jump.stands(leaving);
        }
        jump.stands(last_answer);
    }

    /// How often every one of these clouds has denied its instance.
    pub fn denials(&self, clouds: &[CloudName]) -> u8 {
        clouds
            .iter()
            .map(|cloud| self.denied_by.get(cloud).copied().unwrap_or_default())
            .min()
            .unwrap_or_default()
    }

    /// Since when this taint is on it; `None`: it is not.
    pub fn tainted_since(&self, key: &Arc<str>) -> Option<Time> {
        let place = self.node.taints.iter().position(|taint| taint == key)?;
        self.marked.as_ref()?.taints.get(place).copied()
    }

    /// Since when it carries a sign that it is being removed, or is being deleted; `None`: neither.
    pub fn leaving_since(&self) -> Option<Time> {
        self.marked.as_ref()?.leaving
    }
}

impl Marked {
    fn of(node: &Node, since: impl Fn(&Arc<str>) -> Time, leaving: Time) -> Option<Box<Self>> {
        let leaves = node.intent.deleting || node.intent.leaving.is_some();
        let leaving = leaves.then_some(leaving);
        let bare = node.taints.is_empty() && leaving.is_none();
        (!bare).then(|| Box::new(Self { taints: node.taints.iter().map(since).collect(), leaving }))
    }
}

/// Which instance a node stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its cloud.
    pub cloud: CloudName,
    /// Its id.
    pub instance: InstanceId,
    /// By what it was found.
    pub by: LinkedBy,
}

impl Link {
    /// No other Node may be linked so to the same machine, or the machine joined as it.
    pub const fn is_sure(&self) -> bool {
        self.by.is_strong() || matches!(self.by, LinkedBy::Home)
    }

    /// What the Node shows leads to the machine, and not only that the machine joined as it.
    pub const fn is_shown(&self) -> bool {
        !matches!(self.by, LinkedBy::Home)
    }

    /// The machine that the node stands for.
    pub fn machine(&self) -> MachineKey {
        MachineKey::Instance(self.cloud.clone(), self.instance.clone())
    }
}

/// The evidence for a link, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkedBy {
    /// `spec.providerID`.
    ProviderId,
    /// `status.nodeInfo.systemUUID`.
    SystemUuid,
    /// A name that only one instance and one node have.
    UniqueName,
    /// An address that only one instance and one node have.
    UniqueAddress,
    /// The machine joined as it and is there, whatever its kubelet writes now (`engine::homes`).
    Home,
}

impl LinkedBy {
    /// The Node names its instance, by its own words or its kubelet's: no other one may have the same.
    pub const fn is_strong(self) -> bool {
        matches!(self, Self::ProviderId | Self::SystemUuid)
    }
}

/// The cluster.
#[derive(Clone, Debug)]
pub struct ClusterView {
    /// How far it may be believed.
    pub source: Source,
    /// Which cluster it is.
    pub identity: Identity,
    /// Its nodes by name.
    pub nodes: BTreeMap<NodeName, NodeSeen>,
    /// Nodes whose link is weak or absent: looked at again when an instance changes that may be theirs ([`super::join`]).
    pub weak: BTreeSet<NodeName>,
    /// Those of them that stand for no machine.
    unlinked: BTreeSet<NodeName>,
    /// Addresses that came to a Node, or left one: another Node that has one of them may lose its link by address, or get
    /// one.
    moved: BTreeSet<IpAddr>,
    /// Its nodes by what their kubelets say of the machine that they run on.
    identities: Identities,
    leases: LeaseBook,
    nodes_growth: Growth,
    events: NodeEvents,
    /// Counts nodes that came, went or changed.
    edition: u64,
    synced_once: bool,
    /// The last list lacks these, and is not judged yet, or doubted.
    pub(super) lost: BTreeSet<NodeName>,
    /// The last list held no node, and the watch has told of none since.
    pub(super) listed_none: bool,
    /// How many machines of ours ran and had a Node before the last list.
    pub(super) linked: usize,
    /// How many machines had lost their Node before the last list, and are not back.
    pub missing_before: usize,
    /// Machines whose leases are all silent, of those that have one, where some are.
    silence: Option<(u32, u32)>,
    awaited: Awaited,
    by_name: ByName,
    pub(super) judgements: u64,
    /// Machines whose Nodes went missing together or unwatched, until they have a Node again.
    pub lost_together: LostNodes,
}

/// What a list or event changed.
#[derive(Clone, Debug, Default)]
pub struct ClusterChange {
    /// These nodes appeared or changed.
    pub applied: Vec<NodeName>,
    /// These went, with what they were.
    pub removed: Vec<NodeSeen>,
    /// These say now that they run on another machine: as they were before.
    pub moved: Vec<NodeSeen>,
    /// Of which machines it is believed only now that their Nodes went together.
    pub lost_together: Vec<MachineKey>,
}

impl ClusterView {
    /// An empty view.
    pub fn new(stale_after: Span) -> Self {
        Self {
            source: Source::new(stale_after),
            identity: Identity::default(),
            nodes: BTreeMap::new(),
            weak: BTreeSet::new(),
            unlinked: BTreeSet::new(),
            moved: BTreeSet::new(),
            identities: Identities::default(),
            leases: LeaseBook::default(),
            nodes_growth: Growth::default(),
            events: NodeEvents::default(),
            edition: 0,
            synced_once: false,
            lost: BTreeSet::new(),
            listed_none: false,
            missing_before: 0,
            silence: None,
            linked: 0,
            awaited: Awaited::default(),
            by_name: ByName::default(),
            judgements: 0,
            lost_together: LostNodes::default(),
        }
    }

    /// Takes in a complete list. The nodes that it lacks are lost until the list is judged ([`ClusterView::judge_list`]).
    pub fn sync(&mut self, now: Time, list: &[Arc<Node>]) -> ClusterChange {
        let mut change = ClusterChange::default();
        let listed: BTreeSet<&NodeName> = list.iter().map(|node| &node.name).collect();
        let last_heard = self.source.last_good();
        self.source.heard(now);
        for (name, seen) in self.nodes.iter_mut().filter(|(name, _)| !listed.contains(name)) {
            if !std::mem::replace(&mut seen.lost, true) {
                self.events.gone(last_heard, name, &seen.node.uid);
            }
            self.lost.insert(name.clone());
            change.applied.push(name.clone());
        }
        for node in list {
            self.apply(now, node, &mut change);
        }
        if self.nodes_growth.is_over(self.nodes.len()) {
            pack(&mut self.nodes);
            self.identities.pack();
        }
        self.listed_none = list.is_empty();
        self.synced_once = true;
        change
    }

    /// The clock went back: nothing was seen later than now.
    pub fn go_back_to(&mut self, now: Time) {
        self.source.go_back_to(now);
        self.leases.go_back_to(now);
        self.by_name = ByName::default();
    }

    /// The times of its nodes go over a jump. Those of its source have their own rule: sight begins from zero
    /// (`Source::restart_sight`).
    pub fn over(&mut self, jump: Jump) {
        self.leases.over(jump);
        self.nodes.values_mut().for_each(|seen| seen.over(jump));
    }

    /// Takes in one node.
    pub fn apply(&mut self, now: Time, node: &Arc<Node>, change: &mut ClusterChange) {
        self.listed_none = false;
        self.lost.remove(&node.name);
        self.by_name.forget(&node.name);
        if let Some(seen) = self.nodes.get_mut(&node.name) {
            if seen.node == *node && !seen.lost {
                return;
            }
            if seen.node.uid == node.uid {
                if self.identities.change(&seen.node, node) {
                    change.moved.push(seen.clone());
                }
                let old = seen.node.clone();
                seen.is_now(now, node);
                if old.addresses != node.addresses {
                    self.note_moved(&old);
                    self.note_moved(node);
                }
                self.edition += 1;
                change.applied.push(node.name.clone());
                return;
            }
            // Another object of the same name: the old one is gone, whatever the watch has told.
            if let Some(old) = self.remove(&node.name) {
                change.removed.push(old);
            }
        }
        self.weak.insert(node.name.clone());
        self.unlinked.insert(node.name.clone());
        // What was said before about a node of this name was said of another object, perhaps of another machine.
        self.events.succeeded(&node.name, &node.uid);
        let fresh = NodeSeen::new(now, node, self.synced_once);
        self.identities.add(node);
        self.note_moved(node);
        self.nodes_growth.note();
        self.nodes.insert(node.name.clone(), fresh);
        self.edition += 1;
        self.leases.node_came(&node.name);
        change.applied.push(node.name.clone());
    }

    /// A node was deleted. A late delivery for another uid changes nothing.
    pub fn delete(&mut self, name: &NodeName, uid: &NodeUid, change: &mut ClusterChange) {
        if self.nodes.get(name).is_some_and(|seen| seen.node.uid == *uid)
            && let Some(seen) = self.remove(name)
        {
            change.removed.push(seen);
        }
    }

    pub(super) fn remove(&mut self, name: &NodeName) -> Option<NodeSeen> {
        // One that is lost went before the list that lacked it.
        if !self.lost.remove(name)
            && let Some(seen) = self.nodes.get(name)
        {
            self.events.gone(self.source.last_good(), name, &seen.node.uid);
        }
        self.weak.remove(name);
        self.unlinked.remove(name);
        self.leases.node_went(name);
        self.edition += 1;
        let gone = self.nodes.remove(name)?;
        self.identities.remove(&gone.node);
        self.note_moved(&gone.node);
        Some(gone)
    }

    /// Whether this node hangs on a weak link, or on none.
    pub fn set_weak(&mut self, name: &NodeName, weak: bool) {
        let news = if weak { self.weak.insert(name.clone()) } else { self.weak.remove(name) };
        if news && let Some(node) = self.nodes.get(name).map(|seen| seen.node.clone()) {
            self.note_moved(&node);
        }
    }

    /// Another Node's link can depend on this Node's having an address only where that one alone has the address beside it,
    /// and no strong link. Of three such Nodes none is linked by it, whether a fourth comes or goes: where a client gives a
    /// thousand Nodes one address, each would search for the links of all.
    fn note_moved(&mut self, node: &Node) {
        let is_other = |name: &&NodeName| **name != node.name && self.weak.contains(*name);
        let has_one_other = |address: &&IpAddr| {
            let mut others = self.identities.with_address(address).iter().filter(is_other);
            // A Node may list an address twice.
            others.next().is_some_and(|first| others.all(|other| other == first))
        };
        let moved: Vec<IpAddr> = node.addresses.iter().filter(has_one_other).copied().collect();
        self.moved.extend(moved);
    }

    /// Machines that have the addresses of this Node came or went: it may show those of so many that it is no rival for another.
    pub fn holders_moved(&mut self, name: &NodeName) {
        if let Some(node) = self.nodes.get(name).map(|seen| seen.node.clone()) {
            self.note_moved(&node);
        }
    }

    /// The nodes that may be linked by an address no longer, or only now, because another node that has it changed.
    pub fn take_shaken(&mut self) -> BTreeSet<NodeName> {
        let moved = std::mem::take(&mut self.moved);
        let holders = moved.iter().flat_map(|address| self.identities.with_address(address));
        holders.filter(|name| self.weak.contains(*name)).cloned().collect()
    }

    /// Takes in a complete list of leases, unless it lacks too many of them: an empty list with 200 ended a freeze. Where
    /// no other comes for long, it is believed. `is_machine` says whether a machine of the roster may have a Node of that name.
    /// True where the list counts.
    pub fn leases(
        &mut self,
        now: Time,
        timing: &Timing,
        list: Leases,
        clouds_are_listed: bool,
        is_machine: impl Fn(&NodeName) -> bool,
    ) -> bool {
        let nodes = &self.nodes;
        // A Node that stands for no machine of the roster says nothing of the fleet: a client with the right to create
        // Nodes would make it dark for good, and so would a dead pool of another owner.
        let counts = |seen: &NodeSeen| seen.link.is_some() && !seen.left_over;
        let has_nodes = |names: &[NodeName]| {
            // Both are in order of name.
            let mut nodes = nodes.iter().filter(|(_, seen)| counts(seen)).map(|(name, _)| name).peekable();
            let has_node = |name: &NodeName| {
                while nodes.next_if(|node| *node < name).is_some() {}
                nodes.next_if(|node| *node == name).is_some()
            };
            names.iter().map(has_node).collect()
        };
        let is_ready = |seen: &NodeSeen| counts(seen) && !seen.lost && seen.node.ready == Ready::True;
        // Looked through for the first lists of a process alone.
        let unproved = self.leases.is_unproved().then(|| nodes.iter().filter(|(_, seen)| is_ready(seen)));
        let ready: Vec<&NodeName> = unproved.into_iter().flatten().map(|(name, _)| name).collect();
        let lacks_too_many =
            self.leases.lacks_too_many(&list, has_nodes, &ready, |known| timing.may_lack(known));
        if lacks_too_many && self.leases.doubt(now) {
            return false;
        }
        // Until a cloud is listed, its Nodes stand for no machines: one Ready Node of a small cloud proved a list without the
        // leases of the others. A list that is believed because no other comes needs no proof: the doubt about the next one
        // would last as long again.
        if !ready.is_empty() && clouds_are_listed || lacks_too_many {
            self.leases.prove();
        }
        let is_known = |name: &NodeName| nodes.contains_key(name) || is_machine(name);
        self.leases.take(now, timing.lease_silent_after, list, has_nodes, is_known);
        true
    }

    /// No list of leases came for so long that the last one says nothing of now. True where some leases were forgotten.
    pub fn forget_old_leases(&mut self, now: Time) -> bool {
        self.leases.forget_old(now)
    }

    /// Leases are listed, and the lists cannot be true.
    pub fn is_blind_to_leases(&self, now: Time) -> bool {
        self.leases.hides_leases(now)
    }

    /// Lists of leases came again after a pause, and cannot tell yet which are silent: for how long they have to come.
    pub fn leases_resume_for(&self, silent_after: Span) -> Option<Span> {
        self.leases.resuming(silent_after)
    }

    /// This Node is linked to this machine, and Ready.
    pub fn serves(&self, name: &NodeName, machine: &MachineKey) -> bool {
        let link = self.nodes.get(name).and_then(|seen| seen.link.as_ref());
        self.answers(name) && link.is_some_and(|link| link.machine() == *machine)
    }

    /// This node stands for this machine, or for none that is known.
    pub fn set_link(&mut self, name: &NodeName, link: Option<Link>) {
        let Some(seen) = self.nodes.get_mut(name) else { return };
        if seen.link.is_some() != link.is_some() {
            self.leases.nodes_changed();
        }
        if link.is_none() {
            self.unlinked.insert(name.clone());
        } else {
            self.unlinked.remove(name);
        }
        seen.link = link;
    }

    /// The Nodes that stand for no machine.
    pub const fn unlinked(&self) -> &BTreeSet<NodeName> {
        &self.unlinked
    }

    /// The machine of this node is gone or leaves, or is a part of the fleet.
    pub fn set_left_over(&mut self, name: &NodeName, left_over: bool) {
        let Some(seen) = self.nodes.get_mut(name) else { return };
        if std::mem::replace(&mut seen.left_over, left_over) != left_over {
            self.leases.nodes_changed();
        }
    }

    /// How many machines had silent leases alone at the last list of leases, of how many that had one.
    pub fn silence(&self) -> (u32, u32) {
        self.silence.unwrap_or_else(|| self.leases.silence())
    }

    /// How many leases of Nodes of machines were silent at the last list of them.
    pub const fn silent_leases(&self) -> u32 {
        self.leases.silence().0
    }

    /// The same counted by machines, some of which have several Nodes. None: as many as there are leases.
    pub fn count_silence(&mut self, machines: Option<(u32, u32)>) {
        self.silence = machines;
    }

    /// For how long lists of leases have shown this Node's lease unchanged; `None` without a lease. A lease seen for the
    /// first time counts as just changed, and an API server that lists no leases proves no Node silent. The controller
    /// believes in a silence only after it has watched it.
    pub fn lease_age(&self, name: &NodeName) -> Option<Span> {
        self.leases.age(name)
    }

    /// This Node's lease, as it was listed last.
    pub fn renewal(&self, name: &NodeName) -> Option<Renewal> {
        self.leases.renewal(name)
    }

    /// Leases are listed, and there are some.
    pub fn has_leases(&self) -> bool {
        self.leases.has_any()
    }

    /// How long ago leases were listed last.
    pub fn leases_listed(&self, now: Time) -> Span {
        self.leases.listed(now)
    }

    /// For how long a lease has been unchanged that is called as this machine and whose Node no list shows. A list of nodes may
    /// be old while the leases are not: such a lease is renewed by a kubelet that runs.
    pub fn unlisted_lease_age<'a>(&self, names: impl Iterator<Item = &'a str>) -> Option<Span> {
        let unlisted = |name: &&NodeName| !self.nodes.contains_key(*name);
        let leases = names.flat_map(|name| self.leases.called(name)).filter(unlisted);
        leases.filter_map(|name| self.lease_age(name)).min()
    }

    /// The node of that name is surely another machine's by now: names are given again. One that names another instance and is
    /// written by the kubelet of this one is not.
    pub fn is_anothers(&self, name: &NodeName, instance: &InstanceId) -> bool {
        let node = self.nodes.get(name).filter(|seen| seen.node.system_uuid.as_ref() != Some(instance));
        node.and_then(|seen| seen.link.as_ref())
            .is_some_and(|link| link.instance != *instance && link.by.is_strong())
    }

    /// The nodes whose kubelets run on the machine of this system UUID, by their own word.
    pub fn with_uuid(&self, uuid: &InstanceId) -> &[NodeName] {
        self.identities.with_uuid(uuid)
    }

    /// The nodes whose provider IDs name this instance, other than those that have its UUID as well.
    pub fn naming(&self, id: &InstanceId) -> &[NodeName] {
        self.identities.naming(id)
    }

    /// The nodes that name this instance, in whichever way.
    pub fn named_by(&self, id: &InstanceId) -> impl Iterator<Item = &NodeName> {
        self.naming(id).iter().chain(self.with_uuid(id))
    }

    /// The nodes that have this address.
    pub fn with_address(&self, address: &IpAddr) -> &[NodeName] {
        self.identities.with_address(address)
    }

    /// The pod ranges of this node that are surely its own: within the roster's, and no other node's. A node writes its ranges
    /// itself when it registers, so that without this it could have any network routed to it.
    pub fn own_pod_ranges(&self, node: &Node, network: &Network) -> Vec<IpNet> {
        let is_ours = |range: &IpNet| network.holds(range) || !stands(Safeguard::OwnRoutes);
        let is_own = |range: &&IpNet| is_ours(range) && self.identities.has_alone(&node.name, range, network);
        node.pod_ranges.iter().filter(is_own).copied().collect()
    }

    /// Its lease was seen to change lately: its kubelet lives.
    pub fn renews(&self, name: &NodeName, silent_after: Span) -> bool {
        self.lease_age(name).is_some_and(|age| age <= silent_after)
    }

    /// The node answers, or its lease was renewed lately: its kubelet lives.
    pub fn lives(&self, name: &NodeName, silent_after: Span) -> bool {
        self.answers(name) || self.renews(name, silent_after)
    }

    /// Remembers an event.
    pub fn remember(&mut self, now: Time, event: NodeEvent) {
        self.events.hear(now, event);
    }

    /// Takes in what the API still holds about a node's name, oldest first.
    pub fn remember_all(&mut self, now: Time, events: &[NodeEvent]) {
        self.events.read(now, events);
    }

    /// What is remembered about nodes of that name, oldest first, but nothing of an object before the present one.
    pub fn events_about<'a>(&'a self, name: &'a NodeName) -> impl Iterator<Item = &'a NodeEvent> {
        let present = self.nodes.get(name).map(|seen| &seen.node.uid);
        self.events.about(name, present.or_else(|| self.events.gone_uid(name)))
    }

    /// Everything that is remembered, oldest first, and when each was heard first.
    pub fn node_events(&self) -> impl Iterator<Item = (Time, &NodeEvent)> {
        self.events.told()
    }

    /// The last node of that name went while this process watched. Of one that went before, or while no process ran, the events
    /// that the API still holds may be about an object before it: a Node that was deleted and came back within the hour.
    pub fn saw_go(&self, name: &NodeName) -> bool {
        self.gone_uid(name).is_some()
    }

    /// The uid of the last node of that name, where this process watched it go.
    pub fn gone_uid(&self, name: &NodeName) -> Option<&NodeUid> {
        self.events.gone_uid(name)
    }

    /// Whether this node answers: Ready, and not lost.
    pub fn answers(&self, name: &NodeName) -> bool {
        self.nodes.get(name).is_some_and(|seen| !seen.lost && seen.node.ready == Ready::True)
    }

    /// How many nodes came, went or changed so far: as long as it is the same, they are.
    pub const fn edition(&self) -> u64 {
        self.edition
    }

    /// The API server gave a sign of life. Before the first complete list it says nothing of nodes: without one, each machine
    /// would count as one that never joined.
    pub fn is_alive(&mut self, now: Time) {
        if self.synced_once {
            self.source.heard(now);
        }
    }

    /// True when the cluster has a Node that is in its last list.
    pub fn has_node(&self) -> bool {
        self.nodes.len() > self.lost.len()
    }

    /// The last list held no node, and the watch has told of none since.
    pub const fn listed_none(&self) -> bool {
        self.listed_none
    }

    /// True once a complete list was seen.
    pub const fn synced_once(&self) -> bool {
        self.synced_once
    }
}
