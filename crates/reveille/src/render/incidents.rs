//! Incidents as a table, the newest first.

use reveille_wire::report::{IncidentReport, IncidentsReport};

use super::output_style::{Paper, Tone, one_line};
use super::table::{self, Text};
use crate::view::machine::verdict_words_of;
use crate::view::status::spoken_ago;

/// On a terminal with fewer columns, cause, attempts and state share a column.
const WIDE: u16 = 120;

/// The page. `all` tells whether the operator asked for closed incidents too.
pub(crate) fn page(report: &IncidentsReport, all: bool, paper: &Paper) -> String {
    let name = paper.tone(Tone::Strong, one_line(&report.roster));
    let open = report.incidents.iter().filter(|incident| incident.verdict.is_none()).count();
    let over = report.incidents.len() - open;
    let hint = if all { String::new() } else { "  (closed ones: reveille incidents --all)".to_owned() };
    let mut out = match (open, all) {
        (0, false) => format!("{name}: no incident is open.{hint}\n"),
        (_, false) => format!("{name}: {open} open.{hint}\n"),
        (_, true) => format!("{name}: {open} open, {over} closed.\n"),
    };
    out.push_str(&super::blind(&report.sources, paper));
    if report.incidents.is_empty() {
        return out + &tried(report, paper);
    }
    out.push('\n');
    let narrow = paper.width.is_some_and(|width| width < WIDE);
    let head: &[&str] = if narrow {
        &["ID", "SUBJECT", "KIND", "SINCE", "STATE"]
    } else {
        &["ID", "SUBJECT", "KIND", "SINCE", "CAUSE", "TRIES", "STATE"]
    };
    let mut rows: Vec<Vec<Text>> = vec![head.iter().map(|text| Text::toned(Tone::Faint, *text)).collect()];
    for incident in &report.incidents {
        let cause = incident.findings.first();
        let cause =
            cause.map_or_else(|| "–".to_owned(), |finding| format!("{} {}", finding.code, finding.cause));
        let (stands, tone) = stands(incident, report, paper);
        let tries = incident.attempts.len();
        let mut row = vec![
            Text::plain(&incident.id),
            Text::plain(one_line(&incident.label)),
            Text::plain(&incident.kind),
            Text::plain(spoken_ago(incident.since.ago_s)),
        ];
        if narrow {
            let tries = if tries == 1 { "1 try".to_owned() } else { format!("{tries} tries") };
            row.push(Text::toned(tone, format!("{stands}; {cause}; {tries}")));
        } else {
            row.extend([Text::plain(cause), Text::plain(tries.to_string()), Text::toned(tone, stands)]);
        }
        rows.push(row);
    }
    out.push_str(&table::lines(paper, 0, rows));
    out + &tried(report, paper)
}

/// Only the difference between these two numbers shows that an API accepts calls without effect.
fn tried(report: &IncidentsReport, paper: &Paper) -> String {
    let mut label = "repairs";
    let mut rows = Vec::new();
    for tried in &report.tried {
        let tone = if tried.verified < tried.requested { Tone::Doubt } else { Tone::Good };
        let counts = format!("{}: {} attempted, {} confirmed", tried.repair, tried.requested, tried.verified);
        rows.push(vec![Text::toned(Tone::Faint, label), Text::toned(tone, counts)]);
        label = "";
    }
    if rows.is_empty() { String::new() } else { format!("\n{}", table::lines(paper, 0, rows)) }
}

fn stands(incident: &IncidentReport, report: &IncidentsReport, paper: &Paper) -> (String, Tone) {
    match (&incident.verdict, &incident.closed, incident.given_up) {
        (Some(verdict), Some(closed), _) => {
            (format!("{} at {}", verdict_words_of(verdict), paper.clock(closed.at, report.at)), Tone::Good)
        }
        (Some(verdict), None, _) => (verdict_words_of(verdict).to_owned(), Tone::Good),
        (None, _, true) => ("open, manual action needed".to_owned(), Tone::Bad),
        (None, _, false) if incident.well.is_some() => ("open, recovered".to_owned(), Tone::Doubt),
        (None, _, false) if incident.kept_until.is_some() => {
            let until = incident
                .kept_until
                .as_ref()
                .map_or_else(String::new, |until| paper.clock(until.at, report.at));
            (format!("open, kept until {until}"), Tone::Doubt)
        }
        (None, _, false) => match &incident.not_before {
            Some(until) => (format!("open, not before {}", paper.clock(until.at, report.at)), Tone::Doubt),
            None => ("open".to_owned(), Tone::Doubt),
        },
    }
}
