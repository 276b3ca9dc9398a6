//! What the reading commands print for programs: `--output json` and `--output yaml`.
//!
//! ```text
//!   core's state ─▶ (the binary fills) StatusReport, WhyReport, PlanReport, IncidentsReport ─▶ Document ─▶ JSON or YAML
//!                                          └▶ the same structs feed the tables for people
//! ```
//!
//! The reports are plain structs without logic, except for the naming of core values. Names are camelCase and stay:
//! within an `apiVersion`, fields may be added, and none is renamed, removed or given another meaning. Readers should
//! skip fields that they do not know. Times come twice: as RFC 3339, and as seconds from the moment of the report, so
//! that no reader needs a clock that agrees with ours. An unknown value is left out or says `unknown`; it is never
//! guessed. Text for people is made elsewhere.

mod collected;
mod doctor;
mod hot;
mod incidents;
mod join;
mod parts;
mod plan;
mod rancher;
mod status;
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
    RancherFindingReport, RancherMachineReport, RancherRecordsReport, RancherRepairReport, RancherReport,
    RancherStepReport, RancherTroubleReport,
};
pub use status::{Answers, MachineReport, StatusReport, StatusSummary};
pub use way::{
    AgentReport, PassageReport, Side, SilenceReport, StageErrorReport, StageState, TimelineReport,
    TimelineRow, WayReport,
};
pub use why::{NextReport, StageReport, WhyReport};

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
    /// All machines and their problems.
    #[serde(rename = "RollReport")]
    StatusReport(StatusReport),
    /// Why one machine is not a Ready node.
    WhyReport(Box<WhyReport>),
    /// What the controller would do now.
    PlanReport(PlanReport),
    /// What is wrong with a machine.
    DoctorReport(Box<DoctorReport>),
    /// The problems, and how each ended.
    IncidentsReport(IncidentsReport),
    /// What an agent sent because an operator asked for it.
    CollectedReport(CollectedReport),
    /// Objects that are written in a loop.
    HotReport(Box<HotReport>),
    /// What a join did, and how it ended.
    JoinReport(JoinReport),
    /// What is wrong with Rancher's records.
    RancherReport(RancherReport),
    /// The steps of a repair of a Rancher record.
    RancherRepairReport(RancherRepairReport),
    /// What an abandoned repair leaves behind.
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
    /// None that is known: every report consists of text, numbers, lists and maps with text keys.
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
