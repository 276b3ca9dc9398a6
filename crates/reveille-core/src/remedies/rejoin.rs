//! A machine is away and its agent is heard: the agent is asked to bring the Node back.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::effect::Look;
use crate::event::Answer;
use crate::model::agent::Ask;
use crate::model::before::Before;
use crate::model::id::{AgentId, CloudName, InstanceId, NodeName};
use crate::model::incident::{FaultKind, MachineKey, Subject};
use crate::model::node::{Node, Ready};
use crate::plan::desk::{Case, Desk};
use crate::plan::hold::Hold;
use crate::plan::ladder::Class;

use super::reboot::stands_for;
use super::{Act, Call, Effectiveness, NoCall, Remedy, gone, not_seen, seen};

pub(super) const REMEDY: Remedy =
    Remedy { name: "rejoin", class: Class::Rejoin, says: "restart its kubelet", plan };

/// Ask the agent on a machine to bring its node back. It looks for itself before it does anything, and may answer no:
/// then the outcome is `Refused`, in its words. The same intent asked twice is one ask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AskAgent {
    /// Where the machine is.
    pub cloud: CloudName,
    /// Which machine: an agent that is on another one refuses.
    pub instance: InstanceId,
    /// Which agent.
    pub agent: AgentId,
    /// What for.
    pub ask: Ask,
    /// The name under which its node is looked for afterwards.
    pub node: NodeName,
}

fn plan(desk: &Desk<'_>, case: &Case) -> Result<Call, NoCall> {
    ask(desk, case).map_err(|hold| Arc::from(hold.to_string()))
}

/// The call on the machine's agent, if it has one that is heard and may be asked; else what holds it.
///
/// A machine that had its node gets the mildest first: the kubelet registers at its start, and at no other time. After
/// that, and for one that never joined, the agent chooses what it takes.
pub fn ask(desk: &Desk<'_>, case: &Case) -> Result<Call, Hold> {
    let Subject::Machine(key) = &case.incident.key.subject else { return Err(Hold::NoAgent) };
    let MachineKey::Instance(cloud, instance) = key else { return Err(Hold::NoAgent) };
    let Some((agent, seen)) = desk.agents.fresh(desk.now, key) else {
        return Err(desk.agents.latest(key).map_or(Hold::NoAgent, |(_, seen)| {
            let silent = desk.agents.silence(desk.now, seen);
            Hold::AgentSilent(Arc::from(format!("silent for {silent}")))
        }));
    };
    if let Some(why) = &seen.parted {
        return Err(Hold::AgentSilent(why.clone()));
    }
    let mildest = case.incident.key.kind != FaultKind::NeverJoined && case.incident.tries == 0;
    let order = if mildest { [Ask::RestartKubelet, Ask::Rejoin] } else { [Ask::Rejoin, Ask::RestartKubelet] };
    let Some(ask) = order.into_iter().find(|ask| seen.report.may.contains(ask)) else {
        return Err(Hold::AgentSilent(Arc::from("it does not accept orders to rejoin")));
    };
    let Some((_, machine)) = desk.seen(key) else { return Err(Hold::NotOwned) };
    let node = machine.joined.clone().or_else(|| machine.nodes.first().cloned());
    let node = node.or_else(|| seen.report.who.node.clone());
    let named = || machine.instance.node_names().next().unwrap_or_default().to_lowercase();
    let node = node.unwrap_or_else(|| NodeName::new(named()));
    let (cloud, instance, agent) = (cloud.clone(), instance.clone(), agent.clone());
    Ok(Call::AskAgent(AskAgent { cloud, instance, agent, ask, node }))
}

impl Act for AskAgent {
    const IS_HARMLESS_TWICE: bool = true;

    fn cloud(&self) -> Option<&CloudName> {
        None
    }

    fn is_same_change(&self, other: &Self) -> bool {
        (&self.instance, self.ask) == (&other.instance, other.ask)
    }

    fn looks_after(&self, _before: Option<&Before>) -> Vec<Look> {
        vec![Look::Node(self.node.clone())]
    }

    fn judge(&self, _before: Option<&Before>, answer: &Answer) -> Effectiveness {
        let Answer::Node(found) = answer else { return gone() };
        judge_node(&self.instance, found.as_deref())
    }
}

/// Its node is back when it is there, stands for this very machine, and is Ready. That it stays, the dwell tells.
fn judge_node(instance: &InstanceId, found: Option<&Node>) -> Effectiveness {
    let Some(node) = found else { return not_seen("read back: its node is not there") };
    match (stands_for(node, instance), node.ready) {
        (false, _) => not_seen(format!("read back: node {} stands for another machine", node.name)),
        (true, Ready::True) => seen(format!("read back: node {} is there and Ready", node.name)),
        (true, _) => not_seen(format!("read back: node {} is there and not Ready", node.name)),
    }
}

impl fmt::Display for AskAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ask the agent of instance {} to {}", self.instance, self.ask.says())
    }
}
