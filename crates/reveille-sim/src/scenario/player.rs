//! Plays a scenario: lets time pass to each moment that the file names, makes happen what it says, and looks after every
//! turn whether what it expects holds.
//!
//! ```text
//!  moments ─▶ Drive::turn_before ─▶ cast, timeline, expectations ─▶ … ─▶ Played
//! ```
//!
//! The player schedules nothing ahead: it settles which machines a statement means when its time comes. Two plays of one file are
//! the same bytes, as their digest shows.

mod final_snapshot;
mod refused;
mod under;

use std::collections::{BTreeMap, BTreeSet};

use reveille_core::event::{Pause, PauseScope};
use reveille_core::model::id::InstanceId;
use reveille_core::model::incident::{MachineKey, Subject};
use reveille_core::model::signs;
use reveille_core::model::time::{Span, Time};
use reveille_core::plan::annotations;
use reveille_core::plan::context::Case;

use crate::drive::{Counts, Drive, What};
use crate::trace::Digest;

use super::Scenario;
use super::cast::Cast;
use super::claim::Claim;
use super::counted::Kept;
use super::deed::{Deed, Scope, Wish};
use super::refusal::Refusal;
use super::scene::Scene;
use super::then::{Expectation, Window};
use super::timeline::{Line, Timeline};
use super::when::Planned;
use super::words::{Machines, shown};

pub use final_snapshot::{FinalSnapshot, play_to_rest};
pub use under::play_under;

/// How an expectation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It held; from when on or at which moment, where that is a moment.
    Held(Option<Span>),
    /// It did not: when that was plain, and what was so instead.
    Failed(Span, String),
}

/// An expectation with how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Its line in the file; 0 for what is expected of every scenario.
    pub line: usize,
    /// As it is written.
    pub text: String,
    /// How it ended.
    pub ended: Ended,
}

/// A scenario that was played.
#[derive(Clone, Debug)]
pub struct Played {
    /// What happened, was seen, concluded, done and held back.
    pub timeline: Vec<Line>,
    /// What was expected, in the order of the file; what is expected of every scenario last.
    pub expected: Vec<Expected>,
    /// How long it was, in its own time.
    pub lasted: Span,
    /// How much was asked of the outside.
    pub counts: Counts,
    /// The bytes of the run.
    pub digest: Digest,
}

impl Played {
    /// True when everything held.
    pub fn holds(&self) -> bool {
        self.expected.iter().all(|expected| matches!(expected.ended, Ended::Held(_)))
    }
}

/// Plays it.
///
/// # Errors
///
/// A statement that names a machine that is not there at its time.
pub fn play(scenario: &Scenario) -> Result<Played, Refusal> {
    let mut played = play_once(scenario)?;
    let replayed =
        scenario.expectations.iter().position(|expected| matches!(expected.claim, Claim::Replayed));
    if let Some(index) = replayed {
        let again = play_once(scenario)?;
        if again.digest != played.digest || again.timeline != played.timeline {
            let instead = format!(
                "{} bytes the first time, {} the second",
                played.digest.bytes(),
                again.digest.bytes()
            );
            played.expected[index].ended = Ended::Failed(scenario.ends, instead);
        }
    }
    Ok(played)
}

fn play_once(scenario: &Scenario) -> Result<Played, Refusal> {
    if let Some(refusal) = &scenario.file.refused {
        return Ok(refused::played(scenario, refusal));
    }
    Ok(play_through(scenario)?.finish(scenario))
}

fn play_through(scenario: &Scenario) -> Result<Play<'_>, Refusal> {
    let mut play = Play::new(scenario);
    let mut events: BTreeMap<Time, Vec<&Planned>> = BTreeMap::new();
    for event in &scenario.events {
        events.entry(play.start + event.at).or_default().push(event);
    }
    let named = scenario.expectations.iter();
    let edges = named.flat_map(|expected| [Some(expected.window.first()), expected.window.last()]).flatten();
    let mut moments: BTreeSet<Time> = edges.map(|edge| play.start + edge).collect();
    moments.extend(events.keys());
    moments.insert(play.start + scenario.ends);
    for moment in moments {
        while play.drive.turn_before(moment) {
            play.after_turn();
        }
        play.after_turn();
        play.close_windows(scenario.ends);
        for event in events.remove(&moment).unwrap_or_default() {
            play.happen(event)?;
        }
    }
    Ok(play)
}

struct Play<'a> {
    drive: Drive,
    start: Time,
    cast: Cast,
    kept: Kept,
    timeline: Timeline,
    pauses: BTreeSet<Pause>,
    waiting: Vec<Waiting<'a>>,
    first_sight: Span,
}

/// An expectation that is being watched.
struct Waiting<'a> {
    expected: &'a Expectation,
    ended: Option<Ended>,
    /// It was not so at some moment of its window: what becomes so is more than what is so anyway.
    was_not: bool,
}

/// Within this time Reveille reads everything for the first time: what it says then is no answer.
const FIRST_SIGHT: Span = Span::from_min(1);
/// The same in a quicker world, where it is listed every few seconds.
const FIRST_SIGHT_QUICK: Span = Span::from_s(5);

impl<'a> Play<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let drive =
            if scenario.acting { Drive::new(&scenario.layout) } else { Drive::observing(&scenario.layout) };
        let drive = match &scenario.file.written {
            Some(written) => drive.with_ownership_check(written.clone()),
            None => drive,
        };
        let mut play = Self {
            drive: drive.with_chronicle(),
            start: scenario.layout.start,
            cast: Cast::default(),
            kept: Kept::default(),
            timeline: Timeline::new(scenario.layout.start),
            pauses: BTreeSet::new(),
            first_sight: if scenario.layout.pace > 1 { FIRST_SIGHT_QUICK } else { FIRST_SIGHT },
            waiting: scenario
                .expectations
                .iter()
                .map(|expected| Waiting { expected, ended: None, was_not: false })
                .collect(),
        };
        play.cast.update(&play.drive);
        play
    }

    fn after_turn(&mut self) {
        self.cast.update(&self.drive);
        let happened = self.drive.take_chronicle();
        for what in &happened {
            if let What::Record(record) = &what.what {
                self.kept.records.push((what.at, record.clone()));
            }
        }
        let reads = self.drive.counts().looks;
        if self.kept.reads.last().is_none_or(|(_, last)| *last != reads) {
            self.kept.reads.push((self.drive.now(), reads));
        }
        self.timeline.take(happened, &self.cast);
        self.timeline.look(&self.drive, &self.cast);
        self.judge();
    }

    /// Expectations that a moment inside their window can settle.
    fn judge(&mut self) {
        let now = self.drive.now();
        for waiting in self.waiting.iter_mut().filter(|waiting| waiting.ended.is_none()) {
            let Waiting { expected, .. } = *waiting;
            let from = self.start + expected.window.first();
            let last = expected.window.last().map(|last| self.start + last);
            let blind = expected.claim.is_word() && now.since(self.start) < self.first_sight;
            if blind || now < from || last.is_some_and(|last| now > last) {
                continue;
            }
            let counts = matches!(expected.claim, Claim::Count(..));
            let any = matches!(expected.window, Window::Never(..));
            let (drive, cast, kept) = (&self.drive, &self.cast, &self.kept);
            let scene = Scene { drive, cast, kept, start: self.start, from, any };
            let at = now.since(self.start);
            waiting.ended = match expected.window {
                Window::By(_) if !counts => {
                    let holds = expected.claim.holds(scene);
                    waiting.was_not |= !holds;
                    (holds && waiting.was_not).then_some(Ended::Held(Some(at)))
                }
                Window::Within(..) if !counts && expected.claim.holds(scene) => Some(Ended::Held(Some(at))),
                Window::Never(..) if expected.claim.holds(scene) => {
                    Some(Ended::Failed(at, expected.claim.tell(scene)))
                }
                Window::Always(..) if !expected.claim.holds(scene) => {
                    Some(Ended::Failed(at, expected.claim.tell(scene)))
                }
                _ => None,
            };
        }
    }

    /// Expectations whose window ends now.
    fn close_windows(&mut self, ends: Span) {
        let now = self.drive.now();
        for waiting in self.waiting.iter_mut().filter(|waiting| waiting.ended.is_none()) {
            let expected = waiting.expected;
            if self.start + expected.window.last().unwrap_or(ends) != now {
                continue;
            }
            let (drive, cast, kept) = (&self.drive, &self.cast, &self.kept);
            let from = self.start + expected.window.first();
            let scene = Scene { drive, cast, kept, start: self.start, from, any: false };
            let at = now.since(self.start);
            let holds = || expected.claim.holds(scene);
            let counts = matches!(expected.claim, Claim::Count(..));
            waiting.ended = Some(match expected.window {
                Window::Never(..) | Window::Always(..) => Ended::Held(None),
                Window::By(_) if !counts && holds() => Ended::Failed(
                    at,
                    "it was so from the beginning; write `at` or `always` if that is meant".to_owned(),
                ),
                Window::By(_) | Window::Within(..) | Window::At(_) | Window::AtEnd if holds() => {
                    Ended::Held(None)
                }
                _ => Ended::Failed(at, expected.claim.tell(scene)),
            });
        }
    }

    fn happen(&mut self, event: &Planned) -> Result<(), Refusal> {
        match &event.deed {
            Deed::Each(who, fault) => {
                for id in self.struck(event, who)? {
                    self.drive.fault(fault(id));
                }
            }
            Deed::All(who, fault) => {
                let ids = self.struck(event, who)?;
                self.drive.fault(fault(ids));
            }
            Deed::World(fault, times) => (0..*times).for_each(|_| self.drive.fault(fault.clone())),
            Deed::Launch(names, fault) => {
                if let Some(name) = names.iter().find(|name| self.cast.id(name).is_some()) {
                    return Err(self.refuse(event, format!("{name} was made before; a machine starts once")));
                }
                names.iter().for_each(|_| self.drive.fault(fault.clone()));
            }
            Deed::Restart(who) => {
                for id in self.struck(event, who)? {
                    self.drive.world.schedule_kubelet_restart(self.drive.now(), &id);
                }
            }
            Deed::Hand(who, act) => {
                for id in self.struck(event, who)? {
                    act(&mut self.drive.world, &id);
                }
            }
            Deed::AddOn(pool, runs) => self.drive.world.set_addon(pool, *runs),
            Deed::Annotate(who, Wish { by, key, value }) => {
                for id in self.struck(event, who)? {
                    self.drive.world.annotate(&id, by, key, value.as_deref());
                }
            }
            Deed::Confirm(who, by) => {
                for id in self.struck(event, who)? {
                    for number in self.open_about(&id) {
                        self.drive.world.annotate(&id, by, signs::CONFIRM, Some(&number));
                    }
                }
            }
            Deed::Process(mishap) => {
                self.timeline.announce(self.drive.now(), &event.text);
                self.drive.mishap_in(Span::ZERO, mishap.clone());
            }
            Deed::Pause(scope, by, reason) => {
                let scope = match scope {
                    Scope::Roster => PauseScope::Roster,
                    Scope::Pool(name) => PauseScope::Pool(name.as_str().into()),
                    Scope::Machine(name) => PauseScope::Machine(name.as_str().into()),
                };
                self.timeline.say(self.drive.now(), &format!("{by} says \"hands off\": {reason}"));
                let (by, reason) = (by.as_str().into(), reason.as_str().into());
                self.pauses.insert(Pause { scope, by, reason });
                self.drive.set_pauses(self.pauses.clone());
            }
            Deed::Resume => {
                self.timeline.say(self.drive.now(), "every \"hands off\" is taken back");
                self.pauses.clear();
                self.drive.set_pauses(BTreeSet::new());
            }
        }
        Ok(())
    }

    /// The numbers of the incidents of a machine that look well and wait for a person's word, as a person reads them.
    fn open_about(&self, id: &InstanceId) -> Vec<String> {
        let context = self.drive.state().context();
        let about = |case: &&Case| {
            let subject = &case.incident.key.subject;
            matches!(subject, Subject::Machine(MachineKey::Instance(_, own)) if own == id)
        };
        let waits = |case: &&Case| annotations::unconfirmed(&context, case).is_some();
        context.cases.values().filter(about).filter(waits).map(|case| case.incident.id.to_string()).collect()
    }

    /// The machines that a statement means; each must be there.
    fn struck(&self, event: &Planned, who: &Machines) -> Result<Vec<InstanceId>, Refusal> {
        let names = self.cast.named(who, &self.drive);
        if names.is_empty() {
            return Err(self.refuse(event, "there is no such machine at that time".to_owned()));
        }
        let found = names.iter().map(|name| {
            let id = self.cast.id(name).filter(|id| self.drive.world.machine(id).is_some());
            id.cloned().ok_or_else(|| {
                let there = self.cast.named(&Machines::All, &self.drive);
                let (first, more) = there.split_at(there.len().min(12));
                let more = if more.is_empty() { "" } else { ", …" };
                self.refuse(
                    event,
                    format!("there is no {name} at that time; there are {}{more}", first.join(", ")),
                )
            })
        });
        found.collect()
    }

    fn refuse(&self, event: &Planned, why: String) -> Refusal {
        Refusal::new(event.line, format!("at {}  {}", shown(event.at), event.text), why)
    }

    fn finish(mut self, scenario: &Scenario) -> Played {
        self.timeline.look_last(&self.drive, &self.cast);
        let waiting = std::mem::take(&mut self.waiting);
        let mut expected: Vec<Expected> = waiting
            .into_iter()
            .map(|Waiting { expected, ended, .. }| Expected {
                line: expected.line,
                text: expected.text.clone(),
                // Every window ends at the latest with the scenario, and then it was judged.
                ended: ended
                    .unwrap_or_else(|| Ended::Failed(scenario.ends, "it was never judged".to_owned())),
            })
            .collect();
        expected.push(self.always("the twelve invariants hold after every step", self.violations()));
        if self.drive.world.has_agents() {
            expected.push(self.always("no agent does what an agent may never do", self.agents_broken()));
        }
        expected.push(self.always("no healthy machine is harmed", self.harms()));
        Played {
            timeline: self.timeline.lines(),
            expected,
            lasted: scenario.ends,
            counts: self.drive.counts(),
            digest: self.drive.digest(),
        }
    }

    fn violations(&self) -> Option<(Span, String)> {
        let first = self.drive.violations().first()?;
        Some((self.drive.now().since(self.start), first.to_string()))
    }

    fn agents_broken(&self) -> Option<(Span, String)> {
        let (at, what) = self.drive.world.agents_broken().first()?;
        Some((at.since(self.start), self.cast.plain(what)))
    }

    fn harms(&self) -> Option<(Span, String)> {
        let first = self.drive.world.harms().first()?;
        Some((first.at.since(self.start), self.cast.plain(&first.what)))
    }

    fn always(&self, text: &str, broken: Option<(Span, String)>) -> Expected {
        let ended = broken.map_or(Ended::Held(None), |(at, what)| Ended::Failed(at, what));
        Expected { line: 0, text: text.to_owned(), ended }
    }
}
