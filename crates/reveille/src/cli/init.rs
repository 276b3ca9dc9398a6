//! Arguments of `init`: the cluster, the cloud, and the roster file to write.
//!
//! The options for the cloud determine its provider; without such options the Nodes do.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, ValueEnum};

use super::failure::Failure;
use super::rights;

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

/// Which cloud.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct CloudChoice {
    /// Kind of cloud [default: from the other options, then from the Nodes' provider IDs]
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<Kind>,
    /// OpenStack: entry of clouds.yaml [default: OS_CLOUD, then the only one]
    #[arg(long, help_heading = "On OpenStack", conflicts_with_all = EC2_OPTIONS)]
    pub(crate) cloud: Option<String>,
    /// OpenStack: clouds.yaml [default: where the OpenStack client looks]
    #[arg(long, value_name = "FILE", help_heading = "On OpenStack", conflicts_with_all = EC2_OPTIONS)]
    pub(crate) clouds_file: Option<PathBuf>,
    /// EC2: the id in the tag kubernetes.io/cluster/<id> of the instances [default: the only one]
    #[arg(long, value_name = "ID", help_heading = "On EC2", value_parser = rights::id)]
    pub(crate) cluster: Option<String>,
    /// EC2: the region [default: AWS_REGION, then the profile's, then the machine's]
    #[arg(long, help_heading = "On EC2", value_parser = rights::name)]
    pub(crate) region: Option<String>,
    /// EC2: a profile of the AWS configuration files [default: AWS_PROFILE, then the default one]
    #[arg(long, help_heading = "On EC2")]
    pub(crate) profile: Option<String>,
    /// EC2: API endpoint, instead of the region's; is written to the roster
    #[arg(long, value_name = "URL", help_heading = "On EC2")]
    pub(crate) endpoint: Option<String>,
}

const EC2_OPTIONS: [&str; 4] = ["cluster", "region", "profile", "endpoint"];

/// The kinds of clouds, in a roster's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// A project of OpenStack, by an entry of clouds.yaml
    #[value(name = "openstack")]
    OpenStack,
    /// An account of AWS in one region
    Ec2,
}

impl CloudChoice {
    /// The provider that was named, or the one that these options belong to.
    ///
    /// # Errors
    /// When one provider is named, and options of another are given.
    pub(crate) fn kind(&self) -> Result<Option<Kind>, Failure> {
        let of_openstack = self.cloud.is_some() || self.clouds_file.is_some();
        let of_ec2 =
            [&self.cluster, &self.region, &self.profile, &self.endpoint].iter().any(|given| given.is_some());
        let said = of_openstack.then_some(Kind::OpenStack).or(of_ec2.then_some(Kind::Ec2));
        match (self.kind, said) {
            (Some(named), Some(said)) if named != said => {
                let wrong = "the kind of cloud that is named is not the one that the other options are of";
                Err(Failure::usage(anyhow!(wrong)).next("see reveille init --help"))
            }
            (named, said) => Ok(named.or(said)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_a_kind_name_it_and_those_of_two_are_refused() {
        let (cloud, region) = (Some("prod".to_owned()), Some("eu-central-1".to_owned()));
        let choice = |kind, cloud: &Option<String>, region: &Option<String>| CloudChoice {
            kind,
            cloud: cloud.clone(),
            region: region.clone(),
            ..CloudChoice::default()
        };
        let table = [
            (choice(None, &None, &None), Some(None)),
            (choice(None, &cloud, &None), Some(Some(Kind::OpenStack))),
            (choice(None, &None, &region), Some(Some(Kind::Ec2))),
            (choice(Some(Kind::Ec2), &None, &None), Some(Some(Kind::Ec2))),
            (choice(Some(Kind::Ec2), &cloud, &None), None),
            (choice(Some(Kind::OpenStack), &None, &region), None),
        ];
        for (choice, kind) in table {
            assert_eq!(choice.kind().ok(), kind, "{choice:?}");
        }
    }
}
