//! No milder step is left: the controller deletes the instance, so that the owner of its pool makes another. The successor
//! is the owner's task.

use std::fmt;

use crate::diagnose::hosting;
use crate::event::Answer;
use crate::model::before::Before;
use crate::model::call::DeleteInstance;
use crate::model::class::Class;
use crate::model::hold::Hold;
use crate::model::hosting::GroupPhase;
use crate::model::incident::{Confidence, FaultKind, MachineKey};
use crate::model::instance::{Instance, InstanceState};
use crate::model::roster::Pool;
use crate::model::violation::ensure;
use crate::observe::cloud::Seen;
use crate::plan::budget::{REPLACEMENT_FAILED, normalise_fault};
use crate::plan::desk::{Case, Desk};
use crate::plan::{interlock, wishes};

use super::invariants::{self, Checked};
use super::{Act, Call, Effectiveness, NoCall, Remedy, Target, facts, gone, no_call, not_seen, seen};

pub(super) const REMEDY: Remedy = Remedy {
    name: "replace",
    class: Class::Replace,
    says: "delete the instance, so that its pool makes another",
    plan,
    blocks,
};

fn plan(desk: &Desk<'_>, case: &Case) -> Result<Call, NoCall> {
    let (view, seen) = facts::machine(desk, case)?;
    let state = seen.instance.state;
    if state.is_leaving() {
        return no_call("it is already being deleted");
    }
    let (cloud, instance) = (view.name.clone(), seen.instance.id.clone());
    let (owned, rests_on) = (facts::marks(desk, seen)?, Some(state));
    Ok(Call::DeleteInstance(DeleteInstance { cloud, instance, owned, rests_on }))
}

/// A deletion is the last step: not while its pool is at its minimum or its group keeps it, not where the successor would find no
/// place, and not again where deletions have not helped.
fn blocks(desk: &Desk<'_>, case: &Case, _call: Option<&Call>, holds: &mut Vec<Hold>) {
    let Some((cloud, seen)) = desk.seen_of(&case.incident.key.subject) else { return };
    if is_of_unknown_history(case, seen) {
        holds.push(Hold::HistoryUnknown);
    }
    let Some(pool) = desk.pool(seen) else { return };
    if let Some(group) = hosting::group(seen) {
        let is_kept = matches!(group.phase, GroupPhase::Kept | GroupPhase::Unknown);
        let through = pool.through_group && !group.protected && group.phase != GroupPhase::Unknown;
        if is_kept && !through {
            holds.push(Hold::GroupKeeps(group.to_string().into()));
        }
    }
    if let Some((used, limit)) = interlock::router_room(desk)
        && desk.roster.network.router.as_ref().is_some_and(|(cloud, _)| *cloud == pool.cloud)
    {
        holds.push(Hold::RouterFull { used, limit });
    }
    if let Some(left) = wishes::kept_for(desk, case, pool, seen) {
        holds.push(Hold::Kept(left));
    }
    let errored = case.incident.key.kind == FaultKind::Errored;
    let machine = MachineKey::Instance(cloud.name.clone(), seen.instance.id.clone());
    let live = desk.live(&pool.name, Some(&machine));
    if !errored && live <= pool.min {
        holds.push(Hold::PoolMinimum { live, min: pool.min });
    }
    was_in_vain(desk, pool, seen, holds);
}

/// It ran before we looked, never joined in sight, and nothing says that its first boot failed: it may have served.
fn is_of_unknown_history(case: &Case, seen: &Seen) -> bool {
    let unknown_history = case.incident.key.kind == FaultKind::NeverJoined && !seen.is_known_since_birth();
    let first_boot_failed = case.incident.findings.first().is_some_and(|finding| {
        finding.cause.is_of_the_first_boot() && finding.confidence == Confidence::Sure
    });
    unknown_history && !first_boot_failed
}

/// Replacements of this pool did not join, or had the same fault again.
fn was_in_vain(desk: &Desk<'_>, pool: &Pool, seen: &Seen, holds: &mut Vec<Hold>) {
    let stops_at = desk.roster.limits.same_fault_stops_at;
    let times = desk.book.fault_count(desk.now, &pool.name, REPLACEMENT_FAILED, None);
    if times >= stops_at {
        holds.push(Hold::Futile { times });
    }
    if let Some(fault) = &seen.instance.fault {
        let text = normalise_fault(&fault.message);
        let times = desk.book.fault_count(desk.now, &pool.name, &text, Some(&seen.instance.id));
        if times >= stops_at {
            holds.push(Hold::SameFault { times, text });
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
    fn check(&self, desk: &Desk<'_>) -> Checked {
        let seen = invariants::known(invariants::listed(desk, &self.cloud, &self.instance), self)?;
        invariants::fights_no_group(desk, self, seen, |group, through| {
            !through || group.phase != GroupPhase::Kept
        })?;
        invariants::is_not_contested(desk, self, seen)?;
        invariants::is_meant_to_stay(desk, self, seen)?;
        invariants::may_hurt(desk, self, seen, |pool| pool.repair.replace)?;
        let is_leaving = seen.instance.state.is_leaving();
        ensure(!is_leaving, 7, || format!("{self}: it is being deleted already"))?;
        keeps_minimum(desk, self, seen)
    }
}

/// The pool keeps its minimum without this machine, counted here from what is seen and by the engine as it goes along.
fn keeps_minimum(desk: &Desk<'_>, call: &DeleteInstance, seen: &Seen) -> Checked {
    let pool = invariants::pool(desk, seen, call)?;
    let going = desk.clouds.values().flat_map(|cloud| {
        let going = cloud.instances.values().filter(|seen| seen.goes());
        going.map(|seen| MachineKey::Instance(cloud.name.clone(), seen.instance.id.clone()))
    });
    let going = going.filter(|key| desk.tally.counted(key, &pool.name).is_some()).count();
    let counted = desk.tally.pool(&pool.name).going;
    ensure(going == counted as usize, 5, || format!("{call}: {going} machines go, {counted} are counted"))?;
    let errored = seen.instance.state == InstanceState::Errored;
    let live = desk.live(&pool.name, invariants::key_of(desk, seen).as_ref());
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
