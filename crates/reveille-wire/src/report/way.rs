//! A machine's way through the stages as a timeline, told from two sides, and what is known of its agent.

use reveille_core::model::time::Time;
use reveille_core::model::trace::Passage;
use serde::{Deserialize, Serialize};

use super::parts::{Ago, In};
use super::why::StageState;

/// The timeline, and who told it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WayReport {
    /// In order of when each was entered.
    pub passages: Vec<PassageReport>,
    /// Its agent, as far as this process has heard one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentReport>,
}

/// One stage, from one side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PassageReport {
    /// Its name.
    pub stage: String,
    /// Who tells it.
    pub by: Side,
    /// When we saw, or heard, that it is there.
    pub entered: Ago,
    /// When we saw, or heard, that it went on; not there while it has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Ago>,
    /// How often it came there, or tried there.
    pub attempts: u32,
    /// Something is done if it has not gone on by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<In>,
    /// The last thing that went wrong there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<StageErrorReport>,
}

/// Which side tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Side {
    /// Clouds and cluster, as we see them.
    Outside,
    /// The agent on the machine.
    Agent,
}

/// The fourteen stages, each with what both sides know of it; shown where it is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TimelineReport {
    /// All of them, in order.
    pub rows: Vec<TimelineRow>,
    /// Nothing is heard of its agent; not there while it is heard, or where there is none.
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
    /// As clouds and cluster show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<PassageReport>,
    /// As its agent tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<PassageReport>,
}

/// A time without a word, which goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SilenceReport {
    /// When it was heard last.
    pub since: Ago,
    /// Where it stood then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
}

/// What went wrong in a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StageErrorReport {
    /// The typed word for it.
    pub code: String,
    /// In words.
    pub text: String,
}

/// What is known of a machine's agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentReport {
    /// As whoever registered it knows it.
    pub id: String,
    /// When it was heard last.
    pub heard: Ago,
    /// It has not been heard for so long that nothing is expected of it.
    pub silent: bool,
    /// Why it leaves its join alone, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<String>,
    /// What it does about its node by itself just now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_work: Option<String>,
}

impl PassageReport {
    /// A passage as seen from `now`; `deadline` counts where the machine stands, and nowhere else.
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
