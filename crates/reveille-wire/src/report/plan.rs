//! The plan: what would be done now, and why not more. It is complete: every open incident is in exactly one list.

use serde::{Deserialize, Serialize};

use super::parts::{HeldReport, In, PauseReport, SourceReport, TriedReport};
use reveille_core::model::time::Time;

/// What would be done now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanReport {
    /// The roster's name.
    pub roster: String,
    /// When the report was made.
    pub at: Time,
    /// How many of each.
    pub summary: PlanSummary,
    /// What all of this rests on: nothing planned means nothing amiss only where these can be believed.
    #[serde(default)]
    pub sources: Vec<SourceReport>,
    /// What people, or our own caution, said "hands off" about.
    #[serde(default)]
    pub pauses: Vec<PauseReport>,
    /// What is done now.
    pub acts: Vec<ActReport>,
    /// What would be done, if nothing stood against it.
    pub held: Vec<PlanHeldReport>,
    /// What is not due yet, or under way.
    pub waits: Vec<WaitReport>,
    /// What only a person can go on with.
    pub asks: Vec<AskReport>,
    /// What nothing can be decided of, because a source cannot be believed.
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

/// Something that is done now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActReport {
    /// For which incident: `inc-7`.
    pub incident: String,
    /// About what, by its name for people.
    pub subject: String,
    /// What amiss: `never-joined`.
    pub kind: String,
    /// The pool that it is charged to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The call, in words.
    pub call: String,
    /// True when a mistake would cost somebody a running machine or its Node.
    pub destructive: bool,
}

/// Something that is held back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanHeldReport {
    /// For which incident.
    pub incident: String,
    /// About what.
    pub subject: String,
    /// What amiss.
    pub kind: String,
    /// The pool that it is charged to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// What is not done, cheapest first, each with every reason.
    pub held: Vec<HeldReport>,
}

/// Something that is not due yet, or under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitReport {
    /// For which incident.
    pub incident: String,
    /// About what.
    pub subject: String,
    /// What amiss.
    pub kind: String,
    /// Until when; not there when it waits for an answer and not for a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<In>,
    /// Why.
    pub why: String,
    /// What would be done then, if it is still so; not there when something is under way, or only a person could go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<String>,
}

/// Something that only a person can go on with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskReport {
    /// For which incident.
    pub incident: String,
    /// About what.
    pub subject: String,
    /// What amiss.
    pub kind: String,
    /// What to do.
    pub how: String,
}

/// Something that nothing can be decided of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlindReport {
    /// For which incident.
    pub incident: String,
    /// About what.
    pub subject: String,
    /// What amiss.
    pub kind: String,
    /// Which source cannot be believed, and why.
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
