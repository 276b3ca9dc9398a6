//! A recording as header and steps; an error names the place of what cannot be read.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use reveille_core::model::time::Time;
use reveille_record::recording::{RecordingEnding, RecordingError, RecordingReader, runs};
use reveille_wire::recording::{Broken, Header, Line, Reader, Step};

use crate::cli::failure::Failure;

/// A recording that is being read.
pub(crate) struct Recording {
    /// The path of the recording.
    pub(crate) path: PathBuf,
    /// The header of the recording.
    pub(crate) header: Header,
    reader: RecordingReader,
    lines: Reader,
    /// The first step, which is read early because its time is the beginning of the recording.
    first: Option<Step>,
}

/// A recording in memory.
#[derive(Clone, Debug)]
pub(crate) struct RecordedSteps {
    /// The header of the recording.
    pub(crate) header: Header,
    /// Its steps.
    pub(crate) steps: Vec<Step>,
}

/// Every recording at or below a path, oldest first.
pub(crate) fn find(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    if !path.exists() {
        return Err(Failure::usage(anyhow!("there is no {}", path.display()))
            .next("name the folder that was given to --record"));
    }
    let found = runs(path).map_err(broken_recording)?;
    if found.is_empty() {
        return Err(Failure::data(anyhow!("no recording is in {}", path.display()))
            .next("record one: reveille run --record DIR"));
    }
    Ok(found)
}

impl Recording {
    /// Opens one recording and reads its header.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let mut reader = RecordingReader::open(path).map_err(broken_recording)?;
        let mut lines = Reader::default();
        let Some(first) = reader.next_line().map_err(broken_recording)? else {
            return Err(Failure::data(anyhow!("the recording in {} holds nothing", path.display())));
        };
        match lines.read(&first.bytes) {
            Ok(Line::Header(header)) => {
                let mut recording =
                    Self { path: path.to_owned(), header: *header, reader, lines, first: None };
                recording.first = recording.read_step()?;
                Ok(recording)
            }
            Ok(Line::Step(_)) => Err(broken(&first.place, Broken::NoHeader)),
            Err(error) => Err(broken(&first.place, error)),
        }
    }

    /// The time of its first step; `None` when it has none.
    pub(crate) fn begins(&self) -> Option<Time> {
        self.first.as_ref().map(|step| step.at)
    }

    /// The next step; `None` at the end.
    pub(crate) fn next_step(&mut self) -> Result<Option<Step>, Failure> {
        match self.first.take() {
            Some(step) => Ok(Some(step)),
            None => self.read_step(),
        }
    }

    fn read_step(&mut self) -> Result<Option<Step>, Failure> {
        let Some(line) = self.reader.next_line().map_err(broken_recording)? else { return Ok(None) };
        match self.lines.read(&line.bytes) {
            Ok(Line::Step(step)) => Ok(Some(*step)),
            Ok(Line::Header(_)) => Err(broken(&line.place, Broken::NoHeader)),
            Err(error) => Err(broken(&line.place, error)),
        }
    }

    /// How the recording ends, known once every step was read.
    pub(crate) const fn ending(&self) -> &RecordingEnding {
        self.reader.ending()
    }
}

impl RecordedSteps {
    /// Reads a recording up to the time limit.
    pub(crate) fn read(recording: &mut Recording, until: Option<Time>) -> Result<Self, Failure> {
        let mut steps = Vec::new();
        while let Some(step) = recording.next_step()? {
            if until.is_some_and(|until| step.at > until) {
                break;
            }
            steps.push(step);
        }
        Ok(Self { header: recording.header.clone(), steps })
    }
}

/// A recording from lines in memory.
pub(crate) fn parse(lines: &[u8]) -> Result<RecordedSteps, Failure> {
    let mut reader = Reader::default();
    let mut header = None;
    let mut steps = Vec::new();
    for (line, number) in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).zip(1..) {
        match reader.read(line).map_err(|error| broken(&format!("line {number}"), error))? {
            Line::Header(found) => header = Some(*found),
            Line::Step(step) => steps.push(*step),
        }
    }
    let header = header.ok_or_else(|| broken("line 1", Broken::NoHeader))?;
    Ok(RecordedSteps { header, steps })
}

fn broken(place: &str, error: Broken) -> Failure {
    Failure::data(anyhow::Error::new(error).context(format!("cannot read {place}")))
}

fn broken_recording(error: RecordingError) -> Failure {
    let is_other = matches!(error, RecordingError::None { .. });
    let failure = Failure::data(anyhow::Error::new(error).context("cannot read the recording"));
    if is_other {
        return failure.next("name the folder that was given to --record, or a .tape file in it");
    }
    failure
}
