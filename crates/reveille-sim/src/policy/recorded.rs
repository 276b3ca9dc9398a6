//! What a recording says of the world at one moment, for models to look at.
//!
//! ```text
//!  recorded event ─ take ─▶ nodes, servers with their pools, ports, groups, pauses ─ Outlook ─▶ a model
//! ```
//!
//! A recording holds what the engine was told. So there are only machines that carry a mark of the roster's, and no
//! neighbours; what the engine did not see does not exist here; and a source that failed then fails for every reader.
//! Names are a recording's own: what stands before the last dash of a pool's machines is that pool's prefix.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ipnet::IpNet;
use reveille_core::event::{CloudFact, CloudSnapshot, ClusterFact, Command, Event, Pause, Scope};
use reveille_core::model::id::{CloudName, InstanceId, NodeName, PoolName, PortId};
use reveille_core::model::instance::{Instance, InstanceState, Port};
use reveille_core::model::network::SecurityGroup;
use reveille_core::model::node::{Node, Provider};
use reveille_core::model::roster::{Claim, GroupRef, Roster};

use super::outlook::Outlook;

/// The world as recorded.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    roster: Roster,
    nodes: BTreeMap<NodeName, Arc<Node>>,
    cluster: Source,
    projects: BTreeMap<CloudName, Project>,
    pauses: BTreeSet<Pause>,
}

/// Whether a source was ever read as a whole, and whether it answers now.
#[derive(Clone, Copy, Debug, Default)]
struct Source {
    whole: bool,
    answers: bool,
}

#[derive(Clone, Debug, Default)]
struct Project {
    source: Source,
    servers: BTreeMap<InstanceId, (Option<PoolName>, Arc<Instance>)>,
    ports: BTreeMap<InstanceId, Vec<Arc<Port>>>,
    groups: Vec<Arc<SecurityGroup>>,
}

impl Recorded {
    /// Nothing was said yet.
    pub(crate) fn new(roster: Roster) -> Self {
        let projects = roster.clouds.iter().map(|cloud| (cloud.clone(), Project::default())).collect();
        let (nodes, cluster) = (BTreeMap::new(), Source::default());
        Self { roster, nodes, cluster, projects, pauses: BTreeSet::new() }
    }

    /// Every source was read as a whole at least once.
    pub(crate) fn is_whole(&self) -> bool {
        self.cluster.whole && self.projects.values().all(|project| project.source.whole)
    }

    /// Takes in what was said; true when anything may look otherwise now.
    pub(crate) fn take(&mut self, event: &Event) -> bool {
        match event {
            Event::Cloud { cloud, fact } => self.take_cloud(cloud, fact),
            Event::Cluster(fact) => self.take_cluster(fact),
            Event::Command(Command::Pauses(pauses)) => {
                self.pauses.clone_from(pauses);
                true
            }
            Event::Agent(_)
            | Event::Looked { .. }
            | Event::Recorded(_)
            | Event::RecordFailed(_)
            | Event::Done { .. }
            | Event::Command(Command::ConfirmCluster(_) | Command::ForgetCloud(_))
            | Event::Tick => false,
        }
    }

    fn take_cluster(&mut self, fact: &ClusterFact) -> bool {
        let answered = !std::mem::replace(&mut self.cluster.answers, true);
        match fact {
            ClusterFact::Synced(all) => {
                self.cluster.whole = true;
                self.nodes = all.iter().map(|node| (node.name.clone(), node.clone())).collect();
            }
            ClusterFact::Applied(node) => {
                self.nodes.insert(node.name.clone(), node.clone());
            }
            ClusterFact::Deleted { name, uid } => {
                if self.nodes.get(name).is_some_and(|node| node.uid == *uid) {
                    self.nodes.remove(name);
                }
            }
            ClusterFact::Failed(_) => self.cluster.answers = false,
            ClusterFact::Identity(_)
            | ClusterFact::IdentityUnread(_)
            | ClusterFact::Leases(_)
            | ClusterFact::NodeEvent(_)
            | ClusterFact::Alive => return answered,
        }
        true
    }

    fn take_cloud(&mut self, cloud: &CloudName, fact: &CloudFact) -> bool {
        let Some(project) = self.projects.get_mut(cloud) else { return false };
        project.source.answers = matches!(fact, CloudFact::Snapshot { .. });
        if let CloudFact::Snapshot { snapshot, .. } = fact {
            project.take(&self.roster, cloud, snapshot);
        }
        true
    }

    /// The machine, its pool, and the nodes that name it.
    pub(crate) fn machine(&self, id: &InstanceId) -> Option<(&Arc<Instance>, Vec<&Arc<Node>>)> {
        let (_, instance) = self.projects.values().find_map(|project| project.servers.get(id))?;
        Some((instance, self.nodes_of(id).collect()))
    }

    /// Whose port it is.
    pub(crate) fn owner_of(&self, port: &PortId) -> Option<&InstanceId> {
        let ports = self.projects.values().flat_map(|project| &project.ports);
        ports.into_iter().find(|(_, ports)| ports.iter().any(|one| one.id == *port)).map(|(id, _)| id)
    }

    /// The Node of that name.
    pub(crate) fn node(&self, name: &NodeName) -> Option<&Arc<Node>> {
        self.nodes.get(name)
    }

    fn nodes_of(&self, id: &InstanceId) -> impl Iterator<Item = &Arc<Node>> {
        let names_it = move |node: &&Arc<Node>| match &node.provider {
            Provider::Instance(named) => named == id,
            Provider::Unset | Provider::Unread(_) => node.system_uuid.as_ref() == Some(id),
        };
        self.nodes.values().filter(names_it)
    }

    fn answer(&self) -> bool {
        self.projects.values().all(|project| project.source.whole && project.source.answers)
    }
}

impl Project {
    fn take(&mut self, roster: &Roster, cloud: &CloudName, snapshot: &CloudSnapshot) {
        if snapshot.scope == Scope::Full {
            self.servers.clear();
            self.source.whole = true;
        }
        for instance in &snapshot.instances {
            if instance.state == InstanceState::Gone {
                self.servers.remove(&instance.id);
                continue;
            }
            let pool = match roster.claim(cloud, instance) {
                Claim::Pool(pool) => Some(pool),
                Claim::Foreign | Claim::Unclaimed | Claim::Contested(_) => None,
            };
            self.servers.insert(instance.id.clone(), (pool, instance.clone()));
        }
        self.ports.clear();
        for (owner, port) in &snapshot.ports {
            self.ports.entry(owner.clone()).or_default().push(port.clone());
        }
        if let Some(groups) = &snapshot.groups {
            self.groups.clone_from(groups);
        }
    }
}

impl Outlook for Recorded {
    fn lists_nodes(&self) -> bool {
        self.cluster.whole && self.cluster.answers && !self.nodes.is_empty()
    }

    fn glance_nodes(&self) -> Option<Vec<Arc<Node>>> {
        (self.cluster.whole && self.cluster.answers).then(|| self.nodes.values().cloned().collect())
    }

    fn glance_servers(&self) -> Option<Vec<Arc<Instance>>> {
        self.answer().then(|| self.servers_as_written().cloned().collect())
    }

    fn glance_server(&self, id: &InstanceId) -> Option<Option<Arc<Instance>>> {
        self.answer().then(|| self.machine(id).map(|(instance, _)| instance.clone()))
    }

    fn glance_ports(&self, id: &InstanceId) -> Option<Vec<Arc<Port>>> {
        let of = || self.projects.values().find_map(|project| project.ports.get(id)).cloned();
        self.answer().then(|| of().unwrap_or_default())
    }

    fn glance_groups(&self) -> Option<Vec<Arc<SecurityGroup>>> {
        let all = || self.projects.values().flat_map(|project| project.groups.iter().cloned());
        self.answer().then(|| all().collect())
    }

    fn roll_of_owner(&self) -> impl Iterator<Item = (&PoolName, &Arc<Instance>)> {
        let servers = self.projects.values().flat_map(|project| project.servers.values());
        servers.filter_map(|(pool, instance)| Some((pool.as_ref()?, instance)))
    }

    fn naming(&self) -> (Vec<String>, String) {
        let prefix = |name: &str| name.rfind('-').map(|dash| name[..=dash].to_owned());
        let prefixes: BTreeSet<String> =
            self.roll_of_owner().filter_map(|(_, instance)| prefix(instance.name.as_str())).collect();
        let suffix = self.roll_of_owner().find_map(|(_, instance)| {
            let node = self.nodes_of(&instance.id).next()?;
            node.name.as_str().strip_prefix(instance.name.as_str()).map(str::to_owned)
        });
        (prefixes.into_iter().collect(), suffix.unwrap_or_default())
    }

    fn servers_as_written(&self) -> impl Iterator<Item = &Arc<Instance>> {
        self.projects.values().flat_map(|project| project.servers.values()).map(|(_, instance)| instance)
    }

    fn nodes_as_written(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.values()
    }

    fn is_paused(&self, id: &InstanceId, pool: &PoolName) -> bool {
        let named = |text: &str| {
            let machine = self.machine(id);
            let nodes = || self.nodes_of(id).any(|node| node.name.as_str() == text);
            text == id.as_str() || machine.is_some_and(|(one, _)| one.name.as_str() == text) || nodes()
        };
        let by_roster = self.roster.pools.get(pool).is_some_and(|pool| pool.paused);
        let by_node = self.nodes_of(id).any(|node| node.intent.paused);
        by_roster || by_node || self.pauses.iter().any(|pause| pause.scope.covers(Some(pool), named))
    }

    fn wanted(&self) -> Option<(GroupRef, IpNet)> {
        let group = self.roster.pools.values().find_map(|pool| pool.groups.first())?;
        let range = self.roster.network.pod_ranges.iter().find(|range| range.addr().is_ipv4())?;
        Some((group.clone(), *range))
    }
}
