//! What is asked of made-up or recorded clusters: stories, scenarios, recordings.

use std::path::PathBuf;

use clap::Args;
use reveille_sim::policy::{Policy, UnknownPolicy};

pub(super) const DEMO_EXAMPLES: &str = "\
Examples:
  reveille demo               about half a minute
  reveille demo --fast        as fast as it goes
  reveille demo --seed 7      the same kinds of trouble, elsewhere and in another order

The world is made up; the engine, the ledger and the loop are those of `reveille run`.";

/// `demo`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Demo {
    /// Which story
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Do not wait between the moments
    #[arg(long)]
    pub(crate) fast: bool,
    /// Keep every event and decision below this folder, for `reveille replay`
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
}

pub(super) const SIMULATE_EXAMPLES: &str = "\
Examples:
  reveille simulate --list                           the scenarios that come with it
  reveille simulate A1                               one of them, by its number
  reveille simulate --phrases                        what a scenario may say
  reveille simulate mine.scenario                    one that you wrote
  reveille simulate --seed 7 --days 3 --machines 50  three made-up days
  reveille simulate --seed 7 --faults zone-dark,errored
  reveille simulate --world rancher --seed 7         a repair of one of Rancher's records; --seeds 1000 counts so many
  reveille simulate B19 --compare                    what other programs' policies would do there, side by side
  reveille simulate --compare                        the same for everything that comes with it, and the sum
  reveille simulate E59 --policy karpenter           one of them, act by act
  reveille simulate zone-dark --policy reveille      a situation of docs/compare.md, by its name

The engine is the one of `reveille run`, and its invariants are checked after every step. It ends with 0 when all that \
was expected holds, with 1 when something does not, with 64 when the file cannot be played. One seed is the same \
course, byte for byte: the digest tells. With --policy it ends with 1 when a destructive act was wrong; \
docs/compare.md says when one is.";

/// `simulate`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Simulate {
    /// File of a scenario, - for standard input, or the number of one that comes with Reveille
    #[arg(value_name = "FILE|NUMBER", required_unless_present_any = ["list", "phrases", "seed", "compare", "policy"], conflicts_with_all = ["list", "phrases", "seed"])]
    pub(crate) scenario: Option<String>,
    /// List the scenarios that come with Reveille
    #[arg(long, conflicts_with = "seed")]
    pub(crate) list: bool,
    /// List every phrase that a scenario may say
    #[arg(long, conflicts_with_all = ["seed", "list", "compare", "policy"])]
    pub(crate) phrases: bool,
    /// Make a random course of faults up from this seed
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// How long the made-up course is, days
    #[arg(long, value_name = "DAYS", default_value_t = 1.0, requires = "seed", value_parser = days)]
    pub(crate) days: f64,
    /// How many machines it has
    #[arg(long, value_name = "COUNT", default_value_t = 30, requires = "seed", value_parser = clap::value_parser!(u32).range(4..=5_000))]
    pub(crate) machines: u32,
    /// Only these faults, by name
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "seed")]
    pub(crate) faults: Vec<String>,
    /// Which world is made up; without it a fleet of machines
    #[arg(long, requires = "seed", conflicts_with_all = ["days", "machines", "policy", "compare"])]
    pub(crate) world: Option<Made>,
    /// Put another policy in the engine's place: a model of what another program is documented to do
    #[arg(long, value_name = "NAME", conflicts_with = "list", value_parser = policy)]
    pub(crate) policy: Option<Policy>,
    /// Play it under every policy and count side by side; without FILE or --seed, everything that comes with Reveille
    #[arg(long, conflicts_with_all = ["list", "policy"])]
    pub(crate) compare: bool,
    /// With --world, --compare or --policy: so many seeds, from --seed on
    #[arg(long, value_name = "COUNT", default_value_t = 1, requires = "seed", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) seeds: u64,
}

/// A world that is made up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Made {
    /// One cluster of a Rancher, and a repair of one record
    Rancher,
}

/// A policy by its name; whoever writes another is told the names.
fn policy(name: &str) -> Result<Policy, String> {
    name.parse().map_err(|error: UnknownPolicy| error.to_string())
}

/// A length in days that a person waits for.
fn days(text: &str) -> Result<f64, String> {
    let days: f64 = text.parse().map_err(|_| "write a number of days, for instance 0.5".to_owned())?;
    if (0.01..=400.0).contains(&days) { Ok(days) } else { Err("from 0.01 to 400 days".to_owned()) }
}

pub(super) const REPLAY_EXAMPLES: &str = "\
Examples:
  reveille run --record flight                                  records while it watches
  reveille replay flight                                        the story, and whether every decision is the same now
  reveille replay flight --machine kks-prod-w-7xk2p --from 09:00 --until 09:30
  reveille replay flight --with-roster tomorrow.yaml            what another roster would have done, and why
  reveille replay flight --policy machine-health-check          what another program would have done then
  reveille replay flight --machine w-7xk2p --to-scenario lost-group.recording --anonymise

Exit codes: 0 the same · 1 it differs, or the other policy would have harmed a machine · 64 wrong usage · 65 the recording cannot be read";

/// `replay`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Replay {
    /// Folder that was given to --record, one run in it, or a file with one recording
    #[arg(value_name = "DIR|FILE")]
    pub(crate) recording: PathBuf,
    /// Show and compare from here on: RFC 3339, or the time of day where it begins
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,
    /// Stop here
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Show only this machine: its name, id or node
    #[arg(long, value_name = "NAME")]
    pub(crate) machine: Option<String>,
    /// Decide by the roster in this file instead of the recorded one, and tell what would have differed
    #[arg(long, value_name = "FILE")]
    pub(crate) with_roster: Option<PathBuf>,
    /// Tell what a model of another program would have done at that time, beside what was done
    #[arg(long, value_name = "NAME", conflicts_with_all = ["with_roster", "to_scenario"], value_parser = policy)]
    pub(crate) policy: Option<Policy>,
    /// Cut it down to the machine and the time given, and write it as a regression test
    #[arg(long, value_name = "FILE", conflicts_with = "with_roster")]
    pub(crate) to_scenario: Option<PathBuf>,
    /// With --to-scenario: replace names and ids; addresses stay
    #[arg(long, requires = "to_scenario")]
    pub(crate) anonymise: bool,
}
