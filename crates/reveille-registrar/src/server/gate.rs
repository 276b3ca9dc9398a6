//! How many may stand at the door: connections that have not finished their handshake, by address and in all.
//!
//! When there are too many, the oldest goes, not the newest: a handshake that is meant takes milliseconds, one that has been
//! standing longest is the one that will never finish. So whoever holds ten thousand half-open connections pushes his own out,
//! and those who come to stay get by, from the same address, too.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

/// How many of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections in all.
    pub connections_max: usize,
    /// Handshakes under way in all.
    pub half_open_max: usize,
    /// Handshakes under way from one address.
    pub half_open_per_address_max: usize,
    /// Longest for each step of whoever comes: the handshake, the headers of a request, its body, the first frame, a frame that
    /// is sent.
    pub step_within: Duration,
    /// Longest for a connection that did not become a WebSocket: who takes no answers, or asks again and again, leaves his place.
    /// An agent asks one thing of each; what takes longest is a poll that is held back for 25 s.
    pub connection_within: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 20_000,
            half_open_max: 1024,
            half_open_per_address_max: 128,
            step_within: Duration::from_secs(10),
            connection_within: Duration::from_secs(120),
        }
    }
}

#[derive(Default)]
struct Standing {
    /// By the order in which they came.
    all: BTreeMap<u64, (IpAddr, oneshot::Sender<()>)>,
    by_address: BTreeMap<IpAddr, std::collections::BTreeSet<u64>>,
    next: u64,
}

impl Standing {
    fn take_out(&mut self, number: u64) {
        let Some((address, _)) = self.all.remove(&number) else { return };
        if let Some(numbers) = self.by_address.get_mut(&address) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.by_address.remove(&address);
            }
        }
    }
}

/// The gate.
#[derive(Clone)]
pub(super) struct Gate {
    limits: Limits,
    standing: Arc<Mutex<Standing>>,
}

/// A place at the gate; given back when dropped.
pub(super) struct Place {
    number: u64,
    gate: Gate,
    /// Resolves when somebody newer needs the place.
    pub(super) pushed: oneshot::Receiver<()>,
}

impl Gate {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, standing: Arc::default() }
    }

    /// Takes a place, and pushes the oldest out where there are too many.
    pub(super) fn enter(&self, address: IpAddr) -> Place {
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        let of_address = standing.by_address.get(&address);
        let crowded =
            of_address.is_some_and(|numbers| numbers.len() >= self.limits.half_open_per_address_max);
        let oldest = if crowded {
            of_address.and_then(|numbers| numbers.first().copied())
        } else if standing.all.len() >= self.limits.half_open_max {
            standing.all.keys().next().copied()
        } else {
            None
        };
        if let Some(oldest) = oldest {
            // Dropping its sender tells it.
            standing.take_out(oldest);
        }
        let number = standing.next;
        standing.next += 1;
        let (sender, pushed) = oneshot::channel();
        standing.all.insert(number, (address, sender));
        standing.by_address.entry(address).or_default().insert(number);
        Place { number, gate: self.clone(), pushed }
    }

    #[cfg(test)]
    fn count(&self) -> usize {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner).all.len()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.gate.standing.lock().unwrap_or_else(PoisonError::into_inner).take_out(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_a_crowded_address_goes_and_others_are_left_alone() {
        let limits = Limits { half_open_max: 4, half_open_per_address_max: 2, ..Limits::default() };
        let gate = Gate::new(limits);
        let (one, two) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([127, 0, 0, 2]));
        let mut places: Vec<Place> = [one, one, two].into_iter().map(|address| gate.enter(address)).collect();
        let is_pushed =
            |place: &mut Place| place.pushed.try_recv() == Err(oneshot::error::TryRecvError::Closed);
        places.push(gate.enter(one));
        let pushed: Vec<bool> = places.iter_mut().map(is_pushed).collect();
        assert_eq!(pushed, [true, false, false, false]);
        places.push(gate.enter(two));
        places.push(gate.enter(IpAddr::from([127, 0, 0, 3])));
        let pushed: Vec<bool> = places.iter_mut().map(is_pushed).collect();
        assert_eq!(pushed, [true, true, false, false, false, false], "in all, the oldest of anybody");
        drop(places);
        assert_eq!(gate.count(), 0);
    }
}
