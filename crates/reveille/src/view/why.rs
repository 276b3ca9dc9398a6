//! One machine: how far it came, why it stopped, what was tried, what comes next, what is blocked.
//!
//! The report has everything that is open about the machine, the problem to act on first. Attempts of recently closed
//! incidents stay in the report, because "it was repaired an hour ago and is back" is part of the answer.

use std::cmp::Ordering;

use reveille_core::engine::Closed;
use reveille_core::model::attempt::Attempt;
use reveille_core::model::incident::{Finding, MachineKey, Subject};
use reveille_core::model::stage::Stage;
use reveille_core::model::time::Span;
use reveille_core::model::trace::Trace;
use reveille_core::plan::context::PlanContext;
use reveille_wire::report::{
    Answers, AskedReport, AttemptReport, FindingReport, StageReport, StageState, WhyReport,
};

use super::machine::{self, Machine};
use super::{next, way};

/// Attempts of closed incidents stay in the report for this long.
const RECENT: Span = Span::from_min(120);
/// The most attempts in the report, the newest ones.
const DONE_MAX: usize = 20;

/// Data for the report that is not in the planning context.
pub(crate) struct WhyInput<'a> {
    /// The machine's timeline, as the engine keeps it.
    pub(crate) trace: Option<&'a Trace>,
    /// Whether the report has the stages one by one.
    pub(crate) timeline: bool,
    /// Findings of reads for this question; they replace the recorded findings of the incident.
    pub(crate) better: Option<&'a [Finding]>,
}

/// Why a machine is in its present state.
pub(crate) fn report<'a>(
    context: &PlanContext<'_>,
    closed: impl Iterator<Item = &'a Closed>,
    key: MachineKey,
    told: &WhyInput<'_>,
) -> WhyReport {
    let WhyInput { trace, timeline, better } = *told;
    let way = way::report(context, &key, trace);
    let machine = machine::one(context, key);
    let mut findings = Vec::new();
    for case in &machine.cases {
        let is_absence = machine.absence().is_some_and(|absence| absence.incident.id == case.incident.id);
        let known = better.filter(|_| is_absence).unwrap_or(&case.incident.findings);
        findings.extend(known.iter().map(|finding| FindingReport::new(finding, context.now)));
    }
    let (mut held, mut no_use) = (Vec::new(), Vec::new());
    for case in &machine.cases {
        let decision = next::decision(context, case);
        held.append(&mut next::held(&decision));
        no_use.append(&mut next::no_use(&decision));
    }
    let next = machine.root().or_else(|| machine.cases.first().copied()).map(|case| {
        let decision = next::decision(context, case);
        next::report_beside_held(context, case, &decision)
    });
    let open = machine.cases.iter().filter_map(|case| case.incident.asked.as_ref());
    let asked = open.map(|asked| AskedReport::new(asked, context.now)).collect();
    let done = attempts(context, &machine, closed);
    let mut row = machine.report(context);
    if let (Some([first, ..]), Answers::No) = (better, row.answers)
        && machine.root().map(|case| case.incident.id) == machine.absence().map(|case| case.incident.id)
    {
        row.stage = Some(first.stage.name().to_owned());
    }
    let stage = row.stage.as_deref().and_then(Stage::from_name);
    let guessed = findings.first().is_some_and(|finding: &FindingReport| finding.confidence == "possible");
    let stages = stages(&machine, stage, guessed, trace.and_then(way::stands));
    let timeline = timeline.then(|| way::timeline(context, &machine.key, trace, &stages));
    WhyReport {
        hot: Vec::new(),
        hot_unread: Vec::new(),
        roster: context.roster.name.to_string(),
        at: context.now,
        stages,
        way,
        timeline,
        machine: row,
        findings,
        asked,
        done,
        collected: Vec::new(),
        next,
        held,
        no_use,
        sources: super::sources(context),
        // The engine does not know this field; the caller adds it.
        rancher: None,
    }
}

/// The list of stages. Where the cause is only a guess, it is unknown at which stage the machine stopped; it came at
/// least this far. A report of the agent proves the stage where no other source does.
fn stages(
    machine: &Machine<'_>,
    stopped: Option<Stage>,
    guessed: bool,
    stands: Option<Stage>,
) -> Vec<StageReport> {
    let answers = machine.answers();
    let proved = stopped.filter(|_| answers == Answers::No && !guessed);
    if let (None, Answers::No | Answers::Unknown, Some(at)) = (proved, answers, stands) {
        return StageReport::strip(|stage| match stage.cmp(&at) {
            Ordering::Less => StageState::Passed,
            Ordering::Equal => StageState::Stopped,
            Ordering::Greater => StageState::Unknown,
        });
    }
    let mut strip = StageReport::strip(|stage| match (answers, stopped) {
        (Answers::Yes, _) => StageState::Passed,
        (Answers::No | Answers::Excused, Some(at)) if stage < at => StageState::Passed,
        (Answers::No, Some(at)) if stage == at && !guessed => StageState::Stopped,
        _ => StageState::Unknown,
    });
    if let (Answers::Yes, Some(case)) = (answers, machine.root())
        && let Some(finding) = case.incident.findings.first()
    {
        let at = strip.iter_mut().find(|report| report.name == finding.stage.name());
        if let Some(report) = at {
            report.note = Some(finding.cause.says().to_owned());
        }
    }
    strip
}

fn attempts<'a>(
    context: &PlanContext<'_>,
    machine: &Machine<'_>,
    closed: impl Iterator<Item = &'a Closed>,
) -> Vec<AttemptReport> {
    let about = |subject: &Subject| matches!(subject, Subject::Machine(key) if *key == machine.key);
    let recent =
        |closed: &&Closed| about(&closed.incident.key.subject) && context.now.since(closed.at) <= RECENT;
    let old: Vec<&Attempt> = closed.filter(recent).flat_map(|closed| &closed.incident.attempts).collect();
    let open = machine.cases.iter().flat_map(|case| &case.incident.attempts);
    let mut all: Vec<&Attempt> = old.into_iter().chain(open).collect();
    all.sort_by_key(|attempt| attempt.intent);
    let skip = all.len().saturating_sub(DONE_MAX);
    all.into_iter().skip(skip).map(|attempt| AttemptReport::new(attempt, context.now)).collect()
}
