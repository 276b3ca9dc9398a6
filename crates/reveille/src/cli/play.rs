//! Arguments of the commands for simulated or recorded clusters: `demo`, `simulate`, `replay`.

use std::path::PathBuf;

use clap::Args;
use reveille_sim::policy::{Policy, UnknownPolicy};

pub(super) const DEMO_EXAMPLES: &str = "\
Examples:
  reveille demo               takes about half a minute
  reveille demo --fast        without pauses
  reveille demo --seed 7      the same kinds of failures, on other machines and in another order

Only the cluster is simulated. Engine, ledger and control loop are those of `reveille run`.";

/// `demo`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Demo {
    /// Seed of the simulation
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Run without pauses
    #[arg(long)]
    pub(crate) fast: bool,
    /// Record all events and decisions to this directory, for `reveille replay`
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
}

pub(super) const SIMULATE_EXAMPLES: &str = "\
Examples:
  reveille simulate --list                           list the built-in scenarios
  reveille simulate A1                               run a built-in scenario by its number
  reveille simulate --phrases                        list the phrases of the scenario language
  reveille simulate mine.scenario                    run your own scenario
  reveille simulate --seed 7 --days 3 --machines 50  three simulated days of random failures
  reveille simulate --seed 7 --faults zone-dark,errored
  reveille simulate --world rancher --seed 7         repair a Rancher record; --seeds 1000 runs 1000 seeds and counts
  reveille simulate B19 --compare                    compare the policies of other programs
  reveille simulate --compare                        the same for all built-in scenarios, with totals
  reveille simulate E59 --policy karpenter           show each action of one policy
  reveille simulate zone-dark --policy reveille      a situation of docs/internals/compare.md, by its name

The engine is that of `reveille run`. Its invariants are checked after every step. A seed gives the same run byte for \
byte; compare the digest. docs/internals/compare.md defines when a destructive action is wrong.

Exit codes: 0 all expectations hold · 1 one does not hold, or with --policy a destructive action was wrong · 64 usage \
error or invalid scenario";

/// `simulate`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Simulate {
    /// Scenario file, - for standard input, or the number of a built-in scenario
    #[arg(value_name = "FILE|NUMBER", required_unless_present_any = ["list", "phrases", "seed", "compare", "policy"], conflicts_with_all = ["list", "phrases", "seed"])]
    pub(crate) scenario: Option<String>,
    /// List the built-in scenarios
    #[arg(long, conflicts_with = "seed")]
    pub(crate) list: bool,
    /// List the phrases of the scenario language
    #[arg(long, conflicts_with_all = ["seed", "list", "compare", "policy"])]
    pub(crate) phrases: bool,
    /// Run random failures from this seed
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Simulated time in days
    #[arg(long, value_name = "DAYS", default_value_t = 1.0, requires = "seed", value_parser = days)]
    pub(crate) days: f64,
    /// Number of machines
    #[arg(long, value_name = "COUNT", default_value_t = 30, requires = "seed", value_parser = clap::value_parser!(u32).range(4..=5_000))]
    pub(crate) machines: u32,
    /// Only these kinds of failures
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "seed")]
    pub(crate) faults: Vec<String>,
    /// What to simulate [default: a fleet of machines]
    #[arg(long, requires = "seed", conflicts_with_all = ["days", "machines", "policy", "compare"])]
    pub(crate) world: Option<Made>,
    /// Replace the engine by a model of another program's documented behaviour
    #[arg(long, value_name = "NAME", conflicts_with = "list", value_parser = policy)]
    pub(crate) policy: Option<Policy>,
    /// Run under all policies and compare; without FILE or --seed: all built-in scenarios
    #[arg(long, conflicts_with_all = ["list", "policy"])]
    pub(crate) compare: bool,
    /// With --world, --compare or --policy: number of seeds, starting at --seed
    #[arg(long, value_name = "COUNT", default_value_t = 1, requires = "seed", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) seeds: u64,
}

/// A world that is made up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Made {
    /// A cluster managed by Rancher, with a broken record
    Rancher,
}

/// A policy by its name; the error for an unknown name lists the known ones.
fn policy(name: &str) -> Result<Policy, String> {
    name.parse().map_err(|error: UnknownPolicy| error.to_string())
}

/// A number of days in a useful range.
fn days(text: &str) -> Result<f64, String> {
    let days: f64 = text.parse().map_err(|_| "write a number of days, for instance 0.5".to_owned())?;
    if (0.01..=400.0).contains(&days) { Ok(days) } else { Err("from 0.01 to 400 days".to_owned()) }
}

pub(super) const REPLAY_EXAMPLES: &str = "\
Examples:
  reveille run --record operation                                  record while the controller runs
  reveille replay operation                                        show the events, and compare all decisions
  reveille replay operation --machine kks-prod-w-7xk2p --from 09:00 --until 09:30
  reveille replay operation --with-roster tomorrow.yaml            what another roster would have done, and why
  reveille replay operation --policy machine-health-check          what another program would have done
  reveille replay operation --machine w-7xk2p --to-scenario lost-group.recording --anonymise

Exit codes: 0 same decisions · 1 different decisions, or the other policy would have harmed a machine · 64 usage error · \
65 unreadable recording";

/// `replay`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Replay {
    /// Directory given to --record, a run in it, or a single recording file
    #[arg(value_name = "DIR|FILE")]
    pub(crate) recording: PathBuf,
    /// Start time: RFC 3339, or a time on the day where the recording begins
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,
    /// End time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Show only this machine: name, id or Node
    #[arg(long, value_name = "NAME")]
    pub(crate) machine: Option<String>,
    /// Use this roster instead of the recorded one, and show the differences
    #[arg(long, value_name = "FILE")]
    pub(crate) with_roster: Option<PathBuf>,
    /// Show what a model of another program would have done, next to what was done
    #[arg(long, value_name = "NAME", conflicts_with_all = ["with_roster", "to_scenario"], value_parser = policy)]
    pub(crate) policy: Option<Policy>,
    /// Write the part with --machine, --from and --until as a regression test
    #[arg(long, value_name = "FILE", conflicts_with = "with_roster")]
    pub(crate) to_scenario: Option<PathBuf>,
    /// With --to-scenario: replace names and ids, but keep addresses
    #[arg(long, requires = "to_scenario")]
    pub(crate) anonymise: bool,
}
