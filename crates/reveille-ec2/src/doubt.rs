//! Decides when to believe EC2's "there is no such instance".
//!
//! ```text
//!  InvalidInstanceID.NotFound ─▶ seen ended?              ─ yes ─▶ believed (EC2 forgets the ended after about an hour)
//!                              ─▶ seen alive lately?      ─ yes ─▶ doubted until it was out of sight for two hours
//!                              ─▶ denied a minute ago too? ─ yes ─▶ believed
//!                                                          no ──▶ doubted; ask again
//! ```
//!
//! EC2 is many servers that learn of an instance one after another: seconds after `RunInstances`, one of them may deny what
//! another one has listed. A cloud controller that believed such a denial deleted the nodes of running machines. So:
//! * **One denial proves nothing.** The first is only noted; one that comes at least [`APART`] after it, with no sighting in
//!   between, is believed. Denials are known to last tens of seconds.
//! * **What was seen alive does not vanish.** An instance that ends is listed as `terminated` for about an hour. One that we
//!   saw alive and that is denied without our ever having seen it end is therefore a server that does not know, unless we
//!   did not look for longer than that hour: [`OUT_OF_SIGHT`], twice as much, from the last sighting.
//!
//! The record of sightings is only in memory. After a restart, an instance counts as never seen until it is listed once, and the
//! minute alone protects it. The engine adds its own doubt on top, which outlives a restart.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use reveille_core::model::id::InstanceId;

/// Two denials that count lie so far apart.
pub(crate) const APART: Duration = Duration::from_secs(60);
/// A denial is forgotten when none follows it for so long.
const DENIAL_LASTS: Duration = Duration::from_secs(1800);
/// Out of sight so long, an instance may have ended and been forgotten without our having seen it.
const OUT_OF_SIGHT: Duration = Duration::from_secs(7200);
/// So many denials are remembered; the next ones are then doubted, which is safe.
const DENIALS_MAX: usize = 10_000;

/// Whether a denial counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Belief {
    /// There is no such instance.
    Believed,
    /// It may be there.
    Doubted {
        /// It was seen alive so long ago; `None`: it was never seen.
        seen_ago: Option<Duration>,
        /// Asking before this has passed cannot decide it.
        again_in: Duration,
    },
}

#[derive(Clone, Copy, Debug)]
struct Sighting {
    at: Instant,
    ended: bool,
}

/// What was seen of instances, and when they were denied.
#[derive(Debug, Default)]
pub(crate) struct Sightings {
    seen: BTreeMap<InstanceId, Sighting>,
    /// The first and the last denial of each.
    denied: BTreeMap<InstanceId, (Instant, Instant)>,
}

impl Sightings {
    /// These are there; `true`: as one that has ended. Forgets what is out of sight for long.
    pub(crate) fn sighted<'a>(&mut self, now: Instant, these: impl Iterator<Item = (&'a InstanceId, bool)>) {
        for (id, ended) in these {
            self.denied.remove(id);
            self.seen.insert(id.clone(), Sighting { at: now, ended });
        }
        self.seen.retain(|_, sighting| now.duration_since(sighting.at) < OUT_OF_SIGHT);
        self.denied.retain(|_, (_, last)| now.duration_since(*last) < DENIAL_LASTS);
    }

    /// EC2 says that there is no such instance.
    pub(crate) fn denied(&mut self, now: Instant, id: &InstanceId) -> Belief {
        let sighting = self.seen.get(id).copied();
        if sighting.is_some_and(|sighting| sighting.ended) {
            return Belief::Believed;
        }
        if !self.denied.contains_key(id) && self.denied.len() >= DENIALS_MAX {
            return Belief::Doubted { seen_ago: None, again_in: APART };
        }
        let (first, last) = self.denied.entry(id.clone()).or_insert((now, now));
        if now.duration_since(*last) >= DENIAL_LASTS {
            *first = now;
        }
        *last = now;
        let lasts = now.duration_since(*first);
        let seen_ago = sighting.map(|sighting| now.duration_since(sighting.at));
        let in_sight = seen_ago.map_or(Duration::ZERO, |ago| OUT_OF_SIGHT.saturating_sub(ago));
        let again_in = APART.saturating_sub(lasts).max(in_sight);
        if again_in.is_zero() { Belief::Believed } else { Belief::Doubted { seen_ago, again_in } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    fn id() -> InstanceId {
        InstanceId::from("i-1")
    }

    #[test]
    fn unknown_machine_is_denied_after_two_denials_a_minute_apart() {
        let (start, mut sightings) = (Instant::now(), Sightings::default());
        let doubt = |again_in| Belief::Doubted { seen_ago: None, again_in };
        assert_eq!(sightings.denied(start, &id()), doubt(S(60)));
        assert_eq!(sightings.denied(start + S(5), &id()), doubt(S(55)));
        assert_eq!(sightings.denied(start + S(60), &id()), Belief::Believed);
    }

    #[test]
    fn a_sighting_between_two_denials_takes_the_first_one_back() {
        let (start, mut sightings) = (Instant::now(), Sightings::default());
        sightings.denied(start, &id());
        sightings.sighted(start + S(30), [(&id(), false)].into_iter());
        let denied = sightings.denied(start + S(70), &id());
        assert_eq!(denied, Belief::Doubted { seen_ago: Some(S(40)), again_in: S(7160) });
    }

    #[test]
    fn denial_is_doubted_for_live_and_believed_for_ended_machine() {
        let (start, mut sightings) = (Instant::now(), Sightings::default());
        sightings.sighted(start, [(&id(), false)].into_iter());
        sightings.denied(start + S(10), &id());
        assert!(matches!(sightings.denied(start + S(3000), &id()), Belief::Doubted { .. }));
        sightings.sighted(start + S(3600), [(&id(), true)].into_iter());
        assert_eq!(sightings.denied(start + S(3601), &id()), Belief::Believed);
    }

    #[test]
    fn machine_unseen_for_two_hours_is_denied_after_two_denials() {
        let (start, mut sightings) = (Instant::now(), Sightings::default());
        sightings.sighted(start, [(&id(), false)].into_iter());
        let late = start + OUT_OF_SIGHT;
        assert!(
            matches!(sightings.denied(late, &id()), Belief::Doubted { again_in, .. } if again_in == APART)
        );
        assert_eq!(sightings.denied(late + APART, &id()), Belief::Believed);
    }

    #[test]
    fn denials_that_lie_half_an_hour_apart_are_two_first_ones() {
        let (start, mut sightings) = (Instant::now(), Sightings::default());
        sightings.denied(start, &id());
        assert!(matches!(sightings.denied(start + DENIAL_LASTS, &id()), Belief::Doubted { .. }));
    }
}
