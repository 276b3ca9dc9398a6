//! What Kubernikus' flight control does (b…), and what it gets wrong (d…), each as a scenario.
//!
//! Not here, because nothing here could go wrong in that way: an off-by-one in a list of tags to write (d15: no tag is
//! ever written; a machine that lacks one is told, below), a cast to a concrete cloud type (d16) and a user without roles
//! (d17): there is one type of instance, and no roles are managed. Tables of rule spellings, of ports and of groups by
//! name stand beside the functions that answer them, in `reveille_core::diagnose::network`.

use reveille_core::effect::{Call, ReadErrorKind};
use reveille_core::model::id::InstanceId;
use reveille_core::model::incident::{FaultKind, IncidentKey, Subject};
use reveille_core::model::roster::Mode;
use reveille_core::plan::decide;
use reveille_core::record::Record;
use reveille_sim::world::fault::{CallLie, Fault};
use reveille_sim::world::guest::Trouble;
use reveille_sim::world::layout::{CLOUD, GROUP, Layout};

use crate::field::*;

fn groups(field: &Field, id: &InstanceId) -> Vec<Vec<String>> {
    let machine = field.0.world.machines().into_iter().find(|machine| machine.id == *id).unwrap();
    machine.groups.iter().map(|port| port.iter().map(ToString::to_string).collect()).collect()
}

fn group_calls(field: &Field) -> usize {
    field.count(|call| matches!(call, Call::SetPortGroups { .. }))
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
    let wrote = |call: &Call| matches!(call, Call::SetPortGroups { .. });
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
    assert!(attempts[0].outcome.is_some() && attempts[0].verdict.is_none(), "{attempts:?}");
    field.run(min(5));
    assert_eq!(groups(&field, &on), [[GROUP]], "{}", field.tail());
    field.clean();
}

/// Upstream deletes an old server without a Node, and keeps a young one and every one with a Node.
#[test]
fn b05_a_machine_that_never_joins_goes_at_its_deadline_and_no_other() {
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
        Record::Diagnosed { findings, .. } => {
            findings.iter().flat_map(|f| &f.evidence).any(|e| e.text.contains("Live migration failed"))
        }
        _ => false,
    };
    assert!(field.recorded(quoted) > 0, "{}", field.tail());
    field.ends_well();
}

/// Upstream skips an errored server that is being deleted. Here any task in its cloud is somebody else at work.
#[test]
fn b10_an_errored_machine_that_somebody_works_on_is_left_to_them() {
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
        Call::AddRules { rules, .. } => Some(rules.len()),
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
    assert_eq!(field.0.state().desk().cases.keys().filter(told).count(), 1, "{:?}", field.open());
    field.clean();
}

/// Upstream runs its steps in order, a failed step stops none, and a failed snapshot stops all.
#[test]
fn b12_a_failed_listing_stops_everything_and_a_failed_step_nothing_else() {
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

/// Upstream decides inside its steps. Here a decision is a function of what lies on the desk: asked twice, it is the same.
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
        for (key, case) in state.desk().cases {
            let again = decide::decide(&copy.desk(), &copy.desk().cases[key]);
            assert_eq!(decide::decide(&state.desk(), case), again, "{key:?}");
        }
    }
    field.clean();
}

/// Upstream's launch control picks whom to remove when a pool shrinks. Here nobody is ever picked: the owner shrinks.
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

/// Upstream joins "old" and "unregistered" by name, so a new machine goes with its old namesake.
#[test]
fn d01_a_young_namesake_of_an_old_machine_keeps_its_own_time() {
    let mut field = Field::new(Layout::fleet(21, 5));
    let before = field.machines();
    field.fault(Fault::Launch { pool: workers(), trouble: Some(Trouble::NoNetwork) });
    field.run(min(12));
    let old = field.newcomer(&before).expect("it was made");
    field.fault(Fault::NameTwin(old.clone()));
    field.run(min(8));
    assert!(!field.exists(&old), "{}", field.tail());
    let young = field.newcomer(&before).expect("its namesake");
    assert!(field.exists(&young) && field.deletes() == 1, "{}", field.tail());
    field.clean();
}

/// Upstream never notices the second of two servers with one name and one Node. Here it is told, and nothing is done.
#[test]
fn d02_two_machines_of_one_name_and_one_node_are_told() {
    let mut field = Field::new(Layout::fleet(22, 5));
    field.fault(Fault::NameTwin(field.machine(0)));
    field.run(min(20));
    assert!(field.open().iter().any(|open| open.starts_with("duplicate")), "{:?}", field.open());
    assert_eq!(field.calls(), [], "{}", field.tail());
    field.clean();
}

/// Upstream deletes again at every pass and reports success at every pass. Here it is told once.
#[test]
fn d03_a_machine_that_does_not_go_is_told_once_and_not_deleted_again() {
    let mut field = Field::new(Layout::fleet(23, 5));
    let victim = field.machine(0);
    field.fault(Fault::StuckDeleting(victim.clone()));
    field.run(min(180));
    assert_eq!(field.calls(), [], "{}", field.tail());
    let told = |record: &Record| matches!(record, Record::Opened { key, .. } if key.kind == FaultKind::StuckDeleting);
    assert_eq!(field.recorded(told), 1, "{}", field.tail());
    let asks = field.next(&victim, FaultKind::StuckDeleting);
    assert!(asks.contains("another DELETE does nothing"), "{asks}");
    field.clean();
}

/// Upstream deletes a server that is shut off once its Node is gone. Here it is started, and never deleted.
#[test]
fn d04_a_machine_that_is_shut_off_is_started_and_not_deleted() {
    let mut field = Field::new(Layout::fleet(24, 5));
    let victim = field.machine(0);
    field.fault(Fault::ShutOff(victim.clone()));
    field.fault_in(s(5), Fault::NodeDeletedByPerson(victim.clone()));
    field.run(min(15));
    assert!(field.exists(&victim) && field.deletes() == 0);
    assert_eq!(field.count(|call| matches!(call, Call::Start { .. })), 1, "{}", field.tail());
    field.run(min(10));
    field.ends_well();
}

/// Upstream deletes a healthy old server at the pass after its Node was deleted. Here the cheapest rung is offered first,
/// and it is given its full grace.
#[test]
fn d05_a_healthy_machine_whose_node_was_deleted_is_not_deleted() {
    for fault in [Fault::NodeDeletedByController, Fault::NodeDeletedByPerson] {
        let mut field = Field::new(Layout::fleet(25, 5));
        let victim = field.machine(0);
        field.fault(fault(victim.clone()));
        field.run(s(110));
        assert_eq!(field.calls(), [], "{}", field.tail());
        field.run(min(1));
        let case = field.case(&victim, FaultKind::Vanished).expect("vanished, not never joined");
        let said = case.incident.findings[0].evidence.iter().any(|e| e.text.contains("Removing Node"));
        assert!(said, "the event is quoted: {:?}", case.incident.findings);
        assert!(field.next(&victim, FaultKind::Vanished).contains("Rejoin"), "{}", field.tail());
        field.0.world.schedule_kubelet_restart(field.0.now(), &victim);
        field.run(min(5));
        assert_eq!(field.calls(), []);
        field.ends_well();
    }
}

/// Upstream deleted 100 of 100 machines in 87 ms on an empty node list. Here none, and the reason is there to read.
#[test]
fn d06_an_empty_node_list_deletes_none_of_a_hundred() {
    let mut field = Field::new(Layout::fleet(26, 100));
    field.fault(Fault::NodesUnlisted(min(60)));
    field.run(min(60));
    assert_eq!(field.calls(), [], "{}", field.tail());
    let doubt = field.0.state().desk().cluster.source.doubted().expect("it is doubted").why.clone();
    assert!(doubt.contains("empty beside 100 running"), "{doubt}");
    assert_eq!(field.machines().len(), 100);
    field.run(min(15));
    field.ends_well();
}

/// Upstream's route collector takes all pod routes out when the server list is falsely empty. Here no route is touched.
#[test]
fn d07_an_empty_server_list_costs_no_machine_and_no_route() {
    for denies in [true, false] {
        let mut field = Field::new(Layout::fleet(27, 12).routed());
        field.fault(Fault::ServersUnlisted { lasts: min(40), denies });
        field.run(min(60));
        assert_eq!(field.calls(), [], "denies: {denies}\n{}", field.tail());
        field.ends_well();
    }
}

/// Upstream claims machines by name prefix and deletes those of a neighbour. Here the mark decides.
#[test]
fn d08_a_neighbours_machines_are_never_touched() {
    let mut layout = Layout::fleet(28, 5);
    layout.neighbours = 9;
    let mut field = Field::new(layout);
    field.run(min(120));
    assert_eq!(field.calls(), [], "{}", field.tail());
    assert_eq!(field.0.world.machines().len(), 14);
    field.ends_well();
}

/// Upstream replaces what a listing omits while a cell is down. Here an omission is asked for by id, and an error is no
/// answer.
#[test]
fn d09_machines_of_a_cell_that_is_down_are_not_gone() {
    for count in [1, 5] {
        let mut field = Field::new(Layout::fleet(29, 12).routed());
        let machines = field.machines()[..count].to_vec();
        field.fault(Fault::SomeUnlisted { machines, lasts: min(45), denies: false });
        field.run(min(60));
        assert_eq!(field.calls(), [], "{count}\n{}", field.tail());
        field.ends_well();
    }
}

/// Upstream keeps a Node that was deleted between list and watch. Here a list after each gap is compared as a whole.
#[test]
fn d10_a_deletion_that_the_watch_missed_is_found_by_the_next_list() {
    let mut field = Field::new(Layout::fleet(30, 6));
    let victim = field.machine(0);
    field.fault(Fault::ApiSilent(s(50)));
    field.fault_in(s(20), Fault::NodeDeletedByPerson(victim.clone()));
    field.run(min(1));
    assert!(field.case(&victim, FaultKind::Vanished).is_some(), "{:?}\n{}", field.open(), field.tail());
    field.clean();
}

/// Upstream fails at every pass, with a log line, when two groups have the name. Here that is an incident of its own, and
/// nothing is written by a name that may mean another.
#[test]
fn d11_a_group_whose_name_is_not_unique_is_told_and_not_used() {
    let mut field = Field::new(Layout::fleet(31, 5));
    field.fault(Fault::GroupTwin);
    field.fault_in(min(1), Fault::GroupLost { machine: field.machine(0), slips: false });
    field.run(min(20));
    let named = IncidentKey {
        subject: Subject::Group(CLOUD.into(), "k8s-nodes".into()),
        kind: FaultKind::GroupUnresolved,
    };
    assert!(field.0.state().desk().cases.contains_key(&named), "{:?}", field.open());
    assert_eq!(group_calls(&field), 0, "{}", field.tail());
    field.clean();
}

/// Upstream adds redundant rules beside one that allows more, and fails on other spellings. Here meaning counts.
#[test]
fn d12_a_wider_rule_is_good_enough() {
    let mut field = Field::new(Layout::fleet(32, 4));
    field.fault(Fault::RulesWidened);
    field.run(min(10));
    assert_eq!(field.calls(), [], "{}", field.tail());
    assert_eq!(field.open(), Vec::<String>::new());
    field.clean();
}

/// Upstream looks at the union over a server's ports, so one good port hides a bare one.
#[test]
fn d13_a_bare_port_does_not_hide_behind_a_good_one() {
    let mut field = Field::new(Layout::fleet(33, 4));
    let victim = field.machine(0);
    field.fault(Fault::SecondPort(victim.clone()));
    field.run(min(4));
    assert_eq!(group_calls(&field), 1, "{}", field.tail());
    assert!(groups(&field, &victim).iter().all(|port| port.iter().any(|g| g == GROUP)), "{}", field.tail());
    assert!(
        groups(&field, &victim).iter().any(|port| port.iter().any(|g| g == "default")),
        "none was taken away"
    );
    field.ends_well();
}

/// Upstream gets a 400 at every pass from a port without port security. Here it is told once and never tried.
#[test]
fn d14_a_port_that_takes_no_group_is_told_and_never_tried() {
    let mut field = Field::new(Layout::fleet(34, 4));
    let victim = field.machine(0);
    field.fault(Fault::PortSecurityOff(victim.clone()));
    field.run(min(4));
    assert!(field.case(&victim, FaultKind::GroupMissing).is_some(), "{:?}", field.open());
    assert_eq!(group_calls(&field), 0, "{}", field.tail());
    field.clean();
}

/// Upstream adds a missing tag and does not report it. Here marks are proof of ownership, so nobody writes them: a machine
/// that lost its pool's is told, and not touched any more.
#[test]
fn d15_a_machine_that_lost_a_mark_is_told_and_not_touched() {
    let mut field = Field::new(Layout::fleet(35, 6));
    let victim = field.machine(0);
    field.fault(Fault::Unmarked(victim.clone()));
    field.run(min(1));
    field.fault(Fault::Errored(victim.clone()));
    field.run(min(30));
    assert!(field.case(&victim, FaultKind::Stray).is_some(), "{:?}", field.open());
    assert_eq!(field.calls(), [], "{}", field.tail());
    field.clean();
}

/// Upstream creates and deletes for ever when every new machine is broken. Here three in vain are enough.
#[test]
fn d18_replacing_stops_when_every_successor_is_broken_too() {
    let limits = |limits: &mut reveille_core::model::roster::Limits| limits.per_hour = 20;
    for trouble in [Trouble::BuildFails, Trouble::NoNetwork, Trouble::Broken] {
        let mut field = Field::new(Layout::fleet(36, 6).limits(limits));
        field.fault(Fault::BadImage(workers(), Some(trouble)));
        field.fault(Fault::ForeignDelete(field.machine(0)));
        field.run(min(8 * 60));
        assert!(
            (1..=3).contains(&field.deletes()),
            "{trouble:?}: {} deletions\n{}",
            field.deletes(),
            field.tail()
        );
        let late = field.calls().iter().filter(|called| field.0.now().since(called.at) < min(180));
        assert_eq!(
            late.filter(|called| called.call.is_destructive()).count(),
            0,
            "{trouble:?}\n{}",
            field.tail()
        );
        if trouble == Trouble::BuildFails {
            let last = field.machines().into_iter().find(|id| field.case(id, FaultKind::Errored).is_some());
            let why = field.held(&last.expect("one stays, as evidence"), FaultKind::Errored);
            assert!(why.contains("deleted for the same fault") && why.contains("No valid host"), "{why}");
        }
        field.clean();
    }
}
