//! What happens in a scenario, for code that makes it happen outside the simulated world, as the rig does.
//!
//! The same statements that the player plays, as data: a fault carries the *name* of its machine in place of an id, because ids
//! are each stage's own. A statement must name its machines: only a world can settle "every machine", when its time comes, and
//! there is none here.

use reveille_core::event::PauseScope;
use reveille_core::model::id::{InstanceId, PoolName};
use reveille_core::model::time::Span;

use crate::drive::Mishap;
use crate::world::fault::Fault;
use crate::world::layout::Layout;
use crate::world::vm::Trouble;

use super::Scenario;
use super::deed::{Deed, Scope};
use super::refusal::Refusal;
use super::when::Planned;
use super::words::{Machines, shown};

/// One statement of `when`.
#[derive(Clone, Debug)]
pub struct Happening {
    /// Its line in the file.
    pub line: usize,
    /// When, after the beginning.
    pub at: Span,
    /// As it is written, without its time.
    pub text: String,
    /// What happens.
    pub what: Happens,
}

/// What happens.
#[derive(Clone, Debug)]
pub enum Happens {
    /// These faults strike, in this order.
    Strikes(Vec<Fault>),
    /// The owner of a pool starts these machines.
    Starts {
        /// Their names.
        names: Vec<String>,
        /// In which pool.
        pool: PoolName,
        /// What is wrong inside them, if anything.
        trouble: Option<Trouble>,
    },
    /// A person restarts the kubelets of these machines.
    KubeletsRestart(Vec<String>),
    /// This happens to Reveille's process.
    Process(Mishap),
    /// A person says "hands off".
    Pauses {
        /// Of what.
        scope: PauseScope,
        /// Who.
        by: String,
        /// Why.
        reason: String,
    },
    /// A person takes every "hands off" back.
    Resumes,
    /// A person writes an annotation on the nodes of these machines.
    Annotates {
        /// The machines.
        names: Vec<String>,
        /// The annotation.
        key: String,
        /// What it says; `None` takes it off.
        value: Option<String>,
    },
    /// A person confirms that the open incidents of these machines are over.
    Confirms(Vec<String>),
}

impl Scenario {
    /// What happens, in the order of the file.
    ///
    /// # Errors
    ///
    /// A statement that does not name its machines.
    pub fn happenings(&self) -> Result<Vec<Happening>, Refusal> {
        self.events.iter().map(happening).collect()
    }

    /// The fleet that is given.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Whether Reveille may act, or only looks.
    pub const fn acts(&self) -> bool {
        self.acting
    }

    /// When it ends.
    pub const fn ends(&self) -> Span {
        self.ends
    }
}

fn happening(event: &Planned) -> Result<Happening, Refusal> {
    let named = |who: &Machines| match who {
        Machines::Named(names) => Ok(names.clone()),
        _ => Err(Refusal::new(
            event.line,
            format!("at {}  {}", shown(event.at), event.text),
            "on another stage machines are called by their names; write them out",
        )),
    };
    let what = match &event.deed {
        Deed::Each(who, fault) => {
            let ids = named(who)?.into_iter().map(|name| InstanceId::from(name.as_str()));
            Happens::Strikes(ids.map(fault).collect())
        }
        Deed::All(who, fault) => {
            let ids = named(who)?.into_iter().map(|name| InstanceId::from(name.as_str()));
            Happens::Strikes(vec![fault(ids.collect())])
        }
        Deed::World(fault, times) => Happens::Strikes((0..*times).map(|_| fault.clone()).collect()),
        Deed::Launch(names, Fault::Launch { pool, trouble }) => {
            Happens::Starts { names: names.clone(), pool: pool.clone(), trouble: *trouble }
        }
        Deed::Launch(_, other) => Happens::Strikes(vec![other.clone()]),
        Deed::Restart(who) => Happens::KubeletsRestart(named(who)?),
        Deed::Process(mishap) => Happens::Process(mishap.clone()),
        Deed::Pause(scope, by, reason) => Happens::Pauses {
            scope: match scope {
                Scope::Roster => PauseScope::Roster,
                Scope::Pool(name) => PauseScope::Pool(name.as_str().into()),
                Scope::Machine(name) => PauseScope::Machine(name.as_str().into()),
            },
            by: by.clone(),
            reason: reason.clone(),
        },
        Deed::Resume => Happens::Resumes,
        Deed::Annotate(who, wish) => {
            Happens::Annotates { names: named(who)?, key: wish.key.clone(), value: wish.value.clone() }
        }
        Deed::Confirm(who, _) => Happens::Confirms(named(who)?),
        Deed::Hand(..) | Deed::AddOn(..) => {
            return Err(Refusal::new(
                event.line,
                format!("at {}  {}", shown(event.at), event.text),
                "this happens in the simulated world only; leave it to a scenario of the library",
            ));
        }
    };
    Ok(Happening { line: event.line, at: event.at, text: event.text.clone(), what })
}
