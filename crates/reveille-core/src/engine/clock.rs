//! The controller's own clock: what a sleep, a jump forwards and a jump back do to all times that the controller has noted.
//!
//! ```text
//!  step(now) ─▶ keep_time ─┬─ a gap, or back: sight and timers of incidents start from zero (DESIGN, invariant 4)
//!                          ├─ a gap: pools in which other clients were at work are left alone for as long again, and waits have
//!                          │  as long to go as before: a deadline that passed during the gap proves nothing
//!                          └─ back by so much: what was noted moves along; what still lies ahead counts as now
//! ```
//!
//! The controller cannot tell a jump forwards from a sleep. A sleep is the worse of the two, so the controller takes every
//! jump forwards for one. It knows the length of a jump back within one process to the millisecond, so operations and reads
//! keep their age. After a restart it does not know that length, and takes every time in the ledger that lies in the future
//! as now.

use crate::guard::{Guard, stands};
use crate::model::time::{Span, Time};
use crate::plan::budget::Phase;

use super::{State, Wake};

/// A step back by less is no sleep: time synchronisation sets a clock right by milliseconds, and on some hosts each few
/// minutes. Time stands still meanwhile.
const STANDS_STILL: Span = Span::from_s(1);

impl State {
    /// A gap between two steps, or a clock that went back, means that the process slept: every timer starts from zero.
    pub(super) fn keep_time(&mut self, now: Time) {
        let before = self.now;
        let now = if self.stepped && before.since(now) < STANDS_STILL { now.max(before) } else { now };
        let back = (self.stepped && now < before).then(|| before.since(now));
        let gap = self.stepped && now.since(before) > self.roster.timing.pause_jump;
        self.now = now;
        self.stepped = true;
        if (gap || back.is_some()) && stands(Guard::UnbrokenSight) {
            self.cluster.source.restart_sight(now);
            self.agents.restart_sight(now);
            for cloud in self.clouds.values_mut() {
                cloud.source.restart_sight(now);
                // The controller did not look during the gap, so it does not know how long the instance was building or
                // leaving.
                cloud.instances.values_mut().for_each(|seen| seen.state_since = now);
            }
            for case in self.cases.values_mut() {
                case.incident.counted_from = now;
            }
        }
        if let Some(by) = back {
            self.move_back(by);
            self.go_back_to(now);
        } else if gap && stands(Guard::UnbrokenSight) {
            self.go_on_from(before, now);
        }
    }

    /// The process slept. Clients that were at work before the gap may still be at work, so the controller leaves their
    /// machines alone for the whole time again.
    fn go_on_from(&mut self, before: Time, now: Time) {
        self.freezes.go_on_at(now);
        // One that was given back just before has the time of a boot, whatever the clock says now.
        let by = now.since(before);
        for seen in self.clouds.values_mut().flat_map(|cloud| cloud.instances.values_mut()) {
            seen.released = seen.released.map(|at| at + by);
            seen.released_before = seen.released_before.map(|at| at + by);
        }
        self.let_go_on(before);
        self.leave_alone_anew(before, now);
        self.wait_on(before, now);
        self.count_on(before);
    }

    /// The controller was not looking between `before` and now. Calls that it began within the hour before the gap count
    /// for as long as they would have without it. That holds for the next process too, which reads from the ledger when
    /// they began.
    pub(super) fn count_on(&mut self, before: Time) {
        if self.book.count_on(self.now.since(before)) {
            let numbered = self.numbered();
            self.record(numbered);
        }
    }

    /// The process slept: backoffs, pauses and proofs have as long to go as before, and a dwell starts from zero.
    fn wait_on(&mut self, before: Time, now: Time) {
        self.back_off_on(before);
        let later = later_than(before, now);
        for case in self.cases.values_mut() {
            case.incident.well_since = case.incident.well_since.map(|_| now);
        }
        for flight in self.book.flights.values_mut() {
            match &mut flight.phase {
                Phase::Recording => {}
                Phase::Calling { since } => *since = *since + now.since(before),
                Phase::Verifying { deadline, unseen_until } => {
                    (*deadline, *unseen_until) = (later(*deadline), later(*unseen_until));
                }
                Phase::Proving { deadline, well_since, .. } => {
                    (*deadline, *well_since) = (later(*deadline), None);
                }
            }
        }
        let flights: Vec<(Wake, Time)> = self
            .wakes
            .iter()
            .filter(|(why, _)| matches!(why, Wake::Flight(_)))
            .map(|(why, at)| (why.clone(), *at))
            .collect();
        for (why, at) in flights {
            self.wake(later(at), why);
        }
    }

    /// The controller was not looking between `before` and now, so backoffs and pauses that ran at `before` have as long to
    /// go as they had. A process that takes over cannot tell a clock that is ahead of the last process's clock from the
    /// time between the two processes. Without this, a clock that is ahead would end the backoff of a call that failed a
    /// moment ago.
    pub(super) fn back_off_on(&mut self, before: Time) {
        let later = later_than(before, self.now);
        let closed = self.closed.iter_mut().map(|closed| &mut closed.incident);
        for incident in self.cases.values_mut().map(|case| &mut case.incident).chain(closed) {
            incident.not_before = incident.not_before.map(&later);
        }
        self.book.wait_on(later);
    }

    /// The clock went back by so much: what was read is as old as before, and what is under way has as long to go. So has the
    /// next try of a ledger that refused: it would be left alone for the time of the jump, and nothing would be kept or done
    /// meanwhile.
    fn move_back(&mut self, by: Span) {
        let moved = |at: Time| Time::from_ms(at.ms - by.ms);
        self.move_unseen(moved);
        for case in self.cases.values_mut() {
            case.gathered.asked_at = case.gathered.asked_at.map(moved);
        }
        for cloud in self.clouds.values_mut() {
            let unlisted = cloud.instances.values_mut().filter_map(|seen| seen.unlisted.as_mut());
            unlisted.for_each(|unlisted| unlisted.last_denial = unlisted.last_denial.map(moved));
        }
        for seen in self.cluster.nodes.values_mut() {
            seen.last_answer = seen.last_answer.map(moved);
        }
        self.move_looks(moved);
        self.clouds.values_mut().for_each(|cloud| cloud.access.move_back(moved));
        self.newcomers.move_back(moved);
        self.rolling.values_mut().for_each(|until| *until = moved(*until));
        for rollout in self.rollouts.values_mut() {
            rollout.changed_at = rollout.changed_at.map(moved);
        }
        for flight in self.book.flights.values_mut() {
            match &mut flight.phase {
                Phase::Recording => {}
                Phase::Calling { since } => *since = moved(*since),
                Phase::Verifying { deadline, unseen_until } => {
                    (*deadline, *unseen_until) = (moved(*deadline), moved(*unseen_until));
                }
                Phase::Proving { deadline, since, well_since, .. } => {
                    (*deadline, *since) = (moved(*deadline), moved(*since));
                    *well_since = well_since.map(moved);
                }
            }
        }
        let theirs =
            |why: &Wake| matches!(why, Wake::Flight(_) | Wake::Proofs | Wake::Newcomers | Wake::Ledger);
        let wakes: Vec<(Wake, Time)> =
            self.wakes.iter().filter(|(why, _)| theirs(why)).map(|(why, at)| (why.clone(), *at)).collect();
        for (why, at) in wakes {
            self.wake(moved(at), why);
        }
    }

    /// The clock went back: whatever was noted ahead of it would be waited for as long again.
    pub(super) fn go_back_to(&mut self, now: Time) {
        let longest = now + self.roster.timing.backoff_max;
        self.cluster.go_back_to(now);
        self.agents.go_back_to(now);
        self.traces_go_back_to(now);
        self.clouds.values_mut().for_each(|cloud| cloud.go_back_to(now));
        for others in self.others.values_mut().chain(self.handovers.values_mut()) {
            others.until = others.until_by(now);
            others.at = others.at.min(now);
            others.since = others.since.min(now);
        }
        self.let_go.shift(|at| at.min(now));
        self.dead_hops.values_mut().for_each(|since| *since = (*since).min(now));
        self.route_limits.values_mut().for_each(|(at, _)| *at = (*at).min(now));
        self.closed.iter_mut().for_each(|closed| closed.at = closed.at.min(now));
        self.book.go_back_to(now, longest);
        // What was done may take longer than any backoff: bare metal boots for an hour, and a machine may have been moved there.
        let pools = self.roster.pools.values().map(|pool| pool.deadlines);
        let patience = pools.map(|it| it.build_within.max(it.boot_patience())).max();
        let patience = now + patience.map_or(Span::ZERO, |it| it + it);
        for case in self.cases.values_mut() {
            let incident = &mut case.incident;
            incident.first_seen = incident.first_seen.min(now);
            incident.counted_from = incident.counted_from.min(now);
            case.away_since = case.away_since.min(now);
            case.served_since = case.served_since.map(|since| since.min(now));
            incident.well_since = incident.well_since.map(|at| at.min(now));
            if let Some(asked) = &mut incident.asked {
                asked.at = asked.at.min(now);
            }
            let pool = incident.pool.as_ref().and_then(|name| self.roster.pools.get(name));
            incident.not_before = incident.not_before.map(|at| at.min(longest.max(patience)));
            if let (Some(until), Some(keep)) = (&mut incident.kept_until, pool.and_then(|pool| pool.keep)) {
                *until = (*until).min(now + keep.within);
            }
        }
        let early: Vec<Wake> = self
            .wakes
            .iter()
            .filter(|(why, at)| {
                **at > longest && matches!(why, Wake::Machine(_) | Wake::Case(_) | Wake::Access(..))
            })
            .map(|(why, _)| why.clone())
            .collect();
        for why in early {
            self.wake(now, why);
        }
    }
}

/// A time that was still ahead at `before` moves by as much as passed since; nothing moves when the clock went back.
pub(super) fn later_than(before: Time, now: Time) -> impl Fn(Time) -> Time {
    let by = now.since(before);
    move |at| if at > before { at + by } else { at }
}
