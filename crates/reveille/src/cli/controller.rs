//! What is asked of a whole cluster: `run` and what looks, says hands off, sets up, or lets machines in.
//!
//! Not there without the feature `controller`. Stories, simulations and recordings have their arguments in `play`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{LogFormat, collect, hot, init, invite, play, rancher, reached, rights};

/// Which rosters, and where what is known of them is kept.
#[derive(Args, Clone, Debug)]
pub(crate) struct Rosters {
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
}

/// What can be asked of a cluster.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// Watch over the rosters and mend what they allow
    #[command(after_long_help = RUN_EXAMPLES)]
    Run(Run),
    /// List machines: which are Ready nodes, which are missing, and what happens next
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
    #[command(after_long_help = init::EXAMPLES)]
    Init(init::Init),
    /// Which objects of an API server are written without end, and who may be writing them; only reads
    #[command(after_long_help = hot::EXAMPLES)]
    Hot(hot::Hot),
    /// Play a story on a made-up cluster: faults, findings, repairs, proofs
    #[command(after_long_help = play::DEMO_EXAMPLES)]
    Demo(play::Demo),
    /// Play a scenario on a made-up cluster and explain it, or make a random course of faults up
    #[command(after_long_help = play::SIMULATE_EXAMPLES)]
    Simulate(play::Simulate),
    /// Play a recording through the engine again and compare what it decides
    #[command(after_long_help = play::REPLAY_EXAMPLES)]
    Replay(play::Replay),
    /// Have a machine's agent send its evidence, or say what its checks say
    #[command(after_long_help = collect::EXAMPLES)]
    Collect(collect::Collect),
    /// Print the one command by which a machine comes to this cluster
    #[command(after_long_help = invite::EXAMPLES)]
    Invite(invite::Invite),
    /// Rancher's records of nodes: what is amiss with them, and what to do
    Rancher(rancher::Rancher),
    /// Print the rights that it needs in the cluster, and no others, as YAML for kubectl
    #[command(after_long_help = rights::EXAMPLES)]
    Rbac(rights::Rbac),
    /// Print the rights that it needs in an AWS account, and no others, as an IAM policy
    #[command(after_long_help = rights::IAM_EXAMPLES)]
    Iam(rights::Iam),
    /// Print the requests that it sends to an OpenStack project, and no others, as access rules of an application credential
    #[command(after_long_help = rights::RULES_EXAMPLES)]
    AccessRules(rights::AccessRules),
}

const RUN_EXAMPLES: &str = "\
Examples:
  reveille run                                   ./reveille.yaml, until it is told to stop
  reveille run --roster prod.yaml --dry-run      looks and decides, begins nothing
  reveille run --once                            acts on what is due, prints the roll, ends with its exit code
  reveille run --listen 10.0.0.9:9464 --plans plans.yaml   machines register here; see reveille invite
  reveille run --roster a.yaml --roster b.yaml   two clusters; a cloud that both use is listed once

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
    /// The cluster whose namespace kube-system has this UID is the right one, although the ledger is about another
    #[arg(long, value_name = "UID")]
    pub(crate) confirm_cluster: Option<String>,
    /// Forget the machines of this cloud, which the ledger knows and the roster does not name; may be given several times
    #[arg(long, value_name = "CLOUD")]
    pub(crate) forget_cloud: Vec<String>,
    /// Keep every event and decision below this folder, without secrets, for `reveille replay`
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
    /// With --record: what the recordings of a roster may take; the oldest go first, mebibytes
    #[arg(long, value_name = "MIB", default_value_t = 1024, requires = "record", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub(crate) record_max_mib: u32,
    /// Also be the registration server of machines that join: listen at this address
    #[arg(long, value_name = "ADDRESS", conflicts_with = "once", value_parser = reached::listen)]
    pub(crate) listen: Option<std::net::SocketAddr>,
    /// With --listen: a name or address that machines reach it by; may be given several times
    #[arg(long, value_name = "NAME", requires = "listen", value_parser = reached::name)]
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
