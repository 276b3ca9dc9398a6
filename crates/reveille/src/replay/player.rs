//! Feeds a recording's events to an engine, and gives it the recorded answers to its requests.
//!
//! ```text
//!  step recorded: event, effects then ─▶ answers get the present number of their request ─▶ State::step ─▶ effects now
//!                                         effects then × effects now: paired by shape for later answers ◀──────────┘
//! ```
//!
//! As long as both engines make the same requests, every number is the same and nothing changes. For a request that only
//! the present engine makes, the player answers as for a missing answer: a read times out, a call's result is unknown, a
//! record is kept. The answer to a request that only the recorded engine made has no receiver; time passes instead.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use reveille_core::effect::{Effect, Outcome, ReadError, ReadErrorKind};
use reveille_core::engine::{Restored, State};
use reveille_core::event::Event;
use reveille_core::model::id::{IntentId, LookId, RecordId};
use reveille_core::model::roster::Roster;
use reveille_core::model::time::{Span, Time};
use reveille_diagnose::Judge;
use reveille_wire::recording::{Header, Step};

use super::shape;

/// A read without a recorded answer ends after this long, as in production.
const LOOK_WITHIN: Span = Span::from_s(60);
/// A call without a recorded answer ends after this long.
const CALL_WITHIN: Span = Span::from_s(150);
/// The most requests of one side that wait for the other's.
const UNPAIRED_MAX: usize = 4096;
/// The most rounds of answers to records that follow from one step.
const ROUNDS_MAX: usize = 1000;

/// An engine that plays a recording.
pub(crate) struct Player {
    state: State,
    judge: Option<Arc<Judge>>,
    looks: Pairs<LookId>,
    records: Pairs<RecordId>,
    intents: Pairs<IntentId>,
}

/// One event for the engine, and its effects.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Turn {
    /// The event that came in.
    pub(crate) event: Event,
    /// The effects that the engine asked for.
    pub(crate) effects: Vec<Effect>,
}

/// Recorded and present requests, by number.
struct Pairs<I> {
    now_of: BTreeMap<I, I>,
    only_then: VecDeque<(I, String)>,
    only_now: VecDeque<(I, String, Time)>,
}

impl Player {
    /// An engine in the state at the beginning of the recording, with its roster or another.
    pub(crate) fn new(header: &Header, roster: Option<Roster>) -> Self {
        let roster = roster.unwrap_or_else(|| header.roster.clone());
        let state = match &header.restored {
            None => State::new(roster, header.start),
            Some(memory) => {
                let how = Restored { start: header.start, now: memory.now, last_alive: memory.last_alive };
                State::restore(roster, how, memory.records.iter().cloned())
            }
        };
        // Only a recording from before consoles were judged on arrival needs the judge.
        let judge = Judge::built_in().ok();
        Self { state, judge, looks: Pairs::new(), records: Pairs::new(), intents: Pairs::new() }
    }

    /// The state of the engine.
    pub(crate) const fn state(&self) -> &State {
        &self.state
    }

    /// Plays one step; returns the engine's effects. An answer without a receiver counts as passing time.
    pub(crate) fn play(&mut self, step: &Step) -> Vec<Effect> {
        self.turns(step, Some(Event::Tick)).into_iter().flat_map(|turn| turn.effects).collect()
    }

    /// Plays one step, event by event. `instead` replaces an answer without a receiver.
    pub(crate) fn turns(&mut self, step: &Step, instead: Option<Event>) -> Vec<Turn> {
        let at = step.at;
        let mut turns = self.unanswered(at);
        let event = self.event(&step.event).or(instead);
        let effects = event.as_ref().map_or_else(Vec::new, |event| self.state.step(at, event.clone()));
        self.pair(at, &step.effects, &effects);
        turns.extend(event.map(|event| Turn { event, effects }));
        for _ in 0..ROUNDS_MAX {
            let kept = self.records.overdue(at);
            if kept.is_empty() {
                break;
            }
            turns.extend(kept.into_iter().map(|id| self.feed(at, Event::Recorded(id))));
        }
        turns
    }

    /// Plays an event that is not in the recording.
    pub(crate) fn feed(&mut self, at: Time, event: Event) -> Turn {
        let effects = self.state.step(at, event.clone());
        self.pair(at, &[], &effects);
        Turn { event, effects }
    }

    /// The recorded event with the present numbers.
    fn event(&mut self, event: &Event) -> Option<Event> {
        match event {
            Event::Looked { look, answer } => {
                let answered = self.looks.answered(*look);
                answered.map(|look| self.heard(Event::Looked { look, answer: answer.clone() }))
            }
            Event::Recorded(id) => self.records.answered(*id).map(Event::Recorded),
            Event::RecordFailed(id) => self.records.answered(*id).map(Event::RecordFailed),
            Event::Done { intent, outcome } => {
                self.intents.answered(*intent).map(|intent| Event::Done { intent, outcome: outcome.clone() })
            }
            other => Some(other.clone()),
        }
    }

    fn heard(&self, event: Event) -> Event {
        match &self.judge {
            Some(judge) => judge.heard(event),
            None => event,
        }
    }

    /// Answers requests that only the present engine made and that have waited long enough.
    fn unanswered(&mut self, at: Time) -> Vec<Turn> {
        let text: Arc<str> = Arc::from("the recording holds no answer to it");
        let mut turns = Vec::new();
        for look in self.looks.overdue(at - LOOK_WITHIN) {
            let error = ReadError { kind: ReadErrorKind::TimedOut, text: text.clone(), retry_after: None };
            turns.push(self.feed(at, Event::Looked { look, answer: Err(error) }));
        }
        for intent in self.intents.overdue(at - CALL_WITHIN) {
            let outcome = Outcome::Unknown { text: text.clone() };
            turns.push(self.feed(at, Event::Done { intent, outcome }));
        }
        turns
    }

    fn pair(&mut self, at: Time, then: &[Effect], now: &[Effect]) {
        for (effects, side) in [(now, Side::Now(at)), (then, Side::Then)] {
            for effect in effects {
                match effect {
                    Effect::Look { id, .. } => self.looks.asked(*id, shape::of(effect), side),
                    Effect::Record { id, .. } => self.records.asked(*id, shape::of(effect), side),
                    Effect::Call { intent, .. } => self.intents.asked(*intent, shape::of(effect), side),
                    Effect::List { .. } | Effect::WakeAt(_) => {}
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Side {
    Then,
    Now(Time),
}

impl<I: Copy + Ord> Pairs<I> {
    const fn new() -> Self {
        Self { now_of: BTreeMap::new(), only_then: VecDeque::new(), only_now: VecDeque::new() }
    }

    fn asked(&mut self, id: I, shape: String, side: Side) {
        match side {
            Side::Now(at) => match self.only_then.iter().position(|(_, other)| *other == shape) {
                Some(place) => {
                    if let Some((then, _)) = self.only_then.remove(place) {
                        self.now_of.insert(then, id);
                    }
                }
                None => self.only_now.push_back((id, shape, at)),
            },
            Side::Then => match self.only_now.iter().position(|(_, other, _)| *other == shape) {
                Some(place) => {
                    if let Some((now, _, _)) = self.only_now.remove(place) {
                        self.now_of.insert(id, now);
                    }
                }
                None => {
                    if self.only_then.len() == UNPAIRED_MAX {
                        self.only_then.pop_front();
                    }
                    self.only_then.push_back((id, shape));
                }
            },
        }
    }

    /// The present number for a recorded answer.
    fn answered(&mut self, then: I) -> Option<I> {
        self.only_then.retain(|(id, _)| *id != then);
        self.now_of.remove(&then)
    }

    /// Requests of only the present engine that are at least this old.
    fn overdue(&mut self, at: Time) -> Vec<I> {
        let mut due = Vec::new();
        while let Some((id, _, _)) = self.only_now.front().filter(|(_, _, asked)| *asked <= at) {
            due.push(*id);
            self.only_now.pop_front();
        }
        due
    }
}
