//! Reads a recording: the segments of a run in order, or one plain file, as lines with their places.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use zstd::stream::write::Decoder;

use super::error::RecordingError;
use super::frame::{self, Found};
use super::{NOTICE, segment_of};

/// Our writer never puts this much text into one frame, so the reader refuses a file that unpacks to more.
const FRAME_TEXT_BYTES_MAX: usize = 1 << 30;

/// One line of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingLine {
    /// Its bytes, without the newline.
    pub bytes: Vec<u8>,
    /// The place of the line, for people: the file and the line within the whole recording.
    pub place: String,
}

/// How a recording ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingEnding {
    /// Bytes at the end that are no whole frame, because the process was killed while it wrote.
    pub torn_bytes: usize,
    /// Why the recording did not end cleanly, where that is known.
    pub notice: Option<String>,
}

/// Reads a recording.
pub struct RecordingReader {
    files: VecDeque<PathBuf>,
    current: Option<Segment>,
    lines: VecDeque<Vec<u8>>,
    line: usize,
    ending: RecordingEnding,
}

struct Segment {
    path: PathBuf,
    bytes: Vec<u8>,
    at: usize,
    frame: usize,
    stream: Decoder<'static, Text>,
}

/// The target of unpacked text, with a size limit.
#[derive(Default)]
struct Text(Vec<u8>);

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > FRAME_TEXT_BYTES_MAX {
            return Err(io::Error::other("it unpacks to more than a recording holds"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Every run at or below a directory, oldest first: the directory itself, its children or their children.
///
/// # Errors
/// When a directory cannot be listed.
pub fn runs(root: &Path) -> Result<Vec<PathBuf>, RecordingError> {
    let mut found = Vec::new();
    let mut level = vec![root.to_owned()];
    for _ in 0..3 {
        let mut below = Vec::new();
        for directory in level {
            let names = entries(&directory)?;
            if names.iter().any(|path| is_segment(path)) {
                found.push(directory);
            } else {
                below.extend(names.into_iter().filter(|path| path.is_dir()));
            }
        }
        level = below;
    }
    found.sort();
    Ok(found)
}

/// Bytes of a run on disk.
pub(crate) fn run_bytes(run: &Path) -> u64 {
    let sizes = entries(run).unwrap_or_default().into_iter();
    sizes.filter_map(|path| path.metadata().ok()).map(|data| data.len()).sum()
}

/// Reads the notice of a run that did not end cleanly.
fn notice(directory: &Path) -> io::Result<Option<String>> {
    match std::fs::read(directory.join(NOTICE)) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).trim().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>, RecordingError> {
    let list = || -> io::Result<Vec<PathBuf>> {
        std::fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect()
    };
    list().map_err(RecordingError::io("list", directory))
}

fn is_segment(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).and_then(segment_of).is_some()
}

impl RecordingReader {
    /// Opens a run's directory, or one file.
    ///
    /// # Errors
    /// When there is no recording, or a segment of it is missing.
    pub fn open(path: &Path) -> Result<Self, RecordingError> {
        let mut ending = RecordingEnding { torn_bytes: 0, notice: None };
        let files = if path.is_dir() {
            ending.notice = notice(path).map_err(RecordingError::io("read the notice in", path))?;
            segments(path)?
        } else {
            VecDeque::from([path.to_owned()])
        };
        Ok(Self { files, current: None, lines: VecDeque::new(), line: 0, ending })
    }

    /// The next line; `None` at the end.
    ///
    /// # Errors
    /// When a byte differs from what was written, or a file cannot be read.
    pub fn next_line(&mut self) -> Result<Option<RecordingLine>, RecordingError> {
        loop {
            if let Some(bytes) = self.lines.pop_front() {
                self.line += 1;
                let file = self
                    .current
                    .as_ref()
                    .map_or_else(String::new, |segment| segment.path.display().to_string());
                return Ok(Some(RecordingLine {
                    bytes,
                    place: format!("{file}, line {} of the recording", self.line),
                }));
            }
            if self.current.is_some() && self.next_frame()? {
                continue;
            }
            let Some(path) = self.files.pop_front() else { return Ok(None) };
            self.open_file(path)?;
        }
    }

    /// How the recording ends; known after every line was read.
    pub const fn ending(&self) -> &RecordingEnding {
        &self.ending
    }

    fn open_file(&mut self, path: PathBuf) -> Result<(), RecordingError> {
        let bytes = std::fs::read(&path).map_err(RecordingError::io("read", &path))?;
        if bytes.first() == Some(&b'{') {
            self.lines.extend(
                bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec),
            );
            let at = bytes.len();
            self.current = Some(Segment::new(path, bytes, at)?);
            return Ok(());
        }
        let preface = frame::PREFACE;
        if bytes.len() < preface.len() && preface.starts_with(&bytes) && self.files.is_empty() {
            self.ending.torn_bytes = bytes.len();
            return Ok(());
        }
        if !bytes.starts_with(preface) {
            let name = &preface[..preface.len() - 2];
            let Some(rest) = bytes.strip_prefix(name) else { return Err(RecordingError::None { path }) };
            let found =
                rest.iter().take_while(|byte| byte.is_ascii_digit()).map(|byte| char::from(*byte)).collect();
            return Err(RecordingError::Format { file: path, found });
        }
        self.current = Some(Segment::new(path, bytes, preface.len())?);
        Ok(())
    }

    /// Unpacks the next frame's lines; false at the end of the segment.
    fn next_frame(&mut self) -> Result<bool, RecordingError> {
        let is_last = self.files.is_empty();
        let Some(segment) = &mut self.current else { return Ok(false) };
        let rest = &segment.bytes[segment.at..];
        if rest.is_empty() {
            return Ok(false);
        }
        segment.frame += 1;
        let (frame, byte) = (segment.frame, segment.at);
        let damaged =
            |file: &Path, what| RecordingError::Damaged { file: file.to_owned(), frame, byte, what };
        let content = match frame::read(rest) {
            Found::Whole(content) => content,
            Found::CutShort if is_last => {
                self.ending.torn_bytes = rest.len();
                segment.at = segment.bytes.len();
                return Ok(false);
            }
            Found::CutShort => {
                return Err(damaged(&segment.path, "it is cut short, and a later segment follows"));
            }
            Found::Damaged(what) => return Err(damaged(&segment.path, what)),
        };
        let unpacked = segment.stream.write_all(content).and_then(|()| segment.stream.flush());
        if unpacked.is_err() {
            return Err(damaged(&segment.path, "its checksum fits, yet it cannot be unpacked"));
        }
        segment.at += frame::HEAD_BYTES + content.len();
        let text = std::mem::take(&mut segment.stream.get_mut().0);
        self.lines
            .extend(text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec));
        Ok(true)
    }
}

impl Segment {
    fn new(path: PathBuf, bytes: Vec<u8>, at: usize) -> Result<Self, RecordingError> {
        let stream = Decoder::new(Text::default()).map_err(RecordingError::io("unpack", &path))?;
        Ok(Self { path, bytes, at, frame: 0, stream })
    }
}

/// The segments of a run, in order and without a gap.
fn segments(directory: &Path) -> Result<VecDeque<PathBuf>, RecordingError> {
    let mut files = entries(directory)?;
    files.retain(|path| is_segment(path));
    files.sort();
    if files.is_empty() {
        return Err(RecordingError::None { path: directory.to_owned() });
    }
    for (path, number) in files.iter().zip(1..) {
        if path.file_name().and_then(|name| name.to_str()).and_then(segment_of) != Some(number) {
            return Err(RecordingError::Missing { directory: directory.to_owned(), number });
        }
    }
    Ok(files.into())
}
