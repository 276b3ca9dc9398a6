//! One outcome for a call that takes several requests: rules of a group, routes of a table.
//!
//! ```text
//!  each request ─▶ Step ─▶ Steps::note ─ may the next one pass? ─▶ … ─▶ Steps::outcome
//! ```
//!
//! What was done stays done, whatever becomes of the rest. Which requests there are, and in which order, is the adapter's.

use std::sync::Arc;

use reveille_core::effect::Outcome;
use reveille_core::model::id::RequestId;

/// How one request of several ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It did what was asked for.
    Done(Option<RequestId>),
    /// It was so before.
    WasSo,
    /// It is not so, or the answer does not tell.
    Not(Outcome),
}

/// How they ended so far.
#[derive(Debug, Default)]
pub struct Steps {
    done: usize,
    was_so: usize,
    last: Option<RequestId>,
    failures: Vec<Outcome>,
}

impl Steps {
    /// Adds one; gives it back when it failed.
    pub fn note(&mut self, step: Step) -> Option<&Outcome> {
        match step {
            Step::Done(request) => {
                self.done += 1;
                self.last = request.or(self.last.take());
            }
            Step::WasSo => self.was_so += 1,
            Step::Not(outcome) => {
                self.failures.push(outcome);
                return self.failures.last();
            }
        }
        None
    }

    /// The outcome of all `of` them. `all_were_so` is its text when nothing had to be done; `so`, as in "rule(s) are there now",
    /// stands with the numbers when something failed.
    pub fn outcome(self, of: usize, all_were_so: &str, so: &str) -> Outcome {
        if !self.failures.is_empty() {
            return sum_up(self.failures, &format!("{} of {of} {so}", self.done + self.was_so));
        }
        match self.done {
            0 => Outcome::AlreadySo { text: Arc::from(all_were_so) },
            _ => Outcome::Accepted { request: self.last },
        }
    }
}

/// False when what failed one request of a call fails the next one too, or when it is not known what the request did.
pub const fn next_may_pass(failure: &Outcome) -> bool {
    matches!(failure, Outcome::Refused { .. } | Outcome::Moved { .. })
}

/// One outcome for several failures: the one that needs the most care, with the words of all.
fn sum_up(failures: Vec<Outcome>, so_far: &str) -> Outcome {
    let words: Vec<String> = failures.iter().map(ToString::to_string).collect();
    let text: Arc<str> = Arc::from(format!("{so_far}; {}", words.join("; ")));
    let rank = |outcome: &Outcome| match outcome {
        Outcome::Unknown { .. } => 0,
        Outcome::Limit { .. } => 1,
        Outcome::Denied { .. } => 2,
        Outcome::Failed { .. } => 3,
        Outcome::Moved { .. } => 4,
        _ => 5,
    };
    match failures.into_iter().min_by_key(rank) {
        Some(Outcome::Unknown { .. }) => Outcome::Unknown { text },
        Some(Outcome::Limit { limit, .. }) => Outcome::Limit { limit, text },
        Some(Outcome::Denied { .. }) => Outcome::Denied { text },
        Some(Outcome::Failed { retry_after, .. }) => Outcome::Failed { text, retry_after },
        Some(Outcome::Moved { .. }) => Outcome::Moved { text },
        _ => Outcome::Refused { text },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failure_that_needs_the_most_care_names_the_outcome() {
        let refused = || Outcome::Refused { text: "no".into() };
        let unknown = || Outcome::Unknown { text: "no answer".into() };
        let so = "rule(s) are there now";
        let of = |steps: Vec<Step>| {
            let (count, mut all) = (steps.len(), Steps::default());
            for step in steps {
                all.note(step);
            }
            all.outcome(count, "all were", so)
        };
        assert_eq!(of(vec![Step::WasSo]), Outcome::AlreadySo { text: "all were".into() });
        let id = Some(RequestId::from("r-1"));
        let done = vec![Step::Done(id.clone()), Step::WasSo, Step::Done(None)];
        assert_eq!(of(done), Outcome::Accepted { request: id });
        let mixed = of(vec![Step::Not(refused()), Step::Done(None), Step::Not(unknown())]);
        let text = format!("1 of 3 {so}; {}; {}", refused(), unknown()).into();
        assert_eq!(mixed, Outcome::Unknown { text });
        assert!(next_may_pass(&refused()) && !next_may_pass(&unknown()));
    }
}
