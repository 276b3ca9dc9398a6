//! Which kind of cloud nodes say that they are on.

use std::sync::Arc;

use reveille_core::model::node::{Node, Provider, Ready};

use super::recognised;
use crate::cli::init::Kind;
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
        (vec![ec2(), elsewhere()], Some(Kind::Ec2)),
        (vec![openstack(), unset(None)], Some(Kind::OpenStack)),
        (vec![ec2(), ec2(), openstack()], Some(Kind::Ec2)),
        (vec![unset(Some("ec2e1916-9099-7caf-fd21-012345abcdef"))], Some(Kind::Ec2)),
        (vec![unset(Some("5f0c1d2e-0000-4a5b-8c9d-0123456789ab"))], Some(Kind::OpenStack)),
    ];
    for (nodes, kind) in table {
        assert_eq!(recognised(&nodes), kind, "{nodes:?}");
    }
}
