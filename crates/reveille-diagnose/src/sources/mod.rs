//! From bytes of any form to lines: what is compressed, archived or encoded is unpacked on the way, in bounded memory.
//!
//! ```text
//!  (name, bytes) ─▶ head ─┬ gzip, zstd, xz ─▶ the same again, one level deeper
//!                         ├ tar, zip ───▶ the same again, for each member that is a log (layout)
//!                         ├ UTF-16 ─────▶ UTF-8 ─▶ lines
//!                         ├ a case file ─▶ its texts ─▶ lines
//!                         ├ binary ──────▶ not read, and said
//!                         └ text ────────▶ lines ─▶ scan::Reader
//! ```
//!
//! Nothing is written anywhere, so a member called `../../etc/passwd` could do no harm. It is refused all the same and reported,
//! because an attacker or a broken tool made an archive with such a member. What expands without measure is stopped: memory is
//! bounded anyway, time is not. Damage is reported, and what came before it counts.

pub mod case;
mod folder;
mod layout;
mod measure;
mod tar;
mod zip;

use std::io::{self, BufRead, BufReader, Read};

use encoding_rs_io::DecodeReaderBytes;

use crate::scan::Reader;
use folder::Folder;
pub use folder::Unpacked;
use measure::{Counted, Expanded, Measured};

/// Archives within archives.
const DEPTH_MAX: u32 = 4;
/// How much of a source decides what it is.
const HEAD_BYTES: usize = 4096;
/// A case file is a page or two.
const CASE_BYTES_MAX: u64 = 1 << 20;
/// Members of one archive that are read.
const MEMBERS_MAX: u64 = 100_000;
/// A name that is longer is cut where it is shown.
const NAME_CHARACTERS_MAX: usize = 1_000;
/// What the list of sources may take, bytes: tens of thousands of members with names as people give them. An archive of a
/// megabyte can have a hundred megabytes of names.
const INPUTS_BYTES_MAX: usize = 8 << 20;
/// The name of what is counted and not named.
const OTHERS: &str = "further sources";
/// Window of zstd, as a power of two: what is larger would need more memory than we allow ourselves.
const ZSTD_WINDOW_LOG_MAX: u32 = 25;

/// What unpacking xz may take: `xz -7`, one step above the usual setting.
const XZ_MEMORY_BYTES_MAX: u64 = 24 << 20;

/// What may be read of one source, with all that is packed in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// What its compressed data may expand to in all, bytes.
    pub expanded_bytes_max: u64,
    /// What a compressed source may expand to however small it is, bytes.
    pub expanded_bytes_free: u64,
    /// How many times its size a compressed source may expand to above that.
    pub expansion_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        // A log packs ten to fifty times smaller; a thousandfold is a line repeated, or an attack.
        Self { expanded_bytes_max: 64 << 30, expanded_bytes_free: 256 << 20, expansion_max: 200 }
    }
}

/// A source that was read, or why it was not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Its name, with the archive that holds it.
    pub name: String,
    /// How it was packed: `text`, `gzip`, `tar`, ….
    pub form: String,
    /// Lines that were read.
    pub lines: u64,
    /// What is to be said of it: that it was refused, damaged or cut.
    pub note: Option<String>,
}

/// Takes sources in.
#[derive(Debug)]
pub struct Intake<'r, 's> {
    reader: &'r mut Reader<'s>,
    limits: Limits,
    /// What all that is packed in the present source expanded to so far.
    expanded: Expanded,
    /// What was taken in, in order; at the end, as one entry, what is too much to be named.
    pub inputs: Vec<Input>,
    /// What the list takes, bytes.
    inputs_bytes: usize,
    /// How many sources are in its last entry.
    others: u64,
}

impl<'r, 's> Intake<'r, 's> {
    /// Nothing was taken in yet.
    pub fn new(reader: &'r mut Reader<'s>, limits: Limits) -> Self {
        let expanded = Expanded::default();
        Self { reader, limits, expanded, inputs: Vec::new(), inputs_bytes: 0, others: 0 }
    }

    /// Takes a source in, whatever it is.
    pub fn take(&mut self, name: &str, from: &mut dyn BufRead) {
        self.expanded = Expanded::default();
        self.unpack(&shown(name), from, 0);
    }

    /// Says of a source that could not even be opened why it was not read.
    pub fn refuse(&mut self, name: &str, why: impl Into<String>) {
        self.push(&shown(name), "refused", 0, Some(why.into()));
    }

    /// Says of a folder which bundle it is.
    pub fn unpacked(&mut self, name: &str, note: impl Into<String>) {
        self.push(name, "folder", 0, Some(note.into()));
    }

    fn push(&mut self, name: &str, form: &str, lines: u64, note: Option<String>) {
        let note_bytes = note.as_ref().map_or(0, String::len);
        let bytes = self.inputs_bytes + size_of::<Input>() + name.len() + form.len() + note_bytes;
        if self.others == 0 && bytes <= INPUTS_BYTES_MAX {
            self.inputs_bytes = bytes;
            return self.inputs.push(Input { name: name.to_owned(), form: form.to_owned(), lines, note });
        }
        let before = if self.others > 0 { self.inputs.pop() } else { None };
        self.others += 1;
        let note =
            format!("{} more, whose names are too many to be kept; what they hold was read", self.others);
        self.inputs.push(Input {
            name: OTHERS.to_owned(),
            form: "several".to_owned(),
            lines: lines + before.map_or(0, |before| before.lines),
            note: Some(note),
        });
    }

    fn unpack(&mut self, name: &str, from: &mut dyn BufRead, depth: u32) {
        let mut head = Vec::new();
        if let Err(error) = from.take(HEAD_BYTES as u64).read_to_end(&mut head) {
            return self.push(name, "unreadable", 0, Some(format!("cannot be read: {error}")));
        }
        let mut whole = head.as_slice().chain(from);
        let form = Form::of(&head);
        if form.is_packed() && depth >= DEPTH_MAX {
            let note = format!("packed more than {DEPTH_MAX} times: not unpacked further");
            return self.push(name, form.name(), 0, Some(note));
        }
        match form {
            Form::Gzip => self.compressed(
                name,
                form,
                |packed| Ok(Box::new(flate2::bufread::MultiGzDecoder::new(packed))),
                &mut whole,
                depth,
            ),
            Form::Zstd => self.compressed(
                name,
                form,
                |packed| {
                    let mut decoder = zstd::stream::read::Decoder::with_buffer(packed)?;
                    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
                    Ok(Box::new(decoder))
                },
                &mut whole,
                depth,
            ),
            Form::Tar => self.tar(name, &mut whole, depth),
            Form::Zip => self.zip(name, &mut whole, depth),
            // The mark at its beginning says in which order the bytes of a unit stand.
            Form::Utf16 => self.text(name, form.name(), &mut BufReader::new(DecodeReaderBytes::new(whole))),
            Form::Journal => self.push(
                name,
                form.name(),
                0,
                Some(
                    "a binary journal: print it with journalctl --file FILE --no-pager and give me that"
                        .to_owned(),
                ),
            ),
            Form::Xz => self.compressed(
                name,
                form,
                |packed| {
                    let stream = liblzma::stream::Stream::new_stream_decoder(
                        XZ_MEMORY_BYTES_MAX,
                        liblzma::stream::CONCATENATED,
                    )?;
                    Ok(Box::new(liblzma::bufread::XzDecoder::new_stream(packed, stream)))
                },
                &mut whole,
                depth,
            ),
            Form::Binary => {
                self.push(name, form.name(), 0, Some("no text: not read".to_owned()));
            }
            Form::Case => self.case(name, &mut whole),
            Form::Text => self.text(name, form.name(), &mut whole),
        }
    }

    fn text(&mut self, name: &str, form: &str, from: &mut dyn BufRead) {
        let before = self.reader.seen().lines;
        let note = match self.reader.lines(name, from) {
            Ok(()) => None,
            Err(error) => Some(format!("read as far as it could be: {error}")),
        };
        let lines = self.reader.seen().lines - before;
        self.push(name, form, lines, note);
    }

    fn case(&mut self, name: &str, from: &mut dyn BufRead) {
        let mut bytes = Vec::new();
        let read = from.take(CASE_BYTES_MAX).read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        match (read, case::read(&text)) {
            (Ok(_), Some(case)) => {
                let before = self.reader.seen().lines;
                if let Some(platform) = &case.platform {
                    self.reader.platform(platform);
                }
                for (number, evidence) in (1..).zip(&case.evidence) {
                    self.reader.text(
                        &format!("{name}: evidence {number} ({})", shown(&evidence.kind)),
                        &evidence.text,
                    );
                }
                let lines = self.reader.seen().lines - before;
                self.push(name, Form::Case.name(), lines, None);
            }
            _ => self.text(name, "text", &mut bytes.as_slice().chain(from)),
        }
    }

    /// Unpacks what one decoder yields, as far as it stays within measure.
    fn compressed<'p>(
        &mut self,
        name: &str,
        form: Form,
        decoder: impl FnOnce(Counted<'p>) -> io::Result<Box<dyn Read + 'p>>,
        from: &'p mut dyn BufRead,
        depth: u32,
    ) {
        let packed = Counted::of(from);
        let taken = packed.taken();
        let decoder = match decoder(packed) {
            Ok(decoder) => decoder,
            Err(error) => {
                return self.push(name, form.name(), 0, Some(format!("cannot be unpacked: {error}")));
            }
        };
        let measured = Measured::of(decoder, taken, self.expanded.clone(), self.limits);
        let mut measured = BufReader::new(measured);
        let inner =
            [".gz", ".zst", ".xz"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
        self.unpack(inner, &mut measured, depth + 1);
    }

    fn member(&mut self, folder: &mut Folder<'_>, path: &str, from: &mut dyn BufRead, depth: u32) -> bool {
        folder.members += 1;
        let name = format!("{}!{}", folder.archive, shown(path));
        if escapes(path) {
            let note = "its path leads out of the archive: refused".to_owned();
            self.push(&name, "refused", 0, Some(note));
        } else if let Some(told) = folder.told(path) {
            if self.reader.seen().platform.is_none()
                && let Some(platform) = folder.platform(path)
            {
                self.reader.platform(platform);
            }
            self.unpack(&(name + &told), from, depth + 1);
        }
        folder.members < MEMBERS_MAX
    }

    fn archive(&mut self, folder: &Folder<'_>, form: Form, end: io::Result<()>) {
        let broken = end.err().map(|error| format!("read as far as it could be: {error}"));
        let notes: Vec<String> = folder.note().into_iter().chain(broken).collect();
        let note = (!notes.is_empty()).then(|| notes.join("; "));
        self.push(folder.archive, form.name(), 0, note);
    }

    fn tar(&mut self, name: &str, from: &mut dyn BufRead, depth: u32) {
        let mut folder = Folder::of(name);
        let end = tar::each(from, |path, member| self.member(&mut folder, path, member, depth));
        self.archive(&folder, Form::Tar, end);
    }

    fn zip(&mut self, name: &str, from: &mut dyn BufRead, depth: u32) {
        let mut folder = Folder::of(name);
        let (limits, expanded) = (self.limits, self.expanded.clone());
        let end =
            zip::each(from, limits, &expanded, |path, member| self.member(&mut folder, path, member, depth));
        self.archive(&folder, Form::Zip, end);
    }
}

/// A name as it is shown: the author of an archive chose its members' names, and a terminal obeys control characters.
fn shown(name: &str) -> String {
    let readable = name.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c });
    readable.take(NAME_CHARACTERS_MAX).collect()
}

/// Whether a member's path leads out of the folder that it would be unpacked to.
fn escapes(path: &str) -> bool {
    let path = path.replace('\\', "/");
    path.starts_with('/') || path.split('/').any(|part| part == "..") || path.as_bytes().get(1) == Some(&b':')
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Gzip,
    Zstd,
    Xz,
    Tar,
    Zip,
    Utf16,
    Journal,
    Binary,
    Case,
    Text,
}

impl Form {
    /// What the first bytes say.
    fn of(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Self::Zip,
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Self::Utf16,
            [b'L', b'P', b'K', b'S', b'H', b'H', b'R', b'H', ..] => Self::Journal,
            _ if tar::is_header(head) => Self::Tar,
            _ if is_binary(head) => Self::Binary,
            _ if is_case(head) => Self::Case,
            _ => Self::Text,
        }
    }

    const fn is_packed(self) -> bool {
        matches!(self, Self::Gzip | Self::Zstd | Self::Xz | Self::Tar | Self::Zip)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
            Self::Tar => "tar",
            Self::Zip => "zip",
            Self::Utf16 => "UTF-16 text",
            Self::Journal => "journal",
            Self::Binary => "binary",
            Self::Case => "case",
            Self::Text => "text",
        }
    }
}

/// Zero bytes, other control bytes and bytes that are no UTF-8: where they are a third, there is no text. A console that
/// lost some bytes, or one that is coloured, stays far below; random bytes are half of this kind.
fn is_binary(head: &[u8]) -> bool {
    const READ_BY_CONSOLES: [u8; 6] = [b'\t', b'\n', b'\r', 0x08, 0x0c, 0x1b];
    let strange: usize = head
        .utf8_chunks()
        .map(|chunk| {
            let controls = chunk.valid().bytes().filter(|b| *b < 0x20 && !READ_BY_CONSOLES.contains(b));
            controls.count() + chunk.invalid().len()
        })
        .sum();
    strange * 3 > head.len()
}

fn is_case(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let has = |key: &str| text.lines().any(|line| line.starts_with(key));
    has("evidence:") || (has("platform:") && text.lines().any(|line| line.starts_with("evidence")))
}

#[cfg(test)]
mod tests;
