//! Why a text is not a valid target: its place, the error, and what to write instead.

use std::fmt::Display;

use reveille_core::diagnose::console::mask_secrets;
use thiserror::Error;

/// One refusal.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {wrong}")]
pub struct TargetError {
    /// The file and its field, or the argument.
    pub place: String,
    /// The error. Never quotes a secret.
    pub wrong: String,
    /// What to write instead, or to do.
    pub write: String,
}

impl TargetError {
    /// Makes a refusal. Text that it quotes is masked once more.
    pub(super) fn new(place: impl Display, wrong: impl Display, write: impl Display) -> Self {
        let wrong = mask_secrets(&wrong.to_string()).into_owned();
        Self { place: place.to_string(), wrong, write: write.to_string() }
    }

    /// The same refusal, within this file.
    #[must_use]
    pub(crate) fn within(self, file: impl Display) -> Self {
        Self { place: format!("{file}: {}", self.place), ..self }
    }
}
