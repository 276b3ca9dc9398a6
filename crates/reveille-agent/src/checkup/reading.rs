//! A fact that was read, or why it could not be: "I could not read it" is never "it is not there".

use std::sync::Arc;

/// What was read. "It is not there" is a `T` of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading<T> {
    /// It was read.
    Read(T),
    /// It was not, and why.
    CannotTell(Arc<str>),
}

impl<T> Reading<T> {
    /// It could not be read.
    pub fn cannot_tell(why: impl Into<Arc<str>>) -> Self {
        Self::CannotTell(why.into())
    }

    /// What was read, if it was.
    pub const fn read(&self) -> Option<&T> {
        match self {
            Self::Read(value) => Some(value),
            Self::CannotTell(_) => None,
        }
    }

    /// What was read, made into something else.
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
