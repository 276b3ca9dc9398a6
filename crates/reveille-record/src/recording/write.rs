//! Writes a recording: lines go in and segments come out, until the size limit is reached or the disk refuses.
//!
//! After any error the recording is over, because the compressed stream has gone on and the file has not. What was
//! flushed before stays readable, and the writer cuts off a partial frame. The notice says why, also on a full disk,
//! because its bytes are reserved at the beginning.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use zstd::stream::write::Encoder;

use super::error::RecordingError;
use super::frame;
use super::read::{run_bytes, runs};
use super::{NOTICE, file_name};
use crate::disk::make_directory;

/// The size limits of recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingConfig {
    /// A segment that reaches this many bytes is finished, and the next one begins.
    pub segment_bytes_max: u64,
    /// The limit for all runs of one root together.
    pub total_bytes_max: u64,
    /// The writer closes a frame when its lines reach this many bytes.
    pub frame_bytes_max: usize,
}

impl RecordingConfig {
    /// Segments of 16 MiB, one GiB in all, frames of at most 256 KiB of text.
    pub const STANDARD: Self =
        Self { segment_bytes_max: 16 << 20, total_bytes_max: 1 << 30, frame_bytes_max: 256 << 10 };
}

/// zstd's default level: a higher level makes a recording little smaller and takes much longer.
const LEVEL: i32 = 3;
/// Bytes set aside for the reason why a recording ended.
const NOTICE_BYTES: usize = 1024;
const UNDER_WAY: &str = "The recording is under way, or its process was killed.";

/// A recording under way.
pub struct RecordingWriter {
    root: PathBuf,
    directory: PathBuf,
    config: RecordingConfig,
    notice: File,
    segment: u32,
    file: File,
    stream: Encoder<'static, Vec<u8>>,
    /// Bytes of lines that are not in a frame yet.
    waiting_bytes: usize,
    segment_bytes: u64,
    run_bytes: u64,
}

impl RecordingWriter {
    /// Begins the recording of a run below `root`. Names order runs: the lowest is the oldest.
    ///
    /// # Errors
    /// When a file cannot be made, or a run of that name is there already.
    pub fn create(root: &Path, run: &str, config: RecordingConfig) -> Result<Self, RecordingError> {
        let directory = root.join(run);
        make_directory(root).map_err(RecordingError::io("make the directory", root))?;
        std::fs::create_dir(&directory).map_err(RecordingError::io("make the directory", &directory))?;
        let path = directory.join(NOTICE);
        let mut notice = create(&path)?;
        notice.write_all(&padded(UNDER_WAY)).map_err(RecordingError::io("write", &path))?;
        let (file, stream) = begin(&directory, 1)?;
        let preface_bytes = frame::PREFACE.len() as u64;
        let mut writer = Self {
            root: root.to_owned(),
            directory,
            config,
            notice,
            segment: 1,
            file,
            stream,
            waiting_bytes: 0,
            segment_bytes: preface_bytes,
            run_bytes: preface_bytes,
        };
        writer.make_room()?;
        Ok(writer)
    }

    /// Where this run is kept.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Bytes on disk so far.
    pub const fn bytes(&self) -> u64 {
        self.run_bytes
    }

    /// Adds one line, given without its newline. It is on disk after the next `flush`, or when a frame is full.
    ///
    /// # Errors
    /// When the disk refuses or the bound is reached: the recording is over, see [`Self::stop`].
    pub fn append(&mut self, line: &[u8]) -> Result<(), RecordingError> {
        let fail =
            |source| RecordingError::Io { doing: "compress into", path: self.directory.clone(), source };
        self.stream.write_all(line).and_then(|()| self.stream.write_all(b"\n")).map_err(fail)?;
        self.waiting_bytes += line.len() + 1;
        if self.waiting_bytes >= self.config.frame_bytes_max { self.flush() } else { Ok(()) }
    }

    /// Writes the waiting lines as one frame.
    ///
    /// # Errors
    /// When the disk refuses or the bound is reached: the recording is over, see [`Self::stop`].
    pub fn flush(&mut self) -> Result<(), RecordingError> {
        if self.waiting_bytes == 0 {
            return Ok(());
        }
        self.waiting_bytes = 0;
        let path = self.directory.join(file_name(self.segment));
        self.stream.flush().map_err(RecordingError::io("compress into", &path))?;
        let content = std::mem::take(self.stream.get_mut());
        let frame = frame::write(&content);
        self.file.write_all(&frame).map_err(RecordingError::io("write", &path))?;
        self.segment_bytes += frame.len() as u64;
        self.run_bytes += frame.len() as u64;
        if self.run_bytes > self.config.total_bytes_max {
            return Err(RecordingError::Full { bytes_max: self.config.total_bytes_max });
        }
        if self.segment_bytes >= self.config.segment_bytes_max {
            self.make_room()?;
            self.segment += 1;
            (self.file, self.stream) = begin(&self.directory, self.segment)?;
            self.segment_bytes = frame::PREFACE.len() as u64;
            self.run_bytes += self.segment_bytes;
        }
        Ok(())
    }

    /// Ends the recording without a notice.
    ///
    /// # Errors
    /// When the waiting lines cannot be written any more.
    pub fn end(mut self) -> Result<(), RecordingError> {
        self.flush()?;
        let path = self.directory.join(NOTICE);
        std::fs::remove_file(&path).map_err(RecordingError::io("remove", path))
    }

    /// Ends the recording and writes the reason beside it, as far as the disk allows.
    pub fn stop(mut self, why: &str) {
        // The writer cannot handle an error here: the recording is over either way, and its reader sees the cut.
        let _ = self.file.set_len(self.segment_bytes);
        let _ = self.notice.seek(SeekFrom::Start(0));
        let _ = self.notice.write_all(&padded(why));
    }

    /// Removes the oldest runs until this one may grow by another segment.
    fn make_room(&mut self) -> Result<(), RecordingError> {
        let kept = |path: &PathBuf| *path != self.directory;
        let others: Vec<PathBuf> = runs(&self.root)?.into_iter().filter(kept).collect();
        let mut sizes: Vec<u64> = others.iter().map(|run| run_bytes(run)).collect();
        let allowed = self.config.total_bytes_max.saturating_sub(self.config.segment_bytes_max);
        for (index, run) in others.iter().enumerate() {
            if self.run_bytes + sizes.iter().sum::<u64>() <= allowed {
                break;
            }
            std::fs::remove_dir_all(run).map_err(RecordingError::io("remove the old recording", run))?;
            sizes[index] = 0;
        }
        Ok(())
    }
}

fn create(path: &Path) -> Result<File, RecordingError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.open(path).map_err(RecordingError::io("create", path))
}

fn begin(directory: &Path, segment: u32) -> Result<(File, Encoder<'static, Vec<u8>>), RecordingError> {
    let path = directory.join(file_name(segment));
    let mut file = create(&path)?;
    file.write_all(frame::PREFACE).map_err(RecordingError::io("write", &path))?;
    let stream = Encoder::new(Vec::new(), LEVEL).map_err(RecordingError::io("compress into", path))?;
    Ok((file, stream))
}

fn padded(text: &str) -> Vec<u8> {
    let mut bytes: Vec<u8> = text.bytes().take(NOTICE_BYTES - 1).collect();
    bytes.resize(NOTICE_BYTES - 1, b' ');
    bytes.push(b'\n');
    bytes
}
