//! Incidents, open and closed.

use reveille_core::model::id::PoolName;
use reveille_core::model::incident::Incident;
use reveille_core::model::time::Time;
use serde::{Deserialize, Serialize};

use super::parts::{Ago, AskedReport, AttemptReport, FindingReport, In, SourceReport, TriedReport};

/// The problems, and how each ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IncidentsReport {
    /// The roster's name.
    pub roster: String,
    /// When the report was made.
    pub at: Time,
    /// The data sources of the report.
    #[serde(default)]
    pub sources: Vec<SourceReport>,
    /// Open ones first, the newest first among each.
    pub incidents: Vec<IncidentReport>,
    /// What was tried so far, by kind of repair, as far back as the ledger reaches.
    #[serde(default)]
    pub tried: Vec<TriedReport>,
}

/// One problem of one machine or other object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IncidentReport {
    /// Its number: `inc-7`.
    pub id: String,
    /// The name of the object, for people.
    pub label: String,
    /// The id of the object: an instance's, a Node's, `group …`, `router …`, `pool …`, `cloud …`, `cluster`.
    pub subject: String,
    /// The kind of problem: `never-joined`.
    pub kind: String,
    /// The pool that it is charged to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Since when, as far as the controller has seen.
    pub since: Ago,
    /// The causes that were found, the one to act on first.
    pub findings: Vec<FindingReport>,
    /// What was tried, in order.
    pub attempts: Vec<AttemptReport>,
    /// The controller does not try again before this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<In>,
    /// True when all allowed repairs were tried and manual action is needed.
    pub given_up: bool,
    /// An operator asked for a repair now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<AskedReport>,
    /// The machine is kept for an inspection, and not deleted before this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_until: Option<In>,
    /// The machine has been healthy since then. The incident closes when that has lasted long enough, or when
    /// an operator confirms it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub well: Option<Ago>,
    /// How it ended (`mended`, `recovered`, `subject-gone`, `superseded`); not there while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<Ago>,
}

impl IncidentReport {
    /// An open incident of the core, as seen from `now`.
    pub fn open(incident: &Incident, now: Time) -> Self {
        Self {
            id: incident.id.to_string(),
            label: incident.label.to_string(),
            subject: incident.key.subject.to_string(),
            kind: incident.key.kind.name().to_owned(),
            pool: incident.pool.as_ref().map(PoolName::to_string),
            since: Ago::new(incident.first_seen, now),
            findings: incident.findings.iter().map(|finding| FindingReport::new(finding, now)).collect(),
            attempts: incident.attempts.iter().map(|attempt| AttemptReport::new(attempt, now)).collect(),
            not_before: incident.not_before.filter(|at| *at > now).map(|at| In::new(at, now)),
            given_up: incident.given_up,
            asked: incident.asked.as_ref().map(|asked| AskedReport::new(asked, now)),
            kept_until: incident.kept_until.filter(|at| *at > now).map(|at| In::new(at, now)),
            well: incident.well_since.map(|at| Ago::new(at, now)),
            verdict: None,
            closed: None,
        }
    }
}
