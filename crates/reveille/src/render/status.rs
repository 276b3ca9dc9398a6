//! The page of `status`: how many machines are Ready and how old the data is, which machines are not Ready, what happens next.

use reveille_wire::report::{Ago, Answers, MachineReport, SourceReport, StatusReport};

use super::hot;
use super::output_style::{Paper, Tone, one_line};
use super::table::{self, Text};
use super::wrap;
use crate::view::status::spoken;

/// The most hot objects on the page.
const HOT_MAX: usize = 3;

/// The page. `all`: also the machines that are Ready.
pub(crate) fn page(report: &StatusReport, all: bool, paper: &Paper) -> String {
    let mut out = head(report, paper);
    let well = |machine: &&MachineReport| machine.state == "ready";
    let excused = |machine: &&MachineReport| machine.answers == Answers::Excused;
    let quiet = |machine: &&MachineReport| well(machine) || excused(machine);
    let shown: Vec<&MachineReport> =
        report.machines.iter().filter(|machine| all || !quiet(machine)).collect();
    if !shown.is_empty() {
        out.push('\n');
        out.push_str(&rows(&shown, paper));
    }
    if !all {
        out.push_str(&hidden(
            report.machines.iter().filter(well).count(),
            report.machines.iter().filter(excused).count(),
            !shown.is_empty(),
            paper,
        ));
    }
    if let Some(rancher) = &report.rancher {
        out.push_str(&super::rancher::of_status(rancher, paper));
    }
    if !report.next.is_empty() {
        out.push('\n');
        let why = shown.iter().find(|machine| machine.answers != Answers::Yes).or(shown.first());
        for (index, next) in report.next.iter().enumerate() {
            let label = if index == 0 { "next:" } else { "     " };
            line_to(&mut out, &wrap::hanging(paper, &format!("{label} {}", one_line(next)), 8));
        }
        if let Some(machine) = why {
            line_to(
                &mut out,
                &paper.tone(Tone::Faint, format!("      reveille why {}", one_line(&machine.name))),
            );
        }
    }
    out
}

/// The number of hidden machines. When all are Ready, the first line has said so already.
fn hidden(well: usize, excused: usize, others_shown: bool, paper: &Paper) -> String {
    let mut out = String::new();
    if well > 0 && others_shown {
        let are = if well == 1 { "is" } else { "are" };
        line_to(
            &mut out,
            &paper.tone(Tone::Faint, format!("  {well} more {are} Ready  (reveille status --all)")),
        );
    }
    if excused > 0 {
        let are = if excused == 1 { "is" } else { "are" };
        let line = format!("  {excused} {are} building or leaving on purpose  (reveille status --all)");
        line_to(&mut out, &paper.tone(Tone::Faint, line));
    }
    out
}

fn line_to(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}

fn head(report: &StatusReport, paper: &Paper) -> String {
    let count = report.machines.len();
    let mut parts = vec![format!("{} Ready", report.summary.answer)];
    if report.summary.absent > 0 {
        parts.push(paper.tone(Tone::Bad, format!("{} not Ready or missing", report.summary.absent)));
    }
    if report.summary.unknown > 0 {
        parts.push(paper.tone(Tone::Doubt, format!("{} unknown", report.summary.unknown)));
    }
    if report.summary.excused > 0 {
        parts.push(format!("{} building or leaving", report.summary.excused));
    }
    let machines = if count == 1 { "1 machine".to_owned() } else { format!("{count} machines") };
    let name = paper.tone(Tone::Strong, one_line(&report.roster));
    let head = format!("{name} · {machines} · {} · {}", parts.join(", "), sources(&report.sources));
    let mut out = wrap::hanging(paper, &head, 2) + "\n";
    out.push_str(&super::blind(&report.sources, paper));
    out.push_str(&super::paused(&report.pauses, paper));
    for verdict in report.hot.iter().take(HOT_MAX) {
        let line = paper.tone(Tone::Doubt, format!("hot: {}", hot::line(verdict)));
        line_to(&mut out, &wrap::hanging(paper, &line, 5));
    }
    if let more @ 1.. = report.hot.len().saturating_sub(HOT_MAX) {
        line_to(&mut out, &paper.tone(Tone::Doubt, format!("     and {more} more: reveille hot")));
    }
    if let Some(alone) = &report.alone {
        let line = paper.tone(Tone::Doubt, format!("! {}", one_line(alone)));
        line_to(&mut out, &wrap::hanging(paper, &line, 2));
    }
    for unread in &report.hot_unread {
        let line = paper.tone(Tone::Doubt, format!("? {}", one_line(unread)));
        line_to(&mut out, &wrap::hanging(paper, &line, 2));
    }
    out
}

fn sources(sources: &[SourceReport]) -> String {
    let one = |source: &SourceReport| match &source.read {
        Some(read) if source.complete => format!("{} {} old", source.name, spoken(read.ago_s)),
        Some(read) => format!("{} {} old (incomplete since)", source.name, spoken(read.ago_s)),
        None => format!("{} not read", source.name),
    };
    let all: Vec<String> = sources.iter().map(one).collect();
    let complete = sources.iter().all(|source| source.complete && source.trusted);
    format!("sources: {}{}", all.join(", "), if complete { " (complete)" } else { "" })
}

fn rows(shown: &[&MachineReport], paper: &Paper) -> String {
    let head = ["", "MACHINE", "POOL", "STAGE", "SINCE", "WHAT"];
    let mut rows: Vec<Vec<Text>> = vec![head.iter().map(|text| Text::toned(Tone::Faint, *text)).collect()];
    for machine in shown {
        let (sign, tone) = sign(machine);
        rows.push(vec![
            Text::toned(tone, sign),
            Text::plain(one_line(&machine.name)),
            Text::plain(machine.pool.as_deref().map_or_else(|| "–".to_owned(), one_line)),
            Text::plain(machine.stage.as_deref().unwrap_or("–")),
            Text::plain(machine.since.as_ref().map_or_else(|| "–".to_owned(), since)),
            Text::plain(one_line(&machine.what)),
        ]);
    }
    // There is less space between the sign and its machine than between columns.
    table::lines(paper, 0, rows).lines().map(close_sign).collect()
}

fn since(since: &Ago) -> String {
    if since.ago_s < 1.0 { "now".to_owned() } else { spoken(since.ago_s) }
}

fn close_sign(line: &str) -> String {
    format!("{}\n", line.replacen("  ", " ", 1))
}

/// The sign in front of a machine, and its tone.
pub(crate) fn sign(machine: &MachineReport) -> (&'static str, Tone) {
    match (machine.answers, machine.state.as_str()) {
        (Answers::No, _) => ("✗", Tone::Bad),
        (Answers::Excused, _) => ("·", Tone::Faint),
        (Answers::Unknown, _) => ("?", Tone::Doubt),
        (Answers::Yes, "ready") => ("✓", Tone::Good),
        (Answers::Yes, _) => ("!", Tone::Doubt),
    }
}
