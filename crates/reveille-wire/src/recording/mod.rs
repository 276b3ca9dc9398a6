//! Recordings: everything that a replay needs to decide the same again, one JSON object on each line.
//!
//! ```text
//!   {"recording":{"format":2,"program":"0.1.0","engine":"9f3a…","roster":{…},"start":{…},"restored":{…}}}
//!   {"n":1,"at":"2026-10-19T09:12:13.042Z","in":{"snapshot":{…}},"out":[{"record":…},{"look":…}]}
//!   {"n":2,"at":"2026-10-19T09:12:13.050Z","in":"tick"}
//! ```
//!
//! The engine is a function of its roster, how it was started, what it remembered, and the events in order with their
//! times; those are the header and `in`. `out` is what it asked for then, to be compared. Lists that hardly change are
//! written as what changed (`list`), so a quiet fleet costs next to nothing; a reader therefore begins at the first line.
//!
//! Tolerance is the ledger's (`crate::ledger`): older recordings are read, a field or an event that this version does not
//! know is refused and never skipped. Secrets are out before anything comes here; nothing here looks for them. Where the
//! lines are kept, compressed and checked is not this module's business, and neither is what a replay concludes.

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

/// The version of the format that is written, and the newest that is read.
pub const FORMAT: u64 = 2;
/// The oldest version of the format that is read.
const OLDEST: u64 = 2;

/// What stands at the beginning of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Header {
    /// Version of the program that wrote it.
    pub program: String,
    /// What the engine decides by, as a hash of its source: equal hashes decide alike.
    pub engine: String,
    /// What it is a recording of: `run`, `demo`, or what it was cut from.
    pub of: String,
    /// The roster as the engine got it.
    pub roster: Roster,
    /// How the engine was started.
    pub start: Start,
    /// What it remembered; nothing where it began without a ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<Memory>,
}

/// What an engine was restored from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Memory {
    /// When.
    pub now: Time,
    /// When the process before was last known to be alive.
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
    /// What came in.
    pub event: Event,
    /// What was asked for.
    pub effects: Vec<Effect>,
}

/// One line of a recording.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// The first one.
    Header(Box<Header>),
    /// Every other.
    Step(Box<Step>),
}

/// Why a line cannot be replayed.
#[derive(Debug, Error)]
pub enum Broken {
    /// Not a recording's line.
    #[error("it is no line of a recording: {0}")]
    Json(serde_json::Error),
    /// Another format.
    #[error(
        "it is of format {found}, and this program reads format {FORMAT}. Replay it with the program that wrote it"
    )]
    Format {
        /// Which.
        found: Value,
    },
    /// An event, an effect, a field or a word that this version does not have.
    #[error("{0}. A newer program wrote it; replay it with that one, or a newer one")]
    Newer(serde_json::Error),
    /// It rests on an earlier line that is not there.
    #[error("it refers to a list that no earlier line holds")]
    Reference,
    /// A line is missing or there twice.
    #[error("it is step {found}, and step {expected} should stand here")]
    Order {
        /// What should stand here.
        expected: u64,
        /// What does.
        found: u64,
    },
    /// The first line is no header.
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
    /// When it cannot be written as JSON, which is a fault of ours.
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
    /// When it cannot be written as JSON, which is a fault of ours.
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
    /// When it is not the line that should stand here, or says what this version does not know.
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
