//! What people and programs have put on a machine, on its Node and in its cloud: pauses, locks, marks of removal.
//!
//! `model::signs` knows the keys; here is what stood on one machine when it was last seen.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::node::Node;
use crate::model::signs;

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
    /// The group of its cloud that keeps it, or kept it until a person took it out.
    pub group: Option<Arc<str>>,
    /// Names by which people paused it: it may be called otherwise by now.
    pub named: BTreeSet<Arc<str>>,
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
        let keeps = |is: fn(&Self) -> bool| is(self) || !is(before);
        keeps(|it| it.paused) && keeps(|it| it.removal.is_some()) && self != before
    }

    /// These, and what held the machine before. Its group and its names are facts of their own, and as they are now.
    pub fn with_holds_of(mut self, before: &Self) -> Self {
        self.removal = self.removal.or_else(|| before.removal.clone());
        self.paused |= before.paused;
        self.locked |= before.locked;
        self.apart |= before.apart;
        self
    }

    /// A program works on its Node, or takes it away.
    fn is_marked(&self) -> bool {
        self.removal.as_deref().is_some_and(signs::is_mark)
    }
}
