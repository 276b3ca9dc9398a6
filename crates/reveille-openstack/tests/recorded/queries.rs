//! A targeted question is answered afresh; "no such thing" is an answer only in the service's own words.

use crate::fake::{Fake, Reply, Way, neutron_error, nova_fault, reply, way};
use reveille_core::effect::{Look, ReadErrorKind};
use reveille_core::event::Answer;
use reveille_core::model::id::{CloudName, GroupId, InstanceId, NodeName, RouterId};
use reveille_core::model::instance::InstanceState;
use reveille_core::model::time::ServiceTime;

fn os() -> CloudName {
    CloudName::from("os")
}

fn instance() -> Look {
    Look::Instance(os(), InstanceId::from("a"))
}

/// Asks `look` of a cloud whose every answer below `path` is `answer`.
async fn ask(
    look: &Look,
    path: &'static str,
    answer: Reply,
) -> Result<Answer, reveille_core::effect::ReadError> {
    let fake = Fake::start(move |seen| (seen.path == path).then(|| answer.clone())).await;
    fake.connect().await.look(look).await
}

#[tokio::test]
async fn instance_is_found_missing_or_unknown_by_answer() {
    let path = "/compute/v2.1/servers/a";
    let found = ask(&instance(), path, reply(200, r#"{"server": {"id": "a", "status": "ACTIVE"}}"#)).await;
    let Ok(Answer::Instance(Some(found))) = found else { panic!("{found:?}") };
    assert_eq!(found.state, InstanceState::Active);
    let down = reply(200, r#"{"server": {"id": "a", "status": "UNKNOWN", "tenant_id": "p", "links": []}}"#);
    let Ok(Answer::Instance(Some(partial))) = ask(&instance(), path, down).await else { panic!() };
    assert_eq!(partial.state, InstanceState::Other);
    let gone =
        ask(&instance(), path, nova_fault(404, "itemNotFound", "Instance a could not be found.")).await;
    assert_eq!(gone, Ok(Answer::Instance(None)));
    let unknown: [(Reply, ReadErrorKind); 7] = [
        (nova_fault(500, "computeFault", "Unexpected API Error."), ReadErrorKind::Unavailable),
        (reply(404, "<html>no backend</html>"), ReadErrorKind::Unavailable),
        (reply(404, ""), ReadErrorKind::Unavailable),
        (nova_fault(429, "overLimit", "slow down"), ReadErrorKind::Throttled),
        (reply(200, "{}"), ReadErrorKind::Malformed),
        (way(Way::Never), ReadErrorKind::TimedOut),
        (way(Way::Dropped), ReadErrorKind::Unavailable),
    ];
    for (answer, kind) in unknown {
        let error = ask(&instance(), path, answer).await.unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.text.starts_with("openstack: cannot read instance a of project prod: "), "{error}");
    }
}

#[tokio::test]
async fn ports_are_those_of_the_instance_and_no_others() {
    let ports = reply(
        200,
        r#"{"ports": [{"id": "p2", "device_id": "a", "device_owner": "compute:x", "network_id": "n"},
                      {"id": "p1", "device_id": "a", "device_owner": "compute:x", "network_id": "n"},
                      {"id": "p0", "device_id": "b", "device_owner": "compute:x", "network_id": "n"}]}"#,
    );
    let look = Look::Ports(os(), InstanceId::from("a"));
    let Ok(Answer::Ports(ports)) = ask(&look, "/network/v2.0/ports", ports).await else { panic!() };
    assert_eq!(ports.iter().map(|port| port.id.as_str()).collect::<Vec<_>>(), ["p1", "p2"]);
}

#[tokio::test]
async fn groups_and_routers_are_there_or_not() {
    let group = Look::Group(os(), GroupId::from("g"));
    let path = "/network/v2.0/security-groups/g";
    let body =
        r#"{"security_group": {"id": "g", "name": "n", "project_id": "p", "security_group_rules": []}}"#;
    let Ok(Answer::Group(Some(found))) = ask(&group, path, reply(200, body)).await else { panic!() };
    assert_eq!(found.project.as_deref(), Some("p"));
    let gone = neutron_error(404, "SecurityGroupNotFound", "Security group g does not exist");
    assert_eq!(ask(&group, path, gone).await, Ok(Answer::Group(None)));
    let router = Look::Router(os(), RouterId::from("r"));
    let path = "/network/v2.0/routers/r";
    let gone = neutron_error(404, "RouterNotFound", "Router r could not be found");
    assert_eq!(ask(&router, path, gone).await, Ok(Answer::Router(None)));
    assert!(ask(&router, path, reply(404, "not found")).await.is_err());
}

#[tokio::test]
async fn router_limit_is_its_quota_if_told_and_is_read_once() {
    let look = Look::Router(os(), RouterId::from("r"));
    let quotas: [(Reply, Option<u32>); 5] = [
        (reply(200, r#"{"quota": {"router_route": 31}}"#), Some(31)),
        (reply(200, r#"{"quota": {"router_route": -1}}"#), None),
        (reply(200, r#"{"quota": {"port": 500}}"#), None),
        (neutron_error(403, "PolicyNotAuthorized", "no"), None),
        (reply(404, ""), None),
    ];
    for (quota, limit) in quotas {
        let fake = Fake::start(move |seen| match seen.path.as_str() {
            "/network/v2.0/routers/r" => Some(reply(200, r#"{"router": {"id": "r", "routes": []}}"#)),
            path if path.contains("/quotas/") => Some(quota.clone()),
            _ => None,
        })
        .await;
        let project = fake.connect().await;
        for _ in 0..3 {
            let Ok(Answer::Router(Some(router))) = project.look(&look).await else { panic!() };
            assert_eq!(router.limit, limit);
        }
        let asked = fake.take_lines().iter().filter(|line| line.contains("/quotas/")).count();
        assert_eq!(asked, 1, "limit {limit:?}");
    }
}

#[tokio::test]
async fn a_quota_that_cannot_be_read_now_is_asked_again() {
    let fake = Fake::start(|seen| match seen.path.as_str() {
        "/network/v2.0/routers/r" => Some(reply(200, r#"{"router": {"id": "r", "routes": []}}"#)),
        path if path.contains("/quotas/") => Some(reply(503, "")),
        _ => None,
    })
    .await;
    let project = fake.connect().await;
    let look = Look::Router(os(), RouterId::from("r"));
    let Ok(Answer::Router(Some(router))) = project.look(&look).await else { panic!() };
    assert_eq!(router.limit, None);
    fake.answer(|seen| {
        (seen.path == "/network/v2.0/routers/r")
            .then(|| reply(200, r#"{"router": {"id": "r", "routes": []}}"#))
    });
    let Ok(Answer::Router(Some(router))) = project.look(&look).await else { panic!() };
    assert_eq!(router.limit, Some(30));
}

/// A rate limiter's 429, or a 401 of a service that cannot reach Keystone, is no word on the quota.
#[tokio::test]
async fn a_quota_that_is_throttled_or_refused_is_asked_again() {
    for status in [401, 408, 413, 429, 498] {
        let router = || reply(200, r#"{"router": {"id": "r", "routes": []}}"#);
        let fake = Fake::start(move |seen| match seen.path.as_str() {
            "/network/v2.0/routers/r" => Some(router()),
            path if path.contains("/quotas/") => Some(reply(status, "")),
            _ => None,
        })
        .await;
        let project = fake.connect().await;
        let look = Look::Router(os(), RouterId::from("r"));
        let Ok(Answer::Router(Some(_))) = project.look(&look).await else { panic!() };
        fake.answer(move |seen| (seen.path == "/network/v2.0/routers/r").then(router));
        let Ok(Answer::Router(Some(found))) = project.look(&look).await else { panic!() };
        assert_eq!(found.limit, Some(30), "{status}");
    }
}

#[tokio::test]
async fn a_refusal_teaches_the_limit_that_the_cloud_does_not_tell() {
    use reveille_core::effect::Call;
    use reveille_core::model::network::Route;
    use reveille_core::remedies::AddRoutes;
    let fake = Fake::start(|seen| match seen.path.as_str() {
        "/network/v2.0/routers/r" => Some(reply(200, r#"{"router": {"id": "r", "routes": []}}"#)),
        path if path.contains("/quotas/") => Some(reply(200, r#"{"quota": {}}"#)),
        path if path.ends_with("add_extraroutes") => {
            Some(neutron_error(400, "RoutesExhausted", "The number of routes exceeds the maximum 30."))
        }
        _ => None,
    })
    .await;
    let project = fake.connect().await;
    let route =
        Route { destination: "198.19.1.0/24".parse().unwrap(), next_hop: "10.0.0.5".parse().unwrap() };
    let call = Call::AddRoutes(AddRoutes { cloud: os(), router: RouterId::from("r"), routes: vec![route] });
    project.perform(&call).await;
    let answer = project.look(&Look::Router(os(), RouterId::from("r"))).await;
    let Ok(Answer::Router(Some(router))) = answer else { panic!("{answer:?}") };
    assert_eq!(router.limit, Some(30));
}

#[tokio::test]
async fn a_console_is_its_text_or_the_reason_why_there_is_none() {
    let look = Look::Console(os(), InstanceId::from("a"));
    let path = "/compute/v2.1/servers/a/action";
    let text = ask(&look, path, reply(200, r#"{"output": "\u001b[1mboot\u001b[0m\r\nlogin: "}"#)).await;
    assert_eq!(text, Ok(Answer::Console("boot\nlogin: ".into())));
    for (answer, says) in [
        (nova_fault(404, "itemNotFound", "Guest does not have a console available."), "Guest does not have"),
        (
            nova_fault(409, "conflictingRequest", "Instance a is not ready"),
            "409 Conflict: Instance a is not ready",
        ),
        (nova_fault(501, "notImplemented", "Unable to get console log"), "501 Not Implemented"),
    ] {
        let Ok(Answer::NoConsole(why)) = ask(&look, path, answer).await else { panic!("{says}") };
        assert!(why.contains(says), "{why}");
    }
    let error = ask(&look, path, nova_fault(500, "computeFault", "no")).await.unwrap_err();
    assert_eq!(error.kind, ReadErrorKind::Unavailable);
}

#[tokio::test]
async fn actions_come_newest_first() {
    let look = Look::Actions(os(), InstanceId::from("a"));
    let path = "/compute/v2.1/servers/a/os-instance-actions";
    let body = r#"{"instanceActions": [
        {"action": "create", "request_id": "req-1", "start_time": "2026-11-21T09:00:00.000000", "user_id": "u", "message": null},
        {"action": "reboot", "request_id": "req-2", "start_time": "2026-11-21T10:00:00.000000", "user_id": "u", "message": "Error"}]}"#;
    let Ok(Answer::Actions(actions)) = ask(&look, path, reply(200, body)).await else { panic!() };
    assert_eq!(&*actions[0].action, "reboot");
    assert_eq!(actions[0].message.as_deref(), Some("Error"));
    assert_eq!(actions[1].message, None);
    let at = ServiceTime::parse(&actions[0].started);
    assert_eq!(at, ServiceTime::parse("2026-11-21T10:00:00Z"), "Nova's times are UTC");
    assert!(at.is_some());
    let gone = ask(&look, path, nova_fault(404, "itemNotFound", "no a")).await;
    assert_eq!(gone, Ok(Answer::Actions(Vec::new())));
}

#[tokio::test]
async fn node_look_is_refused_without_request() {
    let fake = Fake::start(|_| None).await;
    let project = fake.connect().await;
    assert!(project.look(&Look::Node(NodeName::from("n"))).await.is_err());
    assert!(fake.take_seen().is_empty());
}

#[tokio::test]
async fn an_id_is_one_path_segment_whatever_stands_in_it() {
    let fake = Fake::start(|_| None).await;
    let project = fake.connect().await;
    let look = Look::Instance(os(), InstanceId::from("a/../b?x=1#y"));
    assert_eq!(project.look(&look).await, Ok(Answer::Instance(None)));
    let seen = fake.take_seen();
    assert_eq!(seen[0].path, "/compute/v2.1/servers/a%2F..%2Fb%3Fx=1%23y");
    assert!(seen[0].query.is_empty());
}

/// A cache or a gateway in between gives the answer to another question. The marks of `b` would prove whose `a` is, and `a` be
/// rebooted or deleted; `b`'s routes would be written back to `a`.
#[tokio::test]
async fn answer_about_another_thing_is_no_answer() {
    let server = r#"{"server": {"id": "b", "status": "ACTIVE", "tags": ["k8s-cluster=prod"]}}"#;
    let group = r#"{"security_group": {"id": "b", "name": "n", "security_group_rules": []}}"#;
    let router = r#"{"router": {"id": "b", "routes": []}}"#;
    for (look, path, body) in [
        (instance(), "/compute/v2.1/servers/a", server),
        (Look::Group(os(), GroupId::from("a")), "/network/v2.0/security-groups/a", group),
        (Look::Router(os(), RouterId::from("a")), "/network/v2.0/routers/a", router),
    ] {
        let error = ask(&look, path, reply(200, body)).await.unwrap_err();
        assert_eq!(error.kind, ReadErrorKind::Malformed, "{error}");
        assert!(error.text.contains("the answer is about b"), "{error}");
    }
    let upper = reply(200, r#"{"server": {"id": "A", "status": "ACTIVE"}}"#);
    assert!(matches!(
        ask(&instance(), "/compute/v2.1/servers/a", upper).await,
        Ok(Answer::Instance(Some(_)))
    ));
}

/// A client that may create a Node writes what stands behind `openstack:///` in its provider ID, and Nova is asked for that.
/// `..` falls out of the address, and `detail` is the list of all servers of the project, which would be read in each look.
#[tokio::test]
async fn id_that_no_server_can_have_is_not_asked_for_as_a_list() {
    let fake = Fake::start(|_| None).await;
    let project = fake.connect().await;
    for id in ["", ".", "..", "detail", ".\t.", "det\nail"] {
        let id = || InstanceId::from(id);
        for look in [Look::Instance(os(), id()), Look::Console(os(), id()), Look::Actions(os(), id())] {
            let error = project.look(&look).await.unwrap_err();
            assert_eq!(error.kind, ReadErrorKind::Malformed, "{error}");
        }
    }
    let lines = fake.take_lines();
    assert!(lines.is_empty(), "{lines:?}");
}

/// These go into records, whose length the ledger bounds at a mebibyte: an incident that it refuses, and a checkpoint that it
/// refuses each time, so that it never rotates again.
#[tokio::test]
async fn texts_of_a_server_are_kept_no_longer_than_any_real_one() {
    let long = "x".repeat(2 << 20);
    let server = format!(
        r#"{{"server": {{"id": "a", "status": "ERROR", "name": "{long}", "OS-EXT-STS:task_state": "{long}", "tags": ["{long}"],
            "created": "{long}", "OS-EXT-AZ:availability_zone": "{long}", "fault": {{"code": 500, "message": "{long}"}}}}}}"#
    );
    let answer = ask(&instance(), "/compute/v2.1/servers/a", reply(200, server)).await;
    let Ok(Answer::Instance(Some(instance))) = answer else { panic!("no instance") };
    let kept = format!("{instance:?}").len();
    assert!(kept <= 16 << 10, "{kept} bytes are kept");
    let most = 4096;
    assert!(instance.name.as_str().len() <= most, "a name of {} bytes", instance.name.as_str().len());
    assert!(instance.task.as_ref().is_none_or(|task| task.len() <= most), "a task");
    assert!(instance.fault.as_ref().is_none_or(|fault| fault.message.len() <= most), "a fault");
    assert!(instance.created.as_ref().is_none_or(|created| created.len() <= most), "a time");
}
