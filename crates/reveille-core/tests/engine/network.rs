//! Groups and rules: put once, read back, backed off when they do not stick.

use reveille_core::effect::Call;
use reveille_core::model::incident::FaultKind;
use reveille_core::model::network::{Route, Router};
use reveille_core::model::time::Span;

use super::fixture::{Field, roster};

#[test]
fn a_lost_group_is_put_back_and_read_back() {
    let mut field = Field::new(roster()).populate(5);
    field.run(Span::from_min(2));
    field.ports.get_mut("i001").unwrap().groups = Box::new([]);
    field.run(Span::from_min(2));
    assert!(matches!(field.calls[..], [Call::SetPortGroups { if_revision: 1, .. }]), "{:?}", field.calls);
    assert!(field.case("i001", FaultKind::GroupMissing).is_none(), "mended and closed");
    let closed = field.state.closed().last().expect("one is closed");
    assert_eq!(closed.verdict.name(), "mended");
}

#[test]
fn a_listing_that_is_quicker_than_the_fresh_read_does_not_make_a_repair_a_recovery() {
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

#[test]
fn a_group_that_does_not_stick_is_backed_off_and_given_up_with_an_incident() {
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
        [Call::AddRules { rules, .. }] => assert_eq!(rules.len(), 2),
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
