//! The one output of the adapter: a bounded channel of facts.
//!
//! A full channel makes the sending task wait, and with it the connection it reads from: backpressure reaches the server. Only
//! `Alive` never waits: a late one would state what is not true any more.

use reveille_core::effect::ReadError;
use reveille_core::event::ClusterFact;
use tokio::sync::mpsc::Sender;
use tokio::time::sleep;

use crate::backoff::Backoff;
use crate::failure::Failure;
use crate::liveness::Liveness;

/// The receiver is gone: no task reads the facts any more.
#[derive(Debug)]
pub(crate) struct Closed;

/// Where facts go.
pub(crate) struct FactSender {
    facts: Sender<ClusterFact>,
}

impl FactSender {
    /// Facts go into this channel.
    pub(crate) const fn new(facts: Sender<ClusterFact>) -> Self {
        Self { facts }
    }

    /// Hands over a fact, when there is room.
    pub(crate) async fn tell(&self, fact: ClusterFact) -> Result<(), Closed> {
        self.facts.send(fact).await.map_err(|_| Closed)
    }

    /// Hands over a failure, and says it in the log.
    pub(crate) async fn fail(&self, error: ReadError) -> Result<(), Closed> {
        tracing::warn!("{}", error.text);
        self.tell(ClusterFact::Failed(error)).await
    }

    /// `what` failed: no earlier proof of life counts. Says so, and when the next try is, and waits until then.
    pub(crate) async fn put_off(
        &self,
        liveness: &Liveness,
        backoff: &mut Backoff,
        what: &str,
        failure: &Failure,
    ) -> Result<(), Closed> {
        liveness.broken();
        let wait = backoff.failed(failure.retry_after);
        self.fail(failure.read_error(what, Some(wait))).await?;
        sleep(wait).await;
        Ok(())
    }

    /// Hands over which cluster answers, or that it did not say so, which stands in the log as well.
    pub(crate) async fn identify(&self, fact: ClusterFact) -> Result<(), Closed> {
        if let ClusterFact::IdentityUnread(error) = &fact {
            tracing::warn!("{}", error.text);
        }
        self.tell(fact).await
    }

    /// Says `Alive` if there is room for it now.
    pub(crate) fn alive(&self) {
        // Full: the receiver is behind, and will get the next one. Closed: the next `tell` notices.
        let _ = self.facts.try_send(ClusterFact::Alive);
    }
}
