//! The plan as a page: how many need something, then what is done now, what is held and by what, what waits, what asks.

use reveille_wire::report::{HeldReport, In, PlanReport};

use super::paper::{Paper, Tone, one_line};
use super::table::{self, Text};
use crate::view::roll::spoken;

/// The page.
pub(crate) fn page(report: &PlanReport, paper: &Paper) -> String {
    let mut out = head(report, paper);
    let mut rows: Vec<Vec<Text>> = Vec::new();
    let row = |word: &str, tone: Tone, what: String, why: String| {
        vec![Text::toned(tone, word), Text::plain(what), Text::plain(why)]
    };
    for act in &report.acts {
        let why = if act.destructive { "interrupts or loses a machine" } else { "" };
        let what = format!("{}: {}", one_line(&act.subject), one_line(&act.call));
        rows.push(row("now", Tone::Good, what, why.to_owned()));
    }
    for held in &report.held {
        // The last rung is the one that would be next; those before it are passed over.
        let (what, why) = held
            .held
            .last()
            .map_or_else(|| (held.kind.clone(), String::new()), |last| (one_line(&last.what), reasons(last)));
        rows.push(row("held", Tone::Doubt, format!("{}: {what}", one_line(&held.subject)), why));
    }
    for wait in &report.waits {
        let what = format!("{}: {}", one_line(&wait.subject), wait.kind);
        rows.push(row("waits", Tone::Faint, what, wait_words(wait.until.as_ref(), &wait.why, report, paper)));
    }
    for ask in &report.asks {
        let what = format!("{}: {}", one_line(&ask.subject), ask.kind);
        rows.push(row("asks", Tone::Doubt, what, one_line(&ask.how)));
    }
    for blind in &report.blind {
        let what = format!("{}: {}", one_line(&blind.subject), blind.kind);
        rows.push(row("blind", Tone::Doubt, what, one_line(&blind.why)));
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
        return format!("{name}: nothing needs anything.\n");
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
    held.why.iter().map(|why| one_line(why)).collect::<Vec<_>>().join(" · ")
}

fn wait_words(until: Option<&In>, why: &str, report: &PlanReport, paper: &Paper) -> String {
    match until {
        Some(until) if until.in_s > 0.0 => {
            let clock = paper.clock(until.at, report.at);
            format!("until {clock}, {} more: {}", spoken(until.in_s), one_line(why))
        }
        _ => one_line(why),
    }
}
