//! Arguments of the commands for a whole cluster: `run`, the reading commands, pauses, setup and invitations.
//!
//! The build without the feature `controller` does not have them. Demo, simulations and recordings have
//! their arguments in `play`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::cloud::CloudRights;
use super::{GLOBAL_OPTIONS, LogFormat, collect, hot, init, invite, play, rancher, reached, rights};

/// Which rosters, and where what is known of them is kept.
#[derive(Args, Clone, Debug)]
pub(crate) struct Rosters {
    /// Roster file; repeatable
    #[arg(
        long,
        global = true,
        help_heading = GLOBAL_OPTIONS,
        value_name = "FILE",
        env = "REVEILLE_ROSTER",
        default_value = USUAL_FILE
    )]
    pub(crate) roster: Vec<PathBuf>,

    /// Directory of ledgers and pauses, with a subdirectory for each roster [default: $XDG_STATE_HOME/reveille]
    #[arg(long, global = true, help_heading = GLOBAL_OPTIONS, value_name = "DIR", env = "REVEILLE_STATE")]
    pub(crate) state: Option<PathBuf>,
}

impl Rosters {
    /// A roster was named.
    pub(crate) fn is_named(&self) -> bool {
        self.roster.iter().any(|file| file.as_os_str() != USUAL_FILE)
    }

    /// A roster was named, or the usual file is there.
    pub(crate) fn is_there(&self) -> bool {
        self.is_named() || self.roster.iter().any(|file| file.exists())
    }
}

/// The roster of the working directory.
const USUAL_FILE: &str = "reveille.yaml";

/// A cluster that is looked at without a roster.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Reach {
    /// Without a roster: context of the kubeconfig [default: its current one]
    #[arg(long, value_name = "CONTEXT")]
    pub(crate) context: Option<String>,
    /// Without a roster: kubeconfig [default: KUBECONFIG, then ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
}

impl Reach {
    /// The cluster was named, and so no roster is meant.
    pub(crate) fn is_given(&self) -> bool {
        self.context.is_some() || self.kubeconfig.is_some()
    }
}

/// What can be asked of a cluster.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the controller: monitor and repair
    #[command(after_long_help = RUN_EXAMPLES)]
    Run(Run),
    /// List machines and their problems
    #[command(after_long_help = STATUS_EXAMPLES, alias = "roll")]
    Status(Status),
    /// Explain why a machine is not a Ready node
    #[command(after_long_help = WHY_EXAMPLES)]
    Why(Why),
    /// List the next repair steps, and what blocks them
    #[command(after_long_help = PLAN_EXAMPLES)]
    Plan(Plan),
    /// List incidents
    Incidents(Incidents),
    /// Pause repairs of the roster, a pool or a machine
    #[command(after_long_help = PAUSE_EXAMPLES)]
    Pause(Pause),
    /// Resume repairs
    Resume(Resume),
    /// Read a cluster and its cloud, and write a first roster
    #[command(after_long_help = init::EXAMPLES)]
    Init(init::Init),
    /// Find objects that are updated in a loop, and their writers; read-only
    #[command(after_long_help = hot::EXAMPLES)]
    Hot(hot::Hot),
    /// Run failures and repairs on a simulated cluster
    #[command(after_long_help = play::DEMO_EXAMPLES)]
    Demo(play::Demo),
    /// Run a scenario, or random failures, on a simulated cluster
    #[command(after_long_help = play::SIMULATE_EXAMPLES)]
    Simulate(play::Simulate),
    /// Run a recording through the engine again, and compare the decisions
    #[command(after_long_help = play::REPLAY_EXAMPLES)]
    Replay(play::Replay),
    /// Fetch logs and checks from a machine through its agent
    #[command(after_long_help = collect::EXAMPLES)]
    Collect(collect::Collect),
    /// Print the join command for a machine
    #[command(after_long_help = invite::EXAMPLES)]
    Invite(invite::Invite),
    /// Find and repair broken node records of Rancher
    Rancher(rancher::Rancher),
    /// Print the minimal RBAC rules as YAML for kubectl
    #[command(after_long_help = rights::EXAMPLES)]
    Rbac(rights::Rbac),
    /// Print the minimal permissions on a cloud
    #[command(flatten)]
    CloudRights(CloudRights),
}

const RUN_EXAMPLES: &str = "\
Examples:
  reveille run                                   run with ./reveille.yaml until stopped
  reveille run --roster prod.yaml --dry-run      decide, and change nothing
  reveille run --once                            do what is due, print the status, exit
  reveille run --listen 10.0.0.9:9464 --plans plans.yaml   also be the registration server; see reveille invite
  reveille run --roster a.yaml --roster b.yaml   two clusters; a cloud of both is listed once

Each observation, decision and repair is a line on standard error and is kept in the ledger.";

/// `run`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Run {
    /// Do what is due, wait for its result, print the status and exit
    #[arg(long)]
    pub(crate) once: bool,
    /// With --once: exit after this time even if an operation is still running
    #[arg(long, value_name = "TIME", default_value = "2m", requires = "once", value_parser = super::waits::seconds(1..=86_400))]
    pub(crate) within: u32,
    /// Decide and report, but change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Accept the cluster with this UID (of its namespace kube-system) instead of the ledger's
    #[arg(long, value_name = "UID")]
    pub(crate) confirm_cluster: Option<String>,
    /// Forget the machines of a cloud that the roster no longer names; repeatable
    #[arg(long, value_name = "CLOUD")]
    pub(crate) forget_cloud: Vec<String>,
    /// Record all events and decisions to this directory, without secrets, for `reveille replay`
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
    /// With --record: maximum size of a roster's recordings in MiB; the oldest are deleted first
    #[arg(long, value_name = "MIB", default_value_t = 1024, requires = "record", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub(crate) record_max_mib: u32,
    /// Also run the registration server, at this address
    #[arg(long, value_name = "ADDRESS", conflicts_with = "once", value_parser = reached::listen)]
    pub(crate) listen: Option<std::net::SocketAddr>,
    /// With --listen: a name or address under which machines reach the server; repeatable
    #[arg(long, value_name = "NAME", requires = "listen", value_parser = reached::name)]
    pub(crate) listen_name: Vec<String>,
    /// With --listen: the join plan of each pool
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub(crate) plans: Option<PathBuf>,
    /// With --listen: send each finished join as an OpenTelemetry trace to this collector (OTLP/HTTP)
    #[arg(long, value_name = "URL", requires = "listen")]
    pub(crate) otlp_endpoint: Option<String>,
    /// As --otlp-endpoint, with the address from OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT
    #[arg(long, requires = "listen", conflicts_with = "otlp_endpoint")]
    pub(crate) otlp_env: bool,
    /// Log format on standard error
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
}

const STATUS_EXAMPLES: &str = "\
Examples:
  reveille status                   machines with problems
  reveille status --all             all machines
  reveille status --context prod    a cluster without a roster: its Nodes and machine records
  reveille status -o json | jq '.machines[] | select(.answers == \"no\") | .name'

Asks the running controller. If none runs, it reads cluster and cloud once and changes nothing. Without a roster file it \
reads the current context of the kubeconfig.

Exit codes: 0 all machines Ready · 1 a machine is not Ready or missing · 2 unknown · 64 usage error or invalid roster";

/// `status`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Status {
    /// Also show machines without problems
    #[arg(long)]
    pub(crate) all: bool,
    /// The cluster, where there is no roster.
    #[command(flatten)]
    pub(crate) reach: Reach,
}

const WHY_EXAMPLES: &str = "\
Examples:
  reveille why kks-prod-w-7xk2p      by the machine's name
  reveille why 0c2f9d2e              by a unique prefix of its instance id
  reveille why w-7xk2p --timeline    with the time in each stage

Exit codes: 0 the machine is Ready, or is not expected to be · 1 it is not · 2 unknown · 64 usage error or invalid roster";

/// `why`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Why {
    /// Name or id of a machine, or name of its Node
    pub(crate) machine: String,
    /// Also show each of the fourteen stages: entered, left, attempts, deadline, last error
    #[arg(long)]
    pub(crate) timeline: bool,
    /// The cluster, where there is no roster.
    #[command(flatten)]
    pub(crate) reach: Reach,
}

const PLAN_EXAMPLES: &str = "\
Examples:
  reveille plan
  reveille plan -o yaml";

/// `plan`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Plan {
    /// The cluster, where there is no roster.
    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// `incidents`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Incidents {
    /// Also show closed incidents
    #[arg(long)]
    pub(crate) all: bool,
}

const PAUSE_EXAMPLES: &str = "\
Examples:
  reveille pause --reason \"cloud maintenance until 18:00\"        the whole roster
  reveille pause pool/gpu --reason \"driver upgrade\"              one pool
  reveille pause kks-prod-w-7xk2p --reason \"Ann debugs it\"      one machine
  reveille resume pool/gpu

Running operations finish and are confirmed. No new one starts. Monitoring continues.

Exit codes: 0 paused · 2 saved, and no controller reads it here · 64 usage error or invalid roster";

/// `pause`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Pause {
    /// Name or id of a machine, or pool/NAME [default: the whole roster]
    #[arg(value_name = "MACHINE|pool/NAME")]
    pub(crate) scope: Option<String>,
    /// Reason, shown by status and why
    #[arg(long)]
    pub(crate) reason: String,
    /// Author of the pause [default: your user name]
    #[arg(long, env = "USER", hide_env_values = true)]
    pub(crate) by: Option<String>,
}

/// `resume`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Resume {
    /// As given to `pause` [default: the pause of the whole roster]
    #[arg(value_name = "MACHINE|pool/NAME")]
    pub(crate) scope: Option<String>,
    /// End all pauses
    #[arg(long, conflicts_with = "scope")]
    pub(crate) all: bool,
}
