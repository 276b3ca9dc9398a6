//! Why a scenario file is refused: which line, what is wrong with it, and what to write instead.

use std::fmt;

/// A scenario that cannot be played as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The line, counted from one. The last one, when something is missing.
    pub line: usize,
    /// The line as it stands.
    pub text: String,
    /// What is wrong, and what to write instead.
    pub why: String,
}

impl Refusal {
    pub(crate) fn new(line: usize, text: impl Into<String>, why: impl Into<String>) -> Self {
        Self { line, text: text.into(), why: why.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)?;
        if !self.text.trim().is_empty() {
            write!(f, "\n  {} | {}", self.line, self.text.trim())?;
        }
        Ok(())
    }
}

impl std::error::Error for Refusal {}
