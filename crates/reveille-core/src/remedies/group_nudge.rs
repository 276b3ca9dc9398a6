//! A machine cannot be reached although its security group is right: the controller adds a harmless rule and removes it, so
//! that the data plane reads the group again.

use std::fmt;

use crate::event::Answer;
use crate::model::before::Before;
use crate::model::call::NudgeGroup;
use crate::model::network::NUDGE_MARK;
use crate::plan::context::{Case, PlanContext};

use super::invariants::Checked;
use super::{Act, Call, Effectiveness, NoCall, Remedy, Target, facts, gone, not_seen, nothing_more, seen};

pub(super) const REMEDY: Remedy = Remedy {
    says: "add and remove a harmless rule, so that the network applies the group again",
    plan,
    blocks: nothing_more,
};

fn plan(context: &PlanContext<'_>, case: &Case) -> Result<Call, NoCall> {
    let (cloud, seen) = facts::machine(context, case)?;
    let pool = context.pool(seen).ok_or_else(|| NoCall::from("it belongs to no pool"))?;
    let group = pool.groups.iter().find_map(|group| cloud.resolve(group).ok());
    let group = group.ok_or_else(|| NoCall::from("its pool names no security group"))?;
    let mark = format!("{NUDGE_MARK}-{}", context.next_intent.0).into();
    Ok(Call::NudgeGroup(NudgeGroup { cloud: cloud.name.clone(), group, mark }))
}

impl Act for NudgeGroup {
    const IS_HARMLESS_TWICE: bool = true;

    fn target(&self) -> Target<'_> {
        Target::Group(&self.cloud, &self.group)
    }

    fn is_same_change(&self, other: &Self) -> bool {
        (&self.cloud, &self.group) == (&other.cloud, &other.group)
    }

    fn judge(&self, _before: Option<&Before>, answer: &Answer) -> Effectiveness {
        let Answer::Group(Some(group)) = answer else { return gone() };
        if group.rules.iter().any(|rule| rule.description == self.mark) {
            not_seen(format!("read back: the harmless rule {NUDGE_MARK} is still there"))
        } else {
            seen("read back: the harmless rule was put and taken back")
        }
    }

    /// It adds or takes back what changes nothing for a packet.
    fn check(&self, _context: &PlanContext<'_>) -> Checked {
        Ok(())
    }
}

impl fmt::Display for NudgeGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "put and take back a harmless rule in group {}", self.group)
    }
}
