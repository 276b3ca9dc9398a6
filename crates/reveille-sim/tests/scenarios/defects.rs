//! What Kubernikus' flight control gets wrong (d…), each as a scenario with what must happen here.
//!
//! Not here, because nothing here could go wrong in that way: an off-by-one in a list of tags to write (d15: no tag is
//! ever written; a machine that lacks one is told, below), a cast to a concrete cloud type (d16) and a user without roles
//! (d17): there is one type of instance, and no roles are managed.

use reveille_core::effect::{Call, Outcome};
use reveille_core::model::incident::{FaultKind, IncidentKey, Subject};
use reveille_core::record::Record;
use reveille_sim::world::Called;
use reveille_sim::world::fault::Fault;
use reveille_sim::world::layout::{CLOUD, GROUP, Layout};
use reveille_sim::world::vm::Trouble;

use crate::behaviours::{group_calls, groups};
use crate::field::*;

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
fn d03_machine_stuck_deleting_is_reported_once_and_left_alone() {
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
    assert_eq!(field.count(|call| matches!(call, Call::Start(_))), 1, "{}", field.tail());
    field.run(min(10));
    field.ends_well();
}

/// Upstream deletes a healthy old server at the pass after its Node was deleted. Here the cheapest repair step is offered first,
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
        let said =
            case.incident.findings[0].evidence.iter().any(|e| e.fact.to_string().contains("Removing Node"));
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
    let doubt = field.0.state().context().cluster.source.doubted().expect("it is doubted").why.clone();
    assert!(doubt.contains("empty beside 100 running"), "{doubt}");
    assert_eq!(field.machines().len(), 100);
    field.run(min(15));
    field.ends_well();
}

/// Upstream's route collector takes all pod routes out when the server list is falsely empty. Here no route is touched.
#[test]
fn d07_an_empty_server_list_costs_no_machine_and_no_route() {
    for lie in [
        Fault::ServersUnlisted { lasts: min(40), denies: true },
        Fault::ServersUnlisted { lasts: min(40), denies: false },
        Fault::AnotherProject(min(40)),
        Fault::PortsUnlisted(min(40)),
    ] {
        let mut field = Field::new(Layout::fleet(27, 12).routed());
        field.fault(lie.clone());
        field.run(min(60));
        assert_eq!(field.calls(), [], "{lie}\n{}", field.tail());
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
fn d10_deletion_missed_by_the_watch_is_found_by_the_next_list() {
    let mut field = Field::new(Layout::fleet(30, 6));
    let victim = field.machine(0);
    field.fault(Fault::ApiSilent(s(50)));
    field.fault_in(s(20), Fault::NodeDeletedByPerson(victim.clone()));
    // A cloud controller's word that it was no drain may come for half a minute.
    field.run(min(2));
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
    assert!(field.0.state().context().cases.contains_key(&named), "{:?}", field.open());
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

/// Upstream adds a missing tag and does not report it. Here marks are proof of ownership, so the controller writes none. A
/// machine that lost its pool's mark is reported, and not touched any more.
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

/// A tag is no change of a server to Nova: until the next full listing the engine takes the machine for the pool's.
#[test]
fn machine_unmarked_between_listings_is_not_touched() {
    let mut field = Field::new(Layout::fleet(37, 6));
    let victim = field.machine(0);
    field.fault(Fault::Breaks(victim.clone(), Trouble::Broken));
    field.fault_in(min(1), Fault::Unmarked(victim.clone()));
    field.run(min(120));
    assert!(field.exists(&victim), "{}", field.tail());
    let done = |called: &&Called| matches!(called.outcome, Outcome::Accepted { .. });
    let hurt = field.calls().iter().filter(done).filter(|called| called.call.owned().is_some());
    assert_eq!(hurt.count(), 0, "{}", field.tail());
    assert!(field.case(&victim, FaultKind::Stray).is_some(), "{:?}", field.open());
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
