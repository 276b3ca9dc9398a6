//! The events of the engine as JSON, with long lists written as their changes.
//!
//! ```text
//!   {"snapshot":{"cloud":"os","scope":"full","instances":[{"keep":[0,1000]}],"ports":…}}
//!   {"leases":{"nodes":[{"keep":[0,1000]}],"same":[17,4]}}          all but the 18th and the 23rd renewed
//!   {"looked":{"look":3,"answer":{"found":{"console":"…"}}}}   {"applied":{…}}   "tick"
//! ```
//!
//! The recording keeps only one fact of a lease: whether the node renewed it since the list before. The engine uses
//! nothing else, and the time stamp comes from another machine's clock. Ten thousand of them every ten seconds would fill
//! most of a recording.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ipnet::IpNet;
use reveille_core::effect::{Outcome, ReadError};
use reveille_core::event::{
    AgentFact, Answer, CloudFact, CloudSnapshot, ClusterFact, Command, Event, Pause, Scope,
};
use reveille_core::model::id::{
    CloudName, ClusterUid, InstanceId, IntentId, LookId, NodeName, NodeUid, RecordId,
};
use reveille_core::model::instance::{Instance, Port};
use reveille_core::model::network::{Router, SecurityGroup};
use reveille_core::model::node::{Node, NodeEvent};
use reveille_core::model::time::{ServiceTime, Span};
use serde::{Deserialize, Serialize};

use super::Broken;
use super::lease::{LeaseShelf, WireLeases};
use super::list::{Edit, Shelf};

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub(crate) enum WireEvent {
    Snapshot(Box<WireSnapshot>),
    CloudFailed {
        cloud: CloudName,
        error: ReadError,
    },
    Identity(ClusterUid),
    IdentityUnread(ReadError),
    Synced(Vec<Edit<Arc<Node>>>),
    Applied(Arc<Node>),
    Deleted {
        name: NodeName,
        uid: NodeUid,
    },
    Leases(WireLeases),
    NodeEvent(NodeEvent),
    Alive,
    #[serde(rename = "agents")]
    Agent(Box<AgentFact>),
    ClusterFailed(ReadError),
    Looked {
        look: LookId,
        #[serde(with = "Answered")]
        answer: Result<Answer, ReadError>,
    },
    Recorded(RecordId),
    RecordFailed(RecordId),
    Done {
        intent: IntentId,
        outcome: Outcome,
    },
    Pauses(BTreeSet<Pause>),
    ConfirmCluster(ClusterUid),
    ForgetCloud(CloudName),
    Tick,
}

/// The result of a targeted read.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Result<Answer, ReadError>")]
enum Answered {
    #[serde(rename = "found")]
    Ok(Answer),
    #[serde(rename = "unread")]
    Err(ReadError),
}

/// A listing of a project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WireSnapshot {
    cloud: CloudName,
    scope: Scope,
    #[serde(rename = "tookMs")]
    took: Span,
    /// The service's own clock, where the service reported it.
    #[serde(default, rename = "begunS", skip_serializing_if = "Option::is_none")]
    begun: Option<ServiceTime>,
    instances: Vec<Edit<Arc<Instance>>>,
    ports: Vec<Edit<(InstanceId, Arc<Port>)>>,
    #[serde(default, rename = "inUse", skip_serializing_if = "Vec::is_empty")]
    in_use: Vec<Edit<IpNet>>,
    /// `None` where the listing left them out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    groups: Option<Vec<Edit<Arc<SecurityGroup>>>>,
    routers: Vec<Edit<Arc<Router>>>,
}

/// The last lists of one project.
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

/// The last state of all long lists, the same for the writer and the reader.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shelves {
    projects: BTreeMap<CloudName, Project>,
    nodes: Shelf<Arc<Node>>,
    leases: LeaseShelf,
}

impl Shelves {
    /// Converts an event for writing.
    pub(crate) fn out(&mut self, event: &Event) -> WireEvent {
        match event {
            Event::Cloud { cloud, fact: CloudFact::Snapshot { snapshot, took } } => {
                WireEvent::Snapshot(Box::new(self.snapshot_out(cloud, snapshot, *took)))
            }
            Event::Cloud { cloud, fact: CloudFact::Failed(error) } => {
                WireEvent::CloudFailed { cloud: cloud.clone(), error: error.clone() }
            }
            Event::Cluster(fact) => self.fact_out(fact),
            Event::Agent(fact) => WireEvent::Agent(Box::new(fact.clone())),
            Event::Looked { look, answer } => WireEvent::Looked { look: *look, answer: answer.clone() },
            Event::Recorded(id) => WireEvent::Recorded(*id),
            Event::RecordFailed(id) => WireEvent::RecordFailed(*id),
            Event::Done { intent, outcome } => WireEvent::Done { intent: *intent, outcome: outcome.clone() },
            Event::Command(Command::Pauses(pauses)) => WireEvent::Pauses(pauses.clone()),
            Event::Command(Command::ConfirmCluster(cluster)) => WireEvent::ConfirmCluster(cluster.clone()),
            Event::Command(Command::ForgetCloud(cloud)) => WireEvent::ForgetCloud(cloud.clone()),
            Event::Tick => WireEvent::Tick,
        }
    }

    fn fact_out(&mut self, fact: &ClusterFact) -> WireEvent {
        match fact {
            ClusterFact::Identity(cluster) => WireEvent::Identity(cluster.clone()),
            ClusterFact::IdentityUnread(error) => WireEvent::IdentityUnread(error.clone()),
            ClusterFact::Synced(nodes) => WireEvent::Synced(self.nodes.put(nodes, |node| node.name.clone())),
            ClusterFact::Applied(node) => WireEvent::Applied(node.clone()),
            ClusterFact::Deleted { name, uid } => WireEvent::Deleted { name: name.clone(), uid: uid.clone() },
            ClusterFact::Leases(leases) => WireEvent::Leases(self.leases.put(leases)),
            ClusterFact::NodeEvent(event) => WireEvent::NodeEvent(event.clone()),
            ClusterFact::Alive => WireEvent::Alive,
            ClusterFact::Failed(error) => WireEvent::ClusterFailed(error.clone()),
        }
    }

    fn snapshot_out(&mut self, cloud: &CloudName, snapshot: &CloudSnapshot, took: Span) -> WireSnapshot {
        let project = self.projects.entry(cloud.clone()).or_default();
        let in_use: Vec<IpNet> = snapshot.in_use.iter().copied().collect();
        WireSnapshot {
            cloud: cloud.clone(),
            scope: snapshot.scope,
            took,
            begun: snapshot.begun,
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

    /// Converts an event that was read.
    pub(crate) fn back(&mut self, wire: WireEvent) -> Result<Event, Broken> {
        let fact = match wire {
            WireEvent::Snapshot(snapshot) => return self.snapshot_back(*snapshot),
            WireEvent::CloudFailed { cloud, error } => {
                return Ok(Event::Cloud { cloud, fact: CloudFact::Failed(error) });
            }
            WireEvent::Agent(fact) => return Ok(Event::Agent(*fact)),
            WireEvent::Looked { look, answer } => return Ok(Event::Looked { look, answer }),
            WireEvent::Recorded(id) => return Ok(Event::Recorded(id)),
            WireEvent::RecordFailed(id) => return Ok(Event::RecordFailed(id)),
            WireEvent::Done { intent, outcome } => return Ok(Event::Done { intent, outcome }),
            WireEvent::Pauses(pauses) => return Ok(Event::Command(Command::Pauses(pauses))),
            WireEvent::ConfirmCluster(cluster) => {
                return Ok(Event::Command(Command::ConfirmCluster(cluster)));
            }
            WireEvent::ForgetCloud(cloud) => return Ok(Event::Command(Command::ForgetCloud(cloud))),
            WireEvent::Tick => return Ok(Event::Tick),
            WireEvent::Identity(cluster) => ClusterFact::Identity(cluster),
            WireEvent::IdentityUnread(error) => ClusterFact::IdentityUnread(error),
            WireEvent::Synced(edits) => ClusterFact::Synced(self.nodes.take(edits)?),
            WireEvent::Applied(node) => ClusterFact::Applied(node),
            WireEvent::Deleted { name, uid } => ClusterFact::Deleted { name, uid },
            WireEvent::Leases(leases) => ClusterFact::Leases(self.leases.take(leases)?),
            WireEvent::NodeEvent(event) => ClusterFact::NodeEvent(event),
            WireEvent::Alive => ClusterFact::Alive,
            WireEvent::ClusterFailed(error) => ClusterFact::Failed(error),
        };
        Ok(Event::Cluster(fact))
    }

    fn snapshot_back(&mut self, wire: WireSnapshot) -> Result<Event, Broken> {
        let WireSnapshot { cloud, scope, took, begun, instances, ports, in_use, groups, routers } = wire;
        let project = self.projects.entry(cloud.clone()).or_default();
        let snapshot = CloudSnapshot {
            instances: project.instances(scope).take(instances)?,
            begun,
            scope,
            ports: project.ports.take(ports)?,
            in_use: Arc::new(project.in_use.take(in_use)?.into_iter().collect()),
            groups: groups.map(|edits| project.groups.take(edits)).transpose()?,
            routers: project.routers.take(routers)?,
        };
        Ok(Event::Cloud { cloud, fact: CloudFact::Snapshot { snapshot: Arc::new(snapshot), took } })
    }
}
