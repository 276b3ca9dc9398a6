//! The timeline of a machine through the stages, from both sides, for a report.
//!
//! It is shown where an agent has reported, now or before a restart. Without an agent it would only repeat the list of stages.

use reveille_core::decide::due_at;
use reveille_core::model::incident::{MachineKey, Subject};
use reveille_core::model::stage::Stage;
use reveille_core::model::time::Time;
use reveille_core::model::trace::{Passage, Trace};
use reveille_core::plan::context::PlanContext;
use reveille_registrar::registry::settings::stage_within;
use reveille_wire::report::{
    AgentReport, Ago, PassageReport, Side, SilenceReport, StageReport, TimelineReport, TimelineRow, WayReport,
};

/// The stage of the machine as its agent reports it: the stage that it entered last and has not left.
pub(super) fn stands(trace: &Trace) -> Option<Stage> {
    let open = trace.said.iter().filter(|row| row.left.is_none());
    open.max_by_key(|row| row.entered).map(|row| row.stage)
}

/// The stages one by one; `stages` is the list with their states.
pub(super) fn timeline(
    context: &PlanContext<'_>,
    key: &MachineKey,
    trace: Option<&Trace>,
    stages: &[StageReport],
) -> TimelineReport {
    let deadline = deadline(context, key);
    let row = |strip: &StageReport| {
        let of = |rows: &[Passage]| rows.iter().find(|row| row.stage.name() == strip.name).cloned();
        let said = trace.and_then(|trace| of(&trace.said));
        let seen = trace.and_then(|trace| of(&trace.seen));
        TimelineRow {
            stage: strip.name.clone(),
            number: strip.number,
            state: strip.state,
            outside: seen.map(|row| PassageReport::new(&row, Side::Outside, deadline, context.now)),
            agent: said.map(|row| {
                // The time at which a stage of a join should be over; the controller does not act on it alone.
                let until = row.entered + stage_within(row.stage);
                PassageReport::new(&row, Side::Agent, Some(until), context.now)
            }),
        }
    };
    let silent = context.agents.latest(key).filter(|(_, seen)| !context.agents.is_fresh(context.now, seen));
    let silence = silent.map(|(_, seen)| SilenceReport {
        since: Ago::new(seen.heard, context.now),
        stage: trace.and_then(stands).map(|stage| stage.name().to_owned()),
    });
    TimelineReport { rows: stages.iter().map(row).collect(), silence }
}

/// The timeline, where there is one.
pub(super) fn report(
    context: &PlanContext<'_>,
    key: &MachineKey,
    trace: Option<&Trace>,
) -> Option<WayReport> {
    let agent = context.agents.latest(key).map(|(id, seen)| AgentReport {
        id: id.to_string(),
        heard: Ago::new(seen.heard, context.now),
        silent: !context.agents.is_fresh(context.now, seen),
        holds: seen.report.blocker.as_ref().map(|blocker| blocker.text.to_string()),
        at_work: seen
            .report
            .work
            .as_ref()
            .map(|work| format!("{}, attempt {} of {}", work.what, work.attempt, work.of)),
    });
    let trace = trace.filter(|trace| !trace.is_empty());
    if agent.is_none() && trace.is_none_or(|trace| trace.said.is_empty()) {
        return None;
    }
    let deadline = deadline(context, key);
    let seen = trace.into_iter().flat_map(|trace| &trace.seen);
    let seen = seen.map(|row| (row, PassageReport::new(row, Side::Outside, deadline, context.now)));
    let said = trace.into_iter().flat_map(|trace| &trace.said);
    let said = said.map(|row| (row, PassageReport::new(row, Side::Agent, None, context.now)));
    let mut rows: Vec<_> = seen.chain(said).collect();
    rows.sort_by_key(|(row, report)| (row.entered, row.stage, report.by == Side::Agent));
    Some(WayReport { passages: rows.into_iter().map(|(_, report)| report).collect(), agent })
}

/// When the controller acts on the machine's stage: the deadline of its incident.
fn deadline(context: &PlanContext<'_>, key: &MachineKey) -> Option<Time> {
    let open = |subject: &Subject| matches!(subject, Subject::Machine(machine) if machine == key);
    let absence = context.cases.values().find(|case| {
        open(&case.incident.key.subject)
            && case.incident.key.kind.is_absence()
            && case.incident.well_since.is_none()
    });
    let deadline = absence.and_then(|case| due_at(context, case).ok().flatten());
    deadline.filter(|at| *at > context.now)
}
