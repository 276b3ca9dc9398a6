//! How fast one connection and one machine get answers: requests over the pace wait for their turn.
//!
//! An agent makes one request on a connection, or polls twice a minute. A client that asks as fast as it gets answers
//! would keep a core busy with one connection; with a pace it asks ten times a second. The pace counts for a machine over
//! all its connections. Otherwise a machine that reconnects after each burst would have as many bursts as connections.
//!
//! ```text
//!  request ─▶ turn of its key ─▶ the registry: is it the machine's? ─┬ yes ─▶ turn of the machine ─▶ answer
//!                                                                    └ no ──▶ refusal
//! ```
//!
//! A machine has up to five keys that count, and one pace for them all. A key that it replaced has only its own.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reveille_wire::agent::Reason;
use tokio::time::{Instant, sleep};

use crate::registry::{KeyHash, MachineId, Peer};

/// The burst of requests: reports that waited for a broken network.
const BURST: u32 = 60;
/// The interval of further requests.
const EACH: Duration = Duration::from_millis(100);

/// The number of turns that may wait at once. A request that would wait longer is refused, and takes no turn. Otherwise
/// many requests that give up while they wait would take the turns of those behind them.
const WAITS_MAX: u32 = 50;

/// The pace of one connection.
#[derive(Debug)]
pub(super) struct Pace {
    /// The time when the whole burst is available again.
    free_at: Mutex<Instant>,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { free_at: Mutex::new(Instant::now()) }
    }

    /// Waits for the turn of one request. A connection has one request at a time.
    pub(super) async fn turn(&self) {
        sleep(self.wait(Instant::now())).await;
    }

    fn wait(&self, now: Instant) -> Duration {
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        *free_at = (*free_at).max(now) + EACH;
        free_at.saturating_duration_since(now + EACH * BURST)
    }
}

/// The paces of keys, and those of machines over all keys that count. A client with a key that the machine replaced takes
/// no turn from the machine.
#[derive(Debug, Default)]
pub(super) struct Paces {
    keys: Turns<(MachineId, KeyHash)>,
    machines: Turns<MachineId>,
}

impl Paces {
    /// Waits for the turn of one request with this key.
    pub(super) async fn turn_of_key(&self, peer: &Peer) -> Result<(), Reason> {
        self.keys.turn((peer.machine.clone(), peer.key)).await
    }

    /// Waits for the turn of one request of this machine, whose key counts.
    pub(super) async fn turn_of_machine(&self, peer: &Peer) -> Result<(), Reason> {
        self.machines.turn(peer.machine.clone()).await
    }

    /// Drops entries whose whole burst is available again.
    pub(super) fn forget(&self) {
        self.keys.forget();
        self.machines.forget();
    }
}

/// One pace for each of many. An entry is kept until the whole burst is available again, so that a forgotten machine has
/// none.
#[derive(Debug)]
struct Turns<K>(Mutex<BTreeMap<K, Instant>>);

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord> Turns<K> {
    async fn turn(&self, of: K) -> Result<(), Reason> {
        let wait = self.wait(of, Instant::now()).ok_or(Reason::TooMany { of: "requests".into() })?;
        sleep(wait).await;
        Ok(())
    }

    fn wait(&self, of: K, now: Instant) -> Option<Duration> {
        let mut paces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let free_at = paces.entry(of).or_insert(now);
        let next = (*free_at).max(now) + EACH;
        let wait = next.saturating_duration_since(now + EACH * BURST);
        (wait <= EACH * WAITS_MAX).then(|| {
            *free_at = next;
            wait
        })
    }

    fn forget(&self) {
        let now = Instant::now();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, free_at| *free_at > now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_of_a_machine_has_its_pace_and_refusals_take_no_turn() {
        let (turns, begun) = (Turns::default(), Instant::now());
        let waits: Vec<_> = (0..1000).map_while(|_| turns.wait(("m-1", 1), begun)).collect();
        assert_eq!(waits.len(), usize::try_from(BURST + WAITS_MAX).unwrap());
        assert!((0..1000).all(|_| turns.wait(("m-1", 1), begun).is_none()));
        for other in [("m-1", 2), ("m-2", 1)] {
            assert_eq!(turns.wait(other, begun), Some(Duration::ZERO));
        }
        let wait = turns.wait(("m-1", 1), begun + EACH);
        assert_eq!(wait, Some(EACH * WAITS_MAX), "and it is as near as before");
        turns.forget();
        assert_eq!(turns.0.lock().unwrap().len(), 3);
        let rested = begun.checked_sub(EACH * 2 * (BURST + WAITS_MAX)).unwrap();
        turns.0.lock().unwrap().values_mut().for_each(|free_at| *free_at = rested);
        turns.forget();
        assert!(turns.0.lock().unwrap().is_empty());
    }

    #[test]
    fn connection_is_answered_in_a_burst_then_at_its_pace() {
        let (pace, begun) = (Pace::new(), Instant::now());
        let at_once: Vec<Duration> = (0..BURST).map(|_| pace.wait(begun)).collect();
        assert!(at_once.iter().all(|wait| wait.as_millis() <= 1), "{at_once:?}");
        let mut now = begun;
        for _ in 0..20 {
            let wait = pace.wait(now);
            assert!(wait > EACH - Duration::from_millis(2) && wait <= EACH, "{wait:?}");
            now += wait;
        }
        now += EACH * 2 * BURST;
        assert_eq!(pace.wait(now), Duration::ZERO, "after a rest it has all of it again");
    }
}
