//! A question about one roster and its answer, as data: the same whether it is asked of a state at hand or of a running
//! controller.

use reveille_core::engine::State;
use reveille_core::model::incident::Finding;
use reveille_core::model::time::Time;
use reveille_wire::report::Report;
use serde::{Deserialize, Serialize};

use super::find::{self, Found};
use super::{incidents, plan, roll, sources, why};

/// What can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "camelCase")]
pub(crate) enum Ask {
    /// Who is here, who is missing.
    Roll,
    /// Why this machine is where it is.
    Why {
        /// As a person named it.
        machine: String,
        /// With each stage's times.
        #[serde(default)]
        timeline: bool,
    },
    /// What would be done.
    Plan,
    /// What is open, and with `all` what is over.
    Incidents {
        /// Also those that are over.
        all: bool,
    },
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", content = "of", rename_all = "camelCase")]
pub(crate) enum Reply {
    /// The report.
    Report(Box<Report>),
    /// No machine is called so; these are spelled alike.
    Nobody(Vec<String>),
    /// Several are.
    Several(Vec<String>),
    /// No machine is called so as far as is known, and these sources cannot be believed, each with why: it may be one of theirs.
    Unread(Vec<String>),
}

/// How a state is to be read for an answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked<'a> {
    /// As of when; `None`: as of the last step.
    pub(crate) now: Option<Time>,
    /// The state is a mere look that begins nothing by itself; the answer is what a controller would do.
    pub(crate) as_if_acting: bool,
    /// Findings that were read on purpose for a `Why`.
    pub(crate) better: Option<&'a [Finding]>,
}

/// Answers from a state.
pub(crate) fn answer(state: &State, ask: &Ask, asked: &Asked<'_>) -> Reply {
    let mut desk = state.desk();
    desk.acting |= asked.as_if_acting;
    desk.now = asked.now.unwrap_or(desk.now).max(desk.now);
    Reply::Report(Box::new(match ask {
        Ask::Roll => Report::RollReport(roll::report(&desk)),
        Ask::Plan => Report::PlanReport(plan::report(&desk)),
        Ask::Incidents { all } => Report::IncidentsReport(incidents::report(&desk, state.closed(), *all)),
        Ask::Why { machine, timeline } => match find::machine(&desk, machine) {
            Found::One(key) => {
                let trace = state.trace(&key).cloned();
                let told = why::Told { trace: trace.as_ref(), timeline: *timeline, better: asked.better };
                let why = why::report(&desk, state.closed(), key, &told);
                Report::WhyReport(Box::new(why))
            }
            Found::Several(names) => return Reply::Several(names),
            Found::Nobody(alike) => {
                let unread: Vec<String> = sources(&desk)
                    .into_iter()
                    .filter(|source| !source.trusted)
                    .map(|source| format!("{} ({})", source.name, source.why_not.unwrap_or_default()))
                    .collect();
                return if unread.is_empty() { Reply::Nobody(alike) } else { Reply::Unread(unread) };
            }
        },
    }))
}
