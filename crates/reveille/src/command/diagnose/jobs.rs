//! Reads the sources on several cores, with the same result as on one core.
//!
//! ```text
//!  several sources ─▶ each by a reader of its own, on the next free thread ─▶ put together in the order of their names
//!  one source ──────▶ one reader, whose threads look ahead in it
//! ```
//!
//! A thread waits once it is [`AHEAD`] sources ahead of the slowest one, so that memory stays bounded whatever the
//! sources hold. A source on which the reader panics is reported, and does not affect the others.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use reveille_diagnose::Reader;
use reveille_diagnose::scan::Scanner;
use reveille_diagnose::sources::{Input, Intake, Limits};

use super::walk;

/// Reads in large pieces: a gigabyte in lines of a hundred bytes is ten million lines.
const BUFFER_BYTES: usize = 256 * 1024;
/// How many later sources may be read before an earlier one is finished.
const AHEAD: usize = 64;
/// More threads than this would only wait for the disk.
const JOBS_MAX: usize = 8;

/// Something to read.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// Standard input.
    Stdin,
    /// A file that the command line names: it may be a pipe, or behind a link.
    Named(String, PathBuf),
    /// A file of a folder, its name in the output, and the platform that its folder shows.
    File(String, PathBuf, Option<&'static str>),
    /// A folder, and the name of its bundle.
    Folder(String, String),
    /// A name that is not read, and why.
    Refused(String, String),
}

impl Source {
    fn name(&self) -> &str {
        match self {
            Self::Stdin => "standard input",
            Self::Named(name, _) | Self::File(name, ..) | Self::Folder(name, _) | Self::Refused(name, _) => {
                name
            }
        }
    }

    fn read<'s>(&self, scanner: &'s Scanner<'s>, jobs: NonZeroUsize) -> Read<'s> {
        let mut reader = Reader::new(scanner).with_jobs(jobs);
        if let Self::File(_, _, Some(platform)) = self {
            reader.platform(platform);
        }
        let mut intake = Intake::new(&mut reader, Limits::default());
        match self {
            Self::Stdin => {
                intake.take(self.name(), &mut BufReader::with_capacity(BUFFER_BYTES, io::stdin().lock()));
            }
            Self::Folder(name, note) => intake.unpacked(name, note.as_str()),
            Self::Named(name, path) => take(&mut intake, name, File::open(path)),
            Self::File(name, path, _) => take(&mut intake, name, walk::open(path)),
            Self::Refused(name, why) => intake.refuse(name, why.as_str()),
        }
        let inputs = std::mem::take(&mut intake.inputs);
        Read { reader, inputs }
    }
}

fn take(intake: &mut Intake<'_, '_>, name: &str, open: io::Result<File>) {
    match open {
        Ok(open) => intake.take(name, &mut BufReader::with_capacity(BUFFER_BYTES, open)),
        Err(error) => intake.refuse(name, format!("cannot be opened: {error}")),
    }
}

/// The result of one source, or of several.
#[derive(Debug)]
pub(super) struct Read<'s> {
    pub(super) reader: Reader<'s>,
    pub(super) inputs: Vec<Input>,
}

/// As many jobs as there are cores, up to a limit.
pub(super) fn jobs_by_cores() -> NonZeroUsize {
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    cores.min(NonZeroUsize::new(JOBS_MAX).unwrap_or(NonZeroUsize::MIN))
}

/// Reads all sources; the result does not depend on the number of jobs.
pub(super) fn read<'s>(scanner: &'s Scanner<'s>, sources: &[Source], jobs: NonZeroUsize) -> Read<'s> {
    if let [one] = sources {
        return one.read(scanner, jobs);
    }
    let line = Line { sources, state: Mutex::default(), changed: Condvar::new() };
    let mut all = Read { reader: Reader::new(scanner), inputs: Vec::new() };
    std::thread::scope(|scope| {
        let work = || line.work(scanner);
        let threads: Vec<_> = (0..jobs.get().min(sources.len()))
            .map_while(|_| std::thread::Builder::new().name("read".to_owned()).spawn_scoped(scope, work).ok())
            .collect();
        for (number, source) in sources.iter().enumerate() {
            let read = if threads.is_empty() {
                source.read(scanner, NonZeroUsize::MIN)
            } else {
                line.take(number, scanner)
            };
            all.reader.append(read.reader);
            all.inputs.extend(read.inputs);
        }
        for thread in threads {
            // The inputs of the report name the source on which the thread panicked.
            let _ = thread.join();
        }
    });
    all
}

/// The queue of sources, and the threads that take the next one.
struct Line<'a, 's> {
    sources: &'a [Source],
    state: Mutex<State<'s>>,
    changed: Condvar,
}

#[derive(Default)]
struct State<'s> {
    /// The next source to read.
    next: usize,
    /// The next source to append to the result.
    taken: usize,
    /// Sources that were read and not appended yet; `None` where the reader panicked.
    done: BTreeMap<usize, Option<Read<'s>>>,
}

impl<'s> Line<'_, 's> {
    fn lock(&self) -> MutexGuard<'_, State<'s>> {
        // Each change leaves the state consistent, so a panic elsewhere cannot have broken it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, scanner: &'s Scanner<'s>) {
        while let Some(number) = self.claim() {
            let mut claimed = Claimed { line: self, number, read: None };
            claimed.read = Some(self.sources[number].read(scanner, NonZeroUsize::MIN));
        }
    }

    fn claim(&self) -> Option<usize> {
        let wait =
            |state: &mut State<'s>| state.next < self.sources.len() && state.next >= state.taken + AHEAD;
        let mut state = self.changed.wait_while(self.lock(), wait).unwrap_or_else(PoisonError::into_inner);
        let number = state.next;
        state.next += 1;
        (number < self.sources.len()).then_some(number)
    }

    fn take(&self, number: usize, scanner: &'s Scanner<'s>) -> Read<'s> {
        let wait = |state: &mut State<'s>| !state.done.contains_key(&number);
        let mut state = self.changed.wait_while(self.lock(), wait).unwrap_or_else(PoisonError::into_inner);
        let read = state.done.remove(&number).flatten();
        state.taken = number + 1;
        drop(state);
        self.changed.notify_all();
        read.unwrap_or_else(|| {
            let why = "reading it broke off within Reveille, which is a fault of ours: please report it";
            Source::Refused(self.sources[number].name().to_owned(), why.to_owned())
                .read(scanner, NonZeroUsize::MIN)
        })
    }
}

/// A source that a thread is reading. A drop marks it as done, also after a panic.
struct Claimed<'l, 'a, 's> {
    line: &'l Line<'a, 's>,
    number: usize,
    read: Option<Read<'s>>,
}

impl Drop for Claimed<'_, '_, '_> {
    fn drop(&mut self) {
        self.line.lock().done.insert(self.number, self.read.take());
        self.line.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use reveille_diagnose::{Catalogue, judge};

    use super::*;

    #[test]
    fn many_jobs_come_to_what_one_comes_to() {
        let folder = tempfile::tempdir().unwrap();
        let sources: Vec<Source> = (0..3 * AHEAD)
            .map(|number| {
                let path = folder.path().join(number.to_string());
                let quiet = "Nov 21 01:02:03 host systemd[1]: Started Daily apt download activities.\n"
                    .repeat(number);
                let text = match number % 5 {
                    0 => format!("{quiet}dial tcp: lookup api-{number}.lan: no such host\n"),
                    1 => format!("{quiet}E0101 10:00:00.1 1 x.go:1] the frobnicator failed {number} times\n"),
                    _ => quiet,
                };
                std::fs::write(&path, text).unwrap();
                Source::File(number.to_string(), path, None)
            })
            .chain([Source::Refused("gone".to_owned(), "it went".to_owned())])
            .collect();
        let catalogue = Catalogue::built_in().unwrap();
        let scanner = Scanner::new(&catalogue).unwrap();
        let told = |jobs: usize| {
            let read = read(&scanner, &sources, NonZeroUsize::new(jobs).unwrap());
            let seen = read.reader.seen();
            (format!("{:?}", judge(&read.reader)), read.inputs.clone(), seen.lines, seen.trouble.clone())
        };
        let one = told(1);
        assert!(one.0.contains("no such host") && one.3.len() > 1);
        assert_eq!(told(4), one);
    }
}
