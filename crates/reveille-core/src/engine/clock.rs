//! The controller's own clock: what a sleep, a jump forwards and a jump back do to all times that the controller has noted.
//!
//! ```text
//!  step(now) ─▶ keep_time ─┬─ a gap, or back: sight and timers of incidents start from zero (docs/SAFETY.md, invariant 4)
//!                          ├─ a gap: `over`, and the ledger is told: a deadline that passed during the gap proves nothing
//!                          └─ back by so much: `over`, and the ledger is told
//!  ledger ─▶ restore ─▶ each jump that it tells of, and the one since the last process: `over`; what still lies ahead is now
//! ```
//!
//! The controller cannot tell a jump forwards from a sleep. A sleep is the worse of the two, so the controller takes every
//! jump forwards for one. It knows the length of a jump back within one process to the millisecond, so operations and reads
//! keep their age. Of a jump back between two processes it knows the least length, by when the last process was alive; a time
//! in the ledger that lies in the future all the same counts as now.
//!
//! What becomes of each time stands beside its owner, in a function `over` (`model::jump`).

use crate::model::jump::Jump;
use crate::model::time::{Span, Time};
use crate::safeguard::{Safeguard, stands};

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
        if let Some(by) = back {
            self.move_back(by);
            self.tell_jump(before);
        }
        if (gap || back.is_some()) && stands(Safeguard::UnbrokenSight) {
            self.cluster.source.restart_sight(now);
            self.agents.restart_sight(now);
            for cloud in self.clouds.values_mut() {
                cloud.source.restart_sight(now);
                // The controller did not look during the gap, so it does not know how long the instance was building or
                // leaving.
                cloud.instances.values_mut().for_each(|seen| seen.state_since = now);
            }
            for case in self.incidents.cases_mut() {
                case.incident.counted_from = now;
            }
        }
        if back.is_some() {
            self.go_back_to(now);
        } else if gap && stands(Safeguard::UnbrokenSight) {
            self.go_on_from(before, now);
        }
    }

    /// The times of everything that waits, holds or counts go over a jump.
    pub(super) fn over(&mut self, jump: Jump) {
        self.incidents.over(jump);
        self.book.over(jump);
        self.clouds.values_mut().for_each(|cloud| cloud.over(jump));
        self.cluster.over(jump);
        self.others.over(jump);
        self.rollouts.over(jump, self.roster.timing.rollout_quiet);
        self.pauses.over(jump);
        self.newcomers.over(jump);
        self.alive_before = None;
        self.out_of_sight.over(jump);
        self.traces.over(jump);
        self.routes.over(jump);
        self.homes.wait_from(self.now);
    }

    /// The process slept, or its clock was set ahead.
    fn go_on_from(&mut self, before: Time, now: Time) {
        self.freezes.go_on_at(now);
        let jump = Jump::Gap { before, now };
        self.over(jump);
        self.doubt_births_before(before);
        self.end_tries_after(now.since(before));
        self.timers.move_those(|why, _| matches!(why, Wake::Operation(_)), |at| jump.ends([at]));
        self.tell_jump(before);
    }

    /// The next process reads from the ledger when something was noted, and not what this one knows: that its clock was set ahead
    /// by three hours a minute later, or back. It has to count as this one does.
    pub(super) fn tell_jump(&mut self, before: Time) {
        let book = &self.book;
        let has_incidents = !self.incidents.is_empty();
        let has_others = !self.others.is_empty() || !self.rollouts.rolling().is_empty();
        let has_open_fates = !self.pauses.let_go().is_empty() || !self.out_of_sight.open_fates().is_empty();
        let has_begun = book.begun().next().is_some() || !book.operations.is_empty();
        // After a gap all else is as before. A clock that was set back is rare, and then each time in the ledger is another one.
        if has_incidents || has_others || has_open_fates || has_begun || self.now < before {
            let numbered = self.numbered(Some(before));
            self.outbox.record(numbered);
        }
    }

    /// The time between two processes was short: timers go on, and what was waited for has as long to go as it had. A process
    /// that takes over cannot tell a clock that is ahead of the last process's clock from that time. Without this, a clock that
    /// is ahead would end the backoff of a call that failed a moment ago.
    pub(super) fn wait_on(&mut self, jump: Jump) {
        for incident in self.incidents.all_mut() {
            jump.ends(&mut incident.not_before);
        }
        self.book.wait_on(jump);
    }

    /// The clock went back by so much: what was read is as old as before, and what is under way has as long to go. So has the
    /// next try of a ledger that refused: it would be left alone for the time of the jump, and nothing would be kept or done
    /// meanwhile.
    fn move_back(&mut self, by: Span) {
        let jump = Jump::Back { by };
        let moved = |at: Time| jump.along(at);
        self.over(jump);
        self.move_unseen(moved);
        self.reads.move_back(moved);
        self.clouds.values_mut().for_each(|cloud| cloud.access.move_back(moved));
        let theirs = |why: &Wake, _| matches!(why, Wake::Operation(_) | Wake::Newcomers | Wake::Ledger);
        self.timers.move_those(theirs, |at| jump.stands([at]));
    }

    /// The clock went back: whatever was noted ahead of it would be waited for as long again.
    pub(super) fn go_back_to(&mut self, now: Time) {
        let longest = now + self.roster.timing.backoff_max;
        self.cluster.go_back_to(now);
        self.agents.go_back_to(now);
        self.traces.go_back_to(now, |machine| self.incidents.has_open(machine));
        self.clouds.values_mut().for_each(|cloud| cloud.go_back_to(now));
        self.others.go_back_to(now);
        self.rollouts.go_back_to(now, self.roster.timing.rollout_quiet);
        self.pauses.go_back_to(now);
        self.routes.go_back_to(now);
        self.out_of_sight.go_back_to(now);
        for closed in self.incidents.closed_mut() {
            (closed.at, closed.watched_from) = (closed.at.min(now), closed.watched_from.min(now));
        }
        // What was done may take longer than any backoff: bare metal boots for an hour, and a machine may have been moved there.
        let pools = self.roster.pools.values().map(|pool| pool.deadlines);
        let patience = pools.map(|it| it.build_within.max(it.boot_patience())).max();
        let slowest = longest.max(now + patience.map_or(Span::ZERO, |it| it + it));
        self.book.go_back_to(now, longest, slowest);
        for case in self.incidents.cases_mut() {
            let incident = &mut case.incident;
            incident.first_seen = incident.first_seen.min(now);
            incident.counted_from = incident.counted_from.min(now);
            case.away_since = case.away_since.min(now);
            case.watched_from = case.watched_from.min(now);
            case.served_since = case.served_since.map(|since| since.min(now));
            case.outlasted = case.outlasted.map(|at| at.min(now));
            incident.well_since = incident.well_since.map(|at| at.min(now));
            // A person unlocked the machine after the request, both of which lie ahead: as one time they would be of no order,
            // and the request would say that all that was done before it is known.
            if let Some(asked) = incident.asked.as_mut().filter(|asked| asked.at > now) {
                asked.at = now - Span::from_ms(1);
            }
            let pool = incident.pool.as_ref().and_then(|name| self.roster.pools.get(name));
            incident.not_before = incident.not_before.map(|at| at.min(slowest));
            if let (Some(until), Some(keep)) = (&mut incident.kept_until, pool.and_then(|pool| pool.keep)) {
                *until = (*until).min(now + keep.within);
            }
        }
        let is_early = |why: &Wake, at| {
            at > longest && matches!(why, Wake::Machine(_) | Wake::Case(_) | Wake::Access(..))
        };
        self.timers.move_those(is_early, |at| *at = now);
    }
}
