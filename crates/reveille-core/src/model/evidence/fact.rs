//! The statements that evidence is made of, one variant each.
//!
//! They are grouped by what they are about, because each group has its words in one function. Ids, spans and names are typed; a
//! text of another program was cut where the fact was made ([`super::quoted`], [`super::shown`]). Not here: their words.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::model::access::{RoleRef, UserRef};
use crate::model::agent::{ApiSaid, KubeletSaid, StageError};
use crate::model::guest::{BootProgress, ConfigDrive};
use crate::model::hosting::{Checks, Notice, OwnerGroup};
use crate::model::id::{GroupId, InstanceId, NodeName, ProjectId, RuleId};
use crate::model::instance::{Fault, Mark};
use crate::model::network::{Obstacle, Route, RuleSpec};
use crate::model::node::{Condition, Identity, Provider, Ready};
use crate::model::roster::GroupRef;
use crate::model::stage::Stage;
use crate::model::time::Span;

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Fact {
    /// In the words of another program, masked and cut to size.
    Quoted(Arc<str>),
    /// The source could not be read, and why.
    Unread(Arc<str>),
    /// About the instance, by its cloud and our memory of it.
    Machine(MachineFact),
    /// About Nodes.
    Cluster(NodeFact),
    /// About ports, security groups and routes.
    Net(NetworkFact),
    /// About what runs on the machine.
    Guest(GuestFact),
    /// The cloud knows no such service user.
    NoUser(Arc<UserRef>),
    /// A service user lacks roles.
    RolesMissing {
        /// Which.
        missing: Vec<RoleRef>,
        /// Those of them that the cloud does not have at all.
        unknown: Vec<RoleRef>,
        /// On which project.
        project: ProjectId,
        /// The names of the roles that it holds there.
        held: Vec<Arc<str>>,
    },
}

impl From<MachineFact> for Fact {
    fn from(fact: MachineFact) -> Self {
        Self::Machine(fact)
    }
}

impl From<NodeFact> for Fact {
    fn from(fact: NodeFact) -> Self {
        Self::Cluster(fact)
    }
}

impl From<NetworkFact> for Fact {
    fn from(fact: NetworkFact) -> Self {
        Self::Net(fact)
    }
}

impl From<GuestFact> for Fact {
    fn from(fact: GuestFact) -> Self {
        Self::Guest(fact)
    }
}

/// A statement about an instance, by its cloud and our memory of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum MachineFact {
    /// The cloud denied it by id so often.
    Denied(u8),
    /// The cloud denies it, and it came into sight so lately that this is not believed.
    DeniedYoung {
        /// For how long it has been denied.
        denied_for: Span,
        /// How long ago it came into sight.
        age: Span,
    },
    /// Why its provider ended it, in the provider's words.
    Ended(Arc<str>),
    /// Its tags and metadata, as far as they are shown.
    Marks(Vec<Mark>),
    /// It is being deleted, under this task of the cloud.
    Deleting(Option<Arc<str>>, Span),
    /// It is being built, under this task of the cloud.
    Building(Option<Arc<str>>, Span),
    /// It is in ERROR, and the cloud's reason where it gives one.
    Errored(Option<Fault>),
    /// It has been shut off for so long.
    ShutOff(Span),
    /// Its Node was removed on purpose, and the instance stayed.
    NodeLeft {
        /// By which sign that was known.
        sign: Arc<str>,
        /// How long ago it went.
        ago: Span,
    },
    /// The provider's checks of it failed.
    ChecksFailed {
        /// All of its checks.
        checks: Checks,
        /// Its Node is Ready all the same.
        ready: bool,
    },
    /// The provider announced something.
    Announced(Notice),
    /// A group of the cloud keeps it.
    Kept(OwnerGroup),
    /// Its disks are lost when it stops.
    LosesDisks,
    /// It has no identity towards its cloud.
    NoIdentity,
    /// It has no port.
    NoPort,
    /// Whether a config drive is attached, and what its guest says of that.
    ConfigDrive {
        /// One is.
        attached: bool,
        /// The guest found it.
        found: ConfigDrive,
    },
    /// No process saw the list of Nodes since it was made.
    NodesUnseen,
    /// It is older than our memory of it.
    OlderThanWatch,
}

/// A statement about Nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum NodeFact {
    /// No Node stands for the machine.
    None,
    /// It is Ready.
    Ready,
    /// Its condition Ready was never written.
    ReadyUnreported,
    /// What one of its conditions says.
    Condition(Ready, Condition),
    /// No cloud controller has initialised it.
    Uninitialized,
    /// Its lease was renewed lately.
    LeaseRenewed,
    /// It is gone, and its lease is renewed.
    LeaseOutlives,
    /// It carries this startup taint, for so long.
    StartupTaint(Arc<str>, Span),
    /// A client removes it, by this sign, for so long, and it stays.
    Leaving(Arc<str>, Span),
    /// It was there once.
    Gone {
        /// Which.
        node: NodeName,
        /// Events tell why, and may be about an earlier Node of its name: it was not watched when it went.
        events_doubted: bool,
    },
    /// What an event about it says.
    Event {
        /// In the words of its writer.
        message: Arc<str>,
        /// The writer.
        reporter: Arc<str>,
    },
    /// These name the same instance.
    SameInstance(Vec<NodeName>),
    /// This one names the instance as well, and was never Ready.
    StandIn(NodeName),
    /// It carries the system UUID of another instance.
    OthersUuid {
        /// Which Node.
        node: NodeName,
        /// It is Ready.
        ready: bool,
        /// The other one.
        instance: InstanceId,
    },
    /// It carries an identity of the machine, and does not stand for it.
    Shared {
        /// Which Node.
        node: NodeName,
        /// It is Ready.
        ready: bool,
        /// The identity.
        by: Identity,
        /// The instance that it stands for.
        #[serde(skip_serializing_if = "Option::is_none")]
        stands_for: Option<InstanceId>,
        /// What its provider ID says.
        provider: Provider,
    },
    /// Its provider ID names an instance that carries no mark of the roster.
    NamesUnmarked(InstanceId),
    /// Its provider ID names an instance that was denied by id so often.
    NamesDenied(InstanceId, u8),
}

/// A statement about ports, security groups and routes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum NetworkFact {
    /// The port lacks groups, seen beside the groups of its project.
    GroupsMissing {
        /// Which.
        missing: Vec<GroupRef>,
        /// How many it carries.
        carried: usize,
        /// Why it takes none.
        #[serde(skip_serializing_if = "Option::is_none")]
        obstacle: Option<Obstacle>,
    },
    /// The port lacks groups, seen on the port alone.
    Groups {
        /// What it carries.
        carried: Vec<GroupId>,
        /// What it lacks.
        missing: Vec<GroupId>,
        /// Why it takes none.
        #[serde(skip_serializing_if = "Option::is_none")]
        obstacle: Option<Obstacle>,
    },
    /// The port of a running instance, with these addresses, is DOWN.
    PortDown(Vec<IpAddr>),
    /// The port does not allow these ranges.
    PairsMissing(Vec<IpNet>),
    /// So many groups of the project have that name.
    GroupsOfThatName(usize),
    /// The group has no rule that allows this.
    RuleMissing(RuleSpec),
    /// A rule of a nudge was left in the group.
    NudgeRule {
        /// Which.
        rule: RuleId,
        /// What is written on it.
        mark: Arc<str>,
    },
    /// A route of a nudge was left in the router.
    NudgeRoute(Route),
    /// The router lacks these.
    RoutesMissing(Vec<Route>),
    /// The next hop of this one is in use nowhere.
    DeadHop(Route),
    /// Of these, several lead to something alive.
    HopsAlive(Vec<Route>),
    /// How full the router is.
    RouterFull {
        /// How many routes it holds.
        used: u32,
        /// How many it may hold.
        limit: u32,
        /// How many of them are not of this cluster.
        foreign: usize,
        /// How many more are needed now.
        needed: u32,
    },
}

/// A statement about what runs on the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum GuestFact {
    /// Its console was not read yet.
    ConsoleUnread,
    /// It has no console, and why.
    NoConsole(Arc<str>),
    /// How far its boot came, where nothing is known to be wrong.
    Boot(BootProgress),
    /// The metadata service or the API server answered it.
    Answered,
    /// It got an address.
    Addressed,
    /// The cluster has heard of it.
    HeardOf,
    /// What failed there was answered, or needs no network.
    NeedsNoNetwork,
    /// It got no lease, by this line.
    NoLease(Arc<str>),
    /// What its agent says of it.
    Agent {
        /// Whether its kubelet runs.
        kubelet: KubeletSaid,
        /// Whether it reaches the API server.
        api: ApiSaid,
        /// Where its join stands.
        #[serde(skip_serializing_if = "Option::is_none")]
        stage: Option<Stage>,
        /// What went wrong there.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<StageError>,
        /// What the agent does about it by itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        work: Option<Arc<str>>,
        /// Why it leaves its join alone.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[serde(rename = "hold")]
        blocker: Option<Arc<str>>,
    },
    /// Its agent has not been heard since.
    AgentSilent,
}
