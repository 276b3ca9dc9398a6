//! Arguments of `rancher`, which reads and repairs Rancher's node records.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const INSPECT_EXAMPLES: &str = "\
Examples:
  reveille rancher inspect                             all clusters, from Rancher's API server
  reveille rancher inspect shop --downstream shop.kubeconfig    one cluster, with its Nodes and agents
  reveille rancher inspect c-abcde -o json | jq '.clusters[].troubles[].records'

Read-only. Problems that involve Nodes (a Node without a record, a record without a Node, a stuck deletion) need \
--downstream. Required rights: reveille rbac --rancher management, and --rancher downstream.

Exit codes: 0 no problem · 1 problem found · 2 unknown · 64 usage error";

/// `rancher`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Rancher {
    #[command(subcommand)]
    pub(crate) command: RancherCommand,
}

/// What can be asked of a Rancher.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum RancherCommand {
    /// Find broken records and the first safe repair step; read-only
    #[command(after_long_help = INSPECT_EXAMPLES)]
    Inspect(Inspect),
    /// Remove a machine, Node before record, so that it can register again; without --yes: only show the steps
    #[command(after_long_help = REPAIR_EXAMPLES)]
    Evict(Repair),
    /// Repair a record with one edit, if its machine cannot be removed; without --yes: only show the edit
    #[command(after_long_help = REPAIR_EXAMPLES)]
    Mend(Repair),
    /// Close a repair that stopped half-way; without --yes: only show what was done and what is left
    #[command(after_long_help = ABANDON_EXAMPLES)]
    Abandon(Abandon),
}

const REPAIR_EXAMPLES: &str = "\
Examples:
  reveille rancher evict w-3            show the steps and what blocks them; changes nothing
  reveille rancher evict w-3 --yes      run the steps, if the roster has spec.rancher.repair.evict: act
  reveille rancher mend cp-1            show the edit and what blocks it

Needs a roster with spec.rancher. If the command stops, it prints the reason; run it again to continue. It waits for two \
equal readings, half a minute apart, before the first step, after the Node is gone, and at the end.

Exit codes: 0 possible, or done · 1 blocked, or stopped · 2 unknown · 64 usage error";

const ABANDON_EXAMPLES: &str = "\
Examples:
  reveille rancher abandon w-3          show the open repair: its steps, the present state, what is left to do by hand
  reveille rancher abandon w-3 --yes    close it, so that another repair can start

Changes only Reveille's own record of the repair: finished steps are not undone. It also works if the clusters are \
unreachable.

Exit codes: 0 closed · 1 shown, and still open · 2 unknown · 64 usage error, or no open repair";

/// `rancher abandon`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Abandon {
    /// Name of the Node
    pub(crate) node: String,
    /// Close the repair
    #[arg(long)]
    pub(crate) yes: bool,
}

/// `rancher evict`, `rancher mend`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Repair {
    /// Name of the Node
    pub(crate) node: String,
    /// Run the steps, if the roster allows it
    #[arg(long)]
    pub(crate) yes: bool,
    /// Also evict pods with data on this machine only
    #[arg(long)]
    pub(crate) accept_local_data_loss: bool,
}

/// Where a Rancher and a cluster below it are.
#[derive(Args, Clone, Debug)]
pub(crate) struct Places {
    /// kubeconfig of Rancher's management cluster [default: KUBECONFIG, then ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of that kubeconfig [default: the current one]
    #[arg(long)]
    pub(crate) context: Option<String>,
    /// kubeconfig of the managed cluster, for its Nodes and agents
    #[arg(long, value_name = "FILE", requires = "cluster")]
    pub(crate) downstream: Option<PathBuf>,
    /// Context of the managed cluster's kubeconfig [default: the current one]
    #[arg(long, value_name = "CONTEXT", requires = "downstream")]
    pub(crate) downstream_context: Option<String>,
}

/// `rancher inspect`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Inspect {
    /// Id or name of a cluster [default: all clusters]
    pub(crate) cluster: Option<String>,
    #[command(flatten)]
    pub(crate) places: Places,
    /// Read a second time after this time, to find stuck operations
    #[arg(long, value_name = "TIME", value_parser = super::waits::seconds(1..=3_600))]
    pub(crate) again_after: Option<u32>,
    /// Also read plan secrets, to check whether plans were applied; contents are not kept or shown
    #[arg(long)]
    pub(crate) plans: bool,
}
