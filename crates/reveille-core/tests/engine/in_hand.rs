//! Machines that people have in hand, and what they do to them meanwhile: rename, install once more, detach, drain in a gap. Each
//! story says what the real service does, and where that is documented.

use std::sync::Arc;

use reveille_core::event::{Command, Event, Pause, PauseScope};
use reveille_core::model::hosting::{GroupPhase, Hosting, OwnerGroup};
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::{InstanceState, Mark};
use reveille_core::model::node::{Provider, Ready};
use reveille_core::model::signs;
use reveille_core::model::time::Span;

use super::fixture::{Field, roster};
use super::fleets;
use super::steps::{api_down, made, min, off, on, say, set};

const ONE: &str = "i004";

fn fleet() -> Field {
    let mut field = Field::new(roster()).populate(10);
    field.run(min(20));
    field
}

fn group(phase: GroupPhase, word: &str) -> Hosting {
    let group = OwnerGroup { name: "asg".into(), phase, word: word.into(), protected: false };
    Hosting { group: Some(group), ..Hosting::default() }
}

fn pause(field: &mut Field, name: &str) {
    let pause = Pause { scope: PauseScope::Machine(name.into()), by: "erin".into(), reason: "mine".into() };
    field.feed(Event::Command(Command::Pauses([pause].into())));
}

/// A machine does not join. A person pauses it by the name of its server (`reveille pause NAME`: "nothing to it"), and renames
/// the server while they look at it, as people do (`openstack server set --name w-7-debug w-7`; Nova API, "Update Server"). The
/// pause stands as a word, and names no machine any more.
#[test]
fn paused_machine_whose_server_is_renamed_stays_paused() {
    let mut found = Vec::new();
    for renamed in [false, true] {
        let mut field = fleet();
        field.add_machine("new", false);
        field.run(min(2));
        pause(&mut field, "node-new");
        field.run(min(2));
        if renamed {
            field.instances.get_mut("new").unwrap().name = "debug-new".into();
        }
        field.run(min(4 * 60));
        found.push((renamed, on(&field, "new")));
    }
    assert!(found.iter().all(|(_, calls)| calls.is_empty()), "{found:#?}");
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

/// EC2. A machine of an Auto Scaling group is not Ready. A person detaches it from its group, to look at it without the group
/// replacing it under their hands (EC2 Auto Scaling User Guide, "Detach instances from your Auto Scaling group": the instance
/// goes on running, is managed independently of the group, and `aws:autoscaling:groupName` is taken off it; its other tags
/// stay). "Detaching" lasts for seconds, so that a listing may show it or not. While its group kept it, it was rebooted softly
/// at most. From then on nothing holds a stop and start, or its end.
#[test]
fn machine_that_a_person_detached_from_its_group_is_left_alone() {
    let mut found = Vec::new();
    for seen_detaching in [true, false] {
        let mut field = fleet();
        field.instances.get_mut(ONE).unwrap().hosting = Some(Arc::new(group(GroupPhase::Kept, "InService")));
        field.run(min(5));
        set(&mut field, ONE, Ready::Unknown);
        field.run(min(60));
        let before = made(&field);
        if seen_detaching {
            field.instances.get_mut(ONE).unwrap().hosting =
                Some(Arc::new(group(GroupPhase::Apart, "Detaching")));
            field.run(min(1));
        }
        field.instances.get_mut(ONE).unwrap().hosting = Some(Arc::new(Hosting::default()));
        field.run(min(8 * 60));
        found.push((seen_detaching, before.clone(), made(&field)[before.len()..].to_vec()));
    }
    assert!(found.iter().all(|(.., after)| after.is_empty()), "{found:#?}");
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

/// Bare metal, or k3s where neither the UUID nor the name of a Node is its server's: Nodes lead to their machines by address. A
/// new machine joins, is Ready and renews its lease. Nova's network cache of it is empty from its build on, for some hours
/// (https://bugs.launchpad.net/nova/+bug/1751923: `addresses` of the server is `{}`), while Neutron lists its port, with the very
/// address that its Node shows.
#[test]
fn new_machine_whose_address_only_its_port_tells_serves_on() {
    let mut found = Vec::new();
    for lasts in [min(0), min(8 * 60)] {
        let mut field = fleets::fleet("address", 12, roster());
        field.run(min(20));
        fleets::comes(&mut field, "address", "new", "vm-new");
        if lasts > min(0) {
            field.unaddressed = vec!["new".to_owned()];
            field.instances.get_mut("new").unwrap().addresses = Box::new([]);
        }
        field.deaf = true;
        field.run(min(8 * 60));
        found.push((lasts, made(&field)));
    }
    assert!(found.iter().all(|(_, calls)| calls.is_empty()), "{found:#?}");
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
    for state in [InstanceState::Stopped, InstanceState::Active] {
        let mut field = fleet();
        field.instances.get_mut(ONE).unwrap().state = state;
        set(&mut field, ONE, Ready::Unknown);
        field.run(min(1));
        let taint = "node.kubernetes.io/out-of-service";
        let its = field.nodes.get_mut(ONE).unwrap();
        its.taints = Box::new([taint.into()]);
        its.intent = signs::read(&Default::default(), &[taint], false, true);
        field.deaf = true;
        field.run(min(4 * 60));
        found.push((state, on(&field, ONE)));
    }
    assert!(found.iter().all(|(_, calls)| calls.is_empty()), "{found:#?}");
}
