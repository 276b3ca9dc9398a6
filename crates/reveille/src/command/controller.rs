//! The commands for a whole cluster, which use the rosters of the command line.
//!
//! ```text
//!  --roster ─▶ CheckedRoster ─┬▶ status, why, plan, incidents: query ─▶ view ─▶ render
//!                             ├▶ run: the driver; init, pause, resume: files
//!                             └▶ invite, collect: the registration server, a process of its own
//! ```
//!
//! The build for machines does not have them.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use reveille_core::model::id::RosterName;
use reveille_diagnose::Judge;
use reveille_kube::rbac;
use reveille_machines::{Kind, kinds};
use reveille_wire::roster::{self, CheckedRoster};

use super::{
    Answer, Context, collect, compare, demo, hot, init, invite, on_runtime, pause, queries, rancher, replay,
    run, simulate,
};
use crate::cli::controller::Command;
use crate::cli::failure::Failure;
use crate::cli::rights::Rbac;
use crate::cli::{Output, place};

impl Context {
    /// Every roster of every file of the command line.
    pub(crate) fn rosters(&self) -> Result<Vec<CheckedRoster>, Failure> {
        let mut all: Vec<CheckedRoster> = Vec::new();
        for file in &self.rosters.roster {
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
        place::state_dir(self.rosters.state.as_deref(), roster)
    }

    /// The registration server's state folder, beside those of the rosters. No roster can have this name.
    pub(crate) fn registration_dir(&self) -> Result<PathBuf, Failure> {
        self.state_dir(&RosterName::from(".registrar"))
    }

    /// The rules that judge logs and consoles of machines.
    pub(crate) fn judge(&self) -> Result<Arc<Judge>, Failure> {
        let made = match &self.common.catalogue {
            None => Judge::built_in().map_err(anyhow::Error::new),
            Some(_) => Judge::new(self.catalogue()?).map(Arc::new).map_err(anyhow::Error::new),
        };
        made.map_err(Failure::internal)
    }

    /// Joins the answers of several rosters into one text.
    pub(crate) fn join(&self, texts: &[String]) -> String {
        texts.join(match self.common.output {
            Output::Table => "\n",
            Output::Json => "",
            Output::Yaml => "---\n",
        })
    }
}

/// Runs the command.
pub(super) fn perform(context: &Context, command: Command) -> Result<Answer, Failure> {
    match command {
        Command::Run(args) => on_runtime(run::run(context, &args)),
        Command::Status(args) => on_runtime(queries::status(context, &args)),
        Command::Why(args) => on_runtime(queries::why(context, &args)),
        Command::Plan(args) => on_runtime(queries::plan(context, &args)),
        Command::Incidents(args) => on_runtime(queries::incidents(context, &args)),
        Command::Pause(args) => pause::pause(context, &args),
        Command::Resume(args) => pause::resume(context, &args),
        Command::Init(args) => on_runtime(init::init(context, &args)),
        Command::Collect(args) => on_runtime(collect::collect(context, &args)),
        Command::Invite(args) => on_runtime(invite::invite(context, &args)),
        Command::Hot(args) => on_runtime(hot::hot(context, &args)),
        Command::Demo(args) => on_runtime(demo::demo(context, &args)),
        Command::Simulate(args) if args.compare || args.policy.is_some() => compare::compare(context, &args),
        Command::Simulate(args) => simulate::simulate(context, &args),
        Command::Replay(args) => replay::replay(context, &args),
        Command::Rancher(args) => on_runtime(rancher::rancher(context, &args)),
        Command::CloudRights(args) => Ok(Answer::fine((args.command.print)(&args.given))),
        Command::Rbac(args) => permissions(args),
    }
}

/// The name of a command that prints lines for people, or a file in the format of the program that takes it.
pub(super) const fn has_one_form(command: &Command) -> Option<&'static str> {
    match command {
        Command::Demo(_) => Some("demo"),
        Command::Init(_) => Some("init"),
        Command::Pause(_) => Some("pause"),
        Command::Resume(_) => Some("resume"),
        Command::Rbac(_) => Some("rbac"),
        Command::CloudRights(args) => Some(args.command.name),
        Command::Run(_)
        | Command::Status(_)
        | Command::Why(_)
        | Command::Plan(_)
        | Command::Incidents(_)
        | Command::Hot(_)
        | Command::Simulate(_)
        | Command::Replay(_)
        | Command::Collect(_)
        | Command::Invite(_)
        | Command::Rancher(_) => None,
    }
}

/// The right to list every kind of machine record that is understood.
fn record_rights() -> rbac::Grant {
    let rule = |kind: &Kind| rbac::allow(&kind.group, &[&*kind.plural], &["list"]);
    let rules = kinds().iter().map(rule).collect();
    rbac::Grant { name: "reveille-machines".to_owned(), namespace: None, rules }
}

/// The roles of an account, and their bindings.
fn permissions(args: Rbac) -> Result<Answer, Failure> {
    let grants = match args.rancher {
        Some(place) => rancher::rights(&args, place),
        None => {
            let Rbac { cleanup, join, hot, records, only: rosters, .. } = args;
            let records = records.then(record_rights);
            rbac::grants(&rbac::Wanted { cleanup, join, hot, rosters }).into_iter().chain(records).collect()
        }
    };
    let yaml = rbac::manifest(&grants, &args.service_account, &args.namespace).map_err(Failure::internal)?;
    Ok(Answer::fine(yaml))
}
