//! What all parts of the adapter share: the login, and what one part keeps for its next request or for another part.
//!
//! ```text
//!  session, interner, liveness, requests, page, hot_object_hook ─▶ Shared ─▶ node_watch, leases, probe, look, act … ─▶ cluster
//! ```
//!
//! What stands before it knows nothing of it and takes what it needs as arguments. The rhythm is here because every loop has
//! its period or its waits from it.

use std::time::Duration;

use serde_json::value::RawValue;

use crate::hot_object_hook::HotObjectHook;
use crate::intern::Interner;
use crate::labelled::NodeBook;
use crate::liveness::Liveness;
use crate::mapping::{self, Read};
use crate::page::Limit;
use crate::requests::Recent;
use crate::session::Session;

/// How often what is read. The defaults suit a controller; tests of a driver may want shorter ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rhythm {
    /// How long one watch request lasts; a bookmark comes shortly before its end. Bounds how late a silent watch is found
    /// (this, and five seconds). Whole seconds.
    pub watch_length: Duration,
    /// How often the store is asked for its count of nodes.
    pub probe_period: Duration,
    /// How often all node leases are listed.
    pub lease_period: Duration,
    /// How often all nodes are listed beside the watch, to find what it may have missed.
    pub audit_period: Duration,
    /// First wait after a failure; doubles.
    pub backoff_min: Duration,
    /// Longest wait between two tries. There is no last try.
    pub backoff_max: Duration,
}

impl Default for Rhythm {
    fn default() -> Self {
        Self {
            watch_length: Duration::from_secs(10),
            probe_period: Duration::from_secs(5),
            lease_period: Duration::from_secs(10),
            audit_period: Duration::from_secs(1800),
            backoff_min: Duration::from_millis(800),
            backoff_max: Duration::from_secs(30),
        }
    }
}

/// What all parts of the adapter share.
pub(crate) struct Shared {
    pub(crate) session: Session,
    pub(crate) interner: Interner,
    pub(crate) rhythm: Rhythm,
    pub(crate) liveness: Liveness,
    pub(crate) requests: Recent,
    pub(crate) hot_objects: HotObjectHook,
    /// Nodes of the next page of their list.
    pub(crate) page: Limit,
    /// The labels of the Nodes, where they tell pools.
    pub(crate) book: Option<NodeBook>,
}

impl Shared {
    /// Reads one Node; with its labels, where they are kept.
    pub(crate) fn read_node(&self, raw: &RawValue) -> Option<Read> {
        let mut read = mapping::read_node(raw, &self.interner)?;
        self.book.iter().for_each(|book| book.note(&mut read, &self.interner));
        Some(read)
    }

    /// Nothing read yet.
    pub(crate) fn new(session: Session, rhythm: Rhythm) -> Self {
        Self {
            session,
            interner: Interner::default(),
            rhythm,
            liveness: Liveness::default(),
            requests: Recent::default(),
            hot_objects: HotObjectHook::default(),
            page: Limit::default(),
            book: None,
        }
    }
}
