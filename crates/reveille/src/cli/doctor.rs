//! Arguments of `doctor`, which lists what is wrong with this machine, in order.

use std::path::PathBuf;

use clap::Args;

use super::target::TargetArgs;

pub(super) const EXAMPLES: &str = "\
Examples:
  sudo reveille doctor                                   a machine after its join, or after a failed join
  sudo reveille doctor kubeadm join 10.0.0.1:6443 --token-file /run/token \\
      --discovery-token-ca-cert-hash sha256:4c1f…        before a join
  sudo reveille doctor --config /etc/kubeadm-join.yaml   with kubeadm's own configuration
  sudo reveille doctor -o json | jq -r .first            the check to fix first
  sudo reveille doctor --bundle machine.tar.gz           a bundle for a colleague or a ticket, without secrets
  reveille doctor --root /mnt                            the mounted disk of a machine that does not boot

Read-only; takes a few seconds. A check is skipped when another check that it needs failed: fix the first failed check.
Without root some checks cannot run; the output lists them.

Exit codes: 0 no problem · 1 a check failed · 2 unknown · 64 usage error";

/// `doctor`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Additional log file, besides the journal and /var/log; repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Vec<PathBuf>,
    /// Read no logs
    #[arg(long, conflicts_with = "log")]
    pub(crate) no_logs: bool,
    /// Also write facts, checks, logs and configuration to an archive, without secrets
    #[arg(long, value_name = "FILE.tar.gz")]
    pub(crate) bundle: Option<PathBuf>,
    /// Root directory of the machine
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub(crate) root: PathBuf,
}
