//! The ledger's lines: how a [`Record`] of the engine is written down, one JSON object each, and read back the same.
//!
//! ```text
//!   Record ─▶ to_wire ─▶ LedgerLine ─▶ {"v":1,"t":"opened","at":"2026-10-19T09:12:13.042Z", …}
//!   Record ◀─ from_wire ◀─ LedgerLine ◀─ any JSON
//! ```
//!
//! `v` is the version of the format, `t` says which record it is; field names are short, stable and for `jq`. Times are
//! RFC 3339, numbers are numbers, and everything that is one of a closed list is its word.
//!
//! Tolerance goes one way only. *Older lines are always read*: a field that was added after version 0.1 carries
//! `#[serde(default)]`, so that a line without it means what it meant when it was written; `tests/ledger/kept-0.1.jsonl`
//! is such a ledger, kept for good. *Newer lines are refused*, each with the reason and what to do: a field, a word or a
//! version that this program does not know is never skipped, because what is skipped here is forgotten by the engine. A
//! change of what an existing field means raises [`VERSION`] and keeps a reader for the one before.
//!
//! Reading JSON into a [`LedgerLine`] never fails, so that a line from a newer version is not taken for a damaged one by
//! whoever keeps the file; it is [`from_wire`] that refuses it, and says what it does not know. Where lines are kept,
//! made durable and checked is not this module's business.

mod before;
pub(crate) mod call;
pub(crate) mod cause;
mod finding;
pub(crate) mod mirror;
pub(crate) mod record;
mod subject;
pub(crate) mod trace;

use reveille_core::record::Record;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use thiserror::Error;

use mirror::{Mirror, Tagged};
use record::LedgerRecord;

/// The version of the format that is written, and the newest that is read.
pub const VERSION: u64 = 1;
/// The oldest version of the format that is read.
const OLDEST: u64 = 1;

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
    Known(LedgerRecord),
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
        "this record is of version {found}, and this program reads version {VERSION}. Use the program that wrote it, or a newer one"
    )]
    Version {
        /// Which.
        found: Value,
    },
    /// A kind of record that this version does not have.
    #[error(
        "there is no record of kind {kind} in version {VERSION}. Use the program that wrote it, or a newer one"
    )]
    Kind {
        /// Which.
        kind: Value,
    },
    /// A known kind with a field or a variant that this version does not have.
    #[error(
        "the record \"{kind}\" cannot be read: {source}. A newer program wrote it; use that one, or a newer one"
    )]
    Newer {
        /// Which.
        kind: String,
        /// What is not known of it.
        source: serde_json::Error,
    },
    /// A known kind with fields that are missing or of another shape.
    #[error("the record \"{kind}\" cannot be read: {source}")]
    Shape {
        /// Which.
        kind: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A word that is not in its closed list.
    #[error(
        "there is no {list} called {word:?} in this version. Use the program that wrote it, or a newer one"
    )]
    Word {
        /// Which list.
        list: &'static str,
        /// Which word.
        word: String,
    },
}

/// The line for a record.
pub fn to_wire(record: &Record) -> LedgerLine {
    LedgerLine(Line::Known(record.out()))
}

/// The record of a line.
///
/// # Errors
/// When the line is of another version, of an unknown kind, or says something that this version has no word for.
pub fn from_wire(line: LedgerLine) -> Result<Record, FromWireError> {
    match line.0 {
        Line::Known(record) => Record::back(record),
        Line::Other(value) => Record::back(parse(&value)?),
    }
}

fn parse(value: &Value) -> Result<LedgerRecord, FromWireError> {
    let object = value.as_object().ok_or(FromWireError::NoRecord)?;
    let version = object.get("v").ok_or(FromWireError::NoRecord)?;
    if !version.as_u64().is_some_and(|version| (OLDEST..=VERSION).contains(&version)) {
        return Err(FromWireError::Version { found: version.clone() });
    }
    let kind = object.get("t").unwrap_or(&Value::Null);
    let Some(known) = kind.as_str().filter(|kind| LedgerRecord::WORDS.contains(kind)) else {
        return Err(FromWireError::Kind { kind: kind.clone() });
    };
    let mut fields = object.clone();
    fields.remove("v");
    LedgerRecord::deserialize(Value::Object(fields)).map_err(|source| refusal(known, source))
}

/// What serde does not know was added by somebody; what it misses or cannot read was broken.
fn refusal(kind: &str, source: serde_json::Error) -> FromWireError {
    let kind = kind.to_owned();
    let said = source.to_string();
    if said.starts_with("unknown field") || said.starts_with("unknown variant") {
        FromWireError::Newer { kind, source }
    } else {
        FromWireError::Shape { kind, source }
    }
}

impl Serialize for LedgerLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Versioned<'r> {
            v: u64,
            #[serde(flatten)]
            record: &'r LedgerRecord,
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
