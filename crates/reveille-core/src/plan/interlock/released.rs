//! Whether others had the machine in hand until a moment ago: it may boot still, and gets the time of a boot.
//!
//! ```text
//!  let go of by a person ─┐
//!  at rest, and released ─┼─ not by our own reboot, and not before a person asked ─▶ held for the time of a boot
//!  in its log of actions ─┘
//! ```
//!
//! Times of the cloud are compared with the cloud's own clock at its last full list. What is being done to the machine now
//! stands in `interlock`.

use crate::effect::Call;
use crate::model::attempt::Attempt;
use crate::model::before::ActionMark;
use crate::model::blocker::Blocker;
use crate::model::call::Reboot;
use crate::model::instance::InstanceState;
use crate::model::outcome::Outcome;
use crate::model::time::{ServiceTime, Time};
use crate::observe::cloud::{CloudView, Seen};
use crate::safeguard::{Safeguard, stands};

use super::super::context::{Case, PlanContext};

/// The cloud took our reboot and has not ended it within the time of a boot, and no other action is newer: its host is dead. Nova
/// goes on naming the task for ever, and that held every further step for ever. Where a list showed it at rest since, this reboot
/// is another's, also while the log cannot be read: it holds as long as it lasts, as every reboot of others.
pub fn reboot_never_ends(context: &PlanContext<'_>, case: &Case, seen: &Seen) -> bool {
    let Some((cloud, _)) = context.seen_of(&case.incident.key.subject) else { return false };
    let over = |patience| Some(cloud.listed_begun?.earlier_by(patience));
    let over = context.pool(seen).and_then(|pool| over(pool.deadlines.boot_patience()));
    let (ours, others) = (case.gathered.own_boot, case.gathered.handled);
    let is_newest = |at| others.is_none_or(|it| it < at) && !rested_after(context, cloud, seen, at);
    let is_over = ours.zip(over).is_some_and(|(at, over)| at <= over && is_newest(at));
    seen.instance.state == InstanceState::Rebooting && is_over
}

/// Another client, or the cloud itself, worked on the machine until a moment ago, and the machine boots. An operator
/// repaired a disk in a rescue, and found the machine deleted half a minute after the unrescue. Where the action on the
/// machine failed, its operator is still at work. The list does not show a reboot between two listings, but the action log
/// does: its time is compared with the cloud's own clock at its last full list. What a person had to themselves, by a lock, a
/// pause or without its marks, has that time in whatever state it is: a machine whose reboot of ours never ended was deleted
/// ten seconds after they unlocked it. Each ends with the time of a boot.
pub(super) fn just_released(
    context: &PlanContext<'_>,
    case: &Case,
    cloud: &CloudView,
    seen: &Seen,
) -> Option<Blocker> {
    let patience = context.pool(seen)?.deadlines.boot_patience();
    // A guest that stood still while its disk was copied is back within seconds, and no copy holds it for longer than that.
    if seen.instance.runs_freely()
        && context.now.since(seen.task_since) < context.roster.timing.settle
        && stands(Safeguard::JustReleased)
    {
        return Some(Blocker::OtherActor("its cloud ended a task on it a moment ago".into()));
    }
    // A person who asks for a repair knows what was done before the request, and not what is done after it.
    let asked = case.incident.asked.as_ref().filter(|_| case.incident.is_asked_for()).map(|asked| asked.at);
    let is_new = |at: &Time| context.now.since(*at) < patience && asked.is_none_or(|asked| asked < *at);
    let let_go = context.let_go.last(seen).filter(is_new);
    let released = seen.released.filter(|at| is_new(at) && !is_after_ours(context, case, cloud, seen, *at));
    let begun = cloud.listed_begun.map(|begun| begun.earlier_by(patience));
    let asked = asked.and_then(|asked| cloud.clock_at(asked));
    let handled = case.gathered.handled.filter(|at| asked.is_none_or(|asked| asked < *at));
    let handled = handled.zip(begun).is_some_and(|(at, begun)| at > begun);
    let waits = let_go.is_some() || seen.instance.is_at_rest() && (released.is_some() || handled);
    (waits && stands(Safeguard::JustReleased)).then(|| {
        Blocker::OtherActor(
            format!(
                "until a moment ago others had it in hand, or may have had, and a boot may take {patience}"
            )
            .into(),
        )
    })
}

/// It was given back after a reboot or start of ours, whose patience is in the incident: one that began within `patience` before,
/// and after which the cloud shows nothing that others did. Two minutes after our power cycle, which no list showed, a person
/// moved the machine to another host: that it ran again counted as ours, and it was deleted while it booted there. The log tells
/// of what was tried under another incident as well. A second release after the same try is another's.
///
/// Where a list that began after the cloud had taken ours showed it at rest, what came after is another's: twelve minutes after
/// our power cycle a person rebooted the machine, and while the log could not be read that counted as ours.
fn is_after_ours(context: &PlanContext<'_>, case: &Case, cloud: &CloudView, seen: &Seen, at: Time) -> bool {
    let Some(patience) = context.pool(seen).map(|pool| pool.deadlines.boot_patience()) else { return false };
    let gathered = &case.gathered;
    // EC2 shows nothing of a reboot in place: what a list shows there is another's stop and start.
    let launches = matches!(gathered.newest_reboot, Some(ActionMark::Launch(_)));
    let is_unseen = |call: &Call| launches && matches!(call, Call::Reboot(Reboot { hard: false, .. }));
    let boots = |tried: &&Attempt| tried.may_boot() && !is_unseen(&tried.call);
    let span = |tried: &Attempt| {
        let is_taken = matches!(tried.outcome(), Some(Outcome::Accepted { .. }));
        Some((cloud.clock_at(tried.at)?, cloud.clock_at(tried.ending.as_ref()?.at())?, is_taken))
    };
    let tried = case.incident.attempts.iter().filter(boots).filter_map(span);
    let logged = gathered.own_boot.map(|at| (at, at, true));
    let before = seen.released_before.max(context.let_go.last(seen)).and_then(|at| cloud.clock_at(at));
    let Some(at) = cloud.clock_at(at).filter(|_| seen.released_by_boot) else { return false };
    let is_its = |(begun, ended, is_taken): (ServiceTime, ServiceTime, bool)| {
        if is_taken && rested_after(context, cloud, seen, ended) {
            return false;
        }
        let is_near = begun <= at && at.earlier_by(patience) <= begun && before.is_none_or(|it| it < begun);
        let handled = gathered.handled.is_some_and(|it| it > begun);
        is_near && !handled && gathered.launched.is_none_or(|it| it <= ended)
    };
    tried.chain(logged).any(is_its)
}

/// A list that began well after this showed it at rest, before the last time that it was not.
fn rested_after(context: &PlanContext<'_>, cloud: &CloudView, seen: &Seen, taken: ServiceTime) -> bool {
    let rested = seen.rested_at.and_then(|at| cloud.clock_at(at - context.roster.timing.settle));
    rested.is_some_and(|at| at > taken)
}
