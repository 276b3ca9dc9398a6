//! What the engine knows of a machine that no view holds: only the ledger knows it since a restart, or it left the views.
//!
//! The engine keeps these entries (`engine::out_of_sight`) and gives them back to the machines when it sees them again.

use std::sync::Arc;

use crate::model::id::{NodeName, PoolName};
use crate::model::node::Node;
use crate::model::signs;
use crate::model::time::Time;

use super::cloud::{Left, Seen};

/// What people and programs have put on a machine: on its Node, and in its cloud.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signs {
    /// The strongest sign by which its Node would be gone on purpose.
    pub removal: Option<Arc<str>>,
    /// A person paused it on its Node, also beside a stronger sign.
    pub paused: bool,
    /// A person locked it in its cloud.
    pub locked: bool,
    /// It was set apart from its pool: the pool's mark is off, or its Auto Scaling group lets it stand by.
    pub apart: bool,
}

impl Signs {
    /// What stands on this Node; a lock stands in the cloud, and is as before.
    pub fn on(self, node: &Node) -> Self {
        let removal = signs::removal(&node.intent, node.cordoned).map(|removal| removal.sign());
        Self { removal, paused: node.intent.paused, ..self }
    }

    /// Others had the machine to themselves, by a pause or a lock, apart from its pool, or by the sign of a program that drains
    /// its Node for them, and are done with it.
    pub fn ends_with(&self, next: &Self) -> bool {
        let over = |is: fn(&Self) -> bool| is(self) && !is(next);
        over(|it| it.paused) || over(|it| it.locked) || over(|it| it.apart) || over(Self::is_marked)
    }

    /// Nothing that holds the machine is taken back, and something more does.
    pub fn holds_more_than(&self, before: &Self) -> bool {
        let keeps = (self.paused || !before.paused) && (self.removal.is_some() || before.removal.is_none());
        keeps && self != before
    }

    /// A program works on its Node, or takes it away.
    fn is_marked(&self) -> bool {
        self.removal.as_deref().is_some_and(signs::is_mark)
    }
}

/// A machine that is not in sight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remembered {
    /// The Node that it joined as.
    pub node: Option<NodeName>,
    /// The pool that its marks proved.
    pub pool: Option<PoolName>,
    /// It left on purpose, and by which sign.
    pub left: Option<Box<Left>>,
    /// When it was seen being built, where it was watched since and its Node has not been Ready: once it is, the machine is a
    /// newcomer. One that was Ready before is none when it comes back.
    pub born: Option<Time>,
    /// What stood on it and on its Node when they were last seen.
    pub signs: Signs,
    /// It is there, and carries no marks of ours: an operator took them off.
    pub disowned: bool,
    /// Its Node was lost with those of others, and has not come back.
    pub lost_together: bool,
}

impl Remembered {
    /// What is kept of a machine that goes out of sight.
    pub fn of(seen: &Seen) -> Self {
        let (node, left) = (seen.joined.clone(), seen.left.clone());
        let (pool, signs) = (seen.pool().cloned(), seen.signs.clone());
        let born = seen.joins_since();
        Self { node, pool, left, born, signs, ..Self::default() }
    }
}

impl Seen {
    /// It was created while the controller watched, and the controller has watched since: that it has no Node means that it
    /// never had one.
    pub const fn is_known_since_birth(&self) -> bool {
        self.born_in_sight && !self.may_have_served
    }

    /// Since when it has been watched, where it has not been Ready in all its life.
    pub fn joins_since(&self) -> Option<Time> {
        (self.is_known_since_birth() && !self.was_ready).then_some(self.known_since)
    }
}
