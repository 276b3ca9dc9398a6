//! One report of one agent.
//!
//! A report is a whole: it says everything that its agent knows then, so that one that was lost is made good by the next.
//! It carries no time, because no clock but ours counts; `life` and `number` order the reports of one agent, so that one
//! that comes late or twice is known by them. What its checks prove is handed over judged, as findings of logs are.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::agent::{AgentBlocker, ApiSaid, Ask, KubeletSaid, StageSaid, Who, Work};
use super::log_findings::LogFinding;

/// One report of one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentReport {
    /// Which machine it says that it is on.
    pub who: Who,
    /// Which process of the agent speaks: another word after each of its starts.
    pub life: Arc<str>,
    /// Counts up within that life.
    pub number: u64,
    /// The stages that it has reached, in order, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageSaid>,
    /// What its checks prove, the cause to act on first. At most [`AgentReport::TOLD_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<LogFinding>,
    /// The agent has not said in this session what it does and what it holds. `kubelet`, `api`, `work` and `may` are then
    /// defaults that no agent reported, and what it held before stands: a new session takes nothing back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsaid: bool,
    /// Whether its kubelet runs.
    pub kubelet: KubeletSaid,
    /// Whether it reaches the API server.
    pub api: ApiSaid,
    /// What it does about its node by itself just now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    /// Why it leaves its join alone, where it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "hold")]
    pub blocker: Option<AgentBlocker>,
    /// What may be asked of it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub may: BTreeSet<Ask>,
}

impl AgentReport {
    /// So many causes of one report are kept; the first ones are those to act on.
    pub const TOLD_MAX: usize = 8;

    /// The stage where it stands: the last that it has reached.
    pub fn stage(&self) -> Option<&StageSaid> {
        self.stages.last()
    }
}
