//! How the process ends: six codes, each an answer.
//!
//! Scripts and monitors read these, so they are a promise. They are ordered by how bad the news is: several answers
//! together end with the worst.

use std::process::ExitCode;

/// An answer as an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Everyone answers; nothing to do.
    AllAnswer,
    /// Somebody is absent, or something is amiss.
    SomebodyAbsent,
    /// It could not be told.
    CannotTell,
    /// The command line or the roster is wrong (EX_USAGE).
    Usage,
    /// A recording cannot be read (EX_DATAERR).
    Data,
    /// A fault of ours (EX_SOFTWARE).
    Internal,
}

impl Exit {
    /// The number.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::AllAnswer => 0,
            Self::SomebodyAbsent => 1,
            Self::CannotTell => 2,
            Self::Usage => 64,
            Self::Data => 65,
            Self::Internal => 70,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
