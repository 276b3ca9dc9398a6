//! What a machine record of any kind says, in one shape.
//!
//! ```text
//!  MachineRecord ─┬─▶ stopped_at: the first step that is not reached
//!                 └─▶ evidence_lines: each step and the failure as a line of text, for the diagnosis of logs
//! ```
//!
//! Every text in it is bounded, and holds no character that a reader does not see. Identities are whole. It is what the owner
//! wrote about its machine, and no proof: a Node that is named need not exist. Secrets are not masked here; the program that
//! shows the words masks them, as it does for all texts of machines.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use reveille_core::model::id::{NodeName, ZoneName};
use reveille_core::model::stage::Stage;
use reveille_core::model::time::Span;

pub use crate::bounded::Sort;
use crate::bounded::words;
use crate::kind::Kind;

/// Bytes of a line of evidence: namespace, name, value and message at their longest need 256 each, the rest 250.
pub const EVIDENCE_LINE_BYTES_MAX: usize = 1280;
/// Labels that are kept. The longest list that we know, of a NodeClaim on AWS, has 30.
pub const LABELS_MAX: usize = 64;
/// Machines of one record: the largest Auto Scaling group that AWS allows without asking has 1,000, and Cluster API reads 10,000.
pub const MEMBERS_MAX: usize = 1_000;
/// Conditions that are looked at in one list. Cluster API allows 32.
pub const CONDITIONS_MAX: usize = 64;
/// Fields that are told as unread. An object with more is not of the kind that it claims to be.
pub const UNREAD_MAX: usize = 32;

/// A machine, as the system that owns it describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineRecord {
    /// The kind of the object.
    pub kind: &'static Kind,
    /// The namespace; none for a kind without.
    pub namespace: Option<Arc<str>>,
    /// The name.
    pub name: Arc<str>,
    /// The uid: another object of the same name has another one.
    pub uid: Arc<str>,
    /// When it was created, as the API server wrote it.
    pub created: Option<Arc<str>>,
    /// Its labels, [`LABELS_MAX`] at most.
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// The provider ID of its instance.
    pub provider_id: Option<Arc<str>>,
    /// The Node that it names.
    pub node: Option<NodeName>,
    /// The pool that it names.
    pub pool: Option<Arc<str>>,
    /// The zone.
    pub zone: Option<ZoneName>,
    /// The machines of a record that stands for several; empty for one machine.
    pub members: Members,
    /// The object that uses it.
    pub consumer: Option<Consumer>,
    /// The way of the machine, in the map's order.
    pub steps: Vec<Step>,
    /// The failure that the owner reports.
    pub failure: Option<Failure>,
    /// It is being deleted, or about to be.
    pub leaving: bool,
    /// Its owner expects no Node of it: a host in stock, a pool of size zero.
    pub idle: bool,
    /// What asks others to keep their hands off.
    pub holds: Vec<Hold>,
    /// How long the owner waits at the step where the machine stands; none where it waits without end, and for a machine that
    /// leaves or is idle. When the wait began, the owner's clock says; ours starts at our own first sight of the step.
    pub owner_deadline: Option<Span>,
    /// Fields that were there and could not be read.
    pub unread: Vec<Unread>,
}

/// Machines of a record that stands for several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// Their provider IDs, [`MEMBERS_MAX`] at most.
    pub provider_ids: Vec<Arc<str>>,
    /// Their Nodes, [`MEMBERS_MAX`] at most.
    pub nodes: Vec<NodeName>,
}

/// An object that uses another one: a Metal3Machine and its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumer {
    /// Its object kind.
    pub kind: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

/// A step on the way of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The condition's type, or the name of what is looked at instead.
    pub name: &'static str,
    /// Whether it is a condition.
    pub is_condition: bool,
    /// The stage that it proves.
    pub stage: Stage,
    /// Whether it is reached.
    pub state: StepState,
    /// The condition's status, or the field's value; none where it is not there.
    pub value: Option<Arc<str>>,
    /// Why, as one word.
    pub reason: Option<Arc<str>>,
    /// Why, in words.
    pub message: Option<Arc<str>>,
    /// Since when, as the owner wrote it.
    pub since: Option<Arc<str>>,
}

/// Whether a step is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepState {
    /// It is.
    Reached,
    /// Not yet: the owner waits for it, or has not looked.
    NotYet,
    /// The owner says that it failed. It may try again.
    Failed,
    /// The owner says that it does not know.
    Unknown,
}

/// A failure that the owner reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Why, as one word.
    pub reason: Option<Arc<str>>,
    /// Why, in words.
    pub message: Option<Arc<str>>,
}

/// A signal that asks others to keep their hands off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Which signal, with its value: `annotation karpenter.sh/do-not-disrupt=true`.
    pub by: Arc<str>,
    /// What it says, as a clause.
    pub words: &'static str,
}

/// A field that was there and could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Its path.
    pub field: Arc<str>,
    /// What it is.
    pub is: Sort,
    /// What was expected.
    pub expected: &'static str,
}

impl MachineRecord {
    /// Where the machine stands: the first step that is not reached. None for one that has them all, and for an idle one.
    pub fn stopped_at(&self) -> Option<&Step> {
        if self.idle {
            return None;
        }
        self.steps.iter().find(|step| step.state != StepState::Reached)
    }

    /// Its namespace and name: `clusters/worker-x7k2p`.
    pub fn full_name(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{namespace}/{}", self.name),
            None => self.name.to_string(),
        }
    }

    /// Of these lines those that tell of a failure: of a step that failed, and of the machine.
    pub fn failure_lines(&self) -> Vec<String> {
        self.lines(|step| step.state == StepState::Failed)
    }

    /// Who owns it and where the owner says that it stands: `Karpenter: Registered is Unknown since …: NodeNotFound: …`.
    pub fn standing(&self) -> String {
        let owner = &self.kind.owner;
        let standing = match self.stopped_at() {
            Some(step) => format!("{owner}: {step}"),
            None => owner.to_string(),
        };
        words(&standing, EVIDENCE_LINE_BYTES_MAX).to_string()
    }

    /// A line of text for each step, and one for the failure, each of [`EVIDENCE_LINE_BYTES_MAX`] bytes at most:
    /// `NodeClaim default-x7k2p: condition Launched is Unknown since 2026-08-19T10:02:11Z: LaunchFailed: creating instance, …`.
    pub fn evidence_lines(&self) -> Vec<String> {
        self.lines(|_| true)
    }

    /// A line for each of these steps, and one for the failure.
    fn lines(&self, is_told: impl Fn(&Step) -> bool) -> Vec<String> {
        let head = format!("{} {}", self.kind.name, self.full_name());
        let steps = self.steps.iter().filter(|step| is_told(step)).map(|step| format!("{head}: {step}"));
        let failure = self.failure.iter().map(|failure| format!("{head}: failed{failure}"));
        steps.chain(failure).map(|line| words(&line, EVIDENCE_LINE_BYTES_MAX).to_string()).collect()
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = if self.is_condition { "condition" } else { "field" };
        write!(f, "{noun} {} is ", self.name)?;
        f.write_str(self.value.as_deref().unwrap_or("not set"))?;
        if let Some(since) = &self.since {
            write!(f, " since {since}")?;
        }
        because(f, self.reason.as_deref(), self.message.as_deref())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        because(f, self.reason.as_deref(), self.message.as_deref())
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}, where {} belongs", self.field, self.is.says(), self.expected)
    }
}

fn because(f: &mut fmt::Formatter<'_>, reason: Option<&str>, message: Option<&str>) -> fmt::Result {
    for words in [reason, message].into_iter().flatten() {
        write!(f, ": {words}")?;
    }
    Ok(())
}
