//! One fault of a sheet, and how a sheet is written down.
//!
//! Each sheet is a table of its own module; `catalog` knows them all.

use super::dice::{Dice, Drawn};

/// One fault that can be switched on and off.
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What happens, in one line.
    pub says: &'static str,
    /// How often, beside the others.
    pub rate: u32,
    pub(super) draw: fn(&mut Dice) -> Drawn,
}

macro_rules! catalog {
    ($(#[$doc:meta])* $($name:literal $rate:literal $says:literal $draw:expr;)*) => {
        $(#[$doc])*
        pub static CATALOG: &[Entry] = &[$(Entry { name: $name, says: $says, rate: $rate, draw: $draw },)*];
    };
}

pub(super) use catalog;
