//! What the first sight of a machine after a restart tells: whether others had it in hand until a moment ago, whether it served
//! before, and whether it was made while no process was looking.
//!
//! ```text
//!  a listing ─▶ memory: what the ledger knows of it ─▶ was it in another's hands? ─▶ does the ledger name it at all?
//! ```
//!
//! It reads the incidents that the ledger tells of. What the ledger knows of the machine itself `memory` gives back.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::id::{CloudName, InstanceId};
use crate::model::incident::{FaultKind, MachineKey, Subject};
use crate::model::time::{Span, Time};
use crate::observe::cloud::SERVED_WITHIN;
use crate::plan::context::Case;
use crate::plan::others::OTHERS_BLOCK_MAX;

use super::State;

/// Starts of ours, each of which may have missed that others gave a machine back, hold its repair for so long at most: as long as
/// a pool is held in which others are at work.
const UNKNOWN_BLOCK_MAX: Span = OTHERS_BLOCK_MAX;

/// The last listing of a process that died may have begun so long before.
const LISTED_WITHIN: Span = Span::from_min(2);

impl State {
    /// Machines that others may have had in hand in the sight of an earlier process, and when each was given back: those that
    /// were off, those that were away when it ended, and those in ERROR since then. Where the time is not known, it may have been
    /// a moment ago: no ledger tells of a rebuild that ended just before the restart, and EC2 keeps no log of a start. A person
    /// who asked for a repair knows what was done before that.
    ///
    /// A process that is started again and again would never repair anything: after [`UNKNOWN_BLOCK_MAX`] from the first such
    /// start a further one says nothing more, but of a machine that the first listing lacks. What others do to the others,
    /// lists and the log of actions tell.
    fn given_back_before(&self, cloud: &CloudName, is_first: bool) -> BTreeMap<InstanceId, Time> {
        let was_off = self.incidents.closed().filter(|closed| closed.incident.key.kind == FaultKind::Stopped);
        let was_off = was_off.map(|closed| (&closed.incident.key, closed.watched_from));
        let is_open = |case: &&Case| case.incident.key.kind.is_absence() && !case.incident.is_asked_for();
        let is_long_ago = |at: &Time| self.now.since(*at) >= UNKNOWN_BLOCK_MAX;
        let since = |case: &Case| match case.incident.key.kind {
            FaultKind::Errored => case.watched_from,
            _ => case.resumed_at.filter(|at| is_first && is_long_ago(at)).unwrap_or(self.now),
        };
        let open = self.incidents.open().values().filter(is_open);
        let open = open.map(|case| (&case.incident.key, since(case)));
        let given_back = was_off.chain(open).filter_map(|(key, at)| match &key.subject {
            Subject::Machine(MachineKey::Instance(of, id)) if of == cloud => Some((id.clone(), at)),
            _ => None,
        });
        given_back.collect()
    }

    /// Others may have had these in hand until a moment ago. Each is given back when this process sees it for the first time,
    /// which need not be in its first listing: a cell is down then, and a person has moved the machine to another host by the
    /// time that it is listed again.
    ///
    /// It looks at every open incident: meant for a listing, and for a machine that is seen first, not for each read.
    pub(super) fn give_back_unseen(&mut self, cloud: &CloudName) {
        if !self.resumed {
            return;
        }
        let is_first = self.clouds.get(cloud).is_some_and(|view| view.first_listed() == Some(self.now));
        let (now, given_back) = (self.now, self.given_back_before(cloud, is_first));
        let Some(view) = self.clouds.get_mut(cloud) else { return };
        for (id, at) in given_back {
            let Some(seen) = view.instances.get_mut(&id) else { continue };
            if seen.first_seen == now && seen.instance.is_at_rest() {
                seen.released = seen.released.max(Some(at));
                seen.released_by_boot = true;
            }
        }
    }

    /// Machines that served before they went away, as an incident tells that was open for long when this process began. They are
    /// not joining any more: with the deadline of a join, which counts from our own first sight, a process that is started again
    /// every quarter of an hour would never repair one.
    fn served_before(&self, cloud: &CloudName) -> BTreeSet<InstanceId> {
        let is_so = |case: &&Case| {
            let is_long_ago = case.resumed_at.is_some_and(|at| self.now.since(at) >= UNKNOWN_BLOCK_MAX);
            is_long_ago && case.incident.key.kind.is_absence() && case.served_since.is_some()
        };
        let machines = self.incidents.open().values().filter(is_so).filter_map(|case| {
            match &case.incident.key.subject {
                Subject::Machine(MachineKey::Instance(of, id)) if of == cloud => Some(id.clone()),
                _ => None,
            }
        });
        machines.collect()
    }

    /// How long ago the process before listed the machines at the earliest.
    fn unwatched_for(&self) -> Option<Span> {
        self.alive_before.map(|at| self.now.since(at) + LISTED_WITHIN)
    }

    /// Marks machines in the first listing after a restart that neither the ledger nor an incident names: they were created while
    /// no process was looking. Of one that its cloud made since the last process was alive, by the cloud's own clock, a Node that
    /// comes Ready is its first: it is a newcomer, and the next process knows that as well, if its Node is not Ready by then.
    /// That it has no Node proves nothing once it is older than a few minutes. An older one was marked meanwhile.
    pub(super) fn note_made_meanwhile(&mut self, cloud: &CloudName) {
        let in_question: BTreeSet<InstanceId> = self
            .incidents
            .open()
            .keys()
            .filter_map(|key| match &key.subject {
                Subject::Machine(MachineKey::Instance(_, id)) => Some(id.clone()),
                _ => None,
            })
            .collect();
        let served = self.served_before(cloud);
        let unwatched = self.unwatched_for();
        let Some(view) = self.clouds.get_mut(cloud) else { return };
        let since = view.listed_begun.zip(unwatched).map(|(begun, unwatched)| begun.earlier_by(unwatched));
        let too_young_to_serve = view.listed_begun.map(|begun| begun.earlier_by(SERVED_WITHIN));
        let made: Vec<_> = view.instances.values().map(|seen| view.made_at(&seen.instance)).collect();
        for ((id, seen), created) in view.instances.iter_mut().zip(made) {
            seen.was_ready |= served.contains(id);
            let known = seen.joined.is_some() || seen.born_in_sight || seen.left.is_some();
            seen.made_meanwhile = !known && !in_question.contains(id);
            if seen.made_meanwhile && created.zip(since).is_some_and(|(created, since)| created > since) {
                let is_young =
                    created.zip(too_young_to_serve).is_some_and(|(created, young)| created > young);
                (seen.born_in_sight, seen.may_have_served) = (true, !is_young);
            }
        }
    }
}
