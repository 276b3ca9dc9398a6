//! What can be done in a play: to the world, to the process, or by a person.

use std::fmt;

use reveille_core::model::id::{InstanceId, PoolName};

use crate::drive::Mishap;
use crate::world::World;
use crate::world::fault::Fault;

use super::phrase::Slots;
use super::words::Machines;

/// What is done.
pub(crate) enum Deed {
    /// This fault strikes each of them.
    Each(Machines, Box<dyn Fn(InstanceId) -> Fault>),
    /// This one fault strikes them all.
    All(Machines, Box<dyn Fn(Vec<InstanceId>) -> Fault>),
    /// This fault strikes, so many times.
    World(Fault, u32),
    /// The machines of these names are ordered.
    Launch(Vec<String>, Fault),
    /// A person restarts their kubelets.
    Restart(Machines),
    /// This happens to the process.
    Process(Mishap),
    /// A person says "hands off".
    Pause(Scope, String, String),
    /// A person takes every "hands off" back.
    Resume,
    /// This is done to each of them, in the simulated world only.
    Hand(Machines, Box<dyn Fn(&mut World, &InstanceId)>),
    /// The startup add-on of a pool stops, or runs again.
    AddOn(PoolName, bool),
    /// A person writes this annotation on their nodes, or takes it off.
    Annotate(Machines, Wish),
    /// A person confirms that the open incidents of these machines are over.
    Confirm(Machines, String),
}

/// What a person writes on a node.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// Who.
    pub(crate) by: String,
    /// The annotation.
    pub(crate) key: String,
    /// What it says; `None` takes it off.
    pub(crate) value: Option<String>,
}

/// What a pause covers.
#[derive(Clone, Debug)]
pub(crate) enum Scope {
    Roster,
    Pool(String),
    Machine(String),
}

impl fmt::Debug for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Each(..) => "Each",
            Self::All(..) => "All",
            Self::World(..) => "World",
            Self::Launch(..) => "Launch",
            Self::Restart(_) => "Restart",
            Self::Process(_) => "Process",
            Self::Pause(..) => "Pause",
            Self::Resume => "Resume",
            Self::Hand(..) => "Hand",
            Self::AddOn(..) => "AddOn",
            Self::Annotate(..) => "Annotate",
            Self::Confirm(..) => "Confirm",
        })
    }
}

/// What a phrase of `when` is read into.
pub(crate) type Made = Result<Deed, String>;

/// This fault, for each of the machines that the phrase names.
pub(crate) fn each(slots: &Slots<'_>, fault: impl Fn(InstanceId) -> Fault + 'static) -> Made {
    Ok(Deed::Each(slots.machines()?, Box::new(fault)))
}

/// This, done to each of them by hand.
pub(crate) fn hand(slots: &Slots<'_>, act: impl Fn(&mut World, &InstanceId) + 'static) -> Made {
    Ok(Deed::Hand(slots.machines()?, Box::new(act)))
}
