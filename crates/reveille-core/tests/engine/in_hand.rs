//! Machines that people have in hand, and what they do to them meanwhile: rename, install once more, declare out of service. Each
//! story says what the real service does, and where that is documented.

use std::sync::Arc;

use reveille_core::event::{Command, Event, Pause, PauseScope};
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::{InstanceState, Mark};
use reveille_core::model::node::{Provider, Ready};
use reveille_core::model::signs;
use reveille_core::model::time::Span;

use super::fixture::{Field, roster};
use super::fleets;
use super::fleets::ten as fleet;
use super::steps::{made, min, off, on, set};

const ONE: &str = "i004";

fn pause(field: &mut Field, name: &str) {
    let pause = Pause { scope: PauseScope::Machine(name.into()), by: "erin".into(), reason: "mine".into() };
    field.feed(Event::Command(Command::Pauses([pause].into())));
}

/// A new machine does not join, and is paused by its server's name.
fn with_a_new_one_paused() -> Field {
    let mut field = fleet();
    field.add_machine("new", false);
    field.run(min(2));
    pause(&mut field, "node-new");
    field.run(min(2));
    field
}

/// A machine does not join. A person pauses it by the name of its server (`reveille pause NAME`: "nothing to it"), and renames
/// the server while they look at it, as people do (`openstack server set --name w-7-debug w-7`; Nova API, "Update Server"). The
/// pause stands as a word, and names no machine any more.
#[test]
fn paused_machine_whose_server_is_renamed_stays_paused() {
    let mut found = Vec::new();
    for renamed in [false, true] {
        let mut field = with_a_new_one_paused();
        if renamed {
            field.instances.get_mut("new").unwrap().name = "debug-new".into();
        }
        field.run(min(4 * 60));
        found.push((renamed, on(&field, "new")));
    }
    assert!(found.iter().all(|(_, calls)| calls.is_empty()), "{found:#?}");
}

/// The same over a restart, before or after the machine is renamed: a process begins with the names as they are by then.
#[test]
fn paused_machine_that_is_renamed_stays_paused_over_restarts() {
    let mut found = Vec::new();
    for renamed in ["before the restart", "meanwhile"] {
        let mut field = with_a_new_one_paused();
        field.instances.get_mut("new").unwrap().name = "debug-new".into();
        if renamed == "before the restart" {
            field.run(min(2));
        }
        field = off(field, Span::from_s(30), roster());
        field.run(min(1));
        pause(&mut field, "node-new");
        field.run(min(4 * 60));
        found.push((renamed, on(&field, "new")));
    }
    assert!(found.iter().all(|(_, calls)| calls.is_empty()), "{found:#?}");
}

/// The folder of the pauses cannot be read for an hour, in which everything is paused, and the controller is restarted.
#[test]
fn renamed_machine_stays_paused_where_pauses_were_unreadable() {
    let mut field = with_a_new_one_paused();
    field.instances.get_mut("new").unwrap().name = "debug-new".into();
    field.run(min(5));
    let everything = |field: &mut Field| {
        let pause = Pause { scope: PauseScope::Roster, by: "reveille".into(), reason: "unreadable".into() };
        field.feed(Event::Command(Command::Pauses([pause].into())));
    };
    everything(&mut field);
    field.run(min(60));
    field = off(field, Span::from_s(30), roster());
    everything(&mut field);
    field.run(min(5));
    pause(&mut field, "node-new");
    field.deaf = true;
    field.run(min(6 * 60));
    assert!(on(&field, "new").is_empty(), "{:#?}", on(&field, "new"));
}

/// The same by the name of its Node, where servers are called otherwise (`kubectl get nodes` is where people have names from).
/// They install the machine once more, under another host name, and are not done with it when its kubelet stops.
#[test]
fn paused_machine_installed_under_another_name_stays_paused() {
    let mut found = Vec::new();
    for links in ["uuid", "provider"] {
        let mut field = fleets::led_by(links, 12, roster());
        field.instances.values_mut().for_each(|its| its.name = format!("vm-{}", its.id).as_str().into());
        field.run(min(20));
        pause(&mut field, "node-i004");
        field.run(min(2));
        let mut its = field.nodes.remove(ONE).unwrap();
        field.run(min(5));
        (its.name, its.uid, its.boot_id) = ("node-b".into(), "uid-b".into(), Some("b".into()));
        if links == "uuid" {
            its.provider = Provider::Unread("k3s://node-b".into());
        }
        field.nodes.insert(ONE.into(), its);
        field.run(min(30));
        let before = made(&field);
        set(&mut field, ONE, Ready::Unknown);
        field.deaf = true;
        field.run(min(4 * 60));
        found.push((links, before, on(&field, ONE)));
    }
    assert!(found.iter().all(|(.., calls)| calls.is_empty()), "{found:#?}");
}

/// Bare metal or k3s on it: Nodes lead to their machines by address. The host of `i004` is dead, and a person locked it. Another
/// machine has had its host name, and its Node, for three hours. Reveille is upgraded while the cloud lists that machine without
/// its addresses (https://bugs.launchpad.net/nova/+bug/1751923, as in `successor_that_is_listed_without_addresses_is_left_alone`),
/// or while its kubelet shows addresses of others beside its own (keepalived, kube-vip, a second interface). Later a person
/// reboots it for a new kernel, which takes four minutes.
#[test]
fn successor_keeps_its_node_over_a_restart_and_may_reboot() {
    let mut found = Vec::new();
    for state in [InstanceState::Stopped, InstanceState::Active] {
        for shown in ["its own address", "none in the cloud", "addresses of four others as well"] {
            let mut field = fleets::fleet("address", 12, roster());
            field.run(min(20));
            let its = field.instances.get_mut(ONE).unwrap();
            (its.locked, its.state) = (true, state);
            set(&mut field, ONE, Ready::Unknown);
            field.run(min(2));
            fleets::comes(&mut field, "address", "new", "vm-new");
            let new = field.nodes.remove("new").unwrap();
            let others: Vec<_> = (0..4).map(|it| field.ports[&format!("i{it:03}")].addresses[0]).collect();
            let its = field.nodes.get_mut(ONE).unwrap();
            (its.system_uuid, its.addresses) = (new.system_uuid, new.addresses);
            (its.boot_id, its.ready) = (Some("another".into()), Ready::True);
            field.run(min(3 * 60));
            assert!(made(&field).is_empty());
            if shown == "addresses of four others as well" {
                let its = field.nodes.get_mut(ONE).unwrap();
                its.addresses = its.addresses.iter().copied().chain(others).collect();
                field.run(min(30));
            }
            let unlisted = shown == "none in the cloud";
            if unlisted {
                field.instances.get_mut("new").unwrap().addresses = Box::new([]);
            }
            field = off(field, Span::from_s(30), roster());
            field.ledger = super::next_process::Ledger::unknown();
            field.unaddressed.extend(unlisted.then(|| "new".to_owned()));
            field.run(min(20));
            let before = made(&field);
            field.deaf = true;
            set(&mut field, ONE, Ready::Unknown);
            field.run(min(4));
            found.push((state, shown, before, on(&field, "new")));
        }
    }
    assert!(found.iter().all(|(.., calls)| calls.is_empty()), "(old, shown, before, calls): {found:#?}");
}

/// Two pools. The add-on of the GPU nodes is broken for days (its image cannot be pulled), so that all of them keep their startup
/// taint and are Ready all the time (`startupTaints` of docs/reference/roster.md; a person has to mend the add-on, and nothing is
/// done to them). A worker dies. docs/SAFETY.md, "Outages and freezes": "a machine whose Node is Ready is not away, whatever else
/// is wrong with it".
#[test]
fn ready_machines_with_a_startup_taint_freeze_nothing() {
    const TAINT: &str = "nvidia.com/driver-not-ready";
    let mut both = roster();
    let mut gpu = both.pools.values().next().unwrap().clone();
    gpu.name = "gpu".into();
    gpu.owned.pool = Some(Mark::Tag("k8s-pool=gpu".into()));
    gpu.startup_taints = vec![TAINT.into()];
    both.pools.insert(gpu.name.clone(), gpu);
    let mut found = Vec::new();
    for tainted in [0, 5] {
        let mut field = Field::new(both.clone()).populate(12);
        for number in 0..5 {
            let id = format!("i{number:03}");
            let marks = [Mark::Tag("k8s-cluster=prod".into()), Mark::Tag("k8s-pool=gpu".into())];
            field.instances.get_mut(&id).unwrap().marks = Arc::new(marks.into());
            if number < tainted {
                field.nodes.get_mut(&id).unwrap().taints = Box::new([TAINT.into()]);
            }
        }
        field.run(min(60));
        set(&mut field, "i008", Ready::Unknown);
        field.deaf = true;
        field.run(min(24 * 60));
        found.push((tainted, made(&field), field.held("i008", FaultKind::NotReady)));
    }
    assert!(found.iter().all(|(_, calls, _)| !calls.is_empty()), "{found:#?}");
}

/// A machine is off. A person puts the taint on its Node by which Kubernetes lets a person say just that ("Non-graceful node
/// shutdown", kubernetes.io/docs/concepts/cluster-administration/node-shutdown: the pods are deleted by force, their volumes
/// are detached at once, the node must not be in the middle of restarting, and the person takes the taint off by hand once the
/// node is recovered). Nothing is to start or to reboot it meanwhile.
#[test]
fn machine_that_a_person_declared_out_of_service_is_left_alone() {
    let mut found = Vec::new();
    let off = [InstanceState::Stopped, InstanceState::Active];
    let taints = [
        "node.kubernetes.io/out-of-service",
        "remediation.medik8s.io/fence-agents-remediation",
        "medik8s.io/fence-agents-remediation",
    ];
    for (state, taint) in off.into_iter().flat_map(|state| taints.map(|taint| (state, taint))) {
        let mut field = fleet();
        field.instances.get_mut(ONE).unwrap().state = state;
        set(&mut field, ONE, Ready::Unknown);
        field.run(min(1));
        let its = field.nodes.get_mut(ONE).unwrap();
        its.taints = Box::new([taint.into()]);
        its.intent = signs::read(&Default::default(), &[taint], false, true);
        field.deaf = true;
        field.run(min(4 * 60));
        found.push((state, taint, on(&field, ONE)));
    }
    assert!(found.iter().all(|(.., calls)| calls.is_empty()), "{found:#?}");
}

/// The same, and its cloud denies the machine meanwhile (a cell is down; nova, "handling down cells"). The Node is that person's.
#[test]
fn node_that_a_person_declared_out_of_service_is_not_cleaned_up() {
    let mut found = Vec::new();
    for taint in ["", "node.kubernetes.io/out-of-service"] {
        let mut field = fleet();
        field.instances.get_mut(ONE).unwrap().state = InstanceState::Stopped;
        set(&mut field, ONE, Ready::Unknown);
        field.run(min(1));
        if !taint.is_empty() {
            let its = field.nodes.get_mut(ONE).unwrap();
            its.taints = Box::new([taint.into()]);
            its.intent = signs::read(&Default::default(), &[taint], false, true);
        }
        field.run(min(2));
        field.delete_machine(ONE);
        field.deaf = true;
        field.run(min(4 * 60));
        found.push((taint, made(&field).len()));
    }
    assert!(found[0].1 > 0 && found[1].1 == 0, "{found:#?}");
}
