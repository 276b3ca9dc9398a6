//! The decisions of a recording as lines for people, each with its machine.
//!
//! Records contain everything that matters, so reads and wake-ups are skipped. Names come from the record that opened an
//! incident, or from the memory of the engine at the beginning of the recording.

use std::collections::BTreeMap;
use std::sync::Arc;

use reveille_core::effect::Effect;
use reveille_core::engine::State;
use reveille_core::model::id::{IncidentId, IntentId};
use reveille_core::model::incident::{Incident, IncidentKey, MachineKey, Subject};
use reveille_core::model::time::Time;
use reveille_core::record::Record;

use crate::render::output_style::{Tone, one_line};
use crate::view::machine::{kind_words, verdict_words};

/// One decision as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoryLine {
    /// When.
    pub(crate) at: Time,
    /// The kind: found, does, proof, asks, over …
    pub(crate) word: &'static str,
    /// The tone of the line.
    pub(crate) tone: Tone,
    /// The name of the machine or object, for people.
    pub(crate) label: Arc<str>,
    /// The incident, where the decision belongs to one.
    pub(crate) key: Option<IncidentKey>,
    /// The text.
    pub(crate) text: String,
}

impl StoryLine {
    /// True when it concerns a machine with this name, id or Node.
    pub(crate) fn is_about(&self, machine: &str) -> bool {
        let id = match self.key.as_ref().map(|key| &key.subject) {
            Some(Subject::Machine(MachineKey::Instance(_, id))) => Some(id.as_str()),
            Some(Subject::Machine(MachineKey::Node(name))) => Some(name.as_str()),
            _ => None,
        };
        &*self.label == machine || id == Some(machine)
    }
}

/// Gives names to incidents and intents as they appear.
#[derive(Clone, Debug, Default)]
pub(crate) struct Teller {
    incidents: BTreeMap<IncidentId, (Arc<str>, IncidentKey)>,
    intents: BTreeMap<IntentId, IncidentId>,
    /// The last line about each incident's cause: the same cause again is not printed.
    causes: BTreeMap<IncidentId, String>,
}

impl Teller {
    /// A teller with the names from the engine's memory.
    pub(crate) fn knowing(state: &State) -> Self {
        let mut teller = Self::default();
        let context = state.context();
        let open = context.cases.values().map(|case| &case.incident);
        for incident in open.chain(state.closed().map(|closed| &closed.incident)) {
            teller.know(incident);
        }
        teller
    }

    fn know(&mut self, incident: &Incident) {
        self.incidents.insert(incident.id, (incident.label.clone(), incident.key.clone()));
        self.intents.extend(incident.attempts.iter().map(|attempt| (attempt.intent, incident.id)));
    }

    /// An effect as text, where it is a decision that operators want to read.
    pub(crate) fn tell(&mut self, at: Time, effect: &Effect) -> Option<StoryLine> {
        let Effect::Record { record, .. } = effect else { return None };
        let (word, tone, incident, text) = match record {
            Record::Opened { incident, key, label, .. } => {
                self.incidents.insert(*incident, (label.clone(), key.clone()));
                ("found", Tone::Bad, *incident, kind_words(key.kind).to_owned())
            }
            Record::Diagnosed { incident, findings, .. } => {
                let finding = findings.first()?;
                let quote = finding.evidence.first().map_or_else(String::new, |evidence| {
                    format!(" ({}: {})", evidence.source, one_line(&evidence.fact.to_string()))
                });
                let (code, cause, sure) =
                    (finding.cause.code(), finding.cause.label(), finding.confidence.name());
                let text = format!("{code} {cause}, {sure}{quote}");
                if self.causes.insert(*incident, text.clone()).as_ref() == Some(&text) {
                    return None;
                }
                ("cause", Tone::Bad, *incident, text)
            }
            Record::Intended { intent, incident, call, .. } => {
                self.intents.insert(*intent, *incident);
                ("repair", Tone::Strong, *incident, call.in_a_line())
            }
            Record::Dropped { intent, why, .. } => {
                ("dropped", Tone::Doubt, self.of(*intent), why.to_string())
            }
            Record::Ended { intent, outcome, .. } => {
                ("ended", Tone::Faint, self.of(*intent), outcome.to_string())
            }
            Record::Judged { intent, held, text, .. } => {
                let (tone, verdict) = if *held { (Tone::Good, "") } else { (Tone::Bad, " (not confirmed)") };
                ("result", tone, self.of(*intent), format!("{text}{verdict}"))
            }
            Record::GivenUp { incident, why, .. } => ("manual", Tone::Doubt, *incident, why.to_string()),
            Record::Asked { incident: Some(incident), value, .. } => {
                ("asked", Tone::Strong, *incident, format!("a person asks for a repair now: {value}"))
            }
            Record::Kept { incident, until, .. } => {
                let until = *until;
                ("kept", Tone::Doubt, *incident, format!("for a look, until {until}"))
            }
            Record::Closed { incident, verdict, .. } => {
                ("closed", Tone::Good, *incident, verdict_words(*verdict).to_owned())
            }
            Record::Started { .. }
            | Record::Cluster { .. }
            | Record::Joined { .. }
            | Record::Born { .. }
            | Record::Cordoned { .. }
            | Record::Traced { .. }
            | Record::Left { .. }
            | Record::OthersActed { .. }
            | Record::LostTogether { .. }
            | Record::Forgotten { .. }
            | Record::Departed { .. }
            | Record::Paused { .. }
            | Record::Returned { .. }
            | Record::Tried { .. }
            | Record::CarriedOver { .. }
            | Record::Numbered { .. }
            | Record::Asked { incident: None, .. }
            | Record::Width { .. }
            | Record::FaultSeen { .. }
            | Record::Arrived { .. }
            | Record::FaultsForgiven { .. }
            | Record::Counted { .. } => return None,
        };
        let known = self.incidents.get(&incident);
        let label = known.map_or_else(|| Arc::from(incident.to_string()), |(label, _)| label.clone());
        Some(StoryLine {
            at,
            word,
            tone,
            label,
            key: known.map(|(_, key)| key.clone()),
            text: one_line(&text),
        })
    }

    fn of(&self, intent: IntentId) -> IncidentId {
        self.intents.get(&intent).copied().unwrap_or_default()
    }
}

/// A short text for any effect.
pub(crate) fn words(teller: &mut Teller, at: Time, effect: &Effect) -> String {
    if let Some(told) = teller.tell(at, effect) {
        return format!("{} {}: {}", told.word, told.label, told.text);
    }
    match effect {
        Effect::Record { record, .. } => {
            let text = format!("{record:?}");
            format!("records {}", text.split(['{', '(']).next().unwrap_or_default().trim())
        }
        Effect::Call { call, .. } => format!("calls: {}", call.in_a_line()),
        Effect::Look { look, .. } => format!("reads {look:?}"),
        Effect::List { cloud } => format!("lists {cloud}"),
        Effect::WakeAt(at) => format!("wakes at {at}"),
    }
}
