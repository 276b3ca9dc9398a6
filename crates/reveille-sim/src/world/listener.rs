//! The processes that listen: the leader, and perhaps the one before it, which does not know that it lost the lead.
//!
//! ```text
//!  poll, beat, watch of session 3 ─▶ the listener of session 3 ─▶ events of the leader
//!  poll, beat, watch of session 2 ─▶ the listener of session 2 ─▶ events of the one before
//! ```
//!
//! What a listener has heard so far (how far its watch is, when it listed last) is its own. The rest of the world speaks to
//! one listener, and turns to the other where something is meant for that one: the two are exchanged for so long.

use std::collections::BTreeMap;

use reveille_core::event::Event;
use reveille_core::model::id::{CloudName, Fence};
use reveille_core::model::time::Time;

use super::observations::{Listings, Watch};
use super::{Task, World};

/// What one listener has heard so far, and what is on its way into it.
#[derive(Clone, Debug, Default)]
pub(super) struct Listener {
    pub(super) session: u64,
    pub(super) watch: Watch,
    pub(super) listings: BTreeMap<CloudName, Listings>,
    pub(super) out: Vec<Event>,
}

impl World {
    /// Another process begins to listen and leads, and the one before goes on hearing. Its calls carry a number that is
    /// refused from now on; those that are on their way arrive.
    pub(crate) fn listen_beside(&mut self, now: Time, fence: Fence) {
        let before = Listener {
            session: self.session,
            watch: std::mem::take(&mut self.watch),
            listings: std::mem::take(&mut self.listings),
            out: Vec::new(),
        };
        self.listen(now, fence);
        self.before = Some(before);
    }

    /// The process that led before is gone.
    pub(crate) fn forget_the_one_before(&mut self) {
        self.before = None;
    }

    /// What reached the process that led before.
    pub(crate) fn take_for_the_one_before(&mut self) -> Vec<Event> {
        self.before.as_mut().map(|listener| std::mem::take(&mut listener.out)).unwrap_or_default()
    }

    /// Turns to the process that led before, and back.
    pub(crate) fn turn_to_the_other(&mut self) {
        if let Some(other) = &mut self.before {
            std::mem::swap(&mut other.session, &mut self.session);
            std::mem::swap(&mut other.watch, &mut self.watch);
            std::mem::swap(&mut other.listings, &mut self.listings);
            std::mem::swap(&mut other.out, &mut self.out);
        }
    }

    /// Tells every process that listens.
    pub(super) fn tell_each(&mut self, tell: impl Fn(&mut Self)) {
        tell(self);
        if self.before.is_some() {
            self.turn_to_the_other();
            tell(self);
            self.turn_to_the_other();
        }
    }

    /// Whether this is for the process that led before.
    pub(super) fn is_for_the_one_before(&self, task: &Task) -> bool {
        let Some(listener) = &self.before else { return false };
        let session = match task {
            Task::Poll(session, _)
            | Task::Beat(session)
            | Task::Watched(session)
            | Task::Serve(session, _)
            | Task::Late(session, ..)
            | Task::Deliver(session, _) => *session,
            _ => return false,
        };
        listener.session == session
    }
}
