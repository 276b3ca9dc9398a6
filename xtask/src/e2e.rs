//! Tests against the rig: the adapters' own, on one rig for all of them, and the end-to-end scenarios, which bring
//! theirs up themselves.
//!
//! ```text
//!  prerequisites ─▶ rig build ─┬▶ rig up ─▶ adapters' tests (target "rig", REVEILLE_RIG) ─▶ rig down
//!                              └▶ scenarios (REVEILLE_E2E=1), in lanes with rigs of their own
//! ```
//!
//! Both wait for services most of the time, so they run side by side; the adapters' tests print in one piece. Cargo always builds
//! the whole workspace: for a part of it, Cargo would pick other features and compile most of it again.
//!
//! Where a prerequisite is missing (no Go, no Python), nothing of this can be run, and every test is named as not run with
//! that reason. Where they are there and no rig builds or comes up, something is broken, and that is a failure.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Result, anyhow};

use crate::ci::{Step, test_programs, timed};
use crate::run::Ended;
use crate::tally::Tally;
use crate::{cargo, root, run};

/// Begins the name of our rig; the process id follows, so that runs do not meet.
const RIG: &str = "xtask-";
/// Begins the names of the scenarios' rigs.
const SCENARIOS_RIG: &str = "e2e-";

/// From nothing, on two cores and a slow network.
const BUILD_WITHIN: Duration = Duration::from_secs(2700);
const UP_WITHIN: Duration = Duration::from_secs(900);
const DOWN_WITHIN: Duration = Duration::from_secs(120);
/// On a busy machine 1,980 s were over with 12 of 64 scenarios reported.
const TESTS_WITHIN: Duration = Duration::from_secs(2700);

/// The rig's programs, being built beside other work.
pub(crate) struct Building(JoinHandle<Result<Ended>>);

/// Begins to build what the rig needs: on a machine that has none of it, its compilers fill the pauses of everything before the
/// scenarios. What cannot be built is told by [`step`].
pub(crate) fn build_beside() -> Option<Building> {
    if missing_prerequisite().is_some() {
        return None;
    }
    Some(Building(thread::spawn(|| run::held_back(rig(&["build"]), BUILD_WITHIN))))
}

/// Everything against the rig, once it is built; with a name, the scenarios whose names contain it.
pub(crate) fn step(only: Option<&str>, building: Option<Building>) -> Result<Step> {
    timed("e2e", || {
        if let Some(missing) = missing_prerequisite() {
            return without_rig(&missing);
        }
        let mut tally = Tally::default();
        let built = match building {
            Some(Building(thread)) => {
                thread.join().map_err(|_| anyhow!("the rig's build was not seen through"))??
            }
            None => run::to_the_end(rig(&["build"]), BUILD_WITHIN)?,
        };
        if !built.ok {
            tally.fail(&format!("rig build ({})", built.complaint("rig")));
            tally.add(&without_rig("the rig does not build")?);
            return Ok(tally);
        }
        let program = match program()? {
            Ok(program) => program,
            Err(why) => {
                tally.fail(&why);
                return Ok(tally);
            }
        };
        thread::scope(|scope| -> Result<()> {
            let beside = only.is_none().then(|| scope.spawn(adapters));
            tally.add(&scenarios(only, &program)?);
            if let Some(adapters) = beside {
                let adapters =
                    adapters.join().map_err(|_| anyhow!("the adapters' tests were not seen through"))??;
                print!("\n{}", adapters.said);
                tally.add(&adapters.tally);
            }
            Ok(())
        })?;
        Ok(tally)
    })
}

/// Builds and installs what the rig needs; true when it is all there.
pub(crate) fn setup() -> Result<bool> {
    if let Some(missing) = missing_prerequisite() {
        println!("{missing}");
        return Ok(false);
    }
    Ok(run::to_the_end(rig(&["build"]), BUILD_WITHIN)?.ok)
}

/// What the rig cannot install by itself and does not find.
fn missing_prerequisite() -> Option<String> {
    if !cfg!(target_os = "linux") {
        return Some("the rig runs on Linux only".into());
    }
    let answers = |program: &str, argument: &str| {
        let mut command = Command::new(program);
        command.arg(argument).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    [
        ("go", "version", "Go 1.26 or newer: https://go.dev/dl"),
        ("python3", "--version", "Python 3.11: apt-get install python3.11 python3.11-venv"),
        ("openssl", "version", "OpenSSL: apt-get install openssl"),
        ("curl", "--version", "curl: apt-get install curl"),
    ]
    .into_iter()
    .find(|(program, argument, _)| !answers(program, argument))
    .map(|(program, _, how)| format!("the rig needs \"{program}\", which is not on PATH ({how})"))
}

fn rig(arguments: &[&str]) -> Command {
    let mut command = Command::new(root().join("rig/rig"));
    command.args(arguments);
    command
}

/// The program under test, as `cargo test` built it; or that it does not compile.
fn program() -> Result<Result<PathBuf, String>> {
    let build = cargo(&["test", "--workspace", "--no-run", "--message-format", "json-render-diagnostics"]);
    let built = run::held_back(build, TESTS_WITHIN)?;
    let mut messages = built.lines.iter().filter(|line| line.contains(r#""name":"reveille","#));
    // Test programs are listed as well, with a profile that says so.
    let program =
        messages.find(|line| line.contains(r#""kind":["bin"]"#) && line.contains(r#""test":false}"#));
    let path = program.and_then(|line| line.split_once(r#""executable":""#)?.1.split('"').next());
    Ok(match path {
        Some(path) if built.ok => Ok(PathBuf::from(path)),
        _ => Err(format!("the program under test ({})", built.complaint("error"))),
    })
}

fn scenarios(only: Option<&str>, program: &Path) -> Result<Tally> {
    let mut command = cargo(&["test", "--workspace", "--test", "e2e"]);
    command.env("REVEILLE_E2E", "1").env("REVEILLE_BIN", program);
    if let Some(only) = only {
        command.args(["--", only]);
    }
    let mut tally = test_programs("end-to-end scenarios", run::to_the_end(command, TESTS_WITHIN)?);
    // A run that was cut reports and takes its rigs down itself; one that had to be killed does not.
    take_down_forgotten()?;
    // All that it needs was built: a rig that does not come up is broken.
    if let Some(why) = tally.not_run.values().find(|why| why.starts_with("no rig")).cloned() {
        tally.fail(&format!("rig up ({why})"));
    }
    Ok(tally)
}

/// What the adapters' tests came to, and what is to be shown of them.
struct Adapters {
    tally: Tally,
    said: String,
}

/// The adapters' tests, on a rig of ours that ends with them.
fn adapters() -> Result<Adapters> {
    take_down_forgotten()?;
    let name = format!("{RIG}{}", std::process::id());
    let up = run::held_back(rig(&["up", "kubernetes", "openstack", "--name", &name]), UP_WITHIN)?;
    let tested = if up.ok { adapters_on(&name) } else { Ok(None) };
    let down = run::held_back(rig(&["down", "--name", &name]), DOWN_WITHIN)?;
    let mut tally = Tally::default();
    let mut said = up.said();
    if up.ok {
        match tested? {
            Some(tested) => {
                said += &tested.said();
                tally = test_programs("adapters' tests", tested);
            }
            None => tally.fail("rig env names no RIG_STATE"),
        }
    } else {
        tally.fail(&format!("rig up ({})", up.complaint("rig")));
    }
    if !down.ok {
        tally.fail(&format!("rig down ({})", down.complaint("rig")));
    }
    Ok(Adapters { tally, said: said + &down.said() })
}

/// `None` when the rig does not say where it is described.
fn adapters_on(name: &str) -> Result<Option<Ended>> {
    let env = run::held_back(rig(&["env", "--name", name]), DOWN_WITHIN)?;
    let state = env.lines.iter().find_map(|line| line.strip_prefix("export RIG_STATE="));
    let Some(description) = state.map(|state| PathBuf::from(state.trim_matches('\'')).join("rig.json"))
    else {
        return Ok(None);
    };
    let mut command = cargo(&["test", "--workspace", "--no-fail-fast", "--test", "rig"]);
    command.args(["--", "--ignored", "--test-threads=1"]).env("REVEILLE_RIG", description);
    run::held_back(command, TESTS_WITHIN).map(Some)
}

/// Takes down rigs of runs that were killed before they could.
fn take_down_forgotten() -> Result<()> {
    let home =
        std::env::var_os("RIG_HOME").map_or_else(|| std::env::temp_dir().join("reveille-rig"), PathBuf::from);
    for entry in std::fs::read_dir(home).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if owner_of(&name).is_some_and(|id| !PathBuf::from(format!("/proc/{id}")).exists()) {
            run::to_the_end(rig(&["down", "--name", &name]), DOWN_WITHIN)?;
        }
    }
    Ok(())
}

/// The process that a rig of the tests belongs to: ours are `xtask-PID`, the scenarios' `e2e-PID-LANE`.
fn owner_of(rig: &str) -> Option<u32> {
    let rest = rig.strip_prefix(RIG).or_else(|| rig.strip_prefix(SCENARIOS_RIG))?;
    rest.split('-').next()?.parse().ok()
}

/// The names of what cannot be run.
pub(crate) fn without_rig(reason: &str) -> Result<Tally> {
    let mut tally = Tally::default();
    let list = cargo(&["test", "--workspace", "--test", "e2e", "--", "--list"]);
    let listed = run::to_the_end(list, TESTS_WITHIN)?;
    if !listed.ok {
        tally.fail(&format!("listing the scenarios ({})", listed.why));
    }
    for name in listed.lines.iter().filter_map(|line| line.strip_suffix(": test")) {
        tally.skip(name, reason);
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rig_names_the_process_that_it_belongs_to() {
        assert_eq!(owner_of("xtask-812"), Some(812));
        assert_eq!(owner_of("e2e-812-3"), Some(812));
        assert_eq!(owner_of("e2e-812"), Some(812));
        assert_eq!(owner_of("mine"), None);
        assert_eq!(owner_of("e2e-mine-1"), None);
    }
}
