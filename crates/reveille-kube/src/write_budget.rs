//! Counts the writes of this process, object by object: the last check before a write leaves.
//!
//! ```text
//!  Ask ─▶ reads? ─ yes ─▶ goes out
//!          └ no: its object ─▶ Budget::spend ─▶ goes out, or UpdateStorm: never sent
//! ```
//!
//! An object is its path; for a create it is the collection's path and the name in the body. The caller decides whether a write
//! is wise; this module only counts it.

use std::sync::{Mutex, PoisonError};

use http::Method;
use reveille_core::effect::ReadErrorKind;
use reveille_core::model::time::Time;
use reveille_hot::Budget;
use serde::Deserialize;
use tokio::time::Instant;

use crate::failure::{Failure, Reached};
use crate::paths::Ask;
use crate::wire::Headed;

/// The writes of one login.
pub(crate) struct RecentWrites {
    since: Instant,
    budget: Mutex<Budget>,
}

impl Default for RecentWrites {
    fn default() -> Self {
        Self { since: Instant::now(), budget: Mutex::default() }
    }
}

impl RecentWrites {
    /// Counts a request that is about to go out, if it writes.
    pub(crate) fn allow(&self, ask: &Ask) -> Result<(), Failure> {
        if matches!(*ask.method(), Method::GET | Method::HEAD) {
            return Ok(());
        }
        let mut budget = self.budget.lock().unwrap_or_else(PoisonError::into_inner);
        budget.spend(Time::default() + self.since.elapsed().into(), &object(ask)).map_err(|spent| {
            tracing::error!("cluster: {spent}");
            let failure = Failure::new(ReadErrorKind::Throttled, Reached::NotSent, spent.to_string());
            Failure { retry_after: Some(spent.wait.into()), ..failure }
        })
    }
}

/// What is written: a path, and for what is to be created the name that it will have.
fn object(ask: &Ask) -> String {
    let path = ask.uri().path();
    if ask.method() != Method::POST {
        return path.to_owned();
    }
    let mut body = serde_json::Deserializer::from_slice(ask.body());
    let name = Headed::deserialize(&mut body).ok().and_then(|object| object.metadata.name);
    // Without a name of its own, whatever is created there counts together.
    name.map_or_else(|| path.to_owned(), |name| format!("{path}/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths;
    use reveille_core::model::id::{NodeName, NodeUid};

    #[test]
    fn create_and_delete_of_a_name_share_one_budget_object() {
        let make = |name: &str| {
            paths::create_secret(format!("{{\"metadata\":{{\"name\":\"{name}\"}}}}").into_bytes()).unwrap()
        };
        assert_eq!(object(&make("a")), object(&paths::delete_secret("a").unwrap()));
        assert_ne!(object(&make("a")), object(&make("b")));
    }

    #[tokio::test(start_paused = true)]
    async fn reads_cost_nothing_and_a_write_too_many_is_not_sent() {
        let ledger = RecentWrites::default();
        let delete = paths::delete_node(&NodeName::from("a"), &NodeUid::from("u")).unwrap();
        let refused = (0..100).find_map(|nth| ledger.allow(&delete).err().map(|failure| (nth, failure)));
        let (sent, failure) = refused.unwrap();
        assert_eq!((sent, failure.reached), (12, Reached::NotSent));
        assert!(
            failure.cause.starts_with("UpdateStorm: /api/v1/nodes/a was written 12 times"),
            "{}",
            failure.cause
        );
        assert!(failure.retry_after.is_some());
        let read = paths::node(&NodeName::from("a")).unwrap();
        assert!((0..100).all(|_| ledger.allow(&read).is_ok()));
        tokio::time::advance(std::time::Duration::from_secs(601)).await;
        assert!(ledger.allow(&delete).is_ok());
    }
}
