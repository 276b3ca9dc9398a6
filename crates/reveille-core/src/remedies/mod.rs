//! Every repair that there is, one file each, and the list of them.
//!
//! A file holds all that is true of its repair alone: the exact call for a case from what the views say at this moment
//! ([`Remedy::plan`]), what blocks it besides the common blockers, which fresh reads tell whether it took effect ([`Act`]), its
//! invariant, and how it is described. [`list`] names them all; [`escalation`] says which faults take which repair steps.
//!
//! ```text
//!  fault ─▶ escalation ─▶ Remedy::plan ─▶ Call ─▶ ledger, performer ─▶ Act::looks_after ─▶ Act::judge
//! ```
//!
//! What holds for many of them is elsewhere: who may act and when (`plan::interlock`), slots and rates (`plan::budget`), waiting
//! and counting (`engine`), the invariants (`engine::invariants`), and what a call is, as ledger and adapters know it
//! (`model::call`).

use std::fmt;
use std::sync::Arc;

use crate::effect::Look;
use crate::event::Answer;
use crate::model::before::Before;
use crate::model::blocker::Blocker;
use crate::model::id::{CloudName, GroupId, InstanceId, NodeName, RouterId};
use crate::model::roster::Ownership;
use crate::model::violation::Violation;
use crate::plan::context::{Case, PlanContext};
use crate::plan::interlock::OwnBlockers;

pub mod address_pairs;
mod escalation;
mod facts;
pub mod group_nudge;
mod invariants;
pub mod leftover;
pub mod list;
pub mod missing_routes;
pub mod node_cleanup;
pub mod pod_rules;
pub mod port_groups;
pub mod reboot;
pub mod rejoin;
pub mod replace;
pub mod router_nudge;
pub mod service_roles;
pub mod stale_routes;
pub mod start;

pub use crate::model::call::{
    AddPortPairs, AddRoutes, AddRules, AskAgent, AssignRoles, Call, DeleteInstance, DeleteNode, DropRule,
    NudgeGroup, NudgeRouter, Reboot, RemoveRoutes, SetPortGroups, StartInstance,
};
pub use crate::model::repair_step::RepairStep;
pub use escalation::escalation;

/// Why there is nothing to call.
pub type NoCall = Arc<str>;

fn no_call<T>(why: &str) -> Result<T, NoCall> {
    Err(Arc::from(why))
}

/// A repair step as it is planned.
pub struct Remedy {
    /// What it does, as an imperative.
    pub says: &'static str,
    /// The call that it means for this case now. When the facts leave nothing to call (already so, not possible here), why.
    pub plan: fn(&PlanContext<'_>, &Case) -> Result<Call, NoCall>,
    /// What blocks it now, besides what blocks every repair of its class (`plan::interlock`).
    pub blocks: OwnBlockers,
}

/// Nothing blocks it but what blocks every repair of its class.
fn nothing_more(_: &PlanContext<'_>, _: &Case, _: Option<&Call>, _: &mut Vec<Blocker>) {}

/// What a fresh read says about a call's effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effectiveness {
    /// It is there.
    Seen(Arc<str>),
    /// It is not there (yet), and would be by now.
    NotSeen(Arc<str>),
    /// What was read cannot show it, or does not show it before the machine is up again.
    Unseen(Arc<str>),
}

fn seen(text: impl Into<Arc<str>>) -> Effectiveness {
    Effectiveness::Seen(text.into())
}

fn not_seen(text: impl Into<Arc<str>>) -> Effectiveness {
    Effectiveness::NotSeen(text.into())
}

fn unseen(text: impl Into<Arc<str>>) -> Effectiveness {
    Effectiveness::Unseen(text.into())
}

/// What was to be read is gone, or the answer is to another question.
fn gone() -> Effectiveness {
    not_seen("read back: what it was about is gone")
}

/// The marks that an instance must carry at the moment of an act on it.
type Owned<'a> = (&'a CloudName, &'a InstanceId, &'a Ownership);

/// The one thing that a call changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// A port of this instance.
    Port(Owned<'a>),
    /// An instance.
    Instance(Owned<'a>),
    /// A security group.
    Group(&'a CloudName, &'a GroupId),
    /// A router.
    Router(&'a CloudName, &'a RouterId),
    /// A user of this cloud.
    User(&'a CloudName),
    /// A Node, in the cluster or through the agent on its machine.
    Node(&'a NodeName),
}

impl<'a> Target<'a> {
    /// The cloud that holds it; none where the call is put to the cluster or to an agent.
    pub const fn cloud(self) -> Option<&'a CloudName> {
        match self {
            Self::Port((cloud, ..)) | Self::Instance((cloud, ..)) => Some(cloud),
            Self::Group(cloud, _) | Self::Router(cloud, _) | Self::User(cloud) => Some(cloud),
            Self::Node(_) => None,
        }
    }

    /// The instance that is changed, or whose port is, and the marks that it must carry at the moment of the act.
    pub const fn owned(self) -> Option<Owned<'a>> {
        match self {
            Self::Port(owned) | Self::Instance(owned) => Some(owned),
            Self::Group(..) | Self::Router(..) | Self::User(_) | Self::Node(_) => None,
        }
    }

    /// The read that shows it as it is now, where one does.
    fn look(self) -> Option<Look> {
        Some(match self {
            Self::Port((cloud, instance, _)) => Look::Ports(cloud.clone(), instance.clone()),
            Self::Instance((cloud, instance, _)) => Look::Instance(cloud.clone(), instance.clone()),
            Self::Group(cloud, group) => Look::Group(cloud.clone(), group.clone()),
            Self::Router(cloud, router) => Look::Router(cloud.clone(), router.clone()),
            Self::Node(name) => Look::Node(name.clone()),
            Self::User(_) => return None,
        })
    }
}

/// A call of one kind: what it changes, and how its effect is seen. An accepted call is not a repair; what the real services show
/// after each act, and what they do not, stands in `docs/reference/acts.md`.
pub trait Act: fmt::Display {
    /// True when a mistake would cost a running machine or its Node.
    const IS_DESTRUCTIVE: bool = false;
    /// True when two controllers that both do it do no harm: it adds what is missing, tells a data plane to read again, or asks
    /// an agent, which decides for itself.
    const IS_HARMLESS_TWICE: bool = false;

    /// What it changes.
    fn target(&self) -> Target<'_>;

    /// The same change of the same thing in the same cloud, whatever it rests on: a revision, a mark or a state may have moved
    /// on between two tries.
    fn is_same_change(&self, other: &Self) -> bool;

    /// The fresh reads that tell whether it took effect.
    fn looks_after(&self, _before: Option<&Before>) -> Vec<Look> {
        self.target().look().into_iter().collect()
    }

    /// In words that fit a line: long lists are counted.
    fn in_a_line(&self) -> String {
        self.to_string()
    }

    /// Compares what one of them found with what the call was to bring about.
    fn judge(&self, before: Option<&Before>, answer: &Answer) -> Effectiveness;

    /// Its invariant: what must hold when it is called, beside what holds of every call.
    fn check(&self, context: &PlanContext<'_>) -> Result<(), Violation>;
}
