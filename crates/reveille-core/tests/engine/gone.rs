//! Many objects that are really gone: the lists that lack them are doubted, and the doubt ends by a second witness.

use std::net::Ipv4Addr;

use reveille_core::effect::{ReadError, ReadErrorKind};
use reveille_core::event::{CloudFact, CloudSnapshot, ClusterFact, Command, Event, Pause, PauseScope};
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::{Fault, InstanceState};
use reveille_core::model::node::{Provider, Ready};
use reveille_core::model::roster::Pool;
use reveille_core::model::time::Span;
use reveille_core::observe::source::Trust;

use super::fixture::{CLOUD, Field, instance, node, roster};
use super::fleets::fleet;
use super::steps::off;

const FOUR: [&str; 4] = ["i001", "i002", "i003", "i004"];

fn ten() -> Field {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    field
}

/// Their Nodes are deleted, and the list says so.
fn lose(field: &mut Field, ids: &[&str]) {
    ids.iter().for_each(|id| drop(field.nodes.remove(*id)));
    field.sync_nodes();
}

/// One is deleted in our sight.
fn deleted(field: &mut Field, id: &str) {
    let gone = field.nodes.remove(id).unwrap();
    field.feed(Event::Cluster(ClusterFact::Deleted { name: gone.name, uid: gone.uid }));
}

/// They register again.
fn bring_back(field: &mut Field, ids: &[&str]) {
    ids.iter().for_each(|id| drop(field.nodes.insert((*id).to_owned(), node(id, Ready::True))));
    field.sync_nodes();
}

fn of_nodes(field: &Field) -> Trust {
    field.state.context().cluster.source.trust(field.now)
}

fn of_cloud(field: &Field) -> Trust {
    field.state.context().clouds[CLOUD].source.trust(field.now)
}

/// A list of nodes without these four, whatever the store holds.
fn lists_six(field: &mut Field) {
    let nodes = field.nodes.iter().filter(|(id, _)| !FOUR.contains(&id.as_str()));
    let six = nodes.map(|(_, node)| node.clone().into()).collect();
    field.feed(Event::Cluster(ClusterFact::Synced(six)));
}

#[test]
fn nodes_deleted_without_watch_are_believed_after_two_denials() {
    let mut field = ten();
    lose(&mut field, &FOUR);
    field.watch_for(Span::from_min(9));
    let why = of_nodes(&field).to_string();
    assert_eq!(why, "4 of 10 nodes went missing at once while their instances run");
    field.watch_for(Span::from_min(3));
    assert!(of_nodes(&field).is_given(), "{}", of_nodes(&field));
    field.watch_for(Span::from_min(120));
    assert_eq!(field.destructive_calls(), 0, "{:?}", field.calls);
    let held = field.held("i001", FaultKind::Vanished);
    assert!(held.contains("4 Nodes disappeared together"), "{held}");
    // Three are back, and what is left goes the way of each vanished node no more than before: a person was told.
    bring_back(&mut field, &FOUR[1..]);
    field.watch_for(Span::from_min(120));
    assert_eq!(field.destructive_calls(), 0, "{:?}", field.calls);
    // It has a Node again; when that goes by itself later, it is a fault as any other.
    bring_back(&mut field, &["i001"]);
    field.watch_for(Span::from_min(5));
    deleted(&mut field, "i001");
    field.watch_for(Span::from_min(60));
    assert!(field.destructive_calls() > 0, "held for ever");
}

#[test]
fn list_that_lacks_nodes_which_are_there_is_never_believed() {
    let mut field = ten();
    lists_six(&mut field);
    field.watch_for(Span::from_min(600));
    assert!(!of_nodes(&field).is_given());
    assert!(field.calls.is_empty(), "{:?}", field.calls);
}

#[test]
fn nodes_lost_while_no_process_ran_are_confirmed_likewise() {
    let mut next = ten().restarted(roster());
    lose(&mut next, &FOUR);
    next.watch_for(Span::from_min(9));
    let why = of_nodes(&next).to_string();
    assert!(why.starts_with("4 of 10 machines that joined before have no Node"), "{why}");
    next.watch_for(Span::from_min(5));
    assert!(of_nodes(&next).is_given(), "{}", of_nodes(&next));
    assert_eq!(next.destructive_calls(), 0, "{:?}", next.calls);
}

#[test]
fn ports_missing_from_two_services_are_believed_deleted() {
    let mut field = ten();
    FOUR.iter().for_each(|id| drop(field.ports.remove(*id)));
    field.run(Span::from_min(2));
    assert!(of_cloud(&field).is_given(), "{}", of_cloud(&field));
}

#[test]
fn ports_missing_from_one_service_are_not_believed_gone() {
    let mut field = ten();
    for id in FOUR {
        let port = field.ports.remove(id).unwrap();
        field.instances.get_mut(id).unwrap().addresses = port.addresses;
    }
    field.run(Span::from_min(600));
    assert_eq!(of_cloud(&field).to_string(), "4 of 10 running machines lost all their ports at once");
}

/// Four are lost; the list is doubted. An operator brings one back before the others are denied by name.
#[test]
fn one_that_is_back_does_not_make_the_others_less_lost_together() {
    let mut field = ten();
    lose(&mut field, &FOUR);
    field.watch_for(Span::from_min(5));
    assert!(!of_nodes(&field).is_given());
    let back = node("i001", Ready::True);
    field.nodes.insert("i001".to_owned(), back.clone());
    field.feed(Event::Cluster(ClusterFact::Applied(back.into())));
    field.watch_for(Span::from_min(1));
    assert_eq!(of_nodes(&field).to_string(), "3 nodes that a doubted list lacks are not denied by name yet");
    field.watch_for(Span::from_min(120));
    assert!(of_nodes(&field).is_given(), "{}", of_nodes(&field));
    assert_eq!(field.destructive_calls(), 0, "{:?}", field.calls);
    let held = field.held("i002", FaultKind::Vanished);
    assert!(held.contains("3 Nodes disappeared together"), "{held}");
}

/// A store that is restored twice: each list lacks too few to be doubted by itself, with the Nodes that went before too many.
#[test]
fn nodes_lost_in_two_lists_count_together_against_the_fleet() {
    for restarts in [false, true] {
        let mut field = ten();
        lose(&mut field, &["i001", "i002", "i003"]);
        field.watch_for(Span::from_s(30));
        assert!(of_nodes(&field).is_given(), "three of ten may be missing");
        if restarts {
            field = field.restarted(roster());
        }
        lose(&mut field, &["i004", "i005"]);
        field.watch_for(Span::from_s(30));
        let doubt = of_nodes(&field).to_string();
        assert!(doubt.ends_with("beside 3 whose Node went before"), "{doubt}");
        field.watch_for(Span::from_min(120));
        assert!(of_nodes(&field).is_given(), "{}", of_nodes(&field));
        assert_eq!(field.destructive_calls(), 0, "{restarts}: {:?}", field.calls);
        let held = field.held("i001", FaultKind::Vanished);
        assert!(held.contains("5 Nodes disappeared together"), "{held}");
    }
}

/// What is left of those that were lost together is held by the next process, too, and let go once it has a Node again.
#[test]
fn machines_that_were_lost_together_are_held_after_a_restart() {
    for rotated in [false, true] {
        let mut field = ten();
        lose(&mut field, &FOUR);
        field.watch_for(Span::from_min(20));
        bring_back(&mut field, &FOUR[2..]);
        field.watch_for(Span::from_min(5));
        if rotated {
            field.records = field.state.checkpoint();
        }
        let mut next = field.restarted(roster());
        next.sync_nodes();
        next.watch_for(Span::from_min(120));
        assert_eq!(next.destructive_calls(), 0, "rotated: {rotated}: {:?}", next.calls);
        bring_back(&mut next, &["i001"]);
        next.watch_for(Span::from_min(5));
        // It is a machine as any other now, for the process after that as well.
        let mut last = next.restarted(roster());
        last.sync_nodes();
        last.watch_for(Span::from_min(5));
        deleted(&mut last, "i001");
        last.watch_for(Span::from_min(60));
        assert!(last.destructive_calls() > 0, "rotated: {rotated}: held for ever");
    }
}

/// A store that is restored twice: the first list lacks too few to be doubted. What went first is still open when the others go;
/// here a pause has kept it from being rebooted.
#[test]
fn nodes_that_went_a_while_before_many_others_went_with_them() {
    let paused = Pause { scope: PauseScope::Roster, by: "ops".into(), reason: "a freeze of changes".into() };
    for (before, restart) in [(20, false), (20, true), (80 * 60, false), (80 * 60, true)] {
        let mut field = ten();
        field.feed(Event::Command(Command::Pauses([paused.clone()].into())));
        lose(&mut field, &["i000"]);
        field.watch_for(Span::from_s(before));
        assert!(of_nodes(&field).is_given(), "one is believed");
        FOUR.iter().for_each(|id| drop(field.nodes.remove(*id)));
        let mut field = if restart { field.restarted(roster()) } else { field };
        field.sync_nodes();
        field.feed(Event::Command(Command::Pauses([].into())));
        field.watch_for(Span::from_min(120));
        assert_eq!(
            field.destructive_calls(),
            0,
            "{before} s before, restarted: {restart}: {:?}",
            field.calls
        );
        let held = field.held("i000", FaultKind::Vanished);
        assert!(held.contains("5 Nodes disappeared together"), "{before} {restart}: {held}");
    }
}

/// The store is restored once more, and one more Node is gone.
#[test]
fn node_lost_during_a_mass_loss_joins_that_loss() {
    let mut field = ten();
    lose(&mut field, &FOUR);
    field.watch_for(Span::from_min(80));
    lose(&mut field, &["i007"]);
    field.watch_for(Span::from_min(120));
    assert_eq!(field.destructive_calls(), 0, "{:?}", field.calls);
    let held = field.held("i007", FaultKind::Vanished);
    assert!(held.contains("5 Nodes disappeared together"), "{held}");
}

/// The store is restored once more when one of the lost machines is back: three of ten are lost still, two more Nodes go, and
/// neither number is too many by itself (seed 5450350).
#[test]
fn nodes_lost_in_one_list_during_a_mass_loss_join_that_loss() {
    for back in [1, 3] {
        let mut field = ten();
        lose(&mut field, &FOUR);
        field.watch_for(Span::from_min(80));
        for id in &FOUR[..back] {
            field.nodes.insert((*id).to_owned(), node(id, Ready::True));
        }
        field.run(Span::from_min(5));
        lose(&mut field, &["i007", "i008"]);
        field.watch_for(Span::from_min(120));
        // No watch saw them go, together with others or not.
        assert_eq!(field.destructive_calls(), 0, "{back}: {:?}", field.calls);
        let held = field.held("i007", FaultKind::Vanished);
        assert!(held.contains(&format!("{} Nodes disappeared together", 6 - back)), "{held}");
    }
}

/// Two clouds. A backup that is older than some machines is restored while no process runs, and the next process does not reach
/// one of the clouds: what its ledger knows of that one counts against the list all the same.
#[test]
fn machines_of_unreachable_cloud_count_against_restored_list() {
    const SECOND: &str = "os-b";
    let wanted = || {
        let mut wanted = roster();
        wanted.clouds = vec![CLOUD.into(), SECOND.into()];
        let gate = Pool { name: "gate".into(), cloud: SECOND.into(), ..wanted.pools["workers"].clone() };
        wanted.pools.insert("gate".into(), gate);
        wanted
    };
    let mut field = Field::new(wanted()).populate(10);
    let ids: Vec<String> = (0..30).map(|number| format!("b{number:03}")).collect();
    for id in &ids {
        field.nodes.insert(id.clone(), node(id, Ready::True));
    }
    let instances = ids.iter().map(|id| instance(id).into()).collect();
    let there = CloudSnapshot { instances, groups: field.snapshot().groups, ..CloudSnapshot::default() };
    let tell = |field: &mut Field, away: bool| {
        let error = ReadError { kind: ReadErrorKind::Unavailable, text: "503".into(), retry_after: None };
        let fact = if away { CloudFact::Failed(error) } else { CloudFact::read(there.clone()) };
        field.feed(Event::Cloud { cloud: SECOND.into(), fact });
    };
    for _ in 0..10 {
        tell(&mut field, false);
        field.run(Span::from_s(30));
    }
    for id in ["i001", "i002"].into_iter().map(str::to_owned).chain(ids[..20].iter().cloned()) {
        field.nodes.remove(&id);
    }
    let mut next = field.restarted(wanted());
    next.sync_nodes();
    for number in 0..240 {
        tell(&mut next, number < 12);
        next.watch_for(Span::from_s(30));
    }
    assert_eq!(next.calls, []);
}

/// The credential leads to another project for a while: the list of servers is empty, and each id is denied.
#[test]
fn empty_list_is_not_believed_for_single_machine_with_node() {
    for machines in [1, 2] {
        let mut field = Field::new(roster()).populate(machines);
        field.run(Span::from_min(5));
        field.nodes.get_mut("i000").unwrap().ready = Ready::Unknown;
        field.instances.clear();
        field.ports.clear();
        field.run(Span::from_min(30));
        assert_eq!(field.calls, [], "{machines}");
    }
    // Really deleted, and its Node by the cloud controller: an empty project is no reason to doubt for ever.
    let mut field = Field::new(roster()).populate(1);
    field.run(Span::from_min(5));
    field.delete_machine("i000");
    field.nodes.get_mut("i000").unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(2));
    assert!(!of_cloud(&field).is_given());
    let node = field.nodes.remove("i000").unwrap();
    field.feed(Event::Cluster(ClusterFact::Deleted { name: node.name, uid: node.uid }));
    field.run(Span::from_min(10));
    assert!(of_cloud(&field).is_given(), "{}", of_cloud(&field));
}

/// The same at a restart, when the ledger's machines are asked for by id with the first list of nodes.
#[test]
fn machines_of_the_ledger_are_not_gone_while_the_list_is_empty() {
    for machines in [1, 10] {
        let mut field = Field::new(roster()).populate(machines);
        field.run(Span::from_min(5));
        field.nodes.get_mut("i000").unwrap().ready = Ready::Unknown;
        let (there, ports) = (field.instances.clone(), field.ports.clone());
        let mut next = field.restarted(roster());
        next.instances.clear();
        next.ports.clear();
        next.run(Span::from_min(30));
        assert_eq!(next.calls, [], "{machines}");
        assert!(!of_cloud(&next).is_given());
        (next.instances, next.ports) = (there, ports);
        next.run(Span::from_min(2));
        assert!(of_cloud(&next).is_given(), "{}", of_cloud(&next));
    }
}

/// Eight machines were rebuilt under their old names while no process ran: the Nodes of those names belong to their
/// successors.
#[test]
fn ledger_machines_are_gone_although_successors_reuse_names() {
    let mut next = ten().restarted(roster());
    for number in 1..9 {
        let (old, new) = (format!("i{number:03}"), format!("n{number:03}"));
        next.delete_machine(&old);
        next.nodes.remove(&old);
        next.add_machine(&new, true);
        let name = format!("node-{old}");
        next.instances.get_mut(&new).unwrap().name = name.as_str().into();
        next.nodes.get_mut(&new).unwrap().name = name.as_str().into();
    }
    next.run(Span::from_s(20));
    assert!(!of_cloud(&next).is_given(), "eight of the ledger's ten are missing at once");
    next.run(Span::from_min(60));
    assert!(of_cloud(&next).is_given(), "{}", of_cloud(&next));
}

/// The same where each successor registered on the Node that its predecessor had left: the provider ID of a Node never changes,
/// and the kubelet writes its own system UUID into it. On bare metal and k3s neither is an instance's, and the address is.
#[test]
fn ledger_machines_are_gone_where_successors_took_their_nodes() {
    for anonymous in [false, true] {
        let mut next = ten().restarted(roster());
        for number in 1..9 {
            let (old, new) = (format!("i{number:03}"), format!("n{number:03}"));
            next.delete_machine(&old);
            next.add_machine(&new, false);
            let instance = next.instances.get_mut(&new).unwrap();
            (instance.name, instance.addresses) =
                (format!("node-{old}").as_str().into(), Box::new([Ipv4Addr::new(10, 0, 9, number).into()]));
            let addresses = instance.addresses.clone();
            let node = next.nodes.get_mut(&old).unwrap();
            node.system_uuid = Some(new.as_str().into());
            if anonymous {
                node.provider = Provider::Unread(format!("k3s://node-{old}").into());
                (node.system_uuid, node.addresses) =
                    (Some(format!("4c4c4544-{number}").as_str().into()), addresses);
            }
        }
        next.run(Span::from_s(20));
        assert!(!of_cloud(&next).is_given(), "eight of the ledger's ten are missing at once");
        next.run(Span::from_min(60));
        assert!(of_cloud(&next).is_given(), "anonymous {anonymous}: {}", of_cloud(&next));
        assert_eq!(next.destructive_calls(), 0, "{:?}", next.calls);
    }
}

/// A migration of one machine failed and left it in an error state, in which it serves. Its Node goes in a list that lacks too
/// few to be doubted, and many others go after it, or went before it (4400021).
#[test]
fn node_of_errored_machine_is_lost_together_with_the_others() {
    for first in [true, false] {
        let mut field = ten();
        let instance = field.instances.get_mut("i000").unwrap();
        instance.state = InstanceState::Errored;
        instance.fault = Some(Fault { code: 500, message: "Live migration failed".into() });
        field.watch_for(Span::from_min(60));
        let (before, after) = if first { (&["i000"][..], &FOUR[..]) } else { (&FOUR[..], &["i000"][..]) };
        lose(&mut field, before);
        field.watch_for(Span::from_min(if first { 1 } else { 80 }));
        lose(&mut field, after);
        field.watch_for(Span::from_min(240));
        assert_eq!(field.destructive_calls(), 0, "it went first: {first}: {:?}", field.calls);
        let held = field.held("i000", FaultKind::Errored);
        assert!(held.contains("5 Nodes disappeared together"), "{first}: {held}");
    }
}

/// Where Nodes name no instance, two of four machines are deleted while no process runs, and the API server shows an old state
/// for a while after that. The list of the cloud is doubted, as it lacks two at once, and so is their end: what the later list of
/// Nodes lacks was alive until the doubt is over, and the doubt lasted as long as they lived (seed 9003198).
#[test]
fn doubts_of_both_lists_do_not_wait_for_each_other() {
    let mut field = fleet("uuid", 4, roster());
    field.run(Span::from_min(20));
    let mut field = off(field, Span::from_min(1), roster());
    let gone = ["i002", "i003"];
    gone.iter().for_each(|id| field.delete_machine(id));
    field.run(Span::from_min(2));
    assert!(!of_cloud(&field).is_given());
    lose(&mut field, &gone);
    field.watch_for(Span::from_min(40));
    assert!(of_cloud(&field).is_given(), "{}", of_cloud(&field));
}
