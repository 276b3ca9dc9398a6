//! The session by requests that are held back, for machines behind something that blocks an upgrade.
//!
//! The first poll has no session and begins with a hello; the answer names the session. From then on a poll says up to which
//! number the agent has the server's frames, and brings what it has to say. The server holds it back until it has something to
//! say or [`super::POLL_HOLD_S`] have passed. A poll that is repeated because its answer was lost gets the same frames again.

use serde::{Deserialize, Serialize};

use super::frame::{AgentFrame, Numbered, ServerFrame};
use super::text::List;
use super::{POLL_FRAMES_MAX, POLL_HOLD_S};

/// One poll.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Poll {
    /// The session; none in the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<u64>,
    /// The agent has the server's frames up to this number.
    #[serde(default)]
    pub ack: u64,
    /// What the agent has to say.
    #[serde(default)]
    pub frames: List<Numbered<AgentFrame>, POLL_FRAMES_MAX>,
    /// Longest to hold it back, seconds; the server's own bound counts when it is lower.
    #[serde(default = "hold")]
    pub hold_s: u32,
}

/// Its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Polled {
    /// The session.
    pub session: u64,
    /// The server has the agent's frames up to this number.
    pub ack: u64,
    /// What the server has to say.
    pub frames: List<Numbered<ServerFrame>, POLL_FRAMES_MAX>,
}

const fn hold() -> u32 {
    POLL_HOLD_S
}
