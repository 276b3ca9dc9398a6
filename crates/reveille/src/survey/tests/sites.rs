//! A project of each kind of cloud, for tables.

use crate::adapters::providers::{Ec2Site, OpenStackSite};

/// Project `k8s-prod`.
pub(crate) fn openstack() -> OpenStackSite {
    OpenStackSite { entry: "prod".to_owned(), clouds_file: None, project: "k8s-prod".to_owned() }
}

/// An account in eu-central-1, by the profile `ops`; nobody named a cluster.
pub(crate) fn ec2() -> Ec2Site {
    Ec2Site {
        account: "123456789012".to_owned(),
        region: "eu-central-1".to_owned(),
        profile: Some("ops".to_owned()),
        endpoint: None,
        cluster: None,
    }
}
