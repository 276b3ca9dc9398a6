//! Machines whose kubelet is dead, and whose Node goes while no process looks: nothing but a cloud controller's word says that
//! it was not a person who drained it.

use reveille_core::event::{ClusterFact, Event};
use reveille_core::model::instance::InstanceState;
use reveille_core::model::node::{Node, Ready};
use reveille_core::model::time::Span;

use super::fixture::{Field, roster};
use super::steps::{api_down, made, min, off, on, say, set};

const ONE: &str = "i004";

fn fleet() -> Field {
    let mut field = Field::new(roster()).populate(10);
    field.run(min(20));
    field
}

/// The kubelet of a machine is dead. A person cordons its Node, deletes it and has the machine in hand, while Reveille is
/// upgraded for half a minute, or reaches no API server for two. The kubelet's event of a cordon is all that tells of a cordon
/// that no list showed, and a dead kubelet writes none: `NodeNotSchedulable` comes from the kubelet's own sync of its status
/// (kubernetes: pkg/kubelet/kubelet_node_status.go, `recordNodeSchedulableEvent`), and `kubectl cordon` and `delete` write no
/// event. The controller manager says `RemovingNode` (pkg/controller/nodelifecycle), which any deletion causes, and no cloud
/// controller says `DeletingNode`.
#[test]
fn silent_machine_drained_in_a_short_gap_is_left_alone() {
    let mut found = Vec::new();
    for gap in ["restart", "api"] {
        let mut field = fleet();
        set(&mut field, ONE, Ready::Unknown);
        field.run(min(3));
        assert!(made(&field).is_empty());
        let node = field.nodes[ONE].clone();
        if gap == "api" {
            api_down(&mut field, min(1));
        }
        field.nodes.remove(ONE);
        if gap == "api" {
            api_down(&mut field, min(1));
        } else {
            field = off(field, Span::from_s(30), roster());
        }
        let at = field.now;
        say(&mut field, node.name.as_str(), "RemovingNode", Some(node.uid.as_str()), at);
        field.deaf = true;
        field.run(min(4 * 60));
        found.push((gap, on(&field, ONE)));
    }
    assert!(found.iter().all(|(_, calls)| calls.is_empty()), "{found:#?}");
}

/// The same of one that is shut off, or that a failed live migration left in ERROR (nova: the instance serves on, and no state
/// tells whether its kubelet lives).
#[test]
fn machine_off_or_in_error_drained_in_a_restart_is_left_alone() {
    let mut found = Vec::new();
    for state in [InstanceState::Stopped, InstanceState::Errored] {
        let mut field = fleet();
        field.instances.get_mut(ONE).unwrap().state = state;
        if state == InstanceState::Errored {
            field.run(min(30));
        }
        set(&mut field, ONE, Ready::Unknown);
        field.run(min(2));
        let before = made(&field);
        let node = field.nodes.remove(ONE).unwrap();
        field = off(field, Span::from_s(30), roster());
        let at = field.now;
        say(&mut field, node.name.as_str(), "RemovingNode", Some(node.uid.as_str()), at);
        field.deaf = true;
        field.run(min(4 * 60));
        found.push((state, before, on(&field, ONE)));
    }
    assert!(found.iter().all(|(_, a, b)| a.is_empty() && b.is_empty()), "{found:#?}");
}

/// Half an hour before, a cloud controller had deleted the Node, because it was not Ready and its instance was not found
/// (cloud-provider, node_lifecycle_controller.go, `MonitorNodes`); it registered again. Its events live for an hour. A machine
/// that flapped once is the one that a person drains next.
#[test]
fn word_about_an_earlier_node_frees_no_silent_machine() {
    let mut found = Vec::new();
    for deleted_before in [false, true] {
        let (mut field, mut told) = (fleet(), Vec::new());
        if deleted_before {
            let old = field.nodes.remove(ONE).unwrap();
            let at = field.now;
            let gone = ClusterFact::Deleted { name: old.name.clone(), uid: old.uid.clone() };
            field.feed(Event::Cluster(gone));
            for reason in ["DeletingNode", "RemovingNode"] {
                say(&mut field, old.name.as_str(), reason, Some(old.uid.as_str()), at);
                told.push((reason, old.uid.clone(), at));
            }
            field.run(min(1));
            field.nodes.insert(ONE.into(), Node { uid: "uid-b".into(), ..old });
        }
        field.run(min(20));
        set(&mut field, ONE, Ready::Unknown);
        field.run(min(3));
        assert!(made(&field).is_empty());
        let node = field.nodes.remove(ONE).unwrap();
        field = off(field, Span::from_s(30), roster());
        told.push(("RemovingNode", node.uid.clone(), field.now));
        for (reason, uid, at) in told {
            say(&mut field, node.name.as_str(), reason, Some(uid.as_str()), at);
        }
        field.deaf = true;
        field.run(min(4 * 60));
        found.push((deleted_before, on(&field, ONE)));
    }
    assert!(found.iter().all(|(_, calls)| calls.is_empty()), "{found:#?}");
}

/// An API server restarts, and refuses the old place of the watch (410 Gone). Meanwhile a cloud controller deletes the Node. The
/// watch lists again first, and events are listed after that.
#[test]
fn silent_node_that_its_cloud_deleted_in_a_gap_is_missed() {
    let mut found = Vec::new();
    for heard in ["before the list", "after it"] {
        let mut field = fleet();
        set(&mut field, ONE, Ready::Unknown);
        field.run(min(3));
        api_down(&mut field, min(1));
        let node = field.nodes.remove(ONE).unwrap();
        let at = field.now;
        api_down(&mut field, min(1));
        let tell = |field: &mut Field| {
            say(field, node.name.as_str(), "DeletingNode", Some(node.uid.as_str()), at);
        };
        if heard == "before the list" {
            tell(&mut field);
        }
        field.now = field.now + Span::from_s(1);
        field.sync_nodes();
        if heard == "after it" {
            tell(&mut field);
        }
        field.deaf = true;
        field.run(min(4 * 60));
        found.push((heard, on(&field, ONE)));
    }
    assert!(found.iter().all(|(_, calls)| !calls.is_empty()), "{found:#?}");
}
