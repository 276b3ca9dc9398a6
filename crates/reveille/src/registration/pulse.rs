//! Whether the registration server hears its machines: while it does not, no agent is silent.
//!
//! ```text
//!  the server's runtime runs, and its registry answers ─▶ a beat each second ─▶ none for ten seconds ─▶ AgentReports::deaf
//!                                                                            └▶ one again ─▶ AgentReports::listening
//! ```
//!
//! The server and the engines have threads of their own. One that stands still (a disk that does not answer, a request that
//! takes all of its time) reads no heartbeat, and an engine that goes on would take every machine for silent at once. Ten seconds
//! are far below the time after which an agent is silent, and far above what a busy server needs for one beat.

use std::sync::Arc;
use std::time::Duration;

use reveille_core::effect::{ReadError, ReadErrorKind};
use reveille_registrar::server::Hand;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::adapters::agents::AgentReports;

/// Between two beats.
pub(super) const EVERY: Duration = Duration::from_secs(1);
/// Without one for so long nobody is heard.
pub(super) const DEAF_AFTER: Duration = Duration::from_secs(10);

/// Beats, on the runtime of the server itself, until its registry is over.
pub(super) async fn beat(hand: Hand, beats: watch::Sender<()>, every: Duration) {
    while hand.view(|_, _| ()).await.is_ok() {
        beats.send_replace(());
        sleep(every).await;
    }
}

/// Tells every engine when nobody is heard, and when somebody is again; until nothing beats any more.
pub(super) async fn listen(mut beats: watch::Receiver<()>, engines: Vec<AgentReports>, deaf_after: Duration) {
    let mut is_deaf = false;
    loop {
        let hears = match timeout(deaf_after, beats.changed()).await {
            Ok(Ok(())) => true,
            // The server is over, and its process with it.
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
            // Whose driver is gone needs not be told.
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
