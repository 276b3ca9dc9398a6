//! Arguments of `agent`, the process on a machine that enrols it, joins it and keeps it joined.

use std::path::PathBuf;

use clap::Args;

pub(super) const EXAMPLES: &str = "\
Examples:
  reveille agent --server https://reveille.example:9464 --token-file /etc/reveille/token \\
      --ca-pin sha256:4c1f…          as printed by reveille invite: enrol this machine and join it
  reveille agent                     later, and after each boot: server, key and plan are in --folder

The agent keeps a connection to the registration server, reports the stage of this machine, applies its plan and joins. If
the Node is lost, the agent brings it back. Without the server it continues with its last plan. It writes the files of the
plan, takes four orders (join, restart the kubelet, collect evidence, probe), and runs no shell. A systemd unit is in deploy/.
With a valid certificate in --folder, --server, --ca-pin and --token-file are ignored: docs/reference/registration.md, \"Start again\".

Exit codes: 2 the server refuses this machine, or --folder is unusable · 64 usage error, or not enrolled and without server or
token. Otherwise the agent runs until it is stopped";

/// `agent`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Agent {
    /// Address of the registration server
    #[arg(long, value_name = "URL", env = "REVEILLE_SERVER", requires = "ca_pin")]
    pub(crate) server: Option<String>,
    /// Public key of the server's authority, sha256:…; several during a rotation
    #[arg(long, value_name = "PIN", value_delimiter = ',')]
    pub(crate) ca_pin: Vec<String>,
    /// File with the invitation's token; not needed once the machine is enrolled
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Directory of key, plan and state
    #[arg(long, value_name = "DIR", default_value = "/var/lib/reveille/agent")]
    pub(crate) folder: PathBuf,
    /// Instance id of this machine [default: from cloud-init]
    #[arg(long, value_name = "ID")]
    pub(crate) instance_id: Option<String>,
    /// Failure domain of this machine
    #[arg(long, value_name = "ZONE")]
    pub(crate) zone: Option<String>,
    /// Tell other agents whether this machine reaches the API server, at ADDRESS:PORT [default: off]
    #[arg(long, value_name = "ADDRESS", env = "REVEILLE_PEER_LISTEN")]
    pub(crate) peer_listen: Option<std::net::SocketAddr>,
    /// How long the Node must stay Ready before the join counts as done
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = super::waits::seconds(1..=3_600))]
    pub(crate) stay: u32,
}
