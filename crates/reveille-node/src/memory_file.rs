//! The agent's memory on the machine's disk: one small file, replaced whole.
//!
//! The memory is durable when the write returns: the text is synced before the file takes its name, and the folder after
//! it. A file that cannot be read is an error, never an empty memory: otherwise the agent would repeat attempts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use reveille_agent::Memory;
use reveille_agent::model::Leaving;
use reveille_core::model::time::Time;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::durable::replace;

const NAME: &str = "memory.json";

/// The file of the memory.
#[derive(Clone, Debug)]
pub struct MemoryFile(PathBuf);

/// A memory that cannot be read or written.
#[derive(Debug, Error)]
pub enum MemoryError {
    /// Reading failed.
    #[error("cannot read {}: {source}; the agent begins nothing without its memory", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The file is not a memory.
    #[error(
        "{} is no memory of an agent: {source}; look at it, then remove it: attempts are counted from zero", .path.display()
    )]
    Broken {
        /// The file.
        path: PathBuf,
        /// The error.
        source: serde_json::Error,
    },
    /// Writing failed.
    #[error("cannot write {}: {source}; nothing is done to the machine without it", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    version: u32,
    reboots_ms: Vec<i64>,
    attempts: u32,
    not_before_ms: Option<i64>,
    is_reset: bool,
    leaving: Option<KeptLeaving>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum KeptLeaving {
    Tainted,
    Finalizing,
    Drained,
    Terminating,
    Removed,
}

const VERSION: u32 = 1;

impl MemoryFile {
    /// The memory in this folder, which is created when needed.
    pub fn within(folder: &Path) -> Self {
        Self(folder.join(NAME))
    }

    /// The folder of the file.
    pub fn folder(&self) -> &Path {
        self.0.parent().unwrap_or(Path::new("/"))
    }

    /// Reads the memory; an empty one where there is no file.
    ///
    /// # Errors
    ///
    /// The file exists and cannot be read.
    pub fn read(&self) -> Result<Memory, MemoryError> {
        let text = match fs::read_to_string(&self.0) {
            Ok(text) => text,
            Err(failure) if failure.kind() == io::ErrorKind::NotFound => return Ok(Memory::default()),
            Err(source) => return Err(MemoryError::Read { path: self.0.clone(), source }),
        };
        let kept: Kept = serde_json::from_str(&text)
            .map_err(|source| MemoryError::Broken { path: self.0.clone(), source })?;
        Ok(Memory {
            reboots: kept.reboots_ms.into_iter().map(Time::from_ms).collect(),
            attempts: kept.attempts,
            not_before: kept.not_before_ms.map(Time::from_ms),
            is_reset: kept.is_reset,
            leaving: kept.leaving.map(Into::into),
        })
    }

    /// Replaces the memory; it is durable afterwards.
    ///
    /// # Errors
    ///
    /// The memory may not be durable.
    pub fn write(&self, memory: &Memory) -> Result<(), MemoryError> {
        let kept = Kept {
            version: VERSION,
            reboots_ms: memory.reboots.iter().map(|at| at.ms).collect(),
            attempts: memory.attempts,
            not_before_ms: memory.not_before.map(|at| at.ms),
            is_reset: memory.is_reset,
            leaving: memory.leaving.map(Into::into),
        };
        let failed = |source| MemoryError::Write { path: self.0.clone(), source };
        let text = serde_json::to_vec(&kept).map_err(|failure| failed(failure.into()))?;
        replace(&self.0, &text).map_err(failed)
    }
}

impl From<Leaving> for KeptLeaving {
    fn from(leaving: Leaving) -> Self {
        match leaving {
            Leaving::Tainted => Self::Tainted,
            Leaving::Finalizing => Self::Finalizing,
            Leaving::Drained => Self::Drained,
            Leaving::Terminating => Self::Terminating,
            Leaving::Removed => Self::Removed,
        }
    }
}

impl From<KeptLeaving> for Leaving {
    fn from(kept: KeptLeaving) -> Self {
        match kept {
            KeptLeaving::Tainted => Self::Tainted,
            KeptLeaving::Finalizing => Self::Finalizing,
            KeptLeaving::Drained => Self::Drained,
            KeptLeaving::Terminating => Self::Terminating,
            KeptLeaving::Removed => Self::Removed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_broken_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let file = MemoryFile::within(&folder.path().join("agent"));
        assert_eq!(file.read().unwrap(), Memory::default());
        let memory = Memory {
            reboots: vec![Time::from_ms(5)],
            attempts: 3,
            not_before: Some(Time::from_ms(9)),
            is_reset: true,
            leaving: Some(Leaving::Drained),
        };
        file.write(&memory).unwrap();
        file.write(&memory).unwrap();
        assert_eq!(file.read().unwrap(), memory);
        let broken = fs::read_to_string(&file.0).unwrap().replace("attempts", "tries");
        fs::write(&file.0, broken).unwrap();
        let failure = file.read().unwrap_err().to_string();
        assert!(failure.contains("memory.json") && failure.contains("tries"), "{failure}");
        fs::write(&file.0, "").unwrap();
        assert!(matches!(file.read(), Err(MemoryError::Broken { .. })));
    }

    #[test]
    fn a_write_that_broke_off_is_no_memory_and_no_hindrance() {
        let folder = tempfile::tempdir().unwrap();
        let file = MemoryFile::within(folder.path());
        fs::write(folder.path().join("memory.json.new"), "{\"ver").unwrap();
        assert_eq!(file.read().unwrap(), Memory::default());
        let memory = Memory { attempts: 1, ..Memory::default() };
        file.write(&memory).unwrap();
        assert_eq!(file.read().unwrap(), memory);
    }
}
