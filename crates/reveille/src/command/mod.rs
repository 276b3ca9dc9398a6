//! The commands: each asks, renders, and ends with a code. No command decides anything about a machine.
//!
//! ```text
//!  Cli ─▶ perform ─┬▶ roll, why, plan, incidents: look ─▶ view ─▶ render ─▶ Answer
//!                  ├▶ run, demo: the driver
//!                  ├▶ diagnose: logs and archives, read and judged
//!                  ├▶ replay: a recording through the engine again
//!                  └▶ pause, resume, init, completions, man: files and text
//! ```
//!
//! An answer is written in one go at the end, so that a reader who has seen enough (`| head`) troubles nobody.

mod agent;
mod catalogue;
pub(crate) mod collect;
mod compare;
mod demo;
mod diagnose;
mod doctor;
mod init;
mod invite;
mod join;
pub(crate) mod look;
mod looking;
mod manual;
mod pause;
mod replay;
mod run;
mod simulate;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::anyhow;
use reveille_core::model::id::RosterName;
use reveille_wire::report::{Document, Report};
use reveille_wire::roster::{self, CheckedRoster};
use tracing_subscriber::filter::LevelFilter;

use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::{Cli, Command, Common, LogFormat, Output, logging, place};
use crate::render::paper::Paper;

/// What a command has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// For standard output.
    pub(crate) text: String,
    /// How the process ends.
    pub(crate) exit: Exit,
}

impl Answer {
    /// A text, and all is well.
    pub(crate) const fn fine(text: String) -> Self {
        Self { text, exit: Exit::AllAnswer }
    }
}

/// What every command has at hand.
pub(crate) struct Context {
    /// Options of every command.
    pub(crate) common: Common,
    /// What standard output is.
    pub(crate) paper: Paper,
}

impl Context {
    /// Every roster of every file that was named.
    pub(crate) fn rosters(&self) -> Result<Vec<CheckedRoster>, Failure> {
        let mut all: Vec<CheckedRoster> = Vec::new();
        for file in &self.common.roster {
            all.extend(roster::read_file(file).map_err(Failure::usage)?);
        }
        let mut names = BTreeSet::new();
        for checked in &all {
            if !names.insert(checked.roster.name.clone()) {
                let name = &checked.roster.name;
                return Err(Failure::usage(anyhow!(
                    "two rosters are called {name}; each keeps its state under its name"
                ))
                .next("give one of them another metadata.name"));
            }
        }
        Ok(all)
    }

    /// The state folder of a roster.
    pub(crate) fn state_dir(&self, roster: &RosterName) -> Result<PathBuf, Failure> {
        place::state_dir(self.common.state.as_deref(), roster)
    }

    /// A report in the form that was asked for; `page` writes it for people.
    pub(crate) fn print(
        &self,
        report: Report,
        page: impl FnOnce(&Paper) -> String,
    ) -> Result<String, Failure> {
        let fail = |error| Failure::internal(anyhow::Error::new(error));
        match self.common.output {
            Output::Table => Ok(page(&self.paper)),
            Output::Json => Document::from(report).to_json().map_err(fail),
            Output::Yaml => Document::from(report).to_yaml().map_err(fail),
        }
    }

    /// Several rosters' answers as one text.
    pub(crate) fn join(&self, texts: &[String]) -> String {
        texts.join(match self.common.output {
            Output::Table => "\n",
            Output::Json => "",
            Output::Yaml => "---\n",
        })
    }
}

/// Does what was asked, and tells how the process ends.
pub(crate) fn main(cli: Cli, undumped: std::io::Result<()>) -> Exit {
    let (least, format) = match &cli.command {
        Command::Run(run) => (LevelFilter::INFO, run.log_format),
        Command::Agent(_) => (LevelFilter::INFO, LogFormat::Text),
        _ => (LevelFilter::ERROR, LogFormat::Text),
    };
    logging::start(least, format, cli.common.color);
    if let Err(error) = undumped {
        tracing::warn!("a crash of this process may leave a core dump, with credentials in it: {error}");
    }
    let paper = Paper::of_stdout(cli.common.color);
    let context = Context { common: cli.common, paper };
    match perform(&context, cli.command) {
        Ok(answer) => {
            say(&answer.text);
            answer.exit
        }
        Err(failure) => {
            complain(&failure);
            failure.exit()
        }
    }
}

fn perform(context: &Context, command: Command) -> Result<Answer, Failure> {
    match command {
        Command::Run(args) => on_runtime(run::run(context, &args)),
        Command::Roll(args) => on_runtime(looking::roll(context, &args)),
        Command::Why(args) => on_runtime(looking::why(context, &args)),
        Command::Plan => on_runtime(looking::plan(context)),
        Command::Incidents(args) => on_runtime(looking::incidents(context, &args)),
        Command::Pause(args) => pause::pause(context, &args),
        Command::Resume(args) => pause::resume(context, &args),
        Command::Init(args) => on_runtime(init::init(context, &args)),
        Command::Collect(args) => on_runtime(collect::collect(context, &args)),
        Command::Invite(args) => on_runtime(invite::invite(context, &args)),
        Command::Agent(args) => on_runtime(agent::agent(&args)),
        Command::Join(args) => on_runtime(join::join(context, &args)),
        Command::Demo(args) => on_runtime(demo::demo(context, &args)),
        Command::Doctor(args) => on_runtime(doctor::doctor(context, &args)),
        Command::Diagnose(args) => diagnose::diagnose(context, &args),
        Command::Simulate(args) => simulate::simulate(context, &args),
        Command::Replay(args) => replay::replay(context, &args),
        Command::Rbac(args) => {
            let wanted = reveille_kube::rbac::Wanted { cleanup: args.cleanup, join: args.join };
            let rights = reveille_kube::rbac::manifest(&args.service_account, &args.namespace, wanted);
            Ok(Answer::fine(rights))
        }
        Command::Completions(args) => Ok(manual::completions(args.shell)),
        Command::Man(args) => manual::man(&args),
    }
}

/// Everything runs on one thread; the ledger has its own.
fn on_runtime(work: impl Future<Output = Result<Answer, Failure>>) -> Result<Answer, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::internal(anyhow::Error::new(error).context("cannot start the runtime")))?;
    let answer = runtime.block_on(work);
    // Reads that nobody waits for any more must not hold up the end.
    runtime.shutdown_timeout(std::time::Duration::from_millis(200));
    answer
}

/// Writes to standard output. A reader that has gone away wanted no more: no error.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush())
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        tracing::error!("cannot write the answer: {error}");
    }
}

/// Writes to standard error; when even that is gone there is nobody left to tell.
pub(crate) fn complain(failure: &Failure) {
    drop(writeln!(std::io::stderr().lock(), "{failure}"));
}
