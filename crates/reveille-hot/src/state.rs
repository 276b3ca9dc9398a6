//! The detector: `step(now, event) → effects`.
//!
//! ```text
//!  Written ─▶ meter of the object ─ exceeded ─▶ case ─▶ Follow ─▶ Version, Version, … ─▶ flips, writers ─▶ Opened
//!  Listed  ─▶ lifetime rate, second sample ────▶ case                                    cool for a while ─▶ Closed
//!  Scraped ─▶ storms (no-op writes by kind), pressure
//! ```
//!
//! An object costs memory only while it is written: a meter of some ninety bytes that is dropped when it has run dry. Up to a
//! bound all objects are counted exactly, which at ten thousand objects is a megabyte. Above it the least written are forgotten.
//! To lose an object that is written twice a second, all others together would have to be written tens of thousands of times a
//! second.
//!
//! The detector decides nothing about what it finds: it reports.

use std::collections::{BTreeMap, BTreeSet};

use reveille_core::model::time::{Span, Time};
use serde_json::Value;

use crate::bucket::{Exceeded, Meter};
use crate::case::Case;
use crate::event::{Effect, Event};
use crate::kinds::{self, Generation};
use crate::object::{Object, Resource};
use crate::settings::Settings;
use crate::storms::Storms;
use crate::verdict::{Heat, Rate, Subject, Verdict, Witness};

/// Objects whose whole life was hot that are remembered.
const LIVES_MAX: usize = 1_000;
/// A life that is shorter proves nothing.
const LIFE_MIN: Span = Span::from_min(5);
/// Writes of one object from which a short look may call it warm.
const WARM_WRITES: u64 = 4;

/// Everything that is known.
#[derive(Clone, Debug, Default)]
pub struct State {
    settings: Settings,
    /// A short look follows early, and tells what is warm at its end.
    is_short: bool,
    meters: BTreeMap<Object, Meter>,
    cases: BTreeMap<Object, Case>,
    /// Mean rates over a life that are too high.
    lives: BTreeMap<Object, Rate>,
    /// First samples of objects that no watch tells of.
    samples: BTreeMap<Object, (u64, Time)>,
    watched: BTreeSet<Resource>,
    storms: Storms,
    forgotten: u64,
    quiet_until: Time,
}

impl State {
    /// A detector that goes on for ever, or one whose look is short.
    pub fn new(settings: Settings, is_short: bool) -> Self {
        Self { settings, is_short, ..Self::default() }
    }

    /// Takes in what happened, and tells what is to be done.
    pub fn step(&mut self, now: Time, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Watched(resource) => {
                self.storms.watched(&resource);
                self.watched.insert(resource);
            }
            Event::Blind(resource) => {
                self.storms.blind(&resource);
                self.watched.remove(&resource);
            }
            Event::Listed { object, generation, age, counts } => {
                self.listed(now, object, generation, age, counts, &mut effects);
            }
            Event::Written(object) => self.written(now, object, &mut effects),
            Event::Gone(object) => self.gone(now, &object, &mut effects),
            Event::Version(object, whole) => self.version(now, &object, *whole, &mut effects),
            Event::Unfollowable(object, why) => {
                if let Some(case) = self.cases.get_mut(&object) {
                    case.cannot_follow(why);
                }
                self.tell(now, &object, &mut effects);
            }
            Event::Beside(object, whole) => {
                if let Some(case) = self.cases.get_mut(&object) {
                    case.take_cluster(&whole);
                }
                self.retell(now, &object, &mut effects);
            }
            Event::Scraped(scrape) => effects.extend(self.storms.scraped(now, *scrape, &self.settings)),
            Event::Tick => self.tick(now, &mut effects),
            Event::Over => self.over(now, &mut effects),
        }
        effects
    }

    /// All that is open now, hottest first.
    pub fn verdicts(&mut self, now: Time) -> Vec<Verdict> {
        let objects: Vec<Object> =
            self.cases.iter().filter(|(_, case)| case.is_told()).map(|(object, _)| object.clone()).collect();
        let mut all: Vec<Verdict> = objects.iter().filter_map(|object| self.verdict(now, object)).collect();
        all.extend(self.storms.verdicts());
        let rate = |verdict: &Verdict| verdict.rates.first().and_then(Rate::per_1000_s).unwrap_or(0);
        all.sort_by_key(|verdict| {
            (std::cmp::Reverse((verdict.heat, rate(verdict))), verdict.subject.clone())
        });
        all
    }

    /// Objects that are being counted.
    pub fn counted(&self) -> usize {
        self.meters.len()
    }

    /// Objects that were forgotten because there were too many.
    pub const fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Objects beside others that were asked for and have not come.
    pub fn awaits(&self) -> usize {
        self.cases.values().filter(|case| case.awaits_beside()).count()
    }

    /// How full the API server is, as far as its counts were read.
    pub const fn pressure(&self) -> Option<crate::metrics::Pressure> {
        self.storms.pressure()
    }

    fn listed(
        &mut self,
        now: Time,
        object: Object,
        generation: u64,
        age: Option<Span>,
        counts: Generation,
        effects: &mut Vec<Effect>,
    ) {
        if counts == Generation::Nothing {
            return;
        }
        let sustained = u64::from(kinds::sustained(&object.resource, &self.settings));
        let is_fast = |rate: &Rate| rate.per_1000_s().is_some_and(|rate| rate > sustained);
        if let Some(age) = age.filter(|age| *age >= LIFE_MIN) {
            let life = Rate { by: Witness::Lifetime, writes: generation, over: age };
            if is_fast(&life) && self.lives.len() < LIVES_MAX {
                self.lives.insert(object.clone(), life);
            }
        }
        if self.watched.contains(&object.resource) {
            return;
        }
        match self.samples.get(&object) {
            Some((first, at)) => {
                let writes = generation.saturating_sub(*first);
                let rate = Rate { by: Witness::Generation, writes, over: now.since(*at) };
                if is_fast(&rate) && writes >= WARM_WRITES {
                    let at_once = rate.per_1000_s() > Some(u64::from(self.settings.at_once));
                    let heat =
                        if at_once || self.lives.contains_key(&object) { Heat::Hot } else { Heat::Warm };
                    self.open(now, &object, Some(rate), heat, effects);
                }
            }
            None if self.samples.len() < self.settings.objects_max => {
                self.samples.insert(object, (generation, now));
            }
            None => self.forgotten += 1,
        }
    }

    fn written(&mut self, now: Time, object: Object, effects: &mut Vec<Effect>) {
        self.storms.changed(&object.resource);
        if self.meters.len() >= self.settings.objects_max && !self.meters.contains_key(&object) {
            self.forget(now);
        }
        let sustained = kinds::sustained(&object.resource, &self.settings);
        let settings = &self.settings;
        let meter = self.meters.entry(object.clone()).or_insert_with(|| Meter::new(now));
        let exceeded = meter.write(now, sustained, settings);
        let is_fast = is_warm(meter, now, sustained);
        let lasts = self.lives.contains_key(&object) && is_fast;
        if exceeded.is_some() || lasts {
            self.open(now, &object, None, Heat::Hot, effects);
        } else if self.is_short && is_fast {
            // A short look has no time to wait for proof before it looks closer.
            self.suspect(now, &object, effects);
        }
        if exceeded == Some(Exceeded::AtOnce)
            && let Some(case) = self.cases.get_mut(&object)
        {
            case.heats(now);
        }
    }

    /// Drops meters that have run dry, then the least written, until there is room for many.
    fn forget(&mut self, now: Time) {
        let (settings, cases) = (&self.settings, &self.cases);
        let room = settings.objects_max / 4 * 3;
        let before = self.meters.len();
        self.meters.retain(|object, meter| {
            cases.contains_key(object)
                || !meter.is_dry(now, kinds::sustained(&object.resource, settings), settings)
        });
        let dry = self.meters.len();
        let mut least = 1;
        while self.meters.len() > room && least < 1 << 20 {
            self.meters.retain(|object, meter| cases.contains_key(object) || meter.of_late(now).0 > least);
            least *= 2;
        }
        // Those that had run dry are not lost: nothing depended on them.
        self.forgotten += (dry - self.meters.len()) as u64;
        debug_assert!(self.meters.len() <= before, "forgetting adds nothing");
    }

    fn suspect(&mut self, now: Time, object: &Object, effects: &mut Vec<Effect>) {
        if self.cases.len() < self.settings.verdicts_max && !self.cases.contains_key(object) {
            self.cases.insert(object.clone(), Case::new(now, object));
            self.follow(now, object, effects);
        }
    }

    fn open(
        &mut self,
        now: Time,
        object: &Object,
        rate: Option<Rate>,
        heat: Heat,
        effects: &mut Vec<Effect>,
    ) {
        self.suspect(now, object, effects);
        let Some(case) = self.cases.get_mut(object) else { return };
        case.open(now, rate, heat);
        if let Some(wanted) = case.wants_beside() {
            effects.push(Effect::ReadBeside { about: object.clone(), wanted });
        }
        self.follow(now, object, effects);
        self.tell(now, object, effects);
    }

    /// Follows an object that was not followed before, when there is room.
    fn follow(&mut self, now: Time, object: &Object, effects: &mut Vec<Effect>) {
        let followed = self.cases.values().filter(|case| case.is_followed()).count();
        if let Some(case) = self.cases.get_mut(object)
            && followed < self.settings.followed_max
            && case.follow(now)
        {
            effects.push(Effect::Follow(object.clone()));
        }
    }

    fn version(&mut self, now: Time, object: &Object, whole: Value, effects: &mut Vec<Effect>) {
        let Some(case) = self.cases.get_mut(object) else { return };
        case.version(whole);
        if case.has_seen_enough(now, &self.settings) {
            case.unfollow();
            effects.push(Effect::Unfollow(object.clone()));
            if case.is_told() {
                return self.retell(now, object, effects);
            }
        }
        self.tell(now, object, effects);
    }

    fn gone(&mut self, now: Time, object: &Object, effects: &mut Vec<Effect>) {
        self.meters.remove(object);
        self.samples.remove(object);
        self.lives.remove(object);
        if let Some(case) = self.cases.get_mut(object) {
            case.is_gone(now);
            self.close(object, effects);
        }
    }

    fn close(&mut self, object: &Object, effects: &mut Vec<Effect>) {
        let Some(case) = self.cases.remove(object) else { return };
        if case.is_followed() {
            effects.push(Effect::Unfollow(object.clone()));
        }
        if case.is_told() {
            effects.push(Effect::Closed(Subject::Object(object.clone())));
        }
    }

    /// Tells a case for the first time, when what changes is known or has been waited for long enough.
    fn tell(&mut self, now: Time, object: &Object, effects: &mut Vec<Effect>) {
        let Some(case) = self.cases.get_mut(object) else { return };
        if !case.is_ripe(now, &self.settings) {
            return;
        }
        case.tell();
        let Some(verdict) = self.verdict(now, object) else { return };
        if let Some(case) = self.cases.get_mut(object) {
            case.is_news(&verdict);
        }
        effects.push(Effect::Opened(Box::new(verdict)));
    }

    fn retell(&mut self, now: Time, object: &Object, effects: &mut Vec<Effect>) {
        if !self.cases.get(object).is_some_and(Case::is_told) {
            return;
        }
        let Some(verdict) = self.verdict(now, object) else { return };
        if self.cases.get_mut(object).is_some_and(|case| case.is_news(&verdict)) {
            effects.push(Effect::Changed(Box::new(verdict)));
        }
    }

    fn verdict(&mut self, now: Time, object: &Object) -> Option<Verdict> {
        let case = self.cases.get(object)?;
        let mut rates: Vec<Rate> = case.rate().into_iter().collect();
        if let Some(meter) = self.meters.get_mut(object) {
            let (writes, over) = meter.of_late(now);
            rates.push(Rate { by: Witness::Watch, writes, over });
        }
        rates.extend(self.lives.get(object).copied());
        Some(case.verdict(object, rates, self.storms.pressure()))
    }

    /// At most once a second: cases ripen and cool, meters that have run dry go.
    fn tick(&mut self, now: Time, effects: &mut Vec<Effect>) {
        if now < self.quiet_until {
            return;
        }
        self.quiet_until = now + Span::from_s(1);
        let (settings, cases) = (&self.settings, &self.cases);
        self.meters.retain(|object, meter| {
            let sustained = kinds::sustained(&object.resource, settings);
            // Within a short look nothing is dropped: its last word is over all that it saw.
            self.is_short || cases.contains_key(object) || !meter.is_dry(now, sustained, settings)
        });
        let objects: Vec<Object> = self.cases.keys().cloned().collect();
        for object in objects {
            self.tick_case(now, &object, effects);
        }
    }

    fn tick_case(&mut self, now: Time, object: &Object, effects: &mut Vec<Effect>) {
        let sustained = kinds::sustained(&object.resource, &self.settings);
        let meter = self.meters.get(object);
        let is_dry = meter.is_none_or(|meter| meter.is_dry(now, sustained, &self.settings));
        let last = meter.map_or(now, |meter| meter.last());
        let Some(case) = self.cases.get_mut(object) else { return };
        let is_cool = now.since(last) >= self.settings.cool_for
            || is_dry && now.since(case.since()) >= self.settings.cool_for;
        // What is only suspected, and never opened, goes with the same measure.
        if is_cool && !self.is_short {
            return self.close(object, effects);
        }
        if case.is_followed() && case.has_seen_enough(now, &self.settings) {
            case.unfollow();
            effects.push(Effect::Unfollow(object.clone()));
            if case.is_told() {
                return self.retell(now, object, effects);
            }
        }
        self.follow(now, object, effects);
        self.tell(now, object, effects);
    }

    /// The end of a look: whatever was above what may last is told, as warm.
    fn over(&mut self, now: Time, effects: &mut Vec<Effect>) {
        let mut warm = Vec::new();
        for (object, meter) in &mut self.meters {
            let sustained = kinds::sustained(&object.resource, &self.settings);
            if is_warm(meter, now, sustained) {
                warm.push(object.clone());
            }
        }
        for object in warm {
            self.suspect(now, &object, effects);
            if let Some(case) = self.cases.get_mut(&object) {
                case.open(now, None, Heat::Warm);
            }
        }
        let objects: Vec<Object> = self.cases.keys().cloned().collect();
        for object in objects {
            if let Some(case) = self.cases.get_mut(&object) {
                case.is_over();
            }
            self.tell(now, &object, effects);
        }
    }
}

/// Written faster than may last, often enough to be more than a few writes in a row.
fn is_warm(meter: &mut Meter, now: Time, sustained: u32) -> bool {
    let (writes, over) = meter.of_late(now);
    let over = over.max(Span::from_s(10));
    let rate = Rate { by: Witness::Watch, writes, over };
    writes >= WARM_WRITES && rate.per_1000_s() > Some(u64::from(sustained))
}
