//! `simulate`: plays and explains a scenario, lists the built-in ones, or plays a generated run of faults.
//!
//! ```text
//!  FILE or NUMBER ─▶ sim::scenario::parse ─▶ play ─▶ page, exit 0 or 1
//!       └─ refused: line, reason, what to write ─▶ exit 64
//!  --policy, --compare ─▶ compare          --world rancher ─▶ rancher::simulated
//!  --seed ─▶ sim::chaos::ScenarioRun ─▶ Drive ─▶ what was broken, what was done, digest
//! ```
//!
//! The command reads one file at most and touches nothing else: no cluster, no cloud, no state folder.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

use anyhow::{Context as _, anyhow};
use reveille_core::model::time::Span;
use reveille_sim::chaos::{Happening, Rate, ScenarioRun};
use reveille_sim::drive::Drive;
use reveille_sim::scenario::{self, Ended, Filed, Line, Played, Scenario};
use serde::Serialize;

use super::{Answer, Context};
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::play::{Made, Simulate};
use crate::render::output_style::Tone;

/// The longest file that the command reads, bytes: a scenario is a page or two.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// `simulate`.
pub(crate) fn simulate(context: &Context, args: &Simulate) -> Result<Answer, Failure> {
    if let (Some(Made::Rancher), Some(seed)) = (args.world, args.seed) {
        return super::rancher::simulated::simulate(context, args, seed);
    }
    match (&args.scenario, args.seed) {
        (Some(wanted), _) => play(context, wanted),
        (None, Some(seed)) => make_up(context, args, seed),
        (None, None) if args.phrases => phrases(context),
        (None, None) => list(context),
    }
}

/// A scenario by its file or number, with its name.
pub(super) fn read_scenario(wanted: &str) -> Result<(String, Scenario), Failure> {
    let filed = scenario::library().iter().find(|filed| filed.number().eq_ignore_ascii_case(wanted));
    let (name, text) = match filed {
        Some(filed) => (filed.name.to_owned(), filed.text.to_owned()),
        None => (wanted.to_owned(), read(wanted)?),
    };
    let scenario = scenario::parse(&text).map_err(|refusal| refused(&name, refusal))?;
    Ok((name, scenario))
}

fn refused(name: &str, refusal: scenario::Refusal) -> Failure {
    Failure::usage(anyhow::Error::new(refusal).context(format!("cannot play {name}")))
}

fn play(context: &Context, wanted: &str) -> Result<Answer, Failure> {
    let (name, scenario) = read_scenario(wanted)?;
    let played = match scenario.not_yet {
        Some(_) => None,
        None => Some(scenario::play(&scenario).map_err(|refusal| refused(&name, refusal))?),
    };
    let exit = match played.as_ref().is_none_or(Played::holds) {
        true => Exit::NoProblem,
        false => Exit::Problems,
    };
    let text = context.print_own(&told(&scenario, played.as_ref()), || {
        colored(context, &scenario::transcript(&scenario, played.as_ref()))
    })?;
    Ok(Answer { text, exit })
}

fn read(wanted: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let taken = if wanted == "-" {
        std::io::stdin().lock().take(FILE_BYTES_MAX).read_to_string(&mut text)
    } else {
        std::fs::File::open(wanted).and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text))
    };
    let read = taken.with_context(|| format!("cannot read the scenario {wanted}"));
    let next = "name a file, or a number that reveille simulate --list shows";
    read.map_err(|error| Failure::usage(error).next(next))?;
    if text.len() as u64 == FILE_BYTES_MAX {
        return Err(Failure::usage(anyhow!("{wanted} is longer than a scenario can be")));
    }
    Ok(text)
}

/// Marks the expectations that failed, where colours are on.
fn colored(context: &Context, page: &str) -> String {
    let tone = |line: &str| match line.trim_start() {
        line if line.starts_with('✓') => Some(Tone::Good),
        line if line.starts_with('✗') || line.contains("  BROKEN  ") => Some(Tone::Bad),
        _ if line.contains("  world     ") || line.contains("  process   ") => Some(Tone::Faint),
        _ => None,
    };
    let lines = page
        .lines()
        .map(|line| tone(line).map_or_else(|| line.to_owned(), |tone| context.paper.tone(tone, line)));
    lines.map(|line| line + "\n").collect()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PlayReport {
    kind: &'static str,
    number: String,
    title: String,
    source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_yet: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    differs: Option<String>,
    holds: Option<bool>,
    lasted_s: i64,
    calls: u64,
    timeline: Vec<LineReport>,
    expected: Vec<ExpectedReport>,
    digest: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LineReport {
    at_s: f64,
    side: &'static str,
    who: Vec<String>,
    text: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExpectedReport {
    line: usize,
    text: String,
    holds: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instead: Option<String>,
}

fn seconds(span: Span) -> f64 {
    span.ms as f64 / 1000.0
}

fn told(scenario: &Scenario, played: Option<&Played>) -> PlayReport {
    let line = |line: &Line| LineReport {
        at_s: seconds(line.at),
        side: line.side.name(),
        who: line.who.clone(),
        text: line.text.clone(),
    };
    let expected = |expected: &scenario::Expected| {
        let (holds, at_s, instead) = match &expected.ended {
            Ended::Held(at) => (true, at.map(seconds), None),
            Ended::Failed(at, instead) => (false, Some(seconds(*at)), Some(instead.clone())),
        };
        ExpectedReport { line: expected.line, text: expected.text.clone(), holds, at_s, instead }
    };
    PlayReport {
        kind: "PlayReport",
        number: scenario.number.clone(),
        title: scenario.title.clone(),
        source: scenario.source.clone(),
        not_yet: scenario.not_yet.clone(),
        differs: scenario.differs.clone(),
        holds: played.map(Played::holds),
        lasted_s: played.map_or(0, |played| played.lasted.ms / 1000),
        calls: played.map_or(0, |played| played.counts.calls),
        timeline: played.map(|played| played.timeline.iter().map(line).collect()).unwrap_or_default(),
        expected: played.map(|played| played.expected.iter().map(expected).collect()).unwrap_or_default(),
        digest: played.map_or_else(String::new, |played| played.digest.to_string()),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListReport {
    kind: &'static str,
    scenarios: Vec<ListedReport>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedReport {
    number: String,
    title: String,
    file: &'static str,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// The scenario language, as its own tables list it.
fn phrases(context: &Context) -> Result<Answer, Failure> {
    let all: BTreeMap<&str, Vec<&str>> = scenario::phrases().into_iter().collect();
    let text = context.print_own(&all, || {
        let section = |(name, forms): &(&str, Vec<&str>)| {
            let forms: String = forms.iter().map(|form| format!("  {form}\n")).collect();
            format!("{}\n{forms}\n", context.paper.tone(Tone::Strong, name))
        };
        let sections: String = scenario::phrases().iter().map(section).collect();
        format!(
            "{sections}{{slots}} are filled in, of [this|that] one is chosen; docs/internals/scenarios.md explains.\n"
        )
    })?;
    Ok(Answer::fine(text))
}

fn list(context: &Context) -> Result<Answer, Failure> {
    let listed = |filed: &Filed| {
        let scenario =
            filed.scenario().with_context(|| format!("cannot read the scenario {}", filed.name))?;
        let (state, reason) = match (scenario.not_yet, scenario.differs) {
            (Some(reason), _) => ("not yet", Some(reason)),
            (None, Some(reason)) => ("differs", Some(reason)),
            (None, None) => ("plays", None),
        };
        Ok(ListedReport { number: scenario.number, title: scenario.title, file: filed.name, state, reason })
    };
    let scenarios: anyhow::Result<Vec<_>> = scenario::library().iter().map(listed).collect();
    let report = ListReport { kind: "ScenarioList", scenarios: scenarios.map_err(Failure::internal)? };
    let text = context.print_own(&report, || {
        let line = |listed: &ListedReport| {
            let reason = listed.reason.as_ref().map_or_else(String::new, |reason| {
                let note = format!("        {}: {reason}\n", listed.state);
                context.paper.tone(Tone::Doubt, note)
            });
            format!("{:<6}  {}\n{reason}", listed.number, listed.title)
        };
        let not_yet = report.scenarios.iter().filter(|listed| listed.state == "not yet").count();
        let lines: String = report.scenarios.iter().map(line).collect();
        let all = report.scenarios.len();
        format!("{lines}\n{all} scenarios: {} are played, {not_yet} not yet\n", all - not_yet)
    })?;
    Ok(Answer::fine(text))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RunReport {
    kind: &'static str,
    seed: u64,
    machines: u32,
    lasted_s: i64,
    happenings: BTreeMap<String, u32>,
    steps: u64,
    reads: u64,
    records: u64,
    calls: BTreeMap<String, u32>,
    answer: usize,
    of: usize,
    violations: Vec<String>,
    harms: Vec<String>,
    digest: String,
}

/// The generated run of a seed, with the faults of the command line.
pub(super) fn scenario_run(args: &Simulate, seed: u64) -> Result<ScenarioRun, Failure> {
    let length = Span::from_s((args.days * 86_400.0) as i64);
    let mut scenario_run =
        ScenarioRun::random(seed, Rate { machines: args.machines, length, ..Rate::default() });
    let wanted: BTreeSet<&str> = args.faults.iter().map(String::as_str).collect();
    if !wanted.is_empty() {
        scenario_run.happenings.retain(|(_, happening)| wanted.contains(name(happening)));
        let there: BTreeSet<&str> =
            scenario_run.happenings.iter().map(|(_, happening)| name(happening)).collect();
        if let Some(missing) = wanted.iter().find(|wanted| !there.contains(**wanted)) {
            let error = anyhow!("no fault called {missing} happens in seed {seed} within {} days", args.days);
            return Err(Failure::usage(error).next(
                "the page of a course without --faults has the names; try a longer one or another seed",
            ));
        }
    }
    Ok(scenario_run)
}

const fn name(happening: &Happening) -> &'static str {
    match happening {
        Happening::Fault(fault) => fault.name(),
        Happening::Mishap(_) => "mishap",
        Happening::KubeletRestart(_) => "kubelet-restart",
    }
}

fn make_up(context: &Context, args: &Simulate, seed: u64) -> Result<Answer, Failure> {
    let scenario_run = scenario_run(args, seed)?;
    let mut happenings: BTreeMap<String, u32> = BTreeMap::new();
    for (_, happening) in &scenario_run.happenings {
        *happenings.entry(name(happening).to_owned()).or_default() += 1;
    }
    let mut drive = scenario_run.stage();
    drive.run_for(scenario_run.length + Span::from_min(30));
    let report = run_report(args, seed, &drive, happenings, scenario_run.length);
    let exit = match report.violations.is_empty() && report.harms.is_empty() {
        true => Exit::NoProblem,
        false => Exit::Problems,
    };
    let text = context.print_own(&report, || run_page(context, &report))?;
    Ok(Answer { text, exit })
}

fn run_report(
    args: &Simulate,
    seed: u64,
    drive: &Drive,
    happenings: BTreeMap<String, u32>,
    length: Span,
) -> RunReport {
    let mut calls: BTreeMap<String, u32> = BTreeMap::new();
    for called in drive.world.calls() {
        let what = called.call.to_string();
        let words: Vec<&str> = what.split(' ').take(2).collect();
        *calls.entry(words.join(" ")).or_default() += 1;
    }
    let ours = || drive.world.machines().into_iter().filter(|machine| machine.pool.is_some());
    RunReport {
        kind: "CourseReport",
        seed,
        machines: args.machines,
        lasted_s: length.ms / 1000,
        happenings,
        steps: drive.counts().steps,
        reads: drive.counts().looks,
        records: drive.counts().records,
        calls,
        answer: ours().filter(|machine| machine.well).count(),
        of: ours().count(),
        violations: drive.violations().iter().map(ToString::to_string).collect(),
        harms: drive.world.harms().iter().map(|harm| harm.what.clone()).collect(),
        digest: drive.digest().to_string(),
    }
}

fn run_page(context: &Context, report: &RunReport) -> String {
    let counted = |counts: &BTreeMap<String, u32>| match counts.is_empty() {
        true => "none".to_owned(),
        false => counts.iter().map(|(what, times)| format!("{times} {what}")).collect::<Vec<_>>().join(", "),
    };
    let sum: u32 = report.happenings.values().sum();
    let mut page = format!(
        "seed {}: {} machines for {}\n\nhappened   {sum}: {}\ncalls      {}\nasked      {} steps, {} reads, {} records\nat the end {} of {} machines answer\n",
        report.seed,
        report.machines,
        Span::from_s(report.lasted_s),
        counted(&report.happenings),
        counted(&report.calls),
        report.steps,
        report.reads,
        report.records,
        report.answer,
        report.of,
    );
    for broken in report.violations.iter().chain(&report.harms) {
        page += &format!("{}\n", context.paper.tone(Tone::Bad, format!("✗ {broken}")));
    }
    if report.violations.is_empty() && report.harms.is_empty() {
        page += "✓ the twelve invariants hold after every step, and no healthy machine is harmed\n";
    }
    page + &format!("\ndigest     {}\n", report.digest)
}
