//! Every call sends exactly what it says, and every answer of the services becomes the one right outcome.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test, what cannot be is a failure")]

mod fake;

use fake::{Fake, Reply, Seen, Way, neutron_error, nova_fault, reply, way};
use reveille_core::effect::{Call, Outcome};
use reveille_core::model::id::{CloudName, GroupId, InstanceId, NodeName, NodeUid, PortId, RouterId, RuleId};
use reveille_core::model::network::{Direction, Family, Protocol, Remote, Route, RuleSpec};
use reveille_core::model::time::Span;

fn os() -> CloudName {
    CloudName::from("os")
}

fn rule(protocol: Protocol) -> RuleSpec {
    RuleSpec {
        direction: Direction::Ingress,
        family: Family::V4,
        protocol: Some(protocol),
        ports: None,
        remote: Remote::Prefix("198.19.0.0/16".parse().unwrap()),
    }
}

fn add_rules(protocols: &[Protocol]) -> Call {
    Call::AddRules {
        cloud: os(),
        group: GroupId::from("g1"),
        rules: protocols.iter().copied().map(rule).collect(),
    }
}

fn nudge_group() -> Call {
    Call::NudgeGroup { cloud: os(), group: GroupId::from("g1"), mark: "reveille-nudge int-41".into() }
}

fn routes() -> Vec<Route> {
    vec![Route { destination: "198.19.1.0/24".parse().unwrap(), next_hop: "10.0.0.5".parse().unwrap() }]
}

fn add_routes() -> Call {
    Call::AddRoutes { cloud: os(), router: RouterId::from("r1"), routes: routes() }
}

fn remove_routes() -> Call {
    Call::RemoveRoutes { cloud: os(), router: RouterId::from("r1"), routes: routes() }
}

fn set_groups(groups: &[&str]) -> Call {
    Call::SetPortGroups {
        cloud: os(),
        port: PortId::from("p1"),
        groups: groups.iter().map(|group| GroupId::from(*group)).collect(),
        if_revision: 7,
    }
}

fn add_pairs(pairs: &[&str]) -> Call {
    Call::AddPortPairs {
        cloud: os(),
        port: PortId::from("p1"),
        pairs: pairs.iter().map(|pair| pair.parse().unwrap()).collect(),
        if_revision: 7,
    }
}

fn delete() -> Call {
    Call::DeleteInstance { cloud: os(), instance: InstanceId::from("a") }
}

fn created(id: &str) -> Reply {
    reply(201, format!(r#"{{"security_group_rule": {{"id": "{id}"}}}}"#))
        .with("X-Openstack-Request-Id", "req-1")
}

/// Performs `call` against a cloud that answers `handler`; gives the outcome and the requests that changed something.
async fn perform(
    call: &Call,
    handler: impl FnMut(&Seen) -> Option<Reply> + Send + 'static,
) -> (Outcome, Vec<Seen>) {
    let fake = Fake::start(handler).await;
    let outcome = fake.connect().await.perform(call).await;
    (outcome, fake.take_seen().into_iter().filter(|seen| seen.method != "GET").collect())
}

fn lines(seen: &[Seen]) -> Vec<String> {
    seen.iter().map(Seen::line).collect()
}

#[tokio::test]
async fn rules_are_put_one_by_one_and_one_that_exists_counts_as_put() {
    let exists =
        || neutron_error(409, "SecurityGroupRuleExists", "Security group rule already exists. Rule id is x.");
    let all = [Protocol::TCP, Protocol::UDP, Protocol::ICMP];
    let (outcome, seen) = perform(&add_rules(&all), move |seen| {
        (seen.method == "POST" && seen.path.ends_with("/security-group-rules"))
            .then(|| if seen.body.contains("udp") { exists() } else { created("n") })
    })
    .await;
    assert_eq!(outcome.to_string(), "accepted (req-1)");
    assert_eq!(seen.len(), 3);
    assert_eq!(
        seen[0].json(),
        serde_json::json!({"security_group_rule": {
            "security_group_id": "g1", "direction": "ingress", "ethertype": "IPv4", "protocol": "tcp",
            "remote_ip_prefix": "198.19.0.0/16", "description": "reveille: was missing",
        }})
    );
    let (outcome, _) =
        perform(&add_rules(&all), move |seen| seen.path.ends_with("-rules").then(exists)).await;
    assert!(matches!(outcome, Outcome::AlreadySo { .. }), "{outcome}");
}

#[tokio::test]
async fn one_rule_that_is_refused_does_not_keep_the_others_out() {
    let (outcome, seen) = perform(&add_rules(&[Protocol::TCP, Protocol::UDP, Protocol::ICMP]), |seen| {
        seen.path.ends_with("-rules").then(|| {
            if seen.body.contains("\"tcp\"") {
                neutron_error(400, "SecurityGroupInvalidIcmpValue", "no such thing")
            } else {
                created("n")
            }
        })
    })
    .await;
    assert_eq!(seen.len(), 3);
    let Outcome::Refused { text } = &outcome else { panic!("{outcome}") };
    assert!(text.starts_with("2 of 3 rule(s) are there now"), "{text}");
    assert!(text.contains("[ingress tcp from 198.19.0.0/16]") && text.contains("no such thing"), "{text}");
}

#[tokio::test]
async fn a_quota_or_a_silence_stops_the_rest() {
    let quota = neutron_error(409, "OverQuota", "Quota exceeded for resources: ['security_group_rule'].");
    let cases: [(Reply, &str, usize); 4] = [
        (quota, "limit reached: 1 of 3", 2),
        (way(Way::Never), "unknown: 1 of 3", 2),
        (reply(429, "").with("Retry-After", "5"), "failed: 1 of 3", 2),
        (reply(500, ""), "unknown: 1 of 3", 2),
    ];
    for (bad, begins, asked) in cases {
        let (outcome, seen) =
            perform(&add_rules(&[Protocol::TCP, Protocol::UDP, Protocol::ICMP]), move |seen| {
                seen.path
                    .ends_with("-rules")
                    .then(|| if seen.body.contains("udp") { bad.clone() } else { created("n") })
            })
            .await;
        assert!(outcome.to_string().starts_with(begins), "{outcome}");
        assert_eq!(seen.len(), asked, "{outcome}");
    }
}

#[tokio::test]
async fn a_nudge_is_a_rule_put_and_taken_back() {
    let (outcome, seen) = perform(&nudge_group(), |seen| match seen.method.as_str() {
        "POST" if seen.path.ends_with("-rules") => Some(created("n1")),
        "DELETE" => Some(reply(204, "")),
        _ => None,
    })
    .await;
    assert!(matches!(outcome, Outcome::Accepted { .. }), "{outcome}");
    assert_eq!(
        lines(&seen),
        ["POST /network/v2.0/security-group-rules", "DELETE /network/v2.0/security-group-rules/n1"]
    );
    let rule = &seen[0].json()["security_group_rule"];
    assert_eq!(rule["remote_ip_prefix"], "192.0.2.42/32");
    assert_eq!(rule["description"], "reveille-nudge int-41");
    assert_eq!(rule["protocol"], "tcp");
}

#[tokio::test]
async fn a_nudge_that_breaks_off_says_what_it_leaves() {
    let cases: [(fn() -> Reply, &str); 3] = [
        (|| reply(429, "").with("X-Retry-After", "9"), "failed"),
        (|| way(Way::Never), "unknown"),
        (|| neutron_error(403, "PolicyNotAuthorized", "not allowed"), "failed"),
    ];
    for (bad, begins) in cases {
        let (outcome, _) = perform(&nudge_group(), move |seen| match seen.method.as_str() {
            "POST" if seen.path.ends_with("-rules") => Some(created("n1")),
            "DELETE" => Some(bad()),
            _ => None,
        })
        .await;
        let text = outcome.to_string();
        assert!(text.starts_with(begins), "{text}");
        assert!(text.contains("rule n1 was put and stays, described \"reveille-nudge int-41\""), "{text}");
        if let Outcome::Failed { retry_after: Some(after), .. } = outcome {
            assert_eq!(after, Span::from_s(9));
        }
    }
    // What an earlier nudge left lets nobody in; the next address is free.
    let (outcome, seen) = perform(&nudge_group(), |seen| match seen.method.as_str() {
        "POST" if seen.body.contains("192.0.2.42") => {
            Some(neutron_error(409, "SecurityGroupRuleExists", "Rule id is n0."))
        }
        "POST" if seen.path.ends_with("-rules") => Some(created("n1")),
        "DELETE" => Some(reply(204, "")),
        _ => None,
    })
    .await;
    assert!(matches!(outcome, Outcome::Accepted { .. }), "{outcome}");
    assert_eq!(seen[1].json()["security_group_rule"]["remote_ip_prefix"], "192.0.2.43/32");
}

#[tokio::test]
async fn dropping_a_rule_that_is_not_there_is_done_only_if_neutron_says_so() {
    let call = Call::DropRule { cloud: os(), group: GroupId::from("g1"), rule: RuleId::from("x") };
    let cases: [(fn() -> Reply, &str); 4] = [
        (|| reply(204, ""), "accepted"),
        (|| neutron_error(404, "SecurityGroupRuleNotFound", "no rule x"), "was so already"),
        (|| reply(404, "<html>404</html>"), "failed"),
        (|| neutron_error(409, "SecurityGroupRuleInUse", "in use"), "refused"),
    ];
    for (answer, begins) in cases {
        let (outcome, _) = perform(&call, move |seen| (seen.method == "DELETE").then(answer)).await;
        assert!(outcome.to_string().starts_with(begins), "{outcome}");
    }
}

#[tokio::test]
async fn groups_are_set_at_the_named_revision_or_not_at_all() {
    let cases: [(fn() -> Reply, &str); 6] = [
        (|| reply(200, "{}").with("X-Openstack-Request-Id", "req-7"), "accepted (req-7)"),
        (|| neutron_error(412, "RevisionNumberConstraintFailed", "not 7"), "changed meanwhile"),
        (|| neutron_error(400, "PortSecurityPortHasSecurityGroup", "port security"), "refused"),
        (|| neutron_error(404, "PortNotFound", "no port"), "refused"),
        (|| neutron_error(403, "PolicyNotAuthorized", "no"), "refused"),
        (|| reply(502, ""), "unknown"),
    ];
    for (answer, begins) in cases {
        let (outcome, seen) =
            perform(&set_groups(&["g1", "g2"]), move |seen| (seen.method == "PUT").then(answer)).await;
        assert!(outcome.to_string().starts_with(begins), "{outcome}");
        assert_eq!(lines(&seen), ["PUT /network/v2.0/ports/p1"]);
        assert_eq!(seen[0].headers["if-match"], "revision_number=7");
        assert_eq!(seen[0].json(), serde_json::json!({"port": {"security_groups": ["g1", "g2"]}}));
    }
    let (outcome, seen) = perform(&set_groups(&[]), |_| None).await;
    assert!(matches!(outcome, Outcome::Refused { .. }) && seen.is_empty(), "{outcome}");
}

#[tokio::test]
async fn without_revision_checks_no_list_is_replaced() {
    let old = |seen: &Seen| {
        seen.path.ends_with("/extensions").then(|| reply(200, r#"{"extensions": [{"alias": "router"}]}"#))
    };
    for call in [set_groups(&["g1"]), add_routes()] {
        let (outcome, seen) = perform(&call, old).await;
        assert!(outcome.to_string().contains("revision-if-match"), "{outcome}");
        assert!(matches!(outcome, Outcome::Refused { .. }) && seen.is_empty(), "{outcome}");
    }
    let (outcome, seen) =
        perform(&set_groups(&["g1"]), |seen| seen.path.ends_with("/extensions").then(|| reply(503, "")))
            .await;
    assert!(matches!(outcome, Outcome::Failed { .. }) && seen.is_empty(), "{outcome}");
}

const PORT: &str = r#"{"port": {"revision_number": 7, "allowed_address_pairs":
    [{"ip_address": "198.19.9.0/24", "mac_address": "fa:16:3e:00:00:01"}, {"ip_address": "odd", "mac_address": "m"}]}}"#;

#[tokio::test]
async fn address_pairs_are_added_to_what_is_there() {
    let port = |seen: &Seen| match seen.method.as_str() {
        "GET" if seen.path.ends_with("/ports/p1") => Some(reply(200, PORT)),
        "PUT" => Some(reply(200, "{}")),
        _ => None,
    };
    let (outcome, seen) = perform(&add_pairs(&["198.19.1.0/24", "198.19.9.0/24"]), port).await;
    assert!(matches!(outcome, Outcome::Accepted { .. }), "{outcome}");
    assert_eq!(seen[0].headers["if-match"], "revision_number=7");
    assert_eq!(
        seen[0].json(),
        serde_json::json!({"port": {"allowed_address_pairs": [
            {"ip_address": "198.19.9.0/24", "mac_address": "fa:16:3e:00:00:01"},
            {"ip_address": "odd", "mac_address": "m"},
            {"ip_address": "198.19.1.0/24"},
        ]}})
    );
    let (outcome, seen) = perform(&add_pairs(&["198.19.9.0/24"]), port).await;
    assert!(matches!(outcome, Outcome::AlreadySo { .. }) && seen.is_empty(), "{outcome}");
    let (outcome, seen) = perform(&add_pairs(&["198.19.1.0/24"]), |seen| {
        seen.path.ends_with("/ports/p1").then(|| reply(200, PORT.replace(": 7,", ": 8,")))
    })
    .await;
    assert!(matches!(outcome, Outcome::Moved { .. }) && seen.is_empty(), "{outcome}");
    let (outcome, _) = perform(&add_pairs(&["198.19.1.0/24"]), |seen| match seen.method.as_str() {
        "GET" if seen.path.ends_with("/ports/p1") => Some(reply(200, PORT)),
        "PUT" => Some(neutron_error(
            400,
            "AllowedAddressPairExhausted",
            "Number of allowed address pairs exceeds the maximum 10.",
        )),
        _ => None,
    })
    .await;
    assert!(matches!(outcome, Outcome::Limit { limit: Some(10), .. }), "{outcome}");
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
    let call = Call::NudgeRouter { cloud: os(), router: RouterId::from("r1"), route: routes()[0] };
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
    assert!(text.contains("keeps the harmless route 198.19.1.0/24 via 10.0.0.5"), "{text}");
}

#[tokio::test]
async fn instances_are_rebooted_and_started() {
    let reboot = |hard| Call::Reboot { cloud: os(), instance: InstanceId::from("a"), hard };
    let start = Call::Start { cloud: os(), instance: InstanceId::from("a") };
    for (call, body) in [
        (reboot(false), serde_json::json!({"reboot": {"type": "SOFT"}})),
        (reboot(true), serde_json::json!({"reboot": {"type": "HARD"}})),
        (start, serde_json::json!({"os-start": null})),
    ] {
        let (outcome, seen) =
            perform(&call, |seen| seen.path.ends_with("/action").then(|| reply(202, ""))).await;
        assert!(matches!(outcome, Outcome::Accepted { .. }), "{outcome}");
        assert_eq!(lines(&seen), ["POST /compute/v2.1/servers/a/action"]);
        assert_eq!(seen[0].json(), body);
    }
    let cases: [(fn() -> Reply, &str); 8] = [
        (|| nova_fault(409, "conflictingRequest", "Instance a is locked"), "refused"),
        (
            || {
                nova_fault(
                    409,
                    "conflictingRequest",
                    "Cannot 'reboot' instance while it is in vm_state stopped",
                )
            },
            "changed",
        ),
        (|| nova_fault(404, "itemNotFound", "no a"), "refused"),
        (|| nova_fault(403, "forbidden", "Policy doesn't allow it"), "refused"),
        (|| nova_fault(500, "computeFault", "Unexpected API Error."), "unknown"),
        (|| reply(503, ""), "failed"),
        (|| way(Way::Never), "unknown"),
        (|| way(Way::Dropped), "unknown"),
    ];
    for (answer, begins) in cases {
        let (outcome, seen) =
            perform(&reboot(true), move |seen| seen.path.ends_with("/action").then(answer)).await;
        assert!(outcome.to_string().starts_with(begins), "{outcome}");
        assert_eq!(seen.len(), 1, "asked once, whatever came of it: {outcome}");
    }
}

#[tokio::test]
async fn deleting_looks_first() {
    let server = |more: &str| {
        reply(200, format!(r#"{{"server": {{"id": "a", "name": "a", "status": "ACTIVE"{more}}}}}"#))
    };
    let cases: [(Reply, Reply, &str, usize); 9] = [
        (server(""), reply(204, ""), "accepted", 1),
        (server(""), nova_fault(404, "itemNotFound", "no a"), "was so already", 1),
        (server(""), nova_fault(409, "conflictingRequest", "Instance a is locked"), "refused", 1),
        (server(""), way(Way::Never), "unknown", 1),
        (server(r#", "OS-EXT-STS:task_state": "deleting""#), reply(204, ""), "was so already", 0),
        (server(r#", "OS-EXT-STS:vm_state": "deleted""#), reply(204, ""), "was so already", 0),
        (server(r#", "locked": true"#), reply(204, ""), "refused", 0),
        (nova_fault(404, "itemNotFound", "no a"), reply(204, ""), "was so already", 0),
        (reply(404, "<html>"), reply(204, ""), "failed", 0),
    ];
    for (found, answer, begins, deletes) in cases {
        let (outcome, seen) = perform(&delete(), move |seen| match seen.method.as_str() {
            "GET" if seen.path.ends_with("/servers/a") => Some(found.clone()),
            "DELETE" => Some(answer.clone()),
            _ => None,
        })
        .await;
        assert!(outcome.to_string().starts_with(begins), "{outcome}");
        assert_eq!(seen.len(), deletes, "{outcome}");
    }
}

#[tokio::test]
async fn what_was_never_sent_did_not_happen() {
    let fake = Fake::start(|_| None).await;
    let project = fake.connect().await;
    drop(fake);
    // The listener is gone; a connection that was open is closed with it.
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let call = Call::Start { cloud: os(), instance: InstanceId::from("a") };
    let outcome = project.perform(&call).await;
    let Outcome::Failed { text, .. } = &outcome else { panic!("{outcome}") };
    assert!(text.contains("no connection: Connection refused"), "{text}");
}

#[tokio::test]
async fn a_node_is_not_a_clouds_to_delete() {
    let call = Call::DeleteNode { name: NodeName::from("n"), uid: NodeUid::from("u") };
    let (outcome, seen) = perform(&call, |_| None).await;
    assert!(matches!(outcome, Outcome::Refused { .. }) && seen.is_empty(), "{outcome}");
}
