//! Compares the recorded decisions with the present ones, step by step.
//!
//! Without another roster every effect is compared, wake-ups and reads included: the same engine gives the same bytes.
//! With another roster two engines run side by side, one with each roster, and only decisions (records and calls) are
//! compared. Where they differ, both planners are asked what comes next for that incident and what blocks it; their
//! answers are the reason.

use std::collections::BTreeSet;

use reveille_core::effect::Effect;
use reveille_core::engine::State;
use reveille_core::model::incident::IncidentKey;
use reveille_core::model::roster::Roster;
use reveille_core::model::time::Time;
use reveille_wire::recording::Step;
use serde_json::Value;

use super::player::Player;
use super::recording::Recording;
use super::shape;
use super::story::{StoryLine, Teller, words};
use crate::cli::failure::Failure;
use crate::driver::recorder::ENGINE;
use crate::view::next;

/// The most differences that are kept with their text; all are counted.
const DIFFERENCES_MAX: usize = 100;
/// The most effects of one difference in the report.
const TOLD_MAX: usize = 5;

/// The options of a replay.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// Show and compare from here on.
    pub(crate) from: Option<Time>,
    /// Stop here.
    pub(crate) until: Option<Time>,
    /// Show only this machine.
    pub(crate) machine: Option<String>,
    /// Use this roster for the decisions.
    pub(crate) roster: Option<Roster>,
}

/// A step at which the recorded and the present effects differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Its number.
    pub(crate) step: u64,
    /// Its time.
    pub(crate) at: Time,
    /// Effects that were recorded and are missing now.
    pub(crate) then: Vec<String>,
    /// Effects of now that were not recorded.
    pub(crate) now: Vec<String>,
    /// The reason, as far as the planners tell it.
    pub(crate) why: Vec<String>,
}

/// The result of playing a recording.
#[derive(Clone, Debug)]
pub(crate) struct Played {
    /// The time of the first and the last step that counts.
    pub(crate) span: Option<(Time, Time)>,
    /// The number of steps.
    pub(crate) steps: u64,
    /// The number of records and calls among their present effects.
    pub(crate) decisions: u64,
    /// The present decisions as text.
    pub(crate) story: Vec<StoryLine>,
    /// The recording knows the machine that is to be shown; false where none is.
    pub(crate) knows_machine: bool,
    /// Names of its machines; empty where no machine is to be shown.
    pub(crate) machines: BTreeSet<String>,
    /// The number of steps that differ.
    pub(crate) differing: u64,
    /// The first of these steps.
    pub(crate) differences: Vec<Difference>,
    /// A hash of all recorded effects, and one of all present effects.
    pub(crate) digests: (u64, u64),
    /// True when the engine of the recording has the same hash as this one.
    pub(crate) same_engine: bool,
    /// The number of steps at which this engine differs from the recorded one with the recorded roster; only
    /// counted with another roster.
    pub(crate) engine_differs: u64,
    /// Fields of the roster that differ.
    pub(crate) roster_changes: Vec<String>,
    /// The first action that only one of the two takes: from there on the recorded world does not fit the present decisions.
    pub(crate) parted_at: Option<Time>,
}

struct Run {
    wanted: Wanted,
    /// The engine with the recorded roster.
    player: Player,
    /// The engine with the other roster.
    other: Option<Player>,
    teller: Teller,
    teller_then: Teller,
    played: Played,
}

/// Plays a recording to its end, or up to the time limit.
pub(crate) fn play(recording: &mut Recording, wanted: Wanted) -> Result<Played, Failure> {
    let header = &recording.header;
    let roster_changes =
        wanted.roster.as_ref().map_or_else(Vec::new, |roster| changes(&header.roster, roster));
    let player = Player::new(header, None);
    let other = wanted.roster.clone().map(|roster| Player::new(header, Some(roster)));
    let played = Played {
        span: None,
        steps: 0,
        decisions: 0,
        story: Vec::new(),
        knows_machine: false,
        machines: BTreeSet::new(),
        differing: 0,
        differences: Vec::new(),
        digests: (FNV, FNV),
        same_engine: header.engine == ENGINE,
        engine_differs: 0,
        roster_changes,
        parted_at: None,
    };
    let teller = Teller::knowing(player.state());
    let mut run = Run { wanted, player, other, teller_then: teller.clone(), teller, played };
    while let Some(step) = recording.next_step()? {
        if run.wanted.until.is_some_and(|until| step.at > until) {
            break;
        }
        run.step(&step);
    }
    run.note_machines();
    Ok(run.played)
}

impl Run {
    fn step(&mut self, step: &Step) {
        let recorded_roster = self.player.play(step);
        let (then, now) = match &mut self.other {
            None => (step.effects.clone(), recorded_roster),
            Some(other) => {
                self.played.engine_differs += u64::from(step.effects != recorded_roster);
                (decisions(recorded_roster), decisions(other.play(step)))
            }
        };
        let counts = self.wanted.from.is_none_or(|from| step.at >= from);
        let told: Vec<StoryLine> =
            now.iter().filter_map(|effect| self.teller.tell(step.at, effect)).collect();
        let told_then: Vec<StoryLine> =
            then.iter().filter_map(|effect| self.teller_then.tell(step.at, effect)).collect();
        if let Some(machine) = &self.wanted.machine {
            self.played.knows_machine |= told.iter().any(|told| told.is_about(machine));
        }
        if !counts {
            return;
        }
        let played = &mut self.played;
        played.span = Some((played.span.map_or(step.at, |(from, _)| from), step.at));
        played.steps += 1;
        played.decisions += now.iter().filter(|effect| shape::is_decision(effect)).count() as u64;
        played.digests = (digest(played.digests.0, &then), digest(played.digests.1, &now));
        let differs = if self.other.is_some() {
            !shape::beyond(&then, &now).is_empty() || !shape::beyond(&now, &then).is_empty()
        } else {
            then != now
        };
        let about =
            |told: &StoryLine| self.wanted.machine.as_ref().is_none_or(|machine| told.is_about(machine));
        let concerns = self.wanted.machine.is_none() || told.iter().chain(&told_then).any(about);
        if differs && concerns {
            self.differ(step, &then, &now, told.iter().chain(&told_then).find_map(|told| told.key.clone()));
        }
        let machine = self.wanted.machine.clone();
        let shown =
            told.into_iter().filter(|told| machine.as_ref().is_none_or(|machine| told.is_about(machine)));
        self.played.story.extend(shown);
    }

    /// The machines that are there at the end: a quiet one has no line in the story.
    fn note_machines(&mut self) {
        let Some(machine) = self.wanted.machine.as_deref() else { return };
        let context = self.player.state().context();
        let instances = context.clouds.values().flat_map(|cloud| cloud.instances.values());
        let played = &mut self.played;
        for seen in instances {
            played.knows_machine |= seen.instance.id.as_str() == machine;
            played.machines.insert(seen.instance.name.to_string());
        }
        played.machines.extend(context.cluster.nodes.keys().map(ToString::to_string));
        played.knows_machine |= played.machines.contains(machine);
    }

    fn differ(&mut self, step: &Step, then: &[Effect], now: &[Effect], key: Option<IncidentKey>) {
        let (only_then, only_now) = (shape::beyond(then, now), shape::beyond(now, then));
        if only_now.iter().chain(&only_then).any(|effect| matches!(effect, Effect::Call { .. })) {
            self.played.parted_at.get_or_insert(step.at);
        }
        self.played.differing += 1;
        if self.played.differences.len() >= DIFFERENCES_MAX {
            return;
        }
        let told = |teller: &Teller, effects: &[Effect]| -> Vec<String> {
            let mut teller = teller.clone();
            effects.iter().take(TOLD_MAX).map(|effect| words(&mut teller, step.at, effect)).collect()
        };
        let why = match (&key, &self.other) {
            (Some(key), Some(other)) => reasons(key, self.player.state(), other.state()),
            _ => Vec::new(),
        };
        let mut difference = Difference {
            step: step.number,
            at: step.at,
            then: told(&self.teller_then, &only_then),
            now: told(&self.teller, &only_now),
            why,
        };
        if only_then.is_empty() && only_now.is_empty() {
            difference.then.push("the same requests, in another order or under other numbers".to_owned());
        }
        self.played.differences.push(difference);
    }
}

fn decisions(effects: Vec<Effect>) -> Vec<Effect> {
    effects.into_iter().filter(shape::is_decision).collect()
}

/// The answers of both planners for one incident.
fn reasons(key: &IncidentKey, then: &State, now: &State) -> Vec<String> {
    let mut said = Vec::new();
    for (word, state) in [("recorded roster", then), ("this roster", now)] {
        let context = state.context();
        let Some(case) = context.cases.get(key) else {
            said.push(format!("{word}: no open incident"));
            continue;
        };
        let decision = next::decision(&context, case);
        said.push(format!("{word}: {}", next::report(&context, case, &decision).what));
        for held in next::held(&decision) {
            said.push(format!("{word}: {} is held: {}", held.what, held.why.join("; ")));
        }
    }
    said.dedup();
    said
}

/// Fields in which two rosters differ, by their path.
fn changes(then: &Roster, now: &Roster) -> Vec<String> {
    let json = |roster| serde_json::to_value(roster).unwrap_or(Value::Null);
    let mut found = Vec::new();
    walk("", &json(then), &json(now), &mut found);
    found
}

fn walk(path: &str, then: &Value, now: &Value, found: &mut Vec<String>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match (then, now) {
        (Value::Object(a), Value::Object(b)) => {
            let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                let get = |of: &serde_json::Map<String, Value>| of.get(name).cloned().unwrap_or(Value::Null);
                walk(&below(name), &get(a), &get(b), found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (place, (one, other)) in a.iter().zip(b).enumerate() {
                let name =
                    one.get("name").and_then(Value::as_str).map_or_else(|| place.to_string(), str::to_owned);
                walk(&below(&name), one, other, found);
            }
        }
        _ if then != now => found.push(format!("{path}: {then} then, {now} now")),
        _ => {}
    }
}

/// The start value of FNV-1a.
const FNV: u64 = 0xcbf2_9ce4_8422_2325;

/// Continues a hash over effects as a recording holds them. The hash is a name for a sequence of decisions, and proves nothing.
fn digest(hash: u64, effects: &[Effect]) -> u64 {
    effects.iter().fold(hash, |hash, effect| {
        let text =
            serde_json::to_value(effect).map_or_else(|_| format!("{effect:?}"), |value| value.to_string());
        text.bytes().fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
    })
}
