//! `replay`: plays a recording through this program's engine to compare it, to print it, or to cut a regression test from it.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use jiff::{Timestamp, civil};
use reveille_core::model::roster::Roster;
use reveille_core::model::time::Time;
use reveille_sim::policy::Policy;
use reveille_wire::roster;
use serde::Serialize;

use super::{Answer, Context};
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::{self, Output};
use crate::replay::anonymise;
use crate::replay::compare::{self, Wanted};
use crate::replay::cut;
use crate::replay::recording::{self, RecordedSteps, Recording};
use crate::replay::report::{self, Subject};
use crate::replay::rival;

/// So many machines of a recording are named to an operator who asked for one that it does not hold.
const MACHINES_NAMED: usize = 5;

/// `replay`.
pub(crate) fn replay(context: &Context, args: &cli::play::Replay) -> Result<Answer, Failure> {
    if let Some(file) = &args.to_scenario {
        return to_scenario(context, args, file);
    }
    if let Some(policy) = args.policy.filter(|policy| *policy != Policy::Reveille) {
        return before(context, args, policy);
    }
    let roster = args.with_roster.as_deref().map(other_roster).transpose()?;
    let mut texts = Vec::new();
    let mut exit = Exit::NoProblem;
    let (mut is_known, mut machines) = (false, BTreeSet::new());
    for path in recording::find(&args.recording)? {
        let mut recording = Recording::open(&path)?;
        let wanted = wanted(context, args, &recording, roster.as_ref())?;
        let played = compare::play(&mut recording, wanted)?;
        if played.differing > 0 {
            exit = exit.max(Exit::Problems);
        }
        if played.span.is_none() && (args.from.is_some() || args.until.is_some()) {
            exit = exit.max(Exit::Usage);
        }
        is_known |= played.knows_machine;
        machines.extend(played.machines.iter().cloned());
        let subject = Subject {
            path: recording.path.display().to_string(),
            header: &recording.header,
            ending: recording.ending(),
            other_roster: roster.is_some(),
        };
        let page = || report::page(&subject, &played, &context.paper);
        texts.push(written(context, page, &report::document(&subject, &played))?);
    }
    match &args.machine {
        Some(machine) if !is_known => Err(unknown_machine(machine, &machines)),
        _ => Ok(Answer { text: context.join(&texts), exit }),
    }
}

/// A misspelt name must not look like a machine to which nothing happened.
fn unknown_machine(machine: &str, machines: &BTreeSet<String>) -> Failure {
    let failure = Failure::usage(anyhow!("the recording knows no machine {machine:?}"));
    let some: Vec<&str> = machines.iter().take(MACHINES_NAMED).map(String::as_str).collect();
    match some.as_slice() {
        [] => failure.next("leave --machine out: the recording holds no machine at its end"),
        some => failure.next(format!("name one with --machine, for example {}", some.join(", "))),
    }
}

/// Plays every recording with a model of another policy.
fn before(context: &Context, args: &cli::play::Replay, policy: Policy) -> Result<Answer, Failure> {
    let mut texts = Vec::new();
    let mut exit = Exit::NoProblem;
    for path in recording::find(&args.recording)? {
        let mut recording = Recording::open(&path)?;
        let wanted = wanted(context, args, &recording, None)?;
        let rivalry = rival::play(&mut recording, policy, &wanted, &context.paper)?;
        if rivalry.is_harmful() {
            exit = exit.max(Exit::Problems);
        }
        texts.push(written(context, || rivalry.page(&context.paper), &rivalry)?);
    }
    Ok(Answer { text: context.join(&texts), exit })
}

/// A page for people, or the document for programs.
fn written(
    context: &Context,
    page: impl Fn() -> String,
    document: &impl Serialize,
) -> Result<String, Failure> {
    Ok(match context.common.output {
        Output::Table => page(),
        Output::Json => serde_json::to_string_pretty(document).context("cannot write the report")? + "\n",
        Output::Yaml => serde_saphyr::to_string(document).context("cannot write the report")?,
    })
}

/// Writes a regression test: it cuts the recording, replaces names on request, and plays the result once before it counts.
fn to_scenario(context: &Context, args: &cli::play::Replay, file: &Path) -> Result<Answer, Failure> {
    let found = recording::find(&args.recording)?;
    let [path] = found.as_slice() else {
        let runs: Vec<String> = found.iter().map(|path| path.display().to_string()).collect();
        return Err(Failure::usage(anyhow!(
            "a regression is cut from one run, and there are {}",
            runs.len()
        ))
        .next(format!("name one of them: {}", runs.join(" "))));
    };
    let mut recording = Recording::open(path)?;
    let wanted = wanted(context, args, &recording, None)?;
    let recorded = RecordedSteps::read(&mut recording, wanted.until)?;
    let cut = cut::cut(&recorded, wanted.machine.as_deref(), wanted.from)?;
    let mut lines = cut.recorded.lines()?;
    if args.anonymise {
        let renamed = recording::parse(&anonymise::anonymise(&lines)?)?.again(None);
        let told = |recorded: &RecordedSteps| {
            recorded.story(None).iter().map(|told| (told.at, told.word)).collect::<Vec<_>>()
        };
        if told(&renamed) != told(&cut.recorded) {
            return Err(Failure::internal(anyhow!("under other names the engine decides otherwise"))
                .next("write it without --anonymise, and report this"));
        }
        lines = renamed.lines()?;
    }
    let mut options = std::fs::OpenOptions::new();
    let mut written = options.write(true).create_new(true).open(file).map_err(|error| {
        Failure::usage(anyhow::Error::new(error).context(format!("cannot create {}", file.display())))
            .next("an existing file is never overwritten; give another name")
    })?;
    written.write_all(&lines).with_context(|| format!("cannot write {}", file.display()))?;
    let (steps, told) = (cut.recorded.steps.len(), cut.story.len());
    let text = format!(
        "{}: {steps} steps, {} machine(s), {told} decisions told as in the whole recording, {} bytes\n\
         next: put it into crates/reveille/tests/recordings/, where every recording is played by the tests\n",
        file.display(),
        cut.machines,
        lines.len()
    );
    Ok(Answer::fine(text))
}

/// What the command line wants from one recording: of several rosters the one with its name, and times of day are on its day.
fn wanted(
    context: &Context,
    args: &cli::play::Replay,
    recording: &Recording,
    roster: Option<&Vec<Roster>>,
) -> Result<Wanted, Failure> {
    let time = |text: &Option<String>| text.as_deref().map(|text| time(context, text, recording)).transpose();
    let roster = match roster.map(Vec::as_slice) {
        None => None,
        Some([one]) => Some(one.clone()),
        Some(several) => {
            let name = &recording.header.roster.name;
            let named = several.iter().find(|roster| roster.name == *name);
            Some(named.cloned().ok_or_else(|| {
                Failure::usage(anyhow!("no roster of that file is called {name}, as the recorded one is"))
            })?)
        }
    };
    Ok(Wanted { from: time(&args.from)?, until: time(&args.until)?, machine: args.machine.clone(), roster })
}

fn other_roster(path: &Path) -> Result<Vec<Roster>, Failure> {
    let checked = roster::read_file(path).map_err(Failure::usage)?;
    Ok(checked.into_iter().map(|checked| checked.roster).collect())
}

/// A time: RFC 3339, or a time of day on the day on which the recording begins.
fn time(context: &Context, text: &str, recording: &Recording) -> Result<Time, Failure> {
    if let Ok(time) = serde_json::from_value(serde_json::Value::from(text)) {
        return Ok(time);
    }
    let wrong = || {
        Failure::usage(anyhow!("{text:?} is no time"))
            .next("say 2026-10-19T09:12:00Z, or 09:12 for the day on which the recording begins")
    };
    let clock: civil::Time = text.parse().map_err(|_| wrong())?;
    let begins =
        recording.begins().and_then(|at| Timestamp::from_millisecond(at.ms).ok()).ok_or_else(wrong)?;
    let day = begins.to_zoned(context.paper.zone.clone()).date();
    let at = day.to_datetime(clock).to_zoned(context.paper.zone.clone()).map_err(|_| wrong())?;
    Ok(Time::from_ms(at.timestamp().as_millisecond()))
}
