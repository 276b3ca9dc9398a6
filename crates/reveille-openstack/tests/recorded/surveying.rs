//! A survey asks for everything, whole or not at all, and a listing with strangers costs no request more.

use crate::fake::{Fake, Seen, reply};
use crate::healthy::{OURS, cloud, ids, neutron, server, servers};
use reveille_core::effect::ReadErrorKind;

/// Two servers, two routers on a page each, a leg of the first.
fn project(seen: &Seen) -> Option<crate::fake::Reply> {
    let leg = r#"{"id": "leg", "device_id": "r1", "device_owner": "network:ha_router_replicated_interface",
        "network_id": "n1", "fixed_ips": [], "security_groups": []}"#;
    let dhcp = r#"{"id": "dhcp", "device_id": "d", "device_owner": "network:dhcp", "network_id": "n1"}"#;
    Some(match seen.path.as_str() {
        "/compute/v2.1/servers/detail" => match seen.query("marker").first() {
            None => servers(&[server("a", OURS)], Some("a")),
            Some(_) => servers(&[server("b", "")], None),
        },
        "/network/v2.0/ports" => {
            reply(200, format!(r#"{{"ports": [{}, {leg}, {dhcp}]}}"#, crate::healthy::port("p1", "a")))
        }
        "/network/v2.0/routers" => match seen.query("marker").first() {
            None => reply(
                200,
                r#"{"routers": [{"id": "r1", "name": "edge",
                    "routes": [{"destination": "198.19.1.0/24", "nexthop": "10.0.0.5"}]}],
                    "routers_links": [{"rel": "next", "href": "http://inner:1/v2.0/routers?marker=r1"}]}"#,
            ),
            Some(_) => reply(200, r#"{"routers": [{"id": "r2", "name": "", "routes": []}]}"#),
        },
        _ => return neutron(seen),
    })
}

#[tokio::test]
async fn a_survey_shows_the_whole_project() {
    let fake = Fake::start(project).await;
    let survey = fake.connect().await.survey().await.unwrap();
    let names: Vec<&str> = survey.instances.values().map(|instance| instance.id.as_str()).collect();
    assert_eq!(names, ["a", "b"], "marked or not");
    let routers: Vec<(&str, &str, usize)> =
        survey.routers.iter().map(|r| (r.router.id.as_str(), &*r.name, r.router.routes.len())).collect();
    assert_eq!(routers, [("r1", "edge", 1), ("r2", "", 0)], "of both pages");
    let legs: Vec<(&str, &str)> =
        survey.legs.iter().map(|leg| (leg.router.as_str(), leg.network.as_str())).collect();
    assert_eq!(legs, [("r1", "n1")]);
    assert_eq!(survey.ports.len(), 1, "a leg and a DHCP port are no machine's");
    assert_eq!(survey.groups.len(), 2);
    let seen = fake.take_seen();
    assert_eq!(seen.len(), 6, "four lists, two of them of two pages");
    for seen in seen {
        assert!(
            seen.query("tags-any").is_empty() && seen.query("id").is_empty() && seen.query("name").is_empty()
        );
        let compute = seen.path.starts_with("/compute");
        assert_eq!(
            seen.query("project_id").is_empty(),
            compute,
            "Neutron is asked for this project only: {seen:?}"
        );
    }
}

#[tokio::test]
async fn a_survey_with_a_hole_is_void() {
    for broken in ["/servers/detail", "/ports", "/security-groups", "/routers"] {
        let fake = Fake::start(move |seen| match seen.path.ends_with(broken) {
            true if !seen.query("marker").is_empty()
                || broken == "/ports"
                || broken == "/security-groups" =>
            {
                Some(reply(503, ""))
            }
            _ => project(seen),
        })
        .await;
        let error = fake.connect().await.survey().await.unwrap_err();
        assert!(
            matches!(error.kind, ReadErrorKind::Incomplete | ReadErrorKind::Unavailable),
            "{broken}: {error}"
        );
    }
}

#[tokio::test]
async fn strangers_are_shown_beside_ours_when_asked_for() {
    let list = [server("a", OURS), server("b", ""), server("c", r#", "tags": ["k8s-cluster=dev"]"#)];
    let (fake, mut lister) = cloud(move |_| servers(&list, None)).await;
    let (snapshot, strangers) = lister.list_with_strangers().await.unwrap();
    assert_eq!(ids(&snapshot), ["a"], "a snapshot is ours only");
    let others: Vec<&str> = strangers.iter().map(|instance| instance.id.as_str()).collect();
    assert_eq!(others, ["b", "c"]);
    let seen = fake.take_seen();
    assert!(seen.iter().all(|seen| seen.query("tags-any").is_empty()));
    let lists = seen.iter().filter(|seen| !seen.path.contains("/quotas/")).count();
    assert_eq!(lists, 4);
    lister.list(false).await.unwrap();
    let next = fake.take_seen();
    assert_eq!(next[0].query("changes-since").len(), 1, "it counts as the full listing that it is: {next:?}");
}
