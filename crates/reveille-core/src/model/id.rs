//! Typed names and numbers. A bare string never crosses a function border in the core: a pool is a [`PoolName`], a
//! server a [`InstanceId`], and the compiler keeps them apart.
//!
//! Text ids share their bytes (`Arc<str>`), because the same zone, pool and node name stands in many places of a state
//! that must hold fifty thousand machines. They order by their bytes, so every map over them iterates alike on each run;
//! two that share their bytes are found equal without looking at them, which is most of what listings of an unchanged
//! fleet ask.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! text_id {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
            }
        }

        impl Eq for $name {}

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                if Arc::ptr_eq(&self.0, &other.0) { Ordering::Equal } else { self.0.cmp(&other.0) }
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.0.hash(state);
            }
        }

        impl $name {
            /// Wraps the text as it came from the outside, unchanged.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// The text itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The shared bytes, for another id of the same text.
            pub fn shared(&self) -> Arc<str> {
                self.0.clone()
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(Arc::from(text))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
    )*};
}

text_id! {
    /// The roster's own name (`metadata.name`).
    RosterName,
    /// A pool of a roster.
    PoolName,
    /// A cloud of a roster: one project of one OpenStack, under the roster's name for it.
    CloudName,
    /// A failure domain, as the cloud or the node's zone label says it.
    ZoneName,
    /// The cloud's id of an instance (Nova's UUID, EC2's `i-…`), lower case.
    InstanceId,
    /// The cloud's display name of an instance. A hint, never an identity.
    InstanceName,
    /// The image an instance was made from.
    ImageId,
    /// A Kubernetes node's name.
    NodeName,
    /// A Kubernetes object's uid.
    NodeUid,
    /// A cluster, by the uid of its namespace `kube-system`.
    ClusterUid,
    /// A network port of an instance.
    PortId,
    /// The network that a port is on.
    NetworkId,
    /// A security group.
    GroupId,
    /// A rule of a security group.
    RuleId,
    /// A router that carries pod routes.
    RouterId,
    /// A project of a cloud, by its id.
    ProjectId,
    /// A user of the cloud (Keystone), by its id.
    UserId,
    /// A role that users hold on projects, by its id.
    RoleId,
    /// An agent on a machine, under the id that the registration server knows. Does not say which machine it is on.
    AgentId,
    /// The request id that the cloud gave to a call (`X-Openstack-Request-Id`).
    RequestId,
    /// A cause's name in the taxonomy (`bootstrap-token-invalid`), as a catalogue gives it.
    CauseLabel,
    /// A cause's stable code (`RV117`), as a catalogue gives it.
    CauseCode,
}

macro_rules! number_id {
    ($($(#[$doc:meta])* $name:ident $prefix:literal),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The one after this one.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    )*};
}

number_id! {
    /// One fault, from first sight to verdict. Counts up over the life of a ledger.
    IncidentId "inc-",
    /// One recorded decision to change something outside. Counts up over the life of a ledger.
    IntentId "int-",
    /// One line of the ledger, as the engine numbers it.
    RecordId "rec-",
    /// One targeted read that the engine asked for.
    LookId "look-",
    /// The fencing number of the process that holds the ledger: a call with an older number is refused by its performer.
    Fence "fence-",
}
