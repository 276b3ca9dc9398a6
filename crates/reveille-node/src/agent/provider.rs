//! Announcements of the machine's provider, which perhaps only the machine itself can read; the agent asks for them all
//! the time.
//!
//! ```text
//!  metadata, each half minute ─▶ notices ─▶ a sentence each ─▶ the agent's account ─▶ registration server ─▶ why
//! ```
//!
//! The agent passes the announcements on and does not act on them. After a failed read the last announcements stay.

use std::time::Duration;

use reveille_agent::checkup::Reading;
use reveille_wire::agent::text::{List, Sentence};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::probe::Metadata;
use crate::root::Root;

/// An interruption is announced two minutes ahead: half a minute of it may pass.
const EVERY: Duration = Duration::from_secs(30);
/// The time limit of one question to the metadata service.
const WITHIN: Duration = Duration::from_secs(2);

/// The announcements, one sentence each.
pub(super) type Announced = List<Sentence, 8>;

/// Starts to listen; ends on its own on a machine whose provider announces nothing.
pub(super) fn listen(root: Root, metadata: Metadata) -> (watch::Receiver<Announced>, JoinHandle<()>) {
    let (told, announced) = watch::channel(Announced::default());
    (announced, tokio::spawn(hear(root, told, metadata)))
}

async fn hear(root: Root, told: watch::Sender<Announced>, metadata: Metadata) {
    loop {
        match metadata.announced(&root, WITHIN).await {
            Reading::Read(None) => return,
            Reading::Read(Some(notices)) => {
                let sentences = notices.iter().map(|notice| Sentence::cut(&notice.to_string()));
                let now = Announced::first(sentences);
                told.send_if_modified(|before| {
                    let is_news = *before != now;
                    *before = now;
                    is_news
                });
            }
            Reading::CannotTell(_) => {}
        }
        if told.is_closed() {
            return;
        }
        tokio::time::sleep(EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_machine_of_no_such_provider_is_listened_to_no_longer() {
        let folder = tempfile::tempdir().unwrap();
        let (mut announced, listening) = listen(Root::new(folder.path()), Metadata::OfEc2);
        listening.await.unwrap();
        assert!(announced.changed().await.is_err(), "the listener has ended");
        assert!(announced.borrow().is_empty());
    }
}
