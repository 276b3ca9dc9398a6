//! Reads logs line by line in bounded memory, whatever their size and whatever text they hold.
//!
//! ```text
//!  files, plain or gzip ─▶ lines ─▶ audit or klog ─▶ one Counts for each sort of log ─▶ verdicts
//! ```
//!
//! All audit logs of the command line count together, and so do all logs of API servers: they are parts of one log, or of
//! servers of one cluster.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use flate2::bufread::MultiGzDecoder;
use reveille_core::model::time::Time;
use reveille_hot::counts::{Counts, Entry};
use reveille_hot::verdict::Witness;
use reveille_hot::{Verdict, audit, files, klog};

use crate::cli::failure::Failure;
use crate::cli::hot::Hot;

/// A longer line does not report a write; an audit log that keeps bodies has lines of an object's size.
const LINE_MAX_BYTES: u64 = 8 << 20;

/// The first bytes of a gzip file.
const GZIP: &[u8] = &[0x1f, 0x8b];

/// What the logs show.
#[derive(Default)]
pub(super) struct Read {
    /// The hot objects.
    pub(super) verdicts: Vec<Verdict>,
    /// Limits of the logs.
    pub(super) notes: Vec<String>,
    /// The number of kinds that were written; zero when the logs show no writes.
    pub(super) kinds: u64,
}

/// The hot objects in the logs of the command line.
pub(super) fn verdicts(args: &Hot, now: Time) -> Result<Read, Failure> {
    let Read { mut verdicts, mut notes, mut kinds } = Read::default();
    let audit_logs = (&args.audit_log, Counts::default(), audit::entry as Reader, Witness::Audit);
    let server_logs = (&args.klog, Counts::without_year(), klog::entry as Reader, Witness::Klog);
    for (paths, counts, entry, witness) in [audit_logs, server_logs] {
        let counts = read_all(paths, counts, entry, &mut notes)?;
        kinds += counts.kinds();
        verdicts.extend(files::verdicts(&counts, witness, now));
    }
    Ok(Read { verdicts, notes, kinds })
}

/// A parser of one line.
type Reader = fn(&str) -> Option<Entry>;

fn read_all(
    paths: &[PathBuf],
    mut counts: Counts,
    entry: Reader,
    notes: &mut Vec<String>,
) -> Result<Counts, Failure> {
    for path in paths {
        let before = counts.writes();
        let lines = read(path, &mut counts, entry)?;
        if counts.writes() == before {
            let name = path.display();
            notes.push(format!(
                "{name}: none of {lines} lines tells of a write; is it the log that was meant?"
            ));
        }
    }
    if counts.forgotten() > 0 {
        notes.push(format!(
            "{} objects that were written seldom were not counted to the end",
            counts.forgotten()
        ));
    }
    Ok(counts)
}

fn read(path: &Path, counts: &mut Counts, entry: Reader) -> Result<u64, Failure> {
    let name = path.display();
    let from: Box<dyn BufRead> = if path.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        let file =
            File::open(path).map_err(|error| Failure::usage(anyhow!("cannot read {name}: {error}")))?;
        Box::new(BufReader::new(file))
    };
    let unread = |error| {
        Failure::cannot_tell(anyhow!("cannot read {name}: {error}")).next(
            "unpack it first, where it is packed in another way than gzip: xzcat FILE | reveille hot … -",
        )
    };
    let from = unpacked(from).map_err(unread)?;
    let read = each_line(from, |line| {
        if let Some(entry) = entry(line) {
            counts.take(entry);
        }
    });
    read.map_err(unread)
}

/// Rotated logs are gzip. The unpacked text needs no limit of its own: it is read line by line and not kept.
fn unpacked(mut from: Box<dyn BufRead>) -> io::Result<Box<dyn BufRead>> {
    let mut head = Vec::with_capacity(GZIP.len());
    io::Read::take(&mut from, GZIP.len() as u64).read_to_end(&mut head)?;
    let is_packed = head == GZIP;
    let whole = io::Cursor::new(head).chain(from);
    Ok(if is_packed { Box::new(BufReader::new(MultiGzDecoder::new(whole))) } else { Box::new(whole) })
}

/// Passes on each line that is short enough and valid text; counts all lines.
fn each_line(mut from: impl BufRead, mut each: impl FnMut(&str)) -> io::Result<u64> {
    let (mut line, mut lines) = (Vec::new(), 0);
    loop {
        line.clear();
        if io::Read::take(&mut from, LINE_MAX_BYTES).read_until(b'\n', &mut line)? == 0 {
            return Ok(lines);
        }
        lines += 1;
        if line.last() != Some(&b'\n') && line.len() as u64 == LINE_MAX_BYTES {
            skip_line(&mut from)?;
            continue;
        }
        if let Ok(text) = std::str::from_utf8(&line) {
            each(text.trim_end());
        }
    }
}

fn skip_line(from: &mut impl BufRead) -> io::Result<()> {
    loop {
        let available = from.fill_buf()?;
        let (used, is_end) = match available.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (available.len(), available.is_empty()),
        };
        from.consume(used);
        if is_end {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_never_ends_is_skipped_and_the_next_one_read() {
        let mut text = vec![b'x'; usize::try_from(LINE_MAX_BYTES).unwrap() + 100];
        text.extend(b"\nshort\n\xff\xfe\nlast");
        let mut seen = Vec::new();
        let lines = each_line(text.as_slice(), |line| seen.push(line.to_owned())).unwrap();
        assert_eq!((lines, seen), (4, vec!["short".to_owned(), "last".to_owned()]));
    }

    #[test]
    fn a_packed_log_reads_as_a_plain_one() {
        use std::io::Write as _;
        let mut packed = Vec::new();
        // A rotated log may consist of several gzip members.
        for part in ["one\ntwo\n", "three\n"] {
            let mut encoder = flate2::write::GzEncoder::new(&mut packed, flate2::Compression::fast());
            encoder.write_all(part.as_bytes()).unwrap();
            encoder.finish().unwrap();
        }
        let read = |bytes: Vec<u8>| {
            let mut seen = Vec::new();
            let from = unpacked(Box::new(io::Cursor::new(bytes))).unwrap();
            let lines = each_line(from, |line| seen.push(line.to_owned()));
            (lines.map_err(|error| error.kind()), seen)
        };
        let all = ["one", "two", "three"].map(str::to_owned).to_vec();
        assert_eq!(read(packed.clone()), (Ok(3), all.clone()));
        assert_eq!(read(b"one\ntwo\nthree\n".to_vec()), (Ok(3), all));
        assert_eq!(read(Vec::new()), (Ok(0), vec![]));
        packed.truncate(packed.len() - 3);
        assert!(read(packed).0.is_err(), "a torn one is told, not taken for whole");
    }
}
