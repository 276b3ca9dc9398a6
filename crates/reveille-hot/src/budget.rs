//! How often we ourselves may write one object: a storm of our own making is refused before it is sent.
//!
//! ```text
//!  a write is about to go out ─▶ spend(now, object) ─▶ Ok, it is counted
//!                                                   └▶ Err(Spent): UpdateStorm, and when to ask again
//! ```
//!
//! The budget is a tenth of the rate at which others are called hot, so that a client that looks for hot objects never finds us.
//! Other modules decide which component may write at all, and why. The budget is the last check before a write, and it sends no
//! request.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use reveille_core::model::time::{Span, Time};

/// What may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Writes of one object…
    pub writes: usize,
    /// …in this time.
    pub window: Span,
    /// Objects that may be written in that time. More of them is a storm over objects.
    pub objects_max: usize,
}

impl Default for Allowance {
    fn default() -> Self {
        // 12 in ten minutes are 0.02 a second: a tenth of 0.2. Five thousand machines that join at once are five thousand
        // objects.
        Self { writes: 12, window: Span::from_min(10), objects_max: 20_000 }
    }
}

/// What was written of late.
#[derive(Clone, Debug)]
pub struct Budget {
    allowance: Allowance,
    objects: BTreeMap<Arc<str>, VecDeque<Time>>,
}

/// A write that must not go out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spent {
    /// What was to be written.
    pub object: Arc<str>,
    /// The allowance that it would have exceeded.
    pub allowance: Allowance,
    /// When one may go out again.
    pub wait: Span,
}

impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Allowance { writes, window, .. } = self.allowance;
        write!(
            f,
            "UpdateStorm: {} was written {writes} times within {window}, which is all that we allow ourselves; the next may go out in {}",
            self.object, self.wait
        )
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(Allowance::default())
    }
}

impl Budget {
    /// Nothing was written yet.
    pub const fn new(allowance: Allowance) -> Self {
        Self { allowance, objects: BTreeMap::new() }
    }

    /// Counts a write that is about to go out.
    ///
    /// # Errors
    /// [`Spent`] when it must not. Then it is not counted: repeated attempts do not make the caller wait longer.
    pub fn spend(&mut self, now: Time, object: &str) -> Result<(), Spent> {
        let Allowance { writes, window, objects_max } = self.allowance;
        let refused = |wait: Span| Spent { object: Arc::from(object), allowance: self.allowance, wait };
        // A clock that was set back would hold old writes for ever; they count as made now at the latest.
        let counts = |at: Time| at.ms > now.ms || now.since(at) < window;
        if let Some(spent) = self.objects.get_mut(object) {
            spent.iter_mut().for_each(|at| *at = (*at).min(now));
            while spent.front().is_some_and(|at| !counts(*at)) {
                spent.pop_front();
            }
            if spent.len() >= writes {
                let oldest = spent.front().copied().unwrap_or(now);
                return Err(refused(Span::from_ms(window.ms - now.since(oldest).ms)));
            }
            spent.push_back(now);
            return Ok(());
        }
        if self.objects.len() >= objects_max {
            self.objects.retain(|_, spent| spent.back().is_some_and(|at| counts(*at)));
            if self.objects.len() >= objects_max {
                return Err(refused(window));
            }
        }
        self.objects.insert(Arc::from(object), VecDeque::from([now]));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_loop_that_writes_without_end_is_stopped() {
        let mut budget = Budget::default();
        // A write a millisecond, for an hour: what goes out is 12 in each ten minutes.
        let sent = (0..3_600_000).filter(|ms| budget.spend(Time::from_ms(*ms), "nodes/a").is_ok()).count();
        assert_eq!(sent, 12 * 6);
        let spent = budget.spend(Time::from_ms(3_600_000 - 1), "nodes/a").unwrap_err();
        assert!(
            spent.to_string().starts_with("UpdateStorm: nodes/a was written 12 times within 10 min"),
            "{spent}"
        );
    }

    #[test]
    fn write_budget_is_per_object_and_bounded_over_all_objects() {
        let mut budget = Budget::new(Allowance { writes: 1, window: Span::from_s(10), objects_max: 3 });
        let at = |s: i64| Time::from_ms(s * 1000);
        assert!(budget.spend(at(0), "a").is_ok());
        assert!(budget.spend(at(0), "a").is_err());
        assert!(budget.spend(at(1), "b").is_ok());
        assert!(budget.spend(at(2), "c").is_ok());
        assert!(budget.spend(at(3), "d").is_err(), "a storm over objects");
        assert!(budget.spend(at(10), "d").is_ok(), "the first is forgotten");
    }

    proptest! {
        #[test]
        fn no_window_ever_holds_more_than_its_allowance(steps in prop::collection::vec((0_i64..4_000, 0_u8..3), 1..300)) {
            let allowance = Allowance { writes: 4, window: Span::from_s(20), objects_max: 10 };
            let mut budget = Budget::new(allowance);
            let (mut now, mut sent) = (Time::from_ms(0), BTreeMap::<u8, Vec<i64>>::new());
            for (step, object) in steps {
                now = now + Span::from_ms(step);
                if budget.spend(now, &object.to_string()).is_ok() {
                    sent.entry(object).or_default().push(now.ms);
                }
            }
            for times in sent.values() {
                prop_assert!(times.windows(5).all(|five| five[4] - five[0] >= allowance.window.ms), "{times:?}");
            }
        }
    }
}
