//! What comes in with dependencies, held against `deny.toml` without a network.
//!
//! ```text
//!  cargo deny --offline check bans licenses sources ─▶ one check
//!  cargo deny --offline check advisories ───────────▶ one check, where the database of advisories was fetched before
//! ```
//!
//! A developer who wants these checks installs the program and the database (`cargo install cargo-deny`, `cargo deny fetch db`).
//! Where one of them is missing, its check is reported as not run, with what to do.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Result;

use crate::tally::Tally;
use crate::{cargo, run};

const WITHIN: Duration = Duration::from_secs(300);
const RULES: &str = "dependencies: bans, licences, sources";
const ADVISORIES: &str = "dependencies: advisories";

/// Both checks, as far as they can be run here.
pub(crate) fn check() -> Result<Tally> {
    let mut tally = Tally::default();
    if !is_there() {
        for name in [RULES, ADVISORIES] {
            tally.skip(name, "cargo-deny is not installed: cargo install --locked cargo-deny");
        }
        return Ok(tally);
    }
    tally.add(&one(RULES, &["bans", "licenses", "sources"])?);
    if has_database() {
        tally.add(&one(ADVISORIES, &["advisories"])?);
    } else {
        tally.skip(ADVISORIES, "no database of advisories was fetched: cargo deny fetch db");
    }
    Ok(tally)
}

fn one(name: &str, what: &[&str]) -> Result<Tally> {
    let command = cargo(&[&["deny", "--offline", "check", "--hide-inclusion-graph"], what].concat());
    let ended = run::to_the_end(command, WITHIN)?;
    if !ended.ok {
        println!("{}", ended.why);
    }
    Ok(Tally::one(name, ended.ok))
}

fn is_there() -> bool {
    let mut version = Command::new("cargo-deny");
    version.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}

/// cargo-deny keeps its databases below Cargo's own folder (its book, `advisories.db-path`).
fn has_database() -> bool {
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from).or(home);
    let folder = cargo_home.map(|home| home.join("advisory-dbs"));
    folder.and_then(|folder| folder.read_dir().ok()).is_some_and(|mut entries| entries.next().is_some())
}
