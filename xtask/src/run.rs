//! Running a program to its end: shown while it runs, kept for reading afterwards, and ended when its time is up.
//!
//! ```text
//!  program ─▶ stdout, stderr ─▶ shown at once, and kept line by line ─▶ Ended
//! ```
//!
//! It gets no input, so nothing can wait for an answer. At the deadline it is asked to end with all of its descendants, so that
//! a program can report what it has and take down what it started, and is killed when it does not end in time; what detached
//! itself (a rig's daemons) is its own owner's business.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

/// A program that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// It ended by itself, with exit code 0.
    pub(crate) ok: bool,
    /// Why not, in a few words.
    pub(crate) why: String,
    /// Lines of its standard output.
    pub(crate) lines: Vec<String>,
    /// Lines of its standard error.
    pub(crate) errors: Vec<String>,
}

/// After its end, a program's pipes may stay open this long (a child of it may hold them).
const LEFTOVERS: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A program that was asked to end has this long: the end-to-end runner takes five rigs down in it.
const END_WITHIN: Duration = Duration::from_secs(120);

/// Runs the program and shows what it says; at most this long.
pub(crate) fn to_the_end(command: Command, within: Duration) -> Result<Ended> {
    run(command, within, true)
}

/// Runs the program and shows nothing: the caller shows its output in one piece, or not at all.
pub(crate) fn held_back(command: Command, within: Duration) -> Result<Ended> {
    run(command, within, false)
}

fn run(mut command: Command, within: Duration, shown: bool) -> Result<Ended> {
    let program = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot run {program}; is it installed?"))?;
    let (lines_in, lines) = channel();
    let (errors_in, errors) = channel();
    read_in_background(child.stdout.take(), lines_in, shown.then_some(std::io::stdout()));
    read_in_background(child.stderr.take(), errors_in, shown.then_some(std::io::stderr()));
    let (ok, why) = wait(&mut child, &program, within)?;
    let closed = Instant::now() + LEFTOVERS;
    Ok(Ended { ok, why, lines: collect(&lines, closed), errors: collect(&errors, closed) })
}

impl Ended {
    /// What it said, first what was meant for reading.
    pub(crate) fn said(&self) -> String {
        self.lines.iter().chain(&self.errors).map(|line| format!("{line}\n")).collect()
    }

    /// The reason in the program's own words: its last complaint that names it (`rig: …`), else how it ended.
    pub(crate) fn complaint(&self, program: &str) -> &str {
        let lead = format!("{program}: ");
        self.errors.iter().rev().find_map(|line| line.strip_prefix(&lead)).unwrap_or(&self.why)
    }
}

fn wait(child: &mut Child, program: &str, within: Duration) -> Result<(bool, String)> {
    let deadline = Instant::now() + within;
    loop {
        if let Some(status) = child.try_wait().with_context(|| format!("cannot wait for {program}"))? {
            return Ok((status.success(), format!("{program} ended with {status}")));
        }
        if Instant::now() >= deadline {
            end_with_descendants(child.id());
            child.wait().with_context(|| format!("cannot wait for {program}"))?;
            return Ok((false, format!("{program} was ended: not done after {} s", within.as_secs())));
        }
        thread::sleep(LOOK_EVERY);
    }
}

fn read_in_background<W: Write + Send + 'static>(
    pipe: Option<impl Read + Send + 'static>,
    to: Sender<String>,
    mut shown: Option<W>,
) {
    let Some(pipe) = pipe else { return };
    thread::spawn(move || {
        let mut reader = BufReader::new(pipe);
        let mut bytes = Vec::new();
        // A pipe that breaks has ended; what it said until then is kept.
        while reader.read_until(b'\n', &mut bytes).is_ok_and(|read| read > 0) {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if let Some(screen) = &mut shown {
                // The screen may be closed; the run goes on.
                let _ = screen.write_all(&bytes);
            }
            if to.send(text.trim_end_matches('\n').to_owned()).is_err() {
                return;
            }
            bytes.clear();
        }
    });
}

fn collect(lines: &Receiver<String>, until: Instant) -> Vec<String> {
    let mut collected = Vec::new();
    while let Ok(line) = lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
        collected.push(line);
    }
    collected
}

/// Asks a process that we started, and all that it and its children started and did not detach, to end; kills what is left.
fn end_with_descendants(process: u32) {
    let parents = parents();
    let mut ours = BTreeSet::from([process]);
    loop {
        let more: Vec<u32> = parents
            .iter()
            .filter(|(child, parent)| ours.contains(parent) && !ours.contains(child))
            .map(|(child, _)| *child)
            .collect();
        if more.is_empty() {
            break;
        }
        ours.extend(more);
    }
    ours.iter().for_each(|id| signal(*id, Signal::TERM));
    let killed_at = Instant::now() + END_WITHIN;
    while ours.iter().any(|id| runs(*id)) && Instant::now() < killed_at {
        thread::sleep(LOOK_EVERY);
    }
    ours.iter().filter(|id| runs(**id)).for_each(|id| signal(*id, Signal::KILL));
}

/// It may have ended meanwhile.
fn signal(process: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// A process that ended and that its parent has not waited for yet does not run.
fn runs(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// All processes with their parents, from /proc; none where there is no /proc.
fn parents() -> Vec<(u32, u32)> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter_map(|id| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name stands in parentheses and may hold anything; state and parent follow the last one.
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        Some((id, parent))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, within: Duration) -> Ended {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        to_the_end(command, within).unwrap()
    }

    #[test]
    fn output_is_kept_and_the_exit_code_counts() {
        let ended = shell("echo one; echo two; echo oh >&2; exit 3", Duration::from_secs(20));
        assert!(!ended.ok && ended.why.contains('3'), "{}", ended.why);
        assert_eq!((ended.lines, ended.errors), (vec!["one".into(), "two".into()], vec!["oh".to_owned()]));
        assert!(shell("read line || exit 0; exit 1", Duration::from_secs(20)).ok, "there is no input");
    }

    #[test]
    fn process_over_its_time_limit_is_ended_with_its_children() {
        let begun = Instant::now();
        let ended = shell("sleep 300 & echo $!; wait", Duration::from_millis(300));
        assert!(!ended.ok && ended.why.contains("not done after"), "{}", ended.why);
        assert!(begun.elapsed() < Duration::from_secs(60));
        let child: u32 = ended.lines[0].parse().unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while runs(child) {
            assert!(Instant::now() < deadline, "process {child} still runs");
            thread::sleep(LOOK_EVERY);
        }
    }

    #[test]
    fn program_past_its_deadline_reports_before_it_ends() {
        let script = "trap 'echo cut; exit 130' TERM; echo begun; while :; do sleep 0.1; done";
        let ended = shell(script, Duration::from_millis(500));
        assert!(!ended.ok && ended.why.contains("not done after"), "{}", ended.why);
        assert_eq!(ended.lines, ["begun", "cut"]);
    }
}
