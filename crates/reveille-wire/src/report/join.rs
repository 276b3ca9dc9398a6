//! What `join` did, and how it ended.

use serde::{Deserialize, Serialize};

use reveille_core::model::time::Time;

/// A join from its first check to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JoinReport {
    /// The name of the Node.
    pub node: String,
    /// How it ended.
    pub ended: JoinEnded,
    /// Why, as text; not there when the machine joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// From the first check to the end, seconds.
    pub took_s: u64,
    /// How long the Node had to stay Ready, seconds.
    pub stay_s: u64,
    /// What happened, in order.
    pub events: Vec<JoinEvent>,
}

/// How a join ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum JoinEnded {
    /// The Node exists, is Ready, and has stayed Ready.
    Joined,
    /// The agent did nothing to the machine, for a reason that an operator has to settle.
    LeftAlone,
    /// Another server answers at the address of the API server.
    Stranger,
    /// All attempts failed.
    GaveUp,
    /// The time limit has passed.
    Late,
}

/// One event of the join.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JoinEvent {
    /// When, by this machine's clock.
    pub at: Time,
    /// The source of the event: `check`, `api`, `node`, `agent` or `program`.
    pub of: String,
    /// What happened, with secrets masked.
    pub text: String,
}
