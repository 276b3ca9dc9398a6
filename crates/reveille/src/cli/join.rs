//! Arguments of `join`, which makes this machine a Node and keeps it one.

use std::path::PathBuf;

use clap::Args;
use reveille_core::model::time::Span;

use super::target::TargetArgs;

pub(super) const EXAMPLES: &str = "\
Examples:
  reveille join 10.0.0.1:6443 --token-file /run/token \\
      --discovery-token-ca-cert-hash sha256:4c1f…        as kubeadm join, and wait until the Node stays Ready
  reveille join --config /etc/kubeadm-join.yaml          with kubeadm's own configuration
  reveille join 10.0.0.1:6443 --distribution k3s --token-file /run/node-token
                                                         a k3s agent, installed and not started; rke2: port 9345
  reveille join --config join.yaml --stay 5m --within 1h with longer timeouts, for cloud-init

Checks the machine, joins, and waits until its Node is Ready and stays so for --stay. If the Node disappears, the kubelet
is restarted. If the token is rejected, its file is read again. State of an older join is reset if it is proved stale;
copies are kept. The command changes nothing on a machine whose Node is Ready, that is a control plane or in another
cluster, or that was removed on purpose. The command can be repeated.

Exit codes: 0 the Node is Ready and stays · 1 manual action needed · 2 timeout · 64 usage error";

/// `join`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Join {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// kubeadm preflight checks to ignore
    #[arg(long, value_name = "CHECKS", value_delimiter = ',')]
    pub(crate) ignore_preflight_errors: Vec<String>,
    /// How long the Node must stay Ready
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = time)]
    pub(crate) stay: Span,
    /// Timeout of the whole command
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = time)]
    pub(crate) within: Span,
    /// Directory of the agent's state and of copies before a reset
    #[arg(long, value_name = "DIR", default_value = "/var/lib/reveille/agent")]
    pub(crate) memory: PathBuf,
    /// Print all output of kubeadm
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

fn time(text: &str) -> Result<Span, String> {
    let span = reveille_wire::duration::parse(text).map_err(|error| error.to_string())?;
    if (Span::from_s(1)..=Span::from_min(24 * 60)).contains(&span) {
        Ok(span)
    } else {
        Err("write a time from 1s to 24h".to_owned())
    }
}
