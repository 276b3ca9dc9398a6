//! The list of repairs: each call and each repair step once.
//!
//! A new repair is its file, its call in `model::call`, its step in `model::repair_step`, a line in `for_each_call` and in
//! [`RepairStep::remedy`], and its place in `escalation`; then the compiler names the adapters that have to perform it.

use std::fmt;

use crate::effect::Look;
use crate::event::Answer;
use crate::model::before::Before;
use crate::model::blocker::Blocker;
use crate::model::id::{CloudName, InstanceId};
use crate::model::repair_step::RepairStep;
use crate::model::roster::Ownership;
use crate::model::violation::Violation;
use crate::plan::context::{Case, PlanContext};
use crate::plan::interlock;

use super::{
    Act, Call, Effectiveness, NoCall, Remedy, Target, address_pairs, group_nudge, invariants, leftover,
    missing_routes, node_cleanup, pod_rules, port_groups, reboot, rejoin, replace, router_nudge,
    service_roles, stale_routes, start,
};

/// The same expression for the call of each kind; `$call` stands for the call's own struct.
macro_rules! for_each_call {
    ($on:expr, $call:ident => $does:expr) => {
        match $on {
            Call::AddRules($call) => $does,
            Call::DropRule($call) => $does,
            Call::NudgeGroup($call) => $does,
            Call::SetPortGroups($call) => $does,
            Call::AddPortPairs($call) => $does,
            Call::RemoveRoutes($call) => $does,
            Call::AddRoutes($call) => $does,
            Call::NudgeRouter($call) => $does,
            Call::AssignRoles($call) => $does,
            Call::AskAgent($call) => $does,
            Call::Reboot($call) => $does,
            Call::Start($call) => $does,
            Call::DeleteInstance($call) => $does,
            Call::DeleteNode($call) => $does,
        }
    };
}

impl Call {
    /// True when a mistake would cost a running machine or its Node.
    pub fn is_destructive(&self) -> bool {
        for_each_call!(self, call => is_destructive(call))
    }

    /// True when two controllers that both do it do no harm.
    pub fn is_harmless_twice(&self) -> bool {
        for_each_call!(self, call => is_harmless_twice(call))
    }

    /// What it changes.
    pub fn target(&self) -> Target<'_> {
        for_each_call!(self, call => call.target())
    }

    /// The cloud that it changes; none where it is put to the cluster or to an agent.
    pub fn cloud(&self) -> Option<&CloudName> {
        self.target().cloud()
    }

    /// The instance that the call changes, or whose port it changes, and the marks that it must carry at the moment of the act.
    pub fn owned(&self) -> Option<(&CloudName, &InstanceId, &Ownership)> {
        self.target().owned()
    }

    /// The same change of the same thing, whatever it rests on: a revision, a mark or a state may have moved on between two
    /// tries.
    pub fn is_same_change(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::AddRules(one), Self::AddRules(other)) => one.is_same_change(other),
            (Self::DropRule(one), Self::DropRule(other)) => one.is_same_change(other),
            (Self::NudgeGroup(one), Self::NudgeGroup(other)) => one.is_same_change(other),
            (Self::SetPortGroups(one), Self::SetPortGroups(other)) => one.is_same_change(other),
            (Self::AddPortPairs(one), Self::AddPortPairs(other)) => one.is_same_change(other),
            (Self::RemoveRoutes(one), Self::RemoveRoutes(other)) => one.is_same_change(other),
            (Self::AddRoutes(one), Self::AddRoutes(other)) => one.is_same_change(other),
            (Self::NudgeRouter(one), Self::NudgeRouter(other)) => one.is_same_change(other),
            (Self::AssignRoles(one), Self::AssignRoles(other)) => one.is_same_change(other),
            (Self::AskAgent(one), Self::AskAgent(other)) => one.is_same_change(other),
            (Self::Reboot(one), Self::Reboot(other)) => one.is_same_change(other),
            (Self::Start(one), Self::Start(other)) => one.is_same_change(other),
            (Self::DeleteInstance(one), Self::DeleteInstance(other)) => one.is_same_change(other),
            (Self::DeleteNode(one), Self::DeleteNode(other)) => one.is_same_change(other),
            _ => false,
        }
    }

    /// The fresh reads that tell whether it took effect.
    pub fn looks_after(&self, before: Option<&Before>) -> Vec<Look> {
        for_each_call!(self, call => call.looks_after(before))
    }

    /// In words that fit a line: long lists are counted.
    pub fn in_a_line(&self) -> String {
        for_each_call!(self, call => call.in_a_line())
    }

    /// What must hold when it is called.
    pub fn check(&self, context: &PlanContext<'_>) -> Result<(), Violation> {
        invariants::carries_marks(context, self)?;
        for_each_call!(self, call => call.check(context))
    }

    /// Compares what one of those reads found with what the call was to bring about.
    pub fn judge(&self, before: Option<&Before>, answer: &Answer) -> Effectiveness {
        for_each_call!(self, call => call.judge(before, answer))
    }
}

const fn is_destructive<A: Act>(_: &A) -> bool {
    A::IS_DESTRUCTIVE
}

const fn is_harmless_twice<A: Act>(_: &A) -> bool {
    A::IS_HARMLESS_TWICE
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for_each_call!(self, call => call.fmt(f))
    }
}

impl RepairStep {
    /// What is known of it.
    pub const fn remedy(self) -> &'static Remedy {
        match self {
            Self::SetGroups => &port_groups::REMEDY,
            Self::AddRules => &pod_rules::REMEDY,
            Self::NudgeGroup => &group_nudge::REMEDY,
            Self::NudgeRouter => &router_nudge::REMEDY,
            Self::RemoveRoutes => &stale_routes::REMEDY,
            Self::AddRoutes => &missing_routes::REMEDY,
            Self::AddPairs => &address_pairs::REMEDY,
            Self::DropLeftover => &leftover::REMEDY,
            Self::AssignRoles => &service_roles::REMEDY,
            Self::Rejoin => &rejoin::REMEDY,
            Self::Start => &start::REMEDY,
            Self::Reboot => &reboot::REMEDY,
            Self::Replace => &replace::REMEDY,
            Self::Cleanup => &node_cleanup::REMEDY,
        }
    }

    /// What it does, as an imperative.
    pub const fn says(self) -> &'static str {
        self.remedy().says
    }

    /// Everything that stands against it now: what blocks every repair of its class, and what blocks this one alone.
    /// Empty: it may be made.
    pub fn blockers(self, context: &PlanContext<'_>, case: &Case, call: Option<&Call>) -> Vec<Blocker> {
        interlock::blockers(context, case, self, call, self.remedy().blocks)
    }

    /// The call that this repair step means for this case now; else why there is nothing to call.
    pub fn call(self, context: &PlanContext<'_>, case: &Case) -> Result<Call, NoCall> {
        (self.remedy().plan)(context, case)
    }
}
