//! Arguments of `hot`: what it watches, for how long, and which rates it reports.

use std::path::PathBuf;

use clap::Args;

pub(super) const EXAMPLES: &str = "\
Examples:
  reveille hot                                       watch for 25 s, then list the objects and their suspected writers
  reveille hot --watch                               run until interrupted; print a line for each change
  reveille hot --kind nodes.management.cattle.io     only this kind; secrets and events must be named
  reveille hot --audit-log audit.log                 read an audit log: names user, program and address
  reveille hot --klog kube-apiserver.log.gz          read the API server's log at verbosity 5
  reveille hot -o json | jq -r '.verdicts[] | .name + \" \" + (.suspects[0].name // \"?\")'

Read-only: it watches metadata, and reads whole objects only if they are suspected. Writers are suspected, not proved; an \
audit log is the best proof. With a log, the cluster is only asked for the machines of the objects that were found.

Exit codes: 0 no object is updated in a loop · 1 at least one is · 2 unknown · 64 usage error";

/// `hot`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Hot {
    /// Run until interrupted
    #[arg(long, conflicts_with_all = ["audit_log", "klog"])]
    pub(crate) watch: bool,
    /// How long to watch, 5s or longer [default: 25s]; with --watch: exit after this time
    #[arg(long = "for", value_name = "TIME", value_parser = super::waits::seconds(5..=2_592_000))]
    pub(crate) seconds: Option<u32>,
    /// kubeconfig [default: KUBECONFIG, then ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current one]
    #[arg(long)]
    pub(crate) context: Option<String>,
    /// Only this kind, as PLURAL or PLURAL.GROUP; repeatable [default: all but secrets and events]
    #[arg(long, value_name = "KIND", conflicts_with_all = ["audit_log", "klog"])]
    pub(crate) kind: Vec<String>,
    /// Audit log as JSON lines, plain or gzip, - for standard input; repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) audit_log: Vec<PathBuf>,
    /// Log of an API server at verbosity 5, plain or gzip, - for standard input; repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) klog: Vec<PathBuf>,
    /// With a log: do not ask the cluster for machines
    #[arg(long)]
    pub(crate) offline: bool,
    /// Updates of one object per second that are still normal
    #[arg(long, value_name = "RATE", default_value_t = 0.2, value_parser = rate)]
    pub(crate) sustained: f64,
    /// Updates of one object per second that are reported at once
    #[arg(long, value_name = "RATE", default_value_t = 2.0, value_parser = rate)]
    pub(crate) at_once: f64,
}

/// A rate in a useful range.
fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "write a number, for instance 0.2".to_owned())?;
    if (0.001..=10_000.0).contains(&rate) { Ok(rate) } else { Err("from 0.001 to 10000 a second".to_owned()) }
}
