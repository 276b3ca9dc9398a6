//! What a line of console text may prove, as data.
//!
//! ```text
//!  line, normalised ─▶ MARKS       what went well: a boot began, an address came, metadata answered, kubelet runs
//!                   └▶ signatures  what went wrong: what it proves, and which mark takes it back
//! ```
//!
//! A [`Signature`] matches a line when each of its groups has a literal in the line and none of its exceptions has.
//! Lines are lower case with single spaces when they get here; literals are written the same way. There are no wild
//! cards: a pattern that needs one is not sharp enough to prove anything.
//!
//! Findings come in the order of the table, because it is written so that what explains others stands before what
//! follows from them; among what explains, a mere possibility stands last.

mod address;
mod boot;
mod join;
mod marks;
mod metadata;
mod paths;

pub use marks::Mark;
pub(super) use marks::marks_of;

use crate::model::cause::Cause;
use crate::model::incident::Confidence;

/// Whether starting the machine once more can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reboot {
    /// It can: what failed is tried again at every boot.
    Yes,
    /// It cannot, and why.
    No(&'static str),
    /// Nothing read so far tells.
    Unknown,
}

/// Which part of the way a signature is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Firmware, kernel, initial file system.
    Boot,
    /// Link and address.
    Address,
    /// The tool of the first boot: Ignition, Afterburn, cloud-init.
    FirstBoot,
    /// Everything after it.
    Join,
}

/// One pattern and what it proves.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    /// Its stable name.
    pub id: &'static str,
    /// What it proves.
    pub cause: Cause,
    /// How sure one such line makes us.
    pub confidence: Confidence,
    /// What it is about.
    pub part: Part,
    /// True when it says that packets went out and nothing came back.
    pub unanswered: bool,
    /// True when it mostly follows from something else: it stands behind whatever could explain it, however unsure.
    pub consequence: bool,
    /// Groups of literals: a line must hold at least one of each group.
    pub all: &'static [&'static [&'static str]],
    /// Exceptions: a line that holds one of these does not match.
    pub none: &'static [&'static str],
    /// How many lines must match since the last take-back.
    pub at_least: u32,
    /// Marks that take all earlier matches back. [`Mark::Joined`] always does.
    pub taken_back_by: &'static [Mark],
    /// What a reboot would do about it.
    pub reboot: Reboot,
    /// Who prints such lines.
    pub source: &'static str,
    /// Lines that must match.
    pub hits: &'static [&'static str],
    /// Lines that look alike and must not match.
    pub misses: &'static [&'static str],
}

/// What most entries of the tables share.
const BASE: Signature = Signature {
    id: "",
    cause: Cause::Unknown,
    confidence: Confidence::Likely,
    part: Part::Join,
    unanswered: false,
    consequence: false,
    all: &[],
    none: &[],
    at_least: 1,
    taken_back_by: &[],
    reboot: Reboot::Unknown,
    source: "",
    hits: &[],
    misses: &[],
};

/// A reboot does not run a first boot again.
const ONCE_ONLY: Reboot = Reboot::No("a reboot does not repeat a first boot");
/// What is wrong lies outside the machine.
const OUTSIDE: Reboot = Reboot::No("the machine runs; what it needs is refused or unreachable outside of it");

/// Addresses of metadata services.
const METADATA: &[&str] =
    &["169.254.169.254", "fe80::a9fe:a9fe", "fd00:ec2::254", "metadata.google.internal"];
/// Ways to say that packets went out and nothing useful came back.
const NO_ANSWER: &[&str] = &[
    "i/o timeout",
    "timed out",
    "connect timeout",
    "read timeout",
    "client.timeout exceeded",
    "context deadline exceeded",
    "request canceled while waiting for connection",
    "tls handshake timeout",
    "no route to host",
    "network is unreachable",
    "[errno 110]",
    "[errno 113]",
    "error(110,",
    "error(113,",
];

impl Signature {
    /// True when the line matches. The line is lower case with single spaces.
    pub fn matches(&self, line: &str) -> bool {
        self.all.iter().all(|group| group.iter().any(|literal| line.contains(literal)))
            && !self.none.iter().any(|literal| line.contains(literal))
    }
}

/// Every signature, in the order of findings.
pub fn all() -> impl Iterator<Item = &'static Signature> {
    boot::FATAL
        .iter()
        .chain(address::ADDRESS)
        .chain(metadata::METADATA_SERVICE)
        .chain(paths::NAMES_AND_PATHS)
        .chain(join::TRUST)
        .chain(join::FIRST_BOOT)
        .chain(boot::CONSEQUENCE)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::lines::normalised;
    use super::*;

    #[test]
    fn each_signature_matches_its_own_lines_and_not_their_likes() {
        for signature in all() {
            assert!(
                !signature.hits.is_empty() && !signature.misses.is_empty(),
                "{} needs examples",
                signature.id
            );
            for line in signature.hits {
                assert!(signature.matches(&normalised(line)), "{} must match: {line}", signature.id);
            }
            for line in signature.misses {
                assert!(!signature.matches(&normalised(line)), "{} must not match: {line}", signature.id);
            }
        }
    }

    #[test]
    fn the_table_is_well_formed() {
        let mut ids = BTreeSet::new();
        for signature in all() {
            assert!(ids.insert(signature.id), "{} is there twice", signature.id);
            assert!(!signature.source.is_empty(), "{} names no source", signature.id);
            assert!(
                !signature.all.is_empty() && signature.at_least > 0,
                "{} would match everything",
                signature.id
            );
            let literals = signature.all.iter().copied().flatten().chain(signature.none);
            for literal in literals {
                assert_eq!(literal.trim(), normalised(literal), "{}: literals are normalised", signature.id);
                assert!(literal.len() >= 3, "{}: {literal:?} is too short to mean anything", signature.id);
            }
        }
    }
}
