//! Runs a program to its end, or ends it: each line is passed on, the last ones are kept, and secrets are masked in both.
//!
//! The program leads a process group of its own, so that its children end with it. Its input is empty: a program that
//! asks a question gets no answer instead of waiting for ever.

use std::collections::VecDeque;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use reveille_core::diagnose::console::mask_secrets;
use rustix::process::{Pid, Signal, kill_process_group};
use thiserror::Error;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

/// The number of kept last lines.
const LINES_KEPT: usize = 40;
/// The kept length of a longer line.
const LINE_CHARACTERS_MAX: usize = 600;
/// The part of a line that is read before secrets are masked in it: what is kept has none by half.
const LINE_BYTES_MAX: usize = 16 * 1024;
/// How long a program has to end after a request, before it is killed.
const GRACE: Duration = Duration::from_secs(5);
/// The number of lines that wait for the reader.
const LINES_QUEUED: usize = 64;

/// Why a program failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProgramError {
    /// The program could not be started.
    #[error("{program} cannot be started: {cause}")]
    NotStarted {
        /// The program.
        program: String,
        /// The cause.
        cause: String,
    },
    /// The program ended with a failure.
    #[error("{program} ended with {status}: {}", last(.tail))]
    Failed {
        /// The program.
        program: String,
        /// The exit status, as text.
        status: String,
        /// The last lines, masked.
        tail: Vec<String>,
    },
    /// The program did not end in time, and was ended.
    #[error("{program} was ended after {within_s} s; it last said: {}", last(.tail))]
    Ended {
        /// The program.
        program: String,
        /// The time limit.
        within_s: u64,
        /// The last lines, masked.
        tail: Vec<String>,
    },
}

/// The most useful line: an error of a list of checks, or else the last line with content.
fn last(tail: &[String]) -> &str {
    let says = |line: &&String| !line.trim().is_empty() && !line.contains("To see the stack trace");
    let named = tail.iter().find(|line| line.trim_start().starts_with("[ERROR "));
    named.or_else(|| tail.iter().rev().find(says)).map_or("nothing", |line| line.trim())
}

impl ProgramError {
    /// The program's last lines.
    pub fn tail(&self) -> &[String] {
        match self {
            Self::NotStarted { .. } => &[],
            Self::Failed { tail, .. } | Self::Ended { tail, .. } => tail,
        }
    }
}

/// Runs the program; each line goes to `said` as it comes. Returns the last lines.
///
/// # Errors
///
/// The program could not be started, failed, or had to be ended.
pub async fn run(
    program: &str,
    arguments: &[String],
    within: Duration,
    said: &mpsc::Sender<String>,
) -> Result<Vec<String>, ProgramError> {
    let until = Instant::now() + within;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    let mut child = command.spawn().map_err(|failure| ProgramError::NotStarted {
        program: program.to_owned(),
        cause: failure.to_string(),
    })?;
    let (sender, mut lines) = mpsc::channel(LINES_QUEUED);
    child.stdout.take().map(|output| tokio::spawn(read(output, sender.clone())));
    child.stderr.take().map(|output| tokio::spawn(read(output, sender)));
    let mut tail = VecDeque::new();
    let ended = loop {
        let Ok(line) = timeout_at(until, lines.recv()).await else { break false };
        let Some(line) = line else { break true };
        if tail.len() == LINES_KEPT {
            tail.pop_front();
        }
        tail.push_back(line.clone());
        // A slow reader does not delay the program.
        said.try_send(line).ok();
    };
    let tail: Vec<String> = tail.into();
    let status = if ended { timeout_at(until, child.wait()).await.ok() } else { None };
    let program = program.to_owned();
    match status {
        Some(Ok(status)) if status.success() => Ok(tail),
        Some(Ok(status)) => Err(ProgramError::Failed { program, status: status.to_string(), tail }),
        Some(Err(failure)) => Err(ProgramError::Failed { program, status: failure.to_string(), tail }),
        None => {
            end(&mut child).await;
            Err(ProgramError::Ended { program, within_s: within.as_secs(), tail })
        }
    }
}

async fn read(output: impl AsyncRead + Unpin, to: mpsc::Sender<String>) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    while next_line(&mut output, &mut line).await.is_ok_and(|is_there| is_there) {
        let masked = mask_secrets(&String::from_utf8_lossy(&line)).into_owned();
        let text = masked.trim_end().chars().take(LINE_CHARACTERS_MAX).collect();
        if to.send(text).await.is_err() {
            return;
        }
    }
}

/// Reads a line, and keeps its beginning: a line may have no end. False where there is none any more.
async fn next_line(output: &mut (impl AsyncBufRead + Unpin), line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let (mut is_there, mut is_cut) = (false, false);
    loop {
        let part = output.fill_buf().await?;
        let end = part.iter().position(|byte| *byte == b'\n');
        let (said, count) = (&part[..end.unwrap_or(part.len())], end.map_or(part.len(), |end| end + 1));
        let room = LINE_BYTES_MAX - line.len();
        line.extend_from_slice(&said[..said.len().min(room)]);
        (is_there, is_cut) = (is_there || count > 0, is_cut || said.len() > room);
        output.consume(count);
        if end.is_some() || count == 0 {
            break;
        }
    }
    if is_cut {
        // The last word may be half a secret, which no search recognises.
        let whole = line.iter().rposition(u8::is_ascii_whitespace);
        line.truncate(whole.unwrap_or(0));
    }
    Ok(is_there)
}

/// Asks the whole group to end, and kills it if it does not.
async fn end(child: &mut Child) {
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let Some(group) = group else { return };
    for signal in [Signal::TERM, Signal::KILL] {
        kill_process_group(group, signal).ok();
        if tokio::time::timeout(GRACE, child.wait()).await.is_ok() {
            // Children that the program left behind are killed as well.
            kill_process_group(group, Signal::KILL).ok();
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn shell(script: &str, within_ms: u64) -> (Result<Vec<String>, ProgramError>, Vec<String>) {
        let (sender, mut receiver) = mpsc::channel(64);
        let arguments = ["-c".to_owned(), script.to_owned()];
        let result = run("sh", &arguments, Duration::from_millis(within_ms), &sender).await;
        drop(sender);
        let mut said = Vec::new();
        while let Some(line) = receiver.recv().await {
            said.push(line);
        }
        (result, said)
    }

    #[tokio::test]
    async fn what_it_says_is_heard_kept_and_masked() {
        let (result, said) =
            shell("echo one; echo two >&2; echo token=abcdef.0123456789abcdef", 60_000).await;
        let mut tail = result.unwrap();
        tail.sort();
        assert_eq!(tail.len(), 3);
        assert_eq!(said.len(), 3);
        assert!(!tail.concat().contains("0123456789abcdef") && !said.concat().contains("0123456789abcdef"));
    }

    #[tokio::test]
    async fn endless_line_is_not_kept_and_cut_line_shows_no_half_secret() {
        let mut long = BufReader::new(tokio::io::AsyncReadExt::chain(
            tokio::io::AsyncReadExt::take(tokio::io::repeat(b'x'), 64 << 20),
            &b" y\nlast"[..],
        ));
        let mut line = Vec::new();
        assert!(next_line(&mut long, &mut line).await.unwrap() && line.is_empty());
        assert!(line.capacity() <= 2 * LINE_BYTES_MAX, "{} bytes", line.capacity());
        assert!(next_line(&mut long, &mut line).await.unwrap() && line == b"last");
        assert!(!next_line(&mut long, &mut line).await.unwrap());
        for before in [LINE_CHARACTERS_MAX - 15, LINE_BYTES_MAX - 15] {
            let words = "word ".repeat(before / 5);
            let (_, said) = shell(&format!("echo '{words}abcdef.0123456789abcdef'"), 60_000).await;
            assert!(said.len() == 1 && !said[0].contains("abcdef.01"), "{said:?}");
        }
    }

    #[tokio::test]
    async fn a_failure_says_the_last_line_that_says_something() {
        let (result, _) = shell("echo 'error: no such host'; echo; exit 3", 60_000).await;
        let failure = result.unwrap_err();
        assert_eq!(failure.to_string(), "sh ended with exit status: 3: error: no such host");
        let none = run("/no/such/program", &[], GRACE, &mpsc::channel(1).0).await.unwrap_err();
        assert!(matches!(none, ProgramError::NotStarted { .. }), "{none}");
    }

    #[tokio::test]
    async fn one_that_does_not_end_is_ended_with_all_that_it_started() {
        let marker = tempfile::NamedTempFile::new().unwrap();
        let path = marker.path().display().to_string();
        let (result, _) = shell(&format!("sleep 600 & echo $! > {path}; echo waits; wait"), 1_500).await;
        assert!(matches!(result, Err(ProgramError::Ended { .. })), "{result:?}");
        let child = std::fs::read_to_string(&path).unwrap();
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", child.trim()));
        for _ in 0..100 {
            match state() {
                Ok(line) if !line.contains(") Z") => tokio::time::sleep(Duration::from_millis(50)).await,
                _ => return,
            }
        }
        panic!("what it started runs on: {:?}", state());
    }
}
