//! Groups and rules: put once, read back, backed off when they do not stick.

use reveille_core::effect::Call;
use reveille_core::model::incident::FaultKind;
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
