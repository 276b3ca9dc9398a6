//! What the engine knows of a machine that no view holds: only the ledger knows it since a restart, or it left the views.
//!
//! The engine keeps these entries (`engine::memory`) and gives them back to the machines when it sees them again.

use std::sync::Arc;

use crate::model::id::{NodeName, PoolName};

use super::cloud::{Left, Seen};

/// A machine that is not in sight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remembered {
    /// The Node that it joined as.
    pub node: Option<NodeName>,
    /// The pool that its marks proved.
    pub pool: Option<PoolName>,
    /// It left on purpose, and by which sign.
    pub left: Option<Box<Left>>,
    /// It was seen being built.
    pub born: bool,
    /// The sign on its Node by which that would be gone on purpose, when it was last seen.
    pub sign: Option<Arc<str>>,
    /// It is there, and carries no marks of ours: an operator took them off.
    pub disowned: bool,
    /// Its Node was lost with those of others, and has not come back.
    pub lost_together: bool,
}

impl Remembered {
    /// What is kept of a machine that goes out of sight.
    pub fn of(seen: &Seen) -> Self {
        let (node, left) = (seen.joined.clone(), seen.left.clone());
        let (pool, sign) = (seen.pool().cloned(), seen.sign.clone());
        Self { node, pool, left, born: seen.born_in_sight, sign, ..Self::default() }
    }
}
