//! What the engine knows of a machine that no view holds: only the ledger knows it since a restart, or it left the views.
//!
//! The engine keeps these entries (`engine::out_of_sight`) and gives them back to the machines when it sees them again.

use crate::model::id::{NodeName, PoolName};
use crate::model::time::Time;

use super::machine_signs::Signs;
use super::seen::{Left, Seen};

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
        // Also of one whose pool's mark a person took off: what they write on its Node counts.
        let (pool, signs) = (seen.of_pool.clone(), seen.signs.clone());
        let born = seen.joins_since();
        Self { node, pool, left, born, signs, ..Self::default() }
    }
}
