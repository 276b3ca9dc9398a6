//! What an agent sent because an operator asked for it.

use serde::{Deserialize, Serialize};

use reveille_core::model::time::Time;

/// How an operator's order ended.
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
    /// `done`, `already-so`, `failed`, `declined`, `unanswered`, or `broken`: the digest of what arrived is wrong.
    pub outcome: String,
    /// What the agent says, or why it says nothing; secrets masked.
    pub says: String,
    /// The path of the archive, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The size of the archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Its digest, computed by the controller: `sha256:` and hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}
