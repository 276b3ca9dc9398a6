//! The only owner of an engine's state: it takes events, returns effects, and passes records to the ledger.
//!
//! ```text
//!  Event ─▶ step ─▶ Record ─▶ ledger writer (and one log line)        Ack ─▶ Recorded / RecordFailed ─▶ step ─▶ …
//!                └▶ Call, Look, List, WakeAt ─▶ the driver           every step, without secrets ─▶ recorder
//! ```
//!
//! Production and the demo share this module: the driver feeds it by the wall clock and real adapters, the demo by the
//! time of a simulated world. After every step a separate checker tests the invariants; it does not use the safeguards that
//! it checks. It checks what the step touched, and everything once in ten seconds. A call that breaks an invariant is not
//! passed on. Once stopping has begun, no new intent gets into the ledger, so no call is made.

use std::collections::VecDeque;
use std::sync::Arc;

use reveille_core::effect::{Effect, Outcome};
use reveille_core::engine::State;
use reveille_core::engine::invariants::{self, SeenEffects, Violation};
use reveille_core::event::Event;
use reveille_core::model::time::Time;
use reveille_core::record::Record;

use super::journal;
use super::ledger_writer::{Ack, Ended, LedgerWriter};
use super::recorder::Recorder;
use super::redact::Redactor;

/// The most broken invariants that are kept for the end of a run.
const VIOLATIONS_MAX: usize = 100;

/// The most refused records that are remembered as logged: what waits for the disk at most, with one step more.
const LOGGED_MAX: usize = 32_768;

/// An observer of each step: it gets the state after the step, the event, and its effects.
pub(crate) type Onlooker<'a> = dyn FnMut(&State, &Event, &[Effect]) + 'a;

/// A receiver that is told of each record when it is created.
pub(crate) type Hearer = Box<dyn Fn(&Record) + Send>;

/// What can come in: an event of the worlds, or an answer of the ledger.
pub(crate) enum Input {
    /// One event, for one step.
    Event(Event),
    /// One answer, for a step of each record that it is about.
    Ack(Ack),
}

/// The owner of an engine's state.
pub(crate) struct EngineHost {
    state: State,
    ledger_writer: LedgerWriter,
    redact: Redactor,
    recorder: Option<Recorder>,
    hearer: Option<Hearer>,
    seen_effects: SeenEffects,
    violations: Vec<Violation>,
    logged: LoggedRecords,
    stopping: bool,
    has_stepped: bool,
}

/// Records that were logged and then refused by the ledger, in the order in which the engine offers them again. While a
/// disk is full, the engine offers thousands of them twice a minute.
#[derive(Default)]
struct LoggedRecords(VecDeque<Record>);

impl LoggedRecords {
    /// Remembers refused records. The engine does not offer an intent again: it makes a new decision.
    fn refused(&mut self, records: impl IntoIterator<Item = Record>) {
        self.0.extend(records.into_iter().filter(|record| !matches!(record, Record::Intended { .. })));
        // The engine drops old findings and has no limit of its own for records that wait.
        let excess = self.0.len().saturating_sub(LOGGED_MAX);
        self.0.drain(..excess);
    }

    /// True for a record that was logged before. Records before it in the order are not offered any more.
    fn had(&mut self, record: &Record) -> bool {
        let place = self.0.iter().position(|told| told == record);
        place.inspect(|place| drop(self.0.drain(..=*place))).is_some()
    }
}

impl EngineHost {
    /// Takes ownership of the state.
    pub(crate) fn new(state: State, ledger_writer: LedgerWriter) -> Self {
        Self {
            redact: Redactor::of(state.context().roster),
            state,
            ledger_writer,
            recorder: None,
            hearer: None,
            seen_effects: SeenEffects::default(),
            violations: Vec::new(),
            logged: LoggedRecords::default(),
            stopping: false,
            has_stepped: false,
        }
    }

    /// The same, with every event recorded from the first one on.
    #[must_use]
    pub(crate) fn recorded_by(mut self, recorder: Option<Recorder>) -> Self {
        self.recorder = recorder;
        self
    }

    /// The same, with a receiver beside the ledger that is told of each record once.
    #[must_use]
    pub(crate) fn told_to(mut self, hearer: Option<Hearer>) -> Self {
        self.hearer = hearer;
        self
    }

    /// The state of the engine.
    pub(crate) const fn state(&self) -> &State {
        &self.state
    }

    /// Invariants that were broken so far. The list is empty unless this program has a bug.
    pub(crate) fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// From here on no new action begins.
    pub(crate) const fn stop(&mut self) {
        self.stopping = true;
    }

    /// Records that the ledger has not confirmed or refused yet.
    pub(crate) const fn unanswered(&self) -> usize {
        self.ledger_writer.outstanding()
    }

    /// True while the ledger's queue takes the records of a further event.
    pub(crate) const fn has_room(&self) -> bool {
        self.ledger_writer.has_room()
    }

    /// Writes a heartbeat, checks every open incident, and lets the checker drop what it no longer needs.
    ///
    /// The heartbeat says until when the next process can trust the ledger: it carries the time of the engine's last step, and
    /// waits behind the records of that step. After a sleep of hours the timer of the heartbeat comes first, and with the time
    /// of then a process that died a second later left no trace of the sleep (seed 7204078). An engine that nothing is told
    /// ticks every ten seconds. Before its first step it has seen nothing, and there is no heartbeat. There is none either while
    /// records wait that the ledger refused: a drained machine whose `Left` was lost that way would be deleted.
    pub(crate) fn beat(&mut self) {
        self.tell_alive();
        if let Err(violation) = invariants::check_state(&self.state) {
            self.complain(&violation);
        }
        if self.state.is_settled() && self.ledger_writer.outstanding() == 0 {
            self.seen_effects = SeenEffects::default();
        }
    }

    fn tell_alive(&self) {
        if self.has_stepped && !self.state.has_unwritten_records() {
            self.ledger_writer.beat(self.state.context().now);
        }
    }

    /// Processes one input. The caller carries out the returned effects; the records are already on their way.
    pub(crate) fn take(&mut self, now: Time, input: Input) -> Vec<Effect> {
        let is_first = !self.has_stepped;
        let effects = self.take_watched(now, input, &mut |_, _, _| {});
        // Behind the records of the first step, and before the timer comes round: `status` asks whether a controller runs.
        if is_first {
            self.tell_alive();
        }
        effects
    }

    /// The same, with an observer that runs after each step, before its effects go anywhere.
    pub(crate) fn take_watched(
        &mut self,
        now: Time,
        input: Input,
        onlooker: &mut Onlooker<'_>,
    ) -> Vec<Effect> {
        let mut out = Vec::new();
        let mut events = match input {
            Input::Event(event) => VecDeque::from([event]),
            Input::Ack(ack) => self.acknowledge(ack),
        };
        while let Some(event) = events.pop_front() {
            let event = self.redact.event(event);
            let effects = self.state.step(now, event.clone());
            self.has_stepped = true;
            if let Some(recorder) = &mut self.recorder {
                recorder.step(now, &event, &effects);
            }
            onlooker(&self.state, &event, &effects);
            let verdict = invariants::check_touched(&self.state, &effects, &mut self.seen_effects);
            let broken = verdict.err().inspect(|violation| self.complain(violation));
            let mut records = Vec::new();
            for effect in effects {
                match effect {
                    Effect::Record { id, record } => {
                        if !self.logged.had(&record) {
                            journal::tell(&self.state, &record);
                            if let Some(hearer) = &self.hearer {
                                hearer(&record);
                            }
                        }
                        let refused = self.stopping && matches!(record, Record::Intended { .. });
                        if refused {
                            events.push_back(Event::RecordFailed(id));
                        } else {
                            records.push((id, record));
                        }
                    }
                    Effect::Call { intent, .. } if self.stopping => {
                        let text = Arc::from("this process is stopping");
                        let outcome = Outcome::NotSent { text, retry_after: None };
                        events.push_back(Event::Done { intent, outcome });
                    }
                    Effect::Call { intent, .. } if broken.is_some() => {
                        let text =
                            Arc::from("not sent: it would break a safety invariant; this is a fault of ours");
                        // A step that was not sent is no reason for a harsher one.
                        let outcome = Outcome::NotSent { text, retry_after: None };
                        events.push_back(Event::Done { intent, outcome });
                    }
                    other => out.push(other),
                }
            }
            // The records of one step are one order: the ledger keeps all of them or none.
            if let Err(Ended(ids)) = self.ledger_writer.keep(records) {
                events.extend(ids.into_iter().map(Event::RecordFailed));
            }
        }
        out
    }

    /// The events that an answer of the ledger leads to, one step each.
    fn acknowledge(&mut self, ack: Ack) -> VecDeque<Event> {
        match ack {
            Ack::Kept(ids) => {
                self.ledger_writer.answered(ids.len());
                for id in &ids {
                    self.seen_effects.acknowledge(*id);
                }
                ids.into_iter().map(Event::Recorded).collect()
            }
            Ack::Refused(unkept) => {
                self.ledger_writer.answered(unkept.len());
                let (ids, records): (Vec<_>, Vec<_>) = unkept.into_iter().unzip();
                self.logged.refused(records);
                ids.into_iter().map(Event::RecordFailed).collect()
            }
            Ack::Over => VecDeque::new(),
            Ack::WantsCheckpoint => {
                self.ledger_writer.rotate(self.state.checkpoint());
                VecDeque::new()
            }
        }
    }

    fn complain(&mut self, violation: &Violation) {
        tracing::error!(
            invariant = violation.invariant,
            "a safety invariant is broken, please report this: {violation}"
        );
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(violation.clone());
        }
    }

    /// Ends the ledger after everything that was passed to it, and returns the state.
    pub(crate) fn end(self) -> State {
        self.ledger_writer.end();
        if let Some(recorder) = self.recorder {
            recorder.end();
        }
        self.state
    }
}
