//! The escalation: cheapest repair step first, each repair step verified, and an end to every row of tries.

use reveille_core::effect::Call;
use reveille_core::model::incident::FaultKind;
use reveille_core::model::roster::{Mode, Repair};
use reveille_core::record::{Record, Verdict};
use reveille_core::remedies::RemoveRoutes;
use reveille_sim::world::fault::{CallLie, Fault};
use reveille_sim::world::layout::{Layout, PoolPlan};
use reveille_sim::world::vm::Trouble;

use crate::field::*;

/// First an offer to restart the kubelet, then a reboot, which helps; and that is the end of it.
#[test]
fn a_reboot_that_worked_ends_the_episode() {
    let mut field = Field::new(Layout::fleet(1, 6));
    let victim = field.machine(0);
    field.fault(Fault::Breaks(victim.clone(), Trouble::KubeletHung));
    field.run(min(8));
    assert!(field.next(&victim, FaultKind::NotReady).contains("Rejoin"), "{}", field.tail());
    field.run(min(180));
    assert_eq!((field.reboots(), field.deletes()), (1, 0), "{}", field.tail());
    assert_eq!(field.verdicts(FaultKind::NotReady), [Verdict::Mended]);
    field.ends_well();
}

/// A reboot that does not help is tried hard, and then the machine is replaced: in this order, and each only once.
#[test]
fn what_a_reboot_does_not_mend_is_replaced() {
    let mut field = Field::new(Layout::fleet(2, 6));
    let victim = field.machine(0);
    field.fault(Fault::Breaks(victim.clone(), Trouble::Broken));
    field.run(min(100));
    let order: Vec<String> = field
        .calls()
        .iter()
        .map(|called| called.call.to_string().split(' ').next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(order.last().map(String::as_str), Some("delete"), "{order:?}");
    assert_eq!(order.first().map(String::as_str), Some("reboot"), "{order:?}");
    assert_eq!(field.deletes(), 1, "{}", field.tail());
    assert!(field.reboots() <= 4, "{order:?}");
    field.ends_well();
}

/// A reboot repeats no first boot: where the console shows that the first boot failed, it is left out.
#[test]
fn no_reboot_after_a_failed_first_boot() {
    for (trouble, cause) in [
        (Trouble::NoNetwork, "no-network-at-boot"),
        (Trouble::MetadataDown, "metadata-service-unavailable"),
        (Trouble::BadToken, "bootstrap-token-invalid"),
    ] {
        let mut field = Field::new(Layout::fleet(3, 6));
        field.fault(Fault::Launch { pool: workers(), trouble: Some(trouble) });
        field.run(min(40));
        assert_eq!((field.reboots(), field.deletes()), (0, 1), "{trouble:?}\n{}", field.tail());
        let found = |record: &Record| match record {
            Record::Diagnosed { findings, .. } => {
                findings.iter().any(|finding| finding.cause.label() == cause)
            }
            _ => false,
        };
        assert!(field.recorded(found) > 0, "{trouble:?} is not read as {cause}\n{}", field.tail());
        field.ends_well();
    }
}

/// What a roster only wants told is told, with the very call, and not made; and what it switches off is not even told.
#[test]
fn a_proposal_is_told_and_not_made() {
    let propose = |pool: &mut PoolPlan| {
        let mode = Mode::Propose;
        pool.repair = Repair { network: mode, rejoin: mode, reboot: mode, replace: mode, cleanup: Mode::Off };
    };
    let mut field = Field::new(Layout::fleet(14, 6).pool(propose));
    let (grouped, errored, hung) = (field.machine(0), field.machine(1), field.machine(2));
    field.fault(Fault::GroupLost { machine: grouped.clone(), slips: false });
    field.fault(Fault::Errored(errored.clone()));
    field.fault(Fault::Breaks(hung.clone(), Trouble::KubeletHung));
    field.run(min(60));
    assert_eq!(field.calls(), [], "{}", field.tail());
    for (id, kind, what) in [
        (grouped, FaultKind::GroupMissing, "SetPortGroups"),
        (errored, FaultKind::Errored, "DeleteInstance"),
        (hung, FaultKind::NotReady, "Reboot"),
    ] {
        let next = field.next(&id, kind);
        assert!(next.starts_with("Held") && next.contains(what), "{next}");
        assert!(field.held(&id, kind).contains("proposed only"));
    }
    field.clean();
}

/// A machine that is silent because its port has no group is not rebooted for it: the group comes first.
#[test]
fn what_a_missing_group_explains_is_not_rebooted() {
    let mut field = Field::new(Layout::fleet(15, 6).pool(|pool| pool.repair.network = Mode::Propose));
    let victim = field.machine(0);
    field.fault(Fault::GroupLost { machine: victim.clone(), slips: false });
    field.run(min(90));
    assert_eq!(field.calls(), [], "{}", field.tail());
    let next = field.next(&victim, FaultKind::NotReady);
    assert!(next.contains("its group-missing comes first: it explains this"), "{next}");
    field.clean();
}

/// A machine whose creation no process saw may have joined once, and its data with it. It is not replaced, unless its own console
/// shows that its first boot failed.
#[test]
fn a_machine_of_unknown_history_is_replaced_only_on_proof() {
    let mut layout =
        Layout::fleet(16, 8).limits(|limits| (limits.freeze_above_pct, limits.per_hour) = (100, 20));
    layout.nodeless = vec![Trouble::Broken, Trouble::NoNetwork];
    let mut field = Field::new(layout);
    let ill = |trouble| {
        let all = field.0.world.machines();
        all.into_iter().find(|machine| machine.trouble == Some(trouble)).unwrap().id
    };
    let (unknown, proved) = (ill(Trouble::Broken), ill(Trouble::NoNetwork));
    field.run(min(240));
    assert!(!field.exists(&proved), "{}", field.tail());
    assert!(field.exists(&unknown), "{}", field.tail());
    let why = field.held(&unknown, FaultKind::NeverJoined);
    assert!(why.contains("older than this controller's first listing"), "{why}");
    field.clean();
}

/// What is repaired, closed, and broken again goes on counting: later each time, and then a person is asked.
#[test]
fn what_comes_back_again_and_again_is_given_up() {
    let mut field = Field::new(Layout::fleet(17, 5).pool(network_only));
    let victim = field.machine(0);
    for round in 0..30 {
        field.fault_in(min(2 * round), Fault::GroupLost { machine: victim.clone(), slips: false });
    }
    field.run(min(60));
    let calls = field.count(|call| matches!(call, Call::SetPortGroups(_)));
    // Four tries, and one call that the port's revision refused: that one never happened and is no try.
    assert_eq!(calls, 5, "{}", field.tail());
    assert!(
        !field.verdicts(FaultKind::GroupMissing).is_empty(),
        "it was mended in between\n{}",
        field.tail()
    );
    assert!(
        field.case(&victim, FaultKind::GroupMissing).is_some_and(|case| case.incident.given_up),
        "{}",
        field.tail()
    );
    field.clean();
}

/// Two nodes that name one instance: nothing is done to it until a person has told them apart.
#[test]
fn an_instance_that_two_nodes_name_is_left_alone() {
    let mut field = Field::new(Layout::fleet(18, 6));
    let victim = field.machine(0);
    field.fault(Fault::NodeTwin(victim.clone()));
    field.fault_in(min(1), Fault::Breaks(victim.clone(), Trouble::Broken));
    field.fault_in(min(30), Fault::Errored(victim.clone()));
    field.run(min(90));
    assert_eq!(field.calls(), [], "{}", field.tail());
    assert!(field.case(&victim, FaultKind::Duplicate).is_some(), "{:?}", field.open());
    field.clean();
}

fn network_only(pool: &mut PoolPlan) {
    (pool.repair.reboot, pool.repair.replace) = (Mode::Off, Mode::Off);
}

/// A call that is accepted and does nothing is no repair: tried again later and later, then a person is asked, once.
#[test]
fn accepted_without_effect_is_backed_off_and_given_up() {
    let mut field = Field::new(Layout::fleet(4, 5).pool(network_only));
    let victim = field.machine(0);
    for _ in 0..20 {
        field.fault(Fault::Call(CallLie::Ignored));
    }
    field.fault(Fault::GroupLost { machine: victim.clone(), slips: false });
    field.run(min(180));
    let at: Vec<i64> = field.calls().iter().map(|called| called.at.ms / 1000).collect();
    assert_eq!(at.len(), 4, "as often as the roster's tries\n{}", field.tail());
    let gaps: Vec<i64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.windows(2).all(|pair| pair[1] > pair[0] + 30), "later and later: {gaps:?}");
    let given_up = |record: &Record| matches!(record, Record::GivenUp { .. });
    assert_eq!(field.recorded(given_up), 1);
    assert!(field.case(&victim, FaultKind::GroupMissing).is_some_and(|case| case.incident.given_up));
    field.clean();
}

/// A group that something takes off again: each time it took effect and did not last. The end is the same.
#[test]
fn a_group_that_does_not_stick_is_given_up() {
    let mut field = Field::new(Layout::fleet(5, 5).pool(network_only));
    let victim = field.machine(0);
    field.fault(Fault::GroupLost { machine: victim.clone(), slips: true });
    field.run(min(180));
    let calls = field.count(|call| matches!(call, Call::SetPortGroups(_)));
    assert!((2..=5).contains(&calls), "{calls}\n{}", field.tail());
    assert!(
        field.case(&victim, FaultKind::GroupMissing).is_some_and(|case| case.incident.given_up),
        "{}",
        field.tail()
    );
    assert_eq!(field.verdicts(FaultKind::GroupMissing), [], "it was never called mended");
    field.clean();
}

/// A reboot that is accepted and never happens shows in the log of actions: it does not count as one.
#[test]
fn a_reboot_that_never_happened_is_not_taken_for_one() {
    let mut field = Field::new(Layout::fleet(6, 6));
    let victim = field.machine(0);
    field.fault(Fault::Call(CallLie::Ignored));
    field.fault(Fault::Breaks(victim.clone(), Trouble::KubeletHung));
    field.run(min(20));
    let judged = |record: &Record| matches!(record, Record::Judged { held: false, .. });
    assert_eq!(field.recorded(judged), 1, "{}", field.tail());
    field.run(min(20));
    assert_eq!((field.reboots(), field.deletes()), (2, 0), "{}", field.tail());
    field.ends_well();
}

/// A call whose answer was lost is looked at and not made again.
#[test]
fn an_unknown_outcome_is_read_back_and_not_repeated() {
    for fault in [Fault::Errored, |id| Fault::Breaks(id, Trouble::KubeletHung)] {
        let mut field = Field::new(Layout::fleet(7, 6));
        field.fault(Fault::Call(CallLie::Unanswered));
        field.fault(fault(field.machine(0)));
        field.run(min(40));
        assert_eq!(field.destructive(), 1, "{}", field.tail());
        field.ends_well();
    }
}

/// A build that hangs and a machine that is locked: the first is replaced, the second is not ours to touch.
#[test]
fn a_hanging_build_is_replaced_and_a_locked_machine_is_not() {
    let mut field = Field::new(Layout::fleet(8, 6));
    field.fault(Fault::Launch { pool: workers(), trouble: Some(Trouble::BuildHangs) });
    field.run(min(30));
    assert_eq!(field.deletes(), 1, "{}", field.tail());
    field.ends_well();
    let locked = field.machine(0);
    field.fault(Fault::Locked(locked.clone()));
    field.fault(Fault::Errored(locked.clone()));
    field.run(min(30));
    assert_eq!(field.deletes(), 1, "{}", field.tail());
    assert!(field.held(&locked, FaultKind::Errored).contains("locked"));
    field.clean();
}

/// The controller deletes no node whose instance was not denied twice; after the second denial it deletes the node by its own
/// uid.
#[test]
fn a_ghost_is_cleaned_away_when_its_instance_is_proved_gone() {
    let mut field = Field::new(Layout::fleet(9, 8));
    let victim = field.machine(0);
    field.fault(Fault::ControllerDown(min(60)));
    field.fault(Fault::ForeignDelete(victim.clone()));
    field.run(min(30));
    let cleaned = field.count(|call| matches!(call, Call::DeleteNode(_)));
    assert_eq!((cleaned, field.destructive()), (1, 1), "{}", field.tail());
    field.run(min(60));
    field.ends_well();
}

/// The nudge: put and taken back, and the node says itself that its pods can be reached again.
#[test]
fn unreachable_pods_are_nudged_and_a_cut_nudge_is_tidied_up() {
    for cut in [false, true] {
        let mut field = Field::new(Layout::fleet(10, 5).routed());
        if cut {
            field.fault(Fault::Call(CallLie::Cut));
        }
        field.fault(Fault::RouteBroken(field.machine(0)));
        field.run(min(15));
        assert_eq!(field.count(|call| matches!(call, Call::NudgeGroup(_))), 1, "{}", field.tail());
        let tidied = field.count(|call| matches!(call, Call::DropRule(_)));
        assert_eq!(tidied, usize::from(cut), "{}", field.tail());
        field.ends_well();
    }
}

/// Dead routes go, right ones stay, and the controller leaves those of other clusters alone.
#[test]
fn dead_routes_go_and_foreign_ones_stay() {
    let mut field = Field::new(Layout::fleet(11, 6).routed());
    field.fault(Fault::ForeignRoutes(4));
    field.fault(Fault::DuplicateRoute(field.machine(0)));
    field.fault(Fault::DuplicateRoute(field.machine(1)));
    field.run(min(5));
    let removed: Vec<usize> = field
        .calls()
        .iter()
        .filter_map(|called| match &called.call {
            Call::RemoveRoutes(RemoveRoutes { routes, .. }) => Some(routes.len()),
            _ => None,
        })
        .collect();
    assert_eq!(removed.iter().sum::<usize>(), 2, "{}", field.tail());
    field.ends_well();
}

/// After a while the controller makes a route that the cloud controller does not make. On a full router it is one incident, and
/// no storm of calls.
#[test]
fn a_missing_route_is_made_and_a_full_router_is_told() {
    let mut field = Field::new(Layout::fleet(12, 6).routed());
    let victim = field.machine(0);
    field.fault(Fault::MissingRoute(victim.clone()));
    field.run(min(6));
    assert_eq!(field.count(|call| matches!(call, Call::AddRoutes(_))), 1, "{}", field.tail());
    field.ends_well();

    let mut field = Field::new(Layout::fleet(13, 6).routed());
    field.fault(Fault::MissingRoute(field.machine(0)));
    field.fault(Fault::RouteLimit(5));
    field.run(min(120));
    let refused = field.count(|call| matches!(call, Call::AddRoutes(_)));
    assert!((1..=4).contains(&refused), "{refused}\n{}", field.tail());
    assert!(field.open().iter().any(|open| open.starts_with("route-limit")), "{:?}", field.open());
    // A successor would get no route: a machine that is replaced now is a machine lost.
    let errored = field.machine(1);
    field.fault(Fault::Errored(errored.clone()));
    field.run(min(10));
    assert_eq!(field.deletes(), 0, "{}", field.tail());
    let why = field.held(&errored, FaultKind::Errored);
    assert!(why.contains("a new machine would get none"), "{why}");
    field.clean();
}
