//! The commands: each one asks, renders, and returns an exit code. No command decides anything about a machine.
//!
//! ```text
//!  Cli ─▶ perform ─┬▶ status, why, plan, incidents: query ─▶ view ─▶ render ─▶ Answer
//!                  ├▶ run, demo: the driver
//!                  ├▶ diagnose, explain: logs and archives, read and judged; the page of a cause
//!                  ├▶ replay: a recording through the engine again
//!                  └▶ pause, resume, init, completions, man: files and text
//! ```
//!
//! A command writes its answer at once at the end, so that a reader that stops early (`| head`) causes no error.

mod agent;
mod catalogue;
#[cfg(feature = "controller")]
pub(crate) mod collect;
#[cfg(feature = "controller")]
mod compare;
#[cfg(feature = "controller")]
mod controller;
#[cfg(feature = "controller")]
mod demo;
mod diagnose;
mod doctor;
mod explain;
#[cfg(feature = "controller")]
mod hot;
#[cfg(feature = "controller")]
mod init;
#[cfg(feature = "controller")]
mod invite;
mod join;
#[cfg(feature = "controller")]
mod listed;
#[cfg(feature = "controller")]
mod manual;
#[cfg(feature = "controller")]
mod pause;
#[cfg(feature = "controller")]
mod printing;
#[cfg(feature = "controller")]
mod queries;
#[cfg(feature = "controller")]
pub(crate) mod query;
#[cfg(feature = "controller")]
mod rancher;
#[cfg(feature = "controller")]
mod replay;
#[cfg(feature = "controller")]
mod run;
#[cfg(feature = "controller")]
mod simulate;
mod version;
#[cfg(feature = "controller")]
mod without_roster;

use std::io::Write as _;

use anyhow::anyhow;
use reveille_wire::report::{Document, Report};
use serde::Serialize;
use tracing_subscriber::filter::LevelFilter;

use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::{Cli, Command, Common, LogFormat, Output, logging};
use crate::render::output_style::Paper;

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// For standard output.
    pub(crate) text: String,
    /// The exit code of the process.
    pub(crate) exit: Exit,
}

impl Answer {
    /// A text, with exit code 0.
    pub(crate) const fn fine(text: String) -> Self {
        Self { text, exit: Exit::NoProblem }
    }
}

/// What every command can use.
pub(crate) struct Context {
    /// Options of every command.
    pub(crate) common: Common,
    /// The rosters of the command line.
    #[cfg(feature = "controller")]
    pub(crate) rosters: crate::cli::controller::Rosters,
    /// The properties of standard output.
    pub(crate) paper: Paper,
}

impl Context {
    /// A report in the format of the command line; `page` writes it for people.
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

    /// Output that no other program reads back, in the format of the command line.
    pub(crate) fn print_own<T: Serialize>(
        &self,
        report: &T,
        page: impl FnOnce() -> String,
    ) -> Result<String, Failure> {
        let fail = |error: anyhow::Error| Failure::internal(error.context("cannot write the report"));
        match self.common.output {
            Output::Table => Ok(page()),
            Output::Json => serde_json::to_string_pretty(report)
                .map(|text| text + "\n")
                .map_err(|error| fail(anyhow::Error::new(error))),
            Output::Yaml => serde_saphyr::to_string(report).map_err(|error| fail(anyhow::Error::new(error))),
        }
    }
}

/// Runs the command, and returns the exit code.
pub(crate) fn main(cli: Cli, undumped: std::io::Result<()>) -> Exit {
    let (least, format) = match &cli.command {
        #[cfg(feature = "controller")]
        Command::Controller(crate::cli::controller::Command::Run(run)) => (LevelFilter::INFO, run.log_format),
        Command::Agent(_) => (LevelFilter::INFO, LogFormat::Text),
        _ => (LevelFilter::ERROR, LogFormat::Text),
    };
    logging::start(least, format, cli.common.color);
    if let Err(error) = undumped {
        tracing::warn!("a crash of this process may leave a core dump, with credentials in it: {error}");
    }
    let paper = Paper::of_stdout(cli.common.color);
    let context = Context {
        common: cli.common,
        #[cfg(feature = "controller")]
        rosters: cli.rosters,
        paper,
    };
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
    if let (Some(name), Output::Json | Output::Yaml) = (has_one_form(&command), context.common.output) {
        let refused = anyhow!("reveille {name} prints text only");
        return Err(Failure::usage(refused).next("run it without --output (-o)"));
    }
    match command {
        #[cfg(feature = "controller")]
        Command::Controller(command) => controller::perform(context, command),
        Command::Agent(args) => on_runtime(agent::agent(&args)),
        Command::Join(args) => on_runtime(join::join(context, &args)),
        Command::Doctor(args) => on_runtime(doctor::doctor(context, &args)),
        Command::Diagnose(args) => diagnose::diagnose(context, &args),
        Command::Explain(args) => explain::explain(context, &args),
        Command::Version => version::version(context),
        #[cfg(feature = "controller")]
        Command::Completions(args) => Ok(manual::completions(args.shell)),
        #[cfg(feature = "controller")]
        Command::Man(args) => manual::man(&args),
    }
}

/// The name of a command whose answer has one form, so that it cannot be printed in another.
const fn has_one_form(command: &Command) -> Option<&'static str> {
    match command {
        #[cfg(feature = "controller")]
        Command::Controller(command) => controller::has_one_form(command),
        Command::Agent(_) => Some("agent"),
        #[cfg(feature = "controller")]
        Command::Completions(_) => Some("completions"),
        #[cfg(feature = "controller")]
        Command::Man(_) => Some("man"),
        Command::Join(_)
        | Command::Doctor(_)
        | Command::Diagnose(_)
        | Command::Explain(_)
        | Command::Version => None,
    }
}

/// The command runs on one thread; the ledger has its own.
fn on_runtime(work: impl Future<Output = Result<Answer, Failure>>) -> Result<Answer, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::internal(anyhow::Error::new(error).context("cannot start the runtime")))?;
    let answer = runtime.block_on(work);
    // Reads whose result is no longer needed must not delay the end.
    runtime.shutdown_timeout(std::time::Duration::from_millis(200));
    answer
}

/// Writes to standard output. A reader that closed the pipe wants no more, so this is no error.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush())
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        tracing::error!("cannot write the answer: {error}");
    }
}

/// Writes to standard error; an error there is ignored, because no other output is left.
pub(crate) fn complain(failure: &Failure) {
    drop(writeln!(std::io::stderr().lock(), "{failure}"));
}
