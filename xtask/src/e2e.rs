//! Tests against the rig: the adapters' own, on one rig for all of them, and the end-to-end scenarios, which bring
//! theirs up themselves.
//!
//! ```text
//!  prerequisites ─▶ rig build ─▶ rig up ─▶ adapters' tests (target "rig", REVEILLE_RIG) ─▶ rig down
//!                             └▶ scenarios (REVEILLE_E2E=1)
//! ```
//!
//! Where a prerequisite is missing (no Go, no Python), nothing of this can be run, and every test is named as not run with
//! that reason. Where they are there and the rig does not build or come up, something is broken, and that is a failure.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Result;

use crate::ci::{Step, test_programs, timed};
use crate::tally::Tally;
use crate::{cargo, root, run};

/// The package of the scenarios.
const SCENARIOS: &str = "reveille-tests";
/// Packages with a test target "rig", whose tests are ignored where no rig is described.
const ADAPTERS: [&str; 2] = ["reveille-kube", "reveille-openstack"];
/// Begins the name of our rig; the process id follows, so that runs do not meet.
const RIG: &str = "xtask-";

/// From nothing, on two cores and a slow network.
const BUILD_WITHIN: Duration = Duration::from_secs(2700);
const UP_WITHIN: Duration = Duration::from_secs(900);
const DOWN_WITHIN: Duration = Duration::from_secs(120);
const TESTS_WITHIN: Duration = Duration::from_secs(1320);

/// Everything against the rig; with a name, the scenarios whose names contain it.
pub(crate) fn step(only: Option<&str>) -> Result<Step> {
    timed("e2e", || {
        if let Some(missing) = missing_prerequisite() {
            return without_rig(&missing);
        }
        let mut tally = Tally::default();
        let built = run::to_the_end(rig(&["build"]), BUILD_WITHIN)?;
        if !built.ok {
            tally.fail(&format!("rig build ({})", built.complaint("rig")));
            tally.add(&without_rig("the rig does not build")?);
            return Ok(tally);
        }
        if only.is_none() {
            tally.add(&adapters()?);
        }
        tally.add(&scenarios(only)?);
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

fn scenarios(only: Option<&str>) -> Result<Tally> {
    let mut command = cargo(&["test", "-p", SCENARIOS, "--no-fail-fast"]);
    command.env("REVEILLE_E2E", "1");
    if let Some(only) = only {
        command.args(["--test", "e2e", "--", only]);
    }
    test_programs("end-to-end scenarios", command, TESTS_WITHIN)
}

/// The adapters' tests, on a rig of ours that ends with them.
fn adapters() -> Result<Tally> {
    take_down_forgotten()?;
    let name = format!("{RIG}{}", std::process::id());
    let up = run::to_the_end(rig(&["up", "kubernetes", "openstack", "--name", &name]), UP_WITHIN)?;
    let tally = if up.ok {
        adapters_on(&name)
    } else {
        Ok(Tally::one(&format!("rig up ({})", up.complaint("rig")), false))
    };
    let down = run::to_the_end(rig(&["down", "--name", &name]), DOWN_WITHIN)?;
    let mut tally = tally?;
    if !down.ok {
        tally.fail(&format!("rig down ({})", down.complaint("rig")));
    }
    Ok(tally)
}

fn adapters_on(name: &str) -> Result<Tally> {
    let env = run::to_the_end(rig(&["env", "--name", name]), DOWN_WITHIN)?;
    let state = env.lines.iter().find_map(|line| line.strip_prefix("export RIG_STATE="));
    let Some(description) = state.map(|state| PathBuf::from(state.trim_matches('\'')).join("rig.json"))
    else {
        return Ok(Tally::one("rig env names no RIG_STATE", false));
    };
    let mut command = cargo(&["test", "--no-fail-fast", "--test", "rig"]);
    for package in ADAPTERS {
        command.args(["-p", package]);
    }
    command.args(["--", "--ignored", "--test-threads=1"]).env("REVEILLE_RIG", description);
    test_programs("adapters' tests", command, TESTS_WITHIN)
}

/// Takes down rigs of runs that were killed before they could.
fn take_down_forgotten() -> Result<()> {
    let home =
        std::env::var_os("RIG_HOME").map_or_else(|| std::env::temp_dir().join("reveille-rig"), PathBuf::from);
    for entry in std::fs::read_dir(home).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner: Option<u32> = name.strip_prefix(RIG).and_then(|id| id.parse().ok());
        if owner.is_some_and(|id| !PathBuf::from(format!("/proc/{id}")).exists()) {
            run::to_the_end(rig(&["down", "--name", &name]), DOWN_WITHIN)?;
        }
    }
    Ok(())
}

/// What can be tested of the package without a rig, and the names of what cannot.
pub(crate) fn without_rig(reason: &str) -> Result<Tally> {
    let mut tally =
        test_programs("library of the scenarios", cargo(&["test", "-p", SCENARIOS, "--lib"]), TESTS_WITHIN)?;
    let list = cargo(&["test", "-p", SCENARIOS, "--test", "e2e", "--", "--list"]);
    let listed = run::to_the_end(list, TESTS_WITHIN)?;
    if !listed.ok {
        tally.fail(&format!("listing the scenarios ({})", listed.why));
    }
    for name in listed.lines.iter().filter_map(|line| line.strip_suffix(": test")) {
        tally.skip(name, reason);
    }
    Ok(tally)
}
