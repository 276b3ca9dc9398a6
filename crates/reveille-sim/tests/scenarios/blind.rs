//! What cannot be seen: listings that are empty, shrunken or missing, an API that is silent, zones that are dark, a process that
//! slept. An incomplete roll marks no machine absent, and every timer starts again when the sources return.

use reveille_core::diagnose::machine_state::{MachineState, Unknown};
use reveille_core::effect::ReadErrorKind;
use reveille_core::model::incident::{FaultKind, MachineKey};
use reveille_core::record::Record;
use reveille_sim::drive::Mishap;
use reveille_sim::world::fault::Fault;
use reveille_sim::world::layout::{CLOUD, Layout};
use reveille_sim::world::vm::Trouble;

use crate::field::*;

/// A machine gets well, and just then its cloud's listing cannot be believed: the incident is closed when sight is back.
#[test]
fn incident_with_dwell_ended_while_blind_closes_on_fresh_data() {
    let mut field = Field::new(Layout::fleet(2, 5));
    let victim = field.machine(0);
    field.fault(Fault::NodeDeletedByPerson(victim.clone()));
    field.run(s(90));
    field.0.world.schedule_kubelet_restart(field.0.now(), &victim);
    field.run(s(20));
    field.fault(Fault::ServersUnlisted { lasts: min(4), denies: false });
    field.run(min(12));
    field.ends_well();
}

/// The cloud says ERROR and can be believed; the cluster is silent. Whether a machine serves cannot be told then, so not
/// even one that never ran is deleted, and neither in the first minute after the cluster is back.
#[test]
fn deletion_waits_until_the_cluster_is_readable_and_settled() {
    let mut field = Field::new(Layout::fleet(1, 6));
    let before = field.machines();
    field.fault(Fault::ApiSilent(min(10)));
    field.run(min(1));
    field.fault(Fault::Launch { pool: workers(), trouble: Some(Trouble::BuildFails) });
    field.run(min(9));
    assert_eq!(field.calls(), [], "{}", field.tail());
    let victim = field.newcomer(&before).expect("it was ordered");
    let why = field.held(&victim, FaultKind::Errored);
    assert!(why.contains("no reliable data from cluster"), "{why}");
    field.run(s(55));
    assert_eq!(field.calls(), [], "{}", field.tail());
    field.run(min(3));
    assert_eq!(field.deletes(), 1, "{}", field.tail());
    field.run(min(5));
    field.ends_well();
}

/// While nothing can be told, the roll says so of every machine that is not Ready, and calls none absent.
#[test]
fn incomplete_roll_marks_no_machine_absent() {
    let mut field = Field::new(Layout::fleet(3, 6));
    let victim = field.machine(0);
    field.fault(Fault::ApiSilent(min(5)));
    field.run(min(2));
    field.fault(Fault::NodeDeletedByPerson(victim.clone()));
    field.run(min(2));
    let key = MachineKey::Instance(CLOUD.into(), victim.clone());
    let machine_state = field.0.state().machine_state(&key);
    assert!(matches!(machine_state, Some(MachineState::CannotTell(_))), "{machine_state:?}");
    assert_eq!(field.open(), Vec::<String>::new());
    field.clean();
}

/// One listing lacks a machine, and one read by its id denies it; the next finds it. Once is no proof.
#[test]
fn one_denial_proves_nothing() {
    let mut field = Field::new(Layout::fleet(14, 8));
    let victim = field.machine(0);
    field.fault(Fault::Breaks(victim.clone(), Trouble::Broken));
    // Listings are taken every thirty seconds from the beginning on: this one lies about the third from now, and no more.
    field.fault_in(s(89), Fault::SomeUnlisted { machines: vec![victim], lasts: s(7), denies: true });
    field.run(min(3));
    assert!(field.0.counts().looks >= 2, "it is asked for by id, twice: {:?}", field.0.counts());
    let ghosts =
        |record: &Record| matches!(record, Record::Opened { key, .. } if key.kind == FaultKind::Ghost);
    assert_eq!(field.recorded(ghosts), 0, "{}", field.tail());
    field.clean();
}

/// A listing of which a page is missing never arrives as a listing: it marks no machine gone.
#[test]
fn a_missing_page_voids_the_listing() {
    let mut field = Field::new(Layout::fleet(4, 8));
    let victim = field.machine(0);
    field.fault(Fault::CloudFails(ReadErrorKind::Incomplete, min(20)));
    field.fault(Fault::Breaks(victim, Trouble::Broken));
    field.run(min(20));
    assert_eq!(field.calls(), [], "{}", field.tail());
    field.clean();
}

/// The node list was empty and is back: a machine that was ill before gets the whole of the patience again.
#[test]
fn timers_restart_when_the_node_list_returns() {
    let mut field = Field::new(Layout::fleet(5, 8));
    let victim = field.machine(0);
    field.fault(Fault::Breaks(victim, Trouble::KubeletHung));
    field.run(min(4));
    field.fault(Fault::NodesUnlisted(min(3)));
    field.run(s(185));
    // Not ready for five minutes is the patience, and as long again is the offer to a person; it has been ill for seven.
    field.run(min(9));
    assert_eq!(field.calls(), [], "{}", field.tail());
    field.run(min(3));
    assert_eq!(field.reboots(), 1, "{}", field.tail());
    field.run(min(5));
    field.ends_well();
}

/// A process that was stopped for an hour wakes up: no timer has run out meanwhile.
#[test]
fn timers_restart_after_a_pause_of_the_process() {
    let mut field = Field::new(Layout::fleet(6, 8));
    field.fault(Fault::Breaks(field.machine(0), Trouble::KubeletHung));
    field.run(min(4));
    field.0.mishap_in(s(0), Mishap::Pause(min(60)));
    field.run(min(60));
    field.run(min(9));
    assert_eq!(field.calls(), [], "{}", field.tail());
    field.run(min(3));
    assert_eq!(field.reboots(), 1, "{}", field.tail());
    field.run(min(5));
    field.ends_well();
}

/// One zone of three is cut off: nothing is done there, and a machine of another zone is repaired meanwhile.
#[test]
fn a_dark_zone_is_left_alone_and_others_are_not() {
    let mut field = Field::new(Layout::fleet(7, 12).limits(|limits| limits.freeze_above_pct = 100));
    let dark = field.0.world.machines()[0].zone.clone().expect("it has a zone");
    let elsewhere = field.0.world.machines().into_iter().find(|m| m.zone.as_ref() != Some(&dark)).unwrap().id;
    field.fault(Fault::ZoneDark(dark.clone(), min(60)));
    field.fault(Fault::Breaks(elsewhere.clone(), Trouble::KubeletHung));
    field.run(min(58));
    assert_eq!((field.reboots(), field.deletes()), (1, 0), "{}", field.tail());
    assert!(field.well(&elsewhere));
    let inside =
        field.0.world.machines().into_iter().find(|machine| machine.zone.as_ref() == Some(&dark)).unwrap();
    let why = field.held(&inside.id, FaultKind::NotReady);
    assert!(why.contains("is down: none of its 4"), "{why}");
    field.run(min(10));
    field.ends_well();
}

/// Everything is dark: nothing is done at all, and when light returns, laggards get all their time again.
#[test]
fn a_dark_fleet_is_left_alone_and_its_laggards_get_their_time() {
    let mut field = Field::new(Layout::fleet(8, 9).limits(|limits| limits.freeze_above_pct = 100));
    for zone in ["nova-a", "nova-b", "nova-c"] {
        field.fault(Fault::ZoneDark(zone.into(), min(30)));
    }
    field.run(min(30));
    assert_eq!(field.calls(), [], "{}", field.tail());
    field.run(min(10));
    assert_eq!(field.calls(), [], "{}", field.tail());
    field.ends_well();
}

/// Leases stop while conditions are still good: the early sign of a broken path between kubelets and the API.
#[test]
fn silent_leases_freeze_before_conditions_turn() {
    let mut field = Field::new(Layout::fleet(9, 10));
    let errored = field.machine(0);
    field.fault(Fault::LeasesFrozen(min(20)));
    field.run(s(50));
    field.fault(Fault::Errored(errored.clone()));
    field.run(min(15));
    assert_eq!(field.destructive(), 0, "{}", field.tail());
    let why = field.held(&errored, FaultKind::Errored);
    assert!(why.contains("Nodes do not renew their leases"), "{why}");
    field.run(min(20));
    assert_eq!(field.deletes(), 1, "and when they are renewed again, it goes on\n{}", field.tail());
    field.ends_well();
}

/// A third of the fleet is missing from the listing at once: doubted, and believed only when each was denied by id twice.
#[test]
fn a_listing_that_shrank_is_doubted_until_each_is_denied_by_id() {
    let mut field = Field::new(Layout::fleet(10, 12));
    let victims = field.machines()[..5].to_vec();
    let lie = Fault::SomeUnlisted { machines: victims.clone(), lasts: min(30), denies: true };
    field.fault(lie);
    field.run(min(30));
    assert_eq!(field.calls(), [], "{}", field.tail());
    let doubt = field.0.state().context().clouds[CLOUD].source.doubted().map(|doubt| doubt.why.clone());
    assert!(doubt.is_some_and(|why| why.contains("went missing")), "{}", field.tail());
    field.run(min(12));
    field.ends_well();

    // The same, and true: another client deleted them all. The controller believes it in the end, and deletes nothing in answer.
    let mut field = Field::new(Layout::fleet(11, 12));
    for victim in field.machines()[..5].to_vec() {
        field.fault(Fault::ForeignDelete(victim));
    }
    field.run(min(40));
    assert_eq!(field.destructive(), 0, "{}", field.tail());
    assert_eq!(field.machines().len(), 12);
    field.ends_well();
}

/// The cloud denies a machine whose node is Ready: the cloud is wrong, the kubelet is alive.
#[test]
fn a_ready_node_outweighs_a_cloud_that_denies_its_instance() {
    let mut field = Field::new(Layout::fleet(12, 8));
    let victim = field.machine(0);
    field.fault(Fault::SomeUnlisted { machines: vec![victim.clone()], lasts: min(40), denies: true });
    field.run(min(30));
    assert_eq!(field.calls(), [], "{}", field.tail());
    let machine_state = field.0.state().machine_state(&MachineKey::Instance(CLOUD.into(), victim));
    assert!(
        matches!(machine_state, Some(MachineState::CannotTell(Unknown::UnlistedAndReady(_)))),
        "{machine_state:?}"
    );
    field.run(min(22));
    field.ends_well();
}

/// Failures of the cloud's API are no news about machines: no record is written for them.
#[test]
fn a_failing_cloud_writes_no_records() {
    for kind in [ReadErrorKind::Throttled, ReadErrorKind::Unavailable, ReadErrorKind::TimedOut] {
        let mut field = Field::new(Layout::fleet(13, 10));
        let before = field.recorded(|_| true);
        field.fault(Fault::CloudFails(kind, min(30)));
        field.run(min(45));
        assert_eq!(field.recorded(|_| true), before, "{kind:?}\n{}", field.tail());
        assert_eq!(field.recorded(|record| matches!(record, Record::Opened { .. })), 0);
        field.ends_well();
    }
}

/// A fleet is cut off, the credentials lead into another project, which denies every id, and the cluster lists no nodes:
/// everything that could vouch for the machines is gone at once. None is forgotten, and no route to them is taken out.
#[test]
fn an_empty_list_is_never_believed_however_often_it_is_said() {
    let mut field = Field::new(Layout::fleet(6, 9).routed());
    for zone in ["nova-a", "nova-b", "nova-c"] {
        field.fault(Fault::ZoneDark(zone.into(), min(50)));
    }
    field.fault_in(min(4), Fault::AnotherProject(min(40)));
    field.fault_in(min(9), Fault::NodesUnlisted(min(35)));
    field.run(min(48));
    assert_eq!(field.calls(), [], "{}", field.tail());
    assert_eq!(field.recorded(|record| matches!(record, Record::Forgotten { .. })), 0, "{}", field.tail());
    field.run(min(40));
    field.ends_well();
}
