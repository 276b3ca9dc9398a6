//! Stage reports that wait until the server has them, and their numbers.
//!
//! ```text
//!  a report ─▶ keep: numbered ─▶ said, in this session and in the next one ─▶ welcomed: the server has all up to a number
//! ```
//!
//! A report's number is the agent's clock, or one more than the number before. After a clock that was ahead is set back,
//! the server has higher numbers than any new report. The server cannot have reports that this process never sent: they
//! and later ones are numbered from the server's number on.

use std::collections::VecDeque;

use reveille_wire::agent::frame::StageReport;

/// The number of reports that wait for a server that is away; the oldest are dropped first.
const KEPT_MAX: usize = 256;

/// The waiting reports.
#[derive(Debug, Default)]
pub(super) struct Reports {
    waiting: VecDeque<StageReport>,
    /// The highest number that was given, or that the server has.
    last: u64,
    /// A session stood since this process started, and the first of these reports may have been sent in it.
    was_welcomed: bool,
}

impl Reports {
    /// Keeps the report, and returns it with its number.
    pub(super) fn keep(&mut self, report: StageReport) -> StageReport {
        let report = self.numbered(report);
        if self.waiting.len() == KEPT_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back(report.clone());
        report
    }

    /// A session has begun, and the server has all reports up to this number.
    pub(super) fn welcomed(&mut self, kept: u64) {
        if self.was_welcomed {
            self.waiting.retain(|report| report.seq > kept);
            self.last = self.last.max(kept);
            return;
        }
        (self.was_welcomed, self.last) = (true, kept);
        let waiting = std::mem::take(&mut self.waiting);
        self.waiting = waiting.into_iter().map(|report| self.numbered(report)).collect();
    }

    /// All waiting reports, the oldest first.
    pub(super) fn waiting(&self) -> Vec<StageReport> {
        self.waiting.iter().cloned().collect()
    }

    fn numbered(&mut self, report: StageReport) -> StageReport {
        self.last = report.seq.max(self.last.saturating_add(1));
        StageReport { seq: self.last, ..report }
    }
}

#[cfg(test)]
mod tests {
    use reveille_core::model::stage::Stage;
    use reveille_wire::agent::StageWord;
    use reveille_wire::agent::frame::StageStep;

    use super::*;

    fn report(seq: u64) -> StageReport {
        let (stage, step) = (StageWord(Stage::Runtime), StageStep::Entered);
        StageReport { seq, stage, step, attempts: 0, error: None, stamp: "".into() }
    }

    fn numbers(reports: &Reports) -> Vec<u64> {
        reports.waiting().iter().map(|report| report.seq).collect()
    }

    #[test]
    fn a_report_waits_until_the_server_has_it() {
        let mut reports = Reports::default();
        assert_eq!([5, 7].map(|seq| reports.keep(report(seq)).seq), [5, 7]);
        reports.welcomed(3);
        assert_eq!(numbers(&reports), [5, 7], "what it has is of a process before");
        reports.keep(report(9));
        reports.welcomed(7);
        assert_eq!(numbers(&reports), [9]);
        reports.welcomed(9);
        assert_eq!(numbers(&reports), [0; 0]);
        (10..1000).for_each(|seq| drop(reports.keep(report(seq))));
        assert_eq!((numbers(&reports).len(), numbers(&reports).first()), (KEPT_MAX, Some(&744)));
    }

    #[test]
    fn reports_count_after_a_clock_that_stood_ahead_was_mended() {
        let mut reports = Reports::default();
        for seq in [5, 7] {
            reports.keep(report(seq));
        }
        reports.welcomed(1_000);
        assert_eq!(numbers(&reports), [1_001, 1_002], "it cannot have them");
        assert_eq!(reports.keep(report(8)).seq, 1_003);
        reports.welcomed(1_002);
        assert_eq!(numbers(&reports), [1_003]);
        assert_eq!(reports.keep(report(2_000)).seq, 2_000, "the clock again");
    }
}
