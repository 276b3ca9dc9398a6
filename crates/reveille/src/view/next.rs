//! The planner's decision as text: what comes next, not before when, what is blocked, what would not help.

use std::sync::Arc;

use reveille_core::decide::advice;
use reveille_core::decide::{Decision, Next, decide, due_at, useless};
use reveille_core::effect::Call;
use reveille_core::model::agent::Ask;
use reveille_core::model::blocker::Blocker;
use reveille_core::model::roster::Mode;
use reveille_core::model::time::{Span, Time};
use reveille_core::plan::context::{Case, PlanContext};
use reveille_core::plan::interlock;
use reveille_core::remedies::{AskAgent, RepairStep, escalation, rejoin};
use reveille_wire::report::{HeldReport, In, NextReport};

/// The next step for an incident, as an imperative or a clause.
pub(crate) fn report(context: &PlanContext<'_>, case: &Case, decision: &Decision) -> NextReport {
    let (what, not_before) = match &decision.next {
        Next::Act { call, .. } => (format!("{}, at once", call.in_a_line()), None),
        Next::Held { repair_step, call } => {
            let why = decision.held.last().and_then(|(_, blockers)| blockers.first());
            let why = why.map_or_else(String::new, |blocker| format!(" ({blocker})"));
            (format!("{}: blocked{why}", would(*repair_step, call.as_ref())), None)
        }
        Next::Wait { until, why } => {
            (since_sight(context, case, *until).unwrap_or_else(|| why.to_string()), Some(*until))
        }
        Next::Gather(_) => ("reading console and action log first".to_owned(), None),
        Next::UnderWay(intent) => {
            let attempt = case.incident.attempts.iter().find(|attempt| attempt.intent == *intent);
            let what = attempt.map_or_else(|| intent.to_string(), |attempt| attempt.call.to_string());
            (format!("running: {what}"), None)
        }
        Next::Blind(why) => (format!("no decision: {}", super::blind_words(context, why)), None),
        Next::Ask(how) => (format!("manual action: {}", asked(case, how)), None),
        Next::Well => well(context, case),
    };
    let then = matches!(decision.next, Next::Wait { .. }).then(|| then(context, case));
    NextReport { what, not_before: not_before.map(|at| In::new(at, context.now)), then }
}

/// The next step as [`report`] gives it, on a page that lists beside it what blocks each step: there the reason stands once.
pub(crate) fn report_beside_held(context: &PlanContext<'_>, case: &Case, decision: &Decision) -> NextReport {
    let report = report(context, case, decision);
    match &decision.next {
        Next::Held { repair_step, call } => {
            NextReport { what: format!("{}: blocked", would(*repair_step, call.as_ref())), ..report }
        }
        _ => report,
    }
}

/// A deadline that was extended because a data source failed must not claim to count from the first sight.
fn since_sight(context: &PlanContext<'_>, case: &Case, until: Time) -> Option<String> {
    let after = case.due_after?;
    let is_patience = due_at(context, case) == Ok(Some(until));
    (is_patience && until > case.incident.first_seen + after + Span::from_s(1))
        .then(|| format!("waits until {after} after the data source returned"))
}

/// What an incident waits for: the first repair step from the present one on that is allowed and would help.
fn then(context: &PlanContext<'_>, case: &Case) -> String {
    let incident = &case.incident;
    let repair_steps = escalation(incident.key.kind).iter().skip(usize::from(incident.repair_step));
    for repair_step in repair_steps.copied() {
        if useless(repair_step, &incident.findings).is_some() {
            continue;
        }
        match (interlock::mode_of(context, case, repair_step.class()), repair_step) {
            (Mode::Off, _) => {}
            (Mode::Act, RepairStep::Rejoin) if rejoin::ask(context, case).is_ok() => {
                return format!("asks its agent to {}", Ask::Rejoin.says());
            }
            (_, RepairStep::Rejoin) => return format!("manual action: {}", asked(case, repair_step.says())),
            (Mode::Propose, _) => return format!("{} (proposed only)", repair_step.says()),
            (Mode::Act, _) => return repair_step.says().to_owned(),
        }
    }
    format!("manual action: {}", asked(case, advice::ask(incident.key.kind)))
}

/// What the operator has to do. Where nothing was tried because the roster allows no useful repair, the cause's own
/// remedy says more than "all allowed repairs failed".
pub(crate) fn asked(case: &Case, how: &str) -> String {
    let incident = &case.incident;
    // Nothing is left to try either where the machine looks healthy and an operator has to confirm that.
    let tried = !incident.attempts.is_empty()
        || incident.given_up
        || incident.well_since.is_some()
        || escalation(incident.key.kind).is_empty();
    match incident.findings.first() {
        Some(finding) if !tried => finding.cause.remedy().to_owned(),
        _ => how.to_owned(),
    }
}

fn well(context: &PlanContext<'_>, case: &Case) -> (String, Option<Time>) {
    let pool = case.incident.pool.as_ref().and_then(|name| context.roster.pools.get(name));
    let dwell = pool.map_or(context.roster.timing.cloud_period, |pool| pool.deadlines.dwell);
    let until = case.incident.well_since.map(|since| since + dwell);
    ("recovered; closes when it stays so".to_owned(), until.filter(|at| *at > context.now))
}

/// The next step on one line: when, what, and what for.
pub(crate) fn line(next: &NextReport, when: &str) -> String {
    match &next.then {
        Some(then) => {
            let then = then.trim_end_matches('.');
            format!("{when}{then}, if the problem persists ({})", next.what)
        }
        None => format!("{when}{}", next.what),
    }
}

/// The planner's decision for an incident.
pub(crate) fn decision(context: &PlanContext<'_>, case: &Case) -> Decision {
    decide(context, case)
}

/// Repair steps that are blocked, and why.
pub(crate) fn held(decision: &Decision) -> Vec<HeldReport> {
    let what = |repair_step: RepairStep| match &decision.next {
        Next::Held { repair_step: next, call } if *next == repair_step => would(repair_step, call.as_ref()),
        _ => repair_step.says().to_owned(),
    };
    let report = |(repair_step, blockers): &(RepairStep, Vec<Blocker>)| HeldReport {
        what: what(*repair_step),
        why: blockers.iter().map(ToString::to_string).collect(),
    };
    decision.held.iter().map(report).collect()
}

/// Repair steps that would not help, and why.
pub(crate) fn no_use(decision: &Decision) -> Vec<HeldReport> {
    let report = |(repair_step, why): &(RepairStep, Arc<str>)| HeldReport {
        what: repair_step.says().to_owned(),
        why: vec![why.to_string()],
    };
    decision.no_use.iter().map(report).collect()
}

/// A blocked step as an imperative. The text of the step is used, except where an operator would need the ids to do it by hand.
fn would(repair_step: RepairStep, call: Option<&Call>) -> String {
    match call {
        Some(call @ Call::AssignRoles(_)) => call.in_a_line(),
        Some(Call::AskAgent(AskAgent { ask, .. })) => format!("ask its agent to {}", ask.says()),
        _ => repair_step.says().to_owned(),
    }
}
