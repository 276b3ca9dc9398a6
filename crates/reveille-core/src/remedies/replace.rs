//! Nothing milder is left: the instance is deleted, so that the owner of its pool makes another. Its successor is the owner's
//! business.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::effect::Look;
use crate::event::Answer;
use crate::model::before::Before;
use crate::model::hosting::GroupPhase;
use crate::model::id::{CloudName, InstanceId};
use crate::model::instance::{Instance, InstanceState};
use crate::model::roster::Ownership;
use crate::plan::desk::{Case, Desk};
use crate::plan::ladder::Class;

use super::{Act, Call, Effectiveness, NoCall, Remedy, facts, gone, no_call, not_seen, seen};

pub(super) const REMEDY: Remedy = Remedy {
    name: "replace",
    class: Class::Replace,
    says: "delete the instance, so that its pool makes another",
    plan,
};

/// Delete the instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeleteInstance {
    /// Where.
    pub cloud: CloudName,
    /// Which one.
    pub instance: InstanceId,
    /// The marks on which this rests: a performer reads the instance directly before the act, and answers `Moved` when one of
    /// them is not on it any more.
    pub owned: Ownership,
    /// The state in which its cloud showed it when this was decided: in another one, or with a task, somebody has it in hand.
    /// None in records of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rests_on: Option<InstanceState>,
}

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

impl Act for DeleteInstance {
    const IS_DESTRUCTIVE: bool = true;

    fn cloud(&self) -> Option<&CloudName> {
        Some(&self.cloud)
    }

    fn owned(&self) -> Option<(&CloudName, &InstanceId, &Ownership)> {
        Some((&self.cloud, &self.instance, &self.owned))
    }

    fn is_same_change(&self, other: &Self) -> bool {
        (&self.cloud, &self.instance) == (&other.cloud, &other.instance)
    }

    fn looks_after(&self, _before: Option<&Before>) -> Vec<Look> {
        vec![Look::Instance(self.cloud.clone(), self.instance.clone())]
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
