//! One object that is hot, or may be: from suspicion to verdict.
//!
//! ```text
//!  suspected ─▶ followed (versions come in) ─▶ opened (a rate was exceeded) ─▶ ripe: enough seen, or waited for ─▶ told
//! ```
//!
//! An object is followed once: what a fight is about does not change while it lasts.

use reveille_core::model::time::Time;
use serde_json::Value;

use crate::class;
use crate::flips::Flips;
use crate::machine::Machine;
use crate::metrics::Pressure;
use crate::object::Object;
use crate::settings::Settings;
use crate::verdict::{Heat, Rate, Subject, Suspect, Verdict};

/// Versions after which a fight has shown itself.
const VERSIONS_TELLING: u32 = 8;
/// Fields that are told.
const FLIPS_MAX: usize = 8;

/// One object.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    since: Time,
    heat: Option<Heat>,
    rate: Option<Rate>,
    followed_from: Option<Time>,
    is_followed: bool,
    flips: Flips,
    machine: Option<Machine>,
    asked_beside: bool,
    has_beside: bool,
    is_told: bool,
    is_over: bool,
    /// What a person was told, without its numbers.
    said: (&'static str, Vec<String>, Option<Machine>),
    notes: Vec<String>,
}

impl Case {
    pub(crate) fn new(now: Time, object: &Object) -> Self {
        Self {
            since: now,
            heat: None,
            rate: None,
            followed_from: None,
            is_followed: false,
            flips: Flips::new(object.resource.is_secret()),
            machine: Machine::of_name(object),
            asked_beside: false,
            has_beside: false,
            is_told: false,
            is_over: false,
            said: Default::default(),
            notes: Vec::new(),
        }
    }

    /// A rate was exceeded.
    pub(crate) fn open(&mut self, now: Time, rate: Option<Rate>, heat: Heat) {
        if self.heat.is_none() {
            self.since = self.since.min(now);
        }
        self.heat = self.heat.max(Some(heat));
        self.rate = rate.or(self.rate);
    }

    pub(crate) fn heats(&mut self, now: Time) {
        self.open(now, None, Heat::Hot);
    }

    /// Begins to follow it; false when it was followed already.
    pub(crate) fn follow(&mut self, now: Time) -> bool {
        let is_first = self.followed_from.is_none();
        if is_first {
            (self.followed_from, self.is_followed) = (Some(now), true);
        }
        is_first
    }

    pub(crate) const fn is_followed(&self) -> bool {
        self.is_followed
    }

    pub(crate) const fn unfollow(&mut self) {
        self.is_followed = false;
    }

    pub(crate) fn cannot_follow(&mut self, why: String) {
        self.is_followed = false;
        if self.flips.versions() == 0 && self.notes.is_empty() {
            self.notes.push(format!("what changes could not be read: {why}"));
        }
    }

    pub(crate) fn version(&mut self, whole: Value) {
        self.flips.version(whole);
    }

    pub(crate) fn has_seen_enough(&self, now: Time, settings: &Settings) -> bool {
        let late = self.followed_from.is_some_and(|from| now.since(from) >= settings.follow_for);
        late || self.flips.versions() >= settings.versions_max
    }

    pub(crate) const fn is_gone(&mut self, now: Time) {
        self.since = now;
    }

    pub(crate) const fn is_over(&mut self) {
        self.is_over = true;
    }

    pub(crate) const fn since(&self) -> Time {
        self.since
    }

    pub(crate) const fn is_told(&self) -> bool {
        self.is_told
    }

    pub(crate) const fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// It is to be told now.
    pub(crate) fn is_ripe(&self, now: Time, settings: &Settings) -> bool {
        let waited = now.since(self.since) >= settings.told_within;
        let seen = self.flips.versions() >= VERSIONS_TELLING || !self.notes.is_empty();
        self.heat.is_some() && !self.is_told && (seen || waited || self.is_over)
    }

    pub(crate) const fn tell(&mut self) {
        self.is_told = true;
    }

    /// Remembers what is said; true when it is more than other numbers.
    pub(crate) fn is_news(&mut self, verdict: &Verdict) -> bool {
        let mut names: Vec<String> = verdict.suspects.iter().map(|suspect| suspect.name.clone()).collect();
        names.sort_unstable();
        let said = (verdict.class.name, names, verdict.machine.clone());
        let is_news = self.said != said;
        self.said = said;
        is_news
    }

    /// What else is to be read, once.
    pub(crate) fn wants_beside(&mut self) -> Option<Object> {
        if self.asked_beside {
            return None;
        }
        let wanted = self.machine.as_ref()?.cluster_object()?;
        self.asked_beside = true;
        Some(wanted)
    }

    pub(crate) const fn awaits_beside(&self) -> bool {
        self.asked_beside && !self.has_beside
    }

    pub(crate) fn take_cluster(&mut self, whole: &Value) {
        self.has_beside = true;
        if let Some(machine) = &mut self.machine {
            machine.take_cluster(whole);
        }
    }

    pub(crate) fn verdict(&self, object: &Object, rates: Vec<Rate>, pressure: Option<Pressure>) -> Verdict {
        let mut flips = self.flips.flips();
        let class = class::class(&flips, &self.flips);
        flips.truncate(FLIPS_MAX);
        let suspect = |(manager, writes): (crate::managed::Manager, u32)| Suspect {
            name: match manager.subresource {
                Some(sub) => format!("{} ({sub})", manager.name),
                None => manager.name,
            },
            writes: u64::from(writes),
            seen_in: "managedFields",
        };
        Verdict {
            subject: Subject::Object(object.clone()),
            heat: self.heat.unwrap_or(Heat::Warm),
            since: self.since,
            rates,
            class,
            suspects: self.flips.writers().into_iter().map(suspect).collect(),
            flips,
            machine: self.machine(object),
            pressure,
            notes: self.notes.clone(),
        }
    }

    /// The machine, with what the last version tells of it.
    fn machine(&self, object: &Object) -> Option<Machine> {
        let cluster_name = self.machine.as_ref()?.cluster_name.clone();
        let whole = self.flips.last().and_then(|whole| Machine::of_object(object, whole));
        whole.map(|machine| Machine { cluster_name, ..machine }).or_else(|| self.machine.clone())
    }
}
