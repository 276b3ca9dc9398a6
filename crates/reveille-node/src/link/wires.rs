//! What a carrier gives to its session: the two ends of its queues, and their bounds.
//!
//! ```text
//!  Session ─▶ out ─▶ socket | poll ─▶ server        Session ◀─ into ◀─ socket | poll ◀─ server
//! ```

use std::sync::{Arc, OnceLock};

use reveille_wire::agent::{AgentFrame, ServerFrame};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::LinkError;
use crate::pin::Pin;

/// The number of received frames that may wait. A frame has up to a mebibyte, and takes a few when it is read, so that few
/// of them are the bound of bytes, too. What is beyond waits at the server.
pub(super) const FRAMES_MAX: usize = 4;
/// The number of frames that may wait to be sent: a frame of evidence has 64 KiB, and its sender waits for room.
pub(super) const OUT_MAX: usize = 16;

/// A carrier's two ends and its task.
pub(super) struct Wires {
    pub(super) out: mpsc::Sender<AgentFrame>,
    pub(super) into: mpsc::Receiver<Result<ServerFrame, LinkError>>,
    pub(super) task: AbortHandle,
    /// The pin of the connection, before the first frame comes over it.
    pub(super) known_by: Arc<OnceLock<Pin>>,
}
