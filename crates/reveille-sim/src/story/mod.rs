//! One written course of events, for showing: a dozen machines in two pools, about forty minutes, six things go wrong.
//!
//! ```text
//!   Demo::next ─▶ Moment { at, told, events } ─▶ the binary's loop: State::step ─▶ effects
//!        ▲                                                             │
//!        └── Demo::perform (calls, reads; and a person who reads the records) ◀─┘
//! ```
//!
//! The caller owns the engine and the ledger and runs them as in production; the story only yields events on a virtual clock and
//! performs effects. The caller may pace the moments to any speed, as long as every record is answered before it asks for the
//! next moment. The seed changes which machine fails, when and in which order. It never changes what a person does: the operator
//! on call restarts a kubelet some minutes after a vanished node is reported.
//!
//! It decides nothing and knows nothing of the engine's state, except in [`Demo::after_step`], which only watches.

mod rehearse;
mod script;
mod summary;

use reveille_core::effect::Effect;
use reveille_core::engine::invariants::SeenEffects;
use reveille_core::event::Event;
use reveille_core::model::id::Fence;
use reveille_core::model::incident::{FaultKind, MachineKey, Subject};
use reveille_core::model::roster::Roster;
use reveille_core::model::time::{Span, Time};
use reveille_core::record::Record;

use crate::rng::{Rng, Stream};
use crate::world::{Told, World};

pub use rehearse::{Part, Rehearsal, play, rehearse};
pub use summary::{Done, Held, Summary, Wrong};

/// The story as it is being told.
#[derive(Clone, Debug)]
pub struct Demo {
    world: World,
    roster: Roster,
    start: Time,
    now: Time,
    /// The last scheduled fault, with its end.
    script_ends: Time,
    calm_since: Option<Time>,
    wake: Option<Time>,
    last: Time,
    people: Rng,
    happened: Vec<Told>,
    seen_effects: SeenEffects,
    watched: summary::Watched,
}

/// A moment at which something reaches the engine or the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The virtual time.
    pub at: Time,
    /// What happened in the world just then, each a plain sentence. Not known to the engine.
    pub told: Vec<String>,
    /// What reaches the engine, in order.
    pub events: Vec<Event>,
}

/// The longest time between two moments: the engine wants a tick at least so often.
const TICK: Span = Span::from_s(10);
/// When all has been well for so long after the last fault, the story is over.
const CALM: Span = Span::from_min(4);
/// A story that does not end well ends here.
const LONGEST: Span = Span::from_min(90);

impl Demo {
    /// The story of this seed, from its beginning.
    pub fn new(seed: u64) -> Self {
        let layout = script::layout(seed);
        let mut world = World::new(&layout);
        let script_ends = script::write(seed, &mut world, layout.start);
        world.listen(layout.start, Fence(1));
        Self {
            world,
            roster: layout.roster(),
            start: layout.start,
            now: layout.start,
            script_ends,
            calm_since: None,
            wake: None,
            last: layout.start,
            people: Rng::new(seed, Stream::People),
            happened: Vec::new(),
            seen_effects: SeenEffects::default(),
            watched: summary::Watched::default(),
        }
    }

    /// What should be. Acting; reboots are proposed only.
    pub const fn roster(&self) -> &Roster {
        &self.roster
    }

    /// When the story begins.
    pub const fn start(&self) -> Time {
        self.start
    }

    /// Calls are carried out for this fencing number only. One, unless said.
    pub const fn lead(&mut self, fence: Fence) {
        self.world.lead(fence);
    }

    /// The next moment, or `None` when the story is over.
    pub fn next_moment(&mut self) -> Option<Moment> {
        loop {
            if self.is_over() {
                return None;
            }
            let tick = self.last + TICK;
            let at = [self.world.next_at(), self.wake, Some(tick)].into_iter().flatten().min()?;
            self.now = self.now.max(at);
            let mut events = self.world.advance(self.now);
            let told = self.world.take_told();
            self.note_calm();
            if self.wake.is_some_and(|wake| wake <= self.now) {
                self.wake = None;
                events.push(Event::Tick);
            }
            if events.is_empty() && self.now >= tick {
                events.push(Event::Tick);
            }
            if events.is_empty() && told.is_empty() {
                continue;
            }
            if !events.is_empty() {
                self.last = self.now;
            }
            let sentences = told.iter().map(|told| told.text.clone()).collect();
            self.happened.extend(told);
            return Some(Moment { at: self.now, told: sentences, events });
        }
    }

    fn note_calm(&mut self) {
        let calm = self.now >= self.script_ends && self.world.all_is_well();
        self.calm_since = if calm { self.calm_since.or(Some(self.now)) } else { None };
    }

    fn is_over(&self) -> bool {
        let calm = self.calm_since.is_some_and(|since| self.now.since(since) >= CALM);
        calm || self.now.since(self.start) >= LONGEST
    }

    /// Carries out an effect of the engine. Every effect may be handed on: of records only the person on call takes
    /// notice, wake-ups become ticks, calls and reads are answered by events of later moments.
    pub fn perform(&mut self, now: Time, effect: &Effect) {
        match effect {
            Effect::WakeAt(at) => self.wake = Some(*at),
            Effect::Record { record, .. } => self.read_report(now, record),
            Effect::Call { .. } | Effect::Look { .. } | Effect::List { .. } => {
                self.world.perform(now, effect)
            }
        }
    }

    /// The person on call sees that a node vanished beside a running machine, and restarts its kubelet after a while.
    fn read_report(&mut self, now: Time, record: &Record) {
        let Record::Opened { key, .. } = record else { return };
        if let (FaultKind::Vanished, Subject::Machine(MachineKey::Instance(_, id))) = (key.kind, &key.subject)
        {
            let after = self.people.span(Span::from_min(3), Span::from_min(6));
            self.world.schedule_kubelet_restart(now + after, id);
        }
    }
}
