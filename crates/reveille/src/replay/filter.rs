//! Reduces a recording to some machines: it removes all others from events and from the restored memory.
//!
//! Listings keep only the instances, ports and routes of these machines; groups, pauses and failures of a whole source
//! concern all machines. Answers to reads and calls stay: the player pairs them with requests, and finds out there
//! whether the engine asked.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use reveille_core::event::{AgentFact, CloudFact, CloudSnapshot, ClusterFact, Event};
use reveille_core::model::agent::Who;
use reveille_core::model::id::{IncidentId, InstanceId, IntentId, NodeName};
use reveille_core::model::incident::{MachineKey, Subject};
use reveille_core::model::network::Router;
use reveille_core::record::Record;
use reveille_wire::recording::Memory;

/// The machines that stay.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    /// By instance.
    pub(crate) instances: BTreeSet<InstanceId>,
    /// By node.
    pub(crate) nodes: BTreeSet<NodeName>,
}

impl Filter {
    /// The part of the event that concerns these machines; `None` when there is none.
    pub(crate) fn event(&self, event: &Event) -> Option<Event> {
        match event {
            Event::Cloud { cloud, fact: CloudFact::Snapshot { snapshot, took } } => {
                let fact = CloudFact::Snapshot { snapshot: Arc::new(self.snapshot(snapshot)), took: *took };
                Some(Event::Cloud { cloud: cloud.clone(), fact })
            }
            Event::Cluster(fact) => self.fact(fact).map(Event::Cluster),
            Event::Agent(AgentFact::Said { report, .. }) => {
                self.has_agent(&report.who).then(|| event.clone())
            }
            other => Some(other.clone()),
        }
    }

    fn fact(&self, fact: &ClusterFact) -> Option<ClusterFact> {
        match fact {
            ClusterFact::Synced(nodes) => {
                let kept = nodes.iter().filter(|node| self.nodes.contains(&node.name)).cloned();
                Some(ClusterFact::Synced(kept.collect()))
            }
            ClusterFact::Leases(leases) => {
                let kept = leases.iter().filter(|(node, _)| self.nodes.contains(*node));
                Some(ClusterFact::Leases(kept.map(|(node, renewal)| (node.clone(), renewal)).collect()))
            }
            ClusterFact::Applied(node) => self.nodes.contains(&node.name).then(|| fact.clone()),
            ClusterFact::Deleted { name, .. } => self.nodes.contains(name).then(|| fact.clone()),
            ClusterFact::NodeEvent(event) => self.nodes.contains(&event.node).then(|| fact.clone()),
            ClusterFact::Identity(_)
            | ClusterFact::IdentityUnread(_)
            | ClusterFact::Alive
            | ClusterFact::Failed(_) => Some(fact.clone()),
        }
    }

    /// Whether the agent belongs to a machine that stays, by any of the agent's names for its machine.
    fn has_agent(&self, who: &Who) -> bool {
        let ids = [&who.instance, &who.system_uuid];
        ids.into_iter().flatten().any(|id| self.instances.contains(id))
            || who.node.as_ref().is_some_and(|node| self.nodes.contains(node))
    }

    fn snapshot(&self, snapshot: &CloudSnapshot) -> CloudSnapshot {
        let ports: Vec<_> =
            snapshot.ports.iter().filter(|(of, _)| self.instances.contains(of)).cloned().collect();
        let gone: BTreeSet<IpAddr> = snapshot
            .ports
            .iter()
            .filter(|(of, _)| !self.instances.contains(of))
            .flat_map(|(_, port)| port.addresses.iter().copied())
            .collect();
        // A route through a machine that was removed would lead nowhere.
        let router = |router: &Arc<Router>| {
            let routes = router.routes.iter().filter(|route| !gone.contains(&route.next_hop)).copied();
            Arc::new(Router { routes: routes.collect(), ..Router::clone(router) })
        };
        CloudSnapshot {
            instances: snapshot
                .instances
                .iter()
                .filter(|one| self.instances.contains(&one.id))
                .cloned()
                .collect(),
            begun: snapshot.begun,
            scope: snapshot.scope,
            ports,
            in_use: snapshot.in_use.clone(),
            groups: snapshot.groups.clone(),
            routers: snapshot.routers.iter().map(router).collect(),
        }
    }

    /// The part of the memory that concerns these machines.
    pub(crate) fn memory(&self, memory: &Memory) -> Memory {
        let mut incidents = BTreeSet::new();
        let mut intents = BTreeSet::new();
        let records =
            memory.records.iter().filter_map(|record| self.record(record, &mut incidents, &mut intents));
        Memory { records: records.collect(), ..*memory }
    }

    fn record(
        &self,
        record: &Record,
        incidents: &mut BTreeSet<IncidentId>,
        intents: &mut BTreeSet<IntentId>,
    ) -> Option<Record> {
        let keep = match record {
            Record::Started { .. }
            | Record::Cluster { .. }
            | Record::OthersActed { .. }
            | Record::Width { .. }
            | Record::FaultsForgiven { .. }
            | Record::Paused { .. }
            | Record::Counted { .. } => true,
            Record::Joined { at, machines } => {
                let machines: Vec<_> =
                    machines.iter().filter(|one| self.has(&one.machine)).cloned().collect();
                return (!machines.is_empty()).then_some(Record::Joined { at: *at, machines });
            }
            Record::Forgotten { at, machines } => {
                return self.kept(machines).map(|machines| Record::Forgotten { at: *at, machines });
            }
            Record::LostTogether { at, machines } => {
                return self.kept(machines).map(|machines| Record::LostTogether { at: *at, machines });
            }
            Record::Departed { at, machines, disowned } => {
                let (at, disowned) = (*at, *disowned);
                return self.kept(machines).map(|machines| Record::Departed { at, machines, disowned });
            }
            Record::Returned { at, machines } => {
                return self.kept(machines).map(|machines| Record::Returned { at: *at, machines });
            }
            Record::Numbered { .. } => {
                let mut numbered = record.clone();
                if let Record::Numbered { deleted, .. } = &mut numbered {
                    deleted.retain(|id| self.instances.contains(id));
                }
                return Some(numbered);
            }
            Record::Born { machine, .. }
            | Record::Arrived { machine, .. }
            | Record::Cordoned { machine, .. }
            | Record::Left { machine, .. }
            | Record::Traced { machine, .. }
            | Record::Asked { machine, .. } => self.has(machine),
            Record::FaultSeen { instance, .. } => self.instances.contains(instance),
            Record::Opened { incident, key, .. } => {
                let ours = match &key.subject {
                    Subject::Machine(machine) => self.has(machine),
                    Subject::Group(..)
                    | Subject::Router(..)
                    | Subject::User(..)
                    | Subject::Pool(_)
                    | Subject::Cloud(_)
                    | Subject::Cluster => true,
                };
                if ours {
                    incidents.insert(*incident);
                }
                ours
            }
            Record::Intended { intent, incident, .. } => {
                let ours = incidents.contains(incident);
                if ours {
                    intents.insert(*intent);
                }
                ours
            }
            Record::Diagnosed { incident, .. }
            | Record::Tried { incident, .. }
            | Record::CarriedOver { incident, .. }
            | Record::GivenUp { incident, .. }
            | Record::Kept { incident, .. }
            | Record::Closed { incident, .. } => incidents.contains(incident),
            Record::Dropped { intent, .. } | Record::Ended { intent, .. } | Record::Judged { intent, .. } => {
                intents.contains(intent)
            }
        };
        keep.then(|| record.clone())
    }

    /// The machines among these that stay; `None` if there are none.
    fn kept(&self, machines: &[MachineKey]) -> Option<Vec<MachineKey>> {
        let kept: Vec<_> = machines.iter().filter(|key| self.has(key)).cloned().collect();
        (!kept.is_empty()).then_some(kept)
    }

    fn has(&self, machine: &MachineKey) -> bool {
        match machine {
            MachineKey::Instance(_, id) => self.instances.contains(id),
            MachineKey::Node(name) => self.nodes.contains(name),
        }
    }
}
