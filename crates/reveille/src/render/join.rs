//! The result of a join, in one line; the events before it were printed when they happened.

use reveille_wire::report::{JoinEnded, JoinReport};

use crate::cli::exit::Exit;
use crate::cli::failure::printable;

/// The exit code of the report.
pub(crate) const fn exit(report: &JoinReport) -> Exit {
    match report.ended {
        JoinEnded::Joined => Exit::NoProblem,
        JoinEnded::LeftAlone | JoinEnded::Stranger | JoinEnded::GaveUp => Exit::Problems,
        JoinEnded::Late => Exit::CannotTell,
    }
}

/// The last line.
pub(crate) fn page(report: &JoinReport) -> String {
    let JoinReport { node, took_s, stay_s, .. } = report;
    let why = printable(report.why.as_deref().unwrap_or("no reason is known"));
    match report.ended {
        JoinEnded::Joined => {
            format!("{node} is Ready and has stayed for {stay_s} s; all of it took {took_s} s\n")
        }
        JoinEnded::LeftAlone => format!("{node} is left alone: {why}\n"),
        JoinEnded::Stranger | JoinEnded::GaveUp | JoinEnded::Late => {
            format!("{node} did not join in {took_s} s: {why}\n")
        }
    }
}
