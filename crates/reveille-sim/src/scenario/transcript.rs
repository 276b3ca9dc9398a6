//! A play as a page: what was given, what happened in which order, and how each expectation ended.

use std::fmt::Write as _;

use super::Scenario;
use super::player::{Ended, Expected, Played};
use super::timeline::Line;
use super::words::shown;

/// More lines than this are no story any more: the middle is left out.
const LINES_MAX: usize = 120;
/// More names than this are counted.
const NAMES_MAX: usize = 4;

/// The page.
pub fn transcript(scenario: &Scenario, played: Option<&Played>) -> String {
    let mut page = String::new();
    put(&mut page, &format!("{}  {}", scenario.number, scenario.title));
    if !scenario.source.is_empty() {
        put(&mut page, &format!("    after {}", scenario.source));
    }
    if let Some(reason) = &scenario.not_yet {
        put(&mut page, &format!("    not yet: {reason}"));
    }
    if let Some(reason) = &scenario.differs {
        put(&mut page, &format!("    differs: {reason}"));
    }
    if !scenario.given.is_empty() {
        put(&mut page, "\ngiven");
        scenario.given.iter().for_each(|given| put(&mut page, &format!("  {given}")));
    }
    let Some(played) = played else { return page };
    put(&mut page, "\nwhat happened");
    let lines = &played.timeline;
    let (head, tail) = if lines.len() > LINES_MAX { (LINES_MAX - 40, 40) } else { (lines.len(), 0) };
    lines[..head].iter().for_each(|line| put(&mut page, &line_of(line)));
    if tail > 0 {
        put(&mut page, &format!("           … {} lines more …", lines.len() - head - tail));
        lines[lines.len() - tail..].iter().for_each(|line| put(&mut page, &line_of(line)));
    }
    if lines.is_empty() {
        put(&mut page, "  nothing");
    }
    put(&mut page, "\nwhat was expected");
    played.expected.iter().for_each(|expected| put(&mut page, &expected_of(expected)));
    let held = played.expected.iter().filter(|expected| matches!(expected.ended, Ended::Held(_))).count();
    let word = if played.holds() { "holds" } else { "does not hold" };
    let counts = played.counts;
    put(
        &mut page,
        &format!(
            "\n{} {word}: {held} of {} expectations; {} of its own time, {}, {}, {}",
            scenario.number,
            played.expected.len(),
            shown(played.lasted),
            counted(counts.calls, "call"),
            counted(counts.looks, "read"),
            counted(counts.records, "record")
        ),
    );
    page
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn put(page: &mut String, line: &str) {
    let written = writeln!(page, "{}", line.trim_end());
    debug_assert!(written.is_ok(), "writing into a text does not fail");
}

/// A line of the timeline.
pub(crate) fn line_of(line: &Line) -> String {
    let who = match line.who.len() {
        0 => String::new(),
        count if count > NAMES_MAX + 1 => {
            format!("{} and {} more: ", line.who[..NAMES_MAX].join(", "), count - NAMES_MAX)
        }
        _ => format!("{}: ", line.who.join(", ")),
    };
    format!("  {:>8}  {:<8}  {who}{}", shown(line.at), line.side.name(), line.text)
}

fn expected_of(expected: &Expected) -> String {
    match &expected.ended {
        Ended::Held(None) => format!("  ✓ {}", expected.text),
        Ended::Held(Some(at)) => format!("  ✓ {}  ({})", expected.text, shown(*at)),
        Ended::Failed(at, instead) => {
            let line = if expected.line == 0 { String::new() } else { format!("line {}: ", expected.line) };
            format!("  ✗ {line}{}\n      instead, at {}: {instead}", expected.text, shown(*at))
        }
    }
}
