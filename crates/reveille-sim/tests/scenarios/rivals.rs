//! Models of other programs in the engine's place: the same world, the same faults, other acts.

use reveille_core::effect::{Call, Effect};
use reveille_core::event::{Pause, PauseScope};
use reveille_core::model::id::{Fence, InstanceId, IntentId};
use reveille_core::model::instance::Mark;
use reveille_core::model::roster::Ownership;
use reveille_core::remedies::{DeleteInstance, Reboot};
use reveille_sim::chaos::{Rate, ScenarioRun};
use reveille_sim::drive::Drive;
use reveille_sim::policy::Policy;
use reveille_sim::world::fault::Fault;
use reveille_sim::world::layout::{CLOUD, Layout};
use reveille_sim::world::vm::Trouble;
use reveille_sim::world::{Lesser, Wrong};

use crate::field::*;

/// What the world tells of its own faults does not depend on who decides.
#[test]
fn every_policy_meets_the_same_faults_at_the_same_moments() {
    let scenario_run = ScenarioRun::random(3, Rate { machines: 12, length: min(60), ..Rate::default() });
    let told = |policy: Policy| {
        let mut drive = scenario_run.stage();
        drive.hand_to(policy);
        assert_eq!(drive.policy(), policy);
        drive.run_for(scenario_run.length);
        let over = |line: &&str| line.contains("that is over") || line.contains("the process: ");
        drive.log().lines().filter(over).map(str::to_owned).collect::<Vec<_>>()
    };
    let with_the_engine = told(Policy::Reveille);
    assert!(with_the_engine.len() > 2, "{with_the_engine:?}");
    assert_eq!(with_the_engine, told(Policy::NoAction));
}

/// The engine sleeps while a model decides: no step, no record, no call of it.
#[test]
fn the_engine_sleeps_while_another_decides() {
    let scenario_run = ScenarioRun::random(4, Rate { machines: 12, length: min(60), ..Rate::default() });
    let mut drive = scenario_run.stage();
    drive.hand_to(Policy::NoAction);
    drive.run_for(scenario_run.length);
    let counts = drive.counts();
    assert_eq!((counts.steps, counts.records, counts.calls, counts.looks), (0, 0, 0, 0));
    assert_eq!(drive.world.calls(), []);
    assert!(!drive.world.all_is_well(), "no policy repairs the machine");
}

/// The destructive acts of a policy, and those that were wrong.
fn acts(policy: Policy, stage: impl Fn() -> Drive, for_min: i64) -> (usize, Vec<Wrong>) {
    let mut drive = stage();
    drive.hand_to(policy);
    drive.run_for(min(for_min));
    let acts = drive.world.acts();
    (acts.len(), acts.iter().filter_map(|act| act.wrong).collect())
}

/// Measured at the original: 100 of 100 deleted on one empty node list. Its model does the same, and so does one that believes
/// lists as it does; the engine deletes none.
#[test]
fn empty_node_list_harms_100_in_flight_control_none_in_reveille() {
    let stage = || {
        let mut drive = Drive::new(&Layout::fleet(1, 100));
        drive.fault_in(min(5), Fault::NodesUnlisted(min(10)));
        drive
    };
    let all = || (100, vec![Wrong::Healthy; 100]);
    for (policy, expected) in [
        (Policy::FlightControl, all()),
        (Policy::MachineHealthCheck, all()),
        (Policy::Karpenter, (0, vec![])),
        (Policy::MagnumAutoHealer, (0, vec![])),
        (Policy::Reveille, (0, vec![])),
    ] {
        assert_eq!(acts(policy, stage, 20), expected, "{policy}");
    }
}

/// Measured at the original: it deletes the servers of a cluster whose names begin as its own. The model deletes the
/// errored ones at once and the others when they are old enough; the engine knows whose they are.
#[test]
fn neighbour_of_a_like_name_is_deleted_only_by_flight_control() {
    let stage = || {
        let mut layout = Layout::fleet(1, 6);
        layout.neighbours = 4;
        Drive::new(&layout)
    };
    for policy in Policy::ALL {
        let lost = if *policy == Policy::FlightControl { 4 } else { 0 };
        assert_eq!(acts(*policy, stage, 60), (lost, vec![Wrong::NotOurs; lost]), "{policy}");
    }
}

/// One call on one machine, and what the judge says of it.
fn verdict(
    prepare: &dyn Fn(&mut Drive, &InstanceId),
    call: &dyn Fn(InstanceId) -> Call,
) -> Vec<Option<Wrong>> {
    let mut layout = Layout::fleet(1, 6);
    layout.neighbours = 1;
    let mut drive = Drive::new(&layout);
    drive.hand_to(Policy::NoAction);
    drive.run_for(min(5));
    let id = drive.world.machines().into_iter().find(|machine| machine.pool.is_some()).unwrap().id;
    prepare(&mut drive, &id);
    drive.run_for(min(3));
    let call = Effect::Call { intent: IntentId(1), fence: Fence(1), call: call(id) };
    drive.world.perform(drive.now(), &call);
    drive.run_for(s(2));
    drive.world.acts().iter().map(|act| act.wrong).collect()
}

fn owned() -> Ownership {
    Ownership::of_cluster(Mark::Tag("k8s-cluster=prod".into()))
}

#[test]
fn what_a_wrong_act_is_follows_from_the_truth() {
    type Prepare = Box<dyn Fn(&mut Drive, &InstanceId)>;
    let delete = |instance: InstanceId| {
        Call::DeleteInstance(DeleteInstance { cloud: CLOUD.into(), instance, owned: owned(), rests_on: None })
    };
    let reboot = |instance: InstanceId| {
        Call::Reboot(Reboot { cloud: CLOUD.into(), instance, hard: false, owned: owned() })
    };
    let fault = |make: fn(InstanceId) -> Fault| -> Prepare {
        Box::new(move |drive: &mut Drive, id: &InstanceId| drive.fault(make(id.clone())))
    };
    let paused: Prepare = Box::new(|drive, id| {
        drive.fault(Fault::Breaks(id.clone(), Trouble::Broken));
        let scope = PauseScope::Machine(id.shared());
        drive.set_pauses([Pause { scope, by: "erin".into(), reason: "mine".into() }].into());
    });
    let unlisted: Prepare = Box::new(|drive, id| {
        drive.fault(Fault::Breaks(id.clone(), Trouble::Broken));
        drive.fault(Fault::NodesUnlisted(min(30)));
    });
    let zone: Prepare = Box::new(|drive, _| {
        for zone in ["nova-a", "nova-b", "nova-c"] {
            drive.fault(Fault::ZoneDark(zone.into(), min(30)));
        }
    });
    let fine: Prepare = Box::new(|_, _| {});
    let lost = |id| Fault::GroupLost { machine: id, slips: false };
    let slips = |id| Fault::GroupLost { machine: id, slips: true };
    let hung = |id| Fault::Breaks(id, Trouble::KubeletHung);
    let broken = |id| Fault::Breaks(id, Trouble::Broken);
    let (waiting, network) = (Wrong::Lesser(Lesser::Waiting), Wrong::Lesser(Lesser::Network));
    let (start, restart) = (Wrong::Lesser(Lesser::Start), Wrong::Lesser(Lesser::Reboot));
    for (what, prepare, on_delete, on_reboot) in [
        ("well", fine, vec![Some(Wrong::Healthy)], vec![Some(Wrong::Healthy)]),
        ("hung", fault(hung), vec![Some(restart)], vec![None]),
        ("broken", fault(broken), vec![None], vec![None]),
        ("no group", fault(lost), vec![Some(network)], vec![Some(network)]),
        ("no group will hold", fault(slips), vec![None], vec![None]),
        ("its node was deleted", fault(Fault::NodeDeletedByController), vec![Some(restart)], vec![None]),
        ("errored; a reboot is refused", fault(Fault::Errored), vec![None], vec![]),
        ("shut off; a reboot is refused", fault(Fault::ShutOff), vec![Some(start)], vec![]),
        ("cut off", zone, vec![Some(waiting)], vec![Some(waiting)]),
        ("broken and paused", paused, vec![Some(Wrong::HandsOff)], vec![Some(Wrong::HandsOff)]),
        ("broken and unlisted", unlisted, vec![Some(Wrong::FalseReading)], vec![None]),
        ("being deleted already", fault(Fault::StuckDeleting), vec![], vec![]),
    ] {
        assert_eq!(verdict(&*prepare, &delete), on_delete, "delete: {what}");
        assert_eq!(verdict(&*prepare, &reboot), on_reboot, "reboot: {what}");
    }
}

/// In an outage one try is no wrong, more of them within ten minutes are; and a bad image is tried twice.
#[test]
fn a_stampede_and_a_hopeless_replacement_are_wrong() {
    let stage = |image: bool| {
        let mut drive = Drive::new(&Layout::fleet(1, 6));
        drive.hand_to(Policy::NoAction);
        let ids: Vec<InstanceId> = drive.world.machines().into_iter().map(|machine| machine.id).collect();
        if image {
            drive.fault(Fault::BadImage(workers(), Some(Trouble::Broken)));
        }
        for id in &ids[..4] {
            drive.fault(Fault::Breaks(id.clone(), Trouble::Broken));
        }
        drive.run_for(min(3));
        for id in &ids[..4] {
            let call = Call::DeleteInstance(DeleteInstance {
                cloud: CLOUD.into(),
                instance: id.clone(),
                owned: owned(),
                rests_on: None,
            });
            let effect = Effect::Call { intent: IntentId(1), fence: Fence(1), call };
            drive.world.perform(drive.now(), &effect);
            drive.run_for(if image { min(11) } else { min(1) });
        }
        drive.world.acts().iter().map(|act| act.wrong).collect::<Vec<_>>()
    };
    let more = Some(Wrong::Stampede);
    assert_eq!(stage(false)[..2], [None, more]);
    assert_eq!(stage(true), [None, None, Some(Wrong::Hopeless), Some(Wrong::Hopeless)]);
}
