//! A model of Cluster API's `MachineHealthCheck` with a `MachineSet` behind it.
//!
//! Source: kubernetes-sigs/cluster-api at ae7ff047, `internal/controllers/machinehealthcheck` (`needsRemediation` in
//! `machinehealthcheck_targets.go`), defaults of its API v1beta2, and the Cluster API book, "Configure a
//! `MachineHealthCheck`", whose example is where the two conditions come from.
//!
//! A Machine is unhealthy, in this order, when
//!
//! * its infrastructure reported a failure (an instance in ERROR): at once;
//! * it refers to a Node, and the Node is not found: at once;
//! * it refers to no Node 600 s after the later of its creation and its infrastructure's readiness (`nodeStartupTimeout`);
//! * its Node's Ready condition has been `False` or `Unknown` for 300 s.
//!
//! Every unhealthy Machine is deleted in the same pass: `maxUnhealthy` is 100 % by default and a `MachineSet` knows no
//! limit of its own (`maxInFlight` is unset). Passes are at least 15 s apart. A paused Machine is passed over.
//! When the cluster's API cannot be reached, nothing is judged; a list that is empty is believed.
//!
//! Left out: drains (see [`super::removal`]), external remediation, control planes, and the rollout's own replacements.

use std::collections::BTreeMap;

use reveille_core::model::id::NodeName;
use reveille_core::model::node::Ready;
use reveille_core::model::time::{Span, Time};

use super::Deed;
use super::observations::{MachineSeen, NodeSeen, Presence};
use super::removal::Removals;

/// `nodeStartupTimeout`.
const NODE_STARTUP_TIMEOUT: Span = Span::from_s(600);
/// `unhealthyConditions`, both.
const UNHEALTHY_FOR: Span = Span::from_s(300);
/// The least between two passes.
pub(crate) const EVERY: Span = Span::from_s(15);

/// The controllers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mhc {
    pub(crate) removals: Removals,
}

impl Mhc {
    /// What one pass does.
    pub(crate) fn pass(
        &mut self,
        now: Time,
        machines: &[MachineSeen],
        nodes: Option<&[NodeSeen]>,
        presence: &BTreeMap<reveille_core::model::id::InstanceId, Presence>,
    ) -> Vec<Deed> {
        let mut deeds = self.removals.go_on(presence, nodes);
        let Some(nodes) = nodes else { return deeds };
        let by_name: BTreeMap<&NodeName, &NodeSeen> = nodes.iter().map(|node| (&node.name, node)).collect();
        for machine in machines.iter().filter(|machine| !machine.paused) {
            let node = machine.node.as_ref().map(|name| by_name.get(name).copied());
            if is_unhealthy(now, machine, node) && self.removals.mark(&machine.id) {
                deeds.push(Deed::Delete(machine.id.clone()));
            }
        }
        deeds
    }
}

/// `node`: none when the Machine refers to none, `Some(None)` when what it refers to is not found.
fn is_unhealthy(now: Time, machine: &MachineSeen, node: Option<Option<&NodeSeen>>) -> bool {
    if machine.failed {
        return true;
    }
    match node {
        Some(None) => true,
        None => {
            let from = machine.running_since.map_or(machine.made, |since| since.max(machine.made));
            now.since(from) > NODE_STARTUP_TIMEOUT
        }
        Some(Some(node)) => node.ready != Ready::True && now.since(node.since) > UNHEALTHY_FOR,
    }
}
