//! What the looking commands print for programs: `--output json` and `--output yaml`.
//!
//! ```text
//!   core's state ─▶ (the binary fills) RollReport, WhyReport, PlanReport, IncidentsReport ─▶ Document ─▶ JSON or YAML
//!                                          └▶ the same structs feed the tables for people
//! ```
//!
//! Plain structs, free to construct, with no logic but the naming of core values. Names are camelCase and stay: fields
//! may be added within an `apiVersion`, none is renamed, removed or given another meaning, and readers should pass over
//! what they do not know. Times come twice: as RFC 3339, and as seconds from the moment the report was made, so that no
//! reader has to own a clock that agrees with ours. What nobody knows is left out or says `unknown`; it is never
//! guessed. Words for people are found elsewhere.

mod collected;
mod doctor;
mod hot;
mod incidents;
mod join;
mod parts;
mod plan;
mod rancher;
mod roll;
mod way;
mod why;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use collected::CollectedReport;
pub use doctor::{CheckReport, DoctorReport, DoctorSummary, LogFindingReport, LogLineReport, LogReport};
pub use hot::{HotField, HotMachine, HotRate, HotReport, HotSuspect, HotValue, HotVerdict, PressureReport};
pub use incidents::{IncidentReport, IncidentsReport};
pub use join::{JoinEnded, JoinEvent, JoinReport};
pub use parts::{
    Ago, AskedReport, AttemptReport, EvidenceReport, FindingReport, HeldReport, In, PauseReport,
    SourceReport, TriedReport, key_text,
};
pub use plan::{ActReport, AskReport, BlindReport, PlanHeldReport, PlanReport, PlanSummary, WaitReport};
pub use rancher::{
    RancherAbandonReport, RancherClusterReport, RancherDifferenceReport, RancherEvidenceReport,
    RancherFindingReport, RancherLookReport, RancherMachineReport, RancherRepairReport, RancherReport,
    RancherStepReport, RancherTroubleReport,
};
pub use roll::{Answers, MachineReport, RollReport, RollSummary};
pub use way::{
    AgentReport, PassageReport, Side, SilenceReport, StageErrorReport, TimelineReport, TimelineRow, WayReport,
};
pub use why::{NextReport, StageReport, StageState, WhyReport};

/// `apiVersion` of every report.
pub const API_VERSION: &str = "reveille.dev/v1alpha1";

/// A report with its header, as it is printed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Document {
    /// [`API_VERSION`].
    pub api_version: String,
    /// The report; its `kind` says which.
    #[serde(flatten)]
    pub report: Report,
}

/// Any report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum Report {
    /// Who is here, who is missing.
    RollReport(RollReport),
    /// Why one machine is missing.
    WhyReport(Box<WhyReport>),
    /// What would be done now.
    PlanReport(PlanReport),
    /// What is wrong with a machine.
    DoctorReport(Box<DoctorReport>),
    /// What was amiss, and what came of it.
    IncidentsReport(IncidentsReport),
    /// What a machine sent because a person asked.
    CollectedReport(CollectedReport),
    /// What is written without end.
    HotReport(Box<HotReport>),
    /// What a join did, and how it ended.
    JoinReport(JoinReport),
    /// What is amiss with Rancher's records.
    RancherReport(RancherReport),
    /// What an order to mend a record comes to.
    RancherRepairReport(RancherRepairReport),
    /// What a repair that is given up leaves behind.
    RancherAbandonReport(RancherAbandonReport),
}

/// Why a report could not be written.
#[derive(Debug, Error)]
pub enum WriteReportError {
    /// As JSON.
    #[error("cannot write the report as JSON: {0}. Try --output yaml, and tell us")]
    Json(#[from] serde_json::Error),
    /// As YAML.
    #[error("cannot write the report as YAML: {0}. Try --output json, and tell us")]
    Yaml(#[from] serde_saphyr::ser::Error),
}

impl From<Report> for Document {
    fn from(report: Report) -> Self {
        Self { api_version: API_VERSION.to_owned(), report }
    }
}

impl Document {
    /// JSON over several lines, with a newline at the end.
    ///
    /// # Errors
    /// None that is known: every report is made of text, numbers, lists and maps with text keys.
    pub fn to_json(&self) -> Result<String, WriteReportError> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// YAML, with a newline at the end.
    ///
    /// # Errors
    /// None that is known, as for [`Document::to_json`].
    pub fn to_yaml(&self) -> Result<String, WriteReportError> {
        let text = serde_saphyr::to_string(self)?;
        Ok(if text.ends_with('\n') { text } else { text + "\n" })
    }
}
