//! The writes in the cluster, for the detector of hot objects: kinds, changes, versions of one object, the server's counters.
//!
//! ```text
//!  kinds    ── /api, /apis ─▶ [Kind]
//!  changes  ── list (metadata alone), then watch ─▶ Listed, Watched, Written, Gone, Blind ─┐ bounded
//!  versions ── watch of one object, whole ────────▶ Version, Unfollowable ─────────────────┴─▶ channel
//!  counts   ── /metrics ─▶ Scrape            object ── one GET ─▶ its JSON
//! ```
//!
//! A change costs its metadata and no more: the API server leaves the rest out on request. Lists come from its cache. Only
//! suspected objects are read whole, a few at a time. The module writes nothing and keeps nothing.

mod counts;
mod discovery;
mod follow;
mod tell;

use reveille_core::effect::{ReadError, ReadErrorKind};
use reveille_hot::metrics::Scrape;
use reveille_hot::{Event, Object};
use serde_json::Value;
use tokio::sync::mpsc::Sender;

use crate::Cluster;
use crate::failure::Failure;

pub use crate::kind::Kind;

/// Why something of a kind cannot be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untold {
    /// What went wrong, as a clause.
    pub cause: String,
    /// It is not allowed: another try brings nothing.
    pub is_forbidden: bool,
}

impl From<Failure> for Untold {
    fn from(failure: Failure) -> Self {
        Self { is_forbidden: failure.kind == ReadErrorKind::Forbidden, cause: failure.cause }
    }
}

impl Cluster {
    /// The kinds that can be listed, one version of each, in the order of their groups.
    ///
    /// # Errors
    /// When the API server does not tell its kinds.
    pub async fn kinds(&self) -> Result<Vec<Kind>, ReadError> {
        let found = discovery::kinds(self.inner()).await;
        found.map_err(|failure| failure.read_error("ask which kinds there are", None))
    }

    /// Lists the objects of a kind once, and tells those whose generation counts something.
    ///
    /// # Errors
    /// When the list does not come, or the receiver is gone.
    pub async fn list_writes(&self, kind: &Kind, events: &Sender<Event>) -> Result<(), Untold> {
        tell::list(self.inner(), kind, events).await.map(drop).map_err(Untold::from)
    }

    /// Lists a kind and tells each change of it until the receiver is gone. A lost place in the watch is told as `Blind`.
    ///
    /// # Errors
    /// When it may not be listed or watched. Other failures are tried again, with a growing wait.
    pub async fn tell_writes(&self, kind: &Kind, events: &Sender<Event>) -> Result<(), Untold> {
        tell::changes(self.inner(), kind, events).await
    }

    /// Tells each version of one object, whole, for a minute at most.
    pub async fn tell_versions(&self, kind: &Kind, object: &Object, events: &Sender<Event>) {
        follow::versions(self.inner(), kind, object, events).await;
    }

    /// Reads one object; `None` when there is none of that name.
    ///
    /// # Errors
    /// When that cannot be told.
    pub async fn read_object(&self, kind: &Kind, object: &Object) -> Result<Option<Value>, Untold> {
        follow::read(self.inner(), kind, object).await.map_err(Untold::from)
    }

    /// What the API server counts of itself.
    ///
    /// # Errors
    /// When it does not tell.
    pub async fn counts(&self) -> Result<Scrape, Untold> {
        counts::scrape(self.inner()).await.map_err(Untold::from)
    }
}
