//! `rbac`: for whom the rights are written.
//!
//! Names go into YAML as they are, so that only what Kubernetes takes as a name is taken here. What the rights are is the
//! adapter's business.

use clap::{Args, ValueEnum};

pub(super) const EXAMPLES: &str = "\
Examples:
  reveille rbac | kubectl apply -f -             for the service account reveille in the namespace reveille
  reveille rbac --hot | kubectl apply -f -       with the right to list and watch what reveille hot counts
  reveille rbac --cleanup --namespace ops        with the right to delete Node objects of machines that are gone
  reveille rbac --rancher management             those of `reveille rancher`, for Rancher's own API server
  reveille rbac --rancher downstream             and for the cluster whose nodes its records are about

Account and namespace have to be there. Without --cleanup and --join nothing in the cluster can be changed.";

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

/// A name as Kubernetes takes it: small letters, digits, dashes and dots.
fn name(text: &str) -> Result<String, String> {
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
