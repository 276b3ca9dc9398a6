//! The reading commands: `status`, `why`, `plan`, `incidents`.
//!
//! The command first asks a running controller. Without a controller or its answer, it runs a one-time look. The report
//! has the same form either way; a note on standard error names the differences. The report itself says that a controller
//! runs and did not answer, because a program that compares two reports must know that the second one knows less.
//! Rancher's records, where a roster names a Rancher, are read in both cases ([`super::rancher::query`]).

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use anyhow::anyhow;
use indicatif::{ProgressBar, ProgressStyle};
use reveille_core::diagnose::fault::Fault;
use reveille_core::diagnose::faults;
use reveille_core::diagnose::gathered::{Gathered, evidence_query};
use reveille_core::diagnose::machine_state::MachineState;
use reveille_core::effect::Look;
use reveille_core::event::Answer as Read;
use reveille_core::model::incident::{FaultKind, Finding, MachineKey};
use reveille_diagnose::Judge;
use reveille_wire::report::{CollectedReport, MachineReport, Report};
use reveille_wire::roster::CheckedRoster;

use super::query::{self, Controller, QueryResult};
use super::rancher::query::{RancherRecords, read_records};
use super::without_roster::Asked as AskedRosters;
use super::{Answer, Context, printing};
use crate::cli::controller::Reach;
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
    every_roster(context, &args.reach, &Ask::Status, args.all).await
}

/// `plan`.
pub(crate) async fn plan(context: &Context, args: &cli::controller::Plan) -> Result<Answer, Failure> {
    every_roster(context, &args.reach, &Ask::Plan, false).await
}

/// `incidents`.
pub(crate) async fn incidents(
    context: &Context,
    args: &cli::controller::Incidents,
) -> Result<Answer, Failure> {
    every_roster(context, &Reach::default(), &Ask::Incidents { all: args.all }, args.all).await
}

async fn every_roster(context: &Context, reach: &Reach, ask: &Ask, all: bool) -> Result<Answer, Failure> {
    let mut texts = Vec::new();
    let mut exit = Exit::NoProblem;
    let asked = context.asked(reach).await?;
    for checked in &asked.rosters {
        let (reply, records) = futures::join!(reply(context, &asked, checked, ask), records(checked, ask));
        let (reply, is_partial) = reply?;
        let Reply::Report(mut report) = reply else {
            return Err(Failure::internal(anyhow!(
                "a status report was asked for and a machine was answered"
            )));
        };
        if let (Report::StatusReport(status), Some(records)) = (&mut *report, records) {
            status.rancher = Some(Box::new(records.of_all()));
        }
        let (text, code) = printing::print(context, *report, all)?;
        texts.push(text);
        exit = exit.max(code).max(if is_partial { Exit::CannotTell } else { Exit::NoProblem });
    }
    Ok(Answer { text: context.join(&texts), exit })
}

/// `why`.
pub(crate) async fn why(context: &Context, args: &cli::controller::Why) -> Result<Answer, Failure> {
    let ask = Ask::Why { machine: args.machine.clone(), timeline: args.timeline };
    let (mut alike, mut unread) = (Vec::new(), Vec::new());
    let asked = context.asked(&args.reach).await?;
    let count = asked.rosters.len();
    for checked in &asked.rosters {
        let (reply, records) = futures::join!(reply(context, &asked, checked, &ask), records(checked, &ask));
        match reply?.0 {
            Reply::Report(mut report) => {
                if let Report::WhyReport(why) = &mut *report {
                    why.collected = collected(context, &why.machine);
                    why.rancher = records.map(|records| Box::new(records.of(&why.machine)));
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
async fn records(checked: &CheckedRoster, ask: &Ask) -> Option<RancherRecords> {
    match (ask, &checked.rancher) {
        (Ask::Status | Ask::Why { .. }, Some(rancher)) => Some(read_records(rancher, &checked.cluster).await),
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

/// Asks the controller, or runs a look. True where something of the machines was left out of it.
async fn reply(
    context: &Context,
    asked: &AskedRosters,
    checked: &CheckedRoster,
    ask: &Ask,
) -> Result<(Reply, bool), Failure> {
    let state_dir = asked.state_dir(context, checked)?;
    if let Some(reply) = client::ask(&state_dir, ask).await {
        return Ok((reply, false));
    }
    let judge = context.judge()?;
    let progress = progress(checked);
    let result = query::query(checked, &state_dir, &judge).await;
    let better = match ask {
        Ask::Why { machine, .. } => gather(&result, &judge, machine).await,
        _ => None,
    };
    progress.finish_and_clear();
    note(context, asked, &result);
    let asked = Asked { as_if_acting: true, better: better.as_deref(), ..Asked::default() };
    Ok((answer(&result.state, ask, &asked), result.is_partial))
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

fn note(context: &Context, asked: &AskedRosters, result: &QueryResult) {
    let for_people = context.common.output == Output::Table;
    let mut notes = if for_people { result.notes.clone() } else { Vec::new() };
    match result.controller {
        Controller::Runs => notes.push(format!(
            "a controller runs and did not answer within {} s; this is a look of our own, which knows less: \
             it counts every wait from now on, so what is held or under way may be shown as waiting",
            control_socket::WITHIN.as_secs()
        )),
        Controller::Stopped | Controller::Never if for_people && asked.is_without_roster => notes.push(
            "there is no roster: this is what the Nodes and machine records tell, once. Write a roster with: reveille init"
                .to_owned(),
        ),
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
async fn gather(result: &QueryResult, judge: &Judge, word: &str) -> Option<Vec<Finding>> {
    let context = result.state.context();
    let Found::One(key) = find::machine(&context, word) else { return None };
    let machine = machine::one(&context, key);
    let (Some(MachineState::Absent(absence)), Some((cloud, seen)), MachineKey::Instance(name, id)) =
        (&machine.machine_state, machine.seen, &machine.key)
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
    let adapters = &result.adapters;
    let actions = query::ask(adapters, judge, Look::Actions(name.clone(), id.clone())).await;
    let mut gathered = Gathered { asked_at: Some(context.now), ..Gathered::default() };
    if let Ok(Read::Actions(actions)) = actions
        && let Some(last) = actions.first()
    {
        let by = last.user.as_deref().unwrap_or("an unnamed user");
        gathered.last_action = Some(format!("{} at {} by user {by}", last.action, last.started).into());
    }
    if let Some(words) = evidence_query(absence.kind, name, seen) {
        match query::ask(adapters, judge, words).await {
            Ok(Read::LogFindings(log_findings)) => gathered.take_log_findings(absence.kind, &log_findings),
            Ok(Read::NoConsole(why)) => gathered.log_findings = Some(Err(why)),
            Ok(_) => {}
            Err(error) => gathered.log_findings = Some(Err(error.text)),
        }
    }
    let mut fault = Fault::from(absence.clone());
    faults::enrich(&mut fault, &gathered, context.roster, cloud, seen, context.now);
    Some(std::iter::once(fault.finding).chain(fault.more).collect())
}
