//! `hot`: what is looked at, for how long, and from when on it counts.

use std::path::PathBuf;

use clap::Args;

pub(super) const EXAMPLES: &str = "\
Examples:
  reveille hot                                       looks for 25 s, tells what is written without end, and by whom
  reveille hot --watch                               goes on until it is interrupted; a line for what begins, changes, ends
  reveille hot --kind nodes.management.cattle.io     only this kind; secrets and events only when they are named
  reveille hot --audit-log audit.log                 a log in place of a look: names user, program and address
  reveille hot --klog kube-apiserver.log.gz          the API server's own log at verbosity 5
  reveille hot -o json | jq -r '.verdicts[] | .name + \" \" + (.suspects[0].name // \"?\")'

It only reads: metadata of what changes, and whole objects only of those that are suspected. Writers are suspected, not \
proved; the audit log is the best proof. With a log, the cluster is asked for nothing but the machines behind what was found.

Exit codes: 0 nothing is hot · 1 something is · 2 it could not be told · 64 wrong usage";

/// `hot`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Hot {
    /// Go on until interrupted
    #[arg(long, conflicts_with_all = ["audit_log", "klog"])]
    pub(crate) watch: bool,
    /// How long to look, seconds; with --watch: end after this long
    #[arg(long = "for", value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(5..=2_592_000))]
    pub(crate) seconds: Option<u32>,
    /// kubeconfig [default: KUBECONFIG, then ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current one]
    #[arg(long)]
    pub(crate) context: Option<String>,
    /// Only this kind, as PLURAL or PLURAL.GROUP; may be given several times [default: all but secrets and events]
    #[arg(long, value_name = "KIND", conflicts_with_all = ["audit_log", "klog"])]
    pub(crate) kind: Vec<String>,
    /// Judge an audit log: JSON lines, plain or gzip; - for standard input; several times: parts of one, or several servers'
    #[arg(long, value_name = "FILE")]
    pub(crate) audit_log: Vec<PathBuf>,
    /// Judge the log of an API server at verbosity 5, plain or gzip; - for standard input; several times as well
    #[arg(long, value_name = "FILE")]
    pub(crate) klog: Vec<PathBuf>,
    /// With a log: ask no cluster for the machines behind it
    #[arg(long)]
    pub(crate) offline: bool,
    /// Writes of one object that may last, in a second
    #[arg(long, value_name = "RATE", default_value_t = 0.2, value_parser = rate)]
    pub(crate) sustained: f64,
    /// Writes of one object from which it is hot at once, in a second
    #[arg(long, value_name = "RATE", default_value_t = 2.0, value_parser = rate)]
    pub(crate) at_once: f64,
}

/// A rate that a person means.
fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "write a number, for instance 0.2".to_owned())?;
    if (0.001..=10_000.0).contains(&rate) { Ok(rate) } else { Err("from 0.001 to 10000 a second".to_owned()) }
}
