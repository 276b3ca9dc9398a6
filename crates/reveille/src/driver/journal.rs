//! Records as log lines: one line each, because the records are what happened.
//!
//! Text for people, fields for programs. Quiet facts (who joined) are DEBUG, steps are INFO, what needs a person is WARN.
//! Nothing secret can be in a record, so nothing is masked here.

use reveille_core::model::incident::Finding;
use reveille_core::model::roster::Roster;
use reveille_core::record::Record;

/// Logs one record of a roster.
pub(crate) fn tell(roster: &Roster, record: &Record) {
    let roster = roster.name.as_str();
    match record {
        Record::Started { fence, .. } => tracing::info!(roster, %fence, "watching"),
        Record::Joined { machines, .. } => {
            tracing::debug!(roster, count = machines.len(), "machines were seen with their nodes");
        }
        Record::Born { machine, .. } => tracing::debug!(roster, %machine, "appeared"),
        Record::Left { machine, why, .. } => tracing::info!(roster, %machine, "left on purpose: {why}"),
        Record::Forgotten { machines, .. } => {
            tracing::info!(roster, count = machines.len(), "machines are gone for good");
        }
        Record::Opened { incident, key, label, pool, .. } => {
            let pool = pool.as_ref().map_or("", |pool| pool.as_str());
            tracing::warn!(roster, %incident, kind = %key.kind, machine = %label, pool, "{label}: {}", key.kind);
        }
        Record::Diagnosed { incident, findings, .. } => {
            let Some(first) = findings.first() else { return };
            let (code, confidence) = (first.cause.code(), first.confidence.name());
            tracing::info!(roster, %incident, code, confidence, "because {}{}", first.cause.says(), quoted(first));
        }
        Record::Intended { intent, incident, call, .. } => {
            tracing::info!(roster, %incident, %intent, "will {call}");
        }
        Record::Tried { incident, attempt, .. } => {
            tracing::debug!(roster, %incident, intent = %attempt.intent, "tried before: {}", attempt.what);
        }
        Record::Dropped { intent, why, .. } => tracing::info!(roster, %intent, "not done after all: {why}"),
        Record::Ended { intent, outcome, .. } => tracing::info!(roster, %intent, "{outcome}"),
        Record::Judged { intent, held: true, text, .. } => {
            tracing::info!(roster, %intent, held = true, "worked: {text}")
        }
        Record::Judged { intent, text, .. } => {
            tracing::warn!(roster, %intent, held = false, "did not hold: {text}")
        }
        Record::GivenUp { incident, why, .. } => {
            tracing::warn!(roster, %incident, "a person is asked: {why}")
        }
        Record::Closed { incident, verdict, .. } => {
            tracing::info!(roster, %incident, verdict = verdict.name(), "closed: {}", verdict.name());
        }
        Record::Width { domain, width, .. } => {
            tracing::info!(roster, pool = %domain.pool, kind = %domain.kind, width, "repairs of this kind at once: {width}");
        }
        Record::FaultSeen { pool, instance, fault, .. } => {
            tracing::info!(roster, %pool, %instance, "counted against its pool: {fault}");
        }
    }
}

fn quoted(finding: &Finding) -> String {
    finding.evidence.first().map_or_else(String::new, |evidence| {
        let text: String = evidence.text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        format!(" ({}: {text})", evidence.source)
    })
}
