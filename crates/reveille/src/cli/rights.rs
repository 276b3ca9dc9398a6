//! Arguments of `rbac`: the account that gets the permissions on a cluster. Those on a cloud have `cloud`'s arguments.
//!
//! Names go into YAML unchanged, so only valid names of Kubernetes are accepted. The adapter decides which permissions are
//! needed.

use clap::{Args, ValueEnum};
use reveille_cloud::options::name;

pub(super) const EXAMPLES: &str = "\
Examples:
  reveille rbac | kubectl apply -f -             for the service account reveille in the namespace reveille
  reveille rbac --only prod | kubectl apply -f - change no Lease but that of the roster prod
  reveille rbac --hot | kubectl apply -f -       also list and watch the objects of reveille hot
  reveille rbac --cleanup --namespace ops        also delete Nodes of terminated instances
  reveille rbac --rancher management             for `reveille rancher`, on Rancher's management cluster
  reveille rbac --rancher downstream             for `reveille rancher`, on a managed cluster

Create the account and the namespace first. Without --cleanup and --join, only Leases in kube-system can be changed. \
With --only ROSTER that is the Lease of that roster, and not those that elect the control plane's leaders.";

/// `rbac`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Rbac {
    /// Service account that gets the rights
    #[arg(long, value_name = "NAME", default_value = "reveille", value_parser = name)]
    pub(crate) service_account: String,
    /// Namespace of the service account
    #[arg(long, value_name = "NAME", default_value = "reveille", value_parser = name)]
    pub(crate) namespace: String,
    /// Also delete Nodes, for rosters with repair.cleanup: act
    #[arg(long)]
    pub(crate) cleanup: bool,
    /// Also create and delete Secrets in kube-system, for the bootstrap tokens of run --listen
    #[arg(long)]
    pub(crate) join: bool,
    /// Also read the objects of reveille hot: common kinds, Rancher's records, API server metrics; no secrets
    #[arg(long)]
    pub(crate) hot: bool,
    /// Also list machine records of Karpenter, Cluster API, Gardener, Metal3 and OpenShift, for rosters without clouds
    #[arg(long)]
    pub(crate) records: bool,
    /// Name of a roster: allow changes of its Lease only, and not of every Lease in kube-system; repeatable
    #[arg(long = "only", value_name = "ROSTER", value_parser = name)]
    pub(crate) only: Vec<String>,
    /// Instead: the rights of `reveille rancher inspect` on one of its two clusters
    #[arg(long, value_name = "WHERE", conflicts_with_all = ["cleanup", "join", "hot", "records", "only"])]
    pub(crate) rancher: Option<Rights>,
    /// With --rancher management: also list plan secrets, which contain credentials
    #[arg(long, requires = "rancher")]
    pub(crate) plans: bool,
    /// With --rancher: also the writes of `rancher evict` and `rancher mend`
    #[arg(long, requires = "rancher")]
    pub(crate) repair: bool,
}

/// Which API server of a Rancher's two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rights {
    /// Rancher's management cluster
    Management,
    /// A cluster managed by Rancher
    Downstream,
}
