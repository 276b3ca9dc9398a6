//! What is known of failures: causes, the signs that prove them, and marks that take signs back.
//!
//! ```text
//!  catalogue/*.yaml ─▶ document (as written) ─▶ resolve (names become places) ─▶ Catalogue
//!                            └────────── Complaint: file, line, field, what to write instead ──────────┘
//! ```
//!
//! The built-in files are compiled in; a site's own directory is laid over them: a cause of the same name takes more signs,
//! a new name is a new cause. Examples travel with the signs and are tried by [`Catalogue::examples`], for ours in a test and
//! for a site's when they are loaded. No failure is known to this code by name.

mod document;
pub mod phrase;
mod resolve;
mod step;

use std::fmt;

use reveille_core::model::stage::Stage;

use crate::finding::Confidence;
use crate::lines::Level;
use crate::tables::Fact;
use phrase::Phrase;
pub(crate) use resolve::resolve;
pub use step::{Step, Tells};

/// Something in a catalogue's file that cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Complaint {
    /// The file's name.
    pub file: String,
    /// From 1; 0 stands for the file as a whole.
    pub line: u64,
    /// Which field, or which sign.
    pub field: String,
    /// What is wrong and what to write instead.
    pub says: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, field, says } = self;
        write!(f, "{file}:{line}: {field}: {says}")
    }
}

/// A cause, as the catalogue describes it.
#[derive(Clone, Debug)]
pub struct Cause {
    /// The taxonomy's label.
    pub label: String,
    /// Stable code.
    pub code: String,
    /// Where it usually stops a machine.
    pub stage: Stage,
    /// What is wrong, as a clause.
    pub title: String,
    /// How it comes about.
    pub because: String,
    /// What to do, in words.
    pub remedy: String,
    /// What to do, to copy.
    pub commands: Vec<String>,
    /// What to collect when it is not sure.
    pub collect: Vec<String>,
    /// Places of causes that follow from this one.
    pub explains: Vec<usize>,
    /// It is the first boot that came to nothing.
    pub first_boot: bool,
    /// Its signs tell where a machine stands and not why: what they say is an answer of "could not be told".
    pub no_cause: bool,
    /// Why a reboot is of no use against it.
    pub no_reboot: Option<String>,
    /// Why another machine in its place is of no use either.
    pub no_replace: Option<String>,
    /// Where the machine stands instead, when all of these signals were seen.
    pub stage_when: Vec<(Stage, Vec<usize>)>,
    /// The file that describes it.
    pub file: String,
}

/// A sign of a cause, or a mark.
#[derive(Clone, Debug)]
pub struct Signal {
    /// Its name, unique in the catalogue.
    pub id: String,
    /// Place of the cause that it is a sign of; `None` for a mark.
    pub cause: Option<usize>,
    /// What a line says, any of these.
    pub says: Vec<Phrase>,
    /// A fact of a table or listing that is the same as such a line.
    pub fact: Option<Fact>,
    /// What the same line may not say.
    pub unless: Vec<Phrase>,
    /// How much it proves.
    pub proof: Confidence,
    /// Counts only where nothing else was found: every join shows it for a while.
    pub weak: bool,
    /// Lines of a lower level do not count.
    pub level: Level,
    /// Seen fewer times it counts for nothing.
    pub at_least: u64,
    /// Seen fewer times it is merely possible.
    pub often: u64,
    /// Seen over a shorter time it counts for nothing; `0` asks for none.
    pub lasting_s: u32,
    /// Counts only so soon after one of these marks in the same source.
    pub soon_after: Vec<usize>,
    /// How soon.
    pub soon_s: u32,
    /// Counts only where all of these were seen, anywhere.
    pub with: Vec<usize>,
    /// Counts only where none of these was seen.
    pub without: Vec<usize>,
    /// Counts only on these platforms.
    pub on: Vec<String>,
    /// Does not count on these.
    pub not_on: Vec<String>,
    /// Marks which, seen later, show that it passed.
    pub taken_back_by: Vec<usize>,
    /// Where the machine stands, when not where the cause says.
    pub stage: Option<Stage>,
    /// A mark that tells of the machine as a whole, and counts for other sources as well.
    pub whole: bool,
    /// A mark of a line that sounds like trouble and is none.
    pub harmless: bool,
    /// A mark of a line that says of itself that it goes on: such a line carries no sign.
    pub excuses: bool,
    /// A mark that shows a new boot of a machine: what its source said before is of an earlier boot.
    pub new_boot: bool,
    /// A mark of a machine that is well as a whole. A listing's row tells the same of the node that it names: `w-1  Ready`.
    pub well: bool,
    /// Whose words they are.
    pub source: String,
    /// Texts that must carry it.
    pub yes: Vec<String>,
    /// Texts that look like it and must not.
    pub near: Vec<String>,
    /// File and line of its description.
    pub place: (String, u64),
}

/// All that is known.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// Causes, in order of their names.
    pub causes: Vec<Cause>,
    /// Signs and marks.
    pub signals: Vec<Signal>,
    /// What a console shows of the guest, whatever is wrong with it.
    pub steps: Vec<Step>,
}

pub(crate) const BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

impl Catalogue {
    /// What comes with the program.
    pub fn built_in() -> Result<Self, Vec<Complaint>> {
        resolve(BUILT_IN)
    }

    /// The cause of that code or label.
    pub fn cause(&self, code_or_label: &str) -> Option<&Cause> {
        self.causes
            .iter()
            .find(|cause| cause.code.eq_ignore_ascii_case(code_or_label) || cause.label == code_or_label)
    }

    /// Signs of a cause.
    pub fn signs<'a>(&'a self, cause: &Cause) -> impl Iterator<Item = &'a Signal> {
        let place = self.causes.iter().position(|other| other.label == cause.label);
        self.signals.iter().filter(move |signal| signal.cause.is_some() && signal.cause == place)
    }
}
