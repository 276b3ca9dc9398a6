//! A port does not allow the pod range of its machine's Node: the controller adds the range to its allowed address pairs.

use std::fmt;

use crate::diagnose::faults;
use crate::diagnose::network::membership::Verdict;
use crate::event::Answer;
use crate::model::before::Before;
use crate::model::call::AddPortPairs;
use crate::plan::context::{Case, PlanContext};
use ipnet::IpNet;

use super::invariants::{self, Checked};
use super::{
    Act, Call, Effectiveness, NoCall, Remedy, Target, facts, gone, no_call, not_seen, nothing_more, seen,
};

pub(super) const REMEDY: Remedy =
    Remedy { says: "allow the node's pod range on its port", plan, blocks: nothing_more };

fn plan(context: &PlanContext<'_>, case: &Case) -> Result<Call, NoCall> {
    let (cloud, seen) = facts::machine(context, case)?;
    let need = faults::pairs_needed(context.roster, context.cluster, seen);
    let Some(need) = need else { return no_call("its port allows its pod range") };
    match need.verdict {
        Verdict::Applicable => Ok(Call::AddPortPairs(AddPortPairs {
            cloud: cloud.name.clone(),
            port: need.port,
            pairs: need.missing,
            if_revision: need.revision,
            instance: seen.instance.id.clone(),
            owned: facts::marks(context, seen)?,
        })),
        Verdict::NotApplicable(why) => no_call(&why.to_string()),
    }
}

impl Act for AddPortPairs {
    const IS_HARMLESS_TWICE: bool = true;

    fn target(&self) -> Target<'_> {
        Target::Port((&self.cloud, &self.instance, &self.owned))
    }

    fn is_same_change(&self, other: &Self) -> bool {
        (&self.cloud, &self.port, &self.pairs) == (&other.cloud, &other.port, &other.pairs)
    }

    fn judge(&self, _before: Option<&Before>, answer: &Answer) -> Effectiveness {
        let (Answer::Ports(ports), port) = (answer, &self.port) else { return gone() };
        let found = ports.iter().find(|found| found.id == *port);
        let allows = |pair: &IpNet| found.is_some_and(|found| found.pairs.iter().any(|it| it.contains(pair)));
        if found.is_some() && self.pairs.iter().all(allows) {
            seen(format!("read back: port {port} allows it"))
        } else {
            not_seen(format!("read back: port {port} does not allow it"))
        }
    }

    fn check(&self, context: &PlanContext<'_>) -> Checked {
        invariants::is_in_no_others_hands(context, self, &self.cloud, &self.instance)?;
        invariants::leads_to_pods(context, self, self.pairs.iter().copied())
    }
}

impl fmt::Display for AddPortPairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "allow on port {}:", self.port)?;
        self.pairs.iter().try_for_each(|pair| write!(f, " {pair}"))
    }
}
