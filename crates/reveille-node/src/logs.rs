//! The machine's own logs, as far as they tell of a join: the journal of its units, and files where there is no journal.
//!
//! The end of each is read, within a bound: what stopped a machine stands there. Text is masked before it is handed on.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use reveille_core::diagnose::console::mask_secrets;

use crate::probe::Probe;

/// Of each log this much is read, from its end.
const TAIL_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The units whose journal is read, and how much of it.
const JOURNAL: [&str; 11] =
    ["-u", "kubelet", "-u", "containerd", "-u", "crio", "-b", "-n", "3000", "--no-pager", "--quiet"];
/// Files that are there where no journal is, or that no journal has.
const FILES: [&str; 5] = [
    "/var/log/kubelet.log",
    "/var/log/containerd.log",
    "/var/log/cloud-init-output.log",
    "/var/log/syslog",
    "/var/log/messages",
];

/// A log, masked, or why it was not read.
#[derive(Clone, Debug)]
pub struct Log {
    /// A file, or the command that prints it.
    pub name: String,
    /// Its end.
    pub text: String,
    /// Why it was not read, or not whole.
    pub note: Option<String>,
}

impl Probe {
    /// The logs of the machine, and those that were named besides.
    pub async fn logs(&self, named: &[PathBuf]) -> Vec<Log> {
        let journal = match self.program("journalctl", &JOURNAL).await {
            Ok(text) => Log { name: "journalctl".to_owned(), text, note: None },
            Err(why) => Log { name: "journalctl".to_owned(), text: String::new(), note: Some(why) },
        };
        let root = self.root.clone();
        let named = named.to_vec();
        let files = tokio::task::spawn_blocking(move || {
            let own = FILES.into_iter().map(|path| (path.to_owned(), root.real(path), false));
            let named = named.into_iter().map(|path| (path.display().to_string(), path, true));
            own.chain(named).filter_map(|(name, path, wanted)| file(name, &path, wanted)).collect::<Vec<_>>()
        });
        let mut logs = vec![masked(journal)];
        logs.extend(files.await.unwrap_or_default());
        logs
    }
}

/// The end of a file; nothing where it is not there and nobody named it.
fn file(name: String, path: &Path, wanted: bool) -> Option<Log> {
    match tail(path) {
        Ok((text, note)) => Some(masked(Log { name, text, note })),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !wanted => None,
        Err(error) => Some(Log { name, text: String::new(), note: Some(error.to_string()) }),
    }
}

fn tail(path: &Path) -> io::Result<(String, Option<String>)> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let cut = length.saturating_sub(TAIL_BYTES_MAX);
    file.seek(SeekFrom::Start(cut))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES_MAX).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let note = (cut > 0).then(|| format!("only its last {TAIL_BYTES_MAX} bytes of {length}"));
    Ok((text, note))
}

fn masked(log: Log) -> Log {
    let text = mask_secrets(&log.text).into_owned();
    Log { text, ..log }
}
