//! What is wrong with a roster file: every mistake with its place, its field, and what to write instead.
//!
//! Readers add [`Complaint`]s to [`Complaints`] and go on, so that one pass over the file finds all mistakes. A file with
//! a single complaint gives no roster at all: a half-understood roster would safeguard half a cluster. The list has a limit;
//! complaints beyond it are only counted.

use std::fmt;

/// A position in the file, line and column counted from 1. Zero where the position is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    /// Line.
    pub line: u32,
    /// Column, in characters.
    pub column: u32,
}

/// Where a part of an accepted roster is written, for complaints that arise only after reading the clouds. As text:
/// `file:line:column: field`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The file's name, as the caller gave it.
    pub file: String,
    /// Where in it.
    pub at: Place,
    /// Path of the field: `spec.pools[0].owned`.
    pub field: String,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.at.line, self.at.column, self.field)
    }
}

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Complaint {
    /// Where.
    pub at: Place,
    /// Path of the field: `spec.pools[0].repair.replace`. Empty for the document as a whole.
    pub field: String,
    /// What is wrong, as a clause.
    pub wrong: String,
    /// What to do instead, as a clause in the imperative.
    pub instead: String,
}

/// All mistakes of one file. As text: one line each, `file:line:column: field: what is wrong. What to do.`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The file's name, as the caller gave it.
    pub file: String,
    /// In the order of the file; at most [`Refusal::COMPLAINTS_MAX`].
    pub complaints: Vec<Complaint>,
    /// How many more there are.
    pub more: usize,
}

impl Refusal {
    /// A person cannot use more complaints than this at once.
    pub const COMPLAINTS_MAX: usize = 100;
}

impl std::error::Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.complaints.len() + self.more;
        let errors = if total == 1 { "1 error" } else { &format!("{total} errors") };
        write!(f, "{}: invalid roster: {errors}", self.file)?;
        for complaint in &self.complaints {
            write!(f, "\n{}", self.file)?;
            if complaint.at != Place::default() {
                write!(f, ":{}:{}", complaint.at.line, complaint.at.column)?;
            }
            if !complaint.field.is_empty() {
                write!(f, ": {}", complaint.field)?;
            }
            write!(f, ": {}. {}", complaint.wrong, sentence(&complaint.instead))?;
        }
        if self.more > 0 {
            write!(f, "\n{}: and {} more; mend these first", self.file, self.more)?;
        }
        Ok(())
    }
}

/// A clause as a sentence.
pub(super) fn sentence(clause: &str) -> String {
    let mut chars = clause.chars();
    let end = if clause.ends_with('?') { "" } else { "." };
    chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).chain(end.chars()).collect()
}

/// The path and position of one field, kept with its value for later complaints.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Spot {
    pub(super) at: Place,
    pub(super) field: String,
}

impl Spot {
    /// A field of this one.
    pub(super) fn member(&self, at: Place, name: &str) -> Self {
        let field = if self.field.is_empty() { name.to_owned() } else { format!("{}.{name}", self.field) };
        Self { at, field }
    }

    /// An item of this one.
    pub(super) fn item(&self, at: Place, index: usize) -> Self {
        Self { at, field: format!("{}[{index}]", self.field) }
    }
}

/// Collects complaints while a file is read.
#[derive(Debug, Default)]
pub(super) struct Complaints {
    list: Vec<Complaint>,
    more: usize,
}

impl Complaints {
    /// Adds one. `wrong` and `instead` are clauses without a full stop.
    pub(super) fn add(&mut self, spot: &Spot, wrong: impl Into<String>, instead: impl Into<String>) {
        if self.list.len() >= Refusal::COMPLAINTS_MAX {
            self.more += 1;
            return;
        }
        self.list.push(Complaint {
            at: spot.at,
            field: spot.field.clone(),
            wrong: wrong.into(),
            instead: instead.into(),
        });
    }

    /// How many there are so far.
    pub(super) fn count(&self) -> usize {
        self.list.len() + self.more
    }

    /// The refusal, if there is anything to complain about.
    pub(super) fn into_refusal(mut self, file: &str) -> Option<Refusal> {
        if self.list.is_empty() {
            return None;
        }
        self.list.sort();
        Some(Refusal { file: file.to_owned(), complaints: self.list, more: self.more })
    }
}

/// A quoted value for a message: control characters escaped, cut to a length that fits a line.
pub(super) fn quote(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    if text.chars().count() <= CHARS_MAX {
        return format!("{text:?}");
    }
    let head: String = text.chars().take(CHARS_MAX).collect();
    format!("{head:?}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hopeless_file_is_answered_with_a_bounded_list() {
        let mut complaints = Complaints::default();
        for line in 1..=103 {
            let spot = Spot { at: Place { line, column: 1 }, field: "x".to_owned() };
            complaints.add(&spot, "is wrong", "leave it out");
        }
        let refusal = complaints.into_refusal("r.yaml").unwrap();
        let text = refusal.to_string();
        assert!(text.starts_with("r.yaml: invalid roster: 103 errors\n"), "{text}");
        assert!(text.contains("\nr.yaml:1:1: x: is wrong. Leave it out.\n"), "{text}");
        assert!(text.ends_with("\nr.yaml: and 3 more; mend these first"), "{text}");
    }

    #[test]
    fn quotes_carry_no_control_characters_and_end() {
        assert_eq!(quote("a\u{1b}[31m"), r#""a\u{1b}[31m""#);
        assert_eq!(quote(&"x".repeat(80)).chars().count(), 63);
    }
}
