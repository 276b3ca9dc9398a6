//! Comparisons as text: tables for a terminal, tables for a page.
//!
//! One line for each policy: wrong acts among destructive ones, healthy machines that it took away, places cured among those
//! that were open, how long a cure took (half of them, and nine of ten), calls that change something, reads, and whether
//! all was well at the end. Below, why acts were wrong. Programs take the numbers from [`Score`] itself.

use std::fmt::Write as _;

use reveille_core::model::time::Span;

use super::{Comparison, Score};
use crate::policy::Policy;

const HEAD: [&str; 10] =
    ["policy", "wrong", "acts", "broken", "cured", "of", "half in", "9 of 10 in", "calls", "reads"];
const LAST: &str = "all well at the end";

/// The cells of one policy's line.
fn cells(policy: Policy, score: &Score) -> [String; 11] {
    let time = |span: Option<Span>| span.map_or_else(|| "–".to_owned(), |span| span.to_string());
    let well = match (score.subjects, score.ended_well) {
        (1, 0) => "no".to_owned(),
        (1, _) => "yes".to_owned(),
        (of, well) => format!("{well} of {of}"),
    };
    [
        policy.name().to_owned(),
        score.wrongs().to_string(),
        score.acts.to_string(),
        score.broken.to_string(),
        score.cured.len().to_string(),
        score.places.to_string(),
        time(score.cured_within(50)),
        time(score.cured_within(90)),
        score.calls.to_string(),
        score.reads.to_string(),
        well,
    ]
}

/// For a terminal: the name, what happens, the table, and the reasons.
pub fn text(comparison: &Comparison) -> String {
    let head: Vec<String> = HEAD.iter().chain([&LAST]).map(|cell| (*cell).to_owned()).collect();
    let lines: Vec<Vec<String>> =
        comparison.scores.iter().map(|(policy, score)| cells(*policy, score).to_vec()).collect();
    let width = |column: usize| {
        let all = std::iter::once(&head).chain(&lines);
        all.filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let mut out = format!("{}: {}\n\n", comparison.name, comparison.about);
    for line in std::iter::once(&head).chain(&lines) {
        let mut row = String::new();
        for (column, cell) in line.iter().enumerate() {
            let pad = " ".repeat(width(column).saturating_sub(cell.chars().count()));
            // Words stand left, numbers right.
            if column == 0 || column + 1 == head.len() {
                let _ = write!(row, "{cell}{pad}  ");
            } else {
                let _ = write!(row, "{pad}{cell}  ");
            }
        }
        let _ = writeln!(out, "  {}", row.trim_end());
    }
    for (policy, why) in reasons(comparison) {
        let _ = writeln!(out, "\n  {policy} was wrong: {why}");
    }
    out
}

/// For a page: the table in Markdown, and the reasons as a list.
pub fn markdown(comparison: &Comparison) -> String {
    let mut out = format!("| {} | {LAST} |\n|{}\n", HEAD.join(" | "), " --- |".repeat(HEAD.len() + 1));
    for (policy, score) in &comparison.scores {
        let _ = writeln!(out, "| {} |", cells(*policy, score).join(" | "));
    }
    let reasons = reasons(comparison);
    if !reasons.is_empty() {
        out.push('\n');
    }
    for (policy, why) in reasons {
        let _ = writeln!(out, "* {policy} was wrong: {why}");
    }
    out
}

/// Why acts were wrong, policy by policy, in words.
fn reasons(comparison: &Comparison) -> Vec<(Policy, String)> {
    let wrong = comparison.scores.iter().filter(|(_, score)| !score.wrong.is_empty());
    let words = |score: &Score| {
        let each = score.wrong.iter().map(|(wrong, count)| format!("{count} × {}", wrong.text()));
        each.collect::<Vec<_>>().join(", ")
    };
    wrong.map(|(policy, score)| (*policy, words(score))).collect()
}
