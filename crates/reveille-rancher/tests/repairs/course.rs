//! One course of a repair: the ladder, its book, its world, and what goes wrong between them.

use reveille_core::model::time::{Span, Time};
use reveille_rancher::repair::witness::Witness;
use reveille_rancher::repair::{Act, Effect, End, Event, Ladder, Line, Outcome, Pace};

use crate::world::World;

/// What goes wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mishap {
    /// Nothing.
    None,
    /// The process dies before it performs the effect of this number.
    CrashBefore(u32),
    /// It dies after it performed it, and before anybody heard.
    CrashAfter(u32),
    /// Anything, by the seed.
    Random,
}

/// How it went.
pub(crate) struct Course {
    pub(crate) world: World,
    pub(crate) ended: Option<End>,
    /// Effects performed.
    pub(crate) steps: u32,
    book: Vec<Line>,
    story: Vec<String>,
    mishap: Mishap,
    dice: fastrand::Rng,
    now: Time,
    witness: Witness,
}

/// Seconds that pass with each event.
const PASS_S: i64 = 3;

impl Course {
    fn new(world: World, seed: u64, mishap: Mishap) -> Self {
        let witness = Witness::new(world.order.clone(), Pace::default());
        Self {
            world,
            ended: None,
            steps: 0,
            book: Vec::new(),
            story: Vec::new(),
            mishap,
            dice: fastrand::Rng::with_seed(seed),
            now: Time::from_ms(1_763_700_000_000),
            witness,
        }
    }

    /// One life of the process, and nobody asks again.
    pub(crate) fn one_life(world: World, mishap: Mishap) -> Self {
        let mut course = Self::new(world, 1, mishap);
        course.run();
        course
    }

    /// What is durable.
    pub(crate) fn book(&self) -> &[Line] {
        &self.book
    }

    /// Plays it to its end. Whoever is stopped is asked again, as a person would, twenty times.
    pub(crate) fn play(world: World, seed: u64, mishap: Mishap) -> Self {
        let mut course = Self::new(world, seed, mishap);
        for _ in 0..20 {
            course.run();
            let is_stopped =
                matches!(&course.ended, Some(End::Stopped { .. })) && matches!(mishap, Mishap::Random);
            if course.ended.is_some() && !is_stopped {
                return course;
            }
        }
        // Calm at last: what is left is decided.
        course.mishap = Mishap::None;
        for _ in 0..10 {
            course.world.settle();
            course.run();
            if matches!(&course.ended, Some(End::Closed(_))) {
                break;
            }
        }
        course
    }

    pub(crate) fn story(&self) -> String {
        self.story.join("\n")
    }

    fn chance(&mut self, of: u32) -> bool {
        matches!(self.mishap, Mishap::Random) && self.dice.u32(0..of) == 0
    }

    /// One life of the process.
    fn run(&mut self) {
        self.ended = None;
        self.witness.crashed();
        let (mut ladder, mut effects) =
            Ladder::begin(self.world.order.clone(), Pace::default(), self.book.clone(), self.now);
        for _ in 0..3_000 {
            let mut events = Vec::new();
            let mut wake = None;
            for effect in effects.drain(..) {
                let breaches = self.witness.judge(self.now, &effect);
                assert!(breaches.is_empty(), "{breaches:?}\n{}", self.story());
                self.steps += 1;
                let dies_before = matches!(self.mishap, Mishap::CrashBefore(at) if at == self.steps);
                let dies_after = matches!(self.mishap, Mishap::CrashAfter(at) if at == self.steps);
                if dies_before || self.chance(60) {
                    self.story.push("crash".to_owned());
                    return;
                }
                match self.perform(effect) {
                    Performed::Ended => return,
                    Performed::Said(event) => events.extend(event),
                    Performed::Wake(at) => wake = Some(at),
                }
                if dies_after || self.chance(60) {
                    self.story.push("crash, after".to_owned());
                    return;
                }
            }
            let mut said = Vec::new();
            for event in events {
                if self.chance(30) {
                    said.push(event.clone());
                }
                if !self.chance(40) {
                    said.push(event);
                }
            }
            if said.is_empty() {
                let pass = wake.map_or(Span::from_s(PASS_S), |at| at.since(self.now));
                self.now = self.now + pass;
                said.push(Event::Tick);
            }
            for event in said {
                self.pass();
                self.witness.hear(self.now, &event);
                effects.extend(ladder.step(self.now, event));
            }
        }
        panic!("it does not end\n{}", self.story());
    }

    /// Time goes by, for controllers and other hands.
    fn pass(&mut self) {
        self.now = self.now + Span::from_s(PASS_S);
        self.world.settle();
        if self.chance(25) {
            self.world.touch_records();
        }
        if self.chance(80) {
            self.world.begin_update();
        }
    }

    fn perform(&mut self, effect: Effect) -> Performed {
        match effect {
            Effect::Look { look } => {
                let seen = if self.chance(12) {
                    Err("the API server is away".to_owned())
                } else {
                    Ok(self.world.sight())
                };
                Performed::Said(Some(Event::Looked { look, seen: Box::new(seen) }))
            }
            Effect::Record { line, what } => {
                self.story.push(format!("{line}: {what:?}"));
                self.book.push(what);
                Performed::Said(Some(Event::Recorded { line }))
            }
            Effect::Do { number, act } => Performed::Said(Some(self.carry_out(number, &act))),
            Effect::WakeAt(at) => Performed::Wake(at),
            Effect::Tell(text) => {
                self.story.push(text);
                Performed::Said(None)
            }
            Effect::End(end) => {
                self.story.push(format!("{end:?}"));
                self.ended = Some(end);
                Performed::Ended
            }
        }
    }

    fn carry_out(&mut self, number: u32, act: &Act) -> Event {
        let why = || "the test says so".to_owned();
        let outcome = if self.chance(8) {
            Outcome::Failed { why: why() }
        } else {
            let outcome = self.world.perform(act);
            if self.chance(8) { Outcome::Unknown { why: why() } } else { outcome }
        };
        Event::Done { number, outcome }
    }
}

enum Performed {
    Said(Option<Event>),
    Wake(Time),
    Ended,
}
