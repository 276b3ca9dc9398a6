//! Places that calls keep although they were answered as failed.
//!
//! ```text
//!  Failed ─▶ keep: the place of the repair ─┬▶ its effect shows ─▶ the place of what took effect
//!                                           └▶ a moment passes, or a fresh read shows nothing ─▶ free
//! ```
//!
//! A gateway answers with 504 what the cloud carries out all the same, at once or a minute later. The place of such a repair
//! was free with its answer, and a second machine was deleted before the list showed that the first was gone. It stays taken
//! for as long as that of a call whose answer was lost, and no longer: a service that answers each call so must not keep
//! other machines from their repairs.

use std::collections::BTreeMap;

use crate::model::id::IncidentId;
use crate::model::jump::Jump;
use crate::model::time::Time;
use crate::record::{Domain, Place};

/// The places of calls whose effect may only be late, by incident.
#[derive(Clone, Debug, Default)]
pub struct Places(BTreeMap<IncidentId, Place>);

impl Places {
    /// The incident keeps its place until then. A fresh read that shows nothing frees it, if it was asked for when that could
    /// have been seen.
    pub fn keep(&mut self, incident: IncidentId, place: Place) {
        self.0.insert(incident, place);
    }

    /// The place that the incident keeps, for the next process.
    pub fn of(&self, incident: IncidentId, now: Time) -> Option<&Place> {
        self.0.get(&incident).filter(|place| now < place.until)
    }

    /// It took effect, helped, or is tried once more: it has no place here any more.
    pub fn free(&mut self, incident: IncidentId) {
        self.0.remove(&incident);
    }

    /// A read that was asked for then shows nothing of it.
    pub fn read_in_vain(&mut self, incident: IncidentId, asked_at: Time) {
        if self.0.get(&incident).is_some_and(|place| asked_at >= place.settled) {
            self.0.remove(&incident);
        }
    }

    /// How many are taken.
    pub fn taken(&self, now: Time) -> u32 {
        self.0.values().filter(|place| now < place.until).count() as u32
    }

    /// How many are taken in this domain.
    pub fn taken_in(&self, domain: &Domain, now: Time) -> u32 {
        let is_there = |place: &&Place| now < place.until && place.domain.as_ref() == Some(domain);
        self.0.values().filter(is_there).count() as u32
    }

    /// When the next of them is free.
    pub fn next_free(&self, now: Time) -> Option<Time> {
        self.0.values().map(|place| place.until).filter(|until| now < *until).min()
    }

    /// Forgets what is free by now.
    pub fn forget_free(&mut self, now: Time) {
        self.0.retain(|_, place| now < place.until);
    }

    /// Its times go over a jump: what was kept has as long to go as before.
    pub fn over(&mut self, jump: Jump) {
        for Place { settled, until, domain: _ } in self.0.values_mut() {
            jump.ends([settled, until]);
        }
    }

    /// None is kept for longer than until then.
    pub fn end_by(&mut self, longest: Time) {
        for place in self.0.values_mut() {
            (place.settled, place.until) = (place.settled.min(longest), place.until.min(longest));
        }
    }
}
