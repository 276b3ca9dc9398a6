//! The project's own tasks, in the project's own language: `cargo xtask TASK`.
//!
//! ```text
//!  tidy    the rules of STYLE.md that a program can check
//!  ci      fmt, clippy, tests, tidy, e2e: all that must be true before anything is merged
//!  e2e     the rig's tests: adapters and end-to-end scenarios against real services
//!  setup   what the rig needs, built and installed
//!  bench   what the engine and the whole program cost, in release mode
//!  accuracy  how often the diagnosis is right, over the labelled cases
//!  hunt    random courses of faults against the simulated world, in release mode
//!  fuzz    any bytes into whatever reads bytes of others
//! ```
//!
//! Scripts and servers call this and nothing else, so that a person can run what they run. A step that was not run is
//! named with its reason and never counts as passed. Nothing here knows what any test is about.

mod ci;
mod dependencies;
mod e2e;
mod fuzz;
mod run;
mod tally;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::Result;

const USAGE: &str = "cargo xtask TASK

  tidy                  check the rules of STYLE.md; names each place and what to do
  ci [--without-rig]    fmt, clippy, all tests, tidy, e2e; ends with \"N passed, N failed, N skipped\"
  e2e [NAME]            tests against the rig, those whose name contains NAME; adapters' tests only without NAME
  setup                 build and install what the rig needs (Go and Python 3.11 have to be there; root for packages)
  bench [PART…]         costs: event, reaction, memory, idle, sim, cycle, ec2, diagnose, hot, agents, process; or all
  bench node            what it costs a node, beside bare kubeadm: a static program, real nodes of a rig (root)
  bench rig             how long after its deadline the first of 60 repairs reaches the cloud, on a rig
  bench scan            how fast a gigabyte of logs is scanned on one core, beside a newline count and a RegexSet
  accuracy [DIR]        how often the diagnosis is right over tests/cases, with what was taken for what, and the floor
  hunt ARGUMENTS        random courses of faults, judged and shrunk; hunt --help lists the arguments
  fuzz [TARGET] [--minutes N]
                        libFuzzer on one target of fuzz/targets, or on all, each for N minutes (5)
";

const BENCH_WITHIN: Duration = Duration::from_secs(3600);

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}

/// Where cargo puts what it builds.
fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into)
}

/// A cargo command in the repository's root, by the cargo that runs us.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    // What cargo told us about ourselves would tell our children's build scripts lies.
    for (name, _) in std::env::vars_os() {
        let told = name.to_string_lossy();
        if told.starts_with("CARGO_PKG_") || told.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

fn dispatch(words: &[&str]) -> Result<Option<bool>> {
    let done = match words {
        ["tidy"] => tidy::run(&root())?,
        ["ci"] => ci::run(ci::Rig::Wanted)?,
        ["ci", "--without-rig"] => ci::run(ci::Rig::Unwanted)?,
        ["e2e"] => ci::finish(&[e2e::step(None, None)?]),
        ["e2e", only] if !only.starts_with('-') => ci::finish(&[e2e::step(Some(only), None)?]),
        ["setup"] => e2e::setup()?,
        ["bench", "scan"] => scan()?,
        ["bench", "node"] => node()?,
        ["bench", "rig"] => reaction()?,
        ["bench", parts @ ..] => bench(parts)?,
        ["accuracy", folder @ ..] => accuracy(folder)?,
        ["hunt", arguments @ ..] => hunt(arguments)?,
        ["fuzz", arguments @ ..] => fuzz::fuzz(arguments)?,
        _ => return Ok(None),
    };
    Ok(Some(done))
}

/// The hunt ends by itself, when its hours or its runs are over, and has the terminal to itself for its progress.
fn hunt(arguments: &[&str]) -> Result<bool> {
    let build = ["run", "--release", "--quiet", "-p", "reveille-sim", "--bin", "hunt", "--"];
    Ok(cargo(&[&build, arguments].concat()).status()?.success())
}

/// A folder is named from the repository's root.
fn accuracy(folder: &[&str]) -> Result<bool> {
    let build = ["run", "--quiet", "-p", "reveille-diagnose", "--bin", "accuracy", "--"];
    Ok(cargo(&[&build, folder].concat()).status()?.success())
}

/// The scan needs nothing of the program, so that it is built alone.
fn scan() -> Result<bool> {
    let build = ["run", "--release", "--quiet", "-p", "reveille-diagnose", "--bin", "scan-bench"];
    Ok(run::to_the_end(cargo(&build), BENCH_WITHIN)?.ok)
}

/// Machines get a program that needs nothing of theirs: one file, linked statically.
const STATIC: &str = "x86_64-unknown-linux-musl";

/// On real nodes: the program as machines get it, and a rig of its own.
fn node() -> Result<bool> {
    let within = BENCH_WITHIN;
    if !run::to_the_end(
        cargo(&["build", "--profile", "node", "-p", "reveille", "--no-default-features", "--target", STATIC]),
        within,
    )?
    .ok
    {
        eprintln!(
            "the static program does not build; it needs: rustup target add {STATIC}; apt-get install musl-tools"
        );
        return Ok(false);
    }
    let mut measure = cargo(&["run", "--quiet", "-p", "reveille-tests", "--bin", "node-cost"]);
    measure.env("REVEILLE_NODE_BIN", target_dir().join(STATIC).join("node/reveille"));
    Ok(run::to_the_end(measure, within)?.ok)
}

/// The shipped program on a rig of its own.
fn reaction() -> Result<bool> {
    if !run::to_the_end(cargo(&["build", "--release", "-p", "reveille"]), BENCH_WITHIN)?.ok {
        return Ok(false);
    }
    let mut measure = cargo(&["run", "--quiet", "-p", "reveille-tests", "--bin", "reaction"]);
    measure.env("REVEILLE_BIN", target_dir().join("release/reveille"));
    Ok(run::to_the_end(measure, BENCH_WITHIN)?.ok)
}

/// The program is measured as it is shipped, so it is built first; the benchmark finds it beside itself.
fn bench(parts: &[&str]) -> Result<bool> {
    let build = cargo(&["build", "--release", "-p", "reveille", "-p", "reveille-bench"]);
    let run = [&["run", "--release", "-p", "reveille-bench", "--"], parts].concat();
    Ok(run::to_the_end(build, BENCH_WITHIN)?.ok && run::to_the_end(cargo(&run), BENCH_WITHIN)?.ok)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match dispatch(&words) {
        Ok(Some(true)) => ExitCode::SUCCESS,
        Ok(Some(false)) => ExitCode::FAILURE,
        Ok(None) => {
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
