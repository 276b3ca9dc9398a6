//! One bundle, packed or unpacked, while its members come: what its layout tells of each, and what is to be said of the whole.
//!
//! ```text
//!  member's path ─▶ Layout, as soon as one tells ─┬▶ machine and component, to stand behind its name
//!                                                 └▶ no log: counted and left out
//! ```
//!
//! Opens nothing and reads nothing: the code that unpacks an archive or walks a folder asks here.

use std::collections::BTreeSet;

use super::layout::{self, Layout, Member};
use super::shown;

/// Machines that are named of one bundle.
const MACHINES_NAMED_MAX: usize = 20;

/// A support bundle that an operator unpacked into a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpacked {
    /// Which bundle it is, whose, and what is left out of it.
    pub note: String,
    /// The platform, where the bundle tells.
    pub platform: Option<&'static str>,
    /// For each path in its order what is to stand behind its name; `None` for one that is no log.
    pub members: Vec<Option<String>>,
}

impl Unpacked {
    /// What a folder of that name with files at these paths is, the paths being those below it; `None` where it is no bundle
    /// that is known.
    pub fn of(folder: &str, paths: &[&str]) -> Option<Self> {
        let mut opened = Folder::of(folder);
        opened.layout = paths.iter().find_map(|path| Layout::of(folder, path));
        opened.layout?;
        let members = paths.iter().map(|path| opened.told(path)).collect();
        let platform = paths.iter().find_map(|path| opened.platform(path));
        Some(Self { note: opened.note()?, platform, members })
    }
}

/// An archive whose members come one by one, or a folder.
pub(super) struct Folder<'a> {
    pub(super) archive: &'a str,
    /// How many came so far.
    pub(super) members: u64,
    /// The bundle that it is, as soon as its name or a member tells.
    layout: Option<&'static Layout>,
    machines: BTreeSet<String>,
    no_logs: u64,
}

impl<'a> Folder<'a> {
    pub(super) fn of(archive: &'a str) -> Self {
        Self { archive, members: 0, layout: None, machines: BTreeSet::new(), no_logs: 0 }
    }

    /// The platform that the member tells, where its bundle does.
    pub(super) fn platform(&self, path: &str) -> Option<&'static str> {
        self.layout.and_then(|layout| layout::platform(layout, path))
    }

    /// What the layout tells of a member, to stand behind its name; `None` for one that is no log.
    pub(super) fn told(&mut self, path: &str) -> Option<String> {
        self.layout = self.layout.or_else(|| Layout::of(self.archive, path));
        let Some(layout) = self.layout else { return Some(String::new()) };
        let Member { machine, component, no_log } = layout.member(self.archive, path);
        if no_log {
            self.no_logs += 1;
            return None;
        }
        let machine = machine.map(|machine| shown(&machine));
        let words: Vec<&str> = machine.as_deref().into_iter().chain(component).collect();
        let told = if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) };
        if self.machines.len() < MACHINES_NAMED_MAX {
            self.machines.extend(machine);
        }
        Some(told)
    }

    /// Which bundle it is, whose, and what was left out of it.
    pub(super) fn note(&self) -> Option<String> {
        let layout = self.layout?;
        let machines: Vec<&str> = self.machines.iter().map(String::as_str).collect();
        let of = if machines.is_empty() { String::new() } else { format!(" of {}", machines.join(", ")) };
        let left_out = match self.no_logs {
            0 => String::new(),
            number => format!("; {number} members that are lists or settings and no logs were left out"),
        };
        Some(format!("{}{of}{left_out}", layout.name))
    }
}
