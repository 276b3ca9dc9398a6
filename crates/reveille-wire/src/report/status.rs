//! The status report: one row for every machine, and the state of the data sources.

use serde::{Deserialize, Serialize};

use super::hot::HotVerdict;
use super::parts::{Ago, PauseReport, SourceReport};
use super::rancher::RancherRecordsReport;
use reveille_core::model::time::Time;

/// All machines and their problems.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusReport {
    /// The roster's name.
    pub roster: String,
    /// When the report was made.
    pub at: Time,
    /// How many.
    pub summary: StatusSummary,
    /// The cluster first, then the clouds by name.
    pub sources: Vec<SourceReport>,
    /// Pauses that operators set, or that the controller set for safety.
    #[serde(default)]
    pub pauses: Vec<PauseReport>,
    /// Machines that are not Ready first, then unknown, then excused, then Ready ones; by name.
    pub machines: Vec<MachineReport>,
    /// What happens next, one line each; empty when all machines are Ready.
    pub next: Vec<String>,
    /// What is wrong with Rancher's records of these machines; not there unless the roster names a Rancher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rancher: Option<Box<RancherRecordsReport>>,
    /// Objects that are written in a loop in the cluster and in Rancher's, as a running controller sees them, hottest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hot: Vec<HotVerdict>,
    /// Where the controller should watch for such objects and cannot, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hot_unread: Vec<String>,
    /// Why the controller assumes that it is the only one for its roster; not there while a Lease proves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<String>,
}

/// How many machines have which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusSummary {
    /// Rows of the report; the sum of the others.
    pub machines: u32,
    /// Machines that are Ready.
    pub answer: u32,
    /// Machines that are proved missing or not Ready.
    pub absent: u32,
    /// Machines whose state is unknown.
    pub unknown: u32,
    /// Machines that are not expected to be Ready: under construction, or leaving on purpose.
    #[serde(default)]
    pub excused: u32,
}

/// One machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineReport {
    /// Its name for people: the instance's, else the Node's. Names are not unique.
    pub name: String,
    /// Its identity, see [`super::key_text`].
    pub key: String,
    /// Its pool; not there when no pool claims it, or several do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Its failure domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Whether the machine is Ready.
    pub answers: Answers,
    /// The stage that the machine has reached; not there when it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// The kind of problem (`never-joined`, `vanished`, …), `ready` when there is none, `unknown` when the state is
    /// unknown, `excused` when the machine is not expected to be Ready.
    pub state: String,
    /// Since when, as far as the controller has seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Ago>,
    /// The problem, in one line; empty when there is none.
    pub what: String,
    /// Its node's name, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The cloud's id of its instance, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// The roster's name of the cloud that the instance is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud: Option<String>,
}

/// Whether a machine is Ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answers {
    /// The machine is proved missing or not Ready.
    No,
    /// The state of the machine is unknown.
    Unknown,
    /// The machine is not Ready and is not expected to be: it is under construction, or leaves on purpose.
    Excused,
    /// The machine has a Node that is Ready.
    Yes,
}

impl StatusSummary {
    /// Counts the rows.
    pub fn of(machines: &[MachineReport]) -> Self {
        let mut summary = Self::default();
        for machine in machines {
            summary.machines += 1;
            *match machine.answers {
                Answers::Yes => &mut summary.answer,
                Answers::No => &mut summary.absent,
                Answers::Unknown => &mut summary.unknown,
                Answers::Excused => &mut summary.excused,
            } += 1;
        }
        summary
    }
}
