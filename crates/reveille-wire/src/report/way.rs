//! The timeline of a machine through the stages, from two sides, and the state of its agent.

use reveille_core::model::time::Time;
use reveille_core::model::trace::Passage;
use serde::{Deserialize, Serialize};

use super::parts::{Ago, In};

/// Whether a machine passed a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StageState {
    /// The machine passed it.
    Passed,
    /// The machine stopped here.
    Stopped,
    /// The state is unknown, or the machine has not come so far.
    Unknown,
}

/// The timeline, and the agent that reported a part of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WayReport {
    /// The stages, in the order in which the machine entered them.
    pub passages: Vec<PassageReport>,
    /// The agent, if this process has received a report from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentReport>,
}

/// One stage, from one side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PassageReport {
    /// Its name.
    pub stage: String,
    /// The side that reports it.
    pub by: Side,
    /// When the stage was seen or reported as entered.
    pub entered: Ago,
    /// When the stage was seen or reported as left; not there while the machine is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Ago>,
    /// How often the machine entered the stage, or tried it.
    pub attempts: u32,
    /// The controller acts if the machine has not left the stage by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<In>,
    /// The last error in the stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<StageErrorReport>,
}

/// The side that reports a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Side {
    /// The clouds and the cluster, as the controller reads them.
    Outside,
    /// The agent on the machine.
    Agent,
}

/// The fourteen stages, each with the reports of both sides; included on request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TimelineReport {
    /// All of them, in order.
    pub rows: Vec<TimelineRow>,
    /// The agent is silent; not there while it reports, or where there is no agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence: Option<SilenceReport>,
}

/// One stage, from both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TimelineRow {
    /// Its name.
    pub stage: String,
    /// Its place, from 1.
    pub number: usize,
    /// Whether the machine passed it.
    pub state: StageState,
    /// The stage as clouds and cluster show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<PassageReport>,
    /// The stage as the agent reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<PassageReport>,
}

/// A silence of the agent that has not ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SilenceReport {
    /// When the agent reported last.
    pub since: Ago,
    /// The stage of the machine at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
}

/// An error in a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StageErrorReport {
    /// The code of the error.
    pub code: String,
    /// The error as text.
    pub text: String,
}

/// The state of a machine's agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentReport {
    /// The id of the machine in the registration server.
    pub id: String,
    /// When the agent reported last.
    pub heard: Ago,
    /// The agent has been silent for so long that the controller expects nothing from it.
    pub silent: bool,
    /// Why the agent leaves the join of its machine alone, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<String>,
    /// What the agent does about its Node on its own at the moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_work: Option<String>,
}

impl PassageReport {
    /// A passage as seen from `now`; `deadline` counts only for the stage that the machine is in.
    pub fn new(passage: &Passage, by: Side, deadline: Option<Time>, now: Time) -> Self {
        let error = passage.error.as_ref();
        Self {
            stage: passage.stage.name().to_owned(),
            by,
            entered: Ago::new(passage.entered, now),
            left: passage.left.map(|at| Ago::new(at, now)),
            attempts: passage.attempts,
            deadline: deadline.filter(|_| passage.left.is_none()).map(|at| In::new(at, now)),
            error: error.map(|it| StageErrorReport { code: it.code.to_string(), text: it.text.to_string() }),
        }
    }
}
