//! The true answers to an agent's questions: does the API server answer it, which peers hear it, what exists of its join.
//!
//! A machine that cannot be reached does not answer, and nothing here says so: an agent learns it from its own deadline. A peer
//! answers through its own agent, which reads the orders itself.

use reveille_agent::model::{Credentials, Inspection, Leaving, NodeSeen, WatchdogSeen};
use reveille_agent::{Effect, Event};
use reveille_core::model::id::{InstanceId, NodeName};
use reveille_core::model::instance::InstanceState;
use reveille_core::model::node::Ready;

use super::super::World;
use super::super::agent_plan::Oddity;
use super::super::kubelet_credentials::KubeletCredentials;
use super::super::vm::{FirstBoot, Trouble};
use super::{AgentTask, Cut};

/// How long a request travels, there and back.
const TRAVEL: (i64, i64) = (20, 200);
/// How long a peer's question, or its answer, travels.
const BESIDE: (i64, i64) = (5, 50);
/// How long a device takes.
const DEVICE: (i64, i64) = (1, 10);

impl World {
    pub(super) fn answer_agent(&mut self, id: &InstanceId, question: Effect) {
        let of_the_api =
            matches!(question, Effect::CheckApi(..) | Effect::ReadOrders(..) | Effect::Inspect(..));
        if of_the_api && !self.reaches_api(id) {
            return;
        }
        match question {
            Effect::CheckApi(operation, _) => {
                self.tell_peers(id);
                self.plan_for(id, TRAVEL, AgentTask::Hear(Event::ApiChecked { operation, silent: None }));
            }
            Effect::AskPeers(operation, peers, _) => {
                let from = self.node_name_of(id);
                for peer in peers {
                    let Some(peer) = self.instance_of(&peer).filter(|peer| self.reach_each_other(id, peer))
                    else {
                        continue;
                    };
                    let event = Event::PeerAsked { from: from.clone(), ask: operation };
                    self.plan_for(&peer, BESIDE, AgentTask::Hear(event));
                }
            }
            Effect::AnswerPeer { to, ask, answer } => {
                let Some(asker) = self.instance_of(&to).filter(|asker| self.reach_each_other(id, asker))
                else {
                    return;
                };
                let answer = self.lies_about(id, &asker).unwrap_or(answer);
                let peer = self.node_name_of(id);
                let event = Event::PeerAnswered { operation: ask, peer, answer };
                self.plan_for(&asker, BESIDE, AgentTask::Hear(event));
            }
            Effect::ReadOrders(operation, _) => {
                let ordered = self.agents.orders.iter().map(|id| self.node_name_of(id)).collect();
                let event = Event::OrdersRead { operation, orders: Ok(ordered) };
                self.plan_for(id, TRAVEL, AgentTask::Hear(event));
            }
            Effect::Inspect(operation, _) => self.plan_for(id, TRAVEL, AgentTask::Look(operation)),
            Effect::ReadWatchdog(operation, _) => {
                let set = self.agents.on.get(id).and_then(|agent| agent.watchdog);
                let found = set.map_or(WatchdogSeen::Disarmed, WatchdogSeen::Armed);
                self.plan_for(id, DEVICE, AgentTask::Hear(Event::WatchdogRead { operation, found }));
            }
            _ => {}
        }
    }

    /// An agent that reaches the API server knows who else is in the cluster.
    pub(super) fn tell_peers(&mut self, id: &InstanceId) {
        if !self.reaches_api(id) || self.is_odd(id, Oddity::KnowsNoPeers) {
            return;
        }
        let own = self.node_name_of(id);
        let others = self.cluster.nodes.values().filter(|node| node.name != own);
        let peers: std::collections::BTreeMap<_, _> =
            others.map(|node| (node.name.clone(), node.zone.clone())).collect();
        let Some(agent) = self.agents.on.get_mut(id).filter(|agent| agent.peers != peers) else { return };
        agent.peers.clone_from(&peers);
        self.plan_for(id, TRAVEL, AgentTask::Hear(Event::PeersListed(peers)));
    }

    pub(super) fn reaches_api(&self, id: &InstanceId) -> bool {
        self.connected(id) && !self.lies.api_silent
    }

    /// Machines of a dark zone reach no host outside, and every host inside it.
    fn reach_each_other(&self, one: &InstanceId, other: &InstanceId) -> bool {
        let alone = |id| self.agents.cuts.get(id) == Some(&Cut::All);
        let runs = |id| self.vms.get(id).is_some_and(|vm| vm.powered);
        let zone = |id| self.project.servers.get(id).and_then(|server| server.instance.zone.clone());
        let (here, there) = (zone(one), zone(other));
        let dark = |zone: &Option<_>| zone.as_ref().is_some_and(|zone| self.lies.dark_zones.contains(zone));
        let apart = here != there && (dark(&here) || dark(&there));
        runs(one) && runs(other) && !alone(one) && !alone(other) && !apart && !self.network_faults.fleet_dark
    }

    fn instance_of(&self, node: &NodeName) -> Option<InstanceId> {
        self.cluster.nodes.get(node).and_then(|node| node.system_uuid.clone()).or_else(|| {
            // Its node is gone, and its agent still asks.
            self.agents.on.keys().find(|id| self.node_name_of(id) == *node).cloned()
        })
    }

    pub(super) fn inspection(&self, id: &InstanceId) -> Inspection {
        let vm = self.vms.get(id);
        let kubelet_credentials = vm.map_or(KubeletCredentials::Nothing, |vm| vm.kubelet_credentials);
        let credentials = kubelet_credentials.credentials().unwrap_or_else(|| match vm {
            Some(vm) if vm.joined => Credentials::Accepted,
            Some(vm) if vm.trouble == Some(Trouble::BadToken) => Credentials::TokenDead,
            Some(vm) if vm.first_boot == FirstBoot::Done => Credentials::Bootstrapping,
            _ => Credentials::Nothing,
        });
        let has_token = self.agents.on.get(id).is_some_and(|agent| agent.has_token);
        let nodes: Vec<_> =
            self.nodes_of(id).iter().filter_map(|name| self.cluster.nodes.get(name)).cloned().collect();
        let node = match nodes.first() {
            // A machine that is let in without credentials cannot read its Node.
            _ if credentials != Credentials::Accepted && !has_token => NodeSeen::CannotTell,
            None => NodeSeen::Absent,
            Some(node) if node.ready == Ready::True => NodeSeen::Ready,
            Some(_) => NodeSeen::NotReady,
        };
        let state = self.project.servers.get(id).map(|server| server.instance.state);
        let leaving = if state == Some(InstanceState::Deleting) {
            Some(Leaving::Terminating)
        } else {
            nodes.first().and_then(|node| match node {
                node if node.intent.deleting => Some(Leaving::Finalizing),
                node if node.intent.leaving.is_some() => Some(Leaving::Tainted),
                node if node.cordoned => Some(Leaving::Drained),
                _ => None,
            })
        };
        Inspection {
            node,
            // It looks often enough here: no controller of this world deletes within a second.
            came_and_went: false,
            credentials,
            leaving,
            clock_is_right: !self.network_faults.clocks.contains_key(id),
        }
    }
}
