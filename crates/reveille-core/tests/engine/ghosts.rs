//! Instances that went while no process was looking: only the ledger knew them, and a Node may be left of them.

use reveille_core::effect::Call;
use reveille_core::event::{Answer, CloudFact, CloudSnapshot, Event};
use reveille_core::model::incident::{FaultKind, IncidentKey, MachineKey, Subject};
use reveille_core::model::instance::{Instance, InstanceState};
use reveille_core::model::node::{Node, Ready};
use reveille_core::model::time::Span;
use reveille_core::record::Record;
use reveille_core::remedies::DeleteNode;

use super::fixture::{CLOUD, Field, instance, node, roster};
use super::restart::{restarted, restarted_with};
use super::steps::min;

/// A fleet whose machine `i004` went while Reveille was down, as its last process left the ledger.
fn went_unseen(ready: Ready, change: impl FnOnce(&mut Field)) -> Field {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(2));
    field.delete_machine("i004");
    field.nodes.get_mut("i004").unwrap().ready = ready;
    change(&mut field);
    restarted(field)
}

#[test]
fn node_of_unseen_gone_instance_is_deleted_for_its_pool() {
    let mut field = went_unseen(Ready::Unknown, |_| {});
    field.run(Span::from_min(15));
    assert!(matches!(field.calls[..], [Call::DeleteNode(_)]), "{:?}", field.calls);
    assert!(
        field.records.iter().any(
            |record| matches!(record, Record::Opened { key, pool: Some(_), .. } if key.kind == FaultKind::Ghost)
        ),
        "the deletion is charged to a pool"
    );
}

#[test]
fn a_ready_node_of_an_instance_that_went_unseen_stays() {
    let mut field = went_unseen(Ready::True, |_| {});
    field.run(Span::from_min(15));
    assert!(field.calls.is_empty(), "{:?}", field.calls);
}

#[test]
fn node_without_pool_in_ledger_is_left_to_an_operator() {
    let mut field = went_unseen(Ready::Unknown, |field| {
        for record in &mut field.records {
            if let Record::Joined { machines, .. } = record {
                machines.iter_mut().for_each(|one| one.pool = None);
            }
        }
    });
    field.run(Span::from_min(15));
    assert!(field.calls.is_empty(), "{:?}", field.calls);
}

/// Its name was given to a new machine, whose node has it now: that one is not touched.
#[test]
fn node_now_naming_another_instance_is_not_deleted() {
    let mut field = went_unseen(Ready::Unknown, |field| {
        let node = field.nodes.get_mut("i004").unwrap();
        node.provider = reveille_core::model::node::Provider::Unset;
    });
    field.run(Span::from_min(15));
    assert!(!field.calls.iter().any(|call| matches!(call, Call::DeleteNode(_))), "{:?}", field.calls);
}

/// Parts of a cloud may not know a young one yet, and after a restart everybody is young; one that says "ended" knows it.
#[test]
fn node_of_instance_reported_ended_is_ghost_without_settling() {
    let mut settling = roster();
    settling.settles.insert(CLOUD.into(), Span::from_min(5));
    let mut field = Field::new(settling.clone()).populate(10);
    field.run(Span::from_min(2));
    field.instances.get_mut("i004").unwrap().state = InstanceState::Gone;
    field.ports.remove("i004");
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    let mut field = restarted_with(settling, field);
    field.run(Span::from_min(1));
    assert!(field.case("i004", FaultKind::Ghost).is_some(), "two answers say that it has ended");
}

/// The checkpoint of a rotated ledger keeps whose it was, also between two denials.
#[test]
fn a_second_restart_between_two_denials_changes_nothing() {
    let mut field = went_unseen(Ready::Unknown, |_| {});
    field.run(Span::from_s(2));
    field.records = field.state.checkpoint();
    let mut field = restarted(field);
    field.run(Span::from_min(15));
    assert!(matches!(field.calls[..], [Call::DeleteNode(_)]), "{:?}", field.calls);
}

/// The answer says what was so when it was asked for, and that may have been a cell that was down.
#[test]
fn late_denial_is_repeated_before_node_deletion() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(2));
    field.delete_machine("i004");
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    while field.case("i004", FaultKind::Ghost).is_none() {
        field.run(Span::from_s(10));
    }
    field.unanswered = Some(Vec::new());
    field.run(Span::from_min(2));
    let late = field.unanswered.replace(Vec::new()).expect("reads wait");
    assert!(!late.is_empty(), "it is asked for once more");
    for (look, _) in late {
        field.feed(Event::Looked { look, answer: Ok(Answer::Instance(None)) });
    }
    assert!(field.calls.is_empty(), "{:?}", field.calls);
    field.answer_all();
    field.run(Span::from_min(1));
    assert!(matches!(field.calls[..], [Call::DeleteNode(_)]), "{:?}", field.calls);
}

/// A second node named an instance that is gone, and a new machine has the name that it had joined under: the new one's lease
/// says nothing of what is left.
#[test]
fn lease_of_a_namesake_keeps_no_node_of_a_gone_machine() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(2));
    let mut twin = node("i004", Ready::Unknown);
    (twin.name, twin.uid) = ("node-i004-old".into(), "uid-old".into());
    field.nodes.insert("twin".into(), twin);
    field.run(Span::from_min(1));
    // It is gone, its own node as well, and its name is given again.
    field.delete_machine("i004");
    field.nodes.remove("i004");
    field.add_machine("i010", true);
    field.instances.get_mut("i010").unwrap().name = "node-i004".into();
    field.nodes.get_mut("i010").unwrap().name = "node-i004".into();
    field.run(Span::from_min(15));
    let left = |call: &Call| matches!(call, Call::DeleteNode(DeleteNode { name, .. }) if name.as_str() == "node-i004-old");
    assert!(
        matches!(&field.calls[..], [call] if left(call)),
        "{:?} {}",
        field.calls,
        field.held("i004", FaultKind::Ghost)
    );
}

/// A provider ID says nothing of the project. The other one's instance, which its owner deletes and which stays so, is denied
/// here and found there: no ghost (seed 3200250).
#[test]
fn node_of_an_instance_in_another_project_is_no_ghost() {
    let mut wanted = roster();
    wanted.clouds.push("os-b".into());
    let mut field = Field::new(wanted).populate(10);
    let stuck = Instance { state: InstanceState::Deleting, ..instance("b001") };
    field.elsewhere.insert("b001".to_owned(), stuck);
    field.nodes.insert("b001".to_owned(), node("b001", Ready::Unknown));
    let other = || CloudFact::read(CloudSnapshot { groups: Some(Vec::new()), ..CloudSnapshot::default() });
    for _ in 0..240 {
        field.feed(Event::Cloud { cloud: "os-b".into(), fact: other() });
        field.run(Span::from_s(30));
    }
    let of_node = |key: &IncidentKey| key.subject == Subject::Machine(MachineKey::Node("node-b001".into()));
    assert!(!field.state.context().cases.keys().any(of_node));
    let opened = |record: &&Record| matches!(record, Record::Opened { key, .. } if of_node(key));
    assert_eq!(field.records.iter().filter(opened).count(), 0);
    // Denied there as well, it is one.
    field.elsewhere.clear();
    for _ in 0..480 {
        field.feed(Event::Cloud { cloud: "os-b".into(), fact: other() });
        field.run(Span::from_s(30));
    }
    assert!(field.state.context().cases.keys().any(of_node));
}

/// Half of the fleet is silent, and its cloud denies three of them for a while, as where a cell and a network are away together.
/// Each denial made the share that is away smaller, the freeze ended, and Nodes of machines that run were deleted.
#[test]
fn what_was_away_and_is_denied_now_ends_no_freeze() {
    let mut field = Field::new(roster()).populate(12);
    field.run(Span::from_min(5));
    let silent = ["i003", "i004", "i005", "i006", "i007"];
    for id in silent {
        field.nodes.get_mut(id).unwrap().ready = Ready::Unknown;
    }
    field.run(Span::from_min(3));
    let denied: Vec<Instance> = silent[..3].iter().filter_map(|id| field.instances.remove(*id)).collect();
    field.run(Span::from_min(12));
    assert!(field.case("i003", FaultKind::Ghost).is_some(), "both the list and the answer by id lack it");
    assert_eq!(field.calls, []);
    for instance in denied {
        field.instances.insert(instance.id.to_string(), instance);
    }
    for id in silent {
        field.nodes.get_mut(id).unwrap().ready = Ready::True;
    }
    field.run(Span::from_min(20));
    assert_eq!(field.calls, []);
}

/// The same, and they are really gone: their Nodes are cleaned up, half an hour later and two in an hour.
#[test]
fn freeze_by_what_is_gone_has_an_end() {
    let mut field = Field::new(roster()).populate(12);
    field.run(Span::from_min(5));
    let gone = ["i003", "i004", "i005", "i006", "i007"];
    for id in gone {
        field.nodes.get_mut(id).unwrap().ready = Ready::Unknown;
    }
    field.run(Span::from_min(3));
    for id in gone {
        field.delete_machine(id);
        field.nodes.get_mut(id).unwrap().ready = Ready::Unknown;
    }
    field.run(Span::from_min(25));
    assert_eq!(field.calls, []);
    // Half of four in an hour.
    field.run(Span::from_min(160));
    let cleaned = field.calls.iter().filter(|call| matches!(call, Call::DeleteNode(_))).count();
    assert_eq!((cleaned, field.calls.len()), (gone.len(), gone.len()), "{:?}", field.calls);
}

/// Another client scales 15 machines of 60 down and does not delete their Nodes. Then one machine fails.
#[test]
fn left_over_nodes_keep_no_machine_from_its_repair() {
    for ghosts in [2, 15] {
        let mut field = Field::new(roster()).populate(60);
        field.run(Span::from_min(20));
        for number in 0..ghosts {
            let id = format!("i{:03}", 20 + number);
            field.delete_machine(&id);
            field.nodes.get_mut(&id).unwrap().ready = Ready::Unknown;
        }
        field.run(Span::from_min(5));
        field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
        field.deaf = true;
        // Softly after ten minutes, and hard a quarter of an hour later.
        field.run(Span::from_min(30));
        let reboots = field.calls.iter().filter(|call| matches!(call, Call::Reboot(_))).count();
        assert_eq!(reboots, 2, "ghosts: {ghosts}: {:?}", field.calls);
    }
}

/// Marks, locks and second Nodes of a machine mean nothing once it is gone, and no other client comes back for its Nodes.
#[test]
fn left_over_nodes_are_cleaned_up_whatever_held_their_machine() {
    for how in ["an autoscaler's taint", "a lock", "a second Node"] {
        let mut field = Field::new(roster()).populate(12);
        field.run(Span::from_min(20));
        match how {
            "a lock" => field.instances.get_mut("i004").unwrap().locked = true,
            "a second Node" => drop(field.nodes.insert("twin".into(), twin())),
            _ => {
                let sign = Some("ToBeDeletedByClusterAutoscaler".into());
                field.nodes.get_mut("i004").unwrap().intent.leaving = sign;
            }
        }
        field.run(Span::from_min(10));
        field.delete_machine("i004");
        field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
        field.run(Span::from_min(60));
        let cleaned: Vec<String> = field.calls.iter().map(ToString::to_string).collect();
        let expected = match how {
            "a second Node" => {
                vec!["delete the Node object node-i004", "delete the Node object node-i004-old"]
            }
            _ => vec!["delete the Node object node-i004"],
        };
        assert_eq!(cleaned, expected, "{how}");
        assert!(field.case("i004", FaultKind::Ghost).is_none(), "{how}");
    }
}

/// Another Node of `i004`, which does not answer.
fn twin() -> Node {
    let mut twin = node("i004", Ready::Unknown);
    (twin.name, twin.uid) = ("node-i004-old".into(), "uid-old".into());
    twin
}

/// What a person wrote on the Node itself is about the Node, too: until it is taken off.
#[test]
fn left_over_node_that_a_person_paused_stays_for_as_long() {
    for second in [false, true] {
        let mut field = Field::new(roster()).populate(12);
        field.nodes.insert("twin".into(), twin());
        field.run(Span::from_min(20));
        let paused = if second { "twin" } else { "i004" };
        field.nodes.get_mut(paused).unwrap().intent.paused = true;
        field.delete_machine("i004");
        field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
        field.run(Span::from_min(60));
        assert!(field.nodes.contains_key(paused), "{second}: {:?}", field.calls);
        field.nodes.get_mut(paused).unwrap().intent.paused = false;
        field.run(Span::from_min(60));
        assert!(!field.nodes.contains_key(paused), "{second}: {:?}", field.calls);
    }
}

/// A Node names an instance that its cloud does not know, on EC2, where a young one may be denied. Our clock is set back by three
/// hours: the Node counts as young for as long, and no person is told of it.
#[test]
fn left_over_node_is_told_although_the_clock_is_set_back() {
    for back in [0, 180] {
        let mut settling = roster();
        settling.settles.insert(CLOUD.into(), min(5));
        let mut field = Field::new(settling).populate(10);
        field.run(min(20));
        field.nodes.insert("gone".into(), node("gone", Ready::Unknown));
        field.run(Span::from_s(30));
        field.now = field.now - min(back);
        field.run(min(60));
        let subject = Subject::Machine(MachineKey::Node("node-gone".into()));
        let key = IncidentKey { subject, kind: FaultKind::Ghost };
        assert!(field.state.context().cases.contains_key(&key), "set back by {back} min");
    }
}
