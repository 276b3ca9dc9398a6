//! A question about one roster and its answer, as data. Both are the same for a state of this process and for a running
//! controller.

use reveille_core::engine::State;
use reveille_core::model::incident::Finding;
use reveille_core::model::time::Time;
use reveille_wire::report::Report;
use serde::{Deserialize, Serialize};

use super::find::{self, Found};
use super::{incidents, plan, sources, status, why};

/// The possible questions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "camelCase")]
pub(crate) enum Ask {
    /// All machines and their problems.
    #[serde(rename = "roll")]
    Status,
    /// Why this machine is not a Ready node.
    Why {
        /// The machine, as the operator named it.
        machine: String,
        /// Whether the answer has the times of each stage.
        #[serde(default)]
        timeline: bool,
    },
    /// What the controller would do.
    Plan,
    /// Open incidents, and closed ones with `all`.
    Incidents {
        /// Also closed incidents.
        all: bool,
    },
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", content = "of", rename_all = "camelCase")]
pub(crate) enum Reply {
    /// The report.
    Report(Box<Report>),
    /// No machine has this name; these names are similar.
    NoMachine(Vec<String>),
    /// Several machines have this name.
    Several(Vec<String>),
    /// No known machine has this name, and these sources cannot be trusted, each with the reason: the
    /// machine may be in one of them.
    Unread(Vec<String>),
}

/// How to read a state for an answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked<'a> {
    /// The time of the answer; `None`: the time of the last step.
    pub(crate) now: Option<Time>,
    /// The state is from a one-time look that begins nothing; the answer is what a controller would do.
    pub(crate) as_if_acting: bool,
    /// Findings of reads for this `Why`.
    pub(crate) better: Option<&'a [Finding]>,
}

/// Answers a question from a state.
pub(crate) fn answer(state: &State, ask: &Ask, asked: &Asked<'_>) -> Reply {
    let mut context = state.context();
    context.acting |= asked.as_if_acting;
    context.now = asked.now.unwrap_or(context.now).max(context.now);
    Reply::Report(Box::new(match ask {
        Ask::Status => Report::StatusReport(status::report(&context)),
        Ask::Plan => Report::PlanReport(plan::report(&context)),
        Ask::Incidents { all } => Report::IncidentsReport(incidents::report(&context, state.closed(), *all)),
        Ask::Why { machine, timeline } => match find::machine(&context, machine) {
            Found::One(key) => {
                let trace = state.trace(&key).cloned();
                let told = why::WhyInput { trace: trace.as_ref(), timeline: *timeline, better: asked.better };
                let why = why::report(&context, state.closed(), key, &told);
                Report::WhyReport(Box::new(why))
            }
            Found::Several(names) => return Reply::Several(names),
            Found::NoMachine(alike) => {
                let unread: Vec<String> = sources(&context)
                    .into_iter()
                    .filter(|source| !source.trusted)
                    .map(|source| format!("{} ({})", source.name, source.why_not.unwrap_or_default()))
                    .collect();
                return if unread.is_empty() { Reply::NoMachine(alike) } else { Reply::Unread(unread) };
            }
        },
    }))
}
