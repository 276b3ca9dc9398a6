//! Recordings: everything that a replay needs to decide the same again, one JSON object on each line.
//!
//! ```text
//!   {"recording":{"format":1,"program":"0.1.0","engine":"9f3a…","roster":{…},"start":{…},"restored":{…}}}
//!   {"n":1,"at":1792401133042,"in":{"snapshot":{…}},"out":[{"record":…},{"look":…}]}
//!   {"n":2,"at":1792401133050,"in":"tick"}
//! ```
//!
//! The engine is a function of its roster, how it was started, what it remembered, and the events in order with their
//! times; those are the header and `in`. `out` is what it asked for then, to be compared. Lists that hardly change are
//! written as what changed (`list`), so a quiet fleet costs next to nothing; a reader therefore begins at the first line.
//!
//! Tolerance is the ledger's (`crate::ledger`): older recordings are read, a field or an event that this version does not
//! know is refused and never skipped. Secrets are out before anything comes here; nothing here looks for them. Where the
//! lines are kept, compressed and checked is not this module's business, and neither is what a replay concludes.

mod agent;
mod effect;
mod event;
mod hosting;
mod leaf;
mod lease;
mod list;
mod roster;
mod testimony;
mod world;

use reveille_core::effect::Effect;
use reveille_core::engine::Start;
use reveille_core::event::Event;
use reveille_core::model::id::Fence;
use reveille_core::model::roster::Roster;
use reveille_core::model::time::Time;
use reveille_core::record::Record;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::ledger::mirror::{Mirror, mirror_struct};
use crate::ledger::{FromWireError, LedgerLine, from_wire, to_wire};
use crate::stamp::Stamp;
use effect::WireEffect;
use event::{Shelves, WireEvent};

/// The version of the format that is written, and the newest that is read.
pub const FORMAT: u64 = 1;

/// What stands at the beginning of a recording.
#[derive(Clone, Debug, PartialEq)]
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
    pub restored: Option<Memory>,
}

/// What an engine was restored from.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// When.
    pub now: Time,
    /// When the process before was last known to be alive.
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
    /// A newer format.
    #[error(
        "it is of format {found}, and this program reads format {FORMAT}. Replay it with the program that wrote it, or a newer one"
    )]
    Format {
        /// Which.
        found: Value,
    },
    /// An event, an effect or a field that this version does not have.
    #[error("{0}. A newer program wrote it; replay it with that one, or a newer one")]
    Newer(serde_json::Error),
    /// A word that this version does not have.
    #[error(transparent)]
    Word(#[from] FromWireError),
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

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireLine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    recording: Option<Box<WireHeader>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    n: Option<u64>,
    #[serde(default)]
    at: i64,
    #[serde(default, rename = "in", skip_serializing_if = "Option::is_none")]
    event: Option<WireEvent>,
    #[serde(default, rename = "out", skip_serializing_if = "Vec::is_empty")]
    effects: Vec<WireEffect>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WireHeader {
    format: u64,
    program: String,
    engine: String,
    of: String,
    roster: <Roster as Mirror>::Wire,
    start: <Start as Mirror>::Wire,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    restored: Option<WireMemory>,
}

mirror_struct! {
    WireStart of Start {
        fence: Fence,
        acting: bool,
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WireMemory {
    now: Stamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_alive: Option<Stamp>,
    records: Vec<LedgerLine>,
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
        let restored = header.restored.as_ref().map(|memory| WireMemory {
            now: Stamp(memory.now),
            last_alive: memory.last_alive.map(Stamp),
            records: memory.records.iter().map(to_wire).collect(),
        });
        let wire = WireHeader {
            format: FORMAT,
            program: header.program.clone(),
            engine: header.engine.clone(),
            of: header.of.clone(),
            roster: header.roster.out(),
            start: header.start.out(),
            restored,
        };
        #[derive(Serialize)]
        struct First {
            recording: WireHeader,
        }
        serde_json::to_vec(&First { recording: wire })
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
        serde_json::to_vec(&WireLine {
            recording: None,
            n: Some(self.steps),
            at: at.ms,
            event: Some(self.shelves.out(event)),
            effects: effects.iter().map(Mirror::out).collect(),
        })
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
        let wire: WireLine = serde_json::from_slice(line).map_err(refusal)?;
        let (Some(number), Some(event), None) = (wire.n, wire.event, wire.recording) else {
            return Err(Broken::Json(serde::de::Error::custom("it holds no step")));
        };
        let expected = self.steps + 1;
        if number != expected {
            return Err(Broken::Order { expected, found: number });
        }
        self.steps = number;
        let effects: Result<Vec<Effect>, FromWireError> =
            wire.effects.into_iter().map(Effect::back).collect();
        let (event, effects) = (self.shelves.back(event)?, effects?);
        Ok(Line::Step(Box::new(Step { number, at: Time::from_ms(wire.at), event, effects })))
    }
}

fn header(line: &[u8]) -> Result<Header, Broken> {
    let value: Value = serde_json::from_slice(line).map_err(Broken::Json)?;
    let wire = value.get("recording").ok_or(Broken::NoHeader)?;
    let format = wire.get("format").ok_or(Broken::NoHeader)?;
    if !format.as_u64().is_some_and(|format| (1..=FORMAT).contains(&format)) {
        return Err(Broken::Format { found: format.clone() });
    }
    let wire = WireHeader::deserialize(wire).map_err(refusal)?;
    let restored = wire.restored.map(memory).transpose()?;
    Ok(Header {
        program: wire.program,
        engine: wire.engine,
        of: wire.of,
        roster: Roster::back(wire.roster)?,
        start: Start::back(wire.start)?,
        restored,
    })
}

fn memory(wire: WireMemory) -> Result<Memory, Broken> {
    let records: Result<Vec<Record>, FromWireError> = wire.records.into_iter().map(from_wire).collect();
    Ok(Memory { now: wire.now.0, last_alive: wire.last_alive.map(|stamp| stamp.0), records: records? })
}

/// What serde does not know was added by somebody; what it misses or cannot read was broken.
fn refusal(error: serde_json::Error) -> Broken {
    let said = error.to_string();
    if said.starts_with("unknown field") || said.starts_with("unknown variant") {
        Broken::Newer(error)
    } else {
        Broken::Json(error)
    }
}

/// An effect as it stands in a recording, for programs.
///
/// # Errors
/// When it cannot be written as JSON, which is a fault of ours.
pub fn effect_json(effect: &Effect) -> Result<Value, serde_json::Error> {
    serde_json::to_value(effect.out())
}

/// A roster as it stands in a recording, for telling two apart field by field.
///
/// # Errors
/// When it cannot be written as JSON, which is a fault of ours.
pub fn roster_json(roster: &Roster) -> Result<Value, serde_json::Error> {
    serde_json::to_value(roster.out())
}

#[cfg(test)]
mod tests;
