//! Permits for requests to the clusters' API servers: a few at once for each, and a limited queue.
//!
//! ```text
//!  a question, a token to be made ─▶ the room of its roster ─▶ a place in the queue ─▶ a permit
//! ```
//!
//! Each cluster has a queue (room) of its own. With one queue for all, an API server that accepts connections and does
//! not answer held each permit until its deadline. Meanwhile no machine of another cluster was enrolled or got a token.

use std::collections::BTreeMap;
use std::sync::Arc;

use reveille_core::model::id::RosterName;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most requests to one cluster at once.
const AT_ONCE: usize = 8;
/// The most requests that run or wait; a further request is refused.
const INSIDE_MAX: usize = 1024;

/// One queue for each cluster.
#[derive(Debug)]
pub(super) struct Rooms(BTreeMap<RosterName, Room>);

#[derive(Clone, Debug)]
struct Room {
    inside: Arc<Semaphore>,
    turns: Arc<Semaphore>,
}

/// A place in the queue.
#[derive(Debug)]
pub(super) struct Inside {
    _place: OwnedSemaphorePermit,
    turns: Arc<Semaphore>,
}

impl Rooms {
    pub(super) fn of<'r>(rosters: impl IntoIterator<Item = &'r RosterName>) -> Self {
        let room = || Room {
            inside: Arc::new(Semaphore::new(INSIDE_MAX)),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
        };
        Self(rosters.into_iter().map(|roster| (roster.clone(), room())).collect())
    }

    /// A place in the queue of this roster; `None` where it has no cluster, or the queue is full.
    pub(super) fn enter(&self, roster: &RosterName) -> Option<Inside> {
        let Room { inside, turns } = self.0.get(roster)?.clone();
        Some(Inside { _place: inside.try_acquire_owned().ok()?, turns })
    }
}

impl Inside {
    /// Waits for a permit and runs this. The caller has a deadline of its own.
    pub(super) async fn take_turn<T>(self, what: impl Future<Output = T>) -> Option<T> {
        // Only a closed semaphore has no permits, and the program never closes this one.
        let _turn = self.turns.acquire().await.ok()?;
        Some(what.await)
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn cluster_that_does_not_answer_keeps_no_other_waiting() {
        let rosters: [RosterName; 2] = ["hangs".into(), "well".into()];
        let rooms = Rooms::of(&rosters);
        let mut stuck: Vec<_> = std::iter::from_fn(|| rooms.enter(&rosters[0]))
            .map(|inside| tokio::spawn(inside.take_turn(pending::<()>())))
            .collect();
        assert_eq!(stuck.len(), INSIDE_MAX, "and no more of them wait");
        tokio::task::yield_now().await;
        let answered = rooms.enter(&rosters[1]).unwrap().take_turn(ready(7));
        assert_eq!(timeout(Duration::from_secs(5), answered).await, Ok(Some(7)));
        // A request that gives up frees its place.
        let last = stuck.pop().unwrap();
        last.abort();
        drop(last.await);
        assert!(rooms.enter(&rosters[0]).is_some());
        assert!(rooms.enter(&"unknown".into()).is_none());
        stuck.iter().for_each(tokio::task::JoinHandle::abort);
    }
}
