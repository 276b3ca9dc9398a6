//! The page of `plan`: how many incidents need something, then what is done now, what is blocked, what
//! waits, what needs an operator.

use reveille_wire::report::{HeldReport, NextReport, PlanReport, WaitReport};

use super::output_style::{Paper, Tone, one_line};
use super::table::{self, Text};
use crate::view::status::spoken;
use crate::view::{all_trusted, next};

/// The page.
pub(crate) fn page(report: &PlanReport, paper: &Paper) -> String {
    let mut out = head(report, paper);
    out.push_str(&super::blind(&report.sources, paper));
    out.push_str(&super::paused(&report.pauses, paper));
    let mut rows: Vec<Vec<Text>> = Vec::new();
    let mut row = |word: &str, tone: Tone, subject: &str, text: String| {
        rows.push(vec![Text::toned(tone, word), Text::plain(one_line(subject)), Text::plain(text)]);
    };
    for act in &report.acts {
        row("now", Tone::Good, &act.subject, one_line(&act.call));
    }
    for held in &report.held {
        // The last repair step is the next one; the steps before it were skipped.
        let text = held.held.last().map_or_else(|| held.kind.clone(), reasons);
        row("blocked", Tone::Doubt, &held.subject, text);
    }
    for wait in &report.waits {
        row("waiting", Tone::Faint, &wait.subject, wait_words(wait, report, paper));
    }
    for ask in &report.asks {
        row("manual", Tone::Doubt, &ask.subject, format!("{}: {}", ask.kind, one_line(&ask.how)));
    }
    for blind in &report.blind {
        row("unknown", Tone::Doubt, &blind.subject, format!("{}: {}", blind.kind, one_line(&blind.why)));
    }
    if !rows.is_empty() {
        out.push_str(&table::lines(paper, 1, rows));
    }
    out
}

fn head(report: &PlanReport, paper: &Paper) -> String {
    let summary = &report.summary;
    let name = paper.tone(Tone::Strong, one_line(&report.roster));
    if summary.incidents == 0 {
        return if all_trusted(&report.sources) {
            format!("{name}: no problems.\n")
        } else if report.sources.iter().any(|source| source.trusted) {
            format!("{name}: no known problems, but some data is missing.\n")
        } else {
            format!("{name}: unknown: no data source can be read.\n")
        };
    }
    let need = if summary.incidents == 1 {
        "1 problem".to_owned()
    } else {
        format!("{} problems", summary.incidents)
    };
    let counts = [
        (summary.acts, "repaired now"),
        (summary.held, "blocked"),
        (summary.waits, "waiting"),
        (summary.asks, "for manual action"),
        (summary.blind, "unknown"),
    ];
    let said: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    format!("{name}: {need}: {}.\n", said.join(", "))
}

fn reasons(held: &HeldReport) -> String {
    let why: Vec<String> = held.why.iter().map(|why| one_line(why)).collect();
    format!("{}: {}", one_line(&held.what), why.join(" · "))
}

fn wait_words(wait: &WaitReport, report: &PlanReport, paper: &Paper) -> String {
    let when = match &wait.until {
        Some(until) if until.in_s > 0.0 => {
            format!("at {}, in {}: ", paper.clock(until.at, report.at), spoken(until.in_s))
        }
        _ => String::new(),
    };
    let next = NextReport { what: wait.why.clone(), not_before: None, then: wait.then.clone() };
    format!("{}: {}", wait.kind, one_line(&next::line(&next, &when)))
}
