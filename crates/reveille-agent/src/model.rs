//! The nouns: who asks and is asked, what the machine is, and what is there of a join.
//!
//! Facts only, as the process read them. A fact that could not be read is a variant of its own, because every wrong
//! reset begins with taking "I could not read it" for "it is not there".

use std::fmt;
use std::sync::Arc;

use reveille_core::model::id::ZoneName;
use reveille_core::model::time::{Span, Time};

/// The number of something that was asked for; its answer carries it back, and a late one is known by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FlightId(pub u64);

/// Something that was asked for and is waited for no longer than until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    /// Its number.
    pub id: FlightId,
    /// After this it counts as not answered.
    pub until: Time,
}

/// What a peer says when it is asked about this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PeerAnswer {
    /// It reaches the API server, and nothing there orders this machine to go down.
    NoOrder,
    /// It reaches the API server, and an order for this machine stands there.
    Order,
    /// It does not reach the API server either.
    LostToo,
}

/// What this machine is and may do, as its process found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Its failure domain; none when nobody said it.
    pub zone: Option<ZoneName>,
    /// Its watchdog.
    pub watchdog: Device,
    /// The process may ask the system for a reboot.
    pub may_reboot: bool,
    /// What of the cluster runs on it.
    pub role: Role,
    /// A join is under way on it, by whomever.
    pub joining: bool,
}

/// A watchdog device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// There is none.
    Absent,
    /// There is one, and the process may not open it.
    Forbidden,
    /// There is one.
    Usable,
}

/// What of the cluster runs on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Workloads alone.
    Worker,
    /// A control plane, or a member of etcd. `spare`: the other members keep their quorum without it, as was read.
    ControlPlane {
        /// True only when that is known.
        spare: bool,
    },
}

/// What a watchdog is, read back from the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchdogSeen {
    /// It bites when it is not fed for this long.
    Armed(Span),
    /// It is closed.
    Disarmed,
    /// It could not be read.
    CannotTell,
}

/// What is there of a join, read in one go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// This machine's Node.
    pub node: NodeSeen,
    /// The kubelet's credentials.
    pub credentials: Credentials,
    /// Somebody takes this machine away, or has.
    pub leaving: Option<Leaving>,
    /// This machine's clock is synchronised: the dates of a certificate can be judged.
    pub clock_is_right: bool,
    /// Its Node is not there now, and was for a moment since the look before.
    pub came_and_went: bool,
}

/// This machine's Node, by name and by this machine's identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeSeen {
    /// It is there and Ready.
    Ready,
    /// It is there and not Ready.
    NotReady,
    /// It is not there: the API server said so.
    Absent,
    /// A Node of its name is there, and it is another machine's.
    AnotherMachines,
    /// Who has no certificate yet may not read it; the cluster itself sees to it that a name is one machine's.
    Guarded,
    /// Nobody could say.
    CannotTell,
}

/// What the kubelet's credentials are worth, each tried against the API server whose CA is pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// They are accepted.
    Accepted,
    /// There is nothing of a join.
    Nothing,
    /// A join has begun, its bootstrap token is accepted, and its kubelet runs.
    Bootstrapping,
    /// The same, and no kubelet runs that could go on with it: the join broke off before it started one.
    Unstarted,
    /// A join has begun and broke off: what the kubelet needs to go on by itself was not written. There is no certificate.
    Interrupted,
    /// A join has begun, and its bootstrap token is refused.
    TokenDead,
    /// They are of no use any more, and its agent fetches others at each start, for a token that is taken.
    Renewable,
    /// The certificate is past its date.
    Expired,
    /// The certificate is within its dates, and the API server refuses it (401).
    Refused,
    /// `kubelet.conf` is of a cluster with another CA.
    Foreign(ForeignCluster),
    /// They could not be tried.
    CannotTell(Arc<str>),
}

/// The other cluster that a `kubelet.conf` is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignCluster {
    /// At its address answers an API server with its CA: it lives.
    Lives,
    /// Nobody answers at its address. That proves nothing.
    Silent,
    /// At its address answers an API server with the pinned CA: it is gone, and this machine's cluster stands in its place.
    Replaced,
}

/// How it is known that a machine is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leaving {
    /// A taint of a scaler or of a shutdown stood on its Node.
    Tainted,
    /// Its Node was being deleted, and a finalizer waited for it.
    Finalizing,
    /// Its Node was cordoned, as for a drain, before it went.
    Drained,
    /// Its cloud is terminating the instance.
    Terminating,
    /// The server says that it was removed.
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

/// How something that was asked for ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done. Proves nothing about its effect.
    Done,
    /// It was not, and why.
    Failed(Arc<str>),
}
