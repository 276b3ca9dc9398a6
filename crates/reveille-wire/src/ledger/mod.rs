//! The ledger's lines: how a [`Record`] of the engine is written down, one JSON object each, and read back the same.
//!
//! ```text
//!   Record ─▶ to_wire ─▶ LedgerLine ─▶ {"v":2,"t":"opened","at":"2026-10-19T09:12:13.042Z", …}
//!   Record ◀─ from_wire ◀─ LedgerLine ◀─ any JSON
//! ```
//!
//! `v` is the version of the format, `t` says which record it is; the fields are those of the record itself (`serde` on
//! the core's types), short, stable and for `jq`. Times are RFC 3339, numbers are numbers, and everything that is one of
//! a closed list is its word.
//!
//! Tolerance goes one way only. *Older lines are always read*: a field that is added later carries `#[serde(default)]`,
//! so that a line without it means what it meant when it was written. *Newer lines are refused*, each with the reason and
//! what to do: a field, a word or a version that this program does not know is never skipped, because what is skipped
//! here is forgotten by the engine. A change of what an existing field means raises [`VERSION`] and keeps a reader for
//! the one before, from the first release on: there was none when version 2 came, so that nothing of version 1 is read.
//!
//! Reading JSON into a [`LedgerLine`] never fails, so that a line from a newer version is not taken for a damaged one by
//! whoever keeps the file; it is [`from_wire`] that refuses it, and says what it does not know. Where lines are kept,
//! made durable and checked is not this module's business.

use reveille_core::record::Record;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use thiserror::Error;

/// The version of the format that is written, and the newest that is read.
pub const VERSION: u64 = 2;
/// The oldest version of the format that is read.
const OLDEST: u64 = 2;

/// One line of the ledger: a record in the format of this version, or JSON that this version cannot read. The latter is
/// written back as it was; [`from_wire`] says what is the matter with it.
#[derive(Clone, Debug, PartialEq)]
pub struct LedgerLine(Line);

#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every line is a record: a box would cost an allocation for each"
)]
enum Line {
    Known(Record),
    Other(Value),
}

/// Why a line is not a record of ours. Nothing of the ledger may be used then: what follows may rest on this line.
#[derive(Debug, Error)]
pub enum FromWireError {
    /// Not an object with a `v`.
    #[error("this line is no record: it has no version number in \"v\"")]
    NoRecord,
    /// Another version of the format.
    #[error(
        "this record is of version {found}, and this program reads version {VERSION}. Use the program that wrote it"
    )]
    Version {
        /// Which.
        found: Value,
    },
    /// A kind, a field or a word that this version does not have.
    #[error(
        "the record {kind} cannot be read: {source}. A newer program wrote it; use that one, or a newer one"
    )]
    Newer {
        /// Which.
        kind: Value,
        /// What is not known of it.
        source: serde_json::Error,
    },
    /// A known kind with fields that are missing or of another shape.
    #[error("the record {kind} cannot be read: {source}")]
    Shape {
        /// Which.
        kind: Value,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// The line for a record.
pub fn to_wire(record: &Record) -> LedgerLine {
    LedgerLine(Line::Known(record.clone()))
}

/// The record of a line.
///
/// # Errors
/// When the line is of another version, of an unknown kind, or says something that this version has no word for.
pub fn from_wire(line: LedgerLine) -> Result<Record, FromWireError> {
    match line.0 {
        Line::Known(record) => Ok(record),
        Line::Other(value) => parse(&value),
    }
}

fn parse(value: &Value) -> Result<Record, FromWireError> {
    let object = value.as_object().ok_or(FromWireError::NoRecord)?;
    let version = object.get("v").ok_or(FromWireError::NoRecord)?;
    if !version.as_u64().is_some_and(|version| (OLDEST..=VERSION).contains(&version)) {
        return Err(FromWireError::Version { found: version.clone() });
    }
    let mut fields = object.clone();
    fields.remove("v");
    let kind = fields.get("t").cloned().unwrap_or_default();
    Record::deserialize(Value::Object(fields)).map_err(|source| {
        if is_newer(&source) {
            FromWireError::Newer { kind, source }
        } else {
            FromWireError::Shape { kind, source }
        }
    })
}

/// What serde does not know was added by somebody; what it misses or cannot read was broken.
pub(crate) fn is_newer(error: &serde_json::Error) -> bool {
    let said = error.to_string();
    said.starts_with("unknown field") || said.starts_with("unknown variant")
}

impl Serialize for LedgerLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Versioned<'r> {
            v: u64,
            #[serde(flatten)]
            record: &'r Record,
        }
        match &self.0 {
            Line::Known(record) => Versioned { v: VERSION, record }.serialize(serializer),
            Line::Other(value) => value.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for LedgerLine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Ok(Self(parse(&value).map_or_else(|_| Line::Other(value), Line::Known)))
    }
}

#[cfg(test)]
pub(crate) mod tests;
