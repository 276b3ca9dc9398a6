//! How far along its way a machine is, as far as clouds and cluster show it.
//!
//! What happens inside of a guest is not seen from here: between its boot and its node there is nothing but silence, which
//! is what an agent on it is for.

use crate::model::instance::{InstanceState, PortStatus};
use crate::model::node::Ready;
use crate::model::stage::Stage;
use crate::observe::cloud::Seen;
use crate::observe::cluster::ClusterView;

use super::absence::is_of_the_pod_network;

/// The stage that it is in by now.
pub fn shown(cluster: &ClusterView, seen: &Seen) -> Stage {
    if let Some(node) = seen.nodes.first().and_then(|name| cluster.nodes.get(name)).map(|seen| &seen.node) {
        let of_the_network = |condition: &crate::model::node::Condition| {
            &*condition.kind == "Ready" && is_of_the_pod_network(condition)
        };
        return match node.ready {
            Ready::True => Stage::Stay,
            _ if node.uninitialized => Stage::CloudInitNode,
            _ if node.conditions.iter().any(of_the_network) => Stage::Cni,
            _ => Stage::Ready,
        };
    }
    if seen.instance.state == InstanceState::Building {
        return Stage::Provision;
    }
    let unwired = seen.ports.iter().any(|port| port.status == PortStatus::Down);
    if unwired { Stage::Network } else { Stage::OsBoot }
}
