//! `join`: a machine becomes a node, and stays one.

use std::path::PathBuf;

use clap::Args;
use reveille_core::model::time::Span;

use super::target::TargetArgs;

pub(super) const EXAMPLES: &str = "\
Examples:
  reveille join 10.0.0.1:6443 --token-file /run/token \\
      --discovery-token-ca-cert-hash sha256:4c1f…        as kubeadm join, and over only when the node stays
  reveille join --config /etc/kubeadm-join.yaml          with kubeadm's own configuration
  reveille join 10.0.0.1:6443 --distribution k3s --token-file /run/node-token
                                                         an agent of k3s, installed and not started; rke2 at port 9345
  reveille join --config join.yaml --stay 5m --within 1h patient: for cloud-init

Looks first, joins, and watches: the node is in the API with this machine's identity, Ready, and still there after --stay.
If it goes, the kubelet is restarted; if the token died, the file is read again; what is proved stale is reset, and
copies are kept. A machine whose node is Ready, that runs a control plane, belongs to another cluster, or was removed
on purpose is left alone. Run it again whenever you like: what holds is not touched.

Exit codes: 0 the node is there and stays · 1 it is not, a person has to look · 2 time is over · 64 wrong usage";

/// `join`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Join {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Preflight checks of kubeadm to pass over
    #[arg(long, value_name = "CHECKS", value_delimiter = ',')]
    pub(crate) ignore_preflight_errors: Vec<String>,
    /// The node has to be Ready for so long
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = time)]
    pub(crate) stay: Span,
    /// All of it may take so long
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = time)]
    pub(crate) within: Span,
    /// Where the agent remembers what it did, and keeps copies before a reset
    #[arg(long, value_name = "DIR", default_value = "/var/lib/reveille/agent")]
    pub(crate) memory: PathBuf,
    /// Every line that kubeadm prints
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
