//! The clouds and clusters for the driver: each can be read, changed, and listed.
//!
//! ```text
//!  Look, Call ─▶ Adapters ─▶ the cloud of that name, or the cluster ─▶ its adapter
//! ```
//!
//! [`Adapter`] is the interface between the driver and the adapters: projects of clouds and clusters in production, small
//! fakes in tests of the driver. [`LimitedAdapter`] limits the requests to one adapter at the same time, over all rosters that
//! share it. Nothing here decides or retries; every answer comes from an adapter, or says that there was no answer.

pub(crate) mod agents;
pub(crate) mod cloud;
pub(crate) mod cluster;
pub(crate) mod machines;
pub(crate) mod poller;
pub(crate) mod post;
pub(crate) mod providers;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use reveille_core::effect::{Call, Look, Outcome, ReadError};
use reveille_core::event::Answer;
use reveille_core::model::id::CloudName;
use tokio::sync::Semaphore;

/// One project of a cloud, or one cluster.
pub(crate) trait Adapter: Send + Sync {
    /// Reads one thing again from its API.
    fn look(&self, look: Look) -> BoxFuture<'static, Result<Answer, ReadError>>;
    /// Makes one change.
    fn call(&self, call: Call) -> BoxFuture<'static, Outcome>;
    /// Takes a full listing now rather than at the next period.
    fn list_now(&self);
}

/// The most calls to one adapter at the same time.
const CALLS_AT_ONCE: usize = 8;
/// The most reads from one adapter at the same time.
const LOOKS_AT_ONCE: usize = 16;

/// An adapter with the limits of its use. Every roster that reaches the same project or cluster shares it.
#[derive(Clone)]
pub(crate) struct LimitedAdapter {
    /// The adapter.
    pub(crate) adapter: Arc<dyn Adapter>,
    /// Permits for calls.
    pub(crate) calls: Arc<Semaphore>,
    /// Permits for reads.
    pub(crate) looks: Arc<Semaphore>,
}

impl LimitedAdapter {
    /// An adapter with all its permits free.
    pub(crate) fn new(adapter: Arc<dyn Adapter>) -> Self {
        let (calls, looks) = (Semaphore::new(CALLS_AT_ONCE), Semaphore::new(LOOKS_AT_ONCE));
        Self { adapter, calls: Arc::new(calls), looks: Arc::new(looks) }
    }
}

/// All adapters of one roster.
#[derive(Clone)]
pub(crate) struct Adapters {
    /// The clouds, by the roster's own names.
    pub(crate) clouds: BTreeMap<CloudName, LimitedAdapter>,
    /// The cluster.
    pub(crate) cluster: LimitedAdapter,
    /// The agents on its machines.
    pub(crate) agents: agents::AgentOrders,
}

impl Adapters {
    /// The adapter for this read.
    pub(crate) fn of_look(&self, look: &Look) -> Option<&LimitedAdapter> {
        match look.cloud() {
            Some(cloud) => self.clouds.get(cloud),
            None => Some(&self.cluster),
        }
    }

    /// The adapter for this change; `None` for a request to an agent.
    pub(crate) fn of_call(&self, call: &Call) -> Option<&LimitedAdapter> {
        match (call.cloud(), call) {
            (Some(cloud), _) => self.clouds.get(cloud),
            (None, Call::DeleteNode(_)) => Some(&self.cluster),
            (None, _) => None,
        }
    }
}
