//! Logs records, one line each, because the records are what happened.
//!
//! Each line has text for people and fields for programs. Routine facts (a machine joined) are DEBUG, repair steps are
//! INFO, what needs an operator is WARN. A record holds no secret, so nothing is masked here.

use std::sync::Arc;

use reveille_core::engine::State;
use reveille_core::model::hidden::is_hidden;
use reveille_core::model::id::{IncidentId, IntentId};
use reveille_core::model::incident::Finding;
use reveille_core::record::Record;

/// Logs one record. The state only supplies names for people.
pub(crate) fn tell(state: &State, record: &Record) {
    let context = state.context();
    let roster = context.roster.name.as_str();
    match record {
        Record::Opened { incident, key, label, pool, .. } => {
            let pool = pool.as_ref().map_or("", |pool| pool.as_str());
            tracing::warn!(roster, %incident, kind = %key.kind, pool, "{label}: {}", key.kind);
        }
        Record::Diagnosed { incident, findings, .. } => {
            let Some(first) = findings.first() else { return };
            let (code, confidence) = (first.cause.code(), first.confidence.name());
            let (label, says) = (label(state, *incident), first.cause.says());
            tracing::info!(roster, %incident, code, confidence, "{label}: {says}{}", quoted(first));
        }
        Record::GivenUp { incident, why, .. } => {
            tracing::warn!(roster, %incident, "{}: asks a person: {why}", label(state, *incident));
        }
        Record::Asked { incident: Some(incident), value, .. } => {
            tracing::info!(roster, %incident, "{}: a person asks for a repair now: {value}", label(state, *incident));
        }
        Record::Asked { incident: None, machine, value, .. } => {
            tracing::info!(roster, %machine, "a repair was requested, and no problem is known: {value}");
        }
        Record::Kept { incident, until, .. } => {
            let until = *until;
            tracing::info!(roster, %incident, %until, "{}: kept for a look", label(state, *incident));
        }
        Record::Closed { incident, verdict, .. } => {
            let (label, verdict) = (label(state, *incident), verdict.name());
            tracing::info!(roster, %incident, verdict, "{label}: {verdict}");
        }
        Record::Tried { incident, attempt, .. } => {
            tracing::debug!(roster, %incident, intent = %attempt.intent, "tried before: {}", attempt.call);
        }
        Record::Intended { .. } | Record::Dropped { .. } | Record::Ended { .. } | Record::Judged { .. } => {
            tell_intent(state, record);
        }
        quiet => tell_quiet(roster, quiet),
    }
}

fn tell_intent(state: &State, record: &Record) {
    let context = state.context();
    let roster = context.roster.name.as_str();
    match record {
        Record::Intended { intent, incident, call, .. } => {
            tracing::info!(roster, %incident, %intent, "{}: will {call}", label(state, *incident));
        }
        Record::Dropped { intent, why, .. } => {
            tracing::info!(roster, %intent, "{}: not done after all: {why}", label_of(state, *intent));
        }
        Record::Ended { intent, outcome, .. } => {
            tracing::info!(roster, %intent, "{}: {outcome}", label_of(state, *intent));
        }
        Record::Judged { intent, held: true, text, .. } => {
            tracing::info!(roster, %intent, held = true, "{}: worked: {text}", label_of(state, *intent));
        }
        Record::Judged { intent, text, .. } => {
            tracing::warn!(roster, %intent, held = false, "{}: did not hold: {text}", label_of(state, *intent));
        }
        _ => {}
    }
}

fn tell_quiet(roster: &str, record: &Record) {
    match record {
        Record::Started { fence, .. } => tracing::info!(roster, %fence, "watching"),
        Record::Cluster { cluster, .. } => {
            tracing::info!(roster, %cluster, "this ledger is about the cluster with this UID of kube-system");
        }
        Record::Joined { machines, .. } => {
            tracing::debug!(roster, count = machines.len(), "machines were seen with their nodes");
        }
        Record::Born { machine, .. } => tracing::debug!(roster, %machine, "appeared"),
        Record::Cordoned { machine, gone: true, .. } => {
            tracing::debug!(roster, %machine, "its Node went with no sign on it");
        }
        Record::Cordoned { machine, missing_since: Some(_), .. } => {
            tracing::debug!(roster, %machine, "is missing from the list of its cloud, and the reason is open");
        }
        Record::Cordoned { machine, cordoned, sign, locked, .. } => {
            let sign = sign.as_deref();
            tracing::debug!(roster, %machine, cordoned, sign, locked, "was cordoned, marked or locked, or is not so any more");
        }
        Record::Left { machine, why, .. } => tracing::info!(roster, %machine, "left on purpose: {why}"),
        Record::OthersActed { pools, what, .. } => {
            tracing::info!(roster, pools = pools.len(), "another actor is at work there: {what}");
        }
        Record::LostTogether { machines, .. } => {
            let count = machines.len();
            tracing::warn!(
                roster,
                count,
                "the Nodes of these machines went missing together; a person brings them back"
            );
        }
        Record::Forgotten { machines, .. } => {
            tracing::info!(roster, count = machines.len(), "machines are gone for good");
        }
        Record::Paused { scope, over, .. } => {
            tracing::debug!(roster, ?scope, over, "a pause or a lock began, or is over");
        }
        Record::Returned { machines, .. } => {
            tracing::info!(roster, count = machines.len(), "machines are in sight again");
        }
        Record::Width { domain, width, .. } => {
            let (pool, kind) = (&domain.pool, domain.kind);
            tracing::info!(roster, %pool, %kind, width, "repairs of this kind at once: {width}");
        }
        Record::Arrived { pool, machine, .. } => {
            tracing::debug!(roster, %pool, %machine, "joined; answers it for long, what is counted against its pool is over");
        }
        Record::FaultsForgiven { pool, .. } => {
            tracing::info!(roster, %pool, "a new machine of it answers: what was counted against it is over");
        }
        Record::FaultSeen { pool, instance, fault, .. } => {
            tracing::info!(roster, %pool, %instance, "counted against its pool: {fault}");
        }
        _ => {}
    }
}

/// The name of an incident's machine or object, as long as the state has it.
fn label(state: &State, id: IncidentId) -> Arc<str> {
    state.incident(id).map_or_else(|| Arc::from(id.to_string()), |incident| incident.label.clone())
}

fn label_of(state: &State, intent: IntentId) -> Arc<str> {
    state.incident_of(intent).map_or_else(|| Arc::from(intent.to_string()), |incident| incident.label.clone())
}

fn quoted(finding: &Finding) -> String {
    finding.evidence.first().map_or_else(String::new, |evidence| {
        let text = evidence.fact.to_string();
        let text: String = text.chars().map(|c| if is_hidden(c) { ' ' } else { c }).collect();
        format!(" ({}: {text})", evidence.source)
    })
}
