//! Compares the diagnosis of each incident with the true cause.
//!
//! ```text
//!  Record::Diagnosed ─▶ first finding ─▶ World::explains? ─▶ right · a symptom · unknown · wrong
//!  Record::Intended, destructive ─▶ was its incident confidently and wrongly explained? ─▶ misled
//! ```
//!
//! It is judged at the moment of the diagnosis, not at the end of the run, when the truth has changed. It leaves out
//! incidents of routers, groups and sources: those faults are what the engine sees directly.

use std::collections::BTreeMap;

use reveille_core::effect::Call;
use reveille_core::model::cause::Cause;
use reveille_core::model::id::{IncidentId, InstanceId};
use reveille_core::model::incident::{Confidence, Finding, MachineKey, Subject};
use reveille_core::model::time::Time;
use reveille_core::record::Record;

use super::Drive;
use crate::world::vm::Trouble;

/// How what is said stands to what is so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Said {
    /// The real cause.
    Right,
    /// True, and no more than what can be seen from outside: silent, not Ready.
    Symptom,
    /// "Unknown", said as such.
    Unknown,
    /// Something that is not so.
    Wrong,
}

/// Causes that are true of whatever comes to the same end.
const SYMPTOMS: [&str; 3] = ["apiserver-unreachable", "cni-not-installed", "userdata-script-failed"];

/// What was last said of an incident.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The cause.
    pub cause: Cause,
    /// How sure.
    pub confidence: Confidence,
    /// How that stands to the truth.
    pub said: Said,
}

/// An act that can hurt, resting on a confident and wrong diagnosis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misled {
    /// When.
    pub at: Time,
    /// What was done, and what was said before.
    pub what: String,
}

/// Everything that was said.
#[derive(Clone, Debug, Default)]
pub(super) struct Explanations {
    named: BTreeMap<IncidentId, Named>,
    misled: Vec<Misled>,
}

impl Drive {
    pub(super) fn hear_said(&mut self, record: &Record) {
        match record {
            Record::Diagnosed { incident, findings, .. } => {
                if let Some(named) = self.judge_said(*incident, findings) {
                    self.explanations.named.insert(*incident, named);
                }
            }
            Record::Intended { incident, call, .. } if call.is_destructive() => {
                self.watch_for_misled(*incident, call);
            }
            _ => {}
        }
    }

    fn judge_said(&self, incident: IncidentId, findings: &[Finding]) -> Option<Named> {
        let first = findings.first()?;
        let context = self.state.context();
        let case = context.cases.values().find(|case| case.incident.id == incident)?;
        let Subject::Machine(MachineKey::Instance(_, id)) = &case.incident.key.subject else { return None };
        let of_its_trouble = self.inside(id).and_then(Trouble::label) == Some(first.cause.label());
        let said = match &first.cause {
            Cause::Unknown => Said::Unknown,
            cause if !self.world.explains(id, cause) => Said::Wrong,
            Cause::KubeletSilent | Cause::NodeNotReady => Said::Symptom,
            cause if SYMPTOMS.contains(&cause.label()) && !of_its_trouble => Said::Symptom,
            _ => Said::Right,
        };
        Some(Named { cause: first.cause.clone(), confidence: first.confidence, said })
    }

    fn inside(&self, id: &InstanceId) -> Option<Trouble> {
        self.world.machine(id)?.trouble
    }

    fn watch_for_misled(&mut self, incident: IncidentId, call: &Call) {
        let Some(named) = self.explanations.named.get(&incident) else { return };
        if named.said == Said::Wrong && named.confidence >= Confidence::Likely {
            let what =
                format!("{call} rests on {} ({}), which is not so", named.cause, named.confidence.name());
            self.log.push(self.now, &format!("MISLED {what}"));
            self.explanations.misled.push(Misled { at: self.now, what });
        }
    }

    /// What was last said of each incident of a machine.
    pub const fn named(&self) -> &BTreeMap<IncidentId, Named> {
        &self.explanations.named
    }

    /// Acts that can hurt and rested on a confident, wrong diagnosis. Empty in every run that is right.
    pub fn misled(&self) -> &[Misled] {
        &self.explanations.misled
    }
}
