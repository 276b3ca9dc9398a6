//! Pages of a repair of Rancher's records: its steps, and what an abandoned one leaves behind.

use std::fmt::Write as _;

use reveille_wire::report::{RancherAbandonReport, RancherDifferenceReport, RancherRepairReport};

use super::output_style::{Paper, Tone, one_line};
use super::rancher::{INDENT, line};
use super::table::{self, Text};
use super::wrap::hanging;
use crate::cli::exit::Exit;

/// The page of a repair: the steps, what it writes, and what blocks it.
pub(crate) fn repair_page(report: &RancherRepairReport, paper: &Paper) -> String {
    let mut page = String::new();
    let (node, cluster) = (one_line(&report.node), one_line(&report.cluster));
    let head = match report.against.len() {
        0 => {
            paper.tone(Tone::Good, format!("{} {node} of {cluster}: nothing stands against it.", report.way))
        }
        _ => paper.tone(Tone::Doubt, format!("{} {node} of {cluster}: not now.", report.way)),
    };
    let _ = writeln!(page, "{}", hanging(paper, &head, 0));
    for against in &report.against {
        line(&mut page, "Not", &one_line(against), paper);
    }
    page.push('\n');
    for (index, step) in report.steps.iter().enumerate() {
        line(&mut page, &(index + 1).to_string(), &one_line(step), paper);
    }
    if !report.writes.is_empty() {
        page.push('\n');
        let row = |write: &RancherDifferenceReport| {
            [&write.field, &write.this, &write.healthy].map(|text| Text::plain(one_line(text))).to_vec()
        };
        let head = ["field", "now", "then"].map(|text| Text::toned(Tone::Faint, text)).to_vec();
        let rows = std::iter::once(head).chain(report.writes.iter().map(row)).collect();
        page.push_str(&table::lines(paper, INDENT, rows));
    }
    let _ = writeln!(page, "\nNothing was changed. With --yes it is done, where the roster says act.");
    page
}

/// What an abandoned repair leaves behind.
pub(crate) fn abandon_page(report: &RancherAbandonReport, paper: &Paper) -> String {
    let mut page = String::new();
    let (node, cluster) = (one_line(&report.node), one_line(&report.cluster));
    let (tone, is) = if report.ended { (Tone::Good, "ended") } else { (Tone::Doubt, "open") };
    let head = paper.tone(tone, format!("{} {node} of {cluster}: {is}.", report.way));
    let _ = writeln!(page, "{}\n", hanging(paper, &head, 0));
    let mut label = "Steps";
    let now = report.steps.last().map(|step| step.at);
    for step in &report.steps {
        let at = paper.clock(step.at, now.unwrap_or(step.at));
        line(&mut page, label, &format!("{at} {}: {}", one_line(&step.what), one_line(&step.ended)), paper);
        label = "";
    }
    if report.steps.is_empty() {
        line(&mut page, label, "none: nothing was done", paper);
    }
    for (label, texts) in [("Now", &report.now), ("Left", &report.left)] {
        for (index, text) in texts.iter().enumerate() {
            line(&mut page, if index == 0 { label } else { "" }, &one_line(text), paper);
        }
    }
    if !report.ended {
        let _ = writeln!(page, "\nNothing was changed. With --yes its end is written into the journal.");
    }
    page
}

/// The exit code: whether the repair has ended.
pub(crate) const fn abandon_exit(report: &RancherAbandonReport) -> Exit {
    if report.ended { Exit::NoProblem } else { Exit::Problems }
}

/// The exit code: whether the repair could begin now.
pub(crate) fn repair_exit(report: &RancherRepairReport) -> Exit {
    if report.against.is_empty() { Exit::NoProblem } else { Exit::Problems }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use reveille_core::model::time::Time;
    use reveille_wire::report::RancherStepReport;

    use super::*;

    #[test]
    fn abandoned_repair_page_lists_each_step_and_leftovers() {
        let step = |at_s: i64, what: &str, ended: &str| RancherStepReport {
            at: Time::from_ms(at_s * 1_000),
            what: what.to_owned(),
            ended: ended.to_owned(),
        };
        let report = RancherAbandonReport {
            cluster: "shop".to_owned(),
            node: "w-3".to_owned(),
            way: "evict".to_owned(),
            steps: vec![
                step(60, "keep copies of 1 record(s)", "done"),
                step(90, "cordon the Node", "may have been done"),
            ],
            now: vec!["the Node w-3 is there".to_owned(), "it has no record".to_owned()],
            left: vec!["kubectl uncordon w-3".to_owned()],
            ended: true,
        };
        let paper = Paper { width: None, colored: false, zone: TimeZone::UTC };
        let wanted = "\
evict w-3 of shop: ended.

Steps   00:01:00 keep copies of 1 record(s): done
        00:01:30 cordon the Node: may have been done
Now     the Node w-3 is there
        it has no record
Left    kubectl uncordon w-3
";
        assert_eq!(abandon_page(&report, &paper), wanted);
        assert_eq!(abandon_exit(&report), Exit::NoProblem);
        let open = RancherAbandonReport { ended: false, ..report };
        assert!(abandon_page(&open, &paper).ends_with("With --yes its end is written into the journal.\n"));
        assert_eq!(abandon_exit(&open), Exit::Problems);
    }
}
