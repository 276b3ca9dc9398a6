//! What the next process knows of what was going on when the last process ended: which other clients were at work, and
//! which reboot may only be late. Machines that were coming back need no record: a process that has only just begun to look
//! waits its whole patience from the start.

use reveille_core::engine::{Restored, Start, State};
use reveille_core::event::{Command, Event, Pause, PauseScope};
use reveille_core::model::id::Fence;
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::{Fault, InstanceState};
use reveille_core::model::node::Ready;
use reveille_core::model::roster::{Mode, Roster};
use reveille_core::model::time::{Span, Time};
use reveille_core::record::Record;

use super::fixture::{self, Field};
use super::steps::cloud_deletes;

const ONE: &str = "i004";

/// No agent is asked to join again first: machines are rebooted when their time has come.
fn roster() -> Roster {
    let mut roster = fixture::roster();
    roster.pools.values_mut().for_each(|pool| pool.repair.rejoin = Mode::Off);
    roster
}

fn ten() -> Field {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    field
}

/// One machine's kubelet says nothing any more.
fn silence(field: &mut Field) {
    field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
}

/// The next process over the same world, with the ledger as it was written or as a rotation leaves it.
fn next_process(mut field: Field, rotated: bool) -> Field {
    if rotated {
        field.records = field.state.checkpoint();
    }
    field.restarted(roster())
}

const fn s(seconds: i64) -> Span {
    Span::from_s(seconds)
}

/// Runs until such a record was written, for an hour at most.
fn until_recorded(field: &mut Field, is_it: impl Fn(&Record) -> bool) {
    let end = field.now + Span::from_min(60);
    while !field.records.iter().any(&is_it) {
        assert!(field.now < end, "it is recorded within the hour");
        field.run(s(10));
    }
}

#[test]
fn pool_with_foreign_deletions_is_left_alone_after_restart() {
    for rotated in [false, true] {
        let mut field = ten();
        // Drained and deleted, as an autoscaler does before it takes the machine.
        field.nodes.get_mut("i001").unwrap().cordoned = true;
        field.run(s(10));
        field.nodes.remove("i001");
        until_recorded(&mut field, |record| matches!(record, Record::OthersActed { .. }));
        let noticed = field.now;
        let mut next = next_process(field, rotated);
        let broken = next.instances.get_mut(ONE).unwrap();
        broken.state = InstanceState::Errored;
        broken.fault = Some(Fault { code: 500, message: "No valid host was found.".into() });
        let gone = next.nodes.remove(ONE).unwrap();
        cloud_deletes(&mut next, &gone);
        while next.calls.is_empty() && next.now.since(noticed) < Span::from_min(60) {
            next.run(s(10));
        }
        assert!(!next.calls.is_empty(), "the broken machine has its turn");
        let waited = next.now.since(noticed);
        assert!(waited >= Span::from_min(10), "rotated: {rotated}: {waited} after it: {:?}", next.calls);
    }
}

/// A call that Nova carries out minutes late: judged in vain by one process, in the action log before the next one's next step.
#[test]
fn reboot_that_may_only_be_late_is_known_to_the_next_process() {
    for rotated in [false, true] {
        let mut field = ten();
        silence(&mut field);
        field.deaf = true;
        until_recorded(&mut field, |record| matches!(record, Record::Judged { held: false, .. }));
        let calls = std::mem::take(&mut field.calls);
        let mut next = next_process(field, rotated);
        // The world keeps what was done, and counts boots by it.
        next.calls = calls;
        next.run(Span::from_min(25));
        assert_eq!(next.calls.len(), 1, "rotated: {rotated}: {:?}", next.calls);
    }
}

/// Another controller acts, and lets go. What it began a moment ago may go on: a machine that it rebooted is booting.
#[test]
fn machines_of_other_controller_get_boot_time_after_handover() {
    let mut field = Field::new(roster()).populate(10);
    let others = Pause {
        scope: PauseScope::OtherController,
        by: "reveille itself".into(),
        reason: "another controller acts for this roster".into(),
    };
    field.feed(Event::Command(Command::Pauses([others].into())));
    field.run(Span::from_min(5));
    silence(&mut field);
    field.run(Span::from_min(30));
    assert!(field.calls.is_empty(), "another one acts: {:?}", field.calls);
    let let_go = field.now;
    field.feed(Event::Command(Command::Pauses([].into())));
    for restart in [false, true] {
        if restart {
            field = field.restarted(roster());
        }
        field.run(Span::from_min(7));
        assert!(field.calls.is_empty(), "{} after it: {:?}", field.now.since(let_go), field.calls);
    }
    field.run(Span::from_min(60));
    assert!(!field.calls.is_empty(), "it has its turn");
}

/// Where a join may take for ever, a reboot may not: the same patience as for our own.
#[test]
fn handover_waits_for_a_boot_when_joins_have_no_deadline() {
    let mut wanted = roster();
    wanted.pools.get_mut("workers").unwrap().deadlines.join_within = None;
    let mut field = Field::new(wanted).populate(10);
    let others = Pause { scope: PauseScope::OtherController, by: "other".into(), reason: "acts".into() };
    field.feed(Event::Command(Command::Pauses([others].into())));
    field.run(Span::from_min(5));
    silence(&mut field);
    field.run(Span::from_min(8));
    field.feed(Event::Command(Command::Pauses([].into())));
    field.run(Span::from_min(16));
    assert_eq!(field.calls, []);
    field.run(Span::from_min(60));
    assert!(!field.calls.is_empty(), "it has its turn");
}

/// A machine is rebooted, and its Node is deleted while it boots: another incident, which goes on with that patience. So does
/// the next process.
#[test]
fn reboot_under_way_keeps_its_patience_in_the_next_process() {
    for rotated in [false, true] {
        let mut field = ten();
        silence(&mut field);
        while field.calls.is_empty() {
            field.run(s(10));
        }
        let rebooted = field.now;
        field.run(s(30));
        field.nodes.remove(ONE);
        field.sync_nodes();
        field.run(s(30));
        assert!(field.case(ONE, FaultKind::Vanished).is_some(), "it is another incident now");
        let calls = std::mem::take(&mut field.calls);
        let mut next = next_process(field, rotated);
        next.calls = calls;
        while next.calls.len() == 1 && next.now.since(rebooted) < Span::from_min(120) {
            next.run(s(10));
        }
        let patience = next.now.since(rebooted);
        assert!(
            patience >= Span::from_min(16),
            "rotated: {rotated}: again {patience} after it: {:?}",
            next.calls
        );
    }
}

/// Drained and deleted; then its marks go and come back, and with them the machine is said to have joined. It left all the same.
#[test]
fn departed_machine_is_left_alone_after_restart_with_marks_back() {
    for rotated in [false, true] {
        let mut field = ten();
        field.nodes.get_mut(ONE).unwrap().cordoned = true;
        field.run(s(10));
        field.nodes.remove(ONE);
        field.run(Span::from_min(2));
        let marks = std::mem::take(&mut field.instances.get_mut(ONE).unwrap().marks);
        field.run(Span::from_min(3));
        field.instances.get_mut(ONE).unwrap().marks = marks;
        field.run(Span::from_min(3));
        let mut next = next_process(field, rotated);
        next.run(Span::from_min(60));
        assert!(next.calls.is_empty(), "rotated: {rotated}: {:?}", next.calls);
    }
}

/// Others were at work at ten; the clock of that process went back by an hour; others were at work again. The next process has
/// the right clock, and waits as long as ever after what was noticed last.
#[test]
fn others_noticed_by_slow_clock_are_heeded_by_next_process() {
    let field = ten();
    let slow = field.now;
    let acted = |at: Time| Record::OthersActed {
        at,
        pools: vec!["workers".into()],
        until: at + Span::from_min(10),
        what: "instance 7f3a was deleted".into(),
        rollout: false,
        guessed: false,
        since: None,
        images: Vec::new(),
        versions: Vec::new(),
    };
    let mut records = field.records.clone();
    records.extend([acted(slow + Span::from_min(60)), acted(slow)]);
    let now = slow + Span::from_min(80);
    let how = Restored {
        start: Start { fence: Fence(2), acting: true },
        now,
        last_alive: Some(slow + Span::from_min(1)),
    };
    let state = State::restore(roster(), how, records);
    let others = state.context().others.of(&"workers".into()).next().expect("the ledger told of others");
    assert_eq!(others.until, now + Span::from_min(10));
}

/// An autoscaler takes one machine of the pool away and brings another each eight minutes, all day: a dead machine beside it was
/// never repaired. An hour after it was due it is.
#[test]
fn dead_machine_in_constantly_scaled_pool_is_held_for_an_hour() {
    let mut field = Field::new(roster()).populate(20);
    field.run(Span::from_min(20));
    field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
    let since = field.now;
    for round in 0..15 {
        let (gone, came) = (format!("i{:03}", 5 + round), format!("i{:03}", 20 + round));
        field.nodes.get_mut(&gone).unwrap().cordoned = true;
        field.run(Span::from_s(30));
        field.nodes.remove(&gone);
        field.delete_machine(&gone);
        field.add_machine(&came, true);
        field.run_until(Span::from_min(8), |field| !field.calls.is_empty());
        if !field.calls.is_empty() {
            break;
        }
    }
    assert!(!field.calls.is_empty(), "never repaired: {}", field.held(ONE, FaultKind::NotReady));
    let took = field.now.since(since);
    assert!(took >= Span::from_min(60), "after {took}");
}
