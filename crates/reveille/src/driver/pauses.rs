//! Pauses for the engine: those that operators set on disk, and those of the ownership check.
//!
//! The folder is read again every two seconds, so that `reveille pause` works beside a running controller without a
//! connection to it. A file that cannot be read may cover anything, so it covers everything. The ownership check
//! ([`super::ownership_check`]) adds its own pauses.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use reveille_core::event::{Command, Pause, PauseScope};
use reveille_record as disk;

use super::ownership_check::{OURSELVES, OwnershipCheck};

/// Reads the pauses on disk: the readable ones, and an error for each of the others.
pub(crate) type ReadPauses = Box<dyn Fn() -> (BTreeSet<Pause>, Vec<String>) + Send>;

/// Reads the pauses of a state folder in the engine's types.
pub(crate) fn reader(state_dir: &Path) -> ReadPauses {
    let pauses = disk::Pauses::of(state_dir);
    Box::new(move || match pauses.read() {
        Ok(read) => {
            let set = read.pauses.into_values().map(|pause| Pause {
                scope: match pause.scope {
                    disk::PauseScope::Roster => PauseScope::Roster,
                    disk::PauseScope::Pool(name) => PauseScope::Pool(name.into()),
                    disk::PauseScope::Machine(name) => PauseScope::Machine(name.into()),
                },
                by: pause.by.into(),
                reason: pause.reason.into(),
            });
            (set.collect(), read.unreadable.iter().map(ToString::to_string).collect())
        }
        Err(error) => (BTreeSet::new(), vec![error.to_string()]),
    })
}

/// Collects pauses and reports when they change.
pub(crate) struct PauseContext {
    read: ReadPauses,
    /// Our own check of ownership.
    pub(crate) ownership_check: OwnershipCheck,
    last: Option<BTreeSet<Pause>>,
}

impl PauseContext {
    /// Pauses from a folder and from the ownership check.
    pub(crate) const fn new(read: ReadPauses, ownership_check: OwnershipCheck) -> Self {
        Self { read, ownership_check, last: None }
    }

    /// Reads them again; returns a command when they differ from the last time.
    pub(crate) fn read(&mut self) -> Option<Command> {
        let (mut pauses, unreadable) = (self.read)();
        for why in unreadable {
            if self.last.is_none() {
                tracing::warn!("{why}");
            }
            pauses.insert(everything(&why));
        }
        pauses.extend(self.ownership_check.pauses().cloned());
        if self.last.as_ref() == Some(&pauses) {
            return None;
        }
        self.last = Some(pauses.clone());
        Some(Command::Pauses(pauses))
    }
}

/// A pause of everything that the controller itself sets.
pub(crate) fn everything(why: &str) -> Pause {
    Pause { scope: PauseScope::Roster, by: Arc::from(OURSELVES), reason: Arc::from(why) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu() -> Pause {
        Pause { scope: PauseScope::Pool("gpu".into()), by: "ann".into(), reason: "drivers".into() }
    }

    #[test]
    fn changes_are_told_once_and_a_broken_file_covers_everything() {
        let (say, heard) = std::sync::mpsc::channel();
        let read = Box::new(move || heard.try_recv().unwrap_or_default());
        let mut context = PauseContext::new(read, OwnershipCheck::default());
        assert_eq!(context.read(), Some(Command::Pauses(BTreeSet::new())), "the first reading always tells");
        assert_eq!(context.read(), None);
        say.send((BTreeSet::from([gpu()]), vec![])).unwrap();
        assert_eq!(context.read(), Some(Command::Pauses(BTreeSet::from([gpu()]))));
        say.send((BTreeSet::from([gpu()]), vec!["x.json is not a pause".to_owned()])).unwrap();
        let Some(Command::Pauses(all)) = context.read() else { panic!("a change is told") };
        assert!(all.iter().any(|pause| pause.scope == PauseScope::Roster), "{all:?}");
    }
}
