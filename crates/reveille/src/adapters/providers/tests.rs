//! Tests which provider the Nodes name.

use std::sync::Arc;

use reveille_core::model::node::{Node, Provider, Ready};
use reveille_wire::roster::CloudRef;

use super::{PROVIDERS, entry, recognised};
use crate::fixture;

#[test]
fn nodes_tell_the_kind_of_their_cloud_or_nothing() {
    let node = |provider: Provider, uuid: Option<&str>| {
        Arc::new(Node { provider, system_uuid: uuid.map(Into::into), ..fixture::node("1", Ready::True) })
    };
    let ec2 = || node(Provider::Instance("i-0123456789abcdef0".into()), None);
    let openstack = || node(Provider::Instance("5f0c1d2e-0000-4a5b-8c9d-0123456789ab".into()), None);
    let unset = |uuid| node(Provider::Unset, uuid);
    let elsewhere = || node(Provider::Unread("kind://docker/kind/node".into()), Some("5f0c1d2e"));
    let table = [
        (vec![], None),
        (vec![elsewhere(), unset(None)], None),
        (vec![ec2(), elsewhere()], Some("ec2")),
        (vec![openstack(), unset(None)], Some("openstack")),
        (vec![ec2(), ec2(), openstack()], Some("ec2")),
        (vec![ec2(), openstack()], Some("openstack")),
        (vec![unset(Some("ec2e1916-9099-7caf-fd21-012345abcdef"))], Some("ec2")),
        (vec![unset(Some("5f0c1d2e-0000-4a5b-8c9d-0123456789ab"))], Some("openstack")),
    ];
    for (nodes, kind) in table {
        assert_eq!(recognised(&nodes).map(|provider| provider.kind().name), kind, "{nodes:?}");
    }
}

#[test]
fn every_reference_of_a_roster_is_of_one_provider() {
    let openstack = CloudRef::OpenStack { cloud: "prod".into(), clouds_file: None };
    let (region, cluster) = ("eu-central-1".to_owned(), "shop".to_owned());
    let ec2 = CloudRef::Ec2 { region, profile: None, endpoint: None, cluster };
    for (at, called) in [(openstack, "prod"), (ec2, "ec2 eu-central-1 (shop)")] {
        assert_eq!(&*entry(&at), called);
        assert_eq!(PROVIDERS.iter().filter(|wired| wired.entry(&at).is_some()).count(), 1);
        assert_eq!(PROVIDERS.iter().filter(|wired| wired.connect("c".into(), &at).is_some()).count(), 1);
    }
}
