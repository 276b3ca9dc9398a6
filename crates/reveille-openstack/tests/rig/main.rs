//! The adapter against the real services: Keystone, Nova and Neutron of a running rig.
//!
//! Ignored by default. `REVEILLE_RIG` names the rig's description (`rig.json`); then
//! `cargo test -p reveille-openstack --test rig -- --ignored`. Without it the tests say that they did not run. Each test
//! makes its own machines and takes them away; faults hit the whole rig, so one test runs at a time.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test, what cannot be is a failure")]

mod running;

use running::{ONE_AT_A_TIME, Rig, group, instance, named, os, port, until};
use std::time::Duration;

use reveille_core::effect::{Call, Look, Outcome, ReadErrorKind};
use reveille_core::event::{Answer, Scope};
use reveille_core::model::id::{InstanceId, RouterId};
use reveille_core::model::instance::{Instance, InstanceState, Mark, PortStatus};
use reveille_core::model::network::{Direction, Family, Protocol, Remote, Route, RuleSpec};
use reveille_core::model::time::Span;
use reveille_core::remedies::{
    AddPortPairs, AddRoutes, AddRules, DeleteInstance, DropRule, NudgeGroup, NudgeRouter, Reboot,
    RemoveRoutes, SetPortGroups, StartInstance,
};
use reveille_openstack::Lister;

#[tokio::test]
#[ignore = "needs a rig: set REVEILLE_RIG"]
async fn a_real_project_is_read_in_four_requests() {
    let _one = ONE_AT_A_TIME.lock().await;
    let Some(mut rig) = Rig::find("a_real_project_is_read_in_four_requests") else { return };
    rig.create(&["oa-1", "oa-2"]);
    let project = rig.connect().await;
    let mut lister = Lister::new(project.clone(), rig.interest());
    let first = lister.list(true).await.unwrap();
    assert_eq!(first.scope, Scope::Full);
    let machine = named(&first, "oa-1");
    assert_eq!(machine.state, InstanceState::Active);
    assert!(machine.marks.contains(&Mark::Tag("k8s-pool=adapter".into())));
    assert_eq!(machine.addresses.len(), 1);
    assert!(machine.zone.is_some() && machine.created.is_some() && machine.image.is_some());
    let (_, port) = first.ports.iter().find(|(id, _)| *id == machine.id).unwrap();
    assert_eq!(*port.groups, [rig.group()]);
    assert_eq!(*port.addresses, *machine.addresses);
    assert!(port.security && port.status == PortStatus::Active && port.revision > 0);
    assert_eq!(first.groups.as_ref().map(Vec::len), Some(1));
    assert_eq!(first.routers[0].limit, Some(30));
    for full in [true, false] {
        let before = project.traffic().calls;
        lister.list(full).await.unwrap();
        assert_eq!(project.traffic().calls - before, 4);
    }
    let Ok(Answer::Console(console)) = project.look(&Look::Console(os(), machine.id.clone())).await else {
        panic!("no console");
    };
    assert!(console.contains("FAKE CONSOLE OUTPUT\nANOTHER\n"), "{console}");
    let Ok(Answer::Actions(actions)) = project.look(&Look::Actions(os(), machine.id.clone())).await else {
        panic!("no actions");
    };
    assert_eq!(&*actions.last().unwrap().action, "create");
    let unknown = InstanceId::from("00000000-0000-4000-8000-000000000000");
    assert_eq!(instance(&project, &unknown).await, None);
    let router = Look::Router(os(), RouterId::from("00000000-0000-4000-8000-000000000000"));
    assert_eq!(project.look(&router).await, Ok(Answer::Router(None)));
}

#[tokio::test]
#[ignore = "needs a rig: set REVEILLE_RIG"]
async fn a_real_deletion_shows_among_the_changes() {
    let _one = ONE_AT_A_TIME.lock().await;
    let Some(mut rig) = Rig::find("a_real_deletion_shows_among_the_changes") else { return };
    rig.create(&["oa-3", "oa-4"]);
    let project = rig.connect().await;
    let mut lister = Lister::new(project.clone(), rig.interest());
    let full = lister.list(true).await.unwrap();
    let (gone, stays) = (named(&full, "oa-3").id.clone(), named(&full, "oa-4").id.clone());
    let owned = rig.owned();
    let delete = Call::DeleteInstance(DeleteInstance {
        cloud: os(),
        instance: gone.clone(),
        owned: owned.clone(),
        rests_on: None,
    });
    assert!(matches!(project.perform(&delete).await, Outcome::Accepted { request: Some(_) }));
    until(&project, &gone, |now| now.is_none()).await;
    rig.machines.retain(|name| name != "oa-3");
    assert!(matches!(project.perform(&delete).await, Outcome::AlreadySo { .. }));
    let changes = lister.list(false).await.unwrap();
    assert_eq!(changes.scope, Scope::Changes);
    let told = changes.instances.iter().find(|instance| instance.id == gone).unwrap();
    assert_eq!(told.state, InstanceState::Gone);
    assert!(
        told.marks.iter().all(|mark| !matches!(mark, Mark::Tag(_))),
        "Nova keeps no tags of a deleted server"
    );
    assert!(changes.ports.iter().any(|(id, _)| *id == stays));
    rig.fault(&["stuck-deleting", "oa-4", "lost"]);
    until(&project, &stays, |now| now.is_some_and(|now| now.state == InstanceState::Deleting)).await;
    let delete =
        Call::DeleteInstance(DeleteInstance { cloud: os(), instance: stays.clone(), owned, rests_on: None });
    assert!(matches!(project.perform(&delete).await, Outcome::AlreadySo { .. }));
    rig.lift(&["stuck-deleting", "oa-4", "lost"]);
}

#[tokio::test]
#[ignore = "needs a rig: set REVEILLE_RIG"]
async fn real_ports_are_repaired() {
    let _one = ONE_AT_A_TIME.lock().await;
    let Some(mut rig) = Rig::find("real_ports_are_repaired") else { return };
    rig.create(&["oa-5"]);
    let project = rig.connect().await;
    let mut lister = Lister::new(project.clone(), rig.interest());
    let id = named(&lister.list(true).await.unwrap(), "oa-5").id.clone();

    rig.fault(&["group-off", "oa-5"]);
    let bare = port(&project, &id).await;
    assert!(bare.groups.is_empty());
    let set = |if_revision| {
        Call::SetPortGroups(SetPortGroups {
            cloud: os(),
            port: bare.id.clone(),
            groups: vec![rig.group()],
            if_revision,
            instance: id.clone(),
            owned: rig.owned(),
        })
    };
    let stale = project.perform(&set(bare.revision - 1)).await;
    assert!(matches!(stale, Outcome::Moved { .. }), "{stale}");
    let done = project.perform(&set(bare.revision)).await;
    assert!(matches!(done, Outcome::Accepted { .. }), "{done}");
    let mended = port(&project, &id).await;
    assert_eq!(*mended.groups, [rig.group()]);

    let pairs = |if_revision| {
        Call::AddPortPairs(AddPortPairs {
            cloud: os(),
            port: mended.id.clone(),
            pairs: vec!["198.19.77.0/24".parse().unwrap()],
            if_revision,
            instance: id.clone(),
            owned: rig.owned(),
        })
    };
    let done = project.perform(&pairs(mended.revision)).await;
    assert!(matches!(done, Outcome::Accepted { .. }), "{done}");
    let paired = port(&project, &id).await;
    assert_eq!(*paired.pairs, ["198.19.77.0/24".parse().unwrap()]);
    assert!(matches!(project.perform(&pairs(mended.revision)).await, Outcome::Moved { .. }));
    assert!(matches!(project.perform(&pairs(paired.revision)).await, Outcome::AlreadySo { .. }));
    let many: Vec<_> = (0..11).map(|n| format!("198.19.{n}.0/24").parse().unwrap()).collect();
    let call = Call::AddPortPairs(AddPortPairs {
        cloud: os(),
        port: paired.id.clone(),
        pairs: many,
        if_revision: paired.revision,
        instance: id.clone(),
        owned: rig.owned(),
    });
    let outcome = project.perform(&call).await;
    assert!(matches!(outcome, Outcome::Limit { limit: Some(10), .. }), "{outcome}");
}

#[tokio::test]
#[ignore = "needs a rig: set REVEILLE_RIG"]
async fn real_rules_are_put_dropped_and_nudged() {
    let _one = ONE_AT_A_TIME.lock().await;
    let Some(rig) = Rig::find("real_rules_are_put_dropped_and_nudged") else { return };
    let project = rig.connect().await;
    let rule = |protocol| RuleSpec {
        direction: Direction::Ingress,
        family: Family::V4,
        protocol: Some(protocol),
        ports: None,
        remote: Remote::Prefix(rig.openstack("podCIDR").parse().unwrap()),
    };
    let wanted = [rule(Protocol::TCP), rule(Protocol::UDP), rule(Protocol::ICMP)];
    let before = group(&project, &rig.group()).await;
    let there = before.rules.iter().find(|there| there.allows == wanted[1]).unwrap();
    let drop_rule = Call::DropRule(DropRule { cloud: os(), group: rig.group(), rule: there.id.clone() });
    assert!(matches!(project.perform(&drop_rule).await, Outcome::Accepted { .. }));
    assert!(matches!(project.perform(&drop_rule).await, Outcome::AlreadySo { .. }));
    let add = Call::AddRules(AddRules { cloud: os(), group: rig.group(), rules: wanted.to_vec() });
    let done = project.perform(&add).await;
    assert!(matches!(done, Outcome::Accepted { .. }), "{done}");
    let again = project.perform(&add).await;
    assert!(matches!(again, Outcome::AlreadySo { .. }), "{again}");
    let after = group(&project, &rig.group()).await;
    assert!(wanted.iter().all(|wanted| after.rules.iter().any(|there| there.allows == *wanted)));
    let nudge =
        Call::NudgeGroup(NudgeGroup { cloud: os(), group: rig.group(), mark: "reveille-nudge int-7".into() });
    assert!(matches!(project.perform(&nudge).await, Outcome::Accepted { .. }));
    assert_eq!(group(&project, &rig.group()).await.rules, after.rules);
}

#[tokio::test]
#[ignore = "needs a rig: set REVEILLE_RIG"]
async fn real_routes_go_in_and_out_up_to_the_limit() {
    let _one = ONE_AT_A_TIME.lock().await;
    let Some(mut rig) = Rig::find("real_routes_go_in_and_out_up_to_the_limit") else { return };
    let project = rig.connect().await;
    let add = |routes| Call::AddRoutes(AddRoutes { cloud: os(), router: rig.router(), routes });
    let remove = |routes| {
        let (router, unless_used) = (rig.router(), Vec::new());
        Call::RemoveRoutes(RemoveRoutes { cloud: os(), router, routes, unless_used })
    };
    let routes = vec![rig.route(1, 50), rig.route(1, 51), rig.route(2, 50)];
    for call in [add(routes.clone()), add(routes.clone()), remove(vec![routes[1]]), remove(vec![routes[1]])] {
        let outcome = project.perform(&call).await;
        assert!(matches!(outcome, Outcome::Accepted { .. }), "{call}: {outcome}");
    }
    let Ok(Answer::Router(Some(router))) = project.look(&Look::Router(os(), rig.router())).await else {
        panic!()
    };
    assert!(router.routes.contains(&routes[0]) && !router.routes.contains(&routes[1]));
    let elsewhere = Route { next_hop: "172.31.255.1".parse().unwrap(), ..routes[0] };
    let outcome = project.perform(&add(vec![elsewhere])).await;
    assert!(matches!(outcome, Outcome::Refused { .. }), "{outcome}");
    let nudge = Call::NudgeRouter(NudgeRouter { cloud: os(), router: rig.router(), route: rig.route(3, 50) });
    assert!(matches!(project.perform(&nudge).await, Outcome::Accepted { .. }));
    let call_limit = router.routes.len().to_string();
    let more = add(vec![rig.route(4, 50)]);
    let clean = remove(routes.clone());
    rig.fault(&["route-limit", &call_limit]);
    let outcome = project.perform(&more).await;
    assert!(matches!(outcome, Outcome::Limit { .. }), "{outcome}");
    assert!(matches!(project.perform(&clean).await, Outcome::Accepted { .. }));
}

#[tokio::test]
#[ignore = "needs a rig: set REVEILLE_RIG"]
async fn real_instances_are_rebooted_started_and_described() {
    let _one = ONE_AT_A_TIME.lock().await;
    let Some(mut rig) = Rig::find("real_instances_are_rebooted_started_and_described") else { return };
    rig.create(&["oa-6"]);
    let project = rig.connect().await;
    let mut lister = Lister::new(project.clone(), rig.interest());
    let id = named(&lister.list(true).await.unwrap(), "oa-6").id.clone();
    let is =
        |state| move |now: Option<&Instance>| now.is_some_and(|now| now.state == state && now.task.is_none());
    let start = Call::Start(StartInstance { cloud: os(), instance: id.clone(), owned: rig.owned() });
    let outcome = project.perform(&start).await;
    assert!(matches!(outcome, Outcome::Moved { .. }), "it runs already: {outcome}");
    for hard in [false, true] {
        let reboot = Call::Reboot(Reboot { cloud: os(), instance: id.clone(), hard, owned: rig.owned() });
        let outcome = project.perform(&reboot).await;
        assert!(matches!(outcome, Outcome::Accepted { .. }), "{outcome}");
        until(&project, &id, is(InstanceState::Active)).await;
    }
    let Ok(Answer::Actions(actions)) = project.look(&Look::Actions(os(), id.clone())).await else { panic!() };
    let kinds: Vec<&str> = actions.iter().map(|action| &*action.action).collect();
    assert_eq!(kinds, ["reboot", "reboot", "create"]);
    rig.fault(&["shutoff", "oa-6"]);
    until(&project, &id, is(InstanceState::Stopped)).await;
    assert!(matches!(project.perform(&start).await, Outcome::Accepted { .. }));
    until(&project, &id, is(InstanceState::Active)).await;
    rig.fault(&["errored", "oa-6", "the disk is on fire"]);
    let errored = until(&project, &id, is(InstanceState::Errored)).await.unwrap();
    assert_eq!(errored.fault.as_ref().map(|fault| &*fault.message), Some("the disk is on fire"));
    assert_eq!(
        lister.list(false).await.unwrap().instances.iter().find(|i| i.id == id).unwrap().state,
        InstanceState::Errored
    );
}

#[tokio::test]
#[ignore = "needs a rig: set REVEILLE_RIG"]
async fn a_real_readers_changes_are_refused() {
    let _one = ONE_AT_A_TIME.lock().await;
    let Some(rig) = Rig::find("a_real_readers_changes_are_refused") else { return };
    let project = rig.connect_as("reader").await;
    let snapshot = Lister::new(project.clone(), rig.interest()).list(true).await.unwrap();
    assert_eq!(snapshot.groups.as_ref().map(Vec::len), Some(1), "reading needs no more");
    let routes = vec![rig.route(9, 50)];
    let outcome =
        project.perform(&Call::AddRoutes(AddRoutes { cloud: os(), router: rig.router(), routes })).await;
    assert!(matches!(outcome, Outcome::Denied { .. }), "{outcome}");
    let nudge =
        Call::NudgeGroup(NudgeGroup { cloud: os(), group: rig.group(), mark: "reveille-nudge int-8".into() });
    let outcome = project.perform(&nudge).await;
    assert!(matches!(outcome, Outcome::Denied { .. }), "{outcome}");
}

#[tokio::test]
#[ignore = "needs a rig: set REVEILLE_RIG"]
async fn real_faults_are_told_as_what_they_are() {
    let _one = ONE_AT_A_TIME.lock().await;
    let Some(mut rig) = Rig::find("real_faults_are_told_as_what_they_are") else { return };
    rig.create(&["oa-7"]);
    let project = rig.connect().await;
    let mut lister = Lister::new(project.clone(), rig.interest());
    let id = named(&lister.list(true).await.unwrap(), "oa-7").id.clone();
    for (fault, kind, says) in [
        (vec!["nova-429", "1", "7"], ReadErrorKind::Throttled, "429"),
        (vec!["neutron-429", "1", "7"], ReadErrorKind::Throttled, "429"),
        (vec!["nova-500", "1"], ReadErrorKind::Unavailable, "500"),
        (vec!["nova-cut", "1"], ReadErrorKind::Unavailable, "the connection broke"),
        (vec!["nova-kill"], ReadErrorKind::Unavailable, ""),
        (vec!["neutron-kill"], ReadErrorKind::Unavailable, ""),
    ] {
        rig.fault(&fault);
        let error = lister.list(true).await.unwrap_err();
        assert_eq!(error.kind, kind, "{fault:?}: {error}");
        assert!(error.text.contains(says), "{fault:?}: {error}");
        if kind == ReadErrorKind::Throttled {
            assert_eq!(error.retry_after, Some(Span::from_s(7)), "{error}");
        }
        rig.lift(&fault[..1]);
    }
    // Both services refuse the token: one login, and the listing stands.
    let logins = project.traffic().logins;
    rig.fault(&["token-expired"]);
    assert!(lister.list(true).await.unwrap().instances.iter().any(|instance| instance.id == id));
    assert_eq!(project.traffic().logins, logins + 1);
    // Refused, and no new one to be had: that is Keystone's trouble, not the credentials'.
    rig.fault(&["token-expired"]);
    rig.fault(&["keystone-503", "1"]);
    let error = lister.list(true).await.unwrap_err();
    assert_eq!(error.kind, ReadErrorKind::Unavailable, "{error}");
    rig.run(&["fault", "--clear"]);
    tokio::time::sleep(Duration::from_secs(4)).await;
    lister.list(true).await.unwrap();
    // Neutron carries the write out and its answer is lost: the outcome is unknown.
    rig.fault(&["neutron-timeout-after-effect", "1"]);
    let bare = port(&project, &id).await;
    let call = Call::AddPortPairs(AddPortPairs {
        cloud: os(),
        port: bare.id.clone(),
        pairs: vec!["198.19.78.0/24".parse().unwrap()],
        if_revision: bare.revision,
        instance: id.clone(),
        owned: rig.owned(),
    });
    let outcome = project.perform(&call).await;
    assert!(matches!(outcome, Outcome::Unknown { .. }), "{outcome}");
    assert_eq!(port(&project, &id).await.pairs.len(), 1, "it did happen");
}
