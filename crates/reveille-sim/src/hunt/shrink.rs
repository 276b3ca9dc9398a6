//! Makes a failing run small: fewer happenings first, then fewer machines, then less time.
//!
//! Delta debugging over the numbers of the happenings: parts are left out in halves, quarters and so on, and whatever
//! still breaks the same rule is kept. Because a course is drawn before it runs, leaving one happening out moves no
//! other. It is bounded by a number of runs, not by time, so that the same failure shrinks to the same small one.

use super::{Breach, Quarry, Rule, play};
use reveille_core::model::time::Span;

/// A smaller run, and how it breaks.
#[derive(Clone, Debug)]
pub struct Small {
    /// The run.
    pub quarry: Quarry,
    /// How it breaks.
    pub breach: Breach,
    /// Runs that were played to find it.
    pub runs: u32,
}

struct Shrinker {
    rule: Rule,
    runs: u32,
    runs_max: u32,
    best: Quarry,
    breach: Breach,
}

/// Shrinks a run that breaks like this, within so many runs.
pub fn shrink(quarry: &Quarry, breach: Breach, runs_max: u32) -> Small {
    let mut shrinker =
        Shrinker { rule: breach.rule.clone(), runs: 0, runs_max, best: quarry.clone(), breach };
    shrinker.fewer_happenings();
    shrinker.fewer_machines();
    shrinker.fewer_happenings();
    shrinker.less_time();
    Small { quarry: shrinker.best, breach: shrinker.breach, runs: shrinker.runs }
}

impl Shrinker {
    /// Takes the candidate in if it still breaks the same rule.
    fn still_breaks(&mut self, candidate: Quarry) -> bool {
        if self.runs >= self.runs_max {
            return false;
        }
        self.runs += 1;
        let Ok(outcome) = play(&candidate) else { return false };
        match outcome.breach {
            Some(breach) if breach.rule == self.rule => {
                (self.best, self.breach) = (candidate, breach);
                true
            }
            _ => false,
        }
    }

    fn kept(&self) -> Vec<u32> {
        self.best.keep.clone().unwrap_or_else(|| self.best.drawn().into_iter().map(|(at, _)| at).collect())
    }

    fn fewer_happenings(&mut self) {
        let mut kept = self.kept();
        // Nothing that comes after the breach had a part in it.
        let after = self.breach.after;
        let before: Vec<u32> =
            self.best.drawn().into_iter().filter(|(_, then)| *then <= after).map(|(at, _)| at).collect();
        kept.retain(|at| before.contains(at));
        if kept.len() < self.kept().len() {
            self.still_breaks(Quarry { keep: Some(kept), ..self.best.clone() });
        }
        let mut kept = self.kept();
        let mut parts = 2;
        while !kept.is_empty() && parts <= kept.len().max(1) * 2 && self.runs < self.runs_max {
            let size = kept.len().div_ceil(parts).max(1);
            let mut found = false;
            for start in (0..kept.len()).step_by(size) {
                let end = (start + size).min(kept.len());
                let rest: Vec<u32> = [&kept[..start], &kept[end..]].concat();
                if self.still_breaks(Quarry { keep: Some(rest.clone()), ..self.best.clone() }) {
                    kept = rest;
                    found = true;
                    break;
                }
            }
            if found {
                parts = parts.saturating_sub(1).max(2);
            } else if size == 1 {
                break;
            } else {
                parts *= 2;
            }
        }
    }

    fn fewer_machines(&mut self) {
        let mut count = self.best.world.unwrap_or(self.best.machines);
        while count > 1 {
            let fewer = [count / 4, count / 2, count * 3 / 4, count - 1];
            let smaller = fewer.into_iter().filter(|fewer| (1..count).contains(fewer));
            let mut found = None;
            for world in smaller {
                if self.still_breaks(Quarry { world: Some(world), ..self.best.clone() }) {
                    found = Some(world);
                    break;
                }
            }
            match found {
                Some(world) => count = world,
                None => return,
            }
        }
    }

    /// A shorter course draws the same happenings up to its end.
    fn less_time(&mut self) {
        let last = self
            .best
            .scenario_run()
            .ok()
            .and_then(|scenario_run| scenario_run.happenings.iter().map(|(at, _)| *at).max());
        let Some(last) = last else { return };
        // A seed file says it in whole minutes, so that what is rounded there must have been played here (seed 3200001).
        let length = Span::from_min((last.ms + Span::from_min(1).ms).div_euclid(60_000) + 1);
        if length < self.best.length {
            self.still_breaks(Quarry { length, ..self.best.clone() });
        }
    }
}
