//! The reading commands: `status`, `why`, `plan`, `incidents`.
//!
//! The command first asks a running controller. Without a controller or its answer, it runs a one-time look. The report
//! has the same form either way; a note on standard error names the differences. The report itself says that a controller
//! runs and did not answer, because a program that compares two reports must know that the second one knows less.
//! Rancher's records, where a roster names a Rancher, are read in both cases ([`super::rancher::look`]).

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use anyhow::anyhow;
use indicatif::{ProgressBar, ProgressStyle};
use reveille_core::diagnose::fault::Fault;
use reveille_core::diagnose::faults;
use reveille_core::diagnose::gathered::{Gathered, hearing};
use reveille_core::diagnose::standing::Standing;
use reveille_core::effect::Look;
use reveille_core::event::Answer as Read;
use reveille_core::model::incident::{FaultKind, Finding, MachineKey};
use reveille_diagnose::Judge;
use reveille_wire::report::{CollectedReport, MachineReport, Report};
use reveille_wire::roster::CheckedRoster;

use super::look::{self, Controller, Looked};
use super::rancher::look::{Beside, beside as beside_rancher};
use super::{Answer, Context, printing};
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::{self, Output};
use crate::control_socket::{self, client};
use crate::registration::evidence;
use crate::view::ask::{Ask, Asked, Reply, answer};
use crate::view::find::{self, Found};
use crate::view::machine;

/// The most results of `collect` that a report on a machine shows, the newest ones.
const COLLECTED_MAX: usize = 5;

/// `status`.
pub(crate) async fn status(context: &Context, args: &cli::controller::Status) -> Result<Answer, Failure> {
    every_roster(context, &Ask::Roll, args.all).await
}

/// `plan`.
pub(crate) async fn plan(context: &Context) -> Result<Answer, Failure> {
    every_roster(context, &Ask::Plan, false).await
}

/// `incidents`.
pub(crate) async fn incidents(
    context: &Context,
    args: &cli::controller::Incidents,
) -> Result<Answer, Failure> {
    every_roster(context, &Ask::Incidents { all: args.all }, args.all).await
}

async fn every_roster(context: &Context, ask: &Ask, all: bool) -> Result<Answer, Failure> {
    let mut texts = Vec::new();
    let mut exit = Exit::NoProblem;
    for checked in context.rosters()? {
        let (reply, beside) = futures::join!(reply(context, &checked, ask), records(&checked, ask));
        let Reply::Report(mut report) = reply? else {
            return Err(Failure::internal(anyhow!("a roll was asked for and a machine was answered")));
        };
        if let (Report::RollReport(roll), Some(beside)) = (&mut *report, beside) {
            roll.rancher = Some(Box::new(beside.of_all()));
        }
        let (text, code) = printing::print(context, *report, all)?;
        texts.push(text);
        exit = exit.max(code);
    }
    Ok(Answer { text: context.join(&texts), exit })
}

/// `why`.
pub(crate) async fn why(context: &Context, args: &cli::controller::Why) -> Result<Answer, Failure> {
    let ask = Ask::Why { machine: args.machine.clone(), timeline: args.timeline };
    let (mut alike, mut unread) = (Vec::new(), Vec::new());
    let rosters = context.rosters()?;
    let count = rosters.len();
    for checked in rosters {
        let (reply, beside) = futures::join!(reply(context, &checked, &ask), records(&checked, &ask));
        match reply? {
            Reply::Report(mut report) => {
                if let Report::WhyReport(why) = &mut *report {
                    why.collected = collected(context, &why.machine);
                    why.rancher = beside.map(|beside| Box::new(beside.of(&why.machine)));
                }
                let (text, exit) = printing::print(context, *report, true)?;
                return Ok(Answer { text, exit });
            }
            Reply::Several(names) => {
                let error = anyhow!(
                    "{:?} is not one machine but {}: {}",
                    args.machine,
                    names.len(),
                    names.join(", ")
                );
                return Err(Failure::usage(error).next("name it by its id"));
            }
            Reply::NoMachine(names) => alike.extend(names),
            Reply::Unread(sources) => unread.extend(sources),
        }
    }
    if !unread.is_empty() {
        let error =
            anyhow!("cannot look up machine {:?}: no reliable data from {}", args.machine, unread.join(", "));
        return Err(Failure::cannot_tell(error)
            .next("make these sources readable, then ask again; reveille status lists all of them"));
    }
    let whose = if count == 1 { "the roster".to_owned() } else { format!("{count} rosters") };
    let failure = Failure::usage(anyhow!("no machine of {whose} is called {:?}", args.machine));
    Err(match alike.as_slice() {
        [] => failure.next("reveille status --all lists every machine"),
        [one] => failure.next(format!("did you mean {one}?")),
        several => failure.next(format!("did you mean one of {}?", several.join(", "))),
    })
}

/// Rancher's records of the roster's cluster, for the questions that show them.
async fn records(checked: &CheckedRoster, ask: &Ask) -> Option<Beside> {
    match (ask, &checked.rancher) {
        (Ask::Roll | Ask::Why { .. }, Some(rancher)) => Some(beside_rancher(rancher, &checked.cluster).await),
        _ => None,
    }
}

/// What the machine's agent sent because an operator asked, as far as a registration server on this host kept it.
fn collected(context: &Context, machine: &MachineReport) -> Vec<CollectedReport> {
    let Ok(directory) = context.registration_dir() else { return Vec::new() };
    let its = |report: &CollectedReport| {
        report.instance.is_some() && report.instance == machine.instance
            || machine.node.as_ref() == Some(&report.node)
    };
    let mut all = evidence::kept(&evidence::folder(&directory));
    all.retain(its);
    all.split_off(all.len().saturating_sub(COLLECTED_MAX))
}

/// Asks the controller, or runs a look.
async fn reply(context: &Context, checked: &CheckedRoster, ask: &Ask) -> Result<Reply, Failure> {
    let state_dir = context.state_dir(&checked.roster.name)?;
    if let Some(reply) = client::ask(&state_dir, ask).await {
        return Ok(reply);
    }
    let judge = context.judge()?;
    let progress = progress(checked);
    let looked = look::look(checked, &state_dir, &judge).await;
    let better = match ask {
        Ask::Why { machine, .. } => gather(&looked, &judge, machine).await,
        _ => None,
    };
    progress.finish_and_clear();
    note(context, &looked);
    let asked = Asked { as_if_acting: true, better: better.as_deref(), ..Asked::default() };
    Ok(answer(&looked.state, ask, &asked))
}

/// A progress bar, only on a terminal, and only while nothing else is printed.
fn progress(checked: &CheckedRoster) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let clouds: Vec<&str> = checked.clouds.keys().map(|name| name.as_str()).collect();
    let bar = ProgressBar::new_spinner().with_message(format!("asks the cluster and {}", clouds.join(", ")));
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

fn note(context: &Context, looked: &Looked) {
    let for_people = context.common.output == Output::Table;
    let mut notes = if for_people { looked.notes.clone() } else { Vec::new() };
    match looked.controller {
        Controller::Runs => notes.push(format!(
            "a controller runs and did not answer within {} s; this is a look of our own, which knows less: \
             it counts every wait from now on, so what is held or under way may be shown as waiting",
            control_socket::WITHIN.as_secs()
        )),
        Controller::Stopped | Controller::Never if for_people => {
            notes.push(
                "no controller runs for this roster; this is a one-time check. Start it with: reveille run"
                    .to_owned(),
            );
        }
        Controller::Stopped | Controller::Never => {}
    }
    let mut err = std::io::stderr().lock();
    for note in notes {
        drop(writeln!(err, "note: {note}"));
    }
}

/// Reads at once what a controller would read at the deadline of the machine: action log, console, the cluster's view.
async fn gather(looked: &Looked, judge: &Judge, word: &str) -> Option<Vec<Finding>> {
    let context = looked.state.context();
    let Found::One(key) = find::machine(&context, word) else { return None };
    let machine = machine::one(&context, key);
    let (Some(Standing::Absent(absence)), Some((cloud, seen)), MachineKey::Instance(name, id)) =
        (&machine.standing, machine.seen, &machine.key)
    else {
        return None;
    };
    let worth_reading = matches!(
        absence.kind,
        FaultKind::NeverJoined | FaultKind::Vanished | FaultKind::NotReady | FaultKind::Errored
    );
    let case = machine.absence()?;
    if !worth_reading || case.gathered.asked_at.is_some() {
        return None;
    }
    let adapters = &looked.adapters;
    let actions = look::ask(adapters, judge, Look::Actions(name.clone(), id.clone())).await;
    let mut gathered = Gathered { asked_at: Some(context.now), ..Gathered::default() };
    if let Ok(Read::Actions(actions)) = actions
        && let Some(last) = actions.first()
    {
        let by = last.user.as_deref().unwrap_or("an unnamed user");
        gathered.last_action = Some(format!("{} at {} by user {by}", last.action, last.started).into());
    }
    if let Some(words) = hearing(absence.kind, name, seen) {
        match look::ask(adapters, judge, words).await {
            Ok(Read::Testimony(testimony)) => gathered.take_testimony(absence.kind, &testimony),
            Ok(Read::NoConsole(why)) => gathered.testimony = Some(Err(why)),
            Ok(_) => {}
            Err(error) => gathered.testimony = Some(Err(error.text)),
        }
    }
    let mut fault = Fault::from(absence.clone());
    faults::enrich(&mut fault, &gathered, context.roster, cloud, seen, context.now);
    Some(std::iter::once(fault.finding).chain(fault.more).collect())
}
