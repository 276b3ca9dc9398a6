//! What a machine sent, or said, because a person asked for it.

use serde::{Deserialize, Serialize};

use reveille_core::model::time::Time;

/// How an order of a person ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CollectedReport {
    /// The order's number.
    pub order: u64,
    /// When it ended, on our clock.
    pub at: Time,
    /// The machine's record.
    pub machine: String,
    /// The name of its node.
    pub node: String,
    /// Its id in its cloud, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// `done`, `already-so`, `failed`, `declined`, `unanswered`, or `broken`: what came is not what was sent.
    pub outcome: String,
    /// What the machine says, or why it says nothing; secrets masked.
    pub says: String,
    /// The archive, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// How long it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Its digest, counted here: `sha256:` and hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}
