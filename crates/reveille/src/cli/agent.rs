//! `agent`: a machine's own process, from its invitation to its end.

use std::path::PathBuf;

use clap::Args;

pub(super) const EXAMPLES: &str = "\
Examples:
  reveille agent --server https://reveille.example:9464 --token-file /etc/reveille/token \\
      --ca-pin sha256:4c1f…          as \"reveille invite\" prints it: enrols this machine, joins, and stays with it
  reveille agent                     later, and after each boot: server, key and plan are in --folder

Keeps a connection to the server, reports which stage this machine is in and why not further, applies its plan, joins, and
brings its node back when it is lost. Goes on with what it has when the server is away. Writes the files of its plan,
takes four orders (join, restart the kubelet, collect evidence, probe), and runs no shell. A systemd unit is in deploy/.
While the certificate in --folder counts, --server, --ca-pin and --token-file are not used: docs/registration.md, \"Start again\".

Exit codes: it runs until it is stopped · 2 the server refuses this machine, or --folder cannot be used · 64 wrong usage, or not
enrolled and no server or token is given";

/// `agent`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Agent {
    /// The registration server
    #[arg(long, value_name = "URL", env = "REVEILLE_SERVER", requires = "ca_pin")]
    pub(crate) server: Option<String>,
    /// The key that the server is known by, sha256:…; several while it is replaced
    #[arg(long, value_name = "PIN", value_delimiter = ',')]
    pub(crate) ca_pin: Vec<String>,
    /// File with the invitation's token; not needed while the machine is enrolled
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Where key, plan and memory are kept
    #[arg(long, value_name = "DIR", default_value = "/var/lib/reveille/agent")]
    pub(crate) folder: PathBuf,
    /// The cloud's id of this machine [default: as cloud-init wrote it down]
    #[arg(long, value_name = "ID")]
    pub(crate) instance_id: Option<String>,
    /// This machine's failure domain
    #[arg(long, value_name = "ZONE")]
    pub(crate) zone: Option<String>,
    /// Answer other machines' agents that ask whether this one reaches the API server, at ADDRESS:PORT [default: answer nobody]
    #[arg(long, value_name = "ADDRESS", env = "REVEILLE_PEER_LISTEN")]
    pub(crate) peer_listen: Option<std::net::SocketAddr>,
    /// Seconds that the Node must be Ready before the join counts as done
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub(crate) stay: u32,
}
