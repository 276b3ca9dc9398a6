//! Open and closed incidents, the newest first.

use reveille_core::engine::Closed;
use reveille_core::plan::context::PlanContext;
use reveille_wire::report::{Ago, IncidentReport, IncidentsReport};

/// Open incidents, and closed ones with `all`.
pub(crate) fn report<'a>(
    context: &PlanContext<'_>,
    closed: impl Iterator<Item = &'a Closed>,
    all: bool,
) -> IncidentsReport {
    let mut open: Vec<_> = context.cases.values().map(|case| &case.incident).collect();
    open.sort_by_key(|incident| std::cmp::Reverse(incident.id));
    let mut incidents: Vec<IncidentReport> =
        open.into_iter().map(|incident| IncidentReport::open(incident, context.now)).collect();
    if all {
        let mut over: Vec<&Closed> = closed.collect();
        over.sort_by_key(|closed| std::cmp::Reverse((closed.at, closed.incident.id)));
        incidents.extend(over.into_iter().map(|closed| IncidentReport {
            verdict: Some(closed.verdict.name().to_owned()),
            closed: Some(Ago::new(closed.at, context.now)),
            not_before: None,
            kept_until: None,
            well: None,
            ..IncidentReport::open(&closed.incident, context.now)
        }));
    }
    IncidentsReport {
        roster: context.roster.name.to_string(),
        at: context.now,
        sources: super::sources(context),
        incidents,
        tried: super::tried(context),
    }
}

/// The exit code of the report.
pub(crate) fn exit(report: &IncidentsReport) -> crate::cli::exit::Exit {
    use crate::cli::exit::Exit;
    if report.incidents.iter().any(|incident| incident.verdict.is_none()) {
        Exit::Problems
    } else if super::all_trusted(&report.sources) {
        Exit::NoProblem
    } else {
        Exit::CannotTell
    }
}
