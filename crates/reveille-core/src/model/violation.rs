//! A broken invariant: what the checks of state and calls return. Which invariants there are, `engine::invariants` and the file
//! of each repair say.

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Its number in docs/SAFETY.md.
    pub invariant: u8,
    /// What broke the invariant.
    pub what: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "invariant {}: {}", self.invariant, self.what)
    }
}

pub(crate) fn ensure(holds: bool, invariant: u8, what: impl FnOnce() -> String) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation { invariant, what: what() }) }
}
