//! The status report: a row for every machine, those that are not Ready first, and what happens next.
//!
//! Problems of groups and routers have no row. They are listed under what happens next, because they keep machines from
//! joining all the same.

use reveille_core::model::incident::Subject;
use reveille_core::plan::context::PlanContext;
use reveille_wire::report::{StatusReport, StatusSummary};

use super::machine::{self, Machine};
use super::next;

/// The most lines about what happens next; the plan has all of them.
const NEXT_MAX: usize = 5;

/// Makes the status report.
pub(crate) fn report(context: &PlanContext<'_>) -> StatusReport {
    let machines = machine::all(context);
    let mut rows: Vec<_> = machines.iter().map(|machine| machine.report(context)).collect();
    rows.sort_by(|a, b| {
        let order = |row: &reveille_wire::report::MachineReport| (row.answers, row.state == "ready");
        (order(a), &a.name, &a.key).cmp(&(order(b), &b.name, &b.key))
    });
    StatusReport {
        roster: context.roster.name.to_string(),
        at: context.now,
        summary: StatusSummary::of(&rows),
        sources: super::sources(context),
        pauses: super::pauses(context),
        machines: rows,
        next: next_lines(context, &machines),
        // The engine does not know these fields; the caller adds them.
        rancher: None,
        hot: Vec::new(),
        hot_unread: Vec::new(),
        alone: None,
    }
}

fn next_lines(context: &PlanContext<'_>, machines: &[Machine<'_>]) -> Vec<String> {
    let mut lines = Vec::new();
    let shared = context.cases.values().filter(|case| {
        !matches!(case.incident.key.subject, Subject::Machine(_)) && case.incident.well_since.is_none()
    });
    for case in shared {
        let decision = next::decision(context, case);
        let what = next::report(context, case, &decision).what;
        lines.push(format!("{}: {}: {what}", case.incident.label, machine::case_clause(case)));
    }
    let mut troubled: Vec<&Machine<'_>> =
        machines.iter().filter(|machine| machine.root().is_some()).collect();
    troubled.sort_by_key(|machine| (machine.answers(), machine.name()));
    for machine in troubled {
        let Some(case) = machine.root() else { continue };
        let decision = next::decision(context, case);
        let next = next::report(context, case, &decision);
        let when = next.not_before.map_or_else(String::new, |until| format!("in {}: ", spoken(until.in_s)));
        lines.push(format!("{}: {}", machine.name(), next::line(&next, &when)));
    }
    let more = lines.len().saturating_sub(NEXT_MAX);
    lines.truncate(NEXT_MAX);
    if more > 0 {
        lines.push(format!("and {more} more: reveille plan"));
    }
    lines
}

/// Seconds as text, in the core's format.
pub(crate) fn spoken(seconds: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "a report's seconds come from milliseconds that fit")]
    let ms = (seconds * 1000.0) as i64;
    reveille_core::model::time::Span::from_ms(ms.max(0)).to_string()
}

/// How long ago, as text.
pub(crate) fn spoken_ago(seconds: f64) -> String {
    if seconds < 1.0 { "just now".to_owned() } else { format!("{} ago", spoken(seconds)) }
}

/// The exit code of the report.
pub(crate) fn exit(report: &StatusReport) -> crate::cli::exit::Exit {
    use crate::cli::exit::Exit;
    let none_was_asked = report.machines.is_empty() && !super::all_trusted(&report.sources);
    if report.summary.absent > 0 {
        Exit::Problems
    } else if report.summary.unknown > 0 || none_was_asked {
        Exit::CannotTell
    } else {
        Exit::NoProblem
    }
}
