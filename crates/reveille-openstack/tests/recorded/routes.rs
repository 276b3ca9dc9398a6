//! Routes go in and out as exact pairs, atomically where Neutron can, at a revision where it cannot.

use crate::fake::{Seen, Way, lines, neutron_error, os, perform, reply, way};
use reveille_core::effect::{Call, Outcome};
use reveille_core::model::id::RouterId;
use reveille_core::model::network::Route;
use reveille_core::remedies::{AddRoutes, NudgeRouter, RemoveRoutes};

fn routes() -> Vec<Route> {
    vec![Route { destination: "198.19.1.0/24".parse().unwrap(), next_hop: "10.0.0.5".parse().unwrap() }]
}

pub(crate) fn add_routes() -> Call {
    Call::AddRoutes(AddRoutes { cloud: os(), router: RouterId::from("r1"), routes: routes() })
}

fn remove_routes() -> Call {
    let (router, routes) = (RouterId::from("r1"), routes());
    Call::RemoveRoutes(RemoveRoutes { cloud: os(), router, routes, unless_used: Vec::new() })
}

#[tokio::test]
async fn routes_go_in_and_out_atomically() {
    for (call, path) in [(add_routes(), "add_extraroutes"), (remove_routes(), "remove_extraroutes")] {
        let (outcome, seen) = perform(&call, |seen| (seen.method == "PUT").then(|| reply(200, "{}"))).await;
        assert!(matches!(outcome, Outcome::Accepted { .. }), "{outcome}");
        assert_eq!(lines(&seen), [format!("PUT /network/v2.0/routers/r1/{path}")]);
        assert_eq!(
            seen[0].json(),
            serde_json::json!({"router": {"routes": [{"destination": "198.19.1.0/24", "nexthop": "10.0.0.5"}]}})
        );
    }
}

#[tokio::test]
async fn the_route_limit_is_one_outcome_in_every_release() {
    let old = "Unable to complete operation for 3f0c1111-2222-3333-4444-555566667777. The number of routes exceeds the maximum 30.";
    let cases = [
        (neutron_error(400, "RoutesExhausted", old), Some(30)),
        (neutron_error(409, "OverQuota", "Quota exceeded for resources: ['router_route']."), None),
        (neutron_error(409, "OverQuota", "Quota exceeded for resources, limit 31"), Some(31)),
        (reply(400, "The number of routes exceeds the maximum 30."), Some(30)),
    ];
    for (answer, expected) in cases {
        let (outcome, _) =
            perform(&add_routes(), move |seen| (seen.method == "PUT").then(|| answer.clone())).await;
        let Outcome::Limit { limit, .. } = outcome else { panic!("{outcome}") };
        assert_eq!(limit, expected);
    }
    let hop = neutron_error(400, "InvalidRoutes", "the nexthop is not connected with router");
    let (outcome, _) = perform(&add_routes(), move |seen| (seen.method == "PUT").then(|| hop.clone())).await;
    assert!(matches!(outcome, Outcome::Refused { .. }), "{outcome}");
}

#[tokio::test]
async fn an_older_neutron_gets_the_whole_list_at_its_revision() {
    let router = r#"{"router": {"id": "r1", "revision_number": 12, "routes":
        [{"destination": "198.19.1.0/24", "nexthop": "10.0.0.5"}, {"destination": "odd", "nexthop": "10.0.0.6"}]}}"#;
    let old = move |seen: &Seen| match (seen.method.as_str(), seen.path.as_str()) {
        (_, path) if path.ends_with("/extensions") => {
            Some(reply(200, r#"{"extensions": [{"alias": "revision-if-match"}]}"#))
        }
        ("GET", "/network/v2.0/routers/r1") => Some(reply(200, router)),
        ("PUT", _) => Some(reply(200, "{}")),
        _ => None,
    };
    let (outcome, seen) = perform(&remove_routes(), old).await;
    assert!(matches!(outcome, Outcome::Accepted { .. }), "{outcome}");
    assert_eq!(lines(&seen), ["PUT /network/v2.0/routers/r1"]);
    assert_eq!(seen[0].headers["if-match"], "revision_number=12");
    assert_eq!(
        seen[0].json(),
        serde_json::json!({"router": {"routes": [{"destination": "odd", "nexthop": "10.0.0.6"}]}}),
        "a route that cannot be read stays as it is"
    );
    let (outcome, seen) = perform(&add_routes(), old).await;
    assert!(matches!(outcome, Outcome::AlreadySo { .. }) && seen.is_empty(), "{outcome}");
}

#[tokio::test]
async fn a_router_is_nudged_and_left_as_it_was() {
    let call =
        Call::NudgeRouter(NudgeRouter { cloud: os(), router: RouterId::from("r1"), route: routes()[0] });
    let (outcome, seen) = perform(&call, |seen| (seen.method == "PUT").then(|| reply(200, "{}"))).await;
    assert!(matches!(outcome, Outcome::Accepted { .. }), "{outcome}");
    let ends: Vec<String> =
        lines(&seen).iter().filter_map(|line| line.rsplit('/').next().map(str::to_owned)).collect();
    assert_eq!(ends, ["add_extraroutes", "remove_extraroutes"]);
    let (outcome, _) = perform(&call, |seen| {
        (seen.method == "PUT")
            .then(|| if seen.path.ends_with("add_extraroutes") { reply(200, "{}") } else { reply(429, "") })
    })
    .await;
    let Outcome::Failed { text, .. } = &outcome else { panic!("{outcome}") };
    let (unknown, _) = perform(&call, |seen| (seen.method == "PUT").then(|| way(Way::Dropped))).await;
    assert!(
        unknown.to_string().ends_with("the harmless route 198.19.1.0/24 via 10.0.0.5 may be there"),
        "{unknown}"
    );
    assert!(text.contains("keeps the harmless route 198.19.1.0/24 via 10.0.0.5"), "{text}");
}

/// One port of the network that the router reaches into.
fn port(owner: &str, device: &str, address: &str, pair: &str) -> String {
    let pairs = if pair.is_empty() { String::new() } else { format!(r#"{{"ip_address": "{pair}"}}"#) };
    format!(
        r#"{{"id": "p-{owner}-{address}", "device_id": "{device}", "device_owner": "{owner}", "network_id": "n1",
            "fixed_ips": [{{"subnet_id": "s1", "ip_address": "{address}"}}], "allowed_address_pairs": [{pairs}]}}"#
    )
}

/// A VIP came up at the next hop after the listings, or belongs to another project on a network of ours.
#[tokio::test]
async fn route_to_next_hop_in_use_is_not_removed() {
    let (router, unless_used) = (RouterId::from("r1"), vec!["10.0.0.5".parse().unwrap()]);
    let call = Call::RemoveRoutes(RemoveRoutes { cloud: os(), router, routes: routes(), unless_used });
    let leg = port("network:router_interface", "r1", "10.0.0.1", "");
    let cases = [
        (port("", "", "10.0.0.5", ""), "changed"),
        (port("Octavia", "lb-1", "10.0.0.5", ""), "changed"),
        (port("trunk:subport", "t-1", "10.0.0.5", ""), "changed"),
        (port("compute:nova", "b", "10.0.0.5", ""), "changed"),
        (port("compute:nova", "b", "10.0.0.9", "10.0.0.5"), "changed"),
        (port("compute:nova", "b", "10.0.0.9", "10.0.0.4/30"), "changed"),
        (port("compute:nova", "b", "10.0.0.9", "10.0.0.8/30"), "accepted"),
    ];
    for (other, begins) in cases {
        let leg = leg.clone();
        let (outcome, seen) = perform(&call, move |seen| match seen.method.as_str() {
            "GET" if seen.path.ends_with("/ports") => {
                let here = seen.query("device_id") == ["r1"];
                assert!(here || seen.query("network_id") == ["n1"], "of every project: {:?}", seen.query);
                assert!(seen.query("project_id").is_empty());
                let ports = if here { leg.clone() } else { format!("{leg}, {other}") };
                Some(reply(200, format!(r#"{{"ports": [{ports}]}}"#)))
            }
            "PUT" => Some(reply(200, "{}")),
            _ => None,
        })
        .await;
        assert!(outcome.to_string().starts_with(begins), "{outcome}");
        assert_eq!(seen.len(), usize::from(begins == "accepted"), "{outcome}");
    }
    // No leg of the router is visible, or the ports cannot be read: nothing tells, so nothing is done.
    for (answer, begins) in [(reply(200, r#"{"ports": []}"#), "refused"), (reply(503, ""), "failed")] {
        let (outcome, seen) = perform(&call, move |seen| match seen.method.as_str() {
            "GET" if seen.path.ends_with("/ports") => Some(answer.clone()),
            _ => None,
        })
        .await;
        assert!(outcome.to_string().starts_with(begins) && seen.is_empty(), "{outcome}");
    }
}
