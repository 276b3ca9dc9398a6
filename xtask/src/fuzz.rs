//! Fuzzing: any bytes into whatever reads bytes of others, steered by which code they reach.
//!
//! ```text
//!  fuzz/bodies/TARGET.rs ─▶ built with coverage counters ─▶ libFuzzer ─┬▶ fuzz/corpus/TARGET     what reaches more
//!  fuzz/seeds/TARGET ───────────────────────────────────────────▲       └▶ fuzz/artifacts/TARGET  what broke
//! ```
//!
//! The folder is a workspace of its own, so that no other command builds it; the flags are those of the stable compiler. What the
//! targets demand is not known here. Tests of the crates play the kept seeds through the same bodies without any of this.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::{cargo, root, run};

/// Counts which edges were taken, and shows libFuzzer what was compared with what.
const COVERAGE: [&str; 6] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
];
/// Named, so that build scripts and macros, which run here as well, are built without the counters.
const TRIPLE: &str = "x86_64-unknown-linux-gnu";
const MINUTES: u64 = 5;
const BUILD_WITHIN: Duration = Duration::from_secs(1800);
/// One try may take so long, and all of the process so much memory.
const LIMITS: [&str; 4] = ["-timeout=20", "-rss_limit_mb=1024", "-max_len=8192", "-print_final_stats=1"];

/// `[TARGET] [--minutes N]`: one target or all of them, each so long.
pub(crate) fn fuzz(words: &[&str]) -> Result<bool> {
    let (only, minutes) = match words {
        [] => (None, MINUTES),
        ["--minutes", minutes] => (None, number(minutes)?),
        [target] => (Some(*target), MINUTES),
        [target, "--minutes", minutes] => (Some(*target), number(minutes)?),
        _ => bail!("cargo xtask fuzz [TARGET] [--minutes N]"),
    };
    let folder = root().join("fuzz");
    let all = targets(&folder)?;
    if let Some(only) = only.filter(|only| !all.iter().any(|target| target == only)) {
        bail!("there is no target {only}; there are {}", all.join(", "));
    }
    let mut build = cargo(&["build", "--release", "--target", TRIPLE]);
    build
        .current_dir(&folder)
        .env("RUSTFLAGS", COVERAGE.join(" "))
        .env("CARGO_TARGET_DIR", folder.join("target"));
    if !run::to_the_end(build, BUILD_WITHIN)?.ok {
        return Ok(false);
    }
    let mut whole = true;
    for target in all.iter().filter(|target| only.is_none_or(|only| only == *target)) {
        whole &= one(&folder, target, minutes)?;
    }
    Ok(whole)
}

/// None at all would mean for ever to libFuzzer.
fn number(minutes: &str) -> Result<u64> {
    let whole = minutes.parse::<u64>().ok().filter(|minutes| *minutes > 0);
    whole.with_context(|| format!("--minutes {minutes}: give a whole number of minutes, at least one"))
}

/// What is in `targets/`, in order of names.
fn targets(folder: &Path) -> Result<Vec<String>> {
    let list = fs::read_dir(folder.join("targets")).context("cannot list fuzz/targets")?;
    let names =
        list.map(|entry| Ok(entry?.path().file_stem().unwrap_or_default().to_string_lossy().into_owned()));
    let mut names = names.collect::<Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

fn one(folder: &Path, target: &str, minutes: u64) -> Result<bool> {
    let (corpus, artifacts) = (folder.join("corpus").join(target), folder.join("artifacts").join(target));
    for made in [&corpus, &artifacts] {
        fs::create_dir_all(made).with_context(|| format!("cannot make {}", made.display()))?;
    }
    let mut command = Command::new(folder.join("target").join(TRIPLE).join("release").join(target));
    command.args(LIMITS).arg(format!("-max_total_time={}", minutes * 60));
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    let dictionary = folder.join("dictionaries").join(format!("{target}.dict"));
    if dictionary.is_file() {
        command.arg(format!("-dict={}", dictionary.display()));
    }
    // The first folder takes what reaches more; the seeds are read only.
    command.arg(&corpus).arg(folder.join("seeds").join(target)).current_dir(folder);
    let ended = run::to_the_end(command, Duration::from_secs(minutes * 60 + 300))?;
    if !ended.ok {
        println!(
            "{target} broke: {}. Make the file in {} smaller (run the target on it with -minimize_crash=1), mend it, and keep \
             the file in fuzz/seeds/{target}.",
            ended.why,
            artifacts.display()
        );
    }
    Ok(ended.ok)
}
