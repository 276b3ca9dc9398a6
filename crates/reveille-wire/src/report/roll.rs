//! The roll: one row for every machine, and how far the sources can be believed.

use serde::{Deserialize, Serialize};

use super::hot::HotVerdict;
use super::parts::{Ago, PauseReport, SourceReport};
use super::rancher::RancherLookReport;
use reveille_core::model::time::Time;

/// Who is here, who is missing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RollReport {
    /// The roster's name.
    pub roster: String,
    /// When the report was made.
    pub at: Time,
    /// How many.
    pub summary: RollSummary,
    /// The cluster first, then the clouds by name.
    pub sources: Vec<SourceReport>,
    /// What people, or our own caution, said "hands off" about.
    #[serde(default)]
    pub pauses: Vec<PauseReport>,
    /// Who does not answer first, then who cannot be told, then who is excused, then the others; by name.
    pub machines: Vec<MachineReport>,
    /// What happens next, one line each; empty when all answer.
    pub next: Vec<String>,
    /// What is amiss with Rancher's records of these machines; not there unless the roster names a Rancher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rancher: Option<Box<RancherLookReport>>,
    /// What a running controller sees written without end in the cluster and in Rancher's, hottest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hot: Vec<HotVerdict>,
    /// Where it should see that and does not, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hot_unread: Vec<String>,
    /// That the controller relies on being the only one of its roster, and why; not there while a Lease proves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<String>,
}

/// How many answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RollSummary {
    /// Rows of the roll; the sum of the others.
    pub machines: u32,
    /// Those that answer.
    pub answer: u32,
    /// Those that are proved absent.
    pub absent: u32,
    /// Those of which nobody can tell.
    pub unknown: u32,
    /// Those that nobody should expect: being built, or leaving on purpose.
    #[serde(default)]
    pub excused: u32,
}

/// One machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineReport {
    /// Its name for people: the instance's, else the node's. Not unique.
    pub name: String,
    /// Its identity, see [`super::key_text`].
    pub key: String,
    /// Its pool; not there when no pool claims it, or several do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Its failure domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Whether it answers.
    pub answers: Answers,
    /// Name of the stage where it stands; not there when nobody can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// The kind of fault (`never-joined`, `vanished`, …), `ready` when there is none, `unknown` when nobody can tell,
    /// `excused` when nobody should expect it.
    pub state: String,
    /// Since when that is so, as far as we have seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Ago>,
    /// What is the matter, in one line; empty when nothing is.
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

/// Whether a machine answers the roll.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answers {
    /// It does not: proved.
    No,
    /// Nobody can tell.
    Unknown,
    /// It is not here, and nobody should expect it: it is being built, or leaves on purpose.
    Excused,
    /// It is there and Ready.
    Yes,
}

impl RollSummary {
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
