//! A log, line by line, in bounded memory: whatever its size, and whatever somebody wrote into it.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use anyhow::anyhow;
use reveille_core::model::time::Time;
use reveille_hot::tally::{Entry, Tally};
use reveille_hot::verdict::Witness;
use reveille_hot::{Verdict, audit, files, klog};

use crate::cli::failure::Failure;
use crate::cli::hot::Hot;

/// What is longer is no line of a log that tells of a write; an audit log that keeps bodies has lines of an object's size.
const LINE_MAX_BYTES: u64 = 8 << 20;

/// What logs told.
#[derive(Default)]
pub(super) struct Read {
    /// What is hot.
    pub(super) verdicts: Vec<Verdict>,
    /// What is to be known of the logs.
    pub(super) notes: Vec<String>,
    /// Kinds that were written; none: it was no log of writes.
    pub(super) kinds: u64,
}

/// What is hot in the logs that were named.
pub(super) fn verdicts(args: &Hot, now: Time) -> Result<Read, Failure> {
    let Read { mut verdicts, mut notes, mut kinds } = Read::default();
    if let Some(path) = &args.audit_log {
        let tally = read(path, Tally::default(), audit::entry, &mut notes)?;
        kinds += tally.kinds();
        verdicts.extend(files::verdicts(&tally, Witness::Audit, now));
    }
    if let Some(path) = &args.klog {
        let tally = read(path, Tally::without_year(), klog::entry, &mut notes)?;
        kinds += tally.kinds();
        verdicts.extend(files::verdicts(&tally, Witness::Klog, now));
    }
    Ok(Read { verdicts, notes, kinds })
}

fn read(
    path: &Path,
    mut tally: Tally,
    entry: fn(&str) -> Option<Entry>,
    notes: &mut Vec<String>,
) -> Result<Tally, Failure> {
    let name = path.display();
    let from: Box<dyn BufRead> = if path.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        let file =
            File::open(path).map_err(|error| Failure::usage(anyhow!("cannot read {name}: {error}")))?;
        Box::new(BufReader::new(file))
    };
    let read = each_line(from, |line| {
        if let Some(entry) = entry(line) {
            tally.take(entry);
        }
    });
    let lines = read.map_err(|error| {
        Failure::cannot_tell(anyhow!("cannot read {name}: {error}"))
            .next("unpack it first: zcat FILE | reveille hot … -")
    })?;
    if tally.writes() == 0 {
        notes.push(format!("{name}: none of {lines} lines tells of a write; is it the log that was meant?"));
    }
    if tally.forgotten() > 0 {
        notes.push(format!(
            "{name}: {} objects that were written seldom were not counted to the end",
            tally.forgotten()
        ));
    }
    Ok(tally)
}

/// Hands on each line that is short enough and text; counts all of them.
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
}
