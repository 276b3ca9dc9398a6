//! No milder step is left: the controller deletes the instance, so that the owner of its pool makes another. The successor
//! is the owner's task.

use std::fmt;

use crate::diagnose::hosting;
use crate::event::Answer;
use crate::model::before::Before;
use crate::model::blocker::Blocker;
use crate::model::call::DeleteInstance;
use crate::model::hosting::GroupPhase;
use crate::model::incident::{Confidence, FaultKind, MachineKey};
use crate::model::instance::{Instance, InstanceState};
use crate::model::roster::Pool;
use crate::model::violation::ensure;
use crate::observe::cloud::Seen;
use crate::plan::budget::{REPLACEMENT_FAILED, normalise_fault};
use crate::plan::context::{Case, PlanContext};
use crate::plan::{annotations, interlock};

use super::invariants::{self, Checked};
use super::{Act, Call, Effectiveness, NoCall, Remedy, Target, facts, gone, no_call, not_seen, seen};

pub(super) const REMEDY: Remedy =
    Remedy { says: "delete the instance, so that its pool makes another", plan, blocks };

fn plan(context: &PlanContext<'_>, case: &Case) -> Result<Call, NoCall> {
    let (view, seen) = facts::machine(context, case)?;
    let state = seen.instance.state;
    if state.is_leaving() {
        return no_call("it is already being deleted");
    }
    let (cloud, instance) = (view.name.clone(), seen.instance.id.clone());
    let (owned, rests_on) = (facts::marks(context, seen)?, Some(state));
    Ok(Call::DeleteInstance(DeleteInstance { cloud, instance, owned, rests_on }))
}

/// A deletion is the last step: not while its pool is at its minimum or its group keeps it, not where the successor would find no
/// place, and not again where deletions have not helped.
fn blocks(context: &PlanContext<'_>, case: &Case, _call: Option<&Call>, blockers: &mut Vec<Blocker>) {
    let Some((cloud, seen)) = context.seen_of(&case.incident.key.subject) else { return };
    if is_of_unknown_history(case, seen) {
        blockers.push(Blocker::HistoryUnknown);
    }
    let Some(pool) = context.pool(seen) else { return };
    if let Some(group) = hosting::group(seen) {
        let is_kept = matches!(group.phase, GroupPhase::Kept | GroupPhase::Unknown);
        let through = pool.through_group && !group.protected && group.phase != GroupPhase::Unknown;
        if is_kept && !through {
            blockers.push(Blocker::GroupKeeps(group.to_string().into()));
        }
    }
    if let Some((used, limit)) = interlock::router_room(context)
        && context.roster.network.router.as_ref().is_some_and(|(cloud, _)| *cloud == pool.cloud)
    {
        blockers.push(Blocker::RouterFull { used, limit });
    }
    if let Some(left) = annotations::kept_for(context, case, pool, seen) {
        blockers.push(Blocker::Kept(left));
    }
    let errored = case.incident.key.kind == FaultKind::Errored;
    let machine = MachineKey::Instance(cloud.name.clone(), seen.instance.id.clone());
    let live = context.live(&pool.name, Some(&machine));
    if !errored && live <= pool.min {
        blockers.push(Blocker::PoolMinimum { live, min: pool.min });
    }
    was_in_vain(context, pool, seen, blockers);
}

/// It ran before we looked, never joined in sight, and nothing says that its first boot failed: it may have served.
fn is_of_unknown_history(case: &Case, seen: &Seen) -> bool {
    // That a Node of its name went is an event's word, and that one stands for it may be that of another machine's kubelet.
    let kind = case.incident.key.kind;
    let is_by_word = matches!(kind, FaultKind::Vanished | FaultKind::NotReady) && seen.joined.is_none();
    let never_joined = kind == FaultKind::NeverJoined || is_by_word;
    let unknown_history = never_joined && !seen.is_known_since_birth();
    // Each client may write events: as they permit nothing, they prevent nothing, also where they stand first.
    let first = case.incident.findings.iter().find(|finding| !finding.is_of_events_alone());
    let first_boot_failed = first.is_some_and(|finding| {
        finding.cause.is_of_the_first_boot() && finding.confidence == Confidence::Sure
    });
    unknown_history && !first_boot_failed
}

/// Replacements of this pool did not join, or had the same fault again.
fn was_in_vain(context: &PlanContext<'_>, pool: &Pool, seen: &Seen, blockers: &mut Vec<Blocker>) {
    let stops_at = context.roster.limits.same_fault_stops_at;
    let times = context.book.fault_count(context.now, &pool.name, REPLACEMENT_FAILED, None);
    if times >= stops_at {
        blockers.push(Blocker::Futile { times });
    }
    if let Some(fault) = &seen.instance.fault {
        let text = normalise_fault(&fault.message);
        let times = context.book.fault_count(context.now, &pool.name, &text, Some(&seen.instance.id));
        if times >= stops_at {
            blockers.push(Blocker::SameFault { times, text });
        }
    }
}

impl Act for DeleteInstance {
    const IS_DESTRUCTIVE: bool = true;

    fn target(&self) -> Target<'_> {
        Target::Instance((&self.cloud, &self.instance, &self.owned))
    }

    fn is_same_change(&self, other: &Self) -> bool {
        (&self.cloud, &self.instance) == (&other.cloud, &other.instance)
    }

    fn judge(&self, _before: Option<&Before>, answer: &Answer) -> Effectiveness {
        match answer {
            Answer::Instance(None) => seen("asked by id: gone"),
            Answer::Instance(Some(found)) if is_taken_away(found) => seen("read back: it is being deleted"),
            Answer::Instance(Some(found)) => {
                not_seen(format!("read back: it is {:?} and not being deleted", found.state))
            }
            _ => gone(),
        }
    }

    /// The pool keeps its minimum without it, and it is not being deleted already.
    fn check(&self, context: &PlanContext<'_>) -> Checked {
        let seen = invariants::known(invariants::listed(context, &self.cloud, &self.instance), self)?;
        invariants::fights_no_group(context, self, seen, |group, through| {
            !through || group.phase != GroupPhase::Kept
        })?;
        invariants::is_not_contested(context, self, seen)?;
        invariants::is_meant_to_stay(context, self, seen)?;
        invariants::may_hurt(context, self, seen, |pool| pool.repair.replace)?;
        let is_leaving = seen.instance.state.is_leaving();
        ensure(!is_leaving, 7, || format!("{self}: it is being deleted already"))?;
        keeps_minimum(context, self, seen)
    }
}

/// The pool keeps its minimum without this machine, counted here from what is seen and by the engine as it goes along.
fn keeps_minimum(context: &PlanContext<'_>, call: &DeleteInstance, seen: &Seen) -> Checked {
    let pool = invariants::pool(context, seen, call)?;
    let going = context.clouds.values().flat_map(|cloud| {
        let going = cloud.instances.values().filter(|seen| seen.goes());
        going.map(|seen| MachineKey::Instance(cloud.name.clone(), seen.instance.id.clone()))
    });
    let going = going.filter(|key| context.counts.counted(key, &pool.name).is_some()).count();
    let counted = context.counts.pool(&pool.name).going;
    ensure(going == counted as usize, 5, || format!("{call}: {going} machines go, {counted} are counted"))?;
    let errored = seen.instance.state == InstanceState::Errored;
    let live = context.live(&pool.name, invariants::key_of(context, seen).as_ref());
    ensure(errored || live > pool.min, 5, || format!("{call}: the pool's minimum is {}", pool.min))
}

/// A group of the cloud takes it away by itself, however long its hooks keep the instance running.
fn is_taken_away(found: &Instance) -> bool {
    let group = found.hosting.as_ref().and_then(|hosting| hosting.group.as_ref());
    found.state.is_leaving() || group.is_some_and(|group| group.phase == GroupPhase::Leaving)
}

impl fmt::Display for DeleteInstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "delete instance {}", self.instance)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::hosting::{Hosting, OwnerGroup};
    use crate::model::instance::Mark;
    use crate::model::roster::Ownership;

    fn found(state: InstanceState, group: Option<GroupPhase>) -> Answer {
        let word = Arc::from("the provider's word");
        let group = group.map(|phase| OwnerGroup { name: "asg".into(), phase, word, protected: false });
        let hosting = Some(Arc::new(Hosting { group, ..Hosting::default() }));
        Answer::Instance(Some(Arc::new(Instance {
            state,
            hosting,
            ..Instance::unknown("i-1".into(), "one".into())
        })))
    }

    /// EC2 keeps an instance running while a termination hook of its group waits (EC2 Auto Scaling, "lifecycle hooks":
    /// `Terminating:Wait`, an hour by default), so that its own state does not show the deletion.
    #[test]
    fn deletion_is_seen_in_the_instance_or_in_what_its_group_says() {
        let owned = Ownership { cluster: Mark::Tag("k8s".into()), pool: None };
        let call = DeleteInstance { cloud: "ec2".into(), instance: "i-1".into(), owned, rests_on: None };
        let cases = [
            (InstanceState::Deleting, None, true),
            (InstanceState::Gone, None, true),
            (InstanceState::Active, Some(GroupPhase::Leaving), true),
            (InstanceState::Active, Some(GroupPhase::Kept), false),
            (InstanceState::Active, Some(GroupPhase::Apart), false),
            (InstanceState::Stopped, Some(GroupPhase::Reserve), false),
            (InstanceState::Active, None, false),
        ];
        for (state, group, is_seen) in cases {
            let judged = call.judge(None, &found(state, group));
            assert_eq!(matches!(judged, Effectiveness::Seen(_)), is_seen, "{state:?}, {group:?}: {judged:?}");
        }
        assert!(matches!(call.judge(None, &Answer::Instance(None)), Effectiveness::Seen(_)));
    }
}
