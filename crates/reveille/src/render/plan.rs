//! The plan as a page: how many need something, then what is done now, what is held and by what, what waits, what asks.

use reveille_wire::report::{HeldReport, NextReport, PlanReport, WaitReport};

use super::paper::{Paper, Tone, one_line};
use super::table::{self, Text};
use crate::view::roll::spoken;
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
        // The last rung is the one that would be next; those before it were passed over.
        let text = held.held.last().map_or_else(|| held.kind.clone(), reasons);
        row("held", Tone::Doubt, &held.subject, text);
    }
    for wait in &report.waits {
        row("waits", Tone::Faint, &wait.subject, wait_words(wait, report, paper));
    }
    for ask in &report.asks {
        row("asks", Tone::Doubt, &ask.subject, format!("{}: {}", ask.kind, one_line(&ask.how)));
    }
    for blind in &report.blind {
        row("blind", Tone::Doubt, &blind.subject, format!("{}: {}", blind.kind, one_line(&blind.why)));
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
            format!("{name}: nothing needs anything.\n")
        } else {
            format!("{name}: nothing is known to need anything, but not everything could be seen.\n")
        };
    }
    let need = if summary.incidents == 1 {
        "1 thing needs".to_owned()
    } else {
        format!("{} things need", summary.incidents)
    };
    let counts = [
        (summary.acts, "acts now", "act now"),
        (summary.held, "is held", "are held"),
        (summary.waits, "waits", "wait"),
        (summary.asks, "asks a person", "ask a person"),
        (summary.blind, "cannot be judged", "cannot be judged"),
    ];
    let said: Vec<String> = counts
        .iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, many)| format!("{count} {}", if *count == 1 { one } else { many }))
        .collect();
    format!("{name}: {need} something. {}.\n", said.join(", "))
}

fn reasons(held: &HeldReport) -> String {
    let why: Vec<String> = held.why.iter().map(|why| one_line(why)).collect();
    format!("{}: {}", one_line(&held.what), why.join(" · "))
}

fn wait_words(wait: &WaitReport, report: &PlanReport, paper: &Paper) -> String {
    let when = match &wait.until {
        Some(until) if until.in_s > 0.0 => {
            format!("until {}, {} more: ", paper.clock(until.at, report.at), spoken(until.in_s))
        }
        _ => String::new(),
    };
    let next = NextReport { what: wait.why.clone(), not_before: None, then: wait.then.clone() };
    format!("{}: {}", wait.kind, one_line(&next::line(&next, &when)))
}
