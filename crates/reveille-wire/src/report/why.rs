//! One machine: where it stopped, why, what was done, what comes next, and what is held back.

use reveille_core::model::stage::Stage;
use serde::{Deserialize, Serialize};

use super::collected::CollectedReport;
use super::hot::HotVerdict;
use super::parts::{AskedReport, AttemptReport, FindingReport, HeldReport, In, SourceReport};
use super::rancher::RancherLookReport;
use super::roll::MachineReport;
use super::way::{TimelineReport, WayReport};
use reveille_core::model::time::Time;

/// Why one machine is missing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WhyReport {
    /// The roster's name.
    pub roster: String,
    /// When the report was made.
    pub at: Time,
    /// Its row of the roll.
    pub machine: MachineReport,
    /// All fourteen stages, in order.
    pub stages: Vec<StageReport>,
    /// Its way through them, told by two sides; not there where no agent ever spoke of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<WayReport>,
    /// The stages one by one; not there unless it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<TimelineReport>,
    /// What was concluded, the one to act on first.
    pub findings: Vec<FindingReport>,
    /// What people asked for, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<AskedReport>,
    /// What was tried, in order.
    pub done: Vec<AttemptReport>,
    /// What its agent sent or said because a person asked, the newest last; as far as this host keeps it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collected: Vec<CollectedReport>,
    /// What a running controller sees written without end about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hot: Vec<HotVerdict>,
    /// Where it should see that and does not, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hot_unread: Vec<String>,
    /// What comes next; not there when nothing is amiss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextReport>,
    /// What is not done, and why.
    pub held: Vec<HeldReport>,
    /// What would not help, and why.
    pub no_use: Vec<HeldReport>,
    /// What all of this rests on.
    pub sources: Vec<SourceReport>,
    /// What is amiss with Rancher's records of it; not there unless the roster names a Rancher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rancher: Option<Box<RancherLookReport>>,
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
    /// What is known of it beyond that: a time, what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Whether a machine passed a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StageState {
    /// It did.
    Passed,
    /// It stopped here.
    Stopped,
    /// Nobody can tell, or it has not come so far.
    Unknown,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NextReport {
    /// In words.
    pub what: String,
    /// Not before this; not there when it is done at once, or when a person is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<In>,
    /// What would be done then, if it is still so; not there when something is under way, or only a person could go on.
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
