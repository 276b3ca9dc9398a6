//! A project of each provider, for tables.

use reveille_ec2::Ec2Site;
use reveille_openstack::OpenStackSite;

/// Project `k8s-prod`.
pub(crate) fn openstack() -> OpenStackSite {
    OpenStackSite { entry: "prod".to_owned(), clouds_file: None, project: "k8s-prod".to_owned() }
}

/// An account in eu-central-1, by the profile `ops`; no cluster is named.
pub(crate) fn ec2() -> Ec2Site {
    Ec2Site {
        account: "123456789012".to_owned(),
        region: "eu-central-1".to_owned(),
        profile: Some("ops".to_owned()),
        endpoint: None,
        cluster: None,
    }
}
