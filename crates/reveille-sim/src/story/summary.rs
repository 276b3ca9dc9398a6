//! The sum of the story: what was wrong, what the controller did, what it held back, and whether the story ended well.
//!
//! The summary is gathered step by step from the engine, by watching only. A machine that joins in its own time passes through
//! faults that end by themselves; those are no news and are left out.

use std::sync::Arc;

use reveille_core::decide::{self, Next};
use reveille_core::diagnose::machine_state::MachineState;
use reveille_core::effect::Effect;
use reveille_core::engine::{State, invariants};
use reveille_core::event::Event;
use reveille_core::model::blocker::Blocker;
use reveille_core::model::cause::Cause;
use reveille_core::model::incident::{FaultKind, Incident, MachineKey};
use reveille_core::model::time::{Span, Time};
use reveille_core::record::Verdict;

use crate::world::{Harm, Told};

use super::Demo;

/// How it all ended.
#[derive(Clone, Debug)]
pub struct Summary {
    /// How long the story was, in virtual time.
    pub lasted: Span,
    /// What happened in the world, in its own words. The engine was told none of it.
    pub happened: Vec<Told>,
    /// What the engine found wrong, in the order in which it was first seen.
    pub wrong: Vec<Wrong>,
    /// What it did about it.
    pub done: Vec<Done>,
    /// What it held back, and why, each reason once per machine or source.
    pub held: Vec<Held>,
    /// Machines of the roster at the end.
    pub machines: usize,
    /// How many of them answer.
    pub answer: usize,
    /// Incidents that are still open.
    pub open: usize,
    /// Invariants that were broken. Empty unless there is a bug.
    pub violations: Vec<String>,
    /// What was done in the world to what did not deserve it. Empty unless there is a bug.
    pub harms: Vec<Harm>,
}

/// One fault, as the engine saw it.
#[derive(Clone, Debug)]
pub struct Wrong {
    /// When it was first seen.
    pub at: Time,
    /// Whose.
    pub label: Arc<str>,
    /// What.
    pub kind: FaultKind,
    /// Why, as concluded last.
    pub cause: Cause,
    /// How it ended, and when; `None` while it is open.
    pub ended: Option<(Time, Verdict)>,
}

/// One act.
#[derive(Clone, Debug)]
pub struct Done {
    /// When it was decided.
    pub at: Time,
    /// About whose fault.
    pub label: Arc<str>,
    /// What was called.
    pub what: Arc<str>,
    /// True when a fresh read showed its effect.
    pub held: bool,
}

/// One reason why something was not done.
#[derive(Clone, Debug)]
pub struct Held {
    /// When it first stood in the way.
    pub at: Time,
    /// Whose repair was held back, or which source was not believed.
    pub label: Arc<str>,
    /// Why, in the engine's words.
    pub why: String,
}

impl Summary {
    /// Every machine answers, nothing is open, no invariant was broken, no machine was harmed.
    pub fn ended_well(&self) -> bool {
        self.answer == self.machines && self.open == 0 && self.violations.is_empty() && self.harms.is_empty()
    }
}

/// What was seen so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Watched {
    blockers: Vec<(Held, Option<Blocker>)>,
    violations: Vec<String>,
}

impl Watched {
    fn note_blocker(&mut self, at: Time, label: &Arc<str>, blocker: &Blocker) {
        let kind = std::mem::discriminant(blocker);
        let known = self.blockers.iter().any(|(held, of)| {
            held.label == *label && of.as_ref().is_some_and(|of| std::mem::discriminant(of) == kind)
        });
        if !known {
            let held = Held { at, label: label.clone(), why: blocker.to_string() };
            self.blockers.push((held, Some(blocker.clone())));
        }
    }

    fn doubt(&mut self, at: Time, label: &str, why: &str) {
        let known =
            self.blockers.iter().any(|(held, of)| of.is_none() && &*held.label == label && held.why == why);
        if !known {
            self.blockers.push((Held { at, label: label.into(), why: why.to_owned() }, None));
        }
    }
}

impl Demo {
    /// To be called after every step, before its effects are performed: checks the invariants and notes what is held.
    pub fn after_step(&mut self, state: &State, event: &Event, effects: &[Effect]) {
        if let Event::Recorded(id) = event {
            self.seen_effects.acknowledge(*id);
        }
        if let Err(violation) = invariants::check(state, effects, &mut self.seen_effects) {
            self.watched.violations.push(violation.to_string());
        }
        let context = state.context();
        for case in context.cases.values() {
            let decision = decide::decide(&context, case);
            if let Next::Held { .. } = decision.next {
                for blocker in decision.held.iter().flat_map(|(_, blockers)| blockers) {
                    self.watched.note_blocker(self.now, &case.incident.label, blocker);
                }
            }
        }
        for cloud in context.clouds.values() {
            if let Some(doubt) = cloud.source.doubted() {
                let why = format!("not believed: {}", doubt.why);
                self.watched.doubt(doubt.since, cloud.name.as_str(), &why);
            }
        }
        if let Some(doubt) = context.cluster.source.doubted() {
            self.watched.doubt(doubt.since, "cluster", &format!("not believed: {}", doubt.why));
        }
    }

    /// What the story amounted to, as of now.
    pub fn summary(&self, state: &State) -> Summary {
        let context = state.context();
        let mut answer = 0;
        let mut machines = 0;
        for (cloud, view) in context.clouds {
            for (id, seen) in view.instances.iter().filter(|(_, seen)| seen.pool().is_some()) {
                let machine_state = state.machine_state(&MachineKey::Instance(cloud.clone(), id.clone()));
                let leaves = seen.instance.state.is_leaving() || seen.is_gone();
                machines += usize::from(!leaves);
                answer += usize::from(machine_state == Some(MachineState::Answers) && !leaves);
            }
        }
        let closed = state.closed().map(|closed| (&closed.incident, Some((closed.at, closed.verdict))));
        let open = context.cases.values().map(|case| (&case.incident, None));
        let mut incidents: Vec<(&Incident, Option<(Time, Verdict)>)> = closed.chain(open).collect();
        incidents.sort_by_key(|(incident, _)| incident.id);
        let done = incidents.iter().flat_map(|(incident, _)| acts(incident)).collect();
        let wrong = incidents.into_iter().filter(|(incident, ended)| is_news(incident, ended.as_ref()));
        Summary {
            lasted: self.now.since(self.start),
            happened: self.happened.clone(),
            wrong: wrong.map(|(incident, ended)| wrong_of(incident, ended)).collect(),
            done,
            held: self.watched.blockers.iter().map(|(held, _)| held.clone()).collect(),
            machines,
            answer,
            open: context.cases.len(),
            violations: self.watched.violations.clone(),
            harms: self.world.harms().to_vec(),
        }
    }
}

/// A machine that joins passes through "not yet" without any help.
fn is_news(incident: &Incident, ended: Option<&(Time, Verdict)>) -> bool {
    let passing = matches!(
        incident.key.kind,
        FaultKind::NeverJoined | FaultKind::NotReady | FaultKind::MissingRoute | FaultKind::PairMissing
    );
    let by_itself = matches!(ended, Some((_, Verdict::Recovered | Verdict::Superseded)));
    !(passing && by_itself && incident.attempts.is_empty())
}

fn wrong_of(incident: &Incident, ended: Option<(Time, Verdict)>) -> Wrong {
    Wrong {
        at: incident.first_seen,
        label: incident.label.clone(),
        kind: incident.key.kind,
        cause: incident.cause().clone(),
        ended,
    }
}

fn acts(incident: &Incident) -> impl Iterator<Item = Done> {
    incident.attempts.iter().map(|attempt| Done {
        at: attempt.at,
        label: incident.label.clone(),
        what: Arc::from(attempt.call.to_string()),
        held: attempt.held(),
    })
}
