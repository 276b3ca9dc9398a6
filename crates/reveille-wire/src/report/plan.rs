//! The plan: what the controller would do now, and why not more. It is complete: every open incident is in exactly one list.

use serde::{Deserialize, Serialize};

use super::parts::{HeldReport, In, PauseReport, SourceReport, TriedReport};
use reveille_core::model::time::Time;

/// What the controller would do now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanReport {
    /// The roster's name.
    pub roster: String,
    /// When the report was made.
    pub at: Time,
    /// How many incidents are in each list.
    pub summary: PlanSummary,
    /// The data sources: an empty plan means that there is no problem only where all sources can be trusted.
    #[serde(default)]
    pub sources: Vec<SourceReport>,
    /// Pauses that operators set, or that the controller set for safety.
    #[serde(default)]
    pub pauses: Vec<PauseReport>,
    /// What the controller does now.
    pub acts: Vec<ActReport>,
    /// Repairs that something blocks.
    pub held: Vec<PlanHeldReport>,
    /// Incidents whose repair is not due yet, or under way.
    pub waits: Vec<WaitReport>,
    /// Incidents that need manual action.
    pub asks: Vec<AskReport>,
    /// Incidents without a decision, because a data source cannot be trusted.
    pub blind: Vec<BlindReport>,
    /// What was tried so far, by kind of repair, as far back as the ledger reaches.
    #[serde(default)]
    pub tried: Vec<TriedReport>,
}

/// How many incidents are in each list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanSummary {
    /// The sum of the others.
    pub incidents: usize,
    /// Acts now.
    pub acts: usize,
    /// Held.
    pub held: usize,
    /// Waiting.
    pub waits: usize,
    /// Asking.
    pub asks: usize,
    /// Blind.
    pub blind: usize,
}

/// An action now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActReport {
    /// The incident: `inc-7`.
    pub incident: String,
    /// The name of the object, for people.
    pub subject: String,
    /// The kind of problem: `never-joined`.
    pub kind: String,
    /// The pool that it is charged to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The call, in words.
    pub call: String,
    /// True when a mistake would destroy a running machine or its Node.
    pub destructive: bool,
}

/// A blocked repair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanHeldReport {
    /// The incident.
    pub incident: String,
    /// The object.
    pub subject: String,
    /// The kind of problem.
    pub kind: String,
    /// The pool that it is charged to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The blocked repairs, cheapest first, each with every reason.
    pub held: Vec<HeldReport>,
}

/// An incident whose repair is not due yet, or under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitReport {
    /// The incident.
    pub incident: String,
    /// The object.
    pub subject: String,
    /// The kind of problem.
    pub kind: String,
    /// Until when; not there when the controller waits for an answer and not for a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<In>,
    /// Why.
    pub why: String,
    /// The next repair, if the problem persists; not there when a repair is under way, or when only an operator could go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<String>,
}

/// An incident that needs manual action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskReport {
    /// The incident.
    pub incident: String,
    /// The object.
    pub subject: String,
    /// The kind of problem.
    pub kind: String,
    /// What to do.
    pub how: String,
}

/// An incident without a decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlindReport {
    /// The incident.
    pub incident: String,
    /// The object.
    pub subject: String,
    /// The kind of problem.
    pub kind: String,
    /// Which data source cannot be trusted, and why.
    pub why: String,
}

impl PlanReport {
    /// Counts the lists.
    pub const fn counted(&self) -> PlanSummary {
        let (acts, held, waits) = (self.acts.len(), self.held.len(), self.waits.len());
        let (asks, blind) = (self.asks.len(), self.blind.len());
        PlanSummary { incidents: acts + held + waits + asks + blind, acts, held, waits, asks, blind }
    }
}
