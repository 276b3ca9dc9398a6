//! `rbac`, `iam` and `access-rules`: for whom the rights are written.
//!
//! Names go into YAML and JSON as they are, so that only what Kubernetes or AWS takes as a name is taken here. What the rights
//! are is the adapter's business.

use clap::{Args, ValueEnum};

pub(super) const EXAMPLES: &str = "\
Examples:
  reveille rbac | kubectl apply -f -             for the service account reveille in the namespace reveille
  reveille rbac --hot | kubectl apply -f -       with the right to list and watch what reveille hot counts
  reveille rbac --cleanup --namespace ops        with the right to delete Node objects of machines that are gone
  reveille rbac --rancher management             those of `reveille rancher`, for Rancher's own API server
  reveille rbac --rancher downstream             and for the cluster whose nodes its records are about

Account and namespace have to be there. Without --cleanup and --join nothing in the cluster can be changed but Leases in kube-system.";

/// `rbac`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Rbac {
    /// Whom the rights are given to
    #[arg(long, value_name = "NAME", default_value = "reveille", value_parser = name)]
    pub(crate) service_account: String,
    /// The namespace of that account
    #[arg(long, value_name = "NAME", default_value = "reveille", value_parser = name)]
    pub(crate) namespace: String,
    /// Also the right to delete Node objects, for rosters with repair.cleanup: act
    #[arg(long)]
    pub(crate) cleanup: bool,
    /// Also the right to make and delete secrets of kube-system, for run --listen: tokens of machines that join
    #[arg(long)]
    pub(crate) join: bool,
    /// Also the right to read what reveille hot looks at: usual kinds, Rancher's records, the API server's counts; no secrets
    #[arg(long)]
    pub(crate) hot: bool,
    /// In place of all that: the rights of `reveille rancher inspect`, for one of the two API servers that it asks
    #[arg(long, value_name = "WHERE", conflicts_with_all = ["cleanup", "join", "hot"])]
    pub(crate) rancher: Option<Rights>,
    /// With --rancher management: also the right to list secrets with plans of machines, which hold credentials
    #[arg(long, requires = "rancher")]
    pub(crate) plans: bool,
    /// With --rancher: also what `rancher evict` and `rancher mend` change
    #[arg(long, requires = "rancher")]
    pub(crate) repair: bool,
}

/// Which API server of a Rancher's two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rights {
    /// Rancher's own
    Management,
    /// That of a cluster below it
    Downstream,
}

pub(super) const RULES_EXAMPLES: &str = "\
Examples:
  reveille access-rules > rules.json
  openstack application credential create reveille --role member --access-rules rules.json
  reveille access-rules --look-only              to look; with --role reader no console is read

A credential with such rules can send these requests and no others. Whoever makes it must hold the role itself.";

/// `access-rules`.
#[derive(Args, Clone, Debug)]
pub(crate) struct AccessRules {
    /// Nothing that changes anything. One request stays that is not to look alone: consoles are read by it, and machines rebooted
    #[arg(long)]
    pub(crate) look_only: bool,
    /// Also to tell, and unless --look-only to give, the roles of service users: for rosters with spec.access
    #[arg(long)]
    pub(crate) roles: bool,
}

pub(super) const IAM_EXAMPLES: &str = "\
Examples:
  reveille iam --region eu-central-1 --cluster prod > reveille-policy.json
  aws iam create-policy --policy-name reveille --policy-document file://reveille-policy.json

Machines can be changed only where they carry the tag kubernetes.io/cluster/<id>. To only look, keep the first statement.";

/// `iam`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Iam {
    /// The region of the machines
    #[arg(long, value_name = "REGION", value_parser = name)]
    pub(crate) region: String,
    /// The id in the tag kubernetes.io/cluster/<id> that they carry
    #[arg(long, value_name = "ID", value_parser = id)]
    pub(crate) cluster: String,
}

/// The id of a cluster as a tag's key takes it, without what would change the policy's text.
pub(super) fn id(text: &str) -> Result<String, String> {
    const CHARACTERS_MAX: usize = 100;
    let taken = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if (1..=CHARACTERS_MAX).contains(&text.len()) && text.chars().all(taken) {
        Ok(text.to_owned())
    } else {
        Err("letters, digits, \"-\", \"_\" and \".\" only".to_owned())
    }
}

/// A name as Kubernetes takes it: small letters, digits, dashes and dots.
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
