//! The cluster's API as it truly is: Node objects, events about them, and which kubelet renews which lease.
//!
//! The module holds objects only. `vm` (kubelets) and `actors` (controllers) write them; `observations` tells of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use reveille_core::model::id::{InstanceId, NodeName, NodeUid};
use reveille_core::model::lease::Renewal;
use reveille_core::model::node::{Condition, Node, NodeEvent, NodeIntent, Provider, Ready};
use reveille_core::model::signs;
use reveille_core::model::time::{Span, Time};

use super::stamp;
use super::trouble::{Bites, Trouble};

/// The taint of a node that its cloud controller does not know yet.
pub(crate) const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// What is written on a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Written {
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) taints: BTreeSet<String>,
}

/// The API's objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cluster {
    pub(crate) nodes: BTreeMap<NodeName, Arc<Node>>,
    /// What others than their kubelets wrote on them.
    pub(super) written: BTreeMap<NodeName, Written>,
    /// The nodes that each machine's kubelet speaks for, in order of name.
    by_machine: BTreeMap<InstanceId, Vec<NodeName>>,
    /// Counts changes of nodes.
    pub(crate) edition: u64,
    /// Leases outlive their nodes for a while, or for good.
    leases: BTreeMap<NodeName, Lease>,
    /// Counts who got a lease and who lost it.
    pub(crate) leases_edition: u64,
    /// How many nodes name an instance as theirs.
    providers: BTreeMap<InstanceId, u32>,
    pub(crate) events: VecDeque<(Time, NodeEvent)>,
    /// How far the API's clock is off, milliseconds.
    pub(crate) skew_ms: i64,
}

/// One node lease.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    /// Whose kubelet renews it.
    pub(crate) instance: InstanceId,
    /// When it was last renewed, by the kubelet's clock.
    pub(crate) renewed: Renewal,
    /// Its kubelet is heard, and renews it.
    pub(crate) held: bool,
}

/// Kubernetes keeps events for an hour.
pub(super) const EVENTS_KEPT: Span = Span::from_min(60);

impl Cluster {
    /// Puts a node, in the place of one of the same name.
    pub(crate) fn put(&mut self, node: Arc<Node>) {
        self.take(&node.name);
        self.count_provider(&node.provider, true);
        if let Some(id) = &node.system_uuid {
            let names = self.by_machine.entry(id.clone()).or_default();
            let place = names.partition_point(|name| *name < node.name);
            names.insert(place, node.name.clone());
        }
        self.nodes.insert(node.name.clone(), node);
    }

    /// Takes a node out.
    pub(crate) fn take(&mut self, name: &NodeName) -> Option<Arc<Node>> {
        self.edition += 1;
        self.written.remove(name);
        let node = self.nodes.remove(name)?;
        self.count_provider(&node.provider, false);
        if let Some(id) = &node.system_uuid
            && let Some(names) = self.by_machine.get_mut(id)
        {
            names.retain(|known| known != name);
            if names.is_empty() {
                self.by_machine.remove(id);
            }
        }
        Some(node)
    }

    /// The kubelet of another machine takes over the Node of this name: its status is of that machine from now on, its spec
    /// stays. None where there is no such Node, or it is of this machine already.
    pub(crate) fn adopt(&mut self, name: &NodeName, by: &Registration) -> Option<Arc<Node>> {
        let known = self.nodes.get(name).filter(|node| node.system_uuid.as_ref() != Some(&by.instance))?;
        let mut node = (**known).clone();
        node.system_uuid = Some(by.instance.clone());
        node.boot_id = Some(by.boot_id.clone());
        node.addresses = Box::new([by.address]);
        set_ready(&mut node, Ready::False);
        let (node, written) = (Arc::new(node), self.written.remove(name));
        self.put(node.clone());
        self.written.extend(written.map(|written| (name.clone(), written)));
        Some(node)
    }

    fn count_provider(&mut self, provider: &Provider, comes: bool) {
        let Provider::Instance(id) = provider else { return };
        let count = self.providers.entry(id.clone()).or_default();
        *count = if comes { *count + 1 } else { count.saturating_sub(1) };
        if *count == 0 {
            self.providers.remove(id);
        }
    }

    /// How many nodes name this instance as theirs.
    pub(crate) fn naming(&self, id: &InstanceId) -> u32 {
        self.providers.get(id).copied().unwrap_or(0)
    }

    /// A kubelet takes a lease.
    pub(crate) fn put_lease(&mut self, name: NodeName, lease: Lease) {
        self.leases_edition += 1;
        self.leases.insert(name, lease);
    }

    /// A lease is collected.
    pub(crate) fn drop_lease(&mut self, name: &NodeName) {
        self.leases_edition += 1;
        self.leases.remove(name);
    }

    /// Every lease, in order of name; who has one stays.
    pub(crate) fn leases(&mut self) -> impl Iterator<Item = (&NodeName, &mut Lease)> {
        self.leases.iter_mut()
    }

    /// The nodes that a machine's kubelet speaks for, in order of name.
    pub(crate) fn of(&self, id: &InstanceId) -> &[NodeName] {
        self.by_machine.get(id).map_or(&[], Vec::as_slice)
    }

    /// Changes a node, but not whose it is; the new object, when there was one.
    pub(crate) fn change(&mut self, name: &NodeName, change: impl FnOnce(&mut Node)) -> Option<Arc<Node>> {
        self.edition += 1;
        let node = self.nodes.get_mut(name)?;
        let before = node.provider.clone();
        change(Arc::make_mut(node));
        let node = node.clone();
        if node.provider != before {
            self.count_provider(&before, false);
            self.count_provider(&node.provider, true);
        }
        Some(node)
    }

    /// Writes an event about a node, and forgets those older than an hour. Controllers write the object's uid; kubelets do not.
    pub(crate) fn say(
        &mut self,
        now: Time,
        (node, uid): (&NodeName, Option<NodeUid>),
        reason: &str,
        message: String,
        reporter: &str,
    ) -> NodeEvent {
        let event = NodeEvent {
            node: node.clone(),
            uid,
            reason: reason.into(),
            message: message.into(),
            reporter: reporter.into(),
            stamped: Some(stamp(Time::from_ms(now.ms + self.skew_ms))),
        };
        self.events.push_back((now, event.clone()));
        while self.events.front().is_some_and(|(at, _)| now.since(*at) > EVENTS_KEPT) {
            self.events.pop_front();
        }
        event
    }

    /// What was said about nodes of that name, oldest first.
    pub(crate) fn said_of(&self, now: Time, name: &NodeName) -> Vec<NodeEvent> {
        self.said(now).filter(|event| event.node == *name).cloned().collect()
    }

    /// Everything that was said and is still kept, oldest first.
    pub(crate) fn said(&self, now: Time) -> impl Iterator<Item = &NodeEvent> {
        self.events.iter().filter(move |(at, _)| now.since(*at) <= EVENTS_KEPT).map(|(_, event)| event)
    }
}

/// What a kubelet registers with.
#[derive(Clone, Debug)]
pub(crate) struct Registration {
    pub(crate) name: NodeName,
    pub(crate) uid: NodeUid,
    pub(crate) instance: InstanceId,
    pub(crate) boot_id: Arc<str>,
    pub(crate) address: IpAddr,
    pub(crate) range: IpNet,
}

/// The Node of a kubelet that has just registered: not initialised, not ready, known by its system UUID.
pub(crate) fn registered(with: Registration) -> Node {
    Node {
        name: with.name,
        uid: with.uid,
        provider: Provider::Unset,
        system_uuid: Some(with.instance),
        boot_id: Some(with.boot_id),
        kubelet: Some("v1.36.3".into()),
        addresses: Box::new([with.address]),
        pod_ranges: Box::new([with.range]),
        ready: Ready::False,
        conditions: Box::new([not_ready()]),
        zone: None,
        cordoned: false,
        intent: NodeIntent::default(),
        uninitialized: true,
        taints: Box::new([UNINITIALIZED.into()]),
    }
}

fn condition(kind: &str, reason: &str, message: &str) -> Condition {
    Condition { kind: kind.into(), reason: reason.into(), message: message.into() }
}

fn not_ready() -> Condition {
    condition(
        "Ready",
        "KubeletNotReady",
        "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady \
         message:Network plugin returns error: cni plugin not initialized",
    )
}

/// Puts the Ready condition, with the sentence that goes with it, and leaves all others.
pub(crate) fn set_ready(node: &mut Node, ready: Ready) {
    let others = node.conditions.iter().filter(|condition| &*condition.kind != "Ready").cloned();
    let mut conditions: Vec<Condition> = others.collect();
    match ready {
        Ready::True => {}
        Ready::False => conditions.push(not_ready()),
        Ready::Unknown => {
            conditions.push(condition("Ready", "NodeStatusUnknown", "Kubelet stopped posting node status."));
        }
    }
    node.ready = ready;
    node.conditions = conditions.into();
}

/// The kubelet says that it is not ready, and why.
pub(crate) fn set_unready(node: &mut Node, trouble: Trouble) {
    set_ready(node, Ready::False);
    if trouble.bites() != Bites::Health {
        return;
    }
    let stuck = condition(
        "Ready",
        "KubeletNotReady",
        "PLEG is not healthy: pleg was last seen active 3m12.481s ago; threshold is 3m0s",
    );
    let others = node.conditions.iter().filter(|condition| &*condition.kind != "Ready").cloned();
    node.conditions = others.chain([stuck]).collect();
}

/// Puts or takes the condition that says that the node's pods cannot be reached.
pub(crate) fn set_unreachable(node: &mut Node, kind: &str, broken: bool) {
    let others = node.conditions.iter().filter(|condition| &*condition.kind != kind).cloned();
    let mut conditions: Vec<Condition> = others.collect();
    if broken {
        let message = "probe of 4 pods on other nodes: no answer within 5 s";
        conditions.push(condition(kind, "ProbeFailed", message));
    }
    node.conditions = conditions.into();
}

impl Cluster {
    /// Writes on a node; the new object, when there is one.
    pub(crate) fn write(&mut self, name: &NodeName, change: impl FnOnce(&mut Written)) -> Option<Arc<Node>> {
        let uninitialized = self.nodes.get(name)?.uninitialized;
        let written = self.written.entry(name.clone()).or_default();
        change(written);
        let mut keys: BTreeSet<&str> = written.taints.iter().map(String::as_str).collect();
        if uninitialized {
            keys.insert(UNINITIALIZED);
        }
        let keys: Vec<&str> = keys.into_iter().collect();
        let intent = signs::read(&written.annotations, &keys, false, true);
        let taints = keys.into_iter().map(Arc::from).collect();
        self.change(name, |node| (node.intent, node.taints) = (intent, taints))
    }
}
