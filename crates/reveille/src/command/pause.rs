//! `pause` and `resume`: write and remove small files beside the ledger, which a running controller reads every two seconds.

use std::fmt;

use anyhow::anyhow;
use reveille_core::model::signs::PAUSE;
use reveille_record::{Pause, PauseError, PauseName, PauseScope, Pauses};
use reveille_wire::roster::CheckedRoster;

use super::{Answer, Context, query};
use crate::cli;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::driver::clock;

/// Pauses repairs.
pub(crate) fn pause(context: &Context, args: &cli::controller::Pause) -> Result<Answer, Failure> {
    let roster = the_roster(context)?;
    let scope = scope(&roster, args.scope.as_deref())?;
    let reason = args.reason.trim();
    if reason.is_empty() {
        return Err(Failure::usage(anyhow!("a pause needs a reason")).next("say why with --reason"));
    }
    let by = args.by.clone().filter(|by| !by.trim().is_empty()).unwrap_or_else(|| "unknown".to_owned());
    let pause = Pause { scope: scope.clone(), by, reason: reason.to_owned(), at_ms: clock::wall().ms };
    let state_dir = context.state_dir(&roster.roster.name)?;
    let pauses = Pauses::of(&state_dir);
    pauses.set(&PauseName::of(&scope), &pause).map_err(unkept)?;
    let named = Scope(&roster, &scope);
    let (said, exit) = if query::is_led(&state_dir) {
        let said =
            "is paused. The controller starts no repair from two seconds on; running operations finish.";
        (format!("{named} {said}"), Exit::NoProblem)
    } else {
        let dir = state_dir.display();
        let said = format!(
            "Saved, but nothing is paused yet: no controller runs with the state directory {dir}. The pause applies to one that \
             starts there. A controller on another host, of another user or with another state directory does not see it. Run \
             this command there, or set the annotation {PAUSE}: \"true\" on the Nodes."
        );
        (said, Exit::CannotTell)
    };
    Ok(Answer { text: format!("{said}\nnext: reveille resume{}\n", argument(&scope)), exit })
}

/// Removes a pause.
pub(crate) fn resume(context: &Context, args: &cli::controller::Resume) -> Result<Answer, Failure> {
    let roster = the_roster(context)?;
    let pauses = Pauses::of(&context.state_dir(&roster.roster.name)?);
    let set = pauses.read().map_err(unkept)?;
    if args.all {
        for name in set.pauses.keys() {
            pauses.remove(name).map_err(unkept)?;
        }
        if let Some(error) = set.unreadable.into_iter().next() {
            return Err(Failure::internal(anyhow::Error::new(error))
                .next("delete that file; until then it pauses the whole roster"));
        }
        let count = set.pauses.len();
        return Ok(Answer::fine(format!("{}: pauses ended: {count}.\n", roster.roster.name)));
    }
    let scope = scope(&roster, args.scope.as_deref())?;
    let named = Scope(&roster, &scope);
    if pauses.remove(&PauseName::of(&scope)).map_err(unkept)? {
        return Ok(Answer::fine(format!("{named} is no longer paused.\n")));
    }
    let others: Vec<String> =
        set.pauses.values().map(|pause| Scope(&roster, &pause.scope).to_string()).collect();
    let known = if others.is_empty() {
        "nothing is paused".to_owned()
    } else {
        format!("paused: {}", others.join(", "))
    };
    Err(Failure::usage(anyhow!("{named} was not paused; {known}")))
}

/// Most often the command was run as another user than the controller.
fn unkept(error: PauseError) -> Failure {
    Failure::cannot_tell(error).next("run this as the controller's user, with the controller's --state")
}

/// The roster of the pause; a pause belongs to one roster.
fn the_roster(context: &Context) -> Result<CheckedRoster, Failure> {
    let mut rosters = context.rosters()?;
    match (rosters.pop(), rosters.is_empty()) {
        (Some(one), true) => Ok(one),
        _ => Err(Failure::usage(anyhow!("several rosters are given, and a pause belongs to one"))
            .next("name the file of one roster with --roster")),
    }
}

fn scope(roster: &CheckedRoster, word: Option<&str>) -> Result<PauseScope, Failure> {
    let Some(word) = word else { return Ok(PauseScope::Roster) };
    let Some(pool) = word.strip_prefix("pool/") else { return Ok(PauseScope::Machine(word.to_owned())) };
    let names: Vec<&str> = roster.roster.pools.keys().map(|name| name.as_str()).collect();
    if names.contains(&pool) {
        return Ok(PauseScope::Pool(pool.to_owned()));
    }
    Err(Failure::usage(anyhow!(
        "roster {} has no pool {pool:?}; it has: {}",
        roster.roster.name,
        names.join(", ")
    )))
}

fn argument(scope: &PauseScope) -> String {
    match scope {
        PauseScope::Roster => String::new(),
        PauseScope::Pool(name) => format!(" pool/{name}"),
        PauseScope::Machine(name) => format!(" {name}"),
    }
}

/// A scope as text.
struct Scope<'a>(&'a CheckedRoster, &'a PauseScope);

impl fmt::Display for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            PauseScope::Roster => write!(f, "roster {}", self.0.roster.name),
            PauseScope::Pool(name) => write!(f, "pool {name}"),
            PauseScope::Machine(name) => write!(f, "machine {name}"),
        }
    }
}
