//! Reports on the state of an engine: one pure function for each question, from a state to plain structs.
//!
//! ```text
//!  State ─▶ status | why | plan | incidents ─▶ reveille_wire::report ─┬▶ JSON, YAML
//!                                                                     └▶ render: text for people
//! ```
//!
//! The same functions answer for the state of a running controller, for a one-time look, and for the demo. The planner
//! makes the decisions; this module makes none. Texts come from the core where it has them.

pub(crate) mod ask;
pub(crate) mod find;
pub(crate) mod hot;
pub(crate) mod incidents;
pub(crate) mod machine;
pub(crate) mod next;
pub(crate) mod plan;
pub(crate) mod status;
mod way;
pub(crate) mod why;

use reveille_core::model::time::Time;
use reveille_core::observe::source::{Source, Trust};
use reveille_core::plan::budget::Tried;
use reveille_core::plan::context::PlanContext;
use reveille_core::remedies::RepairStep;
use reveille_wire::report::{Ago, PauseReport, SourceReport, TriedReport};

/// The sources of a roster: the cluster first, then the clouds by name.
pub(crate) fn sources(context: &PlanContext<'_>) -> Vec<SourceReport> {
    let cluster = source("cluster", &context.cluster.source, context.now);
    let clouds = context.clouds.values().map(|cloud| source(cloud.name.as_str(), &cloud.source, context.now));
    std::iter::once(cluster).chain(clouds).collect()
}

/// Whether all data sources can be trusted.
pub(crate) fn all_trusted(sources: &[SourceReport]) -> bool {
    sources.iter().all(|source| source.trusted)
}

/// Pauses of operators and of the ownership check.
pub(crate) fn pauses(context: &PlanContext<'_>) -> Vec<PauseReport> {
    context.pauses.iter().map(PauseReport::from).collect()
}

/// What was tried so far, by kind of repair, the cheapest first.
pub(crate) fn tried(context: &PlanContext<'_>) -> Vec<TriedReport> {
    let count = |(repair_step, tried): (&RepairStep, &Tried)| TriedReport {
        repair: repair_step.name().to_owned(),
        requested: tried.requested,
        verified: tried.verified,
    };
    context.book.tried().iter().map(count).collect()
}

/// A source that cannot be trusted is explained once, beside everything that depends on it; everywhere
/// else only its name is given.
pub(crate) fn blind_words(context: &PlanContext<'_>, why: &str) -> String {
    let clouds = context.clouds.values().map(|cloud| (cloud.name.as_str(), &cloud.source));
    let told = |(_, source): &(&str, &Source)| match source.trust(context.now) {
        Trust::No(said) => why.contains(&*said),
        Trust::Since(_) => false,
    };
    match std::iter::once(("the cluster", &context.cluster.source)).chain(clouds).find(told) {
        Some((name, _)) => format!("no reliable data from {name}"),
        None => why.to_owned(),
    }
}

fn source(name: &str, source: &Source, now: Time) -> SourceReport {
    let trust = source.trust(now);
    SourceReport {
        name: name.to_owned(),
        read: source.last_good().map(|at| Ago::new(at, now)),
        complete: source.last_good().is_some() && source.failing().is_none(),
        trusted: trust.is_given(),
        why_not: (!trust.is_given()).then(|| {
            let why = trust.to_string();
            why.strip_prefix(&format!("{name}: ")).map_or(why.clone(), str::to_owned)
        }),
    }
}
