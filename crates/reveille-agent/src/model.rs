//! The data types: peers and their answers, what the machine is, and what a join left on it.
//!
//! Facts only, as the process read them. A fact that could not be read is a variant of its own, because every wrong
//! reset begins with taking "I could not read it" for "it is not there".

use std::fmt;
use std::sync::Arc;

use reveille_core::model::id::ZoneName;
use reveille_core::model::time::{Span, Time};

/// The number of an effect; its answer carries the number back, so that the agent recognises a late answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct OperationId(pub u64);

/// An effect that the agent waits for, until a time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The effect's number.
    pub id: OperationId,
    /// After this time the effect counts as not answered.
    pub until: Time,
}

/// The answer of a peer that was asked about this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PeerAnswer {
    /// The peer reaches the API server, and the API holds no order to stop this machine.
    NoOrder,
    /// The peer reaches the API server, and the API holds an order to stop this machine.
    Order,
    /// The peer does not reach the API server either.
    LostToo,
}

/// What this machine is and may do, as its process found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The machine's failure domain; none when no source names it.
    pub zone: Option<ZoneName>,
    /// The machine's watchdog.
    pub watchdog: Device,
    /// The process may ask the system for a reboot.
    pub may_reboot: bool,
    /// Which part of the cluster runs on the machine.
    pub role: Role,
    /// A join is under way on the machine, started by the agent or by another process.
    pub joining: bool,
}

/// A watchdog device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// The machine has no watchdog device.
    Absent,
    /// The device exists, and the process may not open it.
    Forbidden,
    /// The device exists and can be opened.
    Usable,
}

/// Which part of the cluster runs on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Workloads only.
    Worker,
    /// A control plane, or a member of etcd. `spare`: the agent read that the other members keep their quorum without
    /// this one.
    ControlPlane {
        /// True only when the agent knows it.
        spare: bool,
    },
}

/// What a watchdog is, read back from the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchdogSeen {
    /// The watchdog fires when it is not fed for this span.
    Armed(Span),
    /// The watchdog is closed.
    Disarmed,
    /// The agent could not read the watchdog.
    CannotTell,
}

/// What a join left on the machine, read in one pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// This machine's Node.
    pub node: NodeSeen,
    /// The kubelet's credentials.
    pub credentials: Credentials,
    /// A controller or an operator removes this machine, or has removed it.
    pub leaving: Option<Leaving>,
    /// This machine's clock is synchronised, so the dates of a certificate can be judged.
    pub clock_is_right: bool,
    /// The Node does not exist now, and existed for a moment since the last inspection.
    pub came_and_went: bool,
}

/// This machine's Node, by name and by this machine's identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeSeen {
    /// The Node exists and is Ready.
    Ready,
    /// The Node exists and is not Ready.
    NotReady,
    /// The API server says that the Node does not exist.
    Absent,
    /// A Node of this name exists, and belongs to another machine.
    AnotherMachines,
    /// A machine without a certificate may not read Nodes; the cluster itself makes sure that a name belongs to one
    /// machine.
    Guarded,
    /// No source could answer.
    CannotTell,
}

/// The state of the kubelet's credentials, each tried against the API server with the pinned CA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// The API server accepts the credentials.
    Accepted,
    /// There is no trace of a join.
    Nothing,
    /// A join has begun, its bootstrap token is accepted, and its kubelet runs.
    Bootstrapping,
    /// As `Bootstrapping`, but no kubelet runs that could go on: the join broke off before it started one.
    Unstarted,
    /// A join began and broke off before it wrote what the kubelet needs to go on by itself. There is no certificate.
    Interrupted,
    /// A join has begun, and the API server refuses its bootstrap token.
    TokenDead,
    /// The credentials are useless, and the k3s or RKE2 agent fetches others at each start, with a token that the server
    /// accepts.
    Renewable,
    /// The certificate has expired.
    Expired,
    /// The certificate is within its dates, and the API server refuses it (401).
    Refused,
    /// `kubelet.conf` is of a cluster with another CA.
    Foreign(ForeignCluster),
    /// The agent could not try the credentials.
    CannotTell(Arc<str>),
}

/// The other cluster that a `kubelet.conf` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignCluster {
    /// An API server with the other cluster's CA answers at its address: the other cluster is alive.
    Lives,
    /// No server answers at its address. That proves nothing.
    Silent,
    /// An API server with the pinned CA answers at its address: this machine's cluster has replaced the other one.
    Replaced,
}

/// The sign that a machine is to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leaving {
    /// The Node had a taint of an autoscaler or of a shutdown.
    Tainted,
    /// The Node was being deleted, and waited for a finalizer.
    Finalizing,
    /// The Node was cordoned, as for a drain, before it was deleted.
    Drained,
    /// The cloud is terminating the instance.
    Terminating,
    /// The server says that the machine was removed.
    Removed,
}

impl fmt::Display for Leaving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tainted => "a taint on its Node said that it is to go",
            Self::Finalizing => "its Node was being deleted",
            Self::Drained => "its Node was cordoned, as for a drain",
            Self::Terminating => "its cloud is terminating it",
            Self::Removed => "the server says that it was removed",
        })
    }
}

/// The result of an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The effect was carried out. This does not prove that it worked.
    Done,
    /// The effect was not carried out: the reason.
    Failed(Arc<str>),
}
