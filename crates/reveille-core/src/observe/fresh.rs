//! Notes what single reads showed, so that an older listing does not overwrite it.
//!
//! ```text
//!  listing begins ───────── asked ── answered ── listing arrives: as things were before the answer, perhaps
//! ```
//!
//! A listing takes seconds in a large project; a call and the read that verifies it may begin and end meanwhile. If the
//! engine believed such a listing, it would see the fault that it has just repaired, and act a second time. So the view
//! notes each object that was read by itself with the time of the question. A listing that began before that time proves
//! nothing about the object. The next one does: no note here outlives one listing.
//!
//! This module holds names and times, not the results of reads; the view holds those.

use std::collections::BTreeMap;

use crate::model::id::{GroupId, InstanceId, RouterId};
use crate::model::time::Time;

/// Something of a cloud that can be read by itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Thing {
    /// An instance, there or not.
    Instance(InstanceId),
    /// All ports of an instance.
    Ports(InstanceId),
    /// A security group.
    Group(GroupId),
    /// A router.
    Router(RouterId),
}

/// What was asked for by itself and answered since the last listing began.
#[derive(Clone, Debug, Default)]
pub struct Fresh {
    asked_at: BTreeMap<Thing, Time>,
}

impl Fresh {
    /// It was asked for then, and answered.
    pub fn note(&mut self, thing: Thing, asked_at: Time) {
        self.asked_at.insert(thing, asked_at);
    }

    /// A listing that began then arrived: what was asked for before that, it knows better.
    pub fn outdate(&mut self, listing_begun: Time) {
        self.asked_at.retain(|_, asked_at| *asked_at > listing_begun);
    }

    /// It was asked for after the listing began. Nearly always nothing was, so what is meant is only named when something was.
    pub fn has(&self, thing: impl FnOnce() -> Thing) -> bool {
        !self.asked_at.is_empty() && self.asked_at.contains_key(&thing())
    }

    /// The clock went back: nothing was asked for later than now.
    pub fn go_back_to(&mut self, now: Time) {
        for asked_at in self.asked_at.values_mut() {
            *asked_at = (*asked_at).min(now);
        }
    }
}
