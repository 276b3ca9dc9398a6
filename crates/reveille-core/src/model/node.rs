//! What the cluster's API says of one machine: the Node, and the events about it.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use serde::{Deserialize, Serialize};

use super::id::{InstanceId, NodeName, NodeUid, ZoneName};
use super::time::ServiceTime;

/// One Node object, cut down to what decisions need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Node {
    /// The object's name. May be reused by another machine.
    pub name: NodeName,
    /// The object's uid. Two nodes of one name differ here.
    pub uid: NodeUid,
    /// `spec.providerID`, read: the instance's id when it was understood.
    pub provider: Provider,
    /// `status.nodeInfo.systemUUID`, lower case, with dashes, as its machine says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_uuid: Option<InstanceId>,
    /// `status.nodeInfo.bootID`: changes with each boot, so it proves a reboot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<Arc<str>>,
    /// `status.nodeInfo.kubeletVersion`; pools whose versions differ are rolling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubelet: Option<Arc<str>>,
    /// All InternalIP addresses.
    pub addresses: Box<[IpAddr]>,
    /// `spec.podCIDRs`.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub pod_ranges: Box<[IpNet]>,
    /// The Ready condition.
    pub ready: Ready,
    /// Every other condition whose status is `True`, plus Ready's reason when it is not True.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub conditions: Box<[Condition]>,
    /// Zone label (`topology.kubernetes.io/zone`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<ZoneName>,
    /// A client cordoned it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cordoned: bool,
    /// Signs that a client removes it on purpose, or asks to leave it alone.
    #[serde(default, skip_serializing_if = "NodeIntent::is_none")]
    pub intent: NodeIntent,
    /// The taint `node.cloudprovider.kubernetes.io/uninitialized` is still there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uninitialized: bool,
    /// The keys of all its taints, sorted, each once.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub taints: Box<[Arc<str>]>,
}

impl Node {
    /// The instances that its provider ID and its system UUID name.
    pub fn named_instances(&self) -> impl Iterator<Item = &InstanceId> {
        let provided = match &self.provider {
            Provider::Instance(id) => Some(id),
            _ => None,
        };
        provided.into_iter().chain(&self.system_uuid)
    }
}

/// What `spec.providerID` says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Provider {
    /// Not set yet: registered, not initialised. Never "unregistered".
    Unset,
    /// Understood.
    Instance(InstanceId),
    /// Set, but not in a spelling that names an instance of a cloud we know.
    Unread(Arc<str>),
}

/// An identity of a machine that a Node carries, the stronger first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Identity {
    /// `status.nodeInfo.systemUUID`.
    SystemUuid,
    /// The agent on the machine names the Node as its own.
    Agent,
    /// One of its addresses.
    Address(IpAddr),
    /// The name of its instance, or of its host.
    Name,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SystemUuid => f.write_str("the system UUID of this machine"),
            Self::Agent => f.write_str("the name that the agent of this machine gives"),
            Self::Address(address) => write!(f, "the address {address} of this machine"),
            Self::Name => f.write_str("the name of this machine"),
        }
    }
}

/// Signs on a Node of what people and programs want with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeIntent {
    /// `metadata.deletionTimestamp` is set.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleting: bool,
    /// A taint or annotation of a program that takes the node away (autoscaler, Karpenter, a drain), by its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaving: Option<Arc<str>>,
    /// Annotation `reveille.dev/pause` with the literal value `true`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// What people ask for by further annotations; nearly always nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asks: Option<Box<Asks>>,
}

impl NodeIntent {
    /// True where the Node carries no such sign and no request.
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// What people ask for by annotations on a Node. See [`super::signs`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Asks {
    /// `reveille.dev/repair-now`: a repair without waiting. Each value counts once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repair: Option<Arc<str>>,
    /// `reveille.dev/confirm`: the incident of this number may close.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirm: Option<Arc<str>>,
    /// `reveille.dev/keep`: do not delete it, because a person wants to look at it (`true`); or do (`false`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<bool>,
}

/// The Ready condition, with silence as a value of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ready {
    /// The kubelet says it is ready.
    True,
    /// The kubelet says it is not.
    False,
    /// The control plane has not heard from the kubelet, or the condition was never written.
    Unknown,
}

/// A node condition worth keeping.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Condition {
    /// `type`.
    pub kind: Arc<str>,
    /// `reason`.
    pub reason: Arc<str>,
    /// `message`, cut to 256 bytes.
    pub message: Arc<str>,
}

/// A Kubernetes Event about a Node that says what a client did to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeEvent {
    /// The node's name.
    pub node: NodeName,
    /// The uid of the object that the event is about. Controllers write it; of a kubelet's event there is none, because it
    /// writes the node's name there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<NodeUid>,
    /// `DeletingNode`, `RemovingNode`, …
    pub reason: Arc<str>,
    /// The event's own sentence.
    pub message: Arc<str>,
    /// Who wrote it.
    pub reporter: Arc<str>,
    /// When, in the writer's own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stamped: Option<Arc<str>>,
}

impl NodeEvent {
    /// One of the two events that tell of a removed Node: the cloud controller's, and the controller manager's after it.
    pub fn is_removal(&self) -> bool {
        matches!(&*self.reason, "DeletingNode" | "RemovingNode")
    }

    /// When it was said, by its writer's clock.
    pub fn stamp(&self) -> Option<ServiceTime> {
        ServiceTime::parse(self.stamped.as_deref()?)
    }

    /// The kubelet's word for a cordon (kubernetes: pkg/kubelet/events/event.go).
    pub fn is_cordon(&self) -> bool {
        &*self.reason == "NodeNotSchedulable"
    }

    /// The kubelet's word for the end of a cordon.
    pub fn is_uncordon(&self) -> bool {
        &*self.reason == "NodeSchedulable"
    }
}
