//! A fleet while `given` describes it, and how a phrase changes it.

use crate::world::layout::{Layout, PoolPlan};

use super::phrase::{Known, Slots};
use super::roster::Changed;

/// A fleet as it is being described.
pub(crate) struct Stage {
    pub(crate) layout: Layout,
    pub(crate) acting: bool,
    pub(crate) known: Known,
    /// Lines of the roster's file that say other than the layout.
    pub(crate) changes: Vec<Changed>,
}

pub(crate) type Change = Box<dyn FnOnce(&mut Stage) -> Result<(), String>>;

/// Changes every pool, or the one that is named. There must be one.
pub(crate) fn pools(
    slots: &Slots<'_>,
    named: bool,
    change: impl Fn(&mut PoolPlan) + 'static,
) -> Result<Change, String> {
    let only = if named { Some(slots.pool()?) } else { None };
    Ok(Box::new(move |stage| {
        if stage.layout.pools.is_empty() {
            return Err(
                "this changes pools, and there is none yet; write `pool NAME of N machines` before it"
                    .to_owned(),
            );
        }
        let chosen =
            stage.layout.pools.iter_mut().filter(|pool| only.as_ref().is_none_or(|name| pool.name == *name));
        chosen.for_each(&change);
        Ok(())
    }))
}
