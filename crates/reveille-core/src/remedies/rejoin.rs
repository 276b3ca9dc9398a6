//! A machine has no Ready Node and its agent is heard: the controller asks the agent to bring the Node back.

use std::fmt;
use std::sync::Arc;

use crate::event::Answer;
use crate::model::agent::{AgentBlockerKind, ApiSaid, Ask};
use crate::model::before::Before;
use crate::model::blocker::Blocker;
use crate::model::call::AskAgent;
use crate::model::id::{AgentId, InstanceId, NodeName};
use crate::model::incident::{FaultKind, MachineKey, Subject};
use crate::model::node::{Node, Ready};
use crate::model::roster::Mode;
use crate::model::violation::ensure;
use crate::observe::agents::AgentSeen;
use crate::plan::context::{Case, PlanContext};
use crate::plan::interlock;

use super::invariants::{self, Checked};
use super::reboot::stands_for;
use super::{Act, Call, Effectiveness, NoCall, Remedy, RepairStep, Target, gone, not_seen, seen};

pub(super) const REMEDY: Remedy = Remedy { says: "restart its kubelet", plan, blocks };

fn plan(context: &PlanContext<'_>, case: &Case) -> Result<Call, NoCall> {
    ask(context, case).map_err(|blocker| Arc::from(blocker.to_string()))
}

/// The call on the machine's agent, if it has one that is heard and may be asked; else what holds it.
///
/// A machine that had its node gets the mildest first: the kubelet registers at its start, and at no other time. After
/// that, and for one that never joined, the agent chooses what it takes.
pub fn ask(context: &PlanContext<'_>, case: &Case) -> Result<Call, Blocker> {
    let Subject::Machine(key) = &case.incident.key.subject else { return Err(Blocker::NoAgent) };
    let MachineKey::Instance(cloud, instance) = key else { return Err(Blocker::NoAgent) };
    let Some((agent, seen)) = context.agents.fresh(context.now, key) else {
        return Err(context.agents.latest(key).map_or(Blocker::NoAgent, |(_, seen)| {
            let silent = context.agents.silence(context.now, seen);
            Blocker::AgentSilent(Arc::from(format!("silent for {silent}")))
        }));
    };
    if let Some(why) = &seen.parted {
        return Err(Blocker::AgentSilent(why.clone()));
    }
    let mildest = case.incident.key.kind != FaultKind::NeverJoined && case.incident.tries == 0;
    let order = if mildest { [Ask::RestartKubelet, Ask::Rejoin] } else { [Ask::Rejoin, Ask::RestartKubelet] };
    let Some(ask) = order.into_iter().find(|ask| seen.report.may.contains(ask)) else {
        return Err(Blocker::AgentSilent(Arc::from("it does not accept orders to rejoin")));
    };
    let Some((_, machine)) = context.seen(key) else { return Err(Blocker::NotOwned) };
    let node = machine.joined.clone().or_else(|| machine.nodes.first().cloned());
    let node = node.or_else(|| seen.report.who.node.clone());
    let named = || machine.instance.node_names().next().unwrap_or_default().to_lowercase();
    let node = node.unwrap_or_else(|| NodeName::new(named()));
    let (cloud, instance, agent) = (cloud.clone(), instance.clone(), agent.clone());
    Ok(Call::AskAgent(AskAgent { cloud, instance, agent, ask, node }))
}

/// Asking loses nothing, so that no breaker and no budget of what can hurt counts: a controller that deletes the nodes of a whole
/// pool is what it is for. What others want with the machine does count, what its agent says of it, and whose it is.
fn blocks(context: &PlanContext<'_>, case: &Case, call: Option<&Call>, blockers: &mut Vec<Blocker>) {
    let Some(Call::AskAgent(AskAgent { agent, .. })) = call else { return };
    interlock::network(context, case, RepairStep::Rejoin, blockers);
    let Some((_, seen)) = context.seen_of(&case.incident.key.subject) else {
        blockers.push(Blocker::NotOwned);
        return;
    };
    interlock::shared_identity(context, case, seen, blockers);
    if seen.nodes.len() > 1 {
        blockers.push(Blocker::Contested);
    }
    if seen.nodes.iter().any(|name| context.cluster.answers(name)) {
        blockers.push(Blocker::Ready);
    }
    interlock::leaving(context, seen, |_| true, blockers);
    if seen.instance.locked {
        blockers.push(Blocker::Locked);
    }
    // A person resizes it, and its kubelet does not start there: the agent would take its state away beside them. A copy of its
    // disk leaves it in the hands in which it was.
    if !seen.instance.is_copied() {
        interlock::worked_on(context, case, seen, RepairStep::Rejoin, blockers);
    }
    if let Some(pool) = context.pool(seen)
        && context.rolling.get(&pool.name).is_some_and(|until| context.now < *until)
    {
        blockers.push(Blocker::Rolling(pool.name.clone()));
    }
    interlock::agents_lost(context, blockers);
    its_own(context, case, agent, blockers);
}

/// What its agent says of the machine, and of itself.
fn its_own(context: &PlanContext<'_>, case: &Case, agent: &AgentId, blockers: &mut Vec<Blocker>) {
    let Some(heard) = context.agents.get(agent) else { return };
    let Subject::Machine(key) = &case.incident.key.subject else { return };
    let fresh = |(_, other): &(&AgentId, &AgentSeen)| context.agents.is_fresh(context.now, other);
    if context.agents.of(key).filter(fresh).count() > 1 {
        blockers.push(Blocker::Contested);
    }
    if !heard.link.as_ref().is_some_and(|link| link.machine == *key && link.is_strong()) {
        blockers.push(Blocker::AgentByName);
    }
    let report = &heard.report;
    match &report.blocker {
        Some(blocker) if blocker.kind == AgentBlockerKind::Leaving => {
            blockers.push(Blocker::AgentLeaves(blocker.text.clone()))
        }
        Some(blocker) => blockers.push(Blocker::AgentHolds(blocker.text.clone())),
        None => {}
    }
    if let Some(work) = &report.work {
        let (what, attempt, of) = (work.what.clone(), work.attempt, work.of);
        blockers.push(Blocker::AgentWorks { what, attempt, of });
    }
    if matches!(report.api, ApiSaid::Lost | ApiSaid::LostByAll | ApiSaid::LostHere) {
        blockers.push(Blocker::AgentLost);
    } else if let Some(since) = heard.reaches_since {
        // A kubelet that reaches the API server again needs no restart to say so.
        interlock::settling(context, since, blockers);
    }
    let own = context.book.operation_of(case.incident.id).map(|(intent, _)| intent);
    if let Some(intent) = context.book.asked(agent).find(|intent| Some(*intent) != own) {
        blockers.push(Blocker::AskUnderWay(intent));
    }
}

impl Act for AskAgent {
    const IS_HARMLESS_TWICE: bool = true;

    fn target(&self) -> Target<'_> {
        Target::Node(&self.node)
    }

    fn is_same_change(&self, other: &Self) -> bool {
        (&self.instance, self.ask) == (&other.instance, other.ask)
    }

    fn judge(&self, _before: Option<&Before>, answer: &Answer) -> Effectiveness {
        let Answer::Node(found) = answer else { return gone() };
        judge_node(&self.instance, found.as_deref())
    }

    /// An agent is asked for its own machine alone, one thing at a time, and never to bring back what was taken away on purpose.
    fn check(&self, context: &PlanContext<'_>) -> Checked {
        let Self { cloud, instance, agent, .. } = self;
        invariants::is_in_no_others_hands(context, self, cloud, instance)?;
        let key = MachineKey::Instance(cloud.clone(), instance.clone());
        let seen = invariants::known(invariants::listed(context, cloud, instance), self)?;
        let heard = context.agents.get(agent);
        let link = heard.and_then(|heard| heard.link.as_ref());
        ensure(link.is_some_and(|link| link.machine == key && link.is_strong()), 5, || {
            format!("{self}: no identity says that {agent} is on it")
        })?;
        let pool = invariants::pool(context, seen, self)?;
        ensure(pool.repair.rejoin == Mode::Act, 8, || format!("{self}: the roster does not allow it"))?;
        let held = heard.and_then(|heard| heard.report.blocker.as_ref());
        ensure(held.is_none(), 5, || {
            format!("{self}: its agent holds: {}", held.map_or("", |blocker| &blocker.text))
        })?;
        let sign =
            |name: &NodeName| context.cluster.nodes.get(name).and_then(|it| it.node.intent.leaving.as_ref());
        let leaves = seen.left.is_some() || seen.nodes.iter().any(|name| sign(name).is_some());
        ensure(!leaves, 3, || format!("{self}: it was taken away on purpose"))?;
        let ready = seen.nodes.iter().any(|name| context.cluster.answers(name));
        ensure(!ready, 7, || format!("{self}: its node is Ready"))?;
        let outage = context.agents.outage(context.now);
        ensure(outage.is_none(), 5, || {
            format!("{self}: agents say that the API server answers none of them")
        })?;
        ensure(context.book.asked(agent).count() <= 1, 7, || format!("{self}: it is asked already"))
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
