//! Groups and rules: put once, read back, backed off when they do not stick.

use std::sync::Arc;

use reveille_core::decide::decide;
use reveille_core::effect::{Call, Outcome};
use reveille_core::event::{CloudFact, CloudSnapshot, Event};
use reveille_core::model::hosting::{GroupPhase, Hosting, Notice, NoticeKind, OwnerGroup};
use reveille_core::model::incident::FaultKind;
use reveille_core::model::network::{Route, Router};
use reveille_core::model::node::Ready;
use reveille_core::model::time::Span;
use reveille_core::remedies::{AddRules, SetPortGroups};

use super::fixture::{CLOUD, Field, roster};
use super::steps::{made, min, next, set, without_rejoin};

#[test]
fn a_lost_group_is_put_back_and_read_back() {
    let mut field = Field::new(roster()).populate(5);
    field.run(Span::from_min(2));
    field.ports.get_mut("i001").unwrap().groups = Box::new([]);
    field.run(Span::from_min(2));
    assert!(
        matches!(field.calls[..], [Call::SetPortGroups(SetPortGroups { if_revision: 1, .. })]),
        "{:?}",
        field.calls
    );
    assert!(field.case("i001", FaultKind::GroupMissing).is_none(), "mended and closed");
    let closed = field.state.closed().last().expect("one is closed");
    assert_eq!(closed.verdict.name(), "mended");
}

#[test]
fn listing_ahead_of_fresh_read_does_not_make_repair_a_recovery() {
    let mut patient = roster();
    patient.timing.verify_within = Span::from_min(10);
    let mut field = Field::new(patient).populate(5);
    field.run(Span::from_min(2));
    field.ports.get_mut("i001").unwrap().groups = Box::new([]);
    field.unanswered = Some(Vec::new());
    field.run(Span::from_min(4));
    assert_eq!(field.calls.len(), 1, "the listings show its effect: {:?}", field.calls);
    assert!(field.case("i001", FaultKind::GroupMissing).is_some(), "the read of our own call is still out");
    field.answer_all();
    field.run(Span::from_min(2));
    let closed = field.state.closed().last().expect("one is closed");
    assert_eq!(closed.verdict.name(), "mended");
}

/// A fault is listed, mended and read back while a slow listing of before is still on its way. Says how many calls were made
/// before that one arrived, and how many in all.
fn calls_around_a_slow_listing(field: &mut Field, fault: impl Fn(&mut Field)) -> (usize, usize) {
    field.run(Span::from_min(2));
    fault(field);
    let (slow, begun) = (field.snapshot(), field.now);
    field.now = field.now + Span::from_s(5);
    field.list_cloud();
    let before = field.calls.len();
    field.now = field.now + Span::from_s(5);
    let fact = CloudFact::Snapshot { snapshot: Arc::new(slow), took: field.now.since(begun) };
    field.feed(Event::Cloud { cloud: CLOUD.into(), fact });
    // The next listing takes its time, too.
    for _ in 0..8 {
        field.now = field.now + Span::from_s(10);
        field.sync_nodes();
        field.feed(Event::Tick);
    }
    field.run(Span::from_min(2));
    (before, field.calls.len())
}

#[test]
fn listing_begun_before_a_fresh_read_does_not_override_it() {
    let lose_group = |field: &mut Field| field.ports.get_mut("i001").unwrap().groups = Box::new([]);
    let mut field = Field::new(roster()).populate(5);
    assert_eq!(calls_around_a_slow_listing(&mut field, lose_group), (1, 1), "{:?}", field.calls);

    let lose_rule = |field: &mut Field| drop(field.rules.pop());
    let mut field = Field::new(roster()).populate(5);
    assert_eq!(calls_around_a_slow_listing(&mut field, lose_rule), (1, 1), "{:?}", field.calls);

    let mut routed = roster();
    routed.network.router = Some((CLOUD.into(), "r-1".into()));
    let mut field = Field::new(routed).populate(5);
    field.routers = vec![Router { id: "r-1".into(), routes: Vec::new(), limit: None }];
    let astray = |field: &mut Field| {
        let route =
            Route { destination: "198.19.77.0/24".parse().unwrap(), next_hop: "10.8.0.250".parse().unwrap() };
        field.routers[0].routes.push(route);
        // A first listing finds no port for its next hop; the next one has to agree.
        field.list_cloud();
        field.now = field.now + Span::from_s(15);
    };
    assert_eq!(calls_around_a_slow_listing(&mut field, astray), (1, 1), "{:?}", field.calls);
}

#[test]
fn groups_that_were_not_read_are_as_before() {
    let mut field = Field::new(roster()).populate(5);
    field.run(Span::from_min(2));
    let snapshot = CloudSnapshot { groups: None, ..field.snapshot() };
    field.feed(Event::Cloud { cloud: CLOUD.into(), fact: CloudFact::read(snapshot) });
    assert_eq!(field.state.context().cases.len(), 0, "no rule is missing, and no group");
    field.rules.pop();
    let snapshot = CloudSnapshot { groups: None, ..field.snapshot() };
    field.feed(Event::Cloud { cloud: CLOUD.into(), fact: CloudFact::read(snapshot) });
    assert_eq!(field.calls.len(), 0, "no read has shown that it is lost");
    field.run(Span::from_min(2));
    assert!(matches!(field.calls[..], [Call::AddRules(_)]), "{:?}", field.calls);
}

#[test]
fn the_listing_after_a_fresh_read_is_believed_again() {
    let lose_group = |field: &mut Field| field.ports.get_mut("i001").unwrap().groups = Box::new([]);
    let mut field = Field::new(roster()).populate(5);
    assert_eq!(calls_around_a_slow_listing(&mut field, lose_group), (1, 1), "{:?}", field.calls);
    lose_group(&mut field);
    field.run(Span::from_min(15));
    assert_eq!(field.calls.len(), 2, "lost once more, mended once more: {:?}", field.calls);
}

#[test]
fn group_that_does_not_stick_is_given_up_after_four_tries() {
    let mut field = Field::new(roster()).populate(5);
    field.deaf = true;
    field.run(Span::from_min(2));
    field.ports.get_mut("i001").unwrap().groups = Box::new([]);
    field.run(Span::from_min(120));
    assert_eq!(field.calls.len(), 4, "four tries, then a person: {:?}", field.calls);
    let case = field.case("i001", FaultKind::GroupMissing).expect("still open");
    assert!(case.incident.given_up);
}

#[test]
fn missing_rules_are_added_once() {
    let mut field = Field::new(roster()).populate(5);
    field.run(Span::from_min(2));
    field.rules.retain(|rule| rule.id.as_str() == "rule-tcp");
    field.run(Span::from_min(5));
    match &field.calls[..] {
        [Call::AddRules(AddRules { rules, .. })] => assert_eq!(rules.len(), 2),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_full_router_is_neither_given_a_route_nor_nudged() {
    let route = |destination: &str| Route {
        destination: destination.parse().unwrap(),
        next_hop: "10.8.0.7".parse().unwrap(),
    };
    for (limit, expected) in [(1, 0), (2, 1)] {
        let mut wanted = roster();
        wanted.network.router = Some(("os".into(), "r-1".into()));
        let mut field = Field::new(wanted).populate(5);
        let node = field.nodes.get_mut("i001").unwrap();
        node.addresses = Box::new(["10.8.0.9".parse().unwrap()]);
        node.pod_ranges = Box::new(["198.19.7.0/24".parse().unwrap()]);
        let routes = vec![route("198.20.0.0/24")];
        field.routers = vec![Router { id: "r-1".into(), routes, limit: Some(limit) }];
        field.deaf = true;
        field.run(Span::from_min(4));
        assert!(field.case("i001", FaultKind::MissingRoute).is_some());
        assert_eq!(field.calls.len(), expected, "limit {limit}: {:?}", field.calls);
    }
}

/// The machine that is not Ready was repaired; else what comes next for it is told.
fn is_repaired(field: &Field, when: &str) {
    let next = field.case("i004", FaultKind::NotReady).map(|case| decide(&field.state.context(), case).next);
    assert!(field.destructive_calls() > 0, "{when}: {next:?}");
}

/// Port security is off on the machine's only port, as some networks are built: it serves so for months. Then its kubelet dies.
#[test]
fn machine_whose_port_takes_no_group_is_repaired_all_the_same() {
    for security in [true, false] {
        let mut field = Field::new(roster()).populate(10);
        let port = field.ports.get_mut("i004").unwrap();
        if !security {
            (port.security, port.groups) = (false, Box::new([]));
        }
        field.run(Span::from_min(24 * 60));
        field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
        field.run(Span::from_min(24 * 60));
        is_repaired(&field, &format!("security: {security}"));
    }
}

/// Its port holds as many address pairs as it may, so that its pod range finds no place there. Then its kubelet dies.
#[test]
fn machine_whose_port_is_full_of_pairs_is_repaired_all_the_same() {
    for pairs in [0, 10] {
        let mut wanted = roster();
        wanted.network.address_pairs = true;
        let mut field = Field::new(wanted).populate(10);
        let address = field.ports["i004"].addresses[0];
        let node = field.nodes.get_mut("i004").unwrap();
        node.addresses = Box::new([address]);
        if pairs > 0 {
            node.pod_ranges = Box::new(["198.19.4.0/24".parse().unwrap()]);
            let held = (0..pairs).map(|number| format!("172.16.{number}.0/24").parse().unwrap());
            field.ports.get_mut("i004").unwrap().pairs = held.collect();
        }
        field.run(Span::from_min(60));
        field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
        field.run(Span::from_min(24 * 60));
        is_repaired(&field, &format!("pairs: {pairs}"));
    }
}

/// The router is full, so that a machine's route finds no place. Then its kubelet dies.
#[test]
fn machine_whose_route_finds_no_place_is_repaired_all_the_same() {
    for full in [false, true] {
        let mut wanted = roster();
        wanted.network.router = Some((CLOUD.into(), "r-1".into()));
        let mut field = Field::new(wanted).populate(10);
        let hop = field.ports["i004"].addresses[0];
        let node = field.nodes.get_mut("i004").unwrap();
        (node.addresses, node.pod_ranges) = (Box::new([hop]), Box::new(["198.19.4.0/24".parse().unwrap()]));
        let routes = (0..4).map(|number| Route {
            destination: format!("172.16.{number}.0/24").parse().unwrap(),
            next_hop: hop,
        });
        let own = Route { destination: "198.19.4.0/24".parse().unwrap(), next_hop: hop };
        let routes = if full { routes.collect() } else { vec![own] };
        field.routers = vec![Router { id: "r-1".into(), routes, limit: Some(4) }];
        field.run(Span::from_min(60));
        field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
        field.run(Span::from_min(24 * 60));
        is_repaired(&field, &format!("full: {full}"));
    }
}

/// Its group keeps it apart, or its provider takes it back: from then on it is theirs, its groups and its agent too. What its
/// group brings into service needs its groups for that.
#[test]
fn machine_that_its_group_or_provider_has_in_hand_is_left_to_it() {
    let in_phase = |phase| {
        let group = OwnerGroup { name: "asg".into(), phase, word: phase.name().into(), protected: false };
        Hosting { group: Some(group), ..Hosting::default() }
    };
    let (kind, text) = (NoticeKind::Interruption, "marked-for-termination".into());
    let notices = vec![Notice { kind, text, not_before: None }];
    let interrupted = Hosting { spot: true, notices, ..Hosting::default() };
    let (apart, reserve) = (in_phase(GroupPhase::Apart), in_phase(GroupPhase::Reserve));
    for (hosting, is_left) in [
        (apart, true),
        (reserve, true),
        (interrupted, true),
        (in_phase(GroupPhase::Coming), false),
        (in_phase(GroupPhase::Kept), false),
    ] {
        let mut field = Field::new(roster()).populate(10).with_agents(&["i004"]);
        field.run(Span::from_min(20));
        field.instances.get_mut("i004").unwrap().hosting = Some(Arc::new(hosting.clone()));
        field.run(Span::from_min(5));
        field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
        field.ports.get_mut("i004").unwrap().groups = Box::new(["g-other".into()]);
        field.run(Span::from_min(10));
        let done: Vec<String> = field.calls.iter().map(ToString::to_string).collect();
        assert_eq!(done.len(), if is_left { 0 } else { 2 }, "{hosting:?}: {done:?}");
        if is_left {
            // One that is of no group any more was taken out of it by a person.
            let back = hosting.group.is_some().then(|| Arc::new(in_phase(GroupPhase::Kept)));
            field.instances.get_mut("i004").unwrap().hosting = back;
            field.run(Span::from_min(10));
            assert_eq!(field.calls.len(), 2, "{hosting:?} is over: {:?}", field.calls);
        }
    }
}

/// Port security is off, so that its port can carry no group, and the machine served so for two hours. Its kubelet dies, and just
/// after that the API server is away for a minute and a half, or we are restarted.
#[test]
fn service_without_group_still_counts_after_loss_of_sight() {
    for how in ["nothing", "blind", "restart", "rotated"] {
        let mut field = Field::new(roster()).populate(10);
        let port = field.ports.get_mut("i004").unwrap();
        (port.groups, port.security) = (Box::new([]), false);
        field.run(Span::from_min(120));
        field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
        field.run(Span::from_min(1));
        if how == "rotated" {
            field.records = field.state.checkpoint();
        }
        if how == "restart" || how == "rotated" {
            field = field.restarted(roster());
        }
        for _ in 0..if how == "blind" { 9 } else { 0 } {
            field.now = field.now + Span::from_s(10);
            field.list_cloud();
        }
        field.run(Span::from_min(240));
        is_repaired(&field, how);
    }
}

/// Ten machines, of which one lost its group and is away with it, until nothing more is tried for the group.
fn away_without_its_group() -> Field {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(2));
    field.deaf = true;
    field.ports.get_mut("i004").unwrap().groups = Box::new([]);
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(120));
    field
}

/// Its group slips off, and it is away with it, until nothing more is tried for the group. It is Ready for three minutes, and
/// away again (4303138): that it lacked its group long before says nothing of how long it served without one.
#[test]
fn machine_without_group_is_kept_after_a_moment_of_ready() {
    let mut field = away_without_its_group();
    let group = field.case("i004", FaultKind::GroupMissing).expect("its group is missing");
    assert!(group.incident.given_up, "{:?}", field.calls);
    field.nodes.get_mut("i004").unwrap().ready = Ready::True;
    field.run(Span::from_min(3));
    assert!(field.case("i004", FaultKind::NotReady).is_none(), "it was Ready");
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(120));
    assert!(field.case("i004", FaultKind::NotReady).is_some(), "and is not any more");
    assert_eq!(field.destructive_calls(), 0, "{:?}", field.calls);
}

/// Its group slips off, and it is away with it, until nothing more is tried for the group. Hours later its Node is deleted: the
/// new incident knows since when the machine has been away, also in a ledger that was rotated since (hunt, seed 4600008).
#[test]
fn away_machine_without_group_is_kept_when_its_node_is_deleted() {
    for how in ["nothing", "restart", "rotated"] {
        let mut field = away_without_its_group();
        field.nodes.remove("i004");
        field.sync_nodes();
        field.run(Span::from_min(2));
        assert!(field.case("i004", FaultKind::Vanished).is_some(), "{how}: it lost its Node");
        if how == "rotated" {
            field.records = field.state.checkpoint();
        }
        if how != "nothing" {
            field = field.restarted(roster());
            field.deaf = true;
        }
        field.run(Span::from_min(240));
        assert_eq!(field.destructive_calls(), 0, "{how}: {:?}", field.calls);
    }
}

/// A machine is away, our clock is set back by hours, perhaps while no process runs, and then the machine loses its group, which
/// we may not put back. It did not serve without the group; later processes know it, too (hunt, seed 5102007).
#[test]
fn away_machine_losing_group_after_clock_set_back_is_kept() {
    for how in ["nothing", "restart", "rotated", "set back between two processes", "the same, rotated"] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.now = field.now + min(150);
        field.cloud_behind = min(150);
        field.run(min(60));
        set(&mut field, "i004", Ready::Unknown);
        field.run(min(2));
        let last = field.now;
        field.now = field.now - min(150);
        field.cloud_behind = Span::ZERO;
        if how.contains("between") || how.contains("same") {
            field = next(field, without_rejoin(), last);
        }
        field.ports.get_mut("i004").unwrap().groups = Box::new([]);
        field.denial = Some(Outcome::Denied { text: "403: policy".into() });
        field.run(min(180));
        assert!(field.case("i004", FaultKind::GroupMissing).is_some(), "{how}: its group is missing");
        if how.ends_with("rotated") {
            field.records = field.state.checkpoint();
        }
        if how != "nothing" {
            let denial = field.denial.take();
            field = field.restarted(without_rejoin());
            field.denial = denial;
        }
        field.run(min(240));
        assert_eq!(field.destructive_calls(), 0, "{how}: {:?}", made(&field));
    }
}

/// A machine serves without its group for hours, which we may not put back, or cannot. Then its kubelet dies. One that lost its
/// group a moment before is another matter.
#[test]
fn machine_that_served_for_hours_without_group_is_rebooted() {
    let outcomes = [
        Outcome::Denied { text: "403: policy".into() },
        Outcome::Refused { text: "409".into() },
        Outcome::NotSent { text: "connection refused".into(), retry_after: None },
        Outcome::Failed { text: "503".into(), retry_after: None },
    ];
    for outcome in outcomes {
        for (served, repaired) in [(180, true), (5, false)] {
            let mut field = Field::new(without_rejoin()).populate(10);
            field.run(min(20));
            field.ports.get_mut("i004").unwrap().groups = Box::new([]);
            field.denial = Some(outcome.clone());
            field.run(min(served));
            set(&mut field, "i004", Ready::Unknown);
            field.run(min(60));
            let reboots = field.calls.iter().any(|call| matches!(call, Call::Reboot(_)));
            assert_eq!(reboots, repaired, "{outcome}, {served} min: {:?}", made(&field).last());
        }
    }
}
