//! Nodes that carry a machine's identity and are not linked to it, machines that are older than the listing that first
//! shows them, and Nodes that a person cordons and deletes.
//!
//! A kubelet that starts with the name of an existing Node takes that object over: it writes its own system UUID, boot id
//! and addresses into the status (pkg/kubelet/kubelet_node_status.go, tryRegisterWithAPIServer), and `spec.providerID` stays
//! as it is, because it may change from "" only (pkg/apis/core/validation, ValidateNodeUpdate).

use reveille_core::effect::Call;
use reveille_core::model::evidence::Evidence;
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::InstanceState;
use reveille_core::model::node::{Node, Provider, Ready};
use reveille_core::model::time::Span;

use super::fixture::{Field, node, roster};

const ADDRESS: &str = "10.8.0.77";

/// A machine that was made while we watch, and the Node `w-1` that its kubelet took over from an instance that is gone.
fn adopted(ready: Ready, identity: impl FnOnce(&mut Node)) -> Field {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(2));
    field.add_machine("new", false);
    field.instances.get_mut("new").unwrap().addresses = Box::new([ADDRESS.parse().unwrap()]);
    let mut taken = node("new", ready);
    taken.name = "w-1".into();
    taken.provider = Provider::Instance("gone".into());
    identity(&mut taken);
    field.nodes.insert("w-1".into(), taken);
    field
}

/// Nothing that can hurt is done to it in three hours, and it is never said that it has not joined.
fn is_left_alone(mut field: Field) {
    for _ in 0..36 {
        field.run(Span::from_min(5));
        assert!(field.case("new", FaultKind::NeverJoined).is_none(), "it serves as w-1");
        assert_eq!(field.destructive_calls(), 0, "{:?}", field.calls);
    }
    let case = field.case("new", FaultKind::Duplicate).expect("its Node names another instance");
    let finding = &case.incident.findings[0];
    assert_eq!(finding.cause.label(), "duplicate-machine-id");
    let names_node = |line: &Evidence| {
        line.fact.to_string().contains("node w-1") || line.fact.to_string().contains("node node-new.prod")
    };
    assert!(finding.evidence.iter().any(names_node), "{finding:?}");
}

#[test]
fn ready_node_with_system_uuid_protects_machine() {
    is_left_alone(adopted(Ready::True, |node| node.system_uuid = Some("new".into())));
}

#[test]
fn ready_node_with_address_protects_machine() {
    is_left_alone(adopted(Ready::True, |node| node.addresses = Box::new([ADDRESS.parse().unwrap()])));
}

#[test]
fn ready_node_with_qualified_name_protects_machine() {
    is_left_alone(adopted(Ready::True, |node| node.name = "node-new.prod.example.org".into()));
}

#[test]
fn silent_node_with_system_uuid_protects_machine() {
    is_left_alone(adopted(Ready::Unknown, |node| node.system_uuid = Some("new".into())));
}

#[test]
fn stopped_machine_with_ready_adopted_node_is_not_started() {
    let mut field = adopted(Ready::True, |node| node.system_uuid = Some("new".into()));
    field.instances.get_mut("new").unwrap().state = InstanceState::Stopped;
    field.run(Span::from_min(60));
    assert!(field.calls.is_empty(), "{:?}", field.calls);
    let held = field.held("new", FaultKind::Stopped);
    assert!(held.contains("Node w-1") && held.contains("system UUID"), "{held}");
}

/// The Node that was taken over names an instance that we knew, and that is gone: it is no left-over.
#[test]
fn node_of_another_machine_is_not_cleaned_up() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(2));
    field.delete_machine("i004");
    field.add_machine("new", false);
    field.nodes.get_mut("i004").unwrap().system_uuid = Some("new".into());
    field.run(Span::from_min(5));
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(60));
    assert!(field.calls.is_empty(), "{:?}", field.calls);
}

/// Two projects may use one address twice: the Node has it from its own instance, and says nothing of the other.
#[test]
fn address_of_its_own_instance_contests_no_other_machine() {
    let mut field = Field::new(roster()).populate(10);
    let address = Box::new([ADDRESS.parse().unwrap()]);
    field.instances.get_mut("i001").unwrap().addresses = address.clone();
    field.nodes.get_mut("i001").unwrap().addresses = address.clone();
    field.run(Span::from_min(2));
    field.add_machine("new", false);
    field.instances.get_mut("new").unwrap().addresses = address;
    field.run(Span::from_min(20));
    assert!(matches!(field.calls[..], [Call::Reboot(_)]), "{:?}", field.calls);
}

/// When the Node that was taken over is deleted, its machine has joined once: it is asked to come back first.
#[test]
fn machine_of_a_deleted_adopted_node_has_joined() {
    let mut field = adopted(Ready::True, |node| node.system_uuid = Some("new".into()));
    field.run(Span::from_min(5));
    field.nodes.remove("w-1");
    field.run(Span::from_min(3));
    assert!(field.case("new", FaultKind::Vanished).is_some(), "it served as w-1");
    assert!(field.case("new", FaultKind::NeverJoined).is_none());
}

/// A Node that names `i004`, and is written by the kubelet of `new`.
fn with_a_node_of_two() -> Field {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(2));
    field.add_machine("new", false);
    field.nodes.get_mut("i004").unwrap().system_uuid = Some("new".into());
    field
}

/// Two machines of one name take turns at one Node: that it is Ready says nothing of the one that it names.
#[test]
fn node_that_another_listed_machine_writes_answers_for_neither() {
    let mut field = with_a_node_of_two();
    field.run(Span::from_min(60));
    for (id, text) in [("i004", "system UUID of new"), ("new", "stands for i004")] {
        let case = field
            .case(id, FaultKind::Duplicate)
            .unwrap_or_else(|| panic!("{id}: {:?}", field.machine_state(id)));
        let evidence = case.incident.findings[0].evidence[0].fact.to_string();
        assert!(evidence.contains(text), "{evidence}");
    }
    assert!(field.calls.is_empty(), "{:?}", field.calls);
    field.nodes.get_mut("i004").unwrap().system_uuid = Some("i004".into());
    field.run(Span::from_min(5));
    assert!(field.case("i004", FaultKind::Duplicate).is_none(), "its own kubelet writes it again");
}

/// The same Node, and its writer's kubelet hangs: the machine that it names was rebooted for that (seed 3701832).
#[test]
fn silent_node_written_by_namesake_is_no_fault_of_named_machine() {
    let mut field = with_a_node_of_two();
    field.run(Span::from_min(5));
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(60));
    assert!(field.calls.is_empty(), "{:?}", field.calls);
    assert!(field.case("i004", FaultKind::Duplicate).is_some(), "{:?}", field.machine_state("i004"));
}

/// A Node was removed, and a machine of the same name registered as it: a reboot of the first would have both write it.
#[test]
fn machine_whose_node_belongs_to_a_namesake_is_not_rebooted() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(2));
    field.nodes.remove("i004");
    field.run(Span::from_min(1));
    field.add_machine("new", false);
    field.instances.get_mut("new").unwrap().name = "node-i004".into();
    let mut taken = node("new", Ready::True);
    taken.name = "node-i004".into();
    field.nodes.insert("i004".into(), taken);
    field.run(Span::from_min(60));
    assert!(field.calls.is_empty(), "{:?}", field.calls);
    assert!(field.case("i004", FaultKind::Duplicate).is_some(), "{:?}", field.machine_state("i004"));
}

/// Six new machines serve under Nodes that they took over, and a person needs days to tell them from the old ones: they answer,
/// and one that does not is repaired meanwhile.
#[test]
fn machines_that_serve_under_adopted_nodes_freeze_nothing() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(2));
    for number in 1..=6 {
        let id = format!("n{number}");
        field.add_machine(&id, false);
        let mut taken = node(&id, Ready::True);
        taken.name = format!("w-{number}").as_str().into();
        taken.provider = Provider::Instance(format!("gone-{number}").as_str().into());
        taken.system_uuid = Some(id.as_str().into());
        field.nodes.insert(format!("w-{number}"), taken);
    }
    field.run(Span::from_min(5));
    assert!(field.case("n1", FaultKind::Duplicate).is_some(), "a person is told");
    field.nodes.get_mut("i007").unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(60));
    assert!(field.destructive_calls() > 0, "{}", field.held("i007", FaultKind::NotReady));
}
