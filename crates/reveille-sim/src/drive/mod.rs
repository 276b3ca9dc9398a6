//! Runs the engine against the world as the production loop does, on virtual time.
//!
//! ```text
//!  agenda of the world ─┐
//!  ledger's answers ────┼─▶ earliest ─▶ State::step ─▶ invariants ─▶ effects ─▶ world, ledger, wake-up
//!  wake-ups, ticks ─────┘
//! ```
//!
//! One owner of the state, one event at a time, a tick at least every ten seconds. What happens to the process itself
//! stands here as [`Mishap`]s: it pauses, crashes at the worst moment, finds its disk full, loses its lead. A restart
//! replays what was durable under the next fencing number, and the invariants' memory of intents spans all of them.

mod chronicle;
mod explanations;
mod former;
mod mishap;
mod ownership_check;
mod policy_driver;

use std::collections::{BTreeMap, BTreeSet};

use reveille_core::effect::{Call, Effect, Look};
use reveille_core::engine::invariants::{self, SeenEffects, Violation};
use reveille_core::engine::{Start, State};
use reveille_core::event::{ClusterFact, Command, Event, Pause};
use reveille_core::model::id::Fence;
use reveille_core::model::roster::Roster;
use reveille_core::model::time::{Span, Time};
use reveille_core::record::Record;

use crate::ledger::Store;
use crate::oracle::{Foul, Oracle, Scene};
use crate::policy::Rival;
use crate::trace::{Digest, Log};
use crate::world::World;
use crate::world::fault::Fault;
use crate::world::layout::Layout;

/// The engine, its world, and everything between them.
#[derive(Clone, Debug)]
pub struct Drive {
    /// The world. Faults are scheduled here, and truth is read here.
    pub world: World,
    state: State,
    /// The model that decides in the engine's place, if there is one.
    rival: Option<Rival>,
    roster: Roster,
    now: Time,
    began: Time,
    store: Store,
    /// When the engine wants to be woken, on its own clock.
    wake: Option<Time>,
    stepped_at: Time,
    /// When that was by its own clock.
    stepped_clock: Time,
    /// The last of these times whose records are durable, with those of all steps before, as the process keeps it for the next
    /// one: a heartbeat waits behind them in the queue of the disk. A clock that is set while no process runs does not change
    /// what is kept (seed 5804561).
    alive_at: Time,
    /// The world's time of then.
    alive_truly_at: Time,
    tick: Span,
    mishaps: BTreeMap<(Time, u64), Mishap>,
    put: u64,
    crash_at: Option<(CrashPoint, Span)>,
    crash_beside: Option<(u32, bool, Span)>,
    /// How far the process's clock is off, milliseconds.
    skew_ms: i64,
    run: Run,
    /// Since when the process sleeps.
    asleep_since: Option<Time>,
    /// After a sleep of some length the watch lists again.
    lists_after_sleep: bool,
    /// So many starts more end before their first step, each so long before the next.
    starts_fail: (u32, Span),
    backlog: Vec<Event>,
    /// The process that led before and does not know, while it lives.
    former: Option<Box<Former>>,
    /// True while that one has its turn.
    is_former: bool,
    /// No message passes between this process and the world.
    deaf: bool,
    fence: Fence,
    acting: bool,
    pauses: BTreeSet<Pause>,
    /// Since when the ledger's disk is full, and when it had room again.
    refused: Option<(Time, Option<Time>)>,
    ownership_check: Option<OwnershipCheck>,
    seen_effects: SeenEffects,
    violations: Vec<Violation>,
    /// The oracle that judges by the truth, if there is one.
    oracle: Option<Box<Oracle>>,
    log: Log,
    digest: Digest,
    whole_trace: bool,
    counts: Counts,
    /// When what was read last.
    looked: BTreeMap<Look, Time>,
    /// The last that was read less than [`OFTEN`] after it had been read, and when.
    repeated: Option<(Time, Look)>,
    chronicle: Option<Vec<Happened>>,
    explanations: Explanations,
}

/// Whether the process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Run {
    Running,
    Paused(Time),
    Dead(Time),
}

/// How much was asked of the outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Steps of the engine.
    pub steps: u64,
    /// Records asked for.
    pub records: u64,
    /// Calls asked for.
    pub calls: u64,
    /// Targeted reads asked for.
    pub looks: u64,
    /// Of these, reads of what a service user holds. They have a rhythm of their own and go on while all is well.
    pub roles: u64,
    /// Of the others, those of what was read less than [`OFTEN`] before.
    pub repeated: u64,
}

pub use chronicle::{Happened, What};
use explanations::Explanations;
pub use explanations::{Misled, Named, Said};
use former::Former;
pub use mishap::{CrashPoint, Estranged, Mishap, Usurped};
use ownership_check::OwnershipCheck;

/// What is read again within this is asked for over and over; a read that comes seldom may go on for ever.
const OFTEN: Span = Span::from_min(60);
/// The longest time between two steps.
const TICK: Span = Span::from_s(10);
/// The search for lost wake-ups decides about every open case: in so many steps once.
const WAITS_EVERY: u64 = 8;
/// The same where nothing is said that is no news: the engine's own wake-ups have to do, and this only keeps it from
/// taking the silence for a sleep.
const TICK_NEWS_ONLY: Span = Span::from_s(45);

impl Drive {
    /// An engine that remembers nothing, in the layout's world, acting.
    pub fn new(layout: &Layout) -> Self {
        Self::with(layout, true)
    }

    /// The same, only looking.
    pub fn observing(layout: &Layout) -> Self {
        Self::with(layout, false)
    }

    fn with(layout: &Layout, acting: bool) -> Self {
        let roster = layout.roster();
        let fence = Fence(1);
        let mut world = World::new(layout);
        world.listen(layout.start, fence);
        let mut store = Store::new(layout.seed);
        store.keep(Record::Started { at: layout.start, fence });
        Self {
            world,
            state: State::new(roster.clone(), Start { fence, acting }),
            rival: None,
            roster,
            now: layout.start,
            began: layout.start,
            store,
            wake: None,
            stepped_at: layout.start,
            stepped_clock: layout.start,
            alive_at: layout.start,
            alive_truly_at: layout.start,
            tick: if layout.news_only { TICK_NEWS_ONLY } else { TICK },
            mishaps: BTreeMap::new(),
            put: 0,
            crash_at: None,
            crash_beside: None,
            skew_ms: 0,
            run: Run::Running,
            asleep_since: None,
            lists_after_sleep: layout.variety.lists_after_sleep,
            starts_fail: (0, Span::ZERO),
            backlog: Vec::new(),
            former: None,
            is_former: false,
            deaf: false,
            fence,
            acting,
            pauses: BTreeSet::new(),
            refused: None,
            ownership_check: None,
            seen_effects: SeenEffects::default(),
            violations: Vec::new(),
            oracle: None,
            log: Log::new(layout.start),
            digest: Digest::default(),
            whole_trace: false,
            counts: Counts::default(),
            looked: BTreeMap::new(),
            repeated: None,
            chronicle: None,
            explanations: Explanations::default(),
        }
    }

    /// Takes every byte of every event into the digest.
    #[must_use]
    pub const fn whole_trace(mut self) -> Self {
        self.whole_trace = true;
        self
    }

    /// This fault strikes after so long from now.
    pub fn fault_in(&mut self, after: Span, fault: Fault) {
        self.world.schedule(self.now + after, fault);
    }

    /// This fault strikes now.
    pub fn fault(&mut self, fault: Fault) {
        self.fault_in(Span::ZERO, fault);
    }

    /// This happens to the process after so long from now.
    pub fn mishap_in(&mut self, after: Span, mishap: Mishap) {
        self.put += 1;
        self.mishaps.insert((self.now + after, self.put), mishap);
    }

    /// Lets so much time pass.
    pub fn run_for(&mut self, span: Span) {
        let end = self.now + span;
        while self.turn_before(end) {}
    }

    /// Does what is due next, if that is not after `end`. False when nothing is; then it is `end`.
    pub fn turn_before(&mut self, end: Time) -> bool {
        let at = self.next_at();
        if at > end {
            self.now = end;
            return false;
        }
        self.now = self.now.max(at);
        self.turn();
        true
    }

    /// Lets time pass until this is so, or so much has passed. True when it is so.
    pub fn run_until(&mut self, within: Span, done: impl Fn(&Self) -> bool) -> bool {
        let end = self.now + within;
        while self.now < end {
            if done(self) {
                return true;
            }
            let at = self.next_at().min(end);
            self.now = self.now.max(at);
            self.turn();
        }
        done(self)
    }

    fn next_at(&self) -> Time {
        let world = self.world.next_at();
        let mishap = self.mishaps.first_key_value().map(|((at, _), _)| *at);
        let own = match (self.run, &self.rival) {
            (Run::Running, Some(rival)) => Some(rival.next_at()),
            (Run::Running, None) => {
                let tick = Some(self.stepped_at + self.tick);
                [self.store.next_at(), self.waking_at(), tick].into_iter().flatten().min()
            }
            (Run::Paused(until) | Run::Dead(until), _) => Some(until),
        };
        [world, mishap, own, self.former_next_at()].into_iter().flatten().min().unwrap_or(self.now + TICK)
    }

    /// The engine's wake-up stands on its own clock.
    fn waking_at(&self) -> Option<Time> {
        self.wake.map(|at| Time::from_ms(at.ms - self.skew_ms))
    }

    /// Everything that is due now.
    fn turn(&mut self) {
        while let Some(entry) = self.mishaps.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let mishap = entry.remove();
            self.befall(mishap);
        }
        let events = self.world.advance(self.now);
        for told in self.world.take_told() {
            self.log.push(told.at, &told.text);
            self.note(told.at, || What::World(told.text));
        }
        for said in self.world.take_said() {
            self.log.push(said.at, &format!("the agent of {}: {}", said.machine, said.text));
            self.note(said.at, || What::Agent(said.machine, said.text));
        }
        if let Some(rival) = &mut self.rival {
            rival.watch(self.now, &self.world);
        }
        if self.rival.is_some() {
            match self.run {
                Run::Running => self.let_rival_act(events),
                run => self.sleep_on(run, events),
            }
            return;
        }
        self.live(events);
        self.let_former_act();
    }

    /// A process takes in what reached it, and does what is due.
    fn live(&mut self, events: Vec<Event>) {
        match self.run {
            Run::Running => events.into_iter().for_each(|event| self.step(event)),
            run => self.sleep_on(run, events),
        }
        self.answer_records();
        let waking = self.waking_at().is_some_and(|at| at <= self.now);
        if self.run == Run::Running && (waking || self.now.since(self.stepped_at) >= self.tick) {
            self.step(Event::Tick);
        }
        self.check_ledger();
    }

    /// No intent stands in one ledger twice, however often the process died and the ledger was rotated.
    fn check_ledger(&mut self) {
        if let Some(intent) = self.store.take_twice() {
            let what = format!("{intent} stands in the ledger twice");
            self.break_rule(Violation { invariant: 6, what });
        }
    }

    fn break_rule(&mut self, violation: Violation) {
        self.log.push(self.now, &format!("VIOLATION {violation}"));
        self.note(self.now, || What::Broken(violation.clone()));
        self.violations.push(violation);
    }

    /// A process that does not run: it sleeps on, or wakes, or another starts in its place.
    fn sleep_on(&mut self, run: Run, events: Vec<Event>) {
        match run {
            Run::Running => {}
            Run::Paused(until) => {
                // No client polls while the process sleeps; pushed events wait in its sockets.
                let pushed = |event: &Event| {
                    !matches!(
                        event,
                        Event::Cluster(ClusterFact::Leases(_) | ClusterFact::Alive) | Event::Cloud { .. }
                    )
                };
                self.backlog.extend(events.into_iter().filter(pushed));
                if self.now >= until {
                    let who = if self.is_former { "the process that led before" } else { "the process" };
                    self.tell(format!("{who} goes on"));
                    self.world.listings_lost_since(self.stepped_at);
                    self.run = Run::Running;
                    // That the process that leads now sleeps is its own affair: its watch never listed again.
                    let asleep_since = self.asleep_since.filter(|_| !self.is_former);
                    let slept = asleep_since.map(|since| self.now.since(since));
                    if let Some((oracle, slept)) = self.oracle.as_mut().zip(slept) {
                        oracle.woke_up(self.now, slept);
                    }
                    if let Some(since) = asleep_since
                        && self.lists_after(self.now.since(since))
                    {
                        self.world.wake_up();
                    }
                    // Pauses are read from where people keep them, before anything that waits in a queue.
                    let pauses = self.pauses.clone();
                    self.step(Event::Command(Command::Pauses(pauses)));
                    let backlog = std::mem::take(&mut self.backlog);
                    backlog.into_iter().for_each(|event| self.step(event));
                    // One that dies amid that has not taken in what it slept through (seed 7805334).
                    self.asleep_since = self.asleep_since.filter(|_| self.is_former);
                }
            }
            Run::Dead(until) if self.now >= until => self.restart(),
            Run::Dead(_) => {}
        }
    }

    fn answer_records(&mut self) {
        while self.run == Run::Running {
            let intended = matches!(self.store.about_to_acknowledge(self.now), Some(Record::Intended { .. }));
            if intended && self.crashes(CrashPoint::BeforeAcknowledged) {
                self.store.make_durable();
                self.die();
                return;
            }
            let Some(event) = self.store.answer(self.now) else { return };
            self.step(event);
        }
    }

    fn step(&mut self, event: Event) {
        if self.run != Run::Running {
            return;
        }
        self.be_cautious(&event);
        if let Event::Recorded(id) = &event {
            self.seen_effects.acknowledge(*id);
        }
        if self.waking_at().is_some_and(|at| at <= self.now) {
            self.wake = None;
        }
        let event = crate::catalogue::judge().heard(event);
        let ended = matches!(event, Event::Done { .. });
        if ended && self.crashes(CrashPoint::BeforeDone) {
            self.die();
            return;
        }
        self.digest.event(self.now, &event, self.whole_trace);
        let own = self.clock();
        if let Some(oracle) = self.oracle.as_mut().filter(|_| !self.is_former) {
            oracle.hear(self.now, own, &event, &self.roster);
        }
        let effects = self.state.step(self.clock(), event);
        self.stepped_at = self.now;
        self.stepped_clock = self.clock_of(self.now);
        self.counts.steps += 1;
        self.digest.effects(&effects);
        if let Err(violation) = invariants::check(&self.state, &effects, &mut self.seen_effects) {
            self.break_rule(violation);
        }
        // A lost wake-up lasts, and so does a wrong count: they are found as well in every eighth step, and cost a walk over
        // all there is.
        if self.counts.steps.is_multiple_of(WAITS_EVERY) {
            let walks = [invariants::check_waits(&self.state), invariants::check_kept(&self.state)];
            walks.into_iter().filter_map(Result::err).for_each(|violation| self.break_rule(violation));
        }
        self.ask_oracle(&effects);
        for effect in &effects {
            if !self.is_former {
                self.log.push_effect(self.now, effect);
            }
            if self.dies_beside(false) {
                return;
            }
            self.perform(effect);
            if self.run != Run::Running || self.dies_beside(true) {
                return;
            }
        }
        self.note_alive();
        if ended && self.crashes(CrashPoint::BeforeVerdict) {
            self.die();
        }
    }

    fn note_alive(&mut self) {
        if self.store.next_at().is_none() {
            (self.alive_at, self.alive_truly_at) = (self.stepped_clock, self.stepped_at);
        }
    }

    fn ask_oracle(&mut self, effects: &[Effect]) {
        let Some(oracle) = self.oracle.as_mut().filter(|_| !self.is_former) else { return };
        let known = oracle.fouls().len();
        let scene = Scene { world: &self.world, roster: &self.roster };
        oracle.judge(effects, &scene);
        for foul in &oracle.fouls()[known..] {
            self.log.push(self.now, &format!("FOUL {}: {}", foul.rule, foul.what));
        }
    }

    fn perform(&mut self, effect: &Effect) {
        if self.is_former {
            return self.perform_as_former(effect);
        }
        match effect {
            Effect::Record { id, record } => {
                self.counts.records += 1;
                self.hear_said(record);
                self.note(self.now, || What::Record(record.clone()));
                self.store.ask(self.now, *id, record.clone());
                if matches!(record, Record::Intended { .. }) && self.crashes(CrashPoint::BeforeRecord) {
                    self.die();
                }
            }
            Effect::Call { .. } => {
                self.counts.calls += 1;
                if self.crashes(CrashPoint::BeforeCall) {
                    self.die();
                    return;
                }
                self.world.perform(self.now, effect);
            }
            Effect::Look { look, .. } => {
                self.count_look(look);
                self.world.perform(self.now, effect);
            }
            Effect::List { .. } => self.world.perform(self.now, effect),
            Effect::WakeAt(at) => self.wake = Some(*at),
        }
    }

    /// What the process that led before asks for: nothing of it is told, and none of its records is read again.
    fn count_look(&mut self, look: &Look) {
        self.counts.looks += 1;
        let is_roles = matches!(look, Look::Roles(..));
        self.counts.roles += u64::from(is_roles);
        let last = self.looked.insert(look.clone(), self.now);
        let is_soon = last.is_some_and(|last| self.now.since(last) < OFTEN);
        if is_soon && !is_roles {
            self.counts.repeated += 1;
            self.repeated = Some((self.now, look.clone()));
        }
    }

    fn perform_as_former(&mut self, effect: &Effect) {
        match effect {
            Effect::Record { id, record } => self.store.ask(self.now, *id, record.clone()),
            Effect::WakeAt(at) => self.wake = Some(*at),
            _ if self.deaf => {}
            Effect::Look { .. } | Effect::List { .. } => self.world.perform(self.now, effect),
            Effect::Call { call, .. } => {
                self.tell(format!("the process that led before calls: {call}"));
                self.world.perform(self.now, effect);
            }
        }
    }

    /// The last that was read again soon, and when: for a report of what does not come to rest.
    pub const fn repeated(&self) -> Option<&(Time, Look)> {
        self.repeated.as_ref()
    }

    /// The engine, as it stands.
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// False while the process sleeps or is dead.
    pub fn is_running(&self) -> bool {
        self.run == Run::Running
    }

    /// The time.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// What is durable.
    pub fn records(&self) -> &[Record] {
        self.store.records()
    }

    /// Every invariant that was broken.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Everything that the oracle whistled; nothing in a run without one.
    pub fn fouls(&self) -> &[Foul] {
        self.oracle.as_ref().map_or(&[], |oracle| oracle.fouls())
    }

    /// Machines of ours times the days that have passed.
    pub fn machine_days(&self) -> f64 {
        let machines = self.world.machines().iter().filter(|machine| machine.pool.is_some()).count();
        machines as f64 * self.now.since(self.began).ms as f64 / 86_400_000.0
    }

    /// Has every step judged by the world's truth as well. Begin with it: an oracle that comes late has missed the trail.
    #[must_use]
    pub fn judged(mut self) -> Self {
        self.oracle = Some(Box::default());
        self
    }

    /// Lines for people.
    pub const fn log(&self) -> &Log {
        &self.log
    }

    /// The bytes of the run.
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// How much was asked of the outside.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// The destructive calls that the world was asked for.
    pub fn destructive_calls(&self) -> Vec<Call> {
        let calls = self.world.calls().iter().map(|called| called.call.clone());
        calls.filter(Call::is_destructive).collect()
    }
}
