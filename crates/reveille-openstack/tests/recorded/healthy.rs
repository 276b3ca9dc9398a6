//! A healthy project of recorded answers: one group, one router, ports, and whatever servers a test wants.

use crate::fake::{Fake, Reply, Seen, reply};
use reveille_core::model::id::RouterId;
use reveille_core::model::instance::Mark;
use reveille_core::model::roster::GroupRef;
use reveille_openstack::{Interest, Lister};
use std::collections::BTreeSet;

pub(crate) const DATE: &str = "Sat, 21 Nov 2026 10:00:00 GMT";

pub(crate) fn interest() -> Interest {
    Interest {
        cluster_marks: BTreeSet::from([Mark::Tag("k8s-cluster=prod".into())]),
        groups: BTreeSet::from([GroupRef::Name("k8s-nodes".into())]),
        routers: BTreeSet::from([RouterId::from("r1")]),
    }
}

pub(crate) fn server(id: &str, more: &str) -> String {
    format!(
        r#"{{"id": "{id}", "name": "{id}", "status": "ACTIVE", "OS-EXT-STS:vm_state": "active", "OS-EXT-STS:task_state": null{more}}}"#
    )
}

pub(crate) const OURS: &str = r#", "tags": ["k8s-cluster=prod"]"#;

pub(crate) fn servers(list: &[String], next: Option<&str>) -> Reply {
    let links = next.map_or(String::new(), |marker| {
        format!(
            r#", "servers_links": [{{"rel": "next", "href": "http://inner:1/servers/detail?limit=1000&marker={marker}"}}]"#
        )
    });
    reply(200, format!(r#"{{"servers": [{}]{links}}}"#, list.join(", "))).with("Date", DATE)
}

pub(crate) fn port(id: &str, device: &str) -> String {
    format!(
        r#"{{"id": "{id}", "device_id": "{device}", "device_owner": "compute:nova", "network_id": "n1",
            "fixed_ips": [], "security_groups": ["g1"], "allowed_address_pairs": [], "status": "ACTIVE",
            "port_security_enabled": true, "revision_number": 4}}"#
    )
}

/// Neutron's side of a healthy project.
pub(crate) fn neutron(seen: &Seen) -> Option<Reply> {
    Some(match seen.path.as_str() {
        "/network/v2.0/ports" => {
            reply(200, format!(r#"{{"ports": [{}, {}]}}"#, port("p1", "a"), port("p9", "foreign")))
        }
        "/network/v2.0/security-groups" => reply(
            200,
            r#"{"security_groups": [{"id": "g1", "name": "k8s-nodes", "project_id": "0123456789abcdef0123456789abcdef",
                "security_group_rules": []}, {"id": "g2", "name": "other", "security_group_rules": []}]}"#,
        ),
        "/network/v2.0/routers" => reply(
            200,
            r#"{"routers": [{"id": "r1", "routes": [{"destination": "198.19.1.0/24", "nexthop": "10.0.0.5"}]}]}"#,
        ),
        _ => return None,
    })
}

/// A healthy project whose Nova answers `nova`.
pub(crate) async fn cloud(mut nova: impl FnMut(&Seen) -> Reply + Send + 'static) -> (Fake, Lister) {
    let fake = Fake::start(move |seen| match seen.line().as_str() {
        "GET /compute/v2.1/servers/detail" => Some(nova(seen)),
        _ => neutron(seen),
    })
    .await;
    let lister = Lister::new(fake.connect().await, interest());
    (fake, lister)
}

pub(crate) fn ids(snapshot: &reveille_core::event::CloudSnapshot) -> Vec<&str> {
    snapshot.instances.iter().map(|instance| instance.id.as_str()).collect()
}
