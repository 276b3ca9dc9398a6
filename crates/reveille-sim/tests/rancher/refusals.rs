//! What stands against a repair, one by one; and that the invariant checker sees what it is there to see.

use reveille_core::model::id::{NodeName, NodeUid};
use reveille_core::model::roster::Limits;
use reveille_core::model::time::{Span, Time};
use reveille_rancher::model::{Condition, Kind, Node, Record, RecordName, Role};
use reveille_rancher::repair::invariant_checker::InvariantChecker;
use reveille_rancher::repair::{Act, Effect, End, Escalation, Event, Line, Outcome, Pace, Path, propose};

use reveille_sim::rancher::run::Run;
use reveille_sim::rancher::world::{ADDRESS, SUBJECT, World};

fn refused(path: Path, change: impl FnOnce(&mut World)) -> String {
    let mut world = World::of(path);
    change(&mut world);
    let before = (world.nodes.clone(), world.records.clone());
    let against = propose(&world.order, &world.observation()).against.join("; ");
    let run = Run::calm(world);
    if !against.is_empty() {
        assert!(
            matches!(&run.ended, Some(End::Stopped { changed: false, .. })),
            "{against}: {}",
            run.story()
        );
        assert_eq!((run.world.nodes, run.world.records), before, "{against}");
    }
    against
}

/// Another Node, with a record of its own, has the subject's address: a machine that was renamed, or an address given again.
fn shares_its_address(world: &mut World) {
    let like = world.subject().unwrap().clone();
    let (name, uid) = (NodeName::from("w-9"), NodeUid::from("uid-w-9"));
    world.nodes.insert(name.clone(), Node { name: name.clone(), uid, ..like });
    let like = world.its_records()[0].clone();
    let record = Record {
        name: RecordName("machine-x9999".to_owned()),
        uid: "uid-machine-x9999".to_owned(),
        node_label: Some(name.clone()),
        node_name: Some(name),
        requested_hostname: "w-9".to_owned(),
        ..like
    };
    world.records.insert(record.name.clone(), record);
}

#[test]
fn record_of_a_live_node_stays_when_its_address_was_reused() {
    let mut world = World::of(Path::Evict);
    let node_uid = world.subject().unwrap().uid.as_str().to_owned();
    shares_its_address(&mut world);
    world.nodes.remove(&NodeName::from(SUBJECT));
    let begun = Line::Begun {
        at_ms: 0,
        order: world.order.clone(),
        node_uid: node_uid.clone(),
        ips: [ADDRESS.to_owned()].into(),
        roles: [Role::Worker].into(),
    };
    let intent = Line::Intent { number: 1, at_ms: 0, what: Act::DeleteNode { uid: node_uid } };
    let journal = vec![begun, intent, Line::Ended { number: 1, outcome: Outcome::Accepted }];
    let mut now = Time::from_ms(60_000);
    let (mut escalation, _) = Escalation::begin(world.order.clone(), Pace::default(), journal, now);
    let mut done = Vec::new();
    for look in 1..10 {
        done.extend(escalation.step(now, Event::Looked { look, seen: Box::new(Ok(world.observation())) }));
        now = now + Span::from_s(10);
        done.extend(escalation.step(now, Event::Tick));
    }
    let stopped = done.iter().find_map(|effect| match effect {
        Effect::End(End::Stopped { why, .. }) => Some(why.as_str()),
        _ => None,
    });
    assert!(stopped.is_some_and(|why| why.contains("is of the Node w-9")), "{done:?}");
    assert!(
        !done.iter().any(|effect| matches!(effect, Effect::Record { .. } | Effect::Do { .. })),
        "{done:?}"
    );
}

#[test]
fn more_silent_nodes_than_tolerated_block_every_repair() {
    let silent = |count: usize| {
        let mut world = World::of(Path::Evict);
        world.nodes.values_mut().take(count).for_each(|node| node.ready = "Unknown".to_owned());
        let mut observation = world.observation();
        observation.freeze(&world.order, &Limits::default());
        observation.hands_off
    };
    assert_eq!((silent(0), silent(1)), (None, None), "one of two is tolerated");
    assert!(silent(2).is_some_and(|why| why.contains("2 of 2 other Nodes are not Ready")));
}

/// Waiting does not remove a disruption budget: a person removes it, and starts the repair again.
#[test]
fn expired_drain_gets_its_time_again_when_the_operator_retries() {
    let mut world = World::of(Path::Evict);
    let node = world.nodes.get_mut(&NodeName::from(SUBJECT)).unwrap();
    node.unschedulable = true;
    let begun = Line::Begun {
        at_ms: 0,
        order: world.order.clone(),
        node_uid: node.uid.as_str().to_owned(),
        ips: [ADDRESS.to_owned()].into(),
        roles: [Role::Worker].into(),
    };
    let failed = || Outcome::Failed { why: "429".to_owned() };
    let journal = vec![
        begun,
        Line::Intent { number: 1, at_ms: 0, what: Act::Save { records: Vec::new() } },
        Line::Ended { number: 1, outcome: Outcome::Accepted },
        Line::Intent { number: 2, at_ms: 0, what: Act::Evict { pods: Vec::new() } },
        Line::Ended { number: 2, outcome: failed() },
    ];
    let mut now = Time::from_ms(0) + Span::from_min(60);
    let (mut escalation, _) = Escalation::begin(world.order.clone(), Pace::default(), journal, now);
    let mut done = Vec::new();
    for look in 1..6 {
        done.extend(escalation.step(now, Event::Looked { look, seen: Box::new(Ok(world.observation())) }));
        now = now + Span::from_s(10);
        done.extend(escalation.step(now, Event::Tick));
    }
    let asks = |effect: &Effect| {
        matches!(effect, Effect::Record { what: Line::Intent { what: Act::Evict { .. }, .. }, .. })
    };
    assert!(done.iter().any(asks), "{done:?}");
}

#[test]
fn nothing_is_begun_where_a_safeguard_of_an_eviction_is_not_met() {
    type Change = Box<dyn Fn(&mut World)>;
    let busy = || Condition { status: "Unknown".to_owned(), ..Condition::default() };
    let table: Vec<(Change, &str)> = vec![
        (Box::new(|_| {}), ""),
        (Box::new(move |w| drop(w.cluster.conditions.insert("Provisioned".to_owned(), busy()))), "busy"),
        (Box::new(|w| w.cluster.kind = Kind::Mirrored), "mirror Nodes"),
        (Box::new(|w| w.snapshot_age = None), "no complete snapshot"),
        (Box::new(|w| w.snapshot_age = Some(Span::from_min(24 * 60 + 1))), "older than a day"),
        (Box::new(|w| w.hands_off = Some("paused by ann".to_owned())), "paused by ann"),
        (Box::new(|w| drop(w.records.pop_first())), ""),
        (
            Box::new(|w| w.nodes.values_mut().for_each(|node| node.ready = "Unknown".to_owned())),
            "last worker",
        ),
        (Box::new(|w| w.records.values_mut().for_each(|record| record.rke_node = None)), "last worker"),
        (Box::new(|w| *w = w.clone().with_etcd()), ""),
        (
            Box::new(|w| {
                *w = w.clone().with_etcd();
                w.members = None;
            }),
            "could not be read",
        ),
        (
            Box::new(|w| {
                *w = w.clone().with_etcd();
                w.members.as_mut().unwrap()[0].healthy = false;
            }),
            "not well",
        ),
        (
            Box::new(|w| {
                *w = w.clone().with_etcd();
                w.members.as_mut().unwrap().remove(0);
            }),
            "fewer than 2",
        ),
        (
            Box::new(|w| {
                *w = w.clone().with_etcd();
                let member = &mut w.members.as_mut().unwrap()[2];
                (member.name, member.hosts) = ("cp-x".to_owned(), ["192.168.7.3".to_owned()].into());
            }),
            "no Node's: cp-x",
        ),
        (
            Box::new(|w| {
                *w = w.clone().with_etcd();
                w.members.as_mut().unwrap()[1].hosts = ["10.0.0.3".to_owned()].into();
            }),
            "several members of etcd",
        ),
        (
            Box::new(|w| {
                w.records.values_mut().next_back().unwrap().roles.insert(Role::Etcd);
            }),
            "has no role of etcd",
        ),
    ];
    for (index, (change, expected)) in table.into_iter().enumerate() {
        let against = refused(Path::Evict, change);
        assert!(
            against.contains(expected) && expected.is_empty() == against.is_empty(),
            "{index}: {expected} in {against:?}"
        );
    }
}

#[test]
fn eviction_that_would_cost_data_or_another_machine_is_refused() {
    type Change = Box<dyn Fn(&mut World)>;
    let table: Vec<(Change, &str)> = vec![
        (
            Box::new(|w| {
                w.pods.as_mut().unwrap()[1].kind = reveille_rancher::repair::observation::PodKind::LocalData
            }),
            "--accept-local-data-loss",
        ),
        (
            Box::new(|w| {
                w.pods.as_mut().unwrap()[1].kind = reveille_rancher::repair::observation::PodKind::Unmanaged
            }),
            "no controller would create",
        ),
        (
            Box::new(|w| {
                let record = w.records.values_mut().next_back().unwrap();
                record.addresses[0].address = "10.0.0.9".to_owned();
            }),
            "other addresses",
        ),
        (Box::new(|w| w.volumes = vec!["shop/data-db-0 (pv-1)".to_owned()]), "volumes are on it alone"),
        (Box::new(shares_its_address), "is of the Node w-9, which is there"),
        // A control plane that lost its label is one all the same.
        (
            Box::new(|w| {
                w.records.values_mut().next_back().unwrap().roles.insert(Role::ControlPlane);
            }),
            "last controlplane",
        ),
    ];
    for (change, expected) in table {
        let against = refused(Path::Evict, change);
        assert!(against.contains(expected), "{expected} in {against:?}");
    }
}

#[test]
fn edit_that_contradicts_the_machines_facts_is_not_written() {
    type Change = Box<dyn Fn(&mut World)>;
    let subject = |w: &mut World| w.records.values_mut().next_back().unwrap().name.clone();
    let table: Vec<(Change, &str)> = vec![
        (Box::new(|_| {}), ""),
        (Box::new(|w| drop(w.pods.as_mut().unwrap().pop())), "safer way"),
        (
            Box::new(move |w| {
                let name = subject(w);
                w.records.get_mut(&name).unwrap().roles.insert(Role::Etcd);
            }),
            "role labels",
        ),
        (Box::new(|w| w.cluster.applied_hosts = None), "no applied specification"),
        (Box::new(|w| drop(w.cluster.applied_hosts.as_mut().unwrap().pop())), "more than add this host"),
        (
            Box::new(|w| {
                let host = w.cluster.applied_hosts.as_ref().unwrap()[0].clone();
                let roles = [Role::Etcd].into();
                let was = reveille_rancher::model::Host { address: "10.0.0.3".to_owned(), roles, ..host };
                w.cluster.applied_hosts.as_mut().unwrap().push(was);
            }),
            "member of etcd",
        ),
    ];
    for (index, (change, expected)) in table.into_iter().enumerate() {
        let against = refused(Path::Mend, change);
        assert!(
            against.contains(expected) && expected.is_empty() == against.is_empty(),
            "{index}: {expected} in {against:?}"
        );
    }
}

#[test]
fn etcd_member_goes_before_its_node_and_node_before_its_record() {
    let run = Run::calm(World::of(Path::Evict).with_etcd());
    let story = run.story();
    let at = |text: &str| story.find(text).unwrap_or_else(|| panic!("{text}\n{story}"));
    assert!(at("remove the etcd member 3") < at("delete the Node"));
    let records = story.find("delete the record").unwrap_or(story.len());
    assert!(at("delete the Node") < records);
    let wait = at("waits for a second look that its member of etcd stays away");
    assert!(at("remove the etcd member 3") < wait && wait < at("delete the Node"));
}

#[test]
fn returning_member_or_unreadable_etcd_keeps_the_node() {
    let mut world = World::of(Path::Evict).with_etcd();
    world.member_returns = true;
    let run = Run::calm(world);
    let Some(End::Stopped { why, .. }) = &run.ended else { panic!("{}", run.story()) };
    assert!(why.contains("tried 3 times"), "{why}");
    assert!(run.world.subject().is_some(), "{}", run.story());
    let mut world = World::of(Path::Evict).with_etcd();
    world.etcd_falls_silent = true;
    let run = Run::calm(world);
    let Some(End::Stopped { why, .. }) = &run.ended else { panic!("{}", run.story()) };
    assert!(why.contains("could not be read"), "{why}");
    assert!(run.world.subject().is_some(), "{}", run.story());
}

#[test]
fn checker_reports_record_before_node_and_call_without_intent() {
    let world = World::of(Path::Evict);
    let now = Time::from_ms(0);
    let mut checker = InvariantChecker::new(world.order.clone(), Pace::default());
    let record = world.its_records()[0];
    let act = Act::DeleteRecord { record: record.name.clone(), uid: record.uid.clone() };
    checker.hear(now, &Event::Looked { look: 1, seen: Box::new(Ok(world.observation())) });
    let said = checker.judge(now, &Effect::Do { number: 1, act: act.clone() }).join("; ");
    assert!(said.contains("not proved gone") && said.contains("not durable"), "{said}");
    let line = Line::Intent { number: 2, at_ms: 0, what: act.clone() };
    assert!(checker.judge(now, &Effect::Record { line: 1, what: line }).is_empty());
    checker.hear(now, &Event::Recorded { line: 1 });
    let said = checker.judge(now, &Effect::Do { number: 2, act }).join("; ");
    assert!(said.contains("not proved gone") && !said.contains("not durable"), "{said}");
}
