//! How much at once: what holds a slot, what counts against the hour and for the minimum, and what pools share.

use std::collections::VecDeque;
use std::sync::Arc;

use reveille_core::effect::{Call, Effect, Outcome};
use reveille_core::event::Event;
use reveille_core::model::hosting::{GroupPhase, Hosting, OwnerGroup};
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::Mark;
use reveille_core::model::node::{Condition, Ready};
use reveille_core::model::roster::Mode;
use reveille_core::model::time::Span;
use reveille_core::remedies::Reboot;

use super::fixture::{Field, node, roster};
use super::steps::{min, roster_with, set, without_rejoin};

/// A machine boots after its reboot, and its Node is deleted meanwhile.
#[test]
fn booting_machine_keeps_its_slot_after_node_deletion() {
    for (restart, comes_back) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        set(&mut field, "i004", Ready::Unknown);
        field.run_until(min(20), |field| !field.calls.is_empty());
        set(&mut field, "i005", Ready::Unknown);
        field.run(min(6));
        assert_eq!(field.destructive_calls(), 1);
        field.nodes.remove("i004");
        field.run(Span::from_s(20));
        if restart {
            field = field.restarted(without_rejoin());
        }
        let before = if restart { 0 } else { 1 };
        field.run(min(8));
        assert_eq!(field.destructive_calls(), before, "{restart} {comes_back}: {:?}", field.calls);
        if comes_back {
            field.nodes.insert("i004".into(), node("i004", Ready::True));
        }
        // The machine is well, or its time to boot is over: the controller reboots the other one. The next process waits
        // for that one from the start.
        field.run(min(if comes_back && !restart { 5 } else { 40 }));
        let of_other = |call: &&Call| matches!(call, Call::Reboot(Reboot { instance, .. }) if instance.as_str() == "i005");
        let others = field.calls.iter().filter(of_other).count();
        assert!(others > 0, "{restart} {comes_back}: {}", field.held("i005", FaultKind::NotReady));
    }
}

#[test]
fn minimum_counts_no_machine_that_its_group_takes_away() {
    let roster = roster_with(|pool| {
        (pool.repair.rejoin, pool.repair.reboot) = (Mode::Off, Mode::Off);
        (pool.min, pool.through_group) = (9, true);
    });
    let group = |phase: GroupPhase| {
        let group = OwnerGroup { name: "asg".into(), phase, word: "w".into(), protected: false };
        Some(Arc::new(Hosting { group: Some(group), ..Hosting::default() }))
    };
    let mut field = Field::new(roster).populate(10);
    for instance in field.instances.values_mut() {
        instance.hosting = group(GroupPhase::Kept);
    }
    field.run(min(20));
    // A hook keeps it for an hour, and its Node is Ready meanwhile.
    field.instances.get_mut("i003").unwrap().hosting = group(GroupPhase::Leaving);
    field.run(min(15));
    set(&mut field, "i004", Ready::Unknown);
    field.run(min(30));
    assert_eq!(field.destructive_calls(), 0, "{:?}", field.calls);
}

#[test]
fn cleanups_take_half_of_the_hour_also_after_a_rotation() {
    for restart in [false, true] {
        let mut field = Field::new(roster()).populate(60);
        field.run(min(20));
        for n in 20..26 {
            let id = format!("i{n:03}");
            field.delete_machine(&id);
            set(&mut field, &id, Ready::Unknown);
        }
        field.run(min(15));
        if restart {
            field.records = field.state.checkpoint();
            field = field.restarted(roster());
        }
        let before = if restart { 2 } else { 0 };
        field.run(min(30));
        let cleaned = field.calls.iter().filter(|call| matches!(call, Call::DeleteNode(_))).count();
        assert_eq!(cleaned + before, 2, "restart: {restart}: {:?}", field.calls);
    }
}

#[test]
fn shared_group_is_untouched_while_one_pool_is_paused_or_off() {
    for (paused, network) in
        [(false, Mode::Act), (true, Mode::Act), (false, Mode::Off), (false, Mode::Propose)]
    {
        let mut wanted = roster();
        wanted.network.unreachable_conditions = vec!["NetworkUnavailable".into()];
        let mut other = wanted.pools.values().next().unwrap().clone();
        (other.name, other.paused, other.repair.network) = ("other".into(), paused, network);
        other.owned.pool = Some(Mark::Tag("k8s-pool=other".into()));
        wanted.pools.insert(other.name.clone(), other);
        let mut field = Field::new(wanted).populate(10);
        let marks: Arc<std::collections::BTreeSet<Mark>> =
            Arc::new([Mark::Tag("k8s-cluster=prod".into()), Mark::Tag("k8s-pool=other".into())].into());
        for id in ["i000", "i001", "i002"] {
            field.instances.get_mut(id).unwrap().marks = marks.clone();
        }
        field.run(min(20));
        let (kind, reason, message) = ("NetworkUnavailable".into(), "x".into(), "x".into());
        let condition = Condition { kind, reason, message };
        field.nodes.get_mut("i004").unwrap().conditions = Box::new([condition]);
        field.run(min(10));
        let nudged = field.calls.iter().any(|call| matches!(call, Call::NudgeGroup(_)));
        assert_eq!(nudged, !paused && network == Mode::Act, "paused: {paused}, {network:?}");
    }
}

/// The pool is at its minimum because of three deletions that are out. The first is denied, so a fourth begins; before the ledger
/// has that one, the second is denied too, and there is room for a fifth at once (hunt, seed 4500751).
#[test]
fn room_above_the_minimum_that_comes_back_twice_is_used_twice() {
    let mut roster = roster_with(|pool| {
        (pool.repair.rejoin, pool.repair.reboot, pool.min) = (Mode::Off, Mode::Off, 17);
    });
    (roster.limits.at_once, roster.limits.per_hour, roster.limits.freeze_above_pct) = (5, 50, 100);
    let mut field = Field::new(roster).populate(20);
    let lost = ["i004", "i005", "i006", "i007", "i008"];
    for id in lost {
        field.instances.get_mut(id).unwrap().zone = Some(format!("zone-{id}").as_str().into());
    }
    field.run(min(20));
    lost.iter().for_each(|id| set(&mut field, id, Ready::Unknown));
    field.mute = Some(Vec::new());
    field.run_until(min(60), |field| field.calls.len() >= 3);
    let out = field.mute.take().unwrap();
    assert_eq!(out.len(), 3, "{:?}", field.calls);
    let denied = || Outcome::Denied { text: "403 Forbidden: Policy doesn't allow it".into() };
    let mut effects: VecDeque<Effect> = VecDeque::new();
    for intent in &out[..2] {
        effects.extend(field.step(Event::Done { intent: *intent, outcome: denied() }));
    }
    let mut began = Vec::new();
    while let Some(effect) = effects.pop_front() {
        match effect {
            Effect::Record { id, .. } => effects.extend(field.step(Event::Recorded(id))),
            Effect::Call { call, .. } => began.push(call.to_string()),
            _ => {}
        }
    }
    assert_eq!(began, ["delete instance i007", "delete instance i008"]);
}
