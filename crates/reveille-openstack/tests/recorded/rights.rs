//! The table that access rules are made from is what is sent: none less (here), and none more (each [`Fake`] sees to that).

use std::collections::BTreeSet;
use std::sync::Arc;

use reveille_core::effect::{Call, Look};
use reveille_core::model::access::{Role, RoleRef, UserRef};
use reveille_core::model::id::{GroupId, InstanceId, PortId, RouterId, RuleId};
use reveille_core::model::network::{Direction, Family, Remote, Route, RuleSpec};
use reveille_core::remedies::{
    AddPortPairs, AddRoutes, AddRules, AssignRoles, DeleteInstance, DropRule, NudgeGroup, NudgeRouter,
    Reboot, RemoveRoutes, SetPortGroups, StartInstance,
};
use reveille_openstack::Lister;
use reveille_openstack::rights::RIGHTS;

use crate::fake::{Fake, PROJECT_ID, Reply, Seen, os, owned, reply, server};
use crate::healthy;

/// A project in which every question has an answer and every call has something to do.
fn busy(seen: &Seen, has_atomic_routes: bool) -> Option<Reply> {
    let path = seen.path.trim_start_matches("/network/v2.0/").trim_start_matches("/compute/v2.1/");
    Some(match (seen.method.as_str(), path) {
        ("GET", "extensions") if !has_atomic_routes => {
            reply(200, r#"{"extensions": [{"alias": "revision-if-match"}]}"#)
        }
        ("GET", "servers/detail") => healthy::servers(&[healthy::server("a", healthy::OURS)], None),
        ("GET", "servers/a") => server(""),
        ("GET", "servers/a/os-instance-actions") => reply(200, r#"{"instanceActions": []}"#),
        ("GET", "ports/p1") => reply(200, format!(r#"{{"port": {}}}"#, healthy::port("p1", "a"))),
        ("GET", "routers/r1") => {
            reply(200, r#"{"router": {"id": "r1", "revision_number": 4, "routes": []}}"#)
        }
        ("GET", "security-groups/g1") => {
            reply(200, r#"{"security_group": {"id": "g1", "name": "k8s-nodes", "security_group_rules": []}}"#)
        }
        ("GET", "/identity/v3/users") => reply(200, r#"{"users": [{"id": "u-1", "name": "ccm"}]}"#),
        ("GET", "/identity/v3/role_assignments") => reply(200, r#"{"role_assignments": [], "links": {}}"#),
        ("GET", "/identity/v3/roles") => reply(200, r#"{"roles": [{"id": "r-1", "name": "member"}]}"#),
        ("POST", "security-group-rules") => reply(201, r#"{"security_group_rule": {"id": "n1"}}"#),
        ("POST", "servers/a/action") if seen.body.contains("getConsoleOutput") => {
            reply(200, r#"{"output": "login:"}"#)
        }
        ("POST", "servers/a/action") => reply(202, ""),
        ("PUT", _) => reply(200, "{}"),
        ("DELETE", _) => reply(204, ""),
        _ => return healthy::neutron(seen),
    })
}

fn looks() -> Vec<Look> {
    let one = || InstanceId::from("a");
    let user = Arc::new(UserRef::Name { name: "ccm".into(), domain: None });
    vec![
        Look::Instance(os(), one()),
        Look::Ports(os(), one()),
        Look::Group(os(), GroupId::from("g1")),
        Look::Router(os(), RouterId::from("r1")),
        Look::Console(os(), one()),
        Look::Actions(os(), one()),
        Look::Roles(os(), user, vec![RoleRef::Name("member".into())]),
    ]
}

fn calls() -> Vec<Call> {
    let (instance, group, router) =
        (|| InstanceId::from("a"), || GroupId::from("g1"), || RouterId::from("r1"));
    let route =
        Route { destination: "198.19.1.0/24".parse().unwrap(), next_hop: "10.0.0.5".parse().unwrap() };
    let rule = RuleSpec {
        direction: Direction::Ingress,
        family: Family::V4,
        protocol: None,
        ports: None,
        remote: Remote::Prefix("198.19.0.0/16".parse().unwrap()),
    };
    vec![
        Call::AddRules(AddRules { cloud: os(), group: group(), rules: vec![rule] }),
        Call::DropRule(DropRule { cloud: os(), group: group(), rule: RuleId::from("x") }),
        Call::NudgeGroup(NudgeGroup { cloud: os(), group: group(), mark: "reveille-nudge int-1".into() }),
        Call::SetPortGroups(SetPortGroups {
            cloud: os(),
            port: PortId::from("p1"),
            groups: vec![group()],
            if_revision: 4,
            instance: instance(),
            owned: owned(),
        }),
        Call::AddPortPairs(AddPortPairs {
            cloud: os(),
            port: PortId::from("p1"),
            pairs: vec!["198.19.1.0/24".parse().unwrap()],
            if_revision: 4,
            instance: instance(),
            owned: owned(),
        }),
        Call::AddRoutes(AddRoutes { cloud: os(), router: router(), routes: vec![route] }),
        Call::RemoveRoutes(RemoveRoutes {
            cloud: os(),
            router: router(),
            routes: vec![route],
            unless_used: Vec::new(),
        }),
        Call::NudgeRouter(NudgeRouter { cloud: os(), router: router(), route }),
        Call::AssignRoles(AssignRoles {
            cloud: os(),
            project: PROJECT_ID.into(),
            user: "u-1".into(),
            roles: vec![Role { id: "r-1".into(), name: "member".into() }],
        }),
        Call::Reboot(Reboot { cloud: os(), instance: instance(), hard: true, owned: owned() }),
        Call::Start(StartInstance { cloud: os(), instance: instance(), owned: owned() }),
        Call::DeleteInstance(DeleteInstance {
            cloud: os(),
            instance: instance(),
            owned: owned(),
            rests_on: None,
        }),
    ]
}

#[tokio::test]
async fn every_line_of_the_table_is_sent() {
    let mut sent: BTreeSet<(String, String)> = BTreeSet::new();
    // An older Neutron takes routes as a whole list.
    for has_atomic_routes in [true, false] {
        let fake = Fake::start(move |seen| busy(seen, has_atomic_routes)).await;
        let project = fake.connect().await;
        for look in looks() {
            project.look(&look).await.unwrap();
        }
        for call in calls() {
            let outcome = project.perform(&call).await;
            assert!(!outcome.to_string().starts_with("refused"), "{call}: {outcome}");
        }
        Lister::new(project, healthy::interest()).list(true).await.unwrap();
        sent.extend(fake.take_seen().iter().filter_map(|seen| seen.below_the_service()));
    }
    for right in RIGHTS {
        let is_sent = sent.iter().any(|(method, path)| right.is(method, path));
        assert!(is_sent, "no look and no call sends {} {}", right.method, right.path);
    }
}
