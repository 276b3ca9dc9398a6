//! What people request for a machine that failed: to look at it before it is deleted, and to confirm themselves when it is
//! repaired.
//!
//! ```text
//!  pool.keep, marks on Node or instance ─▶ kept_for ─▶ a hold on the deletion, for a while, of so many at once
//!  pool.deadlines.confirm, annotation ───▶ unconfirmed ─▶ the incident stays open until a person confirms
//! ```
//!
//! Both requests only ever block a step or keep an incident open. Nothing here makes anything happen, or happen sooner.

use std::sync::Arc;

use crate::model::id::PoolName;
use crate::model::instance::{Instance, Mark};
use crate::model::node::Asks;
use crate::model::repair_step::RepairStep;
use crate::model::roster::Pool;
use crate::model::signs;
use crate::model::time::Span;
use crate::observe::cloud::Seen;

use super::context::{Case, PlanContext};
use crate::model::class::Class;

/// The same wish as the annotation's, on the instance itself: who never joined has no Node to write on. A metadata pair
/// with the value `true` or `false`; a tag of this name is `true`.
pub const KEEP_MARK: &str = "reveille-keep";

/// How much longer the machine is kept before it may be deleted; `None`: it is not kept.
pub fn kept_for(context: &PlanContext<'_>, case: &Case, pool: &Pool, seen: &Seen) -> Option<Span> {
    let keep = pool.keep?;
    if !is_marked(context, seen).unwrap_or(keep.failed) {
        return None;
    }
    match case.incident.kept_until {
        Some(until) => (context.now < until).then(|| until.since(context.now)),
        None => (kept_in(context, &pool.name) < keep.at_most).then_some(keep.within),
    }
}

/// How much longer a person may look at the machine as it is: it failed for good before, and is kept since. Another fault by now,
/// such as a Node that they deleted, is no reason to reboot it under their hands. That its deletion waits is said with what else
/// stands against deletions.
pub fn looked_at_for(
    context: &PlanContext<'_>,
    case: &Case,
    seen: &Seen,
    repair_step: RepairStep,
) -> Option<Span> {
    case.incident.kept_until.filter(|_| repair_step.class() == Class::Reboot)?;
    kept_for(context, case, context.pool(seen)?, seen)
}

/// What a person wrote on the machine about keeping it. Of two that differ the more careful one counts.
fn is_marked(context: &PlanContext<'_>, seen: &Seen) -> Option<bool> {
    let on_nodes = asks(context, seen).filter_map(|asks| asks.keep);
    on_nodes.chain(marked(&seen.instance)).max()
}

fn marked(instance: &Instance) -> Option<bool> {
    let said = instance.marks.iter().filter_map(|mark| match mark {
        Mark::Tag(tag) => (&**tag == KEEP_MARK).then_some(true),
        Mark::Metadata(key, value) if &**key == KEEP_MARK => match &**value {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        },
        Mark::Metadata(..) => None,
    });
    said.max()
}

fn kept_in(context: &PlanContext<'_>, pool: &PoolName) -> u32 {
    let kept = |case: &&Case| {
        let incident = &case.incident;
        incident.pool.as_ref() == Some(pool) && incident.kept_until.is_some_and(|until| context.now < until)
    };
    context.kept.iter().filter_map(|key| context.cases.get(key)).filter(kept).count() as u32
}

/// What a person must do before the case closes, when it has looked well for its dwell and nothing else is waited for.
pub fn unconfirmed(context: &PlanContext<'_>, case: &Case) -> Option<Arc<str>> {
    let incident = &case.incident;
    let since = incident.well_since?;
    let pool = context.pool_of(case).and_then(|name| context.roster.pools.get(name))?;
    let waits = pool.deadlines.confirm && incident.key.kind.is_absence();
    if !waits || context.now < since + pool.deadlines.dwell {
        return None;
    }
    let (_, seen) = context.seen_of(&incident.key.subject)?;
    let number = incident.id.to_string();
    if asks(context, seen).any(|asks| asks.confirm.as_deref() == Some(number.as_str())) {
        return None;
    }
    let node = seen.nodes.first().map_or("NODE", |name| name.as_str());
    let how = format!(
        "it looks well. Confirm that the problem is over: kubectl annotate node {node} --overwrite {}={number}",
        signs::CONFIRM
    );
    Some(Arc::from(how))
}

/// What is asked for on the Nodes that are the machine's own word: who makes a Node that shows it asks for nothing.
fn asks<'a>(context: &PlanContext<'a>, seen: &'a Seen) -> impl Iterator<Item = &'a Asks> {
    let nodes = seen.own_nodes().filter_map(|name| context.cluster.nodes.get(name));
    nodes.filter_map(|node| node.node.intent.asks.as_deref())
}
