//! A port lacks a security group of its pool: the controller adds the missing groups to those that the port carries.

use std::fmt;
use std::sync::Arc;

use crate::diagnose::faults;
use crate::diagnose::network::membership::Verdict;
use crate::event::Answer;
use crate::model::before::Before;
use crate::model::call::SetPortGroups;
use crate::model::incident::MachineKey;
use crate::model::violation::ensure;
use crate::plan::context::{Case, PlanContext};

use super::invariants::{self, Checked};
use super::{Act, Call, Effectiveness, NoCall, Remedy, Target, facts, gone, not_seen, nothing_more, seen};

pub(super) const REMEDY: Remedy =
    Remedy { says: "add the missing security group to the port", plan, blocks: nothing_more };

fn plan(context: &PlanContext<'_>, case: &Case) -> Result<Call, NoCall> {
    let (cloud, seen) = facts::machine(context, case)?;
    let needs = faults::port_needs(context.roster, cloud, seen);
    let (mut refused, mut again) = (None, None);
    let last = case.incident.attempts.last();
    for need in needs {
        match need.verdict {
            Verdict::Applicable => {
                assert!(!need.full_list.is_empty(), "a port's groups are never emptied");
                let call = Call::SetPortGroups(SetPortGroups {
                    cloud: cloud.name.clone(),
                    port: need.port,
                    groups: need.full_list,
                    if_revision: need.revision,
                    instance: seen.instance.id.clone(),
                    owned: facts::marks(context, seen)?,
                });
                // One port that loses its group over and over does not keep the others waiting.
                if last.is_none_or(|last| !last.call.is_same_change(&call)) {
                    return Ok(call);
                }
                again.get_or_insert(call);
            }
            Verdict::NotApplicable(why) => refused = Some(why.to_string()),
        }
    }
    again.ok_or_else(|| Arc::from(refused.as_deref().unwrap_or("every port has its security groups")))
}

impl Act for SetPortGroups {
    const IS_HARMLESS_TWICE: bool = true;

    fn target(&self) -> Target<'_> {
        Target::Port((&self.cloud, &self.instance, &self.owned))
    }

    fn is_same_change(&self, other: &Self) -> bool {
        (&self.cloud, &self.port, &self.groups) == (&other.cloud, &other.port, &other.groups)
    }

    fn in_a_line(&self) -> String {
        format!("add the missing security group to port {}", self.port)
    }

    fn judge(&self, _before: Option<&Before>, answer: &Answer) -> Effectiveness {
        let (Answer::Ports(ports), port) = (answer, &self.port) else { return gone() };
        match ports.iter().find(|found| found.id == *port) {
            Some(found) if self.groups.iter().all(|group| found.groups.contains(group)) => {
                seen(format!("read back: port {port} carries {} group(s)", found.groups.len()))
            }
            Some(_) => not_seen(format!("read back: port {port} still lacks a group")),
            None => not_seen(format!("read back: port {port} is gone")),
        }
    }

    /// Security groups of a port are never emptied (invariant 10), nor put back while a person may have drained the machine.
    fn check(&self, context: &PlanContext<'_>) -> Checked {
        invariants::is_in_no_others_hands(context, self, &self.cloud, &self.instance)?;
        let machine = MachineKey::Instance(self.cloud.clone(), self.instance.clone());
        let is_lost = context.cluster.lost_together.contains(&machine);
        ensure(!is_lost, 3, || format!("{self}: its Node went unwatched, or with others"))?;
        ensure(!self.groups.is_empty(), 10, || format!("port {} would lose all its groups", self.port))
    }
}

impl fmt::Display for SetPortGroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "set the groups of port {} to", self.port)?;
        self.groups.iter().try_for_each(|group| write!(f, " {group}"))
    }
}
