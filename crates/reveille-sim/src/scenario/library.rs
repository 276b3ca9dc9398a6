//! The scenarios that come with Reveille, as they stand in `scenarios/`.

use super::grammar::parse;
use super::{Refusal, Scenario};

/// A file of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filed {
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/library.rs"));

/// Every file, in order of name.
pub const fn library() -> &'static [Filed] {
    FILES
}

impl Filed {
    /// The scenario in it.
    ///
    /// # Errors
    ///
    /// Why it is none; a test keeps that from happening.
    pub fn scenario(&self) -> Result<Scenario, Refusal> {
        parse(self.text)
    }

    /// Its number, without reading the rest.
    pub fn number(&self) -> &'static str {
        let header = self.text.lines().find_map(|line| line.strip_prefix("scenario "));
        header.and_then(|header| header.split_whitespace().next()).unwrap_or("")
    }
}
