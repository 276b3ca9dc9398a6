//! Arguments of `init`: the cluster, the cloud, and the roster file to write.
//!
//! The options for the cloud determine its provider; without such options the Nodes do.

use std::path::PathBuf;

use clap::Args;

use super::cloud::CloudChoice;

pub(super) const EXAMPLES: &str = "\
Examples:
  reveille init                                      current context; the Nodes show the kind of cloud
  reveille init --context prod-admin --cloud prod --file prod.yaml      OpenStack: an entry of clouds.yaml
  reveille init --region eu-central-1 --cluster prod                    EC2: machines tagged kubernetes.io/cluster/prod
  reveille init --file - | less                      print the roster

Read-only. The roster enables no repair: check it, correct it, then enable repairs.";

/// `init`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Init {
    /// Roster file to write, - for standard output; an existing file is not overwritten
    #[arg(long, value_name = "FILE", default_value = "reveille.yaml")]
    pub(crate) file: PathBuf,
    /// Name of the roster [default: the context's]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// kubeconfig [default: KUBECONFIG, then ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current one]
    #[arg(long)]
    pub(crate) context: Option<String>,
    /// Id of the router (EC2: route table) with the pod routes
    #[arg(long, value_name = "ID")]
    pub(crate) router: Option<String>,
    /// What is said of the cloud.
    #[command(flatten)]
    pub(crate) choice: CloudChoice,
}
