//! A machine is not Ready: the controller reboots it, through its guest first and by a power cycle after that.

use std::fmt;

use crate::diagnose::hosting;
use crate::effect::Look;
use crate::event::Answer;
use crate::model::before::{ActionMark, Before};
use crate::model::call::Reboot;
use crate::model::hosting::{Check, GroupPhase};
use crate::model::id::InstanceId;
use crate::model::instance::InstanceState;
use crate::model::node::{Node, Provider};
use crate::model::roster::Mode;
use crate::observe::cloud::Seen;
use crate::plan::context::{Case, PlanContext};
use crate::plan::interlock;
use crate::safeguard::{Safeguard, stands};

use super::invariants::{self, Checked};
use super::{
    Act, Call, Effectiveness, NoCall, Remedy, RepairStep, Target, escalation, facts, gone, no_call, not_seen,
    nothing_more, seen, unseen,
};

pub(super) const REMEDY: Remedy = Remedy { says: "reboot the instance", plan, blocks: nothing_more };

fn plan(context: &PlanContext<'_>, case: &Case) -> Result<Call, NoCall> {
    let (view, seen) = facts::machine(context, case)?;
    let state = seen.instance.state;
    if state.is_leaving() {
        return no_call("it is already being deleted");
    }
    let owned = facts::marks(context, seen)?;
    if case.gathered.newest_reboot.is_none() {
        return no_call("its action log could not be read, so a reboot could not be confirmed");
    }
    let hard = match state {
        InstanceState::Active => is_hard(context, case, seen)?,
        _ if interlock::reboot_never_ends(context, case, seen) => {
            return no_call(
                "its cloud does not end the reboot that it took: another would wait behind that one",
            );
        }
        // Others brought it into this state, and may need it so. That is no reason for a harsher step: the interlock holds it.
        InstanceState::Rebooting | InstanceState::Other => false,
        _ => return no_call("only a running instance can be rebooted"),
    };
    Ok(Call::Reboot(Reboot { cloud: view.name.clone(), instance: seen.instance.id.clone(), hard, owned }))
}

/// A guest that still answers its cloud is asked first; one that was asked in vain is power-cycled, where a stop costs nothing
/// that stays.
fn is_hard(context: &PlanContext<'_>, case: &Case, seen: &Seen) -> Result<bool, NoCall> {
    let said = hosting::of(seen);
    let host = said.is_some_and(|said| said.checks.host == Check::Impaired);
    // Tries of the step before, a rejoin that was in vain, are none of it.
    let repair_step = escalation(case.incident.key.kind).get(usize::from(case.incident.repair_step));
    let hard = host || repair_step == Some(&RepairStep::Reboot) && case.incident.tries > 0;
    if hard && hosting::group(seen).is_some() && stands(Safeguard::GroupKeeps) {
        return no_call("only a stop is left, and its Auto Scaling group replaces machines that stop");
    }
    // EC2's adapter refuses it each time: the machine was given up where a replacement was allowed.
    if hard && said.is_some_and(|said| said.spot) {
        return no_call("only a stop is left, and a spot instance cannot be stopped and started by itself");
    }
    if hard && said.is_some_and(|said| said.loses_disks) && stands(Safeguard::DisksKept) {
        let replaced = context.pool(seen).is_some_and(|pool| pool.repair.replace == Mode::Act);
        return no_call(if replaced {
            "a stop loses the data on its instance store; so does a replacement, which the roster allows"
        } else {
            "a stop loses the data on its instance store: manual decision needed"
        });
    }
    Ok(hard)
}

impl Act for Reboot {
    const IS_DESTRUCTIVE: bool = true;

    fn target(&self) -> Target<'_> {
        Target::Instance((&self.cloud, &self.instance, &self.owned))
    }

    fn is_same_change(&self, other: &Self) -> bool {
        (&self.cloud, &self.instance, self.hard) == (&other.cloud, &other.instance, other.hard)
    }

    fn looks_after(&self, before: Option<&Before>) -> Vec<Look> {
        let actions = Look::Actions(self.cloud.clone(), self.instance.clone());
        let node = before.and_then(|before| before.node.clone()).map(Look::Node);
        std::iter::once(actions).chain(node).collect()
    }

    fn judge(&self, before: Option<&Before>, answer: &Answer) -> Effectiveness {
        match answer {
            Answer::Actions(actions) => {
                judge_actions(before.and_then(|before| before.action.as_ref()), &ActionMark::of(actions))
            }
            Answer::Node(found) => judge_boot(&self.instance, before, found.as_deref()),
            _ => gone(),
        }
    }

    /// A stop makes a group replace the machine.
    fn check(&self, context: &PlanContext<'_>) -> Checked {
        let seen = invariants::known(invariants::listed(context, &self.cloud, &self.instance), self)?;
        invariants::fights_no_group(context, self, seen, |group, _| {
            self.hard || !matches!(group.phase, GroupPhase::Kept | GroupPhase::Unknown)
        })?;
        invariants::is_not_contested(context, self, seen)?;
        invariants::is_meant_to_stay(context, self, seen)?;
        invariants::may_hurt(context, self, seen, |pool| pool.repair.reboot)
    }
}

/// Whether the cloud shows a boot of the machine since.
fn judge_actions(before: Option<&ActionMark>, now: &ActionMark) -> Effectiveness {
    match (before, now) {
        (None, _) => unseen("what the cloud's action log showed before is not known"),
        (Some(ActionMark::Launch(before)), ActionMark::Launch(now)) if before != now => {
            seen(format!("the cloud shows a new launch: {now}"))
        }
        (Some(ActionMark::Launch(_)), ActionMark::Launch(_)) => {
            unseen("the cloud shows no new launch, and shows no reboot in place")
        }
        (Some(ActionMark::Reboot(before)), ActionMark::Reboot(Some(now))) if before.as_ref() != Some(now) => {
            seen(format!("the cloud's action log shows reboot {now}"))
        }
        (Some(before), now) if before == now => not_seen("the cloud's action log shows no new reboot"),
        _ => unseen("the cloud's action log is another one than before"),
    }
}

/// The kubelet reports the boot id when it comes back, and not before.
fn judge_boot(instance: &InstanceId, before: Option<&Before>, found: Option<&Node>) -> Effectiveness {
    let was = before.and_then(|before| before.node_boot.as_deref());
    let Some(node) = found else { return unseen("read back: its node is not there") };
    match (was, node.boot_id.as_deref()) {
        _ if !stands_for(node, instance) => {
            unseen(format!("read back: node {} stands for another machine", node.name))
        }
        (Some(was), Some(is)) if was != is => {
            seen(format!("read back: node {} carries another boot id: {is}", node.name))
        }
        (Some(_), Some(_)) => unseen(format!("read back: node {} carries the same boot id", node.name)),
        _ => unseen(format!("read back: no boot id of node {} to compare", node.name)),
    }
}

/// The Node is this machine's.
pub(super) fn stands_for(node: &Node, instance: &InstanceId) -> bool {
    match &node.provider {
        Provider::Instance(id) => id == instance,
        // A node that the cloud controller has not initialised has no other identity yet.
        Provider::Unset | Provider::Unread(_) => node.system_uuid.as_ref() == Some(instance),
    }
}

impl fmt::Display for Reboot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let does = if self.hard { "power-cycle" } else { "reboot" };
        write!(f, "{does} instance {}", self.instance)
    }
}
