//! Everything that can reach the engine: one closed list.
//!
//! Adapters turn what the clouds and the cluster say into [`Event`]s and hand them to `engine::step`, one at a time, with
//! the time. An adapter never judges: it hands over a listing only when it is complete, hands over a failed read as a
//! failure, and guesses nothing in between.

use std::collections::BTreeSet;
use std::sync::Arc;

use ipnet::IpNet;

use serde::{Deserialize, Serialize};

use crate::model::access::UserRoles;
use crate::model::agent_report::AgentReport;
use crate::model::id::{
    AgentId, CloudName, ClusterUid, InstanceId, IntentId, LookId, NodeName, NodeUid, PoolName, RecordId,
};
use crate::model::instance::{Instance, InstanceAction, Port};
use crate::model::lease::Leases;
use crate::model::log_evidence::Said;
use crate::model::log_findings::LogFindings;
use crate::model::network::{Router, SecurityGroup};
use crate::model::node::{Node, NodeEvent};
use crate::model::outcome::Outcome;
use crate::model::read_error::ReadError;
use crate::model::time::{ServiceTime, Span};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A cloud said something.
    Cloud {
        /// Which one.
        cloud: CloudName,
        /// What.
        fact: CloudFact,
    },
    /// The cluster's API said something.
    Cluster(ClusterFact),
    /// An agent on a machine reported, or the registration server said something about it.
    Agent(AgentFact),
    /// A targeted read came back.
    Looked {
        /// Which one.
        look: LookId,
        /// What it found, or why it could not tell.
        answer: Result<Answer, ReadError>,
    },
    /// The ledger holds a record, durably.
    Recorded(RecordId),
    /// The ledger could not take a record; nothing that rests on it may happen.
    RecordFailed(RecordId),
    /// A call is over, one way or another.
    Done {
        /// Whose.
        intent: IntentId,
        /// How it ended.
        outcome: Outcome,
    },
    /// A person said something.
    Command(Command),
    /// Time passed. The driver sends one at every `WakeAt`, and at least one every ten seconds.
    Tick,
}

/// What a cloud can say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloudFact {
    /// A complete reading of the project.
    Snapshot {
        /// What it says.
        snapshot: Arc<CloudSnapshot>,
        /// From before its first request until it was whole. What was asked for by itself meanwhile may be newer.
        took: Span,
    },
    /// The reading failed, or was incomplete; nothing of it counts.
    Failed(ReadError),
}

impl CloudFact {
    /// A reading that took no time at all.
    pub fn read(snapshot: CloudSnapshot) -> Self {
        Self::Snapshot { snapshot: Arc::new(snapshot), took: Span::ZERO }
    }
}

/// One complete reading of one project: every page of every list.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct CloudSnapshot {
    /// All instances (`Scope::Full`), or those that changed or went since the last reading (`Scope::Changes`, which
    /// then may hold instances in state `Gone`).
    pub instances: Vec<Arc<Instance>>,
    /// The service's own clock when it began to answer, where it tells.
    pub begun: Option<ServiceTime>,
    /// How much `instances` covers. Ports, routers, and groups that were read are always whole.
    pub scope: Scope,
    /// All ports of the project that belong to an instance, by that instance. Also those of instances that are not ours,
    /// because their addresses are in use.
    pub ports: Vec<(InstanceId, Arc<Port>)>,
    /// What else is in use on the networks of the project, as addresses and as networks: fixed addresses of ports that belong
    /// to no instance (VIPs, router legs, trunk subports, load balancers, DHCP), and the allowed address pairs of all ports.
    /// A route through one of them leads to something.
    pub in_use: Arc<BTreeSet<IpNet>>,
    /// The groups that rosters name, with their rules. A name may be there several times, or not at all. `None`: they were
    /// not read this time, and are as before.
    pub groups: Option<Vec<Arc<SecurityGroup>>>,
    /// The routers that rosters name, where they were found.
    pub routers: Vec<Arc<Router>>,
}

/// How much a snapshot's instance list covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Everything that carries a roster's cluster mark: what is not there was not listed.
    #[default]
    Full,
    /// Only what changed: what is not there is as before.
    Changes,
}

/// What the cluster's API can say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterFact {
    /// Which cluster answers. LogFinding before each complete list.
    Identity(ClusterUid),
    /// The API server did not tell which cluster it is of, and why.
    IdentityUnread(ReadError),
    /// A complete list of nodes: at the start, and after each gap in the watch.
    Synced(Vec<Arc<Node>>),
    /// A node appeared or changed.
    Applied(Arc<Node>),
    /// A node was deleted.
    Deleted {
        /// Its name.
        name: NodeName,
        /// Its uid, so that a late delivery does not remove its successor.
        uid: NodeUid,
    },
    /// A complete list of node leases.
    Leases(Leases),
    /// An Event says that a client did something to a Node.
    NodeEvent(NodeEvent),
    /// The API answered (bookmark, probe): the watch is not just quiet, it is alive and current.
    Alive,
    /// The API could not be read, or the watch broke.
    Failed(ReadError),
}

/// What is heard of the agents on the machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum AgentFact {
    /// One of them reported.
    Said {
        /// Which.
        agent: AgentId,
        /// What.
        report: Arc<AgentReport>,
    },
    /// Its connection ended: nothing can be asked of it until it is heard again. Says nothing of its machine.
    Parted {
        /// Which.
        agent: AgentId,
        /// Why, as far as the server knows.
        why: Arc<str>,
    },
    /// The registration server hears agents, for the first time or again.
    Listening,
    /// No registration server hears the agents: that they are silent proves nothing.
    Deaf(ReadError),
}

/// What a targeted read found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Answer {
    /// The instance; `None` is a positive "no such id" (404), never a failed read.
    Instance(Option<Arc<Instance>>),
    /// All ports of the instance.
    Ports(Vec<Arc<Port>>),
    /// The group; `None` is a positive 404.
    Group(Option<Arc<SecurityGroup>>),
    /// The router; `None` is a positive 404.
    Router(Option<Arc<Router>>),
    /// The last lines of the console log, control characters stripped: as an adapter reads it. The engine takes it only
    /// judged.
    Console(Arc<str>),
    /// What the cluster says of a machine, as an adapter reads it. Taken only judged as well.
    Said(Arc<Said>),
    /// A console, or that there is none, with what the cluster says, judged.
    #[serde(rename = "testimony")]
    LogFindings(Arc<LogFindings>),
    /// The cloud has no console log for it, and why (no console, not ready, driver cannot).
    NoConsole(Arc<str>),
    /// The log of actions, newest first.
    Actions(Vec<InstanceAction>),
    /// What the user holds on the project.
    Roles(UserRoles),
    /// The node; `None` is a positive 404.
    Node(Option<Arc<Node>>),
    /// The events about a node that the API still holds, oldest first.
    NodeEvents(Vec<NodeEvent>),
}

/// What a person can say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// These are all the pauses there are, each by its scope, with who and why.
    Pauses(BTreeSet<Pause>),
    /// This cluster is the right one, should it answer, whatever the ledger says.
    ConfirmCluster(ClusterUid),
    /// What the ledger tells of this cloud's machines is of no use any more: the roster does not name it.
    ForgetCloud(CloudName),
}

/// A standing "hands off", set by a person.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pause {
    /// What it covers.
    pub scope: PauseScope,
    /// Who said so.
    pub by: Arc<str>,
    /// Why.
    pub reason: Arc<str>,
}

/// What a pause covers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum PauseScope {
    /// The whole roster.
    Roster,
    /// The whole roster, because another controller acts for it. Its end is a handover.
    OtherController,
    /// One pool, by name.
    Pool(Arc<str>),
    /// One machine, by instance id, instance name or node name.
    Machine(Arc<str>),
}

impl PauseScope {
    /// Whether it covers a machine of this pool (when it has one) that is called by these names: its instance's id or name,
    /// or a node's name.
    pub fn covers(&self, pool: Option<&PoolName>, is_called: impl FnOnce(&str) -> bool) -> bool {
        match self {
            Self::Roster | Self::OtherController => true,
            Self::Pool(name) => pool.is_some_and(|pool| *pool.as_str() == **name),
            Self::Machine(name) => is_called(name),
        }
    }
}
