//! When the cluster counts as alive *and current*.
//!
//! # The rule
//!
//! An `Alive` spends two proofs, one of each kind, neither older than [`FRESH`]:
//!
//! 1. **The watch is current.** Its request ended as asked, or a bookmark came, within the request's deadline (see
//!    `watch_request`). An ordinary event is no such proof: it may come out of a backlog.
//! 2. **The API answers from its store**, and agrees with us: a read of one node, past every cache, tells how many nodes
//!    there are. The count must be ours.
//!
//! Any failure takes both proofs back. So an API server that hangs gives neither; one whose watch hangs while it answers
//! gives no first proof; one that answers from a cache which fell behind its store is found by the count.
//!
//! # Gaps
//!
//! A count that the watch does not come to tell of before it proves itself once more means that an event was lost. A store
//! whose version is lower than the one that we have seen is another store, or one restored from a backup. Both are reported to
//! the node watch, which reports `Failed(Gap)` and lists again. The node watch finds a change of a node that neither adds nor
//! removes one by its own quiet listing (`node_watch`).

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// A proof older than this counts for nothing.
const FRESH: Duration = Duration::from_secs(15);

/// What is known of the watch and of the API at this moment.
#[derive(Debug, Default)]
pub(crate) struct Liveness {
    state: Mutex<State>,
    gap_found: Notify,
    up: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    watch_proof: Option<Instant>,
    api_proof: Option<Instant>,
    /// The newest proof of the watch, spent or not.
    watch_proved_at: Option<Instant>,
    /// What the node watch holds; `None` while it has no complete list.
    nodes: Option<Held>,
    /// Since when the counts differ, and what was counted then.
    differs: Option<(Instant, Counted)>,
    gap: Option<String>,
}

/// What the node watch holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    /// How many nodes.
    pub(crate) count: u64,
    /// Up to which version of the store, where it is a number.
    pub(crate) version: Option<u64>,
}

/// What a probe saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    /// How many nodes; `None` when the server does not say.
    pub(crate) count: Option<u64>,
    /// At which version of the store.
    pub(crate) version: Option<u64>,
    /// Up to which version the node watch held it when the question was sent. The watch goes on while the answer is on its way,
    /// and an answer that is older than that is no other store.
    pub(crate) held_before: Option<u64>,
}

impl Liveness {
    /// Up to which version of the store the node watch holds it.
    pub(crate) fn held_version(&self) -> Option<u64> {
        self.with(|state| state.nodes.and_then(|held| held.version))
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        // Each change leaves the state whole, so a panic elsewhere cannot have broken it.
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The node watch changed; `None` when it lost its list.
    pub(crate) fn holds(&self, held: Option<Held>) {
        self.with(|state| {
            state.nodes = held;
            state.differs = state.differs.filter(|(_, counted)| !has_told(held, *counted));
            if held.is_none() {
                state.watch_proof = None;
                state.differs = None;
                state.gap = None;
            }
        });
    }

    /// The watch has proved that it is current. True when that makes the cluster alive.
    pub(crate) fn watch_proved(&self, now: Instant) -> bool {
        self.with(|state| {
            state.watch_proof = Some(now);
            state.watch_proved_at = Some(now);
            state.spend(now)
        })
    }

    /// The API answered. True when that makes the cluster alive.
    pub(crate) fn counted(&self, now: Instant, counted: Counted) -> bool {
        let (alive, gap) = self.with(|state| {
            let Some(held) = state.nodes else { return (false, false) };
            if let Some(why) = state.compare(now, held, counted) {
                state.gap = Some(why);
                state.api_proof = None;
                return (false, true);
            }
            if state.differs.is_some() {
                return (false, false);
            }
            state.api_proof = Some(now);
            (state.spend(now), false)
        });
        if gap {
            self.gap_found.notify_one();
        }
        alive
    }

    /// The node watch reaches the API server, or does not. While it does not, it alone tries again: one sign of a fault is
    /// enough, and a server that comes back does not get the requests of all tasks at once.
    pub(crate) fn is_up(&self, up: bool) {
        self.up.send_if_modified(|was| std::mem::replace(was, up) != up);
    }

    /// Waits while the node watch does not reach the API server.
    pub(crate) async fn while_down(&self) {
        // The sender lives as long as this does, so waiting cannot fail.
        let _ = self.up.subscribe().wait_for(|up| *up).await;
    }

    /// Something failed: no proof from before it counts.
    pub(crate) fn broken(&self) {
        self.with(|state| {
            state.watch_proof = None;
            state.api_proof = None;
        });
    }

    /// Waits until a gap was found, and tells how.
    pub(crate) async fn gap(&self) -> String {
        loop {
            if let Some(why) = self.with(|state| state.gap.take()) {
                return why;
            }
            self.gap_found.notified().await;
        }
    }
}

/// The watch has told of as many nodes as were counted, on its way to the moment of the count. So that difference is over, and
/// the next one is another: where Nodes are created all the time, each count can be a moment ahead of the watch. Past that
/// moment the same number may come about in another way, and ends nothing.
fn has_told(held: Option<Held>, counted: Counted) -> bool {
    held.is_some_and(|held| counted.count == Some(held.count) && held.version <= counted.version)
}

impl State {
    fn spend(&mut self, now: Instant) -> bool {
        let fresh = |proof: Option<Instant>| proof.is_some_and(|at| now.duration_since(at) <= FRESH);
        let alive = fresh(self.watch_proof) && fresh(self.api_proof);
        if alive {
            self.watch_proof = None;
            self.api_proof = None;
        }
        alive
    }

    fn compare(&mut self, now: Instant, held: Held, counted: Counted) -> Option<String> {
        if let (Some(ours), Some(theirs)) = (counted.held_before, counted.version)
            && theirs < ours
        {
            return Some(format!(
                "the store went back from version {ours} to {theirs}: another store, or a restored one"
            ));
        }
        match counted.count {
            Some(count) if count != held.count => {
                let (since, _) = *self.differs.get_or_insert((now, counted));
                let had_its_chance = self.watch_proved_at.is_some_and(|at| at > since);
                let why = || format!("the store holds {count} nodes, the watch has told of {}", held.count);
                had_its_chance.then(why)
            }
            _ => {
                self.differs = None;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    const fn held(count: u64, version: u64) -> Option<Held> {
        Some(Held { count, version: Some(version) })
    }

    const fn counted(count: u64, version: u64) -> Counted {
        Counted { count: Some(count), version: Some(version), held_before: None }
    }

    fn after(start: Instant, s: u64) -> Instant {
        start + Duration::from_secs(s)
    }

    #[test]
    fn alive_spends_one_fresh_proof_of_each_kind() {
        let (liveness, t) = (Liveness::default(), Instant::now());
        liveness.holds(held(3, 10));
        assert!(!liveness.watch_proved(t));
        assert!(liveness.counted(after(t, 1), counted(3, 10)));
        assert!(!liveness.counted(after(t, 2), counted(3, 11)), "the watch's proof was spent");
        assert!(liveness.watch_proved(after(t, 10)));
        assert!(!liveness.watch_proved(after(t, 20)));
        assert!(!liveness.counted(after(t, 36), counted(3, 11)), "the watch's proof is 16 s old");
    }

    #[test]
    fn a_failure_and_a_lost_list_take_proofs_back() {
        let (liveness, t) = (Liveness::default(), Instant::now());
        liveness.holds(held(3, 10));
        liveness.watch_proved(t);
        liveness.broken();
        assert!(!liveness.counted(after(t, 1), counted(3, 10)));
        liveness.holds(None);
        assert!(!liveness.counted(after(t, 2), counted(3, 10)));
        liveness.holds(held(3, 10));
        assert!(!liveness.counted(after(t, 3), counted(3, 10)), "no proof of the new watch yet");
    }

    #[tokio::test]
    async fn differing_count_is_a_gap_only_after_watch_had_time() {
        let (liveness, t) = (Liveness::default(), Instant::now());
        liveness.holds(held(3, 10));
        liveness.watch_proved(t);
        assert!(!liveness.counted(after(t, 1), counted(2, 11)));
        assert!(!liveness.counted(after(t, 2), counted(2, 11)));
        assert!(liveness.with(|state| state.gap.is_none()));
        liveness.watch_proved(after(t, 3));
        assert!(!liveness.counted(after(t, 4), counted(2, 11)));
        assert_eq!(liveness.gap().await, "the store holds 2 nodes, the watch has told of 3");
    }

    #[test]
    fn a_count_that_agrees_again_is_no_gap() {
        let (liveness, t) = (Liveness::default(), Instant::now());
        liveness.holds(held(3, 10));
        assert!(!liveness.counted(t, counted(2, 11)));
        liveness.holds(held(2, 11));
        liveness.watch_proved(after(t, 1));
        assert!(liveness.counted(after(t, 2), counted(2, 11)));
    }

    /// On a busy machine the watch told of version 1851 while an answer of version 1850 was on its way, and for 18 s the cluster
    /// was not believed.
    #[test]
    fn answer_that_the_watch_overtook_is_no_store_that_went_back() {
        let (liveness, t) = (Liveness::default(), Instant::now());
        liveness.holds(held(3, 1849));
        liveness.watch_proved(t);
        let asked = liveness.held_version();
        liveness.holds(held(3, 1851));
        assert!(liveness.counted(t, Counted { held_before: asked, ..counted(3, 1850) }));
    }

    /// A client creates a Node each few seconds, and each count is read a moment before the watch tells of the newest one. The
    /// watch is never behind by more than that one, and each gap costs a list of all nodes and the sight of the cluster.
    /// Versions are those of the whole store, and other objects change beside the nodes.
    #[test]
    fn node_that_is_created_with_each_count_is_no_gap() {
        let (liveness, t) = (Liveness::default(), Instant::now());
        liveness.holds(held(3, 100));
        for number in 1..20 {
            let (now, held_before) = (after(t, 5 * number), liveness.held_version());
            let (nodes, version) = (3 + number, 100 + 10 * number);
            liveness.counted(now, Counted { held_before, ..counted(nodes, version + 5) });
            assert_eq!(liveness.gap().now_or_never(), None, "at the count of {nodes}");
            liveness.holds(held(nodes, version));
            liveness.watch_proved(now + Duration::from_secs(1));
        }
    }

    /// A deletion was lost. That a later one brings the watch to the number that was counted before makes up for nothing.
    #[tokio::test]
    async fn number_that_the_watch_comes_to_later_hides_no_gap() {
        let (liveness, t) = (Liveness::default(), Instant::now());
        liveness.holds(held(3, 10));
        assert!(!liveness.counted(t, counted(2, 11)));
        liveness.holds(held(2, 12));
        liveness.watch_proved(after(t, 1));
        assert!(!liveness.counted(after(t, 2), counted(1, 13)));
        assert_eq!(liveness.gap().await, "the store holds 1 nodes, the watch has told of 2");
    }

    #[tokio::test]
    async fn a_store_that_goes_back_is_a_gap_at_once() {
        let (liveness, t) = (Liveness::default(), Instant::now());
        liveness.holds(held(3, 1000));
        liveness.watch_proved(t);
        let back = Counted { held_before: Some(1000), ..counted(3, 900) };
        assert!(!liveness.counted(t, back));
        assert!(liveness.gap().await.contains("went back"));
    }
}
