//! Watches whether the registration server hears its machines: while it does not, no agent counts as silent.
//!
//! ```text
//!  the server's runtime runs, and its registry answers ─▶ a beat each second ─▶ none for ten seconds ─▶ AgentReports::deaf
//!                                                                            └▶ one again ─▶ AgentReports::listening
//! ```
//!
//! The server and the engines have threads of their own. A server thread that hangs (a disk that does not answer, a
//! request that takes all of its time) reads no heartbeat. An engine that goes on would then take all machines for silent
//! at once. Ten seconds are far below the time after which an agent counts as silent, and far above what a busy server
//! needs for one beat.

use std::sync::Arc;
use std::time::Duration;

use reveille_core::effect::{ReadError, ReadErrorKind};
use reveille_registrar::server::Hand;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::adapters::agents::AgentReports;

/// The time between two beats.
pub(super) const EVERY: Duration = Duration::from_secs(1);
/// After this long without a beat, the server counts as deaf.
pub(super) const DEAF_AFTER: Duration = Duration::from_secs(10);

/// Sends beats from the runtime of the server itself, until its registry has ended.
pub(super) async fn beat(hand: Hand, beats: watch::Sender<()>, every: Duration) {
    while hand.view(|_, _| ()).await.is_ok() {
        beats.send_replace(());
        sleep(every).await;
    }
}

/// Tells every engine when the server becomes deaf and when it hears again, until the beats end.
pub(super) async fn listen(mut beats: watch::Receiver<()>, engines: Vec<AgentReports>, deaf_after: Duration) {
    let mut is_deaf = false;
    loop {
        let hears = match timeout(deaf_after, beats.changed()).await {
            Ok(Ok(())) => true,
            // The server has ended, and its process with it.
            Ok(Err(_)) => return,
            Err(_) => false,
        };
        if hears != is_deaf {
            continue;
        }
        is_deaf = !hears;
        if is_deaf {
            tracing::warn!("the registration server stands still; no machine is silent for that");
        } else {
            tracing::info!("the registration server hears its machines again");
        }
        for reports in &engines {
            // An engine whose driver has ended needs no message.
            if is_deaf {
                reports.deaf(stands_still());
            } else {
                reports.listening();
            }
        }
    }
}

fn stands_still() -> ReadError {
    let text =
        Arc::from("the registration server stands still and hears no agent; look at its disk and at its log");
    ReadError { kind: ReadErrorKind::Unavailable, text, retry_after: None }
}
