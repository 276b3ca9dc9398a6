//! The two ends of a Node's service: Ready and not in service yet, and being removed without ever going.
//!
//! ```text
//!  Ready, startup taint ─▶ starting ── inService over ─▶ not-in-service        sign of removal, not Ready ─▶ excused
//!                                                                                └─ delete over ─▶ stuck-leaving
//!                                                      node went with that sign, instance stays ─┘
//! ```
//!
//! Both timers start from the controller's own first sight, and start again when the cluster's data can be trusted again.
//! The controller never acts on either: it does not harm a Ready Node, and does nothing beside another client that is at
//! work.

use std::sync::Arc;

use crate::model::cause::Cause;
use crate::model::evidence::{MachineFact, NodeFact, Source};
use crate::model::incident::{Confidence, FaultKind};
use crate::model::node::Ready;
use crate::model::stage::Stage;
use crate::model::time::{Span, Time};
use crate::observe::cloud::{Left, Seen};
use crate::observe::cluster::NodeSeen;
use crate::observe::source::Trust;

use super::machine_state::{Excuse, MachineState};
use super::question::{JudgeContext, absent, finding};

/// Its node is Ready. Is it in service?
pub(super) fn judge_service(context: JudgeContext<'_>, seen: &Seen, node: &NodeSeen) -> MachineState {
    let Some((taint, until)) = starting_until(context, seen, node) else { return MachineState::Answers };
    if context.now < until {
        return MachineState::Starting(taint.clone());
    }
    let since = node.tainted_since(taint).map_or(Span::ZERO, |at| context.now.since(at));
    let fact = NodeFact::StartupTaint(taint.clone(), since);
    let evidence = vec![context.evidence(Source::Node(node.node.name.clone()), fact)];
    let mut finding = finding(Cause::NotInService, Confidence::Sure, evidence);
    if node.node.uninitialized {
        finding.stage = Stage::CloudInitNode;
    }
    absent(FaultKind::NotInService, finding, None, true)
}

/// The startup taint that its node has carried longest since it is Ready, and when its time to go is over.
fn starting_until<'a>(
    context: JudgeContext<'a>,
    seen: &Seen,
    node: &NodeSeen,
) -> Option<(&'a Arc<str>, Time)> {
    let pool = seen.pool().and_then(|name| context.roster.pools.get(name))?;
    let on_it = pool.startup_taints.iter().filter_map(|taint| Some((node.tainted_since(taint)?, taint)));
    let (since, taint) = on_it.min()?;
    let since = since.max(node.ready_since).max(context.cluster_since());
    Some((taint, since + pool.deadlines.in_service_within))
}

/// A client removes the machine's Node on purpose. That is no absence, unless the removal never ends.
pub(super) fn judge_removal(
    context: JudgeContext<'_>,
    seen: &Seen,
    node: &NodeSeen,
    sign: &str,
) -> MachineState {
    let since = node.leaving_since().unwrap_or(context.now);
    if removed_until(context, seen, node).is_none_or(|until| context.now < until) {
        return MachineState::Excused(Excuse::NodeLeaves(Arc::from(sign)));
    }
    let fact = NodeFact::Leaving(Arc::from(sign), context.now.since(since));
    let evidence = vec![context.evidence(Source::Node(node.node.name.clone()), fact)];
    let finding = finding(Cause::RemovalStuck, Confidence::Likely, evidence);
    absent(FaultKind::StuckLeaving, finding, None, true)
}

/// The machine's Node was removed on purpose, and the client that removed it deletes the instance next. Where it does not,
/// the controller tells an operator.
pub(super) fn judge_left(context: JudgeContext<'_>, seen: &Seen, left: &Left) -> MachineState {
    let sign = &left.sign;
    if context.now < gone_until(context, seen, left) {
        return MachineState::Excused(Excuse::NodeLeft(sign.clone()));
    }
    let fact = MachineFact::NodeLeft { sign: sign.clone(), ago: context.now.since(left.at) };
    let evidence = vec![context.evidence(Source::Instance, fact)];
    let finding = finding(Cause::RemovalStuck, Confidence::Likely, evidence);
    absent(FaultKind::StuckLeaving, finding, None, true)
}

/// When the instance must have gone after its node.
fn gone_until(context: JudgeContext<'_>, seen: &Seen, left: &Left) -> Time {
    let sighted = match context.cloud.source.trust(context.now) {
        Trust::Since(since) => since,
        Trust::No(_) => context.now,
    };
    left.at.max(sighted).max(context.cluster_since()) + context.deadlines(seen).delete_within
}

/// When its removal must be over: counted from when it was both marked and not Ready, as far as we saw.
fn removed_until(context: JudgeContext<'_>, seen: &Seen, node: &NodeSeen) -> Option<Time> {
    let since = node.leaving_since()?.max(node.ready_since).max(context.cluster_since());
    Some(since + context.deadlines(seen).delete_within)
}

/// When a machine that is excused, or starting, will not be any more, as far as its node decides that.
pub fn excused_until(context: JudgeContext<'_>, seen: &Seen) -> Option<Time> {
    let left_until = || seen.left.as_ref().map(|left| gone_until(context, seen, left));
    let node = seen.nodes.first().and_then(|name| context.cluster.nodes.get(name));
    let Some(node) = node else { return left_until() };
    match node.node.ready {
        Ready::True => starting_until(context, seen, node).map(|(_, until)| until),
        Ready::False | Ready::Unknown => removed_until(context, seen, node).or_else(left_until),
    }
}
