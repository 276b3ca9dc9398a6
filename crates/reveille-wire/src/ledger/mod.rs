//! The ledger's lines: how a [`Record`] of the engine becomes one JSON object, and how it is read back unchanged.
//!
//! ```text
//!   Record ─▶ to_wire ─▶ LedgerLine ─▶ {"v":3,"t":"opened","at":"2026-10-19T09:12:13.042Z", …}
//!   Record ◀─ from_wire ◀─ LedgerLine ◀─ any JSON
//! ```
//!
//! `v` is the version of the format, and `t` names the kind of record. The fields are those of the record itself (`serde`
//! on the core's types), short, stable and suited to `jq`. Times are RFC 3339, numbers are numbers, and a value of a
//! closed list is its word.
//!
//! *Older lines are always read*: a field that is added later carries `#[serde(default)]`, so that a line without it
//! keeps its meaning. *Newer lines are refused*, each with the reason and what to do. The reader never skips a field, a
//! word or a version that it does not know, because the engine would forget what is skipped. A change of what an existing
//! field means raises [`VERSION`] and keeps a reader for the version before, from the first release on. There was no
//! release before version 3, so nothing reads versions 1 and 2.
//!
//! Reading JSON into a [`LedgerLine`] never fails, so that the store does not take a line from a newer version for a
//! damaged one. [`from_wire`] refuses such a line and says what it does not know. Not here: where lines are kept, made
//! durable and checked.

use reveille_core::record::Record;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use thiserror::Error;

/// The version of the format that this code writes, and the newest that it reads.
pub const VERSION: u64 = 3;
/// The oldest version of the format that this code reads.
const OLDEST: u64 = 3;

/// One line of the ledger: a record in the format of this version, or JSON that this version cannot read. The writer
/// keeps such JSON unchanged; [`from_wire`] says what is wrong with it.
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

/// Why a line is not a record of this version. The caller must not use any of the ledger then, because later lines may
/// depend on this one.
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
        /// The version.
        found: Value,
    },
    /// A kind, a field or a word that this version does not have.
    #[error(
        "the record {kind} cannot be read: {source}. A newer program wrote it; use that one, or a newer one"
    )]
    Newer {
        /// The kind.
        kind: Value,
        /// What this version does not know about it.
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
/// When the line is of another version, of an unknown kind, or holds something that this version does not know.
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

/// A newer program added what serde does not know; a field that is missing or unreadable is damage.
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
