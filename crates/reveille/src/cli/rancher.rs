//! `rancher`: Rancher's records of nodes.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const INSPECT_EXAMPLES: &str = "\
Examples:
  reveille rancher inspect                             every cluster, by Rancher's own API server
  reveille rancher inspect shop --downstream shop.kubeconfig    one, with its Nodes and agents
  reveille rancher inspect c-abcde -o json | jq '.clusters[].troubles[].records'

It only reads, in pages, with a deadline for each. Without --downstream nothing is said of Nodes: what rests on them (a Node \
without a record, a record without a Node, a deletion that does not end) is not judged. What it needs to be allowed: reveille \
rbac --rancher management, and --rancher downstream.

Exit codes: 0 nothing is amiss · 1 something is · 2 it could not be told · 64 wrong usage";

/// `rancher`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Rancher {
    #[command(subcommand)]
    pub(crate) command: RancherCommand,
}

/// What can be asked of a Rancher.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum RancherCommand {
    /// What is amiss with its records, beside a healthy one, and the first safe step; only reads
    #[command(after_long_help = INSPECT_EXAMPLES)]
    Inspect(Inspect),
    /// Take a machine out, Node before record, so that it can register anew; tells what it would do, and does it with --yes
    #[command(after_long_help = REPAIR_EXAMPLES)]
    Evict(Repair),
    /// Mend a record in place by one edit, where its machine cannot be taken out; tells, and does it with --yes
    #[command(after_long_help = REPAIR_EXAMPLES)]
    Mend(Repair),
    /// End a repair that was begun and stopped, for good: what was done, what is so, what is left; tells, and does it with --yes
    #[command(after_long_help = ABANDON_EXAMPLES)]
    Abandon(Abandon),
}

const REPAIR_EXAMPLES: &str = "\
Examples:
  reveille rancher evict w-3            each step, and what stands against it; changes nothing
  reveille rancher evict w-3 --yes      does it, where the roster says spec.rancher.repair.evict: act
  reveille rancher mend cp-1            what one edit would write, and what stands against it

Needs a roster with spec.rancher. Where it stops it says why; the same command goes on from what it finds. It waits for \
two looks that agree, half a minute apart, before the first step, after the Node is gone, and at the end.

Exit codes: 0 it could be done, or is done · 1 something stands against it, or it stopped · 2 it could not be told · 64 wrong usage";

const ABANDON_EXAMPLES: &str = "\
Examples:
  reveille rancher abandon w-3          steps of its open repair, what is so now, and what is left to do by hand
  reveille rancher abandon w-3 --yes    writes its end into the book, so that another repair may begin

It changes nothing but the book: what was done stays done. Where the clusters cannot be reached the book is shown alone, \
and can be ended all the same.

Exit codes: 0 it is ended · 1 it was shown, and is still open · 2 it could not be told · 64 wrong usage, or nothing of it is open";

/// `rancher abandon`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Abandon {
    /// The name of the Node
    pub(crate) node: String,
    /// Write its end into the book
    #[arg(long)]
    pub(crate) yes: bool,
}

/// `rancher evict`, `rancher mend`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Repair {
    /// The name of the Node
    pub(crate) node: String,
    /// Do it, where the roster allows it
    #[arg(long)]
    pub(crate) yes: bool,
    /// Evict pods whose data is on the machine alone, too
    #[arg(long)]
    pub(crate) accept_local_data_loss: bool,
}

/// Where a Rancher and a cluster below it are.
#[derive(Args, Clone, Debug)]
pub(crate) struct Places {
    /// kubeconfig of the management cluster, Rancher's own [default: KUBECONFIG, then ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of it [default: its current one]
    #[arg(long)]
    pub(crate) context: Option<String>,
    /// kubeconfig of the cluster itself, for its Nodes and agents
    #[arg(long, value_name = "FILE", requires = "cluster")]
    pub(crate) downstream: Option<PathBuf>,
    /// Context of that one [default: its current one]
    #[arg(long, value_name = "CONTEXT", requires = "downstream")]
    pub(crate) downstream_context: Option<String>,
}

/// `rancher inspect`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Inspect {
    /// Id or name of a cluster; all of them when left out
    pub(crate) cluster: Option<String>,
    #[command(flatten)]
    pub(crate) places: Places,
    /// Look a second time after so long, for what only time tells, seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub(crate) again_after: Option<u32>,
    /// Also read the secrets with plans of machines, for whether they were applied; what they hold is not kept or shown
    #[arg(long)]
    pub(crate) plans: bool,
}
