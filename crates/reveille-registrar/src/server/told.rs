//! What strangers do is told once a minute of each address, with how often it happened since.
//!
//! Anybody can make a server write a line for each request, and a log that keeps so many lines in a while (journald: 10,000
//! in 30 s of one service) would then drop the lines that matter.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Told again after this.
const EVERY: Duration = Duration::from_mins(1);
/// Addresses that are remembered. Of those beyond, within a minute, nothing is told: one line of each is a flood, too.
const ADDRESSES_MAX: usize = 4_096;

/// What was told, of whom.
#[derive(Debug, Default)]
pub(super) struct Told(Mutex<Lines>);

#[derive(Debug, Default)]
struct Lines {
    /// Of each address and each thing when it was told last, and how often it happened since.
    last: BTreeMap<(IpAddr, &'static str), (Instant, u64)>,
    /// When the old ones were taken out: not for each of a crowd.
    swept: Option<Instant>,
}

impl Told {
    /// How often it has happened since it was told last, this time included; none where it is not to be told yet.
    pub(super) fn is_due(&self, now: Instant, address: IpAddr, what: &'static str) -> Option<u64> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Lines { last, swept } = &mut *lines;
        let is_over = |at: &Instant| now.duration_since(*at) >= EVERY;
        if let Some((at, times)) = last.get_mut(&(address, what)) {
            *times += 1;
            return is_over(at).then(|| {
                *at = now;
                std::mem::take(times)
            });
        }
        if last.len() >= ADDRESSES_MAX && swept.as_ref().is_none_or(is_over) {
            last.retain(|_, (at, _)| !is_over(at));
            *swept = Some(now);
        }
        if last.len() >= ADDRESSES_MAX {
            return None;
        }
        last.insert((address, what), (now, 0));
        Some(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_again_and_again_is_told_once_a_minute_with_how_often() {
        let (told, begun) = (Told::default(), Instant::now());
        let (one, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        assert_eq!(told.is_due(begun, one, "a"), Some(1));
        for _ in 0..500 {
            assert_eq!(told.is_due(begun, one, "a"), None);
        }
        assert_eq!((told.is_due(begun, one, "b"), told.is_due(begun, other, "a")), (Some(1), Some(1)));
        assert_eq!(told.is_due(begun + EVERY, one, "a"), Some(501));
    }

    #[test]
    fn a_crowd_of_addresses_is_told_of_as_far_as_there_is_room_and_again_a_minute_later() {
        let (told, begun) = (Told::default(), Instant::now());
        let address = |number: u32| IpAddr::from(number.to_be_bytes());
        let lines = (0..100_000).filter(|number| told.is_due(begun, address(*number), "a").is_some()).count();
        assert_eq!(lines, ADDRESSES_MAX);
        assert_eq!(told.is_due(begun + EVERY, address(99_999), "a"), Some(1));
    }
}
