//! An instance is shut off and should serve: the controller starts it.

use std::fmt;

use crate::diagnose::hosting;
use crate::event::Answer;
use crate::model::before::Before;
use crate::model::call::StartInstance;
use crate::model::instance::InstanceState;
use crate::model::violation::ensure;
use crate::plan::context::{Case, PlanContext};
use crate::safeguard::{Safeguard, stands};

use super::invariants::{self, Checked};
use super::{
    Act, Call, Effectiveness, NoCall, Remedy, Target, facts, gone, no_call, not_seen, nothing_more, seen,
    unseen,
};

pub(super) const REMEDY: Remedy = Remedy { says: "start the instance", plan, blocks: nothing_more };

fn plan(context: &PlanContext<'_>, case: &Case) -> Result<Call, NoCall> {
    let (view, seen) = facts::machine(context, case)?;
    let state = seen.instance.state;
    if state.is_leaving() {
        return no_call("it is already being deleted");
    }
    let owned = facts::marks(context, seen)?;
    // A group replaces a machine that stops: by then its end is decided, and starting it is in vain.
    if hosting::group(seen).is_some() && stands(Safeguard::GroupKeeps) {
        return no_call("its Auto Scaling group replaces machines that stop");
    }
    if state != InstanceState::Stopped {
        return no_call("it is not shut off");
    }
    Ok(Call::Start(StartInstance { cloud: view.name.clone(), instance: seen.instance.id.clone(), owned }))
}

impl Act for StartInstance {
    fn target(&self) -> Target<'_> {
        Target::Instance((&self.cloud, &self.instance, &self.owned))
    }

    fn is_same_change(&self, other: &Self) -> bool {
        (&self.cloud, &self.instance) == (&other.cloud, &other.instance)
    }

    fn judge(&self, _before: Option<&Before>, answer: &Answer) -> Effectiveness {
        let Answer::Instance(Some(found)) = answer else { return gone() };
        match found.state {
            InstanceState::Active => seen("read back: it runs"),
            InstanceState::Stopped => not_seen("read back: it is stopped"),
            // On its way up, which takes a machine of bare metal many minutes.
            state => unseen(format!("read back: it is {state:?}")),
        }
    }

    /// Starting what its group replaces is in vain, and beside it.
    fn check(&self, context: &PlanContext<'_>) -> Checked {
        let Some(seen) = invariants::listed(context, &self.cloud, &self.instance) else { return Ok(()) };
        invariants::is_not_contested(context, self, seen)?;
        ensure(seen.left.is_none(), 3, || format!("{self}: its node was removed on purpose"))?;
        invariants::fights_no_group(context, self, seen, |_, _| true)
    }
}

impl fmt::Display for StartInstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "start instance {}", self.instance)
    }
}
