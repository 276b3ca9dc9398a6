//! Reports as text for people: the most useful line first, in aligned columns.
//!
//! ```text
//!  report ─▶ status | why | plan | incidents | doctor ─▶ String        Paper: width, colours, time zone
//! ```
//!
//! Each renderer takes plain data and returns one string, so that tests can compare a page with a file. Colour only
//! repeats what a sign or a word says. Foreign texts lose their control characters here. Nothing is decided.

pub(crate) mod doctor;
#[cfg(feature = "controller")]
pub(crate) mod hot;
#[cfg(feature = "controller")]
pub(crate) mod incidents;
pub(crate) mod join;
pub(crate) mod markdown;
pub(crate) mod output_style;
#[cfg(feature = "controller")]
pub(crate) mod plan;
#[cfg(feature = "controller")]
pub(crate) mod rancher;
#[cfg(feature = "controller")]
pub(crate) mod repairs;
#[cfg(feature = "controller")]
pub(crate) mod stage;
#[cfg(feature = "controller")]
pub(crate) mod status;
pub(crate) mod table;
#[cfg(feature = "controller")]
mod way;
#[cfg(feature = "controller")]
pub(crate) mod why;
pub(crate) mod wrap;

#[cfg(test)]
#[cfg(feature = "controller")]
mod tests;

use reveille_wire::report::{PauseReport, SourceReport};

use self::output_style::{Paper, Tone, one_line};

/// Data sources that cannot be trusted, one line each.
fn blind(sources: &[SourceReport], paper: &Paper) -> String {
    let line = |source: &SourceReport| {
        let why = one_line(source.why_not.as_deref().unwrap_or("not read yet"));
        let line = format!("? No reliable data from {}: {why}", one_line(&source.name));
        wrap::hanging(paper, &paper.tone(Tone::Doubt, line), 2) + "\n"
    };
    sources.iter().filter(|source| !source.trusted).map(line).collect()
}

/// The pauses, one line each.
fn paused(pauses: &[PauseReport], paper: &Paper) -> String {
    let line = |pause: &PauseReport| {
        let (scope, by, reason) = (one_line(&pause.scope), one_line(&pause.by), one_line(&pause.reason));
        let line = format!("paused: {scope}, by {by}: {reason}");
        wrap::hanging(paper, &paper.tone(Tone::Doubt, line), 2) + "\n"
    };
    pauses.iter().map(line).collect()
}
