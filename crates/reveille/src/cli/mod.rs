//! The command line: what can be asked, and how it explains itself.
//!
//! clap turns the arguments into [`Cli`]; nothing here acts. Defaults live here, so that `--help` tells the truth about
//! them. The long help of each command ends with examples that can be pasted.

pub(crate) mod agent;
pub(crate) mod collect;
pub(crate) mod doctor;
pub(crate) mod exit;
pub(crate) mod failure;
pub(crate) mod invite;
pub(crate) mod join;
pub(crate) mod logging;
pub(crate) mod place;
mod rights;
pub(crate) mod target;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use reveille_sim::policy::{Policy, UnknownPolicy};

pub(crate) use rights::Rbac;

const ABOUT: &str =
    "Takes the roll of a Kubernetes cluster: who should answer, who does not, why, and what mends it";

const LONG_ABOUT: &str = "\
Takes the roll of a Kubernetes cluster.

Every machine that somebody started must turn up as a Ready node, and stay one. For each machine that does not, \
Reveille says where on the way it stopped and why, with the evidence, takes the smallest safe step that brings it \
back, and checks that the step worked. A new roster only looks: it tells what it would do, and acting is switched \
on remedy by remedy.";

const AFTER_HELP: &str = "\
First steps:
  reveille demo            a story on a made-up cluster; needs nothing, changes nothing
  reveille init            look at your cluster and cloud, write a roster to start from
  reveille roll            who is here, who is missing
  reveille why MACHINE     where it stopped, why, what was done, what comes next

Exit codes: 0 everyone answers · 1 somebody is absent · 2 it could not be told · 64 wrong usage or roster · 65 a recording that cannot be read · 70 a fault of ours";

/// The whole command line.
#[derive(Clone, Debug, Parser)]
#[command(name = "reveille", version, about = ABOUT, long_about = LONG_ABOUT, after_help = AFTER_HELP)]
#[command(max_term_width = 100, propagate_version = true)]
pub(crate) struct Cli {
    /// What is asked of every command.
    #[command(flatten)]
    pub(crate) common: Common,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Args, Clone, Debug)]
pub(crate) struct Common {
    /// Roster file; may be given several times
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "REVEILLE_ROSTER",
        default_value = "reveille.yaml"
    )]
    pub(crate) roster: Vec<PathBuf>,

    /// Where ledgers and pauses are kept, a folder for each roster [default: $XDG_STATE_HOME/reveille]
    #[arg(long, global = true, value_name = "DIR", env = "REVEILLE_STATE")]
    pub(crate) state: Option<PathBuf>,

    /// Folder with catalogue entries of your own, laid over ours: what texts of machines prove
    #[arg(long, global = true, value_name = "DIR", env = "REVEILLE_CATALOGUE")]
    pub(crate) catalogue: Option<PathBuf>,

    /// How to print: for people, or for programs
    #[arg(long, short, global = true, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: Output,

    /// Colours. Nothing is said by colour alone
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
}

/// How an answer is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Aligned text
    Table,
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
}

/// When colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// What can be asked.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// Watch over the rosters and mend what they allow
    #[command(after_long_help = RUN_EXAMPLES)]
    Run(Run),
    /// Who is here, who is missing
    #[command(after_long_help = ROLL_EXAMPLES)]
    Roll(Roll),
    /// Where a machine stopped, why, what was done about it, and what comes next
    #[command(after_long_help = WHY_EXAMPLES)]
    Why(Why),
    /// What would be done now, what is held back, and by what
    #[command(after_long_help = PLAN_EXAMPLES)]
    Plan,
    /// Faults that are open, and those that are over
    Incidents(Incidents),
    /// Say "hands off" for the roster, a pool or a machine
    #[command(after_long_help = PAUSE_EXAMPLES)]
    Pause(Pause),
    /// Take a "hands off" back
    Resume(Resume),
    /// Look at a cluster and its cloud and write a roster to start from
    #[command(after_long_help = INIT_EXAMPLES)]
    Init(Init),
    /// Play a story on a made-up cluster: faults, findings, repairs, proofs
    #[command(after_long_help = DEMO_EXAMPLES)]
    Demo(Demo),
    /// On the machine: what is wrong with it, in order, and what to do; only reads
    #[command(after_long_help = doctor::EXAMPLES)]
    Doctor(Box<doctor::Doctor>),
    /// Read logs, command output or a support bundle and say why a machine did not join
    #[command(after_long_help = DIAGNOSE_EXAMPLES)]
    Diagnose(Diagnose),
    /// On a machine: its own process, invited by a registration server
    #[command(after_long_help = agent::EXAMPLES)]
    Agent(agent::Agent),
    /// On a machine: join a cluster; it is over only when the node is there and stays
    #[command(after_long_help = join::EXAMPLES)]
    Join(join::Join),
    /// Play a scenario on a made-up cluster and explain it, or make a random course of faults up
    #[command(after_long_help = SIMULATE_EXAMPLES)]
    Simulate(Simulate),
    /// Play a recording through the engine again and compare what it decides
    #[command(after_long_help = REPLAY_EXAMPLES)]
    Replay(Replay),
    /// Have a machine's agent send its evidence, or say what its checks say
    #[command(after_long_help = collect::EXAMPLES)]
    Collect(collect::Collect),
    /// Print the one command by which a machine comes to this cluster
    #[command(after_long_help = invite::EXAMPLES)]
    Invite(invite::Invite),
    /// Print the rights that it needs in the cluster, and no others, as YAML for kubectl
    #[command(after_long_help = rights::EXAMPLES)]
    Rbac(Rbac),
    /// Print completions for a shell
    #[command(
        after_long_help = "Example:\n  reveille completions bash > ~/.local/share/bash-completion/completions/reveille"
    )]
    Completions(Completions),
    /// Print the manual page, or write one for each command into a folder
    Man(Man),
}

const RUN_EXAMPLES: &str = "\
Examples:
  reveille run                                   ./reveille.yaml, until it is told to stop
  reveille run --roster prod.yaml --dry-run      looks and decides, begins nothing
  reveille run --once                            acts on what is due, prints the roll, ends with its exit code
  reveille run --listen 10.0.0.9:9464 --plans plans.yaml   machines register here; see reveille invite
  reveille run --roster a.yaml --roster b.yaml   two clusters; one that share a cloud is listed once

What is seen, decided and done is one line each on standard error, and is kept in the ledger.";

/// `run`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Run {
    /// Act on what is due, wait until it has settled, print the roll and end
    #[arg(long)]
    pub(crate) once: bool,
    /// With --once: end after this long even if something is still on its way, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120, requires = "once", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) within: u32,
    /// Decide and tell, but begin nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Keep every event and decision below this folder, without secrets, for `reveille replay`
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
    /// With --record: what the recordings of a roster may take; the oldest go first, mebibytes
    #[arg(long, value_name = "MIB", default_value_t = 1024, requires = "record", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub(crate) record_max_mib: u32,
    /// Also be the registration server of machines that join: listen at this address
    #[arg(long, value_name = "ADDRESS", conflicts_with = "once")]
    pub(crate) listen: Option<std::net::SocketAddr>,
    /// With --listen: a name or address that machines reach it by; may be given several times
    #[arg(long, value_name = "NAME", requires = "listen")]
    pub(crate) listen_name: Vec<String>,
    /// With --listen: what machines of each pool are to be
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub(crate) plans: Option<PathBuf>,
    /// With --listen: send each join that is over as an OpenTelemetry trace to the collector at this address (OTLP/HTTP)
    #[arg(long, value_name = "URL", requires = "listen")]
    pub(crate) otlp_endpoint: Option<String>,
    /// The same, to the collector that OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT names
    #[arg(long, requires = "listen", conflicts_with = "otlp_endpoint")]
    pub(crate) otlp_env: bool,
    /// Form of the log on standard error
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
}

/// Form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// A line for people
    Text,
    /// A JSON object on each line
    Json,
}

const ROLL_EXAMPLES: &str = "\
Examples:
  reveille roll                     who is missing, and what happens next
  reveille roll --all               everyone
  reveille roll -o json | jq '.machines[] | select(.answers == \"no\") | .name'

Asks a running controller, or looks once itself, without changing anything.";

/// `roll`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Roll {
    /// Also show the machines that answer
    #[arg(long)]
    pub(crate) all: bool,
}

const WHY_EXAMPLES: &str = "\
Examples:
  reveille why kks-prod-w-7xk2p      by the machine's name
  reveille why 0c2f9d2e              by the beginning of its instance's id, if only one begins so
  reveille why w-7xk2p --timeline    and when it entered and left each stage";

/// `why`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Why {
    /// Name or id of a machine, or name of its node
    pub(crate) machine: String,
    /// Also each of the fourteen stages: entered, left, attempts, deadline and last error, from both sides
    #[arg(long)]
    pub(crate) timeline: bool,
}

const PLAN_EXAMPLES: &str = "\
Examples:
  reveille plan
  reveille plan -o yaml";

/// `incidents`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Incidents {
    /// Also show those that are over
    #[arg(long)]
    pub(crate) all: bool,
}

const PAUSE_EXAMPLES: &str = "\
Examples:
  reveille pause --reason \"cloud maintenance until 18:00\"        the whole roster
  reveille pause pool/gpu --reason \"driver upgrade\"              one pool
  reveille pause kks-prod-w-7xk2p --reason \"Ann looks at it\"     one machine
  reveille resume pool/gpu

What is already on its way is finished and verified; nothing new is begun. Looking goes on.";

/// `pause`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Pause {
    /// Name or id of a machine, or pool/NAME; the whole roster when left out
    #[arg(value_name = "MACHINE|pool/NAME")]
    pub(crate) scope: Option<String>,
    /// Why, for everyone who wonders later
    #[arg(long)]
    pub(crate) reason: String,
    /// Who says so [default: your user name]
    #[arg(long, env = "USER", hide_env_values = true)]
    pub(crate) by: Option<String>,
}

/// `resume`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Resume {
    /// As it was given to `pause`; the pause of the whole roster when left out
    #[arg(value_name = "MACHINE|pool/NAME")]
    pub(crate) scope: Option<String>,
    /// Take back every pause
    #[arg(long, conflicts_with = "scope")]
    pub(crate) all: bool,
}

const INIT_EXAMPLES: &str = "\
Examples:
  reveille init                                      current context, the only cloud of clouds.yaml
  reveille init --context prod-admin --cloud prod --file prod.yaml
  reveille init --file - | less                      print it, write nothing

It only reads. The roster it writes only looks, too: read it, correct it, then switch remedies on.";

/// `init`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Init {
    /// Where to write the roster; - prints it. An existing file is never overwritten
    #[arg(long, value_name = "FILE", default_value = "reveille.yaml")]
    pub(crate) file: PathBuf,
    /// Name of the roster [default: the context's]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// kubeconfig [default: KUBECONFIG, then ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current one]
    #[arg(long)]
    pub(crate) context: Option<String>,
    /// Entry of clouds.yaml [default: the only one]
    #[arg(long)]
    pub(crate) cloud: Option<String>,
    /// Router that carries pod routes, by its id; it is looked at
    #[arg(long, value_name = "ID")]
    pub(crate) router: Option<String>,
    /// clouds.yaml [default: where the OpenStack client looks]
    #[arg(long, value_name = "FILE")]
    pub(crate) clouds_file: Option<PathBuf>,
}

const DEMO_EXAMPLES: &str = "\
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

const DIAGNOSE_EXAMPLES: &str = "\
Examples:
  journalctl -u kubelet -b | reveille diagnose            a log from a pipe
  reveille diagnose console.log cloud-init-output.log     several files of one machine
  reveille diagnose bundle.tar.gz                         a support bundle: kubectl cluster-info dump, sosreport, \
Rancher's, EKS's or AKS's collector
  reveille diagnose -o json kubelet.log | jq -r '.findings[0].cause'
  reveille diagnose --explain RV117                       what a finding means, and what proves it
  reveille diagnose --catalogue ./ours kubelet.log        with your own entries laid over ours

Give it everything of one machine at once: what explains the rest is often in another file. Formats and packing are \
recognised; nothing is written and nobody is asked. Secrets in quoted lines are masked.

Exit codes: 0 nothing is wrong · 1 findings · 2 it could not be told · 64 wrong usage or catalogue";

/// `diagnose`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Diagnose {
    /// Files, folders, archives, or - for standard input [default: standard input]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// What kind of cluster it is, where that is known: kubeadm, k3s, rke1, rke2, eks, aks, gke, capi, talos, …
    #[arg(long, value_name = "NAME")]
    pub(crate) platform: Option<String>,
    /// Threads that read [default: as many as there are cores, at most 8]; what is found does not depend on it
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Print the page of a finding, by its code or cause
    #[arg(long, value_name = "CODE", conflicts_with = "paths")]
    pub(crate) explain: Option<String>,
}

const SIMULATE_EXAMPLES: &str = "\
Examples:
  reveille simulate --list                           the scenarios that come with it
  reveille simulate A1                               one of them, by its number
  reveille simulate --phrases                        what a scenario may say
  reveille simulate mine.scenario                    one that you wrote
  reveille simulate --seed 7 --days 3 --machines 50  three made-up days
  reveille simulate --seed 7 --faults zone-dark,errored
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
    /// Put another policy in the engine's place: a model of what another program is documented to do
    #[arg(long, value_name = "NAME", conflicts_with = "list", value_parser = policy)]
    pub(crate) policy: Option<Policy>,
    /// Play it under every policy and count side by side; without FILE or --seed, everything that comes with Reveille
    #[arg(long, conflicts_with_all = ["list", "policy"])]
    pub(crate) compare: bool,
    /// With --compare or --policy: so many seeds, from --seed on
    #[arg(long, value_name = "COUNT", default_value_t = 1, requires = "seed", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) seeds: u64,
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

const REPLAY_EXAMPLES: &str = "\
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

/// `completions`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Completions {
    /// Which shell
    pub(crate) shell: clap_complete::Shell,
}

/// `man`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Man {
    /// Write a page for each command into this folder instead of printing the first one
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
