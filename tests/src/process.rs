//! Running programs: each with a deadline, each known by its id, so that an interrupted run leaves none behind.
//!
//! A program's output is read while it runs, so that a full pipe blocks no program. Programs that started daemons may leave their
//! pipes open; what was read until a moment after the end is what counts. This module signals only what it started, by its id,
//! while it is still the parent.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

static RUNNING: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// After the end of a program its pipes may stay open this long.
const LEFTOVERS: Duration = Duration::from_secs(2);

/// A program that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// Runs a program to its end, with `input` on its standard input.
///
/// # Errors
/// When it cannot be started, or has not ended within the time; it is killed then.
pub fn run(mut command: Command, input: Option<&str>, within: Duration) -> Result<Ended> {
    let name = name_of(&command);
    let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start {name}"))?;
    register(&child);
    if let (Some(text), Some(mut pipe)) = (input, child.stdin.take()) {
        let text = text.to_owned();
        thread::spawn(move || pipe.write_all(text.as_bytes()));
    }
    let stdout = child.stdout.take().map(collect);
    let stderr = child.stderr.take().map(collect);
    let code = end_within(&mut child, within);
    let read = |pipe: Option<Receiver<String>>| {
        pipe.and_then(|text| text.recv_timeout(LEFTOVERS).ok()).unwrap_or_default()
    };
    let (stdout, stderr) = (read(stdout), read(stderr));
    match code {
        Some(code) => Ok(Ended { code, stdout, stderr }),
        None => bail!("{name} had not ended after {} s and was killed: {stderr}", within.as_secs()),
    }
}

/// The exit code once it ends; `None` when it had to be killed.
fn end_within(child: &mut Child, within: Duration) -> Option<Option<i32>> {
    let end = Instant::now() + within;
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status.code()),
            Ok(None) if Instant::now() < end => thread::sleep(Duration::from_millis(10)),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
        }
    };
    unregister(child);
    ended
}

fn collect(mut pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

fn name_of(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// A program in the background. Ends with its owner.
pub struct Background {
    child: Child,
}

impl Background {
    /// Starts it.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(mut command: Command) -> Result<Self> {
        let name = name_of(&command);
        let child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        register(&child);
        Ok(Self { child })
    }

    /// Its exit code, if it has ended: `Some(None)` when a signal ended it.
    pub fn ended(&mut self) -> Option<Option<i32>> {
        self.child.try_wait().ok().flatten().map(|status| status.code())
    }

    /// Ends it at this instruction (SIGKILL).
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        unregister(&self.child);
    }

    /// Asks it to end (SIGTERM) and waits; kills it when it does not.
    ///
    /// # Errors
    /// When it did not end by itself.
    pub fn stop(&mut self, within: Duration) -> Result<Option<i32>> {
        if let Some(code) = self.ended() {
            unregister(&self.child);
            return Ok(code);
        }
        terminate(self.child.id());
        end_within(&mut self.child, within)
            .with_context(|| format!("it did not end within {} s of SIGTERM", within.as_secs()))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if self.ended().is_none() {
            self.kill();
        }
        unregister(&self.child);
    }
}

/// Asks everything that was started here and has not ended to end. For an interrupted run.
pub fn terminate_all() {
    let ids: Vec<u32> = RUNNING.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
    ids.into_iter().for_each(terminate);
}

fn terminate(id: u32) {
    let _ = Command::new("kill").args(["-TERM", &id.to_string()]).stderr(Stdio::null()).status();
}

fn register(child: &Child) {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner).insert(child.id());
}

fn unregister(child: &Child) {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner).remove(&child.id());
}
