//! The program under test: built once, run as its users run it.
//!
//! `run` is started in the background with its log in a file; it can be killed at any instruction and started again on
//! the same state folder. The commands that look are run to their end; their exit code and their JSON are the answer.

use std::fmt::{self, Display, Formatter};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use reveille_wire::report::{Document, IncidentsReport, PlanReport, Report, StatusReport};

use crate::ledger::Ledger;
use crate::process::{self, Background, Ended};

/// Compiling it from nothing takes a while on two cores.
const BUILD_WITHIN: Duration = Duration::from_secs(1800);
/// A command that looks; it gives up on a silent source before.
const LOOK_WITHIN: Duration = Duration::from_secs(150);
/// `run` finishes what is on its way when it is told to stop.
const STOP_WITHIN: Duration = Duration::from_secs(60);

/// The built program.
#[derive(Clone, Debug)]
pub struct Reveille {
    program: PathBuf,
    on_machines: PathBuf,
}

/// What `diagnose` made of a folder.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    /// Its exit code.
    pub code: Option<i32>,
    /// The causes, the one to act on first.
    pub causes: Vec<String>,
    /// The quoted lines of each, as JSON.
    pub evidence: Vec<String>,
}

impl Display for Diagnosis {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "exit {:?}", self.code)?;
        self.causes
            .iter()
            .zip(&self.evidence)
            .try_for_each(|(cause, lines)| write!(f, "; {cause} after {lines}"))
    }
}

impl Reveille {
    /// Builds it with the cargo that runs us; `REVEILLE_BIN` names one that is built already, and `REVEILLE_NODE_BIN` the one
    /// that machines get, where it is another.
    ///
    /// # Errors
    /// When it does not compile.
    pub fn build() -> Result<Self> {
        let program = match std::env::var_os("REVEILLE_BIN") {
            Some(program) => program.into(),
            None => Self::built()?,
        };
        let on_machines =
            std::env::var_os("REVEILLE_NODE_BIN").map_or_else(|| program.clone(), PathBuf::from);
        Ok(Self { program, on_machines })
    }

    fn built() -> Result<PathBuf> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args([
            "build",
            "--quiet",
            "--package",
            "reveille",
            "--message-format",
            "json-render-diagnostics",
        ]);
        command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
        let ended = process::run(command, None, BUILD_WITHIN)?;
        ensure!(ended.code == Some(0), "reveille does not compile: {}", ended.stderr);
        let messages =
            ended.stdout.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let mut programs = messages.filter(|message| message["target"]["name"] == "reveille");
        let program = programs.find_map(|message| message["executable"].as_str().map(PathBuf::from));
        program.context("cargo names no program called reveille")
    }

    /// The program's file.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The file of the program that machines get.
    pub fn on_machines(&self) -> &Path {
        &self.on_machines
    }

    /// Runs a command of it to its end.
    ///
    /// # Errors
    /// When it does not end in time.
    pub fn ask(&self, place: &Place, arguments: &[&str]) -> Result<Ended> {
        process::run(self.command(place, arguments), None, LOOK_WITHIN)
    }

    /// What it makes of a folder of logs.
    ///
    /// # Errors
    /// When it does not end in time or says no JSON.
    pub fn diagnose(&self, folder: &Path) -> Result<Diagnosis> {
        let mut command = Command::new(&self.program);
        command.args(["diagnose", "--output", "json"]).arg(folder);
        let ended = process::run(command, None, LOOK_WITHIN)?;
        let told: serde_json::Value = serde_json::from_str(&ended.stdout)
            .with_context(|| format!("diagnose says no JSON: {}", ended.stderr))?;
        let findings = told["findings"].as_array().context("there is no list of findings")?;
        let cause = |finding: &serde_json::Value| finding["cause"].as_str().map(str::to_owned);
        let evidence = |finding: &serde_json::Value| finding["evidence"].to_string();
        Ok(Diagnosis {
            code: ended.code,
            causes: findings.iter().filter_map(cause).collect(),
            evidence: findings.iter().map(evidence).collect(),
        })
    }

    /// Starts `run` in the background, its log after what the file holds already.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn run(&self, place: &Place, arguments: &[&str]) -> Result<Running> {
        let log =
            File::options().create(true).append(true).open(&place.log).context("cannot open the log")?;
        let mut command = self.command(place, &[&["run"], arguments].concat());
        command.env("REVEILLE_LOG", "info");
        command.stdin(std::process::Stdio::null()).stdout(log.try_clone()?).stderr(log);
        Ok(Running { program: Background::start(command)? })
    }

    /// Starts a command of it in the background, with what it says after what the log holds already.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&self, place: &Place, arguments: &[&str]) -> Result<Background> {
        let log =
            File::options().create(true).append(true).open(&place.log).context("cannot open the log")?;
        let mut command = self.command(place, arguments);
        command.stdin(std::process::Stdio::null()).stdout(log.try_clone()?).stderr(log);
        Background::start(command)
    }

    fn command(&self, place: &Place, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).arg("--state").arg(&place.state).env("NO_COLOR", "1");
        // The rig's EC2 accepts any credentials; a roster without one never asks for it.
        command.env("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE").env("AWS_SECRET_ACCESS_KEY", "rig");
        for roster in &place.rosters {
            command.arg("--roster").arg(roster);
        }
        command
    }

    /// The status, with the exit code of the command.
    ///
    /// # Errors
    /// When there is no status report in its answer.
    pub fn status(&self, place: &Place) -> Result<(i32, StatusReport)> {
        match self.report(place, &["status"])? {
            (code, Report::StatusReport(status)) => Ok((code, status)),
            (_, other) => bail!("asked for the status, got {other:?}"),
        }
    }

    /// The plan, with the exit code of the command.
    ///
    /// # Errors
    /// When there is no plan in its answer.
    pub fn plan(&self, place: &Place) -> Result<(i32, PlanReport)> {
        match self.report(place, &["plan"])? {
            (code, Report::PlanReport(plan)) => Ok((code, plan)),
            (_, other) => bail!("asked for the plan, got {other:?}"),
        }
    }

    /// Incidents, open and closed, with the exit code of the command.
    ///
    /// # Errors
    /// When there are none in its answer.
    pub fn incidents(&self, place: &Place) -> Result<(i32, IncidentsReport)> {
        match self.report(place, &["incidents", "--all"])? {
            (code, Report::IncidentsReport(incidents)) => Ok((code, incidents)),
            (_, other) => bail!("asked for incidents, got {other:?}"),
        }
    }

    fn report(&self, place: &Place, words: &[&str]) -> Result<(i32, Report)> {
        let ended = self.ask(place, &[words, &["--output", "json"]].concat())?;
        let code = ended.code.with_context(|| format!("{words:?} was ended by a signal"))?;
        let document: Document = serde_json::from_str(&ended.stdout)
            .with_context(|| format!("{words:?} ended with {code} and no report: {}", ended.stderr.trim()))?;
        Ok((code, document.report))
    }
}

/// Where a scenario's Reveille lives.
#[derive(Clone, Debug)]
pub struct Place {
    /// The roster files, the scenario's own first.
    pub rosters: Vec<PathBuf>,
    /// The base of the state folders.
    pub state: PathBuf,
    /// Name of the first roster.
    pub name: String,
    /// The log of `run`.
    pub log: PathBuf,
}

impl Place {
    /// The ledger of the first roster.
    ///
    /// # Errors
    /// When it is damaged or not understood.
    pub fn ledger(&self) -> Result<Ledger> {
        Ledger::read(&self.state.join(&self.name))
    }
}

/// `reveille run` in the background. Ends with its owner.
pub struct Running {
    program: Background,
}

impl Running {
    /// It has not ended.
    ///
    /// # Errors
    /// When it has.
    pub fn still_runs(&mut self) -> Result<()> {
        let ended = self.program.ended();
        ensure!(ended.is_none(), "reveille run has ended with {ended:?}");
        Ok(())
    }

    /// As a power cut would end it.
    pub fn kill(mut self) {
        self.program.kill();
    }

    /// As a service manager would end it.
    ///
    /// # Errors
    /// When it does not end, or not with an exit code of its own.
    pub fn stop(mut self) -> Result<i32> {
        self.program
            .stop(STOP_WITHIN)?
            .context("reveille run was ended by a signal that it should have handled")
    }
}
