//! `doctor`: what is wrong with this machine, in order.

use std::path::PathBuf;

use clap::Args;

use super::target::TargetArgs;

pub(super) const EXAMPLES: &str = "\
Examples:
  sudo reveille doctor                                   a machine that has joined, or was to
  sudo reveille doctor kubeadm join 10.0.0.1:6443 --token-file /run/token \\
      --discovery-token-ca-cert-hash sha256:4c1f…        before a join: would it work?
  sudo reveille doctor --config /etc/kubeadm-join.yaml   with kubeadm's own configuration
  sudo reveille doctor -o json | jq -r .first            the check to see to first
  sudo reveille doctor --bundle machine.tar.gz           everything that somebody else needs, with secrets taken out
  reveille doctor --root /mnt                            the disk of a machine that does not boot

It only reads, and is done within seconds. A check is skipped when what it rests on failed: the first one that failed is
the one to see to. Without root it sees less, and says what.

Exit codes: 0 all is well · 1 something failed · 2 it could not be told · 64 wrong usage";

/// `doctor`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// A log to read besides the journal and those in /var/log; may be given several times
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Vec<PathBuf>,
    /// Read no logs
    #[arg(long, conflicts_with = "log")]
    pub(crate) no_logs: bool,
    /// Also pack facts, checks, logs and configuration, without secrets, for somebody else or `reveille diagnose`
    #[arg(long, value_name = "FILE.tar.gz")]
    pub(crate) bundle: Option<PathBuf>,
    /// Look at the machine whose files are below this folder
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub(crate) root: PathBuf,
}
