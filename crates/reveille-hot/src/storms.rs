//! Storms that only counters show: clients write a kind in a loop and hardly change it.
//!
//! ```text
//!  our watch: changes by kind ─┐
//!  Scraped, Scraped ───────────┴▶ metrics::no_ops ─▶ Opened (a kind), Closed; pressure
//! ```
//!
//! The counters do not say which object it is.

use std::collections::{BTreeMap, BTreeSet};

use reveille_core::model::time::{Span, Time};

use crate::class;
use crate::event::Effect;
use crate::metrics::{NoOps, Pressure, Scrape};
use crate::object::Resource;
use crate::settings::Settings;
use crate::verdict::{Heat, Rate, Subject, Verdict, Witness};

/// Two readings that are closer prove nothing.
const APART_MIN: Span = Span::from_s(5);

/// What the counts tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Storms {
    last: Option<(Time, Scrape)>,
    /// Changes since then of kinds that were watched throughout.
    seen: BTreeMap<Resource, u64>,
    /// Kinds whose watch began since then: it saw only a part.
    joining: BTreeSet<Resource>,
    pressure: Option<Pressure>,
    open: BTreeMap<Resource, Verdict>,
}

impl Storms {
    pub(crate) fn watched(&mut self, resource: &Resource) {
        if !self.seen.contains_key(resource) {
            self.joining.insert(resource.clone());
        }
    }

    pub(crate) fn blind(&mut self, resource: &Resource) {
        self.seen.remove(resource);
        self.joining.remove(resource);
    }

    pub(crate) fn changed(&mut self, resource: &Resource) {
        if let Some(seen) = self.seen.get_mut(resource) {
            *seen += 1;
        }
    }

    pub(crate) const fn pressure(&self) -> Option<Pressure> {
        self.pressure
    }

    pub(crate) fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        self.open.values().cloned()
    }

    pub(crate) fn scraped(&mut self, now: Time, scrape: Scrape, settings: &Settings) -> Vec<Effect> {
        let Some((at, before)) = &self.last else {
            self.pressure = scrape.pressure(None);
            self.begin(now, scrape);
            return Vec::new();
        };
        let over = now.since(*at);
        if over < APART_MIN {
            return Vec::new();
        }
        self.pressure = scrape.pressure(Some(before));
        let found = scrape.no_ops(before, over, &self.seen, settings);
        let mut effects = Vec::new();
        self.open.retain(|resource, _| {
            let goes_on = found.iter().any(|no_ops| no_ops.resource == *resource);
            if !goes_on {
                effects.push(Effect::Closed(Subject::Kind(resource.clone())));
            }
            goes_on
        });
        for no_ops in found {
            let resource = no_ops.resource.clone();
            let since = self.open.get(&resource).map_or(*at, |open| open.since);
            let verdict = verdict(no_ops, since, self.pressure);
            if self.open.insert(resource, verdict.clone()).is_none() {
                effects.push(Effect::Opened(Box::new(verdict)));
            }
        }
        self.begin(now, scrape);
        effects
    }

    fn begin(&mut self, now: Time, scrape: Scrape) {
        self.last = Some((now, scrape));
        self.seen.extend(std::mem::take(&mut self.joining).into_iter().map(|resource| (resource, 0)));
        self.seen.values_mut().for_each(|seen| *seen = 0);
    }
}

fn verdict(no_ops: NoOps, since: Time, pressure: Option<Pressure>) -> Verdict {
    let NoOps { resource, writes, changes, conflicts, over } = no_ops;
    let mut notes = vec![format!("{writes} writes were answered well, and {changes} changed anything")];
    if conflicts > 0 {
        notes.push(format!("{conflicts} more were refused because another was faster (409)"));
    }
    notes.push("the counts are of one API server; with several, each is asked by its own address".to_owned());
    Verdict {
        subject: Subject::Kind(resource),
        heat: Heat::Hot,
        since,
        rates: vec![Rate { by: Witness::Metrics, writes, over }],
        class: class::no_ops(),
        suspects: Vec::new(),
        flips: Vec::new(),
        machine: None,
        pressure,
        notes,
    }
}
