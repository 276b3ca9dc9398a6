//! What other programs than the engine read of the world: one answer at one moment, nothing pushed.
//!
//! ```text
//!  policy::observations ─ nodes, servers, ports, groups ─▶ the truth, through the same Lies that the engine's senses pass
//! ```
//!
//! `None` is a read that failed; it is never a shorter list. Answers arrive at once: a model of another program is not
//! slowed by travel, which favours it by a second or so. [`World::roll_of_owner`] and [`World::nodes_as_written`] are no
//! reads but bookkeeping: which machines exist as objects of a management cluster, and when a condition turned.

use std::collections::BTreeSet;
use std::sync::Arc;

use reveille_core::model::id::{InstanceId, PoolName};
use reveille_core::model::instance::{Instance, Port};
use reveille_core::model::network::SecurityGroup;
use reveille_core::model::node::{Node, Ready};

use super::World;

impl World {
    /// No process listens from now on: no polls, no watch. The world still answers what it was asked.
    pub(crate) fn fall_silent(&mut self) {
        self.session += 1;
        self.watch = super::observations::Watch::default();
    }

    /// Every Node that the cluster's API lists now.
    pub fn glance_nodes(&self) -> Option<Vec<Arc<Node>>> {
        if self.lies.api_silent {
            return None;
        }
        let all = self.cluster.nodes.values().filter(|_| !self.lies.nodes_empty);
        Some(all.cloned().collect())
    }

    /// The cluster's API answers, and not with an empty list.
    pub fn lists_nodes(&self) -> bool {
        !self.lies.api_silent && !self.lies.nodes_empty
    }

    /// Every server that the project lists now, neighbours' included.
    pub fn glance_servers(&self) -> Option<Vec<Arc<Instance>>> {
        if self.lies.cloud_fails.is_some() {
            return None;
        }
        let shown = |server: &&super::project::Server| !self.hides_server(&server.instance.id);
        Some(self.project.servers.values().filter(shown).map(|server| server.instance.clone()).collect())
    }

    /// One server, asked for by id.
    pub fn glance_server(&self, id: &InstanceId) -> Option<Option<Arc<Instance>>> {
        if self.lies.cloud_fails.is_some() {
            return None;
        }
        self.instance(id).ok()
    }

    /// The ports of a server.
    pub fn glance_ports(&self, id: &InstanceId) -> Option<Vec<Arc<Port>>> {
        let told = self.lies.cloud_fails.is_none() && !self.lies.portless;
        told.then(|| self.project.ports_of(id))
    }

    /// The security groups of the project.
    pub fn glance_groups(&self) -> Option<Vec<Arc<SecurityGroup>>> {
        self.lies.cloud_fails.is_none().then(|| self.project.groups(&super::layout::CLOUD.into()))
    }

    /// Every machine that a pool's owner keeps an object for, with its pool, as its provider's controller knows it by id.
    pub fn roll_of_owner(&self) -> impl Iterator<Item = (&PoolName, &Arc<Instance>)> {
        self.project.servers.values().filter_map(|server| Some((server.pool.as_ref()?, &server.instance)))
    }

    /// Prefixes of what a pool's owner calls its machines, for programs that know machines by their names, and what nodes
    /// carry behind the name of their instance.
    pub fn naming(&self) -> (Vec<String>, &str) {
        let plain = self.layout.plain_names;
        let prefix = |pool: &PoolName| if plain { format!("{pool}-") } else { format!("kks-prod-{pool}-") };
        (self.pools.keys().map(prefix).collect(), &self.layout.node_suffix)
    }

    /// Every server as it is written, neighbours' included.
    pub fn servers_as_written(&self) -> impl Iterator<Item = &Arc<Instance>> {
        self.project.servers.values().map(|server| &server.instance)
    }

    /// Every Node as it is written, also where the API server hides it.
    pub fn nodes_as_written(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.cluster.nodes.values()
    }
}

/// How a machine of a pool really is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Which.
    pub id: InstanceId,
    /// Of which pool.
    pub pool: PoolName,
    /// It is heard, its Node is Ready, and its pods can be reached.
    pub well: bool,
}

impl World {
    /// How every machine of the pools really is that is not leaving, in order of id. One walk over nodes and machines.
    pub fn health(&self) -> Vec<Health> {
        let reached = |node: &&Arc<Node>| {
            node.ready == Ready::True
                && !node.conditions.iter().any(|c| &*c.kind == super::layout::ROUTE_BROKEN)
        };
        let ready: BTreeSet<&InstanceId> = self
            .cluster
            .nodes
            .values()
            .filter(reached)
            .filter_map(|node| node.system_uuid.as_ref())
            .collect();
        let of_pool = |(id, server): (&InstanceId, &super::project::Server)| {
            if server.instance.state.is_leaving() {
                return None;
            }
            let heard = self.vms.get(id).is_some_and(|vm| vm.heard);
            Some(Health { id: id.clone(), pool: server.pool.clone()?, well: heard && ready.contains(id) })
        };
        self.project.servers.iter().filter_map(of_pool).collect()
    }

    /// How many machines a pool's owner still has to order.
    pub fn missing(&self, pool: &PoolName) -> usize {
        let size = self.pools.get(pool).map_or(0, |kept| kept.size as usize);
        size.saturating_sub(self.project.kept_of(pool).count())
    }
}
