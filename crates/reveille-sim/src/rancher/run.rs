//! One run of a repair: the escalation, its journal, its world, and what goes wrong between them.
//!
//! ```text
//!  a person orders ─▶ life: Escalation ⇄ World … ─ ended, stopped, dead ─▶ the person asks again ─▶ … ─▶ calm ─▶ the last lives
//! ```
//!
//! After each event that goes in and each effect that comes out the invariant checker is asked, and what was true. The
//! first breach ends the run. When nothing more happens, a person asks a few times more; what is stopped then has a
//! reason that stands.

use std::fmt::Write as _;

use reveille_core::model::time::{Span, Time};
use reveille_rancher::repair::invariant_checker::InvariantChecker;
use reveille_rancher::repair::{Act, Effect, End, Escalation, Event, Line, Outcome as Ended, Pace, Path};

use super::fault::{CATALOG, Fault, Happening, Mishap};
use super::world::World;
use super::{Breach, Outcome};
use crate::trace::Digest;

/// Seconds that pass with each event.
const PASS: Span = Span::from_s(3);
/// A person asks again after so long.
const ASKED_AGAIN: Span = Span::from_min(2);
/// So often, while things happen, and when nothing happens any more.
const LIVES: u32 = 40;
const LAST_LIVES: u32 = 6;
/// Turns of one life.
const TURNS_MAX: u32 = 3_000;
/// An answer that is late comes after the escalation has given it up.
const LATE: Span = Span::from_min(4);
/// Lines of the story that are kept.
const STORY_MAX: usize = 400;

/// What is asked of the next answers.
#[derive(Clone, Copy, Debug, Default)]
struct Armed {
    crash_before: Option<u32>,
    crash_after: Option<u32>,
    act_fails: bool,
    act_refused: bool,
    act_unanswered: bool,
    act_late: bool,
    answer_twice: bool,
    answer_lost: bool,
}

/// A run, played.
pub struct Run {
    /// Its world, as it is now.
    pub world: World,
    /// How it ended.
    pub ended: Option<End>,
    /// Effects performed.
    pub steps: u32,
    /// The first rule that was broken.
    pub breach: Option<Breach>,
    journal: Vec<Line>,
    story: Vec<String>,
    waiting: Vec<Happening>,
    late: Vec<(Time, Event)>,
    armed: Armed,
    began: Time,
    now: Time,
    lives: u32,
    checker: InvariantChecker,
    digest: Digest,
}

enum Performed {
    Ended,
    Said(Option<Event>),
    Wake(Time),
}

impl Run {
    fn new(world: World, happenings: Vec<Happening>) -> Self {
        let began = Time::from_ms(1_763_700_000_000);
        Self {
            checker: InvariantChecker::new(world.order.clone(), Pace::default()),
            world,
            ended: None,
            steps: 0,
            breach: None,
            journal: Vec::new(),
            story: Vec::new(),
            waiting: happenings,
            late: Vec::new(),
            armed: Armed::default(),
            began,
            now: began,
            lives: 0,
            digest: Digest::default(),
        }
    }

    /// Nothing goes wrong, and no operator starts the repair again.
    pub fn calm(world: World) -> Self {
        let mut run = Self::new(world, Vec::new());
        run.live();
        run
    }

    /// The process dies once, before or after its effect of this number, and is started again.
    pub fn with_crash(world: World, at: u32, after: bool) -> Self {
        let mut run = Self::new(world, Vec::new());
        let at = Some(at.saturating_sub(1));
        (run.armed.crash_before, run.armed.crash_after) = if after { (None, at) } else { (at, None) };
        run.live();
        if run.ended.is_none() {
            run.live();
        }
        run
    }

    /// One process that ends after its effect of this number, and no operator starts the repair again.
    pub fn cut_short(world: World, at: u32) -> Self {
        let mut run = Self::new(world, Vec::new());
        run.armed.crash_after = Some(at.saturating_sub(1));
        run.live();
        run
    }

    /// What is durable.
    pub fn journal(&self) -> &[Line] {
        &self.journal
    }

    /// All of this happens.
    pub fn random(world: World, happenings: Vec<Happening>) -> Self {
        let mut run = Self::new(world, happenings);
        for _ in 0..LIVES {
            run.live();
            if run.is_over() || run.waiting.is_empty() {
                break;
            }
            run.wait_for_the_person();
        }
        run.armed = Armed::default();
        run.late.clear();
        for _ in 0..LAST_LIVES {
            if run.is_over() {
                break;
            }
            run.now = run.now + Span::from_min(20);
            run.world.settle(run.now);
            run.world.settle(run.now + PASS);
            run.live();
        }
        run.judge_the_end();
        run
    }

    /// What is known of it.
    pub fn outcome(self) -> Outcome {
        Outcome {
            story: self.story.join("\n"),
            breach: self.breach,
            ended: self.ended,
            steps: self.steps,
            lives: self.lives,
            digest: self.digest.to_string(),
        }
    }

    /// What happened, line by line.
    pub fn story(&self) -> String {
        self.story.join("\n")
    }

    fn is_over(&self) -> bool {
        self.breach.is_some() || matches!(self.ended, Some(End::Closed(_)))
    }

    fn wait_for_the_person(&mut self) {
        let until = self.now + ASKED_AGAIN;
        while self.now < until {
            self.pass();
        }
    }

    fn tell(&mut self, text: &str) {
        self.tell_as(text, text);
    }

    /// `exact` is what the digest rests on, `words` what a person reads: that these may be put better changes no digest.
    fn tell_as(&mut self, exact: &str, words: &str) {
        // Writing into a number does not fail.
        let _ = writeln!(self.digest, "{} {exact}", self.now.ms);
        if self.story.len() < STORY_MAX {
            let after = self.now.since(self.began).ms / 1_000;
            self.story.push(format!("{after} s: {words}"));
        }
    }

    fn breaks(&mut self, by: &'static str, what: String) {
        if self.breach.is_none() {
            let tail = self.story.len().saturating_sub(30);
            let story = self.story.get(tail..).unwrap_or_default().join("\n");
            self.breach = Some(Breach { by, what, story });
        }
    }

    /// One life of the process.
    fn live(&mut self) {
        self.ended = None;
        self.lives += 1;
        self.checker.crashed();
        let order = self.world.order.clone();
        let (mut escalation, mut effects) =
            Escalation::begin(order, Pace::default(), self.journal.clone(), self.now);
        for _ in 0..TURNS_MAX {
            let mut said = Vec::new();
            let mut wake = None;
            for effect in effects.drain(..) {
                self.steps += 1;
                for what in self.checker.judge(self.now, &effect) {
                    self.breaks("invariant checker", what);
                }
                if self.breach.is_some() || self.dies(false) {
                    return;
                }
                match self.perform(effect) {
                    Performed::Ended => return,
                    Performed::Said(event) => said.extend(event),
                    Performed::Wake(at) => wake = Some(at),
                }
                if self.dies(true) {
                    return;
                }
            }
            let mut said = self.answers(said);
            if said.is_empty() {
                self.sleep(wake);
                said.extend(self.take_late());
                said.push(Event::Tick);
            }
            for event in said {
                self.pass();
                self.checker.hear(self.now, &event);
                effects.extend(escalation.step(self.now, event));
            }
            if let Some(harm) = self.world.harms.first().cloned() {
                return self.breaks("truth", harm);
            }
        }
        self.breaks("liveness", "it does not end".to_owned());
    }

    /// Until the escalation wants to be woken, in steps, so that the world goes on meanwhile.
    fn sleep(&mut self, wake: Option<Time>) {
        let until = wake.unwrap_or(self.now + PASS);
        while self.now + PASS < until {
            self.pass();
        }
        self.now = self.now.max(until);
    }

    /// Time goes by, for controllers and other hands.
    fn pass(&mut self) {
        self.now = self.now + PASS;
        while self.waiting.first().is_some_and(|first| self.began + first.after <= self.now) {
            let happening = self.waiting.remove(0);
            let name = happening.name;
            let says = CATALOG.iter().find(|entry| entry.name == name).map_or("", |entry| entry.says);
            self.tell_as(&format!("HAPPENS {name}"), &format!("HAPPENS {name}: {says}"));
            match happening.what {
                Fault::World(inject, lasts) => self.world.inject(self.now, inject, lasts),
                Fault::Process(mishap) => self.arm(mishap),
            }
        }
        self.world.settle(self.now);
    }

    fn arm(&mut self, mishap: Mishap) {
        let armed = &mut self.armed;
        match mishap {
            Mishap::CrashBefore(effects) => armed.crash_before = Some(effects),
            Mishap::CrashAfter(effects) => armed.crash_after = Some(effects),
            Mishap::ActFails => armed.act_fails = true,
            Mishap::ActRefused => armed.act_refused = true,
            Mishap::ActUnanswered => armed.act_unanswered = true,
            Mishap::ActLate => armed.act_late = true,
            Mishap::AnswerTwice => armed.answer_twice = true,
            Mishap::AnswerLost => armed.answer_lost = true,
        }
    }

    fn dies(&mut self, after: bool) -> bool {
        let count = if after { &mut self.armed.crash_after } else { &mut self.armed.crash_before };
        match count {
            Some(0) => *count = None,
            Some(left) => {
                *left -= 1;
                return false;
            }
            None => return false,
        }
        self.late.clear();
        self.tell("the process is dead");
        true
    }

    fn answers(&mut self, events: Vec<Event>) -> Vec<Event> {
        let mut said = Vec::new();
        for event in events {
            if std::mem::take(&mut self.armed.answer_twice) {
                said.push(event.clone());
            }
            let is_late = matches!(event, Event::Done { .. }) && std::mem::take(&mut self.armed.act_late);
            if is_late {
                self.late.push((self.now + LATE, event));
            } else if !std::mem::take(&mut self.armed.answer_lost) {
                said.push(event);
            }
        }
        said
    }

    fn take_late(&mut self) -> Vec<Event> {
        let now = self.now;
        let (due, later) = std::mem::take(&mut self.late).into_iter().partition(|(at, _)| *at <= now);
        self.late = later;
        let due: Vec<(Time, Event)> = due;
        due.into_iter().map(|(_, event)| event).collect()
    }

    fn perform(&mut self, effect: Effect) -> Performed {
        match effect {
            Effect::Look { look } => {
                let seen = self.world.look();
                if let Err(why) = &seen {
                    self.tell(&format!("a look: {why}"));
                }
                Performed::Said(Some(Event::Looked { look, seen: Box::new(seen) }))
            }
            Effect::Record { line, what } => {
                self.tell_as(&format!("{line}: {what:?}"), &format!("journal {line}: {}", what.words()));
                self.journal.push(what);
                Performed::Said(Some(Event::Recorded { line }))
            }
            Effect::Do { number, act } => Performed::Said(Some(self.carry_out(number, &act))),
            Effect::WakeAt(at) => Performed::Wake(at),
            Effect::Tell(text) => {
                self.tell(&text);
                Performed::Said(None)
            }
            Effect::End(end) => {
                self.tell_as(&format!("{end:?}"), &end.words());
                self.ended = Some(end);
                Performed::Ended
            }
        }
    }

    fn carry_out(&mut self, number: u32, act: &Act) -> Event {
        let why = || "so it was drawn".to_owned();
        let armed = &mut self.armed;
        let outcome = if std::mem::take(&mut armed.act_refused) {
            Ended::Refused { why: why() }
        } else if std::mem::take(&mut armed.act_fails) {
            Ended::Failed { why: why() }
        } else if std::mem::take(&mut armed.act_unanswered) {
            self.world.perform(act);
            Ended::Unknown { why: why() }
        } else {
            self.world.perform(act)
        };
        let words = act.words();
        self.tell_as(&format!("{words}: {outcome:?}"), &format!("{words}: {}", outcome.words()));
        Event::Done { number, outcome }
    }

    /// What is stopped when nothing happens any more has a reason that stands.
    fn judge_the_end(&mut self) {
        let why = match &self.ended {
            Some(End::Stopped { why, .. }) => why.clone(),
            Some(End::Closed(how)) => return self.judge_closing(&format!("{how:?}")),
            None => "not said how it ended".to_owned(),
        };
        let passing = ["saw nothing", "was tried", "taken an hour", "does not become durable", "not said"];
        if passing.iter().any(|part| why.contains(part)) && !self.world.member_returns {
            self.breaks("liveness", format!("it stays stopped: {why}"));
        }
    }

    /// What it says at the end is so.
    fn judge_closing(&mut self, how: &str) {
        let is_new = self.world.subject().is_some_and(|node| node.uid.as_str() == "uid-w-3");
        if how == "HandedOver" && is_new {
            self.breaks("truth", "handed over, and its Node was never deleted".to_owned());
        }
        if how == "Mended" && self.world.order.path != Path::Mend {
            self.breaks("truth", "mended on the other way".to_owned());
        }
    }
}
