//! EC2: machines that a person took out of their Auto Scaling group, and one that never was in a group.

use std::sync::Arc;

use reveille_core::model::hosting::{Check, Checks, GroupPhase, Hosting, OwnerGroup};
use reveille_core::model::instance::{InstanceState, Mark};
use reveille_core::model::node::Ready;
use reveille_core::model::time::Span;

use super::fixture::{Field, roster};
use super::fleets::ten as fleet;
use super::steps::{made, min, off, on, set, upgraded, without_rejoin};

const ONE: &str = "i004";

fn group(phase: GroupPhase, word: &str) -> Hosting {
    let group = OwnerGroup { name: "asg".into(), phase, word: word.into(), protected: false };
    Hosting { group: Some(group), ..Hosting::default() }
}

fn kept(field: &mut Field) {
    field.instances.get_mut(ONE).unwrap().hosting = Some(Arc::new(group(GroupPhase::Kept, "InService")));
}

/// As the adapter tells of one that runs, and that no group keeps.
fn alone() -> Option<Arc<Hosting>> {
    let checks = Checks { host: Check::Passed, guest: Check::Passed, disk: Check::Unknown };
    Some(Arc::new(Hosting { checks, ..Hosting::default() }))
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

/// The same, and the person stopped it, to take snapshots of its disks. Of an instance that is off, on demand, with disks that
/// stay, there is nothing to tell but that it is off: its checks are not made, and the tag of its group is gone.
#[test]
fn detached_machine_that_is_off_stays_so_over_a_restart() {
    let mut found = Vec::new();
    for rotated in [false, true] {
        let mut field = fleet();
        kept(&mut field);
        field.run(min(5));
        field.instances.get_mut(ONE).unwrap().hosting = alone();
        field.run(min(5));
        let its = field.instances.get_mut(ONE).unwrap();
        (its.state, its.hosting) = (InstanceState::Stopped, None);
        set(&mut field, ONE, Ready::Unknown);
        field.run(min(60));
        let before = on(&field, ONE);
        field = upgraded(field, roster(), rotated);
        field.deaf = true;
        field.run(min(4 * 60));
        found.push((rotated, before, on(&field, ONE)));
    }
    assert!(found.iter().all(|(_, a, b)| a.is_empty() && b.is_empty()), "{found:#?}");
}

/// The same while no process runs: that a group kept it the ledger alone knows.
#[test]
fn machine_detached_while_no_process_runs_is_left_alone() {
    let mut field = fleet();
    kept(&mut field);
    field.run(min(5));
    set(&mut field, ONE, Ready::Unknown);
    field.run(min(60));
    field.instances.get_mut(ONE).unwrap().hosting = alone();
    field = off(field, Span::from_s(30), roster());
    field.deaf = true;
    field.run(min(8 * 60));
    assert!(on(&field, ONE).is_empty(), "{:#?}", on(&field, ONE));
}

/// A machine that never was in a group. A person takes the pool's tag off, to have it to themselves, and puts it back while
/// Reveille is upgraded (docs/guides/operating.md: it gets the time of one boot then). No group is to be waited for.
#[test]
fn standalone_machine_with_restored_tag_is_repaired() {
    let mut found = Vec::new();
    for hosting in [None, alone()] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.instances.values_mut().for_each(|its| its.hosting.clone_from(&hosting));
        field.run(min(20));
        let marks = field.instances[ONE].marks.clone();
        field.instances.get_mut(ONE).unwrap().marks = Arc::new([Mark::Tag("k8s-cluster=prod".into())].into());
        field.run(min(10));
        set(&mut field, ONE, Ready::Unknown);
        field.run(min(20));
        field.instances.get_mut(ONE).unwrap().marks = marks;
        field = field.restarted(without_rejoin());
        field.run(min(8 * 60));
        found.push((hosting.is_some(), made(&field)));
    }
    assert!(found.iter().all(|(_, calls)| !calls.is_empty()), "{found:#?}");
}
