//! One machine: where it stopped, why, what the controller did, what comes next, and what is blocked.

use reveille_core::model::stage::Stage;
use serde::{Deserialize, Serialize};

use super::collected::CollectedReport;
use super::hot::HotVerdict;
use super::parts::{AskedReport, AttemptReport, FindingReport, HeldReport, In, SourceReport};
use super::rancher::RancherRecordsReport;
use super::status::MachineReport;
use super::way::{StageState, TimelineReport, WayReport};
use reveille_core::model::time::Time;

/// Why one machine is not a Ready node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WhyReport {
    /// The roster's name.
    pub roster: String,
    /// When the report was made.
    pub at: Time,
    /// Its row of the status report.
    pub machine: MachineReport,
    /// All fourteen stages, in order.
    pub stages: Vec<StageReport>,
    /// Its timeline, from two sides; not there where no agent ever reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<WayReport>,
    /// The stages one by one; only on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<TimelineReport>,
    /// The causes that were found, the one to act on first.
    pub findings: Vec<FindingReport>,
    /// What operators asked for, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<AskedReport>,
    /// What was tried, in order.
    pub done: Vec<AttemptReport>,
    /// What its agent sent because an operator asked, the newest last, as far as this host keeps it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collected: Vec<CollectedReport>,
    /// Objects about this machine that are written in a loop, as a running controller sees them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hot: Vec<HotVerdict>,
    /// Where the controller should watch for such objects and cannot, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hot_unread: Vec<String>,
    /// What comes next; not there when there is no problem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextReport>,
    /// Blocked repairs, and why.
    pub held: Vec<HeldReport>,
    /// Repairs that would not help, and why.
    pub no_use: Vec<HeldReport>,
    /// The data sources of the report.
    pub sources: Vec<SourceReport>,
    /// What is wrong with Rancher's records of the machine; not there unless the roster names a Rancher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rancher: Option<Box<RancherRecordsReport>>,
}

/// One stage of the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StageReport {
    /// Its name.
    pub name: String,
    /// Its place, from 1.
    pub number: usize,
    /// Whether the machine passed it.
    pub state: StageState,
    /// What else is known about the stage: a time, or what the machine waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NextReport {
    /// The next step, as text.
    pub what: String,
    /// Not before this time; not there when it happens at once, or when manual action is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<In>,
    /// The next repair, if the problem persists; not there when a repair is under way, or when only an operator could go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<String>,
}

impl StageReport {
    /// All fourteen, in order, each in the state that `state_of` gives, with no notes.
    pub fn strip(state_of: impl Fn(Stage) -> StageState) -> Vec<Self> {
        let report = |stage: Stage| Self {
            name: stage.name().to_owned(),
            number: stage.number(),
            state: state_of(stage),
            note: None,
        };
        Stage::ALL.into_iter().map(report).collect()
    }
}
