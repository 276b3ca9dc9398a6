//! The page of `doctor`: what to fix first, why and how; then every check; then the findings of the logs.

use std::fmt::Write as _;

use reveille_core::model::stage::Stage;
use reveille_wire::report::{CheckReport, DoctorReport, LogFindingReport};

use super::output_style::{Paper, Tone, one_line};
use super::table::{self, Text};
use super::wrap::hanging;
use crate::cli::exit::Exit;

/// The column where the text begins, behind its label.
const INDENT: usize = 8;
/// The most lines of evidence at the top; the JSON and YAML forms have all of them.
const EVIDENCE_MAX: usize = 8;

/// The page.
pub(crate) fn page(report: &DoctorReport, paper: &Paper) -> String {
    let mut page = String::new();
    let first = report.first.as_ref().and_then(|id| report.checks.iter().find(|check| check.id == *id));
    head(&mut page, report, first, paper);
    if let Some(first) = first {
        detail(&mut page, first, paper);
    }
    for finding in &report.findings {
        of_logs(&mut page, finding, first, paper);
    }
    page.push('\n');
    page.push_str(&table::lines(paper, 0, report.checks.iter().map(row).collect()));
    for check in report.checks.iter().filter(|check| check.result == "warned") {
        advice(&mut page, check, paper);
    }
    tail(&mut page, report, paper);
    page
}

/// The exit code of the report.
pub(crate) fn exit(report: &DoctorReport) -> Exit {
    let passed = |id: &str| report.checks.iter().any(|check| check.id == id && check.result == "passed");
    // The machine has a Ready Node, or a server that accepts its token. A check without data does not put that in doubt.
    let tells_enough = passed("ready") && passed("node") || passed("token") && passed("runtime");
    match &report.summary {
        summary if summary.failed > 0 => Exit::Problems,
        summary if summary.cannot_tell > 0 && !tells_enough => Exit::CannotTell,
        _ => Exit::NoProblem,
    }
}

fn head(page: &mut String, report: &DoctorReport, first: Option<&CheckReport>, paper: &Paper) {
    let node = one_line(report.node.as_deref().unwrap_or("this machine"));
    let summary = &report.summary;
    let line = match first {
        Some(check) => {
            let number = Stage::from_name(&check.stage).map_or(0, Stage::number);
            let (says, stage, id) = (one_line(&check.says), &check.stage, &check.id);
            let line = format!("{node}: {says}. Stopped at: {stage} ({number} of 14), by the check {id}.");
            paper.tone(Tone::Bad, line)
        }
        None if summary.cannot_tell > 0 => {
            let line = format!(
                "{node}: nothing is wrong in what could be read; {} could not be told.",
                checks(summary.cannot_tell)
            );
            paper.tone(Tone::Doubt, line)
        }
        None if summary.warned > 0 => paper.tone(
            Tone::Good,
            format!("{node}: nothing that would stop it is wrong; see the {}.", warnings(summary.warned)),
        ),
        None => paper.tone(Tone::Good, format!("{node}: all is well.")),
    };
    let _ = writeln!(page, "{}", hanging(paper, &line, 0));
}

fn checks(count: u32) -> String {
    if count == 1 { "one check".to_owned() } else { format!("{count} checks") }
}

fn warnings(count: u32) -> String {
    if count == 1 { "warning".to_owned() } else { format!("{count} warnings") }
}

fn detail(page: &mut String, check: &CheckReport, paper: &Paper) {
    page.push('\n');
    for (index, line) in check.evidence.iter().take(EVIDENCE_MAX).enumerate() {
        labelled(page, if index == 0 { "Proof" } else { "" }, &one_line(line), paper);
    }
    if let (Some(cause), Some(code)) = (&check.cause, &check.code) {
        labelled(page, "Cause", &format!("{cause} ({code}): reveille explain {code}"), paper);
    }
    if let Some(remedy) = &check.remedy {
        labelled(page, "Do", remedy, paper);
    }
    for command in &check.commands {
        let _ = writeln!(page, "{:INDENT$}  $ {}", "", one_line(command));
    }
}

fn of_logs(page: &mut String, finding: &LogFindingReport, first: Option<&CheckReport>, paper: &Paper) {
    let LogFindingReport { cause, code, confidence, title, .. } = finding;
    let agrees = first.and_then(|check| check.cause.as_ref()).is_some_and(|found| found == cause);
    let says = if agrees { "say the same" } else { "say besides" };
    page.push('\n');
    labelled(page, "Logs", &format!("{says}: {cause} ({code}), {confidence}: {title}"), paper);
    for line in finding.evidence.iter().take(2) {
        let times = if line.times > 1 { format!("  ×{}", line.times) } else { String::new() };
        let place = format!("{}:{}{times}", one_line(&line.source), line.line);
        labelled(page, "", &paper.tone(Tone::Faint, place), paper);
        labelled(page, "", &one_line(&line.text), paper);
    }
    if !agrees {
        labelled(page, "", &finding.remedy, paper);
    }
}

fn row(check: &CheckReport) -> Vec<Text> {
    let (sign, tone) = match check.result.as_str() {
        "passed" => ("✓", Some(Tone::Good)),
        "failed" => ("✗", Some(Tone::Bad)),
        "warned" => ("!", Some(Tone::Doubt)),
        "cannot-tell" => ("?", Some(Tone::Doubt)),
        _ => ("–", Some(Tone::Faint)),
    };
    let cell = |text: &str| Text(text.to_owned(), if check.result == "skipped" { tone } else { None });
    vec![Text(sign.to_owned(), tone), cell(&check.id), cell(&check.stage), cell(&one_line(&check.says))]
}

fn advice(page: &mut String, check: &CheckReport, paper: &Paper) {
    let Some(remedy) = &check.remedy else { return };
    page.push('\n');
    labelled(page, "", &format!("! {}: {remedy}", check.id), paper);
    for command in &check.commands {
        let _ = writeln!(page, "{:INDENT$}  $ {}", "", one_line(command));
    }
}

fn tail(page: &mut String, report: &DoctorReport, paper: &Paper) {
    let summary = &report.summary;
    let to = match (&report.told_by, report.servers.is_empty()) {
        (Some(by), false) => format!("{}, after {}", report.servers.join(", "), one_line(by)),
        _ => "no API server".to_owned(),
    };
    let line = format!(
        "{} passed, {} warned, {} failed, {} skipped, {} could not be told. Joins: {to}.",
        summary.passed, summary.warned, summary.failed, summary.skipped, summary.cannot_tell
    );
    let _ = writeln!(page, "\n{}", hanging(paper, &paper.tone(Tone::Faint, line), 0));
    for log in report.logs.iter().filter(|log| log.note.is_some()) {
        let note = log.note.as_deref().unwrap_or_default();
        let line = format!("Log {}: {}", one_line(&log.name), one_line(note));
        let _ = writeln!(page, "{}", hanging(paper, &paper.tone(Tone::Faint, line), 2));
    }
}

fn labelled(page: &mut String, label: &str, text: &str, paper: &Paper) {
    let _ = writeln!(page, "{}", hanging(paper, &format!("{label:<INDENT$}{text}"), INDENT));
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use reveille_wire::report::{DoctorSummary, LogLineReport};

    use super::*;

    fn check(id: &str, result: &str, says: &str) -> CheckReport {
        CheckReport {
            id: id.to_owned(),
            stage: "kubelet-start".to_owned(),
            rests_on: Vec::new(),
            result: result.to_owned(),
            says: says.to_owned(),
            evidence: Vec::new(),
            cause: None,
            code: None,
            remedy: None,
            commands: Vec::new(),
        }
    }

    fn report(checks: Vec<CheckReport>) -> DoctorReport {
        let count =
            |word: &str| u32::try_from(checks.iter().filter(|check| check.result == word).count()).unwrap();
        DoctorReport {
            node: Some("w-1".to_owned()),
            servers: vec!["10.0.0.1:6443".to_owned()],
            told_by: Some("the command line".to_owned()),
            first: checks.iter().find(|check| check.result == "failed").map(|check| check.id.clone()),
            summary: DoctorSummary {
                passed: count("passed"),
                warned: count("warned"),
                failed: count("failed"),
                skipped: count("skipped"),
                cannot_tell: count("cannot-tell"),
            },
            checks,
            findings: Vec::new(),
            logs: Vec::new(),
        }
    }

    fn plain() -> Paper {
        Paper { width: None, colored: false, zone: TimeZone::UTC }
    }

    #[test]
    fn doctor_page_begins_with_first_failure_proof_and_remedy() {
        let swap = CheckReport {
            evidence: vec!["swap on /dev/vda2\u{1b}[2J".to_owned()],
            cause: Some("swap-enabled".to_owned()),
            code: Some("RV526".to_owned()),
            remedy: Some("turn it off".to_owned()),
            commands: vec!["sudo swapoff -a".to_owned()],
            ..check("swap", "failed", "swap is on")
        };
        let mut report = report(vec![
            check("clock", "passed", "it agrees"),
            swap,
            check("kubelet", "skipped", "needs swap, which failed"),
        ]);
        report.findings = vec![LogFindingReport {
            cause: "swap-enabled".to_owned(),
            code: "RV526".to_owned(),
            stage: "kubelet-start".to_owned(),
            confidence: "sure".to_owned(),
            title: "swap is on".to_owned(),
            evidence: vec![LogLineReport {
                source: "journalctl".to_owned(),
                line: 7,
                text: "x".to_owned(),
                times: 3,
            }],
            remedy: "y".to_owned(),
        }];
        let page = page(&report, &plain());
        let wanted = "\
w-1: swap is on. Stopped at: kubelet-start (8 of 14), by the check swap.

Proof   swap on /dev/vda2\u{fffd}[2J
Cause   swap-enabled (RV526): reveille explain RV526
Do      turn it off
          $ sudo swapoff -a

Logs    say the same: swap-enabled (RV526), sure: swap is on
        journalctl:7  ×3
        x

✓  clock    kubelet-start  it agrees
✗  swap     kubelet-start  swap is on
–  kubelet  kubelet-start  needs swap, which failed

1 passed, 0 warned, 1 failed, 1 skipped, 0 could not be told. Joins: 10.0.0.1:6443, after the command line.
";
        assert_eq!(page, wanted);
    }

    #[test]
    fn unreadable_check_is_no_all_clear_unless_the_node_is_ready() {
        let unsure = check("cgroup-driver", "cannot-tell", "it does not say");
        let passed = |id: &str| check(id, "passed", "it is");
        assert_eq!(exit(&report(vec![passed("clock")])), Exit::NoProblem);
        assert_eq!(exit(&report(vec![passed("clock"), unsure.clone()])), Exit::CannotTell);
        assert_eq!(exit(&report(vec![passed("node"), passed("ready"), unsure.clone()])), Exit::NoProblem);
        assert_eq!(exit(&report(vec![unsure, check("swap", "failed", "on")])), Exit::Problems);
    }
}
