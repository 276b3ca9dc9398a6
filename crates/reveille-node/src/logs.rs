//! The machine's own logs that say something about a join: the journal of its units, and files where there is no journal.
//!
//! The end of each log is read, within a bound: the cause of a failure is there. Text is masked before it is handed on.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use crate::known::Known;
use crate::probe::Probe;
use crate::root::named as named_file;

/// The part of each log that is read, from its end.
const TAIL_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The units whose journal is read, and how much of it.
const JOURNAL: [&str; 19] = [
    "-u",
    "kubelet",
    "-u",
    "containerd",
    "-u",
    "crio",
    "-u",
    "k3s-agent",
    "-u",
    "k3s",
    "-u",
    "rke2-agent",
    "-u",
    "rke2-server",
    "-b",
    "-n",
    "3000",
    "--no-pager",
    "--quiet",
];
/// Files where no journal exists, or that are in no journal.
const FILES: [&str; 9] = [
    "/var/log/kubelet.log",
    "/var/log/containerd.log",
    "/var/lib/rancher/k3s/agent/containerd/containerd.log",
    "/var/lib/rancher/rke2/agent/containerd/containerd.log",
    "/var/lib/rancher/rke2/agent/logs/kubelet.log",
    "/var/log/k3s.log",
    "/var/log/cloud-init-output.log",
    "/var/log/syslog",
    "/var/log/messages",
];

/// A log, masked, or the reason why it was not read.
#[derive(Clone, Debug)]
pub struct Log {
    /// A file, or the command that prints it.
    pub name: String,
    /// The end of the log.
    pub text: String,
    /// Why the log was not read, or not completely.
    pub note: Option<String>,
}

impl Log {
    /// The end of the log, starting at a line.
    pub fn end(&self, bytes_max: usize) -> Self {
        if self.text.len() <= bytes_max {
            return self.clone();
        }
        let cut = self.text.len() - bytes_max;
        let line = self.text.as_bytes()[cut..].iter().position(|byte| *byte == b'\n');
        let text = line.map_or("", |line| &self.text[cut + line + 1..]).to_owned();
        let note = Some(format!("only its last {} bytes of {}", text.len(), self.text.len()));
        Self { name: self.name.clone(), text, note }
    }
}

impl Probe {
    /// The logs of the machine, and those that an operator named.
    pub async fn logs(&self, named: &[PathBuf]) -> Vec<Log> {
        self.logs_within(named, TAIL_BYTES_MAX).await
    }

    /// The same, with at most this much of each.
    pub async fn logs_within(&self, named: &[PathBuf], bytes_max: u64) -> Vec<Log> {
        let journal = match self.program_end("journalctl", &JOURNAL).await {
            Ok((text, note)) => Log { name: "journalctl".to_owned(), text, note },
            Err(why) => Log { name: "journalctl".to_owned(), text: String::new(), note: Some(why) },
        };
        let (root, known) = (self.root.clone(), self.known.clone());
        let journal = masked(journal, &known);
        let named = named.to_vec();
        let files = tokio::task::spawn_blocking(move || {
            let own = FILES.into_iter().map(|path| (path.to_owned(), root.file(path)));
            let named =
                named.into_iter().map(|path| (path.display().to_string(), named_file(&path).map(Some)));
            own.chain(named)
                .filter_map(|(name, file)| Some(log(name, file.transpose()?, bytes_max, &known)))
                .collect::<Vec<_>>()
        });
        let mut logs = vec![journal];
        logs.extend(files.await.unwrap_or_default());
        logs
    }
}

/// The end of a file.
fn log(name: String, file: io::Result<File>, bytes_max: u64, known: &Known) -> Log {
    match file.and_then(|file| tail(file, bytes_max)) {
        Ok((text, note)) => masked(Log { name, text, note }, known),
        Err(error) => Log { name, text: String::new(), note: Some(error.to_string()) },
    }
}

fn tail(mut file: File, bytes_max: u64) -> io::Result<(String, Option<String>)> {
    let length = file.metadata()?.len();
    let cut = length.saturating_sub(bytes_max);
    file.seek(SeekFrom::Start(cut))?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    // A line that is cut in the middle may begin with half a secret, which no search recognises.
    let whole = if cut == 0 {
        0
    } else {
        bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1)
    };
    let text = String::from_utf8_lossy(&bytes[whole..]).into_owned();
    let note = (cut > 0).then(|| format!("only its last {bytes_max} bytes of {length}"));
    Ok((text, note))
}

fn masked(log: Log, known: &Known) -> Log {
    // A note may quote what a program said.
    let (text, note) = (known.clean(&log.text), log.note.as_deref().map(|note| known.clean(note)));
    Log { name: log.name, text, note }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_log_drops_the_line_that_was_cut_through() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubelet.log");
        std::fs::write(&path, "--token abcdef.0123456789abcdef\nlast\n").unwrap();
        let log = log("kubelet.log".to_owned(), File::open(&path), 20, &Known::default());
        assert_eq!((log.text.as_str(), log.note.is_some()), ("last\n", true));
        let whole = Log { text: "first line\nsecond\nthird\n".to_owned(), note: None, ..log };
        assert_eq!(whole.end(15).text, "second\nthird\n");
        assert_eq!(whole.end(3).text, "");
        assert_eq!((whole.end(100).text, whole.end(100).note), (whole.text, None));
    }
}
