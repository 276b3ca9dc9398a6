//! The data that a model reads: a world, or what a recording says of one.
//!
//! ```text
//!  World ────┐
//!            ├─ Outlook ─▶ observations, rival ─▶ a model's own view
//!  Recorded ─┘
//! ```
//!
//! `None` is a read that fails at this moment; it is never a shorter list. Nothing here changes anything.

use std::sync::Arc;

use ipnet::IpNet;
use reveille_core::model::id::{InstanceId, PoolName};
use reveille_core::model::instance::{Instance, Port};
use reveille_core::model::network::SecurityGroup;
use reveille_core::model::node::Node;
use reveille_core::model::roster::GroupRef;

use crate::world::World;
use crate::world::layout::{GROUP_NAME, pod_net};

/// Everything that the originals read.
pub(crate) trait Outlook {
    /// The cluster's API answers, and not with an empty list.
    fn lists_nodes(&self) -> bool;
    /// Every Node that the cluster's API lists.
    fn glance_nodes(&self) -> Option<Vec<Arc<Node>>>;
    /// Every server that the project lists.
    fn glance_servers(&self) -> Option<Vec<Arc<Instance>>>;
    /// One server, asked for by id.
    fn glance_server(&self, id: &InstanceId) -> Option<Option<Arc<Instance>>>;
    /// The ports of a server.
    fn glance_ports(&self, id: &InstanceId) -> Option<Vec<Arc<Port>>>;
    /// The security groups of the project.
    fn glance_groups(&self) -> Option<Vec<Arc<SecurityGroup>>>;
    /// Every machine that a pool's owner keeps an object for, with its pool.
    fn roll_of_owner(&self) -> impl Iterator<Item = (&PoolName, &Arc<Instance>)>;
    /// Prefixes of what a pool's owner calls its machines, and what nodes carry behind the name of their instance.
    fn naming(&self) -> (Vec<String>, String);
    /// Every server as its owner wrote it, also where the cloud hides it.
    fn servers_as_written(&self) -> impl Iterator<Item = &Arc<Instance>>;
    /// Every Node as it is written, also where the API server hides it.
    fn nodes_as_written(&self) -> impl Iterator<Item = &Arc<Node>>;
    /// A person said of this machine, its pool or everything: hands off.
    fn is_paused(&self, id: &InstanceId, pool: &PoolName) -> bool;
    /// The group that ports must carry, and the range whose packets it must let in; none where no roster asks for either.
    fn wanted(&self) -> Option<(GroupRef, IpNet)>;
}

impl Outlook for World {
    fn lists_nodes(&self) -> bool {
        Self::lists_nodes(self)
    }

    fn glance_nodes(&self) -> Option<Vec<Arc<Node>>> {
        Self::glance_nodes(self)
    }

    fn glance_servers(&self) -> Option<Vec<Arc<Instance>>> {
        Self::glance_servers(self)
    }

    fn glance_server(&self, id: &InstanceId) -> Option<Option<Arc<Instance>>> {
        Self::glance_server(self, id)
    }

    fn glance_ports(&self, id: &InstanceId) -> Option<Vec<Arc<Port>>> {
        Self::glance_ports(self, id)
    }

    fn glance_groups(&self) -> Option<Vec<Arc<SecurityGroup>>> {
        Self::glance_groups(self)
    }

    fn roll_of_owner(&self) -> impl Iterator<Item = (&PoolName, &Arc<Instance>)> {
        Self::roll_of_owner(self)
    }

    fn naming(&self) -> (Vec<String>, String) {
        let (prefixes, suffix) = Self::naming(self);
        (prefixes, suffix.to_owned())
    }

    fn servers_as_written(&self) -> impl Iterator<Item = &Arc<Instance>> {
        Self::servers_as_written(self)
    }

    fn nodes_as_written(&self) -> impl Iterator<Item = &Arc<Node>> {
        Self::nodes_as_written(self)
    }

    fn is_paused(&self, id: &InstanceId, pool: &PoolName) -> bool {
        Self::is_paused(self, id, Some(pool))
    }

    fn wanted(&self) -> Option<(GroupRef, IpNet)> {
        Some((GroupRef::Name(GROUP_NAME.into()), pod_net()))
    }
}

/// True when the roster means this group.
pub(crate) fn means(wanted: &GroupRef, group: &SecurityGroup) -> bool {
    match wanted {
        GroupRef::Id(id) => group.id == *id,
        GroupRef::Name(name) => group.name == *name,
    }
}
