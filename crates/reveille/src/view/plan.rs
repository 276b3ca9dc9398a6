//! The plan: every open incident in exactly one list, with the next step and everything that blocks it.

use reveille_core::decide::Next;
use reveille_core::plan::context::PlanContext;
use reveille_wire::report::{
    ActReport, AskReport, BlindReport, In, NextReport, PlanHeldReport, PlanReport, PlanSummary, WaitReport,
};

use super::next;

/// The plan for every open incident.
pub(crate) fn report(context: &PlanContext<'_>) -> PlanReport {
    let mut plan = PlanReport {
        roster: context.roster.name.to_string(),
        at: context.now,
        summary: PlanSummary::default(),
        sources: super::sources(context),
        pauses: super::pauses(context),
        acts: Vec::new(),
        held: Vec::new(),
        waits: Vec::new(),
        asks: Vec::new(),
        blind: Vec::new(),
        tried: super::tried(context),
    };
    let mut cases: Vec<_> = context.cases.values().collect();
    cases.sort_by_key(|case| case.incident.id);
    for case in cases {
        let incident = &case.incident;
        let (id, subject) = (incident.id.to_string(), incident.label.to_string());
        let kind = incident.key.kind.name().to_owned();
        let pool = incident.pool.as_ref().map(ToString::to_string);
        let decision = next::decision(context, case);
        match &decision.next {
            Next::Act { call, .. } => plan.acts.push(ActReport {
                incident: id,
                subject,
                kind,
                pool,
                call: call.in_a_line(),
                destructive: call.is_destructive(),
            }),
            Next::Held { .. } => {
                plan.held.push(PlanHeldReport {
                    incident: id,
                    subject,
                    kind,
                    pool,
                    held: next::held(&decision),
                });
            }
            Next::Wait { .. } | Next::Gather(_) | Next::UnderWay(_) | Next::Well => {
                let next = next::report(context, case, &decision);
                let NextReport { what: why, not_before: until, then } = next;
                plan.waits.push(WaitReport { incident: id, subject, kind, until, why, then });
            }
            Next::Ask(how) => {
                let how = next::asked(case, how);
                plan.asks.push(AskReport { incident: id, subject, kind, how });
            }
            Next::Blind(why) => {
                let why = super::blind_words(context, why);
                plan.blind.push(BlindReport { incident: id, subject, kind, why });
            }
        }
    }
    plan.waits.sort_by(|a, b| when(a.until.as_ref()).total_cmp(&when(b.until.as_ref())));
    plan.summary = plan.counted();
    plan
}

fn when(until: Option<&In>) -> f64 {
    until.map_or(0.0, |until| until.in_s)
}

/// The exit code of the report.
pub(crate) fn exit(report: &PlanReport) -> crate::cli::exit::Exit {
    use crate::cli::exit::Exit;
    if report.summary.incidents > report.summary.blind {
        Exit::Problems
    } else if report.summary.blind > 0 || !super::all_trusted(&report.sources) {
        Exit::CannotTell
    } else {
        Exit::NoProblem
    }
}
