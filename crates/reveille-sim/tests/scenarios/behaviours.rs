//! What Kubernikus' flight control does (b…), each as a scenario, with what must happen here instead or as well.
//!
//! Tables of rule spellings, of ports and of groups by name stand beside the functions that answer them, in
//! `reveille_core::diagnose::network`.

use reveille_core::decide;
use reveille_core::effect::{Call, ReadErrorKind};
use reveille_core::model::id::InstanceId;
use reveille_core::model::incident::{FaultKind, IncidentKey};
use reveille_core::model::roster::Mode;
use reveille_core::record::Record;
use reveille_core::remedies::AddRules;
use reveille_sim::world::fault::{CallLie, Fault};
use reveille_sim::world::layout::{GROUP, Layout};
use reveille_sim::world::vm::Trouble;

use crate::field::*;

pub fn groups(field: &Field, id: &InstanceId) -> Vec<Vec<String>> {
    let machine = field.0.world.machines().into_iter().find(|machine| machine.id == *id).unwrap();
    machine.groups.iter().map(|port| port.iter().map(ToString::to_string).collect()).collect()
}

pub fn group_calls(field: &Field) -> usize {
    field.count(|call| matches!(call, Call::SetPortGroups(_)))
}

/// Upstream adds the wanted group to a running server that has others. Here too, and the others stay.
#[test]
fn b01_a_machine_with_other_groups_gets_the_one_it_lacks() {
    let mut layout = Layout::fleet(1, 4);
    layout.default_group = true;
    let mut field = Field::new(layout);
    let victim = field.machine(0);
    field.fault(Fault::GroupLost { machine: victim.clone(), slips: false });
    field.run(min(3));
    assert_eq!(groups(&field, &victim), [[GROUP, "default"]], "{}", field.tail());
    assert_eq!(group_calls(&field), 1);
    field.ends_well();
}

/// Upstream adds it to a server that has none at all, and touches no server that has it.
#[test]
fn b02_only_those_that_lack_the_group_are_touched() {
    let mut field = Field::new(Layout::fleet(2, 6));
    let bare = field.machine(2);
    field.fault(Fault::GroupLost { machine: bare.clone(), slips: false });
    field.run(min(3));
    let wrote = |call: &Call| matches!(call, Call::SetPortGroups(_));
    assert_eq!(field.count(wrote), 1);
    assert_eq!(groups(&field, &bare), [[GROUP]], "{}", field.tail());
    field.ends_well();
}

/// Upstream tries all even when one add fails, and reports only the accepted ones. Here the failed one is tried again.
#[test]
fn b03_a_failed_call_stops_no_other() {
    let mut field = Field::new(Layout::fleet(3, 6));
    let machines = field.machines();
    field.fault(Fault::Call(CallLie::Fails { retry_after: None }));
    for machine in &machines[..3] {
        field.fault(Fault::GroupLost { machine: machine.clone(), slips: false });
    }
    field.run(s(45));
    let mended = machines[..3].iter().filter(|id| groups(&field, id) == [[GROUP]]).count();
    assert_eq!(mended, 2, "{}", field.tail());
    field.run(min(4));
    assert_eq!(group_calls(&field), 4, "{}", field.tail());
    field.ends_well();
}

/// Upstream skips servers that do not run, and asks the server instead of its ports. Here each port is asked, and what is
/// accepted counts only when it was read back.
#[test]
fn b04_each_port_of_a_running_machine_is_asked_and_read_back() {
    let mut field = Field::new(Layout::fleet(4, 5).pool(|pool| pool.repair.reboot = Mode::Off));
    let (off, on) = (field.machine(0), field.machine(1));
    field.fault(Fault::ShutOff(off.clone()));
    field.fault_in(s(1), Fault::GroupLost { machine: off, slips: false });
    field.run(min(3));
    assert_eq!(group_calls(&field), 0, "a machine that is shut off is left alone\n{}", field.tail());
    field.fault(Fault::Call(CallLie::Ignored));
    field.fault(Fault::GroupLost { machine: on.clone(), slips: false });
    field.run(s(50));
    let attempts = field.case(&on, FaultKind::GroupMissing).expect("still open").incident.attempts.clone();
    assert!(attempts[0].ending.is_some() && attempts[0].readback.is_none(), "{attempts:?}");
    field.run(min(5));
    assert_eq!(groups(&field, &on), [[GROUP]], "{}", field.tail());
    field.clean();
}

/// Upstream deletes an old server without a Node, and keeps a young one and every one with a Node.
#[test]
fn b05_only_the_machine_that_never_joins_goes_at_its_deadline() {
    let mut field = Field::new(Layout::fleet(5, 5));
    let before = field.machines();
    field.fault(Fault::Launch { pool: workers(), trouble: Some(Trouble::NoNetwork) });
    field.run(min(14));
    let young = field.newcomer(&before).expect("it was made");
    assert_eq!(field.destructive(), 0, "{}", field.tail());
    field.run(min(6));
    assert!(!field.exists(&young), "{}", field.tail());
    assert!(before.iter().all(|id| field.exists(id)));
    assert_eq!((field.deletes(), field.reboots()), (1, 0));
    field.run(min(10));
    field.ends_well();
}

/// Upstream goes on after a delete that failed and does not report it as deleted. Here it is also tried again.
#[test]
fn b06_a_delete_that_fails_is_no_deletion_and_stops_no_other() {
    let mut field =
        Field::new(Layout::fleet(6, 8).limits(|limits| (limits.at_once, limits.per_hour) = (2, 8)));
    let (first, second) = (field.machine(0), field.machine(1));
    field.fault(Fault::Call(CallLie::Fails { retry_after: None }));
    field.fault(Fault::Errored(first.clone()));
    field.run(s(5));
    field.fault(Fault::Errored(second.clone()));
    field.run(min(20));
    assert!(!field.exists(&first) && !field.exists(&second), "{}", field.tail());
    assert_eq!(field.deletes(), 3, "{}", field.tail());
    field.run(min(10));
    field.ends_well();
}

/// Upstream deletes on an unsynced, emptied or shrunken Node source. Each of these here: nothing is deleted.
#[test]
fn b07_no_deletion_rests_on_a_doubtful_source() {
    let lies: [fn(&Field) -> Fault; 4] = [
        |_| Fault::NodesUnlisted(min(30)),
        |_| Fault::ApiSilent(min(30)),
        |_| Fault::ServersUnlisted { lasts: min(30), denies: true },
        |field| Fault::SomeUnlisted {
            machines: field.machines()[..4].to_vec(),
            lasts: min(30),
            denies: true,
        },
    ];
    for (number, lie) in lies.into_iter().enumerate() {
        let mut field = Field::new(Layout::fleet(7, 8));
        let ill = field.machine(7);
        field.fault(Fault::Breaks(ill, Trouble::Broken));
        let lie = lie(&field);
        field.fault_in(s(90), lie.clone());
        field.run(min(30));
        assert_eq!(field.destructive(), 0, "{number}: {lie}\n{}", field.tail());
        field.clean();
    }
}

/// Upstream matches by name. Here the provider ID decides, then the system UUID: a name that is reused is another
/// machine.
#[test]
fn b08_machines_are_told_apart_by_id_and_not_by_name() {
    let mut field = Field::new(Layout::fleet(8, 5));
    let original = field.machine(0);
    field.fault(Fault::NameTwin(original.clone()));
    field.run(min(40));
    let twin = field.machines().into_iter().find(|id| field.case(id, FaultKind::Duplicate).is_some());
    assert!(twin.is_some_and(|twin| twin != original), "{:?}\n{}", field.open(), field.tail());
    assert!(field.well(&original) && field.destructive() == 0);
    field.clean();
}

/// Upstream deletes every server in an error state, and no other; its fault is evidence here before it goes.
#[test]
fn b09_an_errored_machine_is_replaced_and_its_fault_is_kept() {
    let mut field = Field::new(Layout::fleet(9, 5));
    let victim = field.machine(3);
    field.fault(Fault::Errored(victim.clone()));
    field.run(min(10));
    assert!(!field.exists(&victim));
    assert_eq!(field.destructive(), 1);
    let quoted = |record: &Record| match record {
        Record::Diagnosed { findings, .. } => findings
            .iter()
            .flat_map(|f| &f.evidence)
            .any(|e| e.fact.to_string().contains("Live migration failed")),
        _ => false,
    };
    assert!(field.recorded(quoted) > 0, "{}", field.tail());
    field.ends_well();
}

/// Upstream skips an errored server that is being deleted. Here any task in its cloud means that another client works on it.
#[test]
fn b10_errored_machine_with_a_cloud_task_is_left_alone() {
    let mut field = Field::new(Layout::fleet(10, 5));
    let victim = field.machine(0);
    field.fault(Fault::Errored(victim.clone()));
    field.fault(Fault::Busy(victim.clone()));
    field.run(min(30));
    assert_eq!(field.destructive(), 0, "{}", field.tail());
    let why = field.held(&victim, FaultKind::Errored);
    assert!(why.contains("task rebuilding"), "{why}");
    field.clean();
}

/// Upstream makes sure of three rules, and makes nothing when the group's name is not unique.
#[test]
fn b11_missing_rules_are_added_once_and_only_to_the_one_group() {
    let mut field = Field::new(Layout::fleet(11, 4));
    field.fault(Fault::RulesLost);
    field.run(min(5));
    let added = field.calls().iter().find_map(|called| match &called.call {
        Call::AddRules(AddRules { rules, .. }) => Some(rules.len()),
        _ => None,
    });
    assert_eq!((added, field.calls().len()), (Some(3), 1), "{}", field.tail());
    field.ends_well();

    let mut field = Field::new(Layout::fleet(12, 4));
    field.fault(Fault::GroupTwin);
    field.run(min(1));
    field.fault(Fault::RulesLost);
    field.run(min(10));
    assert_eq!(field.calls(), [], "{}", field.tail());
    let told = |key: &&IncidentKey| key.kind == FaultKind::GroupUnresolved;
    assert_eq!(field.0.state().context().cases.keys().filter(told).count(), 1, "{:?}", field.open());
    field.clean();
}

/// Upstream runs its steps in order, a failed step stops none, and a failed snapshot stops all.
#[test]
fn b12_failed_listing_stops_all_steps_failed_step_stops_none() {
    let mut field = Field::new(Layout::fleet(13, 6).routed());
    let machines = field.machines();
    field.fault(Fault::CloudFails(ReadErrorKind::Unavailable, min(10)));
    field.fault(Fault::GroupLost { machine: machines[0].clone(), slips: false });
    field.fault(Fault::RulesLost);
    field.run(min(10));
    assert_eq!(field.calls(), [], "{}", field.tail());
    field.fault(Fault::Call(CallLie::Fails { retry_after: None }));
    field.run(min(8));
    assert!(field.calls().len() == 3, "{}", field.tail());
    field.ends_well();
}

/// Upstream decides inside its steps. Here a decision is a function of the context: asked twice, it is the same.
#[test]
fn b13_a_decision_is_a_function_of_what_is_known() {
    let mut field = Field::new(Layout::fleet(14, 8));
    for (index, trouble) in [(0, Trouble::KubeletHung), (1, Trouble::Broken), (2, Trouble::KubeletHung)] {
        field.fault(Fault::Breaks(field.machine(index), trouble));
    }
    for _ in 0..40 {
        field.run(s(30));
        let state = field.0.state();
        let copy = state.clone();
        for (key, case) in state.context().cases {
            let again = decide::decide(&copy.context(), &copy.context().cases[key]);
            assert_eq!(decide::decide(&state.context(), case), again, "{key:?}");
        }
    }
    field.clean();
}

/// Upstream's launch control picks a machine to remove when a pool shrinks. Here the controller never picks one: the owner
/// shrinks.
#[test]
fn b14_a_pool_that_shrinks_is_its_owners_business() {
    let mut field = Field::new(Layout::fleet(15, 6));
    let leaving = field.machine(0);
    field.fault(Fault::ScaledDown(leaving.clone()));
    field.run(min(30));
    assert!(!field.exists(&leaving));
    assert_eq!(field.calls(), [], "{}", field.tail());
    field.ends_well();
}
