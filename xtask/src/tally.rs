//! Counting tests: what libtest and the end-to-end runner printed, as numbers and names.
//!
//! ```text
//!  test NAME ... ok │ FAILED │ FLAKY (WHY) │ ignored, WHY │ not run (WHY)     names and reasons
//!  test result: ok. 13 passed; 0 failed; 2 ignored; …                   counts of a libtest program
//!  N passed, N failed, N skipped                                        counts of the end-to-end runner
//! ```
//!
//! The closing lines count; a line in the middle may have been broken up by what a test's child printed. A test that one
//! step skipped and another ran was not skipped.

use std::collections::{BTreeMap, BTreeSet};

/// What a step found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
    /// Names of what was run and passed, as far as they were printed.
    pub(crate) passed_names: BTreeSet<String>,
    /// Names of what failed.
    pub(crate) failures: Vec<String>,
    /// Names of what passed only at a second run, with what was said of it.
    pub(crate) flaky: BTreeMap<String, String>,
    /// Names of what was not run, with the reason.
    pub(crate) not_run: BTreeMap<String, String>,
}

impl Tally {
    /// One check that is not a test.
    pub(crate) fn one(name: &str, ok: bool) -> Self {
        let mut tally = Self::default();
        if ok {
            tally.passed = 1;
        } else {
            tally.fail(name);
        }
        tally
    }

    /// Adds a failure.
    pub(crate) fn fail(&mut self, name: &str) {
        self.failed += 1;
        self.failures.push(name.to_owned());
    }

    /// Adds something that was not run.
    pub(crate) fn skip(&mut self, name: &str, reason: &str) {
        self.skipped += 1;
        self.not_run.insert(name.to_owned(), reason.to_owned());
    }

    /// Reads what test programs printed.
    pub(crate) fn read(lines: &[String]) -> Self {
        let mut tally = Self::default();
        for line in lines {
            if let Some((name, end)) = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... ")) {
                tally.one_test(name, end);
            } else if let Some(counts) = line.strip_prefix("test result: ") {
                let counts = counts.split_once(". ").map_or("", |(_, counts)| counts);
                tally.count(counts.split("; "));
            } else if line.ends_with(" skipped") {
                tally.count(line.split(", "));
            }
        }
        tally
    }

    fn one_test(&mut self, name: &str, end: &str) {
        let name = name.to_owned();
        if end == "ok" || end.starts_with("ok ") {
            self.passed_names.insert(name);
        } else if let Some(reason) = end.strip_prefix("FLAKY (") {
            self.flaky.insert(name.clone(), reason.trim_end_matches(')').to_owned());
            self.passed_names.insert(name);
        } else if end.starts_with("FAILED") {
            self.failures.push(name);
        } else if let Some(reason) = end.strip_prefix("ignored") {
            let reason = reason.trim_start_matches(", ");
            self.not_run.insert(name, if reason.is_empty() { "no reason given" } else { reason }.to_owned());
        } else if let Some(reason) = end.strip_prefix("not run (") {
            self.not_run.insert(name, reason.trim_end_matches(')').to_owned());
        }
    }

    fn count<'a>(&mut self, counts: impl Iterator<Item = &'a str>) {
        let counts: Vec<(u64, &str)> = counts
            .filter_map(|count| count.split_once(' '))
            .filter_map(|(n, what)| Some((n.parse().ok()?, what)))
            .collect();
        // Anything else that happens to end that way names no passed ones.
        if !counts.iter().any(|(_, what)| *what == "passed") {
            return;
        }
        for (number, what) in counts {
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" | "skipped" => self.skipped += number,
                _ => {}
            }
        }
    }

    /// Adds what another step found.
    pub(crate) fn add(&mut self, other: &Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.passed_names.extend(other.passed_names.iter().cloned());
        self.failures.extend(other.failures.iter().cloned());
        self.flaky.extend(other.flaky.iter().map(|(name, reason)| (name.clone(), reason.clone())));
        for (name, reason) in &other.not_run {
            // Skipped by two steps, it is still one test.
            if self.not_run.insert(name.clone(), reason.clone()).is_some() {
                self.skipped -= 1;
            }
        }
    }

    /// Takes out of the skipped what was run elsewhere.
    pub(crate) fn settle(&mut self) {
        let run: Vec<String> = self
            .not_run
            .keys()
            .filter(|name| self.passed_names.contains(*name) || self.failures.contains(name))
            .cloned()
            .collect();
        for name in run {
            self.not_run.remove(&name);
            self.skipped = self.skipped.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Tally {
        Tally::read(&text.lines().map(ToOwned::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn both_kinds_of_test_programs_are_counted() {
        let tally = read(
            "running 4 tests
test a::b ... ok
test c ... FAILED
test d ... ignored, needs a rig
test e ... a child printed this, and then ok
test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s
test f ... ok (12.3 s)
test g ... FAILED (3.4 s)
test h ... not run (no rig: there is no Go)
test i ... failed at its first run (3.4 s)
test i ... FLAKY (passed at its second run, 2.0 s; first: waited 30 s)
1 of them flaky: passed only at the second run
2 passed, 1 failed, 1 skipped
the second page was skipped
7 lines skipped",
        );
        assert_eq!((tally.passed, tally.failed, tally.skipped), (4, 2, 2));
        assert_eq!(tally.failures, ["c", "g"]);
        assert_eq!(tally.passed_names.iter().collect::<Vec<_>>(), ["a::b", "f", "i"]);
        assert_eq!(tally.flaky["i"], "passed at its second run, 2.0 s; first: waited 30 s");
        assert_eq!(tally.not_run["d"], "needs a rig");
        assert_eq!(tally.not_run["h"], "no rig: there is no Go");
    }

    #[test]
    fn a_test_that_one_step_skipped_and_another_ran_was_run() {
        let mut all = read(
            "test d ... ignored, needs a rig\ntest result: ok. 0 passed; 0 failed; 1 ignored; 0 measured",
        );
        all.add(&read(
            "test d ... ignored, needs a rig\ntest result: ok. 0 passed; 0 failed; 1 ignored; 0 measured",
        ));
        assert_eq!(all.skipped, 1);
        all.add(&read("test d ... ok\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured"));
        all.settle();
        assert_eq!((all.passed, all.failed, all.skipped, all.not_run.len()), (1, 0, 0, 0));
    }
}
