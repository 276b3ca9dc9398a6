//! A port's lists are replaced at the named revision or not at all.

use crate::fake::{Reply, Seen, lines, neutron_error, os, owned, perform, reply, server};
use reveille_core::effect::{Call, Outcome};
use reveille_core::model::id::{GroupId, InstanceId, PortId};
use reveille_core::remedies::{AddPortPairs, SetPortGroups};

fn set_groups(groups: &[&str]) -> Call {
    Call::SetPortGroups(SetPortGroups {
        cloud: os(),
        port: PortId::from("p1"),
        groups: groups.iter().map(|group| GroupId::from(*group)).collect(),
        if_revision: 7,
        instance: InstanceId::from("a"),
        owned: owned(),
    })
}

fn add_pairs(pairs: &[&str]) -> Call {
    Call::AddPortPairs(AddPortPairs {
        cloud: os(),
        port: PortId::from("p1"),
        pairs: pairs.iter().map(|pair| pair.parse().unwrap()).collect(),
        if_revision: 7,
        instance: InstanceId::from("a"),
        owned: owned(),
    })
}

/// The server with its marks, and whatever else is answered.
fn marked(mut answer: impl FnMut(&Seen) -> Option<Reply>) -> impl FnMut(&Seen) -> Option<Reply> {
    move |seen| if seen.path.ends_with("/servers/a") { Some(server("")) } else { answer(seen) }
}

/// An operator cuts a machine off: the tag goes, and the group. Nova's list of changes shows no tag.
#[tokio::test]
async fn port_of_server_without_pool_mark_is_not_changed() {
    let none = r#"{"server": {"id": "a", "name": "a", "status": "ACTIVE", "tags": [], "metadata": {}}}"#;
    for call in [set_groups(&["g1"]), add_pairs(&["198.19.1.0/24"])] {
        let (outcome, seen) = perform(&call, move |seen| match seen.method.as_str() {
            "GET" if seen.path.ends_with("/servers/a") => Some(reply(200, none)),
            "GET" if seen.path.ends_with("/ports/p1") => Some(reply(200, PORT)),
            "PUT" => Some(reply(200, "{}")),
            _ => None,
        })
        .await;
        assert_eq!(lines(&seen), [""; 0], "{call}: {outcome}");
        assert!(matches!(outcome, Outcome::Moved { .. }), "{call}: {outcome}");
    }
}

#[tokio::test]
async fn groups_are_set_at_the_named_revision_or_not_at_all() {
    let cases: [(fn() -> Reply, &str); 9] = [
        (|| reply(200, "{}").with("X-Openstack-Request-Id", "req-7"), "accepted (req-7)"),
        (|| reply(200, "<html>please log in</html>"), "unknown"),
        (|| neutron_error(200, "Later", "x"), "unknown"),
        (|| reply(202, "{}"), "unknown"),
        (|| neutron_error(412, "RevisionNumberConstraintFailed", "not 7"), "changed meanwhile"),
        (|| neutron_error(400, "PortSecurityPortHasSecurityGroup", "port security"), "refused"),
        (|| neutron_error(404, "PortNotFound", "no port"), "refused"),
        (|| neutron_error(403, "PolicyNotAuthorized", "no"), "denied"),
        (|| reply(502, ""), "unknown"),
    ];
    for (answer, begins) in cases {
        let (outcome, seen) =
            perform(&set_groups(&["g1", "g2"]), marked(move |seen| (seen.method == "PUT").then(answer)))
                .await;
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
    for call in [set_groups(&["g1"]), crate::routes::add_routes()] {
        let (outcome, seen) = perform(&call, marked(old)).await;
        assert!(outcome.to_string().contains("revision-if-match"), "{outcome}");
        assert!(matches!(outcome, Outcome::Refused { .. }) && seen.is_empty(), "{outcome}");
    }
    let (outcome, seen) = perform(
        &set_groups(&["g1"]),
        marked(|seen| seen.path.ends_with("/extensions").then(|| reply(503, ""))),
    )
    .await;
    assert!(matches!(outcome, Outcome::Failed { .. }) && seen.is_empty(), "{outcome}");
}

const PORT: &str = r#"{"port": {"id": "p1", "revision_number": 7, "allowed_address_pairs":
    [{"ip_address": "198.19.9.0/24", "mac_address": "fa:16:3e:00:00:01"}, {"ip_address": "odd", "mac_address": "m"}]}}"#;

#[tokio::test]
async fn address_pairs_are_added_to_what_is_there() {
    let port = |seen: &Seen| match seen.method.as_str() {
        "GET" if seen.path.ends_with("/ports/p1") => Some(reply(200, PORT)),
        "PUT" => Some(reply(200, "{}")),
        _ => None,
    };
    let (outcome, seen) = perform(&add_pairs(&["198.19.1.0/24", "198.19.9.0/24"]), marked(port)).await;
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
    let (outcome, seen) = perform(&add_pairs(&["198.19.9.0/24"]), marked(port)).await;
    assert!(matches!(outcome, Outcome::AlreadySo { .. }) && seen.is_empty(), "{outcome}");
    let (outcome, seen) = perform(
        &add_pairs(&["198.19.1.0/24"]),
        marked(|seen| seen.path.ends_with("/ports/p1").then(|| reply(200, PORT.replace(": 7,", ": 8,")))),
    )
    .await;
    assert!(matches!(outcome, Outcome::Moved { .. }) && seen.is_empty(), "{outcome}");
    let (outcome, _) = perform(
        &add_pairs(&["198.19.1.0/24"]),
        marked(|seen| match seen.method.as_str() {
            "GET" if seen.path.ends_with("/ports/p1") => Some(reply(200, PORT)),
            "PUT" => Some(neutron_error(
                400,
                "AllowedAddressPairExhausted",
                "Number of allowed address pairs exceeds the maximum 10.",
            )),
            _ => None,
        }),
    )
    .await;
    assert!(matches!(outcome, Outcome::Limit { limit: Some(10), .. }), "{outcome}");
}

/// The answer about another port would have its pairs written onto this one.
#[tokio::test]
async fn pairs_of_another_port_are_not_written() {
    let (outcome, seen) = perform(
        &add_pairs(&["198.19.1.0/24"]),
        marked(|seen| match seen.method.as_str() {
            "GET" if seen.path.ends_with("/ports/p1") => {
                Some(reply(200, PORT.replace(r#""id": "p1""#, r#""id": "p2""#)))
            }
            "PUT" => Some(reply(200, "{}")),
            _ => None,
        }),
    )
    .await;
    assert!(matches!(outcome, Outcome::Failed { .. }) && seen.is_empty(), "{outcome}");
}
