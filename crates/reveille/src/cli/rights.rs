//! Arguments of `rbac`, `iam` and `access-rules`: the account that gets the permissions.
//!
//! Names go into YAML and JSON unchanged, so only valid names of Kubernetes or AWS are accepted. The adapters decide
//! which permissions are needed.

use clap::{Args, ValueEnum};

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
    /// Name of a roster: allow changes of its Lease only, and not of every Lease in kube-system; repeatable
    #[arg(long = "only", value_name = "ROSTER", value_parser = name)]
    pub(crate) only: Vec<String>,
    /// Instead: the rights of `reveille rancher inspect` on one of its two clusters
    #[arg(long, value_name = "WHERE", conflicts_with_all = ["cleanup", "join", "hot", "only"])]
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

pub(super) const RULES_EXAMPLES: &str = "\
Examples:
  reveille access-rules > rules.json
  openstack application credential create reveille --role member --access-rules rules.json
  reveille access-rules --look-only              read-only; with --role reader, consoles cannot be read

A credential with these rules can send only these requests. The user who creates it must have the role.";

/// `access-rules`.
#[derive(Args, Clone, Debug)]
pub(crate) struct AccessRules {
    /// Read-only, except the server actions: one request both reads consoles and reboots
    #[arg(long)]
    pub(crate) look_only: bool,
    /// Also read, and without --look-only assign, roles of service users: for rosters with spec.access
    #[arg(long)]
    pub(crate) roles: bool,
}

pub(super) const IAM_EXAMPLES: &str = "\
Examples:
  reveille iam --region eu-central-1 --cluster prod > reveille-policy.json
  aws iam create-policy --policy-name reveille --policy-document file://reveille-policy.json

Only instances with the tag kubernetes.io/cluster/<id> can be changed. For read-only access, keep the first statement.";

/// `iam`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Iam {
    /// Region of the instances
    #[arg(long, value_name = "REGION", value_parser = name)]
    pub(crate) region: String,
    /// The id in their tag kubernetes.io/cluster/<id>
    #[arg(long, value_name = "ID", value_parser = id)]
    pub(crate) cluster: String,
}

/// The id of a cluster as it may stand in a tag key, without characters that would change the policy's text.
pub(super) fn id(text: &str) -> Result<String, String> {
    const CHARACTERS_MAX: usize = 100;
    let taken = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if (1..=CHARACTERS_MAX).contains(&text.len()) && text.chars().all(taken) {
        Ok(text.to_owned())
    } else {
        Err("letters, digits, \"-\", \"_\" and \".\" only".to_owned())
    }
}

/// A name as Kubernetes accepts it: small letters, digits, dashes and dots.
pub(super) fn name(text: &str) -> Result<String, String> {
    const CHARACTERS_MAX: usize = 253;
    let taken = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    let ends = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if text.len() <= CHARACTERS_MAX
        && text.chars().all(taken)
        && text.starts_with(ends)
        && text.ends_with(ends)
    {
        Ok(text.to_owned())
    } else {
        Err("a name of Kubernetes has small letters, digits, dashes and dots".to_owned())
    }
}
