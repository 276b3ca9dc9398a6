//! Recordings: all that a replay needs to make the same decisions again, one JSON object on each line.
//!
//! ```text
//!   {"recording":{"format":3,"program":"0.1.0","engine":"9f3a…","roster":{…},"start":{…},"restored":{…}}}
//!   {"n":1,"at":"2026-10-19T09:12:13.042Z","in":{"snapshot":{…}},"out":[{"record":…},{"look":…}]}
//!   {"n":2,"at":"2026-10-19T09:12:13.050Z","in":"tick"}
//! ```
//!
//! The engine is a function of its roster, its start, its memory, and the events in order with their times; those are the
//! header and `in`. `out` is what the engine asked for then, for comparison. Lists that rarely change are written as
//! their changes (`list`), so a quiet fleet costs next to nothing. A reader therefore begins at the first line.
//!
//! Compatibility is as in the ledger (`crate::ledger`): older recordings are read, and a field or an event that this
//! version does not know is refused and never skipped. Secrets are removed before data comes here, and nothing here
//! searches for them. Not here: where the lines are kept, compressed and checked, and what a replay concludes.

mod event;
mod lease;
mod list;

use std::borrow::Cow;

use reveille_core::effect::Effect;
use reveille_core::engine::Start;
use reveille_core::event::Event;
use reveille_core::model::roster::Roster;
use reveille_core::model::time::Time;
use reveille_core::record::Record;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::ledger::is_newer;
use event::{Shelves, WireEvent};

/// The version of the format that this code writes, and the newest that it reads.
pub const FORMAT: u64 = 3;
/// The oldest version of the format that this code reads.
const OLDEST: u64 = 3;

/// The first line of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Header {
    /// Version of the program that wrote the recording.
    pub program: String,
    /// A hash of the engine's source: equal hashes make equal decisions.
    pub engine: String,
    /// The origin of the recording: `run`, `demo`, or the recording that it was cut from.
    pub of: String,
    /// The roster as the engine got it.
    pub roster: Roster,
    /// How the engine was started.
    pub start: Start,
    /// The memory that the engine was restored from; `None` where it began without a ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<Memory>,
}

/// What an engine was restored from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Memory {
    /// The time of the restore.
    pub now: Time,
    /// When the previous process was last known to be alive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_alive: Option<Time>,
    /// The ledger's records.
    pub records: Vec<Record>,
}

/// One step of the engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its number, from 1.
    pub number: u64,
    /// Its time.
    pub at: Time,
    /// The event that came in.
    pub event: Event,
    /// The effects that the engine asked for.
    pub effects: Vec<Effect>,
}

/// One line of a recording.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// The first line.
    Header(Box<Header>),
    /// Every other line.
    Step(Box<Step>),
}

/// Why a line cannot be replayed.
#[derive(Debug, Error)]
pub enum Broken {
    /// The line is not a line of a recording.
    #[error("it is no line of a recording: {0}")]
    Json(serde_json::Error),
    /// The recording has another format.
    #[error(
        "it is of format {found}, and this program reads format {FORMAT}. Replay it with the program that wrote it"
    )]
    Format {
        /// The format.
        found: Value,
    },
    /// An event, an effect, a field or a word that this version does not have.
    #[error("{0}. A newer program wrote it; replay it with that one, or a newer one")]
    Newer(serde_json::Error),
    /// The line refers to an earlier line that is missing.
    #[error("it refers to a list that no earlier line holds")]
    Reference,
    /// A line is missing or duplicated.
    #[error("it is step {found}, and step {expected} should stand here")]
    Order {
        /// The number that the line should have.
        expected: u64,
        /// The number that it has.
        found: u64,
    },
    /// The first line is not a header.
    #[error("a recording begins with its header, and this is none")]
    NoHeader,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireStep<'s> {
    n: u64,
    at: Time,
    #[serde(rename = "in")]
    event: WireEvent,
    #[serde(default, rename = "out", skip_serializing_if = "<[_]>::is_empty")]
    effects: Cow<'s, [Effect]>,
}

/// Writes a recording, line by line.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    shelves: Shelves,
    steps: u64,
}

impl Writer {
    /// The first line, without its newline.
    ///
    /// # Errors
    /// When the header cannot be written as JSON, which is a bug in this program.
    pub fn header(&self, header: &Header) -> Result<Vec<u8>, serde_json::Error> {
        #[derive(Serialize)]
        struct Formatted<'h> {
            format: u64,
            #[serde(flatten)]
            header: &'h Header,
        }
        #[derive(Serialize)]
        struct First<'h> {
            recording: Formatted<'h>,
        }
        serde_json::to_vec(&First { recording: Formatted { format: FORMAT, header } })
    }

    /// The next step's line, without its newline.
    ///
    /// # Errors
    /// When the step cannot be written as JSON, which is a bug in this program.
    pub fn step(
        &mut self,
        at: Time,
        event: &Event,
        effects: &[Effect],
    ) -> Result<Vec<u8>, serde_json::Error> {
        self.steps += 1;
        let event = self.shelves.out(event);
        serde_json::to_vec(&WireStep { n: self.steps, at, event, effects: Cow::Borrowed(effects) })
    }

    /// Steps written so far.
    pub const fn steps(&self) -> u64 {
        self.steps
    }
}

/// Reads a recording, line by line, from the first.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    shelves: Shelves,
    begun: bool,
    steps: u64,
}

impl Reader {
    /// Reads the next line.
    ///
    /// # Errors
    /// When the line is not the expected one, or holds something that this version does not know.
    pub fn read(&mut self, line: &[u8]) -> Result<Line, Broken> {
        if !self.begun {
            self.begun = true;
            return header(line).map(|header| Line::Header(Box::new(header)));
        }
        let WireStep { n: number, at, event, effects } = serde_json::from_slice(line).map_err(refusal)?;
        let expected = self.steps + 1;
        if number != expected {
            return Err(Broken::Order { expected, found: number });
        }
        self.steps = number;
        let event = self.shelves.back(event)?;
        Ok(Line::Step(Box::new(Step { number, at, event, effects: effects.into_owned() })))
    }
}

fn header(line: &[u8]) -> Result<Header, Broken> {
    let mut value: Value = serde_json::from_slice(line).map_err(Broken::Json)?;
    let fields = value.get_mut("recording").and_then(Value::as_object_mut).ok_or(Broken::NoHeader)?;
    let format = fields.remove("format").ok_or(Broken::NoHeader)?;
    if !format.as_u64().is_some_and(|format| (OLDEST..=FORMAT).contains(&format)) {
        return Err(Broken::Format { found: format });
    }
    Header::deserialize(value["recording"].take()).map_err(refusal)
}

fn refusal(error: serde_json::Error) -> Broken {
    if is_newer(&error) { Broken::Newer(error) } else { Broken::Json(error) }
}

#[cfg(test)]
mod tests;
