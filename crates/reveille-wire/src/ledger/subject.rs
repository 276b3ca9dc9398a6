//! What a record is about, as JSON: machines, subjects, domains.
//!
//! ```text
//!   machine  {"instance":{"cloud":"os","id":"…"}}   {"node":"…"}
//!   subject  {"machine":…}   {"group":{"cloud":"os","id":"…"}}   {"router":…}   {"user":["os",{"id":"…"}]}
//!            {"pool":"…"}   {"cloud":"…"}   "cluster"
//! ```

use std::sync::Arc;

use reveille_core::model::access::UserRef;
use reveille_core::model::id::{
    CloudName, GroupId, InstanceId, NodeName, PoolName, RouterId, UserId, ZoneName,
};
use reveille_core::model::incident::{FaultKind, IncidentKey, MachineKey, Subject};
use reveille_core::record::{Domain, Joined};
use serde::{Deserialize, Serialize};

use super::FromWireError;
use super::mirror::{Mirror, mirror_choice, mirror_struct};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum WireMachine {
    Instance(InCloud),
    Node(Arc<str>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InCloud {
    cloud: Arc<str>,
    id: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WireJoined {
    machine: WireMachine,
    node: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pool: Option<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum WireSubject {
    Machine(WireMachine),
    Group(InCloud),
    Router(InCloud),
    User(Arc<str>, WireUserRef),
    Pool(Arc<str>),
    Cloud(Arc<str>),
    Cluster,
}

mirror_choice! {
    WireUserRef of UserRef {
        "id" Id(id: UserId),
        "name" Name {
            name: Arc<str>,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            domain: Option<Arc<str>>,
        },
    }
}

mirror_struct! {
    WireKey of IncidentKey {
        subject: Subject,
        #[serde(rename = "fault")]
        kind: FaultKind,
    }
}

mirror_struct! {
    WireDomain of Domain {
        pool: PoolName,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        zone: Option<ZoneName>,
        #[serde(rename = "fault")]
        kind: FaultKind,
    }
}

impl InCloud {
    fn new(cloud: &CloudName, id: Arc<str>) -> Self {
        Self { cloud: cloud.shared(), id }
    }
}

impl Mirror for MachineKey {
    type Wire = WireMachine;

    fn out(&self) -> WireMachine {
        match self {
            Self::Instance(cloud, id) => WireMachine::Instance(InCloud::new(cloud, id.shared())),
            Self::Node(name) => WireMachine::Node(name.shared()),
        }
    }

    fn back(wire: WireMachine) -> Result<Self, FromWireError> {
        Ok(match wire {
            WireMachine::Instance(InCloud { cloud, id }) => {
                Self::Instance(CloudName::new(cloud), InstanceId::new(id))
            }
            WireMachine::Node(name) => Self::Node(NodeName::new(name)),
        })
    }
}

impl Mirror for Joined {
    type Wire = WireJoined;

    fn out(&self) -> WireJoined {
        let pool = self.pool.as_ref().map(PoolName::shared);
        WireJoined { machine: self.machine.out(), node: self.node.shared(), pool }
    }

    fn back(wire: WireJoined) -> Result<Self, FromWireError> {
        Ok(Self {
            machine: MachineKey::back(wire.machine)?,
            node: NodeName::new(wire.node),
            pool: wire.pool.map(PoolName::new),
        })
    }
}

impl Mirror for Subject {
    type Wire = WireSubject;

    fn out(&self) -> WireSubject {
        match self {
            Self::Machine(key) => WireSubject::Machine(key.out()),
            Self::Group(cloud, id) => WireSubject::Group(InCloud::new(cloud, id.shared())),
            Self::Router(cloud, id) => WireSubject::Router(InCloud::new(cloud, id.shared())),
            Self::User(cloud, user) => WireSubject::User(cloud.shared(), user.out()),
            Self::Pool(name) => WireSubject::Pool(name.shared()),
            Self::Cloud(name) => WireSubject::Cloud(name.shared()),
            Self::Cluster => WireSubject::Cluster,
        }
    }

    fn back(wire: WireSubject) -> Result<Self, FromWireError> {
        Ok(match wire {
            WireSubject::Machine(machine) => Self::Machine(MachineKey::back(machine)?),
            WireSubject::Group(InCloud { cloud, id }) => Self::Group(CloudName::new(cloud), GroupId::new(id)),
            WireSubject::Router(InCloud { cloud, id }) => {
                Self::Router(CloudName::new(cloud), RouterId::new(id))
            }
            WireSubject::User(cloud, user) => Self::User(CloudName::new(cloud), Arc::back(user)?),
            WireSubject::Pool(name) => Self::Pool(PoolName::new(name)),
            WireSubject::Cloud(name) => Self::Cloud(CloudName::new(name)),
            WireSubject::Cluster => Self::Cluster,
        })
    }
}
