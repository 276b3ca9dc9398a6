//! What reached the engine, as JSON, with long lists as what changed in them.
//!
//! ```text
//!   {"snapshot":{"cloud":"os","scope":"full","instances":[{"keep":[0,1000]}],"ports":…}}
//!   {"leases":{"nodes":[{"keep":[0,1000]}],"same":[17,4]}}          everybody but the 18th and the 23rd renewed
//!   {"looked":{"look":3,"answer":{"found":{"console":"…"}}}}   {"applied":{…}}   "tick"
//! ```
//!
//! Of a lease only one thing is kept: whether it was renewed since the list before. The engine looks at nothing else, the
//! text is another machine's clock, and ten thousand of them every ten seconds would be most of a recording.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ipnet::IpNet;
use reveille_core::effect::{Outcome, ReadError};
use reveille_core::event::{
    AgentFact, Answer, CloudFact, CloudSnapshot, ClusterFact, Command, Event, Pause, PauseScope, Scope,
};
use reveille_core::model::access::UserRoles;
use reveille_core::model::hearing::Said;
use reveille_core::model::id::{
    CloudName, ClusterUid, InstanceId, IntentId, LookId, NodeName, NodeUid, RecordId,
};
use reveille_core::model::instance::{Instance, InstanceAction, Port};
use reveille_core::model::network::{Router, SecurityGroup};
use reveille_core::model::node::{Node, NodeEvent};
use reveille_core::model::testimony::Testimony;
use reveille_core::model::time::{ServiceTime, Span};
use serde::{Deserialize, Serialize};

use super::Broken;
use super::agent::WireAgentFact;
use super::lease::{LeaseShelf, WireLeases};
use super::list::{Edit, Shelf};
use super::world::{WireGroup, WireInstance, WireNode, WireNodeEvent, WirePort, WireReadError, WireRouter};
use crate::ledger::FromWireError;
use crate::ledger::mirror::{Mirror, mirror_choice, mirror_struct};

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub(crate) enum WireEvent {
    Snapshot(Box<WireSnapshot>),
    CloudFailed {
        cloud: Arc<str>,
        error: WireReadError,
    },
    Identity(Arc<str>),
    IdentityUnread(WireReadError),
    Synced(Vec<Edit<WireNode>>),
    Applied(Box<WireNode>),
    Deleted {
        name: Arc<str>,
        uid: Arc<str>,
    },
    Leases(WireLeases),
    NodeEvent(WireNodeEvent),
    Alive,
    #[serde(rename = "agents")]
    Agent(Box<WireAgentFact>),
    ClusterFailed(WireReadError),
    Looked {
        look: u64,
        answer: WireAnswered,
    },
    Recorded(u64),
    RecordFailed(u64),
    Done {
        intent: u64,
        outcome: <Outcome as Mirror>::Wire,
    },
    Pauses(Vec<WirePause>),
    ConfirmCluster(Arc<str>),
    ForgetCloud(Arc<str>),
    Tick,
}

/// A listing of a project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WireSnapshot {
    cloud: Arc<str>,
    scope: Arc<str>,
    /// Recordings of before this was known have none.
    #[serde(default, rename = "tookMs", skip_serializing_if = "is_zero")]
    took_ms: i64,
    /// The service's own clock, whole seconds, where it told.
    #[serde(default, rename = "begunS", skip_serializing_if = "Option::is_none")]
    begun_s: Option<i64>,
    instances: Vec<Edit<WireInstance>>,
    ports: Vec<Edit<(Arc<str>, WirePort)>>,
    /// Recordings of before this was known have none.
    #[serde(default, rename = "inUse", skip_serializing_if = "Vec::is_empty")]
    in_use: Vec<Edit<IpNet>>,
    /// None where they were left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    groups: Option<Vec<Edit<WireGroup>>>,
    routers: Vec<Edit<WireRouter>>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
const fn is_zero(ms: &i64) -> bool {
    *ms == 0
}

/// What a targeted read came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WireAnswered {
    Found(Box<<Answer as Mirror>::Wire>),
    Unread(WireReadError),
}

mirror_choice! {
    WireAnswer of Answer {
        "instance" Instance(instance: Option<Arc<Instance>>),
        "ports" Ports(ports: Vec<Arc<Port>>),
        "group" Group(group: Option<Arc<SecurityGroup>>),
        "router" Router(router: Option<Arc<Router>>),
        "console" Console(text: Arc<str>),
        "said" Said(said: Arc<Said>),
        "testimony" Testimony(testimony: Arc<Testimony>),
        "no-console" NoConsole(why: Arc<str>),
        "actions" Actions(actions: Vec<InstanceAction>),
        "roles" Roles(roles: UserRoles),
        "node" Node(node: Option<Arc<Node>>),
        "node-events" NodeEvents(events: Vec<NodeEvent>),
    }
}

mirror_struct! {
    WirePause of Pause {
        scope: PauseScope,
        by: Arc<str>,
        reason: Arc<str>,
    }
}

mirror_choice! {
    WirePauseScope of PauseScope {
        "roster" Roster,
        "other-controller" OtherController,
        "pool" Pool(pool: Arc<str>),
        "machine" Machine(machine: Arc<str>),
    }
}

impl Mirror for Result<Answer, ReadError> {
    type Wire = WireAnswered;

    fn out(&self) -> WireAnswered {
        match self {
            Ok(answer) => WireAnswered::Found(Box::new(answer.out())),
            Err(error) => WireAnswered::Unread(error.out()),
        }
    }

    fn back(wire: WireAnswered) -> Result<Self, FromWireError> {
        Ok(match wire {
            WireAnswered::Found(answer) => Ok(Answer::back(*answer)?),
            WireAnswered::Unread(error) => Err(ReadError::back(error)?),
        })
    }
}

impl Mirror for (InstanceId, Arc<Port>) {
    type Wire = (Arc<str>, WirePort);

    fn out(&self) -> Self::Wire {
        (self.0.shared(), self.1.out())
    }

    fn back(wire: Self::Wire) -> Result<Self, FromWireError> {
        Ok((InstanceId::new(wire.0), Arc::back(wire.1)?))
    }
}

/// The lists of one project, as they were last.
#[derive(Clone, Debug, Default)]
struct Project {
    full: Shelf<Arc<Instance>>,
    changes: Shelf<Arc<Instance>>,
    ports: Shelf<(InstanceId, Arc<Port>)>,
    groups: Shelf<Arc<SecurityGroup>>,
    routers: Shelf<Arc<Router>>,
    in_use: Shelf<IpNet>,
}

impl Project {
    const fn instances(&mut self, scope: Scope) -> &mut Shelf<Arc<Instance>> {
        match scope {
            Scope::Full => &mut self.full,
            Scope::Changes => &mut self.changes,
        }
    }
}

/// All long lists as they were last: the same at the writer's and at the reader's end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shelves {
    projects: BTreeMap<CloudName, Project>,
    nodes: Shelf<Arc<Node>>,
    leases: LeaseShelf,
}

impl Shelves {
    /// Writes.
    pub(crate) fn out(&mut self, event: &Event) -> WireEvent {
        match event {
            Event::Cloud { cloud, fact: CloudFact::Snapshot { snapshot, took } } => {
                WireEvent::Snapshot(Box::new(self.snapshot_out(cloud, snapshot, *took)))
            }
            Event::Cloud { cloud, fact: CloudFact::Failed(error) } => {
                WireEvent::CloudFailed { cloud: cloud.out(), error: error.out() }
            }
            Event::Cluster(fact) => self.fact_out(fact),
            Event::Agent(fact) => WireEvent::Agent(Box::new(fact.out())),
            Event::Looked { look, answer } => WireEvent::Looked { look: look.out(), answer: answer.out() },
            Event::Recorded(id) => WireEvent::Recorded(id.out()),
            Event::RecordFailed(id) => WireEvent::RecordFailed(id.out()),
            Event::Done { intent, outcome } => {
                WireEvent::Done { intent: intent.out(), outcome: outcome.out() }
            }
            Event::Command(Command::Pauses(pauses)) => WireEvent::Pauses(pauses.out()),
            Event::Command(Command::ConfirmCluster(cluster)) => WireEvent::ConfirmCluster(cluster.out()),
            Event::Command(Command::ForgetCloud(cloud)) => WireEvent::ForgetCloud(cloud.out()),
            Event::Tick => WireEvent::Tick,
        }
    }

    fn fact_out(&mut self, fact: &ClusterFact) -> WireEvent {
        match fact {
            ClusterFact::Identity(cluster) => WireEvent::Identity(cluster.out()),
            ClusterFact::IdentityUnread(error) => WireEvent::IdentityUnread(error.out()),
            ClusterFact::Synced(nodes) => WireEvent::Synced(self.nodes.put(nodes, |node| node.name.clone())),
            ClusterFact::Applied(node) => WireEvent::Applied(Box::new(node.out())),
            ClusterFact::Deleted { name, uid } => WireEvent::Deleted { name: name.out(), uid: uid.out() },
            ClusterFact::Leases(leases) => WireEvent::Leases(self.leases.put(leases)),
            ClusterFact::NodeEvent(event) => WireEvent::NodeEvent(event.out()),
            ClusterFact::Alive => WireEvent::Alive,
            ClusterFact::Failed(error) => WireEvent::ClusterFailed(error.out()),
        }
    }

    fn snapshot_out(&mut self, cloud: &CloudName, snapshot: &CloudSnapshot, took: Span) -> WireSnapshot {
        let project = self.projects.entry(cloud.clone()).or_default();
        let in_use: Vec<IpNet> = snapshot.in_use.iter().copied().collect();
        WireSnapshot {
            cloud: cloud.out(),
            scope: snapshot.scope.out(),
            took_ms: took.ms,
            begun_s: snapshot.begun.map(|begun| begun.s),
            instances: project.instances(snapshot.scope).put(&snapshot.instances, |one| one.id.clone()),
            ports: project.ports.put(&snapshot.ports, |(of, port)| (of.clone(), port.id.clone())),
            in_use: project.in_use.put(&in_use, |net| *net),
            groups: snapshot
                .groups
                .as_ref()
                .map(|groups| project.groups.put(groups, |group| group.id.clone())),
            routers: project.routers.put(&snapshot.routers, |router| router.id.clone()),
        }
    }

    /// Reads.
    pub(crate) fn back(&mut self, wire: WireEvent) -> Result<Event, Broken> {
        Ok(match wire {
            WireEvent::Snapshot(snapshot) => self.snapshot_back(*snapshot)?,
            WireEvent::CloudFailed { cloud, error } => Event::Cloud {
                cloud: CloudName::new(cloud),
                fact: CloudFact::Failed(ReadError::back(error)?),
            },
            WireEvent::Identity(cluster) => Event::Cluster(ClusterFact::Identity(ClusterUid::new(cluster))),
            WireEvent::IdentityUnread(error) => {
                Event::Cluster(ClusterFact::IdentityUnread(ReadError::back(error)?))
            }
            WireEvent::Synced(edits) => Event::Cluster(ClusterFact::Synced(self.nodes.take(edits)?)),
            WireEvent::Applied(node) => Event::Cluster(ClusterFact::Applied(Arc::back(*node)?)),
            WireEvent::Deleted { name, uid } => {
                Event::Cluster(ClusterFact::Deleted { name: NodeName::new(name), uid: NodeUid::new(uid) })
            }
            WireEvent::Leases(leases) => Event::Cluster(ClusterFact::Leases(self.leases.take(leases)?)),
            WireEvent::NodeEvent(event) => Event::Cluster(ClusterFact::NodeEvent(NodeEvent::back(event)?)),
            WireEvent::Alive => Event::Cluster(ClusterFact::Alive),
            WireEvent::ClusterFailed(error) => Event::Cluster(ClusterFact::Failed(ReadError::back(error)?)),
            WireEvent::Agent(fact) => Event::Agent(AgentFact::back(*fact)?),
            WireEvent::Looked { look, answer } => {
                Event::Looked { look: LookId(look), answer: Result::back(answer)? }
            }
            WireEvent::Recorded(id) => Event::Recorded(RecordId(id)),
            WireEvent::RecordFailed(id) => Event::RecordFailed(RecordId(id)),
            WireEvent::Done { intent, outcome } => {
                Event::Done { intent: IntentId(intent), outcome: Outcome::back(outcome)? }
            }
            WireEvent::Pauses(pauses) => Event::Command(Command::Pauses(BTreeSet::back(pauses)?)),
            WireEvent::ConfirmCluster(cluster) => {
                Event::Command(Command::ConfirmCluster(ClusterUid::new(cluster)))
            }
            WireEvent::ForgetCloud(cloud) => Event::Command(Command::ForgetCloud(CloudName::new(cloud))),
            WireEvent::Tick => Event::Tick,
        })
    }

    fn snapshot_back(&mut self, wire: WireSnapshot) -> Result<Event, Broken> {
        let cloud = CloudName::new(wire.cloud);
        let project = self.projects.entry(cloud.clone()).or_default();
        let scope = Scope::back(wire.scope)?;
        let took = Span::from_ms(wire.took_ms);
        let snapshot = CloudSnapshot {
            instances: project.instances(scope).take(wire.instances)?,
            begun: wire.begun_s.map(ServiceTime::from_s),
            scope,
            ports: project.ports.take(wire.ports)?,
            in_use: Arc::new(project.in_use.take(wire.in_use)?.into_iter().collect()),
            groups: wire.groups.map(|edits| project.groups.take(edits)).transpose()?,
            routers: project.routers.take(wire.routers)?,
        };
        Ok(Event::Cloud { cloud, fact: CloudFact::Snapshot { snapshot: Arc::new(snapshot), took } })
    }
}
