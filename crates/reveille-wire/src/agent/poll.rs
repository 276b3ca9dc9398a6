//! The session by long polls, for machines behind a proxy that blocks a WebSocket upgrade.
//!
//! The first poll has no session and begins with a hello; the answer names the session. From then on a poll acknowledges the
//! server's frames up to a number and carries the agent's frames. The server holds the poll until it has frames or
//! [`super::POLL_HOLD_S`] have passed. When an agent repeats a poll because the answer was lost, it gets the same frames again.

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
    /// The agent's frames.
    #[serde(default)]
    pub frames: List<Numbered<AgentFrame>, POLL_FRAMES_MAX>,
    /// The longest that the server holds the poll, seconds; the server's own limit counts when it is lower.
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
    /// The server's frames.
    pub frames: List<Numbered<ServerFrame>, POLL_FRAMES_MAX>,
}

const fn hold() -> u32 {
    POLL_HOLD_S
}
