//! Options of the command line that only one kind of cloud has, as data.
//!
//! An adapter lists its options; the program makes arguments of its command line from them and hands back what was [`Given`]. So
//! an adapter needs no parser of command lines, and the program no field for a cloud's option.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// One option, without its dashes.
#[derive(Debug)]
pub struct CloudOption {
    /// `clouds-file`.
    pub name: &'static str,
    /// What it takes.
    pub takes: Takes,
    /// Its help, without a full stop.
    pub help: &'static str,
    /// The command is refused without it.
    pub required: bool,
}

/// What an option takes.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// Nothing.
    Flag,
    /// A text, by this name in the help, for which the check gives no complaint.
    Text(&'static str, fn(&str) -> Result<String, String>),
    /// A path, by this name in the help.
    Path(&'static str),
}

impl CloudOption {
    /// An option that can be left out.
    pub const fn new(name: &'static str, takes: Takes, help: &'static str) -> Self {
        Self { name, takes, help, required: false }
    }

    /// An option that must be given.
    pub const fn required(self) -> Self {
        Self { required: true, ..self }
    }
}

/// Options that were given, with their values; a flag with an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given(BTreeMap<&'static str, OsString>);

impl Given {
    /// Adds one.
    pub fn add(&mut self, name: &'static str, value: impl Into<OsString>) {
        self.0.insert(name, value.into());
    }

    /// True when this flag, or an option of this name, was given.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The text of this option.
    pub fn text(&self, name: &str) -> Option<String> {
        self.0.get(name).and_then(|value| value.to_str()).map(str::to_owned)
    }

    /// The path of this option.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.0.get(name).map(PathBuf::from)
    }
}

/// Any text.
///
/// # Errors
/// None.
pub fn any(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

/// The id of a cluster as it may stand in a tag key, without characters that would change a policy's text.
///
/// # Errors
/// The complaint.
pub fn id(text: &str) -> Result<String, String> {
    const CHARACTERS_MAX: usize = 100;
    let taken = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if (1..=CHARACTERS_MAX).contains(&text.len()) && text.chars().all(taken) {
        Ok(text.to_owned())
    } else {
        Err("letters, digits, \"-\", \"_\" and \".\" only".to_owned())
    }
}

/// A name as Kubernetes accepts it: small letters, digits, dashes and dots. Regions of clouds are spelled so, too.
///
/// # Errors
/// The complaint.
pub fn name(text: &str) -> Result<String, String> {
    const CHARACTERS_MAX: usize = 253;
    let taken = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    let ends = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if text.len() <= CHARACTERS_MAX
        && text.chars().all(taken)
        && text.starts_with(ends)
        && text.ends_with(ends)
    {
        Ok(text.to_owned())
    } else {
        Err("a name of Kubernetes has small letters, digits, dashes and dots".to_owned())
    }
}
