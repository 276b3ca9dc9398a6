//! Machines whose Node goes while no process looks, for a minute or for most of an hour: nothing but a cloud controller's word
//! says that it was not a person who drained it.

use reveille_core::event::{ClusterFact, Command, Event, Pause, PauseScope};
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::InstanceState;
use reveille_core::model::node::{Node, Ready};
use reveille_core::model::time::{Span, Time};

use super::fixture::{Field, roster};
use super::fleets::{comes, led_by, ten as fleet};
use super::steps::{api_down, cloud_deletes, made, min, off, on, say, see_nodes_alone, set};
use super::unseen_drains::successor;

const ONE: &str = "i004";

/// A fleet in which the kubelet of one machine has been dead for three minutes, and nothing is done yet.
fn with_a_silent_one() -> Field {
    let mut field = fleet();
    set(&mut field, ONE, Ready::Unknown);
    field.run(min(3));
    assert!(made(&field).is_empty());
    field
}

/// The controller manager says that the Node was removed at that time, as after any deletion. What is done to its machine in the
/// four hours after it.
fn done_to_removed(mut field: Field, node: &Node, at: Time) -> Vec<String> {
    say(&mut field, node.name.as_str(), "RemovingNode", Some(node.uid.as_str()), at);
    field.deaf = true;
    field.run(min(4 * 60));
    on(&field, ONE)
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
        let mut field = with_a_silent_one();
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
        found.push((gap, done_to_removed(field, &node, at)));
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
        found.push((state, before, done_to_removed(field, &node, at)));
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
        let mut field = with_a_silent_one();
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

/// The first process that lists the Nodes without it ends ten seconds later, before a word of a cloud controller would have come.
/// What it knew until then the next one must not take for the whole.
#[test]
fn silent_machine_drained_in_a_gap_is_held_by_the_next_process() {
    let mut found = Vec::new();
    for gap in ["restart", "api", "sleep"] {
        let mut field = with_a_silent_one();
        let node = field.nodes[ONE].clone();
        if gap == "api" {
            api_down(&mut field, min(1));
            field.nodes.remove(ONE);
            api_down(&mut field, min(1));
        } else if gap == "sleep" {
            field.nodes.remove(ONE);
            field.now = field.now + min(5);
            field.sync_nodes();
        } else {
            field.nodes.remove(ONE);
            field = off(field, Span::from_s(30), roster());
        }
        let at = field.now;
        say(&mut field, node.name.as_str(), "RemovingNode", Some(node.uid.as_str()), at);
        field.run(Span::from_s(10));
        field = off(field, Span::from_s(40), roster());
        found.push((gap, done_to_removed(field, &node, at)));
    }
    assert!(found.iter().all(|(_, calls)| calls.is_empty()), "{found:#?}");
}

/// The API server is gone twenty seconds after a host died: the Node's Ready is still True when it was seen last, and the cloud
/// says ERROR.
#[test]
fn machine_that_died_as_the_gap_began_is_left_alone() {
    let mut field = fleet();
    field.instances.get_mut(ONE).unwrap().state = InstanceState::Errored;
    field.run(Span::from_s(40));
    api_down(&mut field, min(1));
    let node = field.nodes.remove(ONE).unwrap();
    let at = field.now;
    api_down(&mut field, min(1));
    let calls = done_to_removed(field, &node, at);
    assert!(calls.is_empty(), "{calls:#?}");
}

fn pause(field: &mut Field, on: bool) {
    let pause = Pause { scope: PauseScope::Machine(ONE.into()), by: "erin".into(), reason: "parts".into() };
    field.feed(Event::Command(Command::Pauses(on.then_some(pause).into_iter().collect())));
}

/// A cloud controller deleted the Node of a machine that is off, in a gap, and its word was heard. The machine is to wait for a
/// person, and the API server forgets the word within the hour. The next process has to know that it was said.
#[test]
fn silent_node_that_its_cloud_deleted_is_missed_for_good() {
    let mut field = fleet();
    field.instances.get_mut(ONE).unwrap().state = InstanceState::Stopped;
    set(&mut field, ONE, Ready::Unknown);
    pause(&mut field, true);
    field.run(min(3));
    let node = field.nodes.remove(ONE).unwrap();
    field = off(field, Span::from_s(30), roster());
    pause(&mut field, true);
    let at = field.now;
    say(&mut field, node.name.as_str(), "DeletingNode", Some(node.uid.as_str()), at);
    field.run(min(120));
    field = off(field, Span::from_s(30), roster());
    pause(&mut field, true);
    field.run(min(2));
    pause(&mut field, false);
    field.deaf = true;
    field.run(min(4 * 60));
    assert!(!on(&field, ONE).is_empty(), "{:?}", field.machine_state(ONE));
}

/// No incident says that the kubelet is dead: its cloud could not be read as it died.
#[test]
fn silent_machine_is_held_whose_cloud_was_away_before_a_restart() {
    let mut field = fleet();
    see_nodes_alone(&mut field, min(4));
    set(&mut field, ONE, Ready::Unknown);
    see_nodes_alone(&mut field, min(5));
    let node = field.nodes.remove(ONE).unwrap();
    field = off(field, Span::from_s(30), roster());
    let at = field.now;
    say(&mut field, node.name.as_str(), "RemovingNode", Some(node.uid.as_str()), at);
    see_nodes_alone(&mut field, min(2));
    field.deaf = true;
    field.run(min(4 * 60));
    assert!(on(&field, ONE).is_empty(), "{:#?}", on(&field, ONE));
}

/// The first list after the gap is empty, and doubted; or no list comes, and an audit of single Nodes finds it.
#[test]
fn silent_machine_drained_in_a_gap_is_held_however_that_is_told() {
    for how in ["an empty list first", "audit"] {
        let mut field = with_a_silent_one();
        api_down(&mut field, min(1));
        let node = field.nodes.remove(ONE).unwrap();
        let at = field.now;
        api_down(&mut field, min(1));
        field.now = field.now + Span::from_s(10);
        if how == "audit" {
            let (name, uid) = (node.name.clone(), node.uid.clone());
            field.feed(Event::Cluster(ClusterFact::Deleted { name, uid }));
        } else {
            field.feed(Event::Cluster(ClusterFact::Synced(Vec::new())));
            field.now = field.now + Span::from_s(10);
            field.sync_nodes();
        }
        let calls = done_to_removed(field, &node, at);
        assert!(calls.is_empty(), "{how}: {calls:#?}");
    }
}

/// Its kubelet is well again and registered a second time within the gap. Hours later a client deletes the Node in our sight,
/// with no sign.
#[test]
fn node_made_again_in_a_gap_is_missed_when_it_goes_in_sight() {
    let mut field = with_a_silent_one();
    api_down(&mut field, min(1));
    let its = field.nodes.get_mut(ONE).unwrap();
    (its.uid, its.ready) = ("uid-b".into(), Ready::True);
    api_down(&mut field, min(1));
    field.now = field.now + Span::from_s(10);
    field.sync_nodes();
    field.watch_for(min(3 * 60));
    let gone = field.nodes.remove(ONE).unwrap();
    field.feed(Event::Cluster(ClusterFact::Deleted { name: gone.name, uid: gone.uid }));
    field.deaf = true;
    field.watch_for(min(4 * 60));
    assert!(!on(&field, ONE).is_empty(), "{:?}", field.machine_state(ONE));
}

/// The API server of another cluster answers, or one whose store is empty: the list is doubted for eight minutes, and a person
/// drains the Node on the right one meanwhile.
#[test]
fn silent_machine_drained_while_lists_are_doubted_is_left_alone() {
    let mut field = with_a_silent_one();
    for _ in 0..48 {
        field.now = field.now + Span::from_s(10);
        field.list_cloud();
        field.feed(Event::Cluster(ClusterFact::Synced(Vec::new())));
    }
    let node = field.nodes.remove(ONE).unwrap();
    let at = field.now;
    field.now = field.now + Span::from_s(10);
    field.sync_nodes();
    let calls = done_to_removed(field, &node, at);
    assert!(calls.is_empty(), "{calls:#?}");
}

/// A host dies as the gap begins, or in it, and a person drains its Node before the gap is over: what was Ready when it was last
/// seen may be dead, and then no kubelet tells of the cordon.
#[test]
fn machine_that_dies_and_is_drained_in_one_gap_is_left_alone() {
    let mut found = Vec::new();
    for gap in ["restart", "api", "two restarts"] {
        let mut field = fleet();
        let node = field.nodes[ONE].clone();
        match gap {
            "restart" => field = off(field, min(20), roster()),
            "two restarts" => {
                set(&mut field, ONE, Ready::Unknown);
                field = off(field, min(5), roster());
                field.run(min(2));
                let marks = std::mem::take(&mut field.instances.get_mut(ONE).unwrap().marks);
                field.run(min(5));
                field.nodes.remove(ONE);
                field = off(field, min(5), roster());
                field.run(min(2));
                field.instances.get_mut(ONE).unwrap().marks = marks;
            }
            _ => api_down(&mut field, min(20)),
        }
        field.nodes.remove(ONE);
        let at = field.now;
        found.push((gap, done_to_removed(field, &node, at)));
    }
    assert!(found.iter().all(|(_, calls)| calls.is_empty()), "{found:#?}");
}

/// In a gap of half an hour a person drains a machine and keeps it, and a successor registers under its name. Its kubelet told of
/// the cordon, or the ledger knows it. Hours later the successor is scaled down.
#[test]
fn drained_machine_whose_name_was_taken_in_a_short_gap_is_held() {
    let mut found = Vec::new();
    let tellings =
        ["nothing", "kubelet", "ledger", "pause"].map(|told| ["restart", "api"].map(|gap| (gap, told)));
    for server in ["node-i004", "vm-i004"] {
        for (gap, told) in tellings.concat() {
            let mut field = fleet();
            field.instances.get_mut(ONE).unwrap().name = server.into();
            match told {
                "ledger" => field.nodes.get_mut(ONE).unwrap().cordoned = true,
                "pause" => field.nodes.get_mut(ONE).unwrap().intent.paused = true,
                _ => {}
            }
            field.run(min(5));
            let (node, at) = (field.nodes[ONE].clone(), field.now + min(2));
            let made_at = field.now + min(15);
            if gap == "restart" {
                field = off(field, min(30), roster());
            } else {
                api_down(&mut field, min(30));
            }
            if told == "kubelet" {
                let uid = Some(node.uid.as_str());
                say(&mut field, node.name.as_str(), "NodeNotSchedulable", uid, at);
                say(&mut field, node.name.as_str(), "RemovingNode", uid, at + min(1));
            }
            successor(&mut field, "new", made_at);
            // A watch that has lost its place lists, and tells of no deletion.
            field.sync_nodes();
            field.run(min(3 * 60));
            field.delete_machine("new");
            field.run(min(2));
            field.nodes.remove("new");
            field.run(min(6 * 60));
            found.push((server, gap, told, on(&field, ONE)));
        }
    }
    assert!(found.iter().all(|(.., calls)| calls.is_empty()), "{found:#?}");
}

/// A person takes a machine's marks off, and drains its Node in a gap of half an hour. Its kubelet tells of it, and no machine is
/// judged without its marks. Hours later Reveille is upgraded, and then the marks are back.
#[test]
fn unmarked_machine_drained_in_a_gap_is_held_once_it_is_marked() {
    let mut field = fleet();
    let marks = std::mem::take(&mut field.instances.get_mut(ONE).unwrap().marks);
    field.run(min(5));
    let node = field.nodes.remove(ONE).unwrap();
    let at = field.now + min(2);
    field = off(field, min(30), roster());
    say(&mut field, node.name.as_str(), "NodeNotSchedulable", Some(node.uid.as_str()), at);
    field.run(min(2 * 60));
    field = off(field, min(1), roster());
    field.run(min(5));
    field.instances.get_mut(ONE).unwrap().marks = marks;
    field.run(min(6 * 60));
    assert!(on(&field, ONE).is_empty(), "{:?}", made(&field));
}

/// In a night without us a machine is drained and kept, and another one has its name. The next process cannot read its cloud, and
/// ends after a while: the one after it begins a minute later.
#[test]
fn name_taken_in_a_night_is_known_to_the_second_process() {
    for unmarked in [false, true] {
        let mut field = fleet();
        let marks = std::mem::take(&mut field.instances.get_mut(ONE).unwrap().marks);
        if !unmarked {
            field.instances.get_mut(ONE).unwrap().marks = marks.clone();
        }
        field.run(min(5));
        let made_at = field.now + min(3 * 60);
        field = off(field, min(5 * 60), roster());
        successor(&mut field, "new", made_at);
        if unmarked {
            field.run(min(5));
        } else {
            see_nodes_alone(&mut field, min(5));
        }
        field = off(field, min(1), roster());
        field.run(min(5));
        field.instances.get_mut(ONE).unwrap().marks = marks;
        field.run(min(60));
        field.delete_machine("new");
        field.run(min(2));
        field.nodes.remove("new");
        field.run(min(6 * 60));
        assert!(on(&field, ONE).is_empty(), "{unmarked}: {:?}", made(&field));
    }
}

/// Where addresses alone lead to machines, a person drains or pauses one, deletes its Node while Reveille is upgraded, and gives
/// its name to another machine. What that one's Node shows takes nothing back of what the ledger knows.
#[test]
fn successor_known_by_its_address_takes_no_sign_back() {
    let mut found = Vec::new();
    for sign in ["cordon", "pause", "silence"] {
        for is_listed_late in [false, true] {
            let mut field = led_by("address", 12, roster());
            field.run(min(20));
            match sign {
                "cordon" => field.nodes.get_mut(ONE).unwrap().cordoned = true,
                "pause" => field.nodes.get_mut(ONE).unwrap().intent.paused = true,
                _ => set(&mut field, ONE, Ready::Unknown),
            }
            field.run(min(3));
            field = off(field, min(20), roster());
            let old = field.nodes.remove(ONE).unwrap();
            comes(&mut field, "address", "new", "vm-new");
            let new = field.nodes.remove("new").unwrap();
            let its = Node { name: old.name.clone(), ..new };
            field.nodes.insert("new".into(), its);
            let late = is_listed_late.then(|| field.instances.remove("new").unwrap());
            field.run(min(2));
            field.instances.extend(late.map(|it| ("new".into(), it)));
            field.run(min(60));
            set(&mut field, "new", Ready::Unknown);
            field.deaf = true;
            field.run(min(6 * 60));
            found.push((sign, is_listed_late, on(&field, ONE)));
        }
    }
    assert!(found.iter().all(|(.., calls)| calls.is_empty()), "{found:#?}");
}

/// A person takes the pool's mark off a machine, the ledger is rotated, and Reveille restarted. Then they pause its Node, which
/// is deleted in the next upgrade, and put the mark back.
#[test]
fn pause_of_machine_without_pool_mark_outlives_a_rotation() {
    let mut field = fleet();
    let marks = field.instances[ONE].marks.clone();
    let own = marks.iter().filter(|mark| !format!("{mark:?}").contains("pool")).cloned();
    field.instances.get_mut(ONE).unwrap().marks = std::sync::Arc::new(own.collect());
    field.run(min(5));
    field.records = field.state.checkpoint();
    field = off(field, min(1), roster());
    field.run(min(5));
    field.nodes.get_mut(ONE).unwrap().intent.paused = true;
    field.run(min(5));
    let gone = field.nodes.remove(ONE).unwrap();
    field = off(field, min(1), roster());
    cloud_deletes(&mut field, &gone);
    field.run(min(5));
    field.instances.get_mut(ONE).unwrap().marks = marks;
    field.run(min(6 * 60));
    assert!(on(&field, ONE).is_empty(), "{:?}", made(&field));
}

/// An API server shows an old state for a while, and then the list without the Node: no watch told of it, although no list was
/// late (seed 9301245).
#[test]
fn node_that_a_list_lacks_was_not_seen_to_go() {
    let mut field = fleet();
    field.lists_alone = true;
    field.instances.get_mut(ONE).unwrap().state = InstanceState::Errored;
    field.run(min(2));
    field.nodes.remove(ONE);
    field.run(min(4 * 60));
    assert!(on(&field, ONE).is_empty(), "{:?}", made(&field));
}

/// A Node that is not Ready is in the first list of a process, and goes in its sight hours later, by no drain: its machine is
/// repaired as any other.
#[test]
fn silent_node_that_goes_in_sight_after_a_restart_is_missed() {
    for links in ["provider", "uuid"] {
        let mut field = led_by(links, 12, roster());
        field.run(min(20));
        set(&mut field, ONE, Ready::Unknown);
        let field_roster = super::steps::roster_with(|pool| pool.deadlines.not_ready_within = min(24 * 60));
        field.run(min(2));
        field = off(field, min(1), field_roster);
        field.run(min(30));
        assert!(made(&field).is_empty());
        field.nodes.remove(ONE);
        field.deaf = true;
        field.run(min(4 * 60));
        assert!(!on(&field, ONE).is_empty(), "{links}: {}", field.held(ONE, FaultKind::Vanished));
    }
}

/// Two machines are held, each for itself. That makes no mass loss of what a cloud controller deletes after it.
#[test]
fn machines_that_are_held_alone_pull_no_other_one_in() {
    for restarts in [false, true] {
        let mut field = fleet();
        for id in ["i001", "i002"] {
            field.nodes.remove(id);
            field.sync_nodes();
            field.run(min(5));
        }
        if restarts {
            field.records = field.state.checkpoint();
            field = off(field, min(1), roster());
            field.run(min(5));
        }
        let gone = field.nodes.remove(ONE).unwrap();
        field.sync_nodes();
        cloud_deletes(&mut field, &gone);
        field.deaf = true;
        field.run(min(4 * 60));
        assert!(
            on(&field, "i001").is_empty() && !on(&field, ONE).is_empty(),
            "{restarts}: {:?}",
            field.held(ONE, FaultKind::Vanished)
        );
    }
}

/// A Node that no person drained goes in our sight while its machine has no marks. The next process, which begins before the
/// marks are back, knows that it was seen.
#[test]
fn node_seen_to_go_while_unmarked_is_missed_after_a_restart() {
    let mut field = fleet();
    let marks = std::mem::take(&mut field.instances.get_mut(ONE).unwrap().marks);
    field.run(min(5));
    field.nodes.remove(ONE);
    field.run(min(5));
    field = off(field, min(1), roster());
    field.run(min(5));
    field.instances.get_mut(ONE).unwrap().marks = marks;
    field.deaf = true;
    field.run(min(4 * 60));
    assert!(!on(&field, ONE).is_empty(), "{}", field.held(ONE, FaultKind::Vanished));
}

/// A cloud controller deleted an earlier Node of the name within the hour. The kubelet of the next one is dead, and a person
/// drains it as Reveille is upgraded: the controller manager's word about that comes seconds after the first list.
#[test]
fn word_about_an_earlier_node_is_waited_on_after_a_restart() {
    let mut field = with_a_silent_one();
    let at = field.now;
    let node = field.nodes.remove(ONE).unwrap();
    field = off(field, Span::from_s(30), roster());
    for reason in ["DeletingNode", "RemovingNode"] {
        say(&mut field, node.name.as_str(), reason, Some("earlier"), at);
    }
    field.run(Span::from_s(10));
    let at = field.now;
    let calls = done_to_removed(field, &node, at);
    assert!(calls.is_empty(), "{calls:?}");
}

/// A cloud controller deletes the Node in a gap, its machine registers again, dies, and is drained: the word is about the object
/// before.
#[test]
fn word_about_the_object_before_the_drained_one_frees_nothing() {
    let mut field = fleet();
    api_down(&mut field, min(20));
    let node = field.nodes.remove(ONE).unwrap();
    api_down(&mut field, min(5));
    let at = field.now;
    field.now = field.now + Span::from_s(1);
    field.sync_nodes();
    for (reason, uid) in
        [("DeletingNode", node.uid.as_str()), ("RemovingNode", node.uid.as_str()), ("RemovingNode", "later")]
    {
        say(&mut field, node.name.as_str(), reason, Some(uid), at);
    }
    field.deaf = true;
    field.run(min(4 * 60));
    assert!(on(&field, ONE).is_empty(), "{:?}", made(&field));
}
