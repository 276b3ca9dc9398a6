//! The loop of both kinds of repair: look, decide, record, act, record, look again.
//!
//! A [`Escalation`] is made from its order and the lines of its journal; a restart is the same call with the lines that are
//! there. What it keeps beside the journal (since when looks agree) starts again from nothing, so that a restart only makes
//! it wait longer.
//!
//! Answers carry the number of their request: an answer that comes twice, late, or from before a restart matches no pending
//! request.

use reveille_core::model::time::{Span, Time};

use super::journal::{Journal, Next, Seen};
use super::observation::Observation;
use super::safeguard::{Safeguard, stands};
use super::safeguards::node_ips;
use super::{Act, ActKind, Effect, End, Event, Line, Order, Outcome, Pace, Path, WITHIN, evict, mend};

/// A look, a line or an act that is not answered for so long counts as not answered.
const ANSWER_WITHIN: Span = Span::from_min(2);
/// Looks in a row that may fail.
const BLIND_MAX: u32 = 10;
/// One thing is tried so often. Evictions are many by their nature, and have their own end.
const TRIES_MAX: u32 = 3;

#[derive(Clone, PartialEq, Eq, Debug)]
enum Phase {
    Looking { until: Time },
    Recording { line: Line, until: Time },
    Acting { number: u32, until: Time },
    Waiting { until: Time },
    Over,
}

/// A repair on its way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Escalation {
    order: Order,
    pace: Pace,
    journal: Journal,
    seen: Seen,
    phase: Phase,
    look: u32,
    blind: u32,
    began: Time,
    told: String,
}

impl Escalation {
    /// Begins, or goes on from what the journal says. The first thing is a look, either way.
    pub fn begin(order: Order, pace: Pace, lines: Vec<Line>, now: Time) -> (Self, Vec<Effect>) {
        let journal = Journal::of_earlier(lines);
        let mut escalation = Self {
            order,
            pace,
            journal,
            seen: Seen::default(),
            phase: Phase::Over,
            look: 0,
            blind: 0,
            began: now,
            told: String::new(),
        };
        if let Some(how) = escalation.journal.closed().cloned() {
            return (escalation, vec![Effect::End(End::Closed(how))]);
        }
        let effects = escalation.look(now);
        (escalation, effects)
    }

    /// One event, and what follows from it.
    pub fn step(&mut self, now: Time, event: Event) -> Vec<Effect> {
        match (event, self.phase.clone()) {
            (Event::Looked { look, seen }, Phase::Looking { .. }) if look == self.look => match *seen {
                Ok(observation) => {
                    self.blind = 0;
                    self.decide(now, &observation)
                }
                Err(why) => self.blind(now, why),
            },
            (Event::Recorded { line }, Phase::Recording { line: what, .. }) if line == self.next_line() => {
                self.recorded(now, what)
            }
            (Event::Done { number, outcome }, Phase::Acting { number: awaited, .. }) if number == awaited => {
                self.record(now, Line::Ended { number, outcome })
            }
            (Event::Tick, Phase::Waiting { until }) if now >= until => self.look(now),
            (Event::Tick, Phase::Looking { until }) if now >= until => {
                self.blind(now, "no look came back".to_owned())
            }
            (Event::Tick, Phase::Acting { number, until }) if now >= until => {
                let outcome = Outcome::Unknown { why: "no answer came".to_owned() };
                self.record(now, Line::Ended { number, outcome })
            }
            (Event::Tick, Phase::Recording { until, .. }) if now >= until => {
                self.stop("the journal does not become durable: nothing is done without it".to_owned())
            }
            _ => Vec::new(),
        }
    }

    fn next_line(&self) -> u32 {
        u32::try_from(self.journal.len()).unwrap_or(u32::MAX).saturating_add(1)
    }

    fn look(&mut self, now: Time) -> Vec<Effect> {
        let until = now + ANSWER_WITHIN;
        self.look += 1;
        self.phase = Phase::Looking { until };
        vec![Effect::Look { look: self.look }, Effect::WakeAt(until)]
    }

    fn wait(&mut self, now: Time, what: String) -> Vec<Effect> {
        let until = now + self.pace.look_every();
        self.phase = Phase::Waiting { until };
        let mut effects = Vec::new();
        if self.told != what {
            effects.push(Effect::Tell(format!("waits {what}")));
            self.told = what;
        }
        effects.push(Effect::WakeAt(until));
        effects
    }

    /// A look that failed agrees with nothing: every wait for a second look begins again.
    fn blind(&mut self, now: Time, why: String) -> Vec<Effect> {
        self.seen = Seen::default();
        self.blind += 1;
        if self.blind >= BLIND_MAX {
            return self.stop(format!("{BLIND_MAX} looks in a row saw nothing: {why}"));
        }
        self.wait(now, format!("to look again: {why}"))
    }

    fn decide(&mut self, now: Time, observation: &Observation) -> Vec<Effect> {
        if let Some(why) = observation.hands_off.as_ref().filter(|_| stands(Safeguard::HandsOff)) {
            return self.stop(format!("hands off: {why}"));
        }
        if now.since(self.began) > WITHIN {
            return self.stop("it has taken an hour".to_owned());
        }
        let (order, journal, seen) = (&self.order, &self.journal, &mut self.seen);
        let next = match order.path {
            Path::Evict => evict::next(order, self.pace, journal, seen, now, observation),
            Path::Mend => mend::next(order, self.pace, journal, seen, now, observation),
        };
        match next {
            Next::Wait(what) => self.wait(now, what),
            Next::Stop(why) => self.stop(why),
            Next::Close(how) => self.record(now, Line::Closed { how }),
            Next::Act(act) => self.intend(now, act, observation),
        }
    }

    fn intend(&mut self, now: Time, act: Act, observation: &Observation) -> Vec<Effect> {
        if self.journal.node_uid().is_none() {
            let Some(node) = observation.node(&self.order) else {
                return self.stop("its Node is not there".to_owned());
            };
            let line = Line::Begun {
                at_ms: now.ms,
                order: self.order.clone(),
                node_uid: node.uid.as_str().to_owned(),
                ips: node_ips(Some(node)),
                roles: node.roles.clone(),
            };
            return self.record(now, line);
        }
        let tried = self.journal.own().filter(|(_, _, before)| is_same(before, &act)).count();
        if stands(Safeguard::TriesEnd) && act.kind() != ActKind::Evict && tried >= TRIES_MAX as usize {
            return self.stop(format!("{} was tried {TRIES_MAX} times, and is not so", act.words()));
        }
        let number = u32::try_from(self.journal.intents().count()).unwrap_or(u32::MAX).saturating_add(1);
        let line = Line::Intent { number, at_ms: now.ms, what: act };
        if !stands(Safeguard::IntentFirst) {
            return self.recorded(now, line);
        }
        self.record(now, line)
    }

    fn record(&mut self, now: Time, line: Line) -> Vec<Effect> {
        let until = now + ANSWER_WITHIN;
        self.phase = Phase::Recording { line: line.clone(), until };
        vec![Effect::Record { line: self.next_line(), what: line }, Effect::WakeAt(until)]
    }

    /// A line is durable: only now does what it says become so.
    fn recorded(&mut self, now: Time, line: Line) -> Vec<Effect> {
        self.journal.push(line.clone());
        match line {
            Line::Begun { .. } => self.look(now),
            Line::Intent { number, what, .. } => {
                let until = now + ANSWER_WITHIN;
                self.phase = Phase::Acting { number, until };
                let tell = Effect::Tell(what.words());
                vec![tell, Effect::Do { number, act: what }, Effect::WakeAt(until)]
            }
            Line::Ended { outcome: Outcome::Refused { why }, .. } if stands(Safeguard::RefusedEnds) => {
                self.stop(format!("it was refused: {why}"))
            }
            Line::Ended { outcome, .. } => {
                let mut effects = match outcome {
                    Outcome::Failed { why } | Outcome::Unknown { why } => vec![Effect::Tell(why)],
                    _ => Vec::new(),
                };
                effects.extend(self.look(now));
                effects
            }
            Line::Closed { how } => {
                self.phase = Phase::Over;
                vec![Effect::End(End::Closed(how))]
            }
        }
    }

    fn stop(&mut self, why: String) -> Vec<Effect> {
        self.phase = Phase::Over;
        let of_the_world = |act: &Act| act.kind() != ActKind::Save;
        let changed = self.journal.intents().any(|(_, _, act)| of_the_world(act));
        vec![Effect::End(End::Stopped { why, changed })]
    }
}

/// The same thing to the same object: a write on another revision is the same.
fn is_same(before: &Act, act: &Act) -> bool {
    match (before, act) {
        (Act::DeleteRecord { uid: a, .. }, Act::DeleteRecord { uid: b, .. }) => a == b,
        _ => before.kind() == act.kind(),
    }
}
