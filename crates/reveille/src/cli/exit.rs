//! The exit codes of the process: six codes, each an answer.
//!
//! Scripts and monitors read these codes, so they never change their meaning. They are ordered by severity: a command
//! with several answers returns the worst.

use std::process::ExitCode;

/// An answer as an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// All machines are Ready, and there is nothing to do.
    NoProblem,
    /// A machine is missing or not Ready, or there is another problem.
    Problems,
    /// The state is unknown.
    CannotTell,
    /// The command line or the roster is wrong (EX_USAGE).
    Usage,
    /// A recording cannot be read (EX_DATAERR).
    Data,
    /// A bug in this program (EX_SOFTWARE).
    Internal,
}

impl Exit {
    /// The number.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::NoProblem => 0,
            Self::Problems => 1,
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
