//! The outside as the driver reaches it: something that can be looked at, changed, and listed.
//!
//! ```text
//!  Look, Call ─▶ Adapters ─▶ the cloud of that name, or the cluster ─▶ its adapter
//! ```
//!
//! [`Adapter`] is the seam between the driver and the adapters: projects of clouds and clusters stand behind it in
//! production, small fakes in tests of the driver. [`Desk`] bounds what is asked of one world at the same time, over
//! all rosters that share it. Nothing here decides or retries; every answer is an adapter's, or "nobody answered".

pub(crate) mod agents;
pub(crate) mod cloud;
pub(crate) mod cluster;
pub(crate) mod poller;
mod post;
pub(crate) mod providers;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use reveille_core::effect::{Call, Look, Outcome, ReadError};
use reveille_core::event::Answer;
use reveille_core::model::id::CloudName;
use tokio::sync::Semaphore;

/// One outside world: a project of a cloud, or a cluster.
pub(crate) trait Adapter: Send + Sync {
    /// Reads one thing afresh.
    fn look(&self, look: Look) -> BoxFuture<'static, Result<Answer, ReadError>>;
    /// Makes one change.
    fn call(&self, call: Call) -> BoxFuture<'static, Outcome>;
    /// Takes a full listing now rather than at the next period.
    fn list_now(&self);
}

/// Calls that one world is asked for at the same time.
const CALLS_AT_ONCE: usize = 8;
/// Reads that one world is asked for at the same time.
const LOOKS_AT_ONCE: usize = 16;

/// A world and how much may be asked of it at once. Shared by every roster that reaches the same world.
#[derive(Clone)]
pub(crate) struct Desk {
    /// The world.
    pub(crate) adapter: Arc<dyn Adapter>,
    /// Places for calls.
    pub(crate) calls: Arc<Semaphore>,
    /// Places for reads.
    pub(crate) looks: Arc<Semaphore>,
}

impl Desk {
    /// A world with all its places free.
    pub(crate) fn new(adapter: Arc<dyn Adapter>) -> Self {
        let (calls, looks) = (Semaphore::new(CALLS_AT_ONCE), Semaphore::new(LOOKS_AT_ONCE));
        Self { adapter, calls: Arc::new(calls), looks: Arc::new(looks) }
    }
}

/// Every world of one roster.
#[derive(Clone)]
pub(crate) struct Adapters {
    /// By the roster's own names.
    pub(crate) clouds: BTreeMap<CloudName, Desk>,
    /// The cluster.
    pub(crate) cluster: Desk,
    /// The agents on its machines.
    pub(crate) agents: agents::AgentOrders,
}

impl Adapters {
    /// Whom to ask for this read.
    pub(crate) fn of_look(&self, look: &Look) -> Option<&Desk> {
        match look.cloud() {
            Some(cloud) => self.clouds.get(cloud),
            None => Some(&self.cluster),
        }
    }

    /// Whom to ask for this change; nobody here for what an agent is asked.
    pub(crate) fn of_call(&self, call: &Call) -> Option<&Desk> {
        match (call.cloud(), call) {
            (Some(cloud), _) => self.clouds.get(cloud),
            (None, Call::DeleteNode(_)) => Some(&self.cluster),
            (None, _) => None,
        }
    }
}
