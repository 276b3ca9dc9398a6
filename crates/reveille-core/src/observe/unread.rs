//! Instances whose read by id failed: the controller asks for them again after longer and longer waits.
//!
//! ```text
//!  read by id ─▶ failed ─▶ note ─▶ may_ask: not before a wait that doubles
//!           └──▶ answered, whatever it was ─▶ forgotten
//! ```
//!
//! A listing may lack a machine whose cell is down, or whose id its cloud answers with an error for hours. When the
//! controller asked at each listing, and ten seconds after each failure, one such machine cost 1,420 reads in four hours.
//!
//! An error proves nothing about the instance; `observe::cloud` judges that.

use std::collections::BTreeMap;

use crate::model::id::InstanceId;
use crate::model::time::{Span, Time};

/// After the first failure it is asked for with the next listing.
const WAIT_MIN: Span = Span::from_s(20);
/// A cell may be back at any time, and until then its machines are in doubt.
const WAIT_MAX: Span = Span::from_min(5);
/// The controller forgets a failed read that it did not repeat for this long.
const FORGOTTEN_AFTER: Span = Span::from_min(180);

/// So few are not looked through.
const LOOKED_THROUGH: usize = 64;

/// The reads by id that failed.
#[derive(Clone, Debug, Default)]
pub(super) struct Unread(BTreeMap<InstanceId, Failed>);

/// Reads of one id that failed, without an answer since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// When the last of them did.
    pub at: Time,
    /// How many.
    pub times: u32,
}

impl Failed {
    /// When it is asked for again, where the first wait is this and the longest that.
    pub fn again(self, first: Span, longest: Span) -> Time {
        self.at + first.doubled(self.times - 1, longest)
    }
}

impl Unread {
    pub(super) fn note(&mut self, now: Time, id: &InstanceId) {
        // Looked through each time that their number has doubled: at each failed read, that was a square.
        if self.0.len() >= LOOKED_THROUGH && self.0.len().is_power_of_two() {
            self.0.retain(|_, failed| now.since(failed.at) < FORGOTTEN_AFTER);
        }
        let failed = self.0.entry(id.clone()).or_insert(Failed { at: now, times: 0 });
        *failed = Failed { at: now, times: failed.times.saturating_add(1) };
    }

    pub(super) fn answered(&mut self, id: &InstanceId) {
        self.0.remove(id);
    }

    pub(super) fn of(&self, id: &InstanceId) -> Option<Failed> {
        self.0.get(id).copied()
    }

    pub(super) fn may_ask(&self, now: Time, id: &InstanceId) -> bool {
        self.of(id).is_none_or(|failed| failed.again(WAIT_MIN, WAIT_MAX) <= now)
    }

    pub(super) fn go_back_to(&mut self, now: Time) {
        self.0.values_mut().for_each(|failed| failed.at = failed.at.min(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_reads_are_retried_with_backoff_until_answered() {
        let (mut unread, id) = (Unread::default(), InstanceId::from("i1"));
        let mut asked_at = Vec::new();
        for s in (0..3600).step_by(10) {
            let now = Time::from_ms(s * 1000);
            if unread.may_ask(now, &id) {
                asked_at.push(s);
                unread.note(now, &id);
            }
        }
        assert_eq!(asked_at[..7], [0, 20, 60, 140, 300, 600, 900]);
        unread.answered(&id);
        assert!(unread.may_ask(Time::from_ms(0), &id));
    }

    #[test]
    fn unread_ids_without_requests_are_forgotten() {
        let mut unread = Unread::default();
        for number in 0..LOOKED_THROUGH {
            unread.note(Time::from_ms(0), &format!("i{number}").as_str().into());
        }
        unread.note(Time::from_ms(0) + FORGOTTEN_AFTER, &"last".into());
        assert_eq!(unread.0.len(), 1);
    }
}
