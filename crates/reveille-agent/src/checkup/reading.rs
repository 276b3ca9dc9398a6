//! A fact that the agent read, or the reason why it could not: "the agent could not read it" never means "it does not
//! exist".

use std::sync::Arc;

/// The value that was read. "It does not exist" is a value of `T`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading<T> {
    /// The agent read this value.
    Read(T),
    /// The agent could not read the value: the reason.
    CannotTell(Arc<str>),
}

impl<T> Reading<T> {
    /// The agent could not read the value.
    pub fn cannot_tell(why: impl Into<Arc<str>>) -> Self {
        Self::CannotTell(why.into())
    }

    /// The value, if the agent read it.
    pub const fn read(&self) -> Option<&T> {
        match self {
            Self::Read(value) => Some(value),
            Self::CannotTell(_) => None,
        }
    }

    /// Maps the value that was read.
    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Self::Read(value) => Reading::Read(of(value)),
            Self::CannotTell(why) => Reading::CannotTell(why),
        }
    }
}

impl<T, E: std::fmt::Display> From<Result<T, E>> for Reading<T> {
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(value) => Self::Read(value),
            Err(error) => Self::cannot_tell(error.to_string()),
        }
    }
}
