//! A security group lacks the rules for pods: the controller adds the missing rules to it.

use std::fmt;

use crate::diagnose::faults;
use crate::event::Answer;
use crate::model::before::Before;
use crate::model::call::AddRules;
use crate::model::incident::Subject;
use crate::model::network::RuleSpec;
use crate::plan::context::{Case, PlanContext};

use super::invariants::Checked;
use super::{
    Act, Call, Effectiveness, NoCall, Remedy, Target, facts, gone, no_call, not_seen, nothing_more, seen,
};

pub(super) const REMEDY: Remedy =
    Remedy { says: "add the missing rules for pods to the security group", plan, blocks: nothing_more };

fn plan(context: &PlanContext<'_>, case: &Case) -> Result<Call, NoCall> {
    let Subject::Group(cloud, group) = &case.incident.key.subject else { return no_call("not a group") };
    let rules = faults::rules_needed(context.roster, facts::cloud(context, cloud)?, group);
    if rules.is_empty() {
        return no_call("every rule is there");
    }
    Ok(Call::AddRules(AddRules { cloud: cloud.clone(), group: group.clone(), rules }))
}

impl Act for AddRules {
    const IS_HARMLESS_TWICE: bool = true;

    fn target(&self) -> Target<'_> {
        Target::Group(&self.cloud, &self.group)
    }

    fn is_same_change(&self, other: &Self) -> bool {
        self == other
    }

    fn in_a_line(&self) -> String {
        format!("add {} rule(s) to group {}", self.rules.len(), self.group)
    }

    fn judge(&self, _before: Option<&Before>, answer: &Answer) -> Effectiveness {
        let Answer::Group(Some(group)) = answer else { return gone() };
        let is_there = |rule: &&RuleSpec| group.rules.iter().any(|held| held.allows == **rule);
        match self.rules.iter().filter(|rule| !is_there(rule)).count() {
            0 => seen("read back: the group holds every rule"),
            absent => not_seen(format!("read back: {absent} rule(s) are not there")),
        }
    }

    /// What is added is what the roster wants of the group.
    fn check(&self, _context: &PlanContext<'_>) -> Checked {
        Ok(())
    }
}

impl fmt::Display for AddRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "add {} rule(s) to group {}:", self.rules.len(), self.group)?;
        self.rules.iter().try_for_each(|rule| write!(f, " [{rule}]"))
    }
}
