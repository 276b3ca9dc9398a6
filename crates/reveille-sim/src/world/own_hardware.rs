//! What the cloud and the Nodes tell of machines of bare metal, and of k3s on servers.
//!
//! ```text
//!  truth: server `kks-workers-x`, its Node of that name, its UUID ─┬─▶ the cloud tells `KKS_WORKERS_X`, and its host name
//!                                                                 └─▶ the Node tells its hardware's UUID, and no instance
//! ```
//!
//! Nova makes the host name of a server's name, in lower case and with a dash for `_` (nova/utils.py, `sanitize_hostname`), and a
//! kubelet registers under it. Without a cloud provider the provider ID is k3s's own (`k3s://NAME`), and the system UUID is what
//! the machine's firmware says, which Ironic does not set. A Node and its server share a host name and an address, and nothing
//! else. Within the world everything keeps its own name: only what is told differs.

use std::sync::Arc;

use reveille_core::model::id::{InstanceId, InstanceName};
use reveille_core::model::instance::Instance;
use reveille_core::model::node::{Node, Provider};

use super::World;

/// The first part of every such UUID: "LLED", as the firmware of one maker has it.
const FIRMWARE: &str = "4c4c4544";

impl World {
    /// As its API object is.
    pub(super) fn as_node_tells(&self, node: Arc<Node>) -> Arc<Node> {
        // One that a client made by hand, and no kubelet writes, says what that client wrote.
        let Some(machine) = &node.system_uuid else { return node };
        if !self.names_no_instance() && !self.lies.shown.contains_key(machine) {
            return node;
        }
        let mut told = (*node).clone();
        if self.names_no_instance() && matches!(told.provider, Provider::Instance(_)) {
            told.provider = Provider::Unread(format!("k3s://{}", told.name).into());
        }
        if self.layout.variety.own_hardware {
            told.system_uuid = Some(hardware(machine));
        }
        self.as_kubelet_shows(machine, &mut told);
        Arc::new(told)
    }

    /// No Node names its instance.
    pub(super) const fn names_no_instance(&self) -> bool {
        self.layout.variety.own_hardware || self.layout.variety.k3s
    }

    /// What a person reads of its name in the cloud's list.
    pub(crate) fn listed_name(&self, id: &InstanceId) -> Option<Arc<str>> {
        let name = &self.project.servers.get(id)?.instance.name;
        let own = self.layout.variety.own_hardware;
        Some(if own { as_listed(name).shared() } else { name.shared() })
    }

    /// As the cloud lists it.
    pub(super) fn as_cloud_tells(&self, instance: Arc<Instance>) -> Arc<Instance> {
        let instance = self.as_cached(instance);
        if !self.layout.variety.own_hardware {
            return instance;
        }
        // The adapter tells the host name that Nova makes of the name that it lists: of one that was renamed, not its guest's.
        let hostname = Some(instance.name.as_str().into());
        let name = as_listed(&instance.name);
        Arc::new(Instance { hostname, name, ..(*instance).clone() })
    }
}

/// As a person called the server.
fn as_listed(name: &InstanceName) -> InstanceName {
    InstanceName::new(name.as_str().to_uppercase().replace('-', "_"))
}

fn hardware(uuid: &InstanceId) -> InstanceId {
    let rest = uuid.as_str().split_once('-').map_or(uuid.as_str(), |(_, rest)| rest);
    InstanceId::new(format!("{FIRMWARE}-{rest}"))
}
