//! Limits log lines about clients: once a minute for each network of strangers, and once a minute for each invitation,
//! with the number of repetitions since.
//!
//! Any client can make a server write a line for each request. A log with a rate limit (journald: 10,000 lines in 30 s of
//! one service) would then drop the lines that matter. Strangers have a table of their own. So, however many they are,
//! they displace no warning that a token's holder claims to be another machine.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::gate::network;
use crate::registry::InvitationId;

/// The interval after which the same event is logged again.
const EVERY: Duration = Duration::from_mins(1);
/// The number of networks or invitations in a table. Within a minute, further ones are not logged: one line for each of
/// them is a flood, too.
const LINES_MAX: usize = 4_096;

/// The events that were logged.
#[derive(Debug, Default)]
pub(super) struct LogLimits {
    strangers: Mutex<Lines<IpAddr>>,
    invited: Mutex<Lines<InvitationId>>,
}

/// Rate-limited log lines about subjects of one type.
#[derive(Debug)]
pub struct Lines<Who> {
    /// For each subject and event: when it was logged last, and how often it happened since.
    last: BTreeMap<(Who, &'static str), (Instant, u64)>,
    /// When old entries were removed: not at every event of a crowd.
    swept: Option<Instant>,
}

impl LogLimits {
    /// How often the event has happened since it was logged last, this time included; none where it must not be logged
    /// yet.
    pub(super) fn of_stranger(&self, now: Instant, address: IpAddr, what: &'static str) -> Option<u64> {
        let mut lines = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        lines.is_due(now, network(address), what)
    }

    /// The same for a client that showed the token of this invitation.
    pub(super) fn of_invited(&self, now: Instant, by: &InvitationId, what: &'static str) -> Option<u64> {
        let mut lines = self.invited.lock().unwrap_or_else(PoisonError::into_inner);
        lines.is_due(now, by.clone(), what)
    }
}

impl<Who> Default for Lines<Who> {
    fn default() -> Self {
        Self { last: BTreeMap::new(), swept: None }
    }
}

impl<Who: Ord> Lines<Who> {
    /// How often the event has happened since it was logged last, this time included; none where it must not be logged
    /// yet.
    pub fn is_due(&mut self, now: Instant, who: Who, what: &'static str) -> Option<u64> {
        let Self { last, swept } = self;
        let is_over = |at: &Instant| now.duration_since(*at) >= EVERY;
        let key = (who, what);
        if let Some((at, times)) = last.get_mut(&key) {
            *times += 1;
            return is_over(at).then(|| {
                *at = now;
                std::mem::take(times)
            });
        }
        if last.len() >= LINES_MAX && swept.as_ref().is_none_or(is_over) {
            last.retain(|_, (at, _)| !is_over(at));
            *swept = Some(now);
        }
        if last.len() >= LINES_MAX {
            return None;
        }
        last.insert(key, (now, 0));
        Some(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_event_is_logged_once_a_minute_with_its_count() {
        let (limits, begun) = (LogLimits::default(), Instant::now());
        let (one, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        assert_eq!(limits.of_stranger(begun, one, "a"), Some(1));
        for _ in 0..500 {
            assert_eq!(limits.of_stranger(begun, one, "a"), None);
        }
        assert_eq!(
            (limits.of_stranger(begun, one, "b"), limits.of_stranger(begun, other, "a")),
            (Some(1), Some(1))
        );
        assert_eq!(limits.of_stranger(begun + EVERY, one, "a"), Some(501));
    }

    #[test]
    fn log_lines_for_many_addresses_are_capped_and_resume_later() {
        let (limits, begun) = (LogLimits::default(), Instant::now());
        let address = |number: u32| IpAddr::from(number.to_be_bytes());
        let lines =
            (0..100_000).filter(|number| limits.of_stranger(begun, address(*number), "a").is_some()).count();
        assert_eq!(lines, LINES_MAX);
        assert_eq!(limits.of_stranger(begun + EVERY, address(99_999), "a"), Some(1));
    }

    /// One host has 2^64 IPv6 addresses.
    #[test]
    fn a_network_of_ipv6_is_one_stranger() {
        let (limits, begun) = (LogLimits::default(), Instant::now());
        let host = |number: u32| IpAddr::from((0x2001_0db8_u128 << 96 | u128::from(number)).to_be_bytes());
        let lines =
            (0..100_000).filter(|number| limits.of_stranger(begun, host(*number), "a").is_some()).count();
        assert_eq!(lines, 1);
    }

    #[test]
    fn strangers_use_no_log_line_of_token_holders() {
        let (limits, begun) = (LogLimits::default(), Instant::now());
        for number in 0..100_000_u32 {
            limits.of_stranger(begun, IpAddr::from(number.to_be_bytes()), "rejected: unknown token");
        }
        let conflict = |id: &str| limits.of_invited(begun, &InvitationId::new(id), "conflict");
        assert_eq!((conflict("i"), conflict("i"), conflict("j")), (Some(1), None, Some(1)));
    }
}
