//! What `join` did, and how it ended.

use serde::{Deserialize, Serialize};

use reveille_core::model::time::Time;

/// A join from its first look to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JoinReport {
    /// The name of the Node.
    pub node: String,
    /// How it ended.
    pub ended: JoinEnded,
    /// Why, in words; nothing when it joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// From the first look to the end, seconds.
    pub took_s: u64,
    /// For so long the node had to be Ready, seconds.
    pub stay_s: u64,
    /// What happened, in order.
    pub events: Vec<JoinEvent>,
}

/// How a join ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum JoinEnded {
    /// The node is there, Ready, and has stayed.
    Joined,
    /// Nothing was done to the machine, for a reason that a person has to settle.
    LeftAlone,
    /// Who answers as the API server is not who was meant.
    Stranger,
    /// Attempts are used up.
    GaveUp,
    /// Time was over.
    Late,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JoinEvent {
    /// When, by this machine's clock.
    pub at: Time,
    /// Who says it: `check`, `api`, `node`, `agent` or `program`.
    pub of: String,
    /// What, with secrets masked.
    pub text: String,
}
