//! The result for people: the cause, its evidence, what to do, then the rest.

use std::fmt::Write as _;

use super::report::{FindingReport, QuoteReport, Report};
use crate::render::output_style::{Paper, Tone, one_line};
use crate::render::wrap::hanging;

/// The column where the text of a page begins, behind its label.
const INDENT: usize = 8;
/// The most unread inputs that the page names one by one.
const NAMED_MAX: usize = 10;

/// The page.
pub(super) fn page(report: &Report, paper: &Paper) -> String {
    let mut page = String::new();
    match (report.findings.split_first(), &report.unknown) {
        (Some((first, rest)), _) => {
            head(&mut page, first, paper);
            if !rest.is_empty() {
                let _ = writeln!(
                    page,
                    "\n{}",
                    paper.tone(Tone::Strong, "Also seen, less sure or later on the way")
                );
                for finding in rest {
                    also(&mut page, finding, paper);
                }
            }
        }
        (None, Some(unknown)) => {
            let _ = writeln!(page, "{}", paper.tone(Tone::Doubt, format!("No verdict: {}.", unknown.says)));
            if let Some(stage) = &unknown.stage {
                let _ = writeln!(page, "Stopped at: {stage} ({} of 14).", unknown.stage_number);
            }
            for quote in &unknown.lines {
                quoted(&mut page, "", quote, paper);
            }
            labelled(&mut page, "Collect", &unknown.collect, paper);
        }
        (None, None) => {
            let _ = writeln!(page, "{}", paper.tone(Tone::Good, "No known problem found in what was read."));
        }
    }
    inputs(&mut page, report, paper);
    page
}

fn head(page: &mut String, finding: &FindingReport, paper: &Paper) {
    let FindingReport { cause, code, stage, stage_number, confidence, title, .. } = finding;
    let line = format!("{cause} ({code}), {confidence}");
    let _ = writeln!(page, "{}", paper.tone(Tone::Bad, line));
    let _ = writeln!(
        page,
        "{}",
        hanging(paper, &format!("{title}. Stopped at: {stage} ({stage_number} of 14)."), 0)
    );
    page.push('\n');
    for (index, quote) in finding.evidence.iter().enumerate() {
        quoted(page, if index == 0 { "Proof" } else { "" }, quote, paper);
    }
    for (index, quote) in finding.against.iter().enumerate() {
        quoted(page, if index == 0 { "Against" } else { "" }, quote, paper);
    }
    page.push('\n');
    labelled(page, "Do", std::slice::from_ref(&finding.remedy), paper);
    for command in &finding.commands {
        let _ = writeln!(page, "{:INDENT$}  $ {command}", "");
    }
    labelled(page, "Collect", &finding.collect, paper);
    for (index, follower) in finding.follows.iter().enumerate() {
        let label = if index == 0 { "Follows" } else { "" };
        let text = format!("{} ({}): {}", follower.cause, follower.code, follower.title);
        let _ = writeln!(page, "{}", hanging(paper, &format!("{label:<INDENT$}{text}"), INDENT));
    }
}

fn also(page: &mut String, finding: &FindingReport, paper: &Paper) {
    let FindingReport { cause, code, stage, confidence, title, .. } = finding;
    let line = format!("  {cause} ({code}), {confidence}, at {stage}: {title}");
    let _ = writeln!(page, "{}", hanging(paper, &line, 4));
    if let Some(quote) = finding.evidence.first() {
        quoted(page, "", quote, paper);
    }
}

fn quoted(page: &mut String, label: &str, quote: &QuoteReport, paper: &Paper) {
    let QuoteReport { source, line, text, times, .. } = quote;
    let times = if *times > 1 { format!("  ×{times}") } else { String::new() };
    let place = paper.tone(Tone::Faint, format!("{}:{line}{times}", one_line(source)));
    let _ = writeln!(page, "{label:<INDENT$}{place}");
    let _ = writeln!(page, "{}", hanging(paper, &format!("{:INDENT$}{}", "", one_line(text)), INDENT));
}

fn labelled(page: &mut String, label: &str, texts: &[String], paper: &Paper) {
    for (index, text) in texts.iter().enumerate() {
        let label = if index == 0 { label } else { "" };
        let _ = writeln!(page, "{}", hanging(paper, &format!("{label:<INDENT$}{text}"), INDENT));
    }
}

fn inputs(page: &mut String, report: &Report, paper: &Paper) {
    let lines: u64 = report.inputs.iter().map(|input| input.lines).sum();
    let noted: Vec<_> = report.inputs.iter().filter(|input| input.note.is_some()).collect();
    let count = report.inputs.len();
    let (line_s, source_s) = (if lines == 1 { "" } else { "s" }, if count == 1 { "" } else { "s" });
    let read = format!("Read {lines} line{line_s} of {count} source{source_s}.");
    let _ = write!(page, "\n{}\n", paper.tone(Tone::Faint, read));
    for input in noted.iter().take(NAMED_MAX) {
        let note = input.note.as_deref().unwrap_or_default();
        let _ = writeln!(
            page,
            "{}",
            hanging(paper, &format!("  {}: {}", one_line(&input.name), one_line(note)), 4)
        );
    }
    if noted.len() > NAMED_MAX {
        let _ = writeln!(page, "  … and {} more; --output json names all", noted.len() - NAMED_MAX);
    }
}
