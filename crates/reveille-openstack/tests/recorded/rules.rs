//! Rules go in one by one, come out by id, and a nudge leaves the group as it was.

use crate::fake::{Reply, Way, lines, neutron_error, os, perform, reply, way};
use reveille_core::effect::{Call, Outcome};
use reveille_core::model::id::{GroupId, RuleId};
use reveille_core::model::network::{Direction, Family, Protocol, Remote, RuleSpec};
use reveille_core::model::time::Span;
use reveille_core::remedies::{AddRules, DropRule, NudgeGroup};

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
    Call::AddRules(AddRules {
        cloud: os(),
        group: GroupId::from("g1"),
        rules: protocols.iter().copied().map(rule).collect(),
    })
}

fn nudge_group() -> Call {
    Call::NudgeGroup(NudgeGroup {
        cloud: os(),
        group: GroupId::from("g1"),
        mark: "reveille-nudge int-41".into(),
    })
}

fn created(id: &str) -> Reply {
    reply(201, format!(r#"{{"security_group_rule": {{"id": "{id}"}}}}"#))
        .with("X-Openstack-Request-Id", "req-1")
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
    let (outcome, _) =
        perform(&nudge_group(), |seen| seen.path.ends_with("-rules").then(|| way(Way::Never))).await;
    let Outcome::Unknown { text } = &outcome else { panic!("{outcome}") };
    assert!(text.ends_with("it may be there, described \"reveille-nudge int-41\""), "{text}");
    // The rule that an earlier nudge left admits no real client; the next address is free.
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
async fn missing_rule_counts_as_dropped_only_if_neutron_says_so() {
    let call = Call::DropRule(DropRule { cloud: os(), group: GroupId::from("g1"), rule: RuleId::from("x") });
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
