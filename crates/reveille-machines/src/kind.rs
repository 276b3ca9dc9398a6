//! What the map of a kind says: the versions that are understood, and where everything is in each of them.
//!
//! ```text
//!  Kind ─▶ Version, the preferred one first ─▶ Layout: paths, steps, signs, deadlines
//! ```
//!
//! A map says how an object of one kind is read and nothing of what to do about it. It lists the versions that it understands,
//! the preferred one first; [`crate::served`] picks the one to ask for. Where two versions differ, the map has the part that
//! differs once more, so that a [`Layout`] is complete by itself. How a map is written down is not known here.

use reveille_core::model::stage::Stage;

use crate::path::Path;
use crate::sign::{Sign, Values};

/// A kind of machine record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The object kind: `NodeClaim`. Several groups have a `Machine`.
    pub name: Box<str>,
    /// The API group: `karpenter.sh`.
    pub group: Box<str>,
    /// The resource in paths of the API server: `nodeclaims`.
    pub plural: Box<str>,
    /// Whether its objects are in namespaces.
    pub is_namespaced: bool,
    /// What one object stands for, as a sentence.
    pub about: Box<str>,
    /// The system that creates and deletes it, by its plain name: `Karpenter`.
    pub owner: Box<str>,
    /// The object kind of its pools: `NodePool`.
    pub pool_kind: Option<Box<str>>,
    /// The versions that are understood, the preferred one first. Never empty.
    pub versions: Vec<Version>,
}

/// A version of a kind, and where everything is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// `v1beta2`.
    pub name: Box<str>,
    /// Where everything is.
    pub layout: Layout,
}

/// Where everything is in an object. Of several paths to one thing, the first that has a value counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The provider ID of the machine.
    pub provider_id: Vec<Path>,
    /// The name of its Node.
    pub node: Vec<Path>,
    /// The name of its pool.
    pub pool: Vec<Path>,
    /// Its zone.
    pub zone: Vec<Path>,
    /// Of an object that stands for several machines: the list of their provider IDs.
    pub provider_ids: Option<Path>,
    /// Of an object that stands for several machines: the list of references to their Nodes.
    pub nodes: Option<Path>,
    /// Another object that uses this one.
    pub consumer: Option<ConsumerPaths>,
    /// The lists of conditions. Of a condition that is in several, the first counts.
    pub conditions: Vec<Path>,
    /// The way of a machine, in order. Never empty.
    pub steps: Vec<StepRule>,
    /// How a failure is reported.
    pub failure: FailureRule,
    /// The machine is on its way out when any of these counts.
    pub leaving: Vec<Sign>,
    /// No Node is expected of it when all of these count; never where there are none.
    pub idle: Vec<Sign>,
    /// What asks others to keep their hands off.
    pub holds: Vec<HoldRule>,
    /// How long the owner waits before it deletes or fails the machine. The first that applies counts.
    pub deadlines: Vec<Deadline>,
}

/// Where the reference to the user of an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerPaths {
    /// Its object kind.
    pub kind: Path,
    /// Its name.
    pub name: Path,
}

/// One step on the way of a machine, and what shows that it is behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepRule {
    /// The condition's type, or the path of the field; unique among the steps.
    pub name: Box<str>,
    /// What is looked at.
    pub source: StepSource,
    /// The values that prove the step.
    pub reached: Values,
    /// The stage that is proved.
    pub stage: Stage,
    /// A step that is not reached has failed when any of these counts.
    pub failed: Vec<Sign>,
    /// Where the words for a field are; a condition has its own.
    pub words: FieldWords,
}

/// What a step looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepSource {
    /// The status of a condition, by its type, or by another name under which other releases write it.
    Condition {
        /// The type, and its other names.
        types: Vec<Box<str>>,
    },
    /// A field.
    Field(Path),
}

/// Where reason, message and time of a field are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldWords {
    /// Taken from the condition of this type, where a path below finds nothing.
    pub condition: Option<Box<str>>,
    /// The reason.
    pub reason: Option<Path>,
    /// The message.
    pub message: Option<Path>,
    /// Since when.
    pub since: Option<Path>,
}

/// How a kind reports that a machine has failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailureRule {
    /// The fields below count only when any of these does; always where there are none.
    pub when: Vec<Sign>,
    /// The reason.
    pub reason: Vec<Path>,
    /// The message.
    pub message: Vec<Path>,
    /// Conditions that report a failure by themselves.
    pub conditions: Vec<Sign>,
}

/// A signal that asks others to keep their hands off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldRule {
    /// The signal.
    pub sign: Sign,
    /// What it says, as a clause for people.
    pub words: Box<str>,
}

/// How long the owner waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// It applies until the step of this name is reached.
    pub until: Box<str>,
    /// It applies only when any of these counts; always where there are none.
    pub when: Vec<Sign>,
    /// The field that overrides the time below, as Go writes durations (`20m0s`).
    pub field: Option<Path>,
    /// The owner's built-in time, in seconds.
    pub fixed_s: u32,
}

impl Kind {
    /// The layout of a version, by its name.
    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| *version.name == *name)
    }
}
