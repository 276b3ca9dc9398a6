//! A restart neither repeats nor loses an intent.

use std::sync::Arc;

use reveille_core::effect::{Call, Effect, Outcome};
use reveille_core::engine::{Restored, Start, State};
use reveille_core::event::{ClusterFact, Command, Event};
use reveille_core::model::id::{CloudName, Fence, IncidentId, IntentId};
use reveille_core::model::incident::{FaultKind, IncidentKey, MachineKey, Subject};
use reveille_core::model::instance::{Fault, InstanceState};
use reveille_core::model::node::{Node, NodeEvent, Ready};
use reveille_core::model::roster::{Mode, Roster};
use reveille_core::model::time::{Span, Time};
use reveille_core::plan::budget::Phase;
use reveille_core::record::{Domain, Record};
use reveille_core::remedies::{DeleteInstance, Reboot, RepairStep, SetPortGroups, escalation};

use super::fixture::{Field, node, roster};
use super::next_process::Ledger;
use super::steps::cloud_deletes;

/// Runs until a group repair is recorded, and stops the process at the given point.
fn crashed(after_call: bool, after_effect: bool) -> Field {
    let mut field = Field::new(roster()).populate(5);
    field.run(Span::from_min(2));
    field.ports.get_mut("i001").unwrap().groups = Box::new([]);
    let snapshot = field.snapshot();
    let mut effects = field
        .step(Event::Cloud { cloud: "os".into(), fact: reveille_core::event::CloudFact::read(snapshot) });
    let mut calls = Vec::new();
    while let Some(effect) = effects.pop() {
        match effect {
            Effect::Record { id, record } => {
                let intended = matches!(record, Record::Intended { .. });
                field.records.push(record);
                if !intended || after_call {
                    effects.extend(field.step(Event::Recorded(id)));
                }
            }
            Effect::Call { call, .. } => calls.push(call),
            _ => {}
        }
    }
    if after_effect && let Some(Call::SetPortGroups(SetPortGroups { groups, .. })) = calls.first() {
        field.ports.get_mut("i001").unwrap().groups = groups.iter().cloned().collect();
    }
    assert_eq!(calls.len(), usize::from(after_call));
    field
}

/// Another process takes over the ledger and the world of the one before.
pub fn restarted(field: Field) -> Field {
    restarted_with(roster(), field)
}

/// The same with this roster.
pub fn restarted_with(roster: Roster, mut field: Field) -> Field {
    field.records.sort_by_key(|record| matches!(record, Record::Intended { .. }));
    field.restarted(roster)
}

#[test]
fn a_crash_between_record_and_call_loses_nothing() {
    let mut field = restarted(crashed(false, false));
    field.run(Span::from_min(10));
    assert_eq!(field.calls.len(), 1, "{:?}", field.calls);
    assert!(field.case("i001", FaultKind::GroupMissing).is_none());
}

#[test]
fn a_crash_between_call_and_outcome_repeats_nothing() {
    let mut field = restarted(crashed(true, true));
    field.run(Span::from_min(10));
    assert!(field.calls.is_empty(), "it had taken effect: {:?}", field.calls);
    assert!(field.case("i001", FaultKind::GroupMissing).is_none());
}

#[test]
fn a_checkpoint_restores_the_same_memory() {
    let mut field = Field::new(roster()).populate(10);
    field.deaf = true;
    field.run(Span::from_min(2));
    field.ports.get_mut("i001").unwrap().groups = Box::new([]);
    field.run(Span::from_min(3));
    let checkpoint = field.state.checkpoint();
    let how = field.next_begins();
    let restored = State::restore(roster(), how, checkpoint);
    let again = Field::with(restored);
    let (old, new) =
        (field.case("i001", FaultKind::GroupMissing), again.case("i001", FaultKind::GroupMissing));
    let (old, new) = (&old.unwrap().incident, &new.unwrap().incident);
    assert_eq!(new.id, old.id);
    assert_eq!(new.first_seen, old.first_seen);
    assert_eq!(new.attempts.len(), old.attempts.len());
}

/// What was asked for and what was seen of it is told over the life of the ledger, however often it was rotated.
#[test]
fn a_rotated_ledger_keeps_the_counts() {
    let mut field = Field::new(roster()).populate(5);
    field.run(Span::from_min(2));
    for _ in 0..3 {
        field.ports.get_mut("i001").unwrap().groups = Box::new([]);
        field.run(Span::from_min(5));
        field.records = field.state.checkpoint();
        field = restarted(field);
    }
    let tried = field.state.context().book.tried()[&RepairStep::SetGroups];
    assert_eq!((tried.requested, tried.verified), (3, 3));
    field.deaf = true;
    field.ports.get_mut("i001").unwrap().groups = Box::new([]);
    field.run(Span::from_s(50));
    field.records = field.state.checkpoint();
    let tried = restarted(field).state.context().book.tried()[&RepairStep::SetGroups];
    assert_eq!((tried.requested, tried.verified), (3, 3), "what is under way is counted when it is over");
}

/// The cloud has another name in the roster of the next process: what the ledger knows of its machines would protect no
/// machine.
#[test]
fn cloud_missing_from_roster_is_reported_and_can_be_forgotten() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(2));
    let mut renamed = roster();
    renamed.clouds = [CloudName::from("renamed")].into();
    for pool in renamed.pools.values_mut() {
        pool.cloud = "renamed".into();
    }
    assert_eq!(field.state.unnamed_clouds().len(), 0);
    let mut next = field.restarted(renamed.clone());
    let old = CloudName::from("os");
    assert_eq!(next.state.unnamed_clouds().get(&old), Some(&10));
    next.feed(Event::Command(Command::ForgetCloud("renamed".into())));
    assert_eq!(next.state.unnamed_clouds().get(&old), Some(&10), "the roster names that one");
    assert!(next.case("i004", FaultKind::NotReady).is_some());
    next.feed(Event::Command(Command::ForgetCloud(old)));
    assert_eq!(next.state.unnamed_clouds().len(), 0);
    assert!(
        next.case("i004", FaultKind::NotReady).is_none(),
        "nothing stays open about what is no concern any more"
    );
    let again = next.restarted(renamed);
    assert_eq!(again.state.unnamed_clouds().len(), 0, "the ledger knows");
}

#[test]
fn a_ledger_that_refuses_stops_everything() {
    let mut field = Field::new(roster()).populate(5);
    field.run(Span::from_min(2));
    field.ports.get_mut("i001").unwrap().groups = Box::new([]);
    let snapshot = field.snapshot();
    let effects = field
        .step(Event::Cloud { cloud: "os".into(), fact: reveille_core::event::CloudFact::read(snapshot) });
    for effect in effects {
        if let Effect::Record { id, .. } = effect {
            let more = field.step(Event::RecordFailed(id));
            assert!(!more.iter().any(|effect| matches!(effect, Effect::Call { .. })));
        }
    }
    let held = field.held("i001", FaultKind::GroupMissing);
    assert!(held.contains("the ledger cannot be written"), "{held}");
}

#[test]
fn a_fenced_engine_acts_no_more() {
    let mut field = Field::new(roster()).populate(5);
    field.run(Span::from_min(2));
    field.ports.get_mut("i001").unwrap().groups = Box::new([]);
    let snapshot = field.snapshot();
    let mut effects = field
        .step(Event::Cloud { cloud: "os".into(), fact: reveille_core::event::CloudFact::read(snapshot) });
    while let Some(effect) = effects.pop() {
        match effect {
            Effect::Record { id, .. } => effects.extend(field.step(Event::Recorded(id))),
            Effect::Call { intent, .. } => {
                effects.extend(field.step(Event::Done { intent, outcome: Outcome::Fenced {} }));
            }
            _ => {}
        }
    }
    field.ledger = Ledger::unknown();
    field.run(Span::from_min(30));
    assert!(field.calls.is_empty(), "{:?}", field.calls);
}

#[test]
fn joins_of_a_whole_fleet_are_split_into_bounded_records() {
    let mut field = Field::new(roster()).populate(2_500);
    field.run(Span::from_s(30));
    let joined = |records: &[Record]| -> Vec<usize> {
        let machines = records.iter().filter_map(|record| match record {
            Record::Joined { machines, .. } => Some(machines.len()),
            _ => None,
        });
        machines.collect()
    };
    assert_eq!(joined(&field.records), [1_000, 1_000, 500], "as they join");
    assert_eq!(joined(&field.state.checkpoint()), [1_000, 1_000, 500], "and in a checkpoint");
}

/// The deletion of an errored machine was on its way when the process died, and its machine is on its way out.
fn died_while_deleting(state: InstanceState) -> Field {
    let mut field = Field::new(roster()).populate(5);
    field.add_machine("i009", false);
    field.run(Span::from_min(2));
    let errored = field.instances.get_mut("i009").unwrap();
    errored.state = InstanceState::Errored;
    errored.fault = Some(Fault { code: 500, message: "Build of instance failed.".into() });
    field.deaf = true;
    field.run(Span::from_min(2));
    assert!(matches!(field.calls[..], [Call::DeleteInstance(_), ..]), "{:?}", field.calls);
    field.records.retain(|record| !matches!(record, Record::Ended { .. } | Record::Judged { .. }));
    field.instances.get_mut("i009").unwrap().state = state;
    restarted(field)
}

/// The fresh read for the verdict came first and still saw it going, or nothing of it; the first listing lacks it.
#[test]
fn machine_gone_before_the_first_listing_has_no_open_incident() {
    for seen in [Some(InstanceState::Deleting), Some(InstanceState::Gone), None] {
        let mut field = died_while_deleting(seen.unwrap_or(InstanceState::Deleting));
        field.now = field.now + Span::from_s(1);
        if seen.is_none() {
            field.instances.remove("i009");
        }
        field.feed(Event::Tick);
        field.instances.remove("i009");
        field.run(Span::from_min(3));
        assert!(field.case("i009", FaultKind::Errored).is_none(), "{seen:?}: its incident is open");
    }
}

fn intents(records: &[Record]) -> Vec<u64> {
    let given = |record: &Record| match record {
        Record::Intended { intent, .. } => Some(intent.0),
        _ => None,
    };
    records.iter().filter_map(given).collect()
}

fn incidents(records: &[Record]) -> Vec<u64> {
    let given = |record: &Record| match record {
        Record::Opened { incident, .. } => Some(incident.0),
        _ => None,
    };
    records.iter().filter_map(given).collect()
}

/// Of incidents that are over only the newest are kept. What had a number may be forgotten by a rotated ledger; the number
/// is not given again.
#[test]
fn no_number_is_given_twice_although_what_had_it_is_forgotten() {
    let mut field = Field::new(roster()).populate(300);
    field.run(Span::from_min(2));
    field.ports.get_mut("i001").unwrap().groups = Box::new([]);
    field.run(Span::from_min(5));
    assert_eq!(intents(&field.records), [1]);
    field.nodes.values_mut().for_each(|node| node.ready = Ready::Unknown);
    field.run(Span::from_min(1));
    field.nodes.values_mut().for_each(|node| node.ready = Ready::True);
    field.run(Span::from_min(15));
    let before = incidents(&field.records);
    assert!(before.len() > 300 && field.state.closed().all(|closed| closed.incident.id.0 != 1));

    field.records = field.state.checkpoint();
    let rotated = field.records.len();
    let mut field = restarted(field);
    field.ports.get_mut("i002").unwrap().groups = Box::new([]);
    field.run(Span::from_min(5));
    let new = &field.records[rotated..];
    assert_eq!(intents(new), [2]);
    assert!(incidents(new).iter().all(|number| !before.contains(number)));
}

/// How often something was tried, how long it is waited for, and how much was begun within the hour, survive a rotation.
#[test]
fn a_checkpoint_keeps_what_limits_the_next_step() {
    let mut field = Field::new(roster()).populate(10);
    field.deaf = true;
    field.run(Span::from_min(2));
    field.nodes.get_mut("i001").unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(30));
    field.ports.get_mut("i002").unwrap().groups = Box::new([]);
    field.run(Span::from_min(5));
    let begun = |field: &Field| field.state.context().book.begun().collect::<Vec<_>>();
    let stands = |field: &Field| {
        let case = field.case("i002", FaultKind::GroupMissing).unwrap();
        (case.incident.repair_step, case.incident.tries, case.incident.not_before)
    };
    assert!(!begun(&field).is_empty() && stands(&field).1 > 1, "{:?} {:?}", begun(&field), stands(&field));
    let how = field.next_begins();
    let again = Field::with(State::restore(roster(), how, field.state.checkpoint()));
    assert_eq!(begun(&again), begun(&field));
    assert_eq!(stands(&again), stands(&field));
}

/// A cell denies a machine by its id until it counts as gone, and has it back: it is the machine that joined.
#[test]
fn a_machine_that_was_denied_and_is_back_is_no_newcomer() {
    let rotated = |mut field: Field| {
        field.records = field.state.checkpoint();
        restarted(field)
    };
    let lives: [fn(Field) -> Field; 3] = [|field| field, restarted, rotated];
    for next in lives {
        let mut field = Field::new(roster()).populate(10);
        field.run(Span::from_min(2));
        let away = field.instances.remove("i001").unwrap();
        field.nodes.remove("i001");
        field.run(Span::from_min(12));
        assert!(field.records.iter().any(|record| matches!(record, Record::Forgotten { .. })));
        let mut field = next(field);
        field.run(Span::from_min(2));
        field.instances.insert("i001".into(), away);
        field.run(Span::from_min(1));
        assert!(field.case("i001", FaultKind::NeverJoined).is_none(), "it joined once");
        assert!(field.case("i001", FaultKind::Vanished).is_some(), "{:?}", field.records);
    }
}

/// A machine is deleted, and the process is away for so long afterwards.
fn away_after_a_deletion(away: Span, meanwhile: impl FnOnce(&mut Field)) -> Field {
    let mut field = Field::new(roster()).populate(8);
    field.run(Span::from_min(2));
    field.add_machine("bad", false);
    field.instances.get_mut("bad").unwrap().state = InstanceState::Errored;
    while field.calls.is_empty() {
        field.run(Span::from_s(10));
    }
    field.run(Span::from_min(1));
    meanwhile(&mut field);
    let start = Start { fence: Fence(2), acting: true };
    let how = Restored { start, now: field.now + away, last_alive: Some(field.now) };
    let mut next = Field::with(State::restore(roster(), how, field.records));
    next.now = how.now;
    (next.instances, next.ports, next.nodes) = (field.instances, field.ports, field.nodes);
    next
}

#[test]
fn successor_made_while_no_process_ran_proves_replacement() {
    let vain = |field: &Field| {
        field.state.context().book.fault_count(
            Time::from_ms(0),
            &"workers".into(),
            reveille_core::plan::budget::REPLACEMENT_FAILED,
            None,
        )
    };
    let earned = |record: &Record| matches!(record, Record::Width { width: 2, .. });
    for away in [Span::from_min(2), Span::from_min(120)] {
        let mut field = away_after_a_deletion(away, |field| field.add_machine("new", true));
        field.run(Span::from_min(60));
        assert!(field.records.iter().any(earned), "{away}");
        assert_eq!((vain(&field), field.state.context().book.operations.len()), (0, 0), "{away}");
        // Others that were there before prove nothing.
        let mut field = away_after_a_deletion(away, |_| {});
        field.run(Span::from_min(60));
        assert!(!field.records.iter().any(earned), "{away}");
        assert_eq!(vain(&field), 1, "{away}");
        // One that does not stay well does not, either.
        let mut field = away_after_a_deletion(away, |field| field.add_machine("new", true));
        field.run(Span::from_s(30));
        field.nodes.get_mut("new").unwrap().ready = Ready::False;
        field.run(Span::from_min(60));
        assert!(!field.records.iter().any(earned), "{away}");
    }
}

/// A call failed, and another process takes the lead whose clock is minutes ahead: by that clock the backoff would be over.
#[test]
fn backoff_is_kept_when_the_next_process_has_a_fast_clock() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(2));
    (field.deaf, field.fails) = (true, true);
    field.ports.get_mut("i001").unwrap().groups = Box::new([]);
    field.run(Span::from_s(30));
    assert_eq!(field.calls.len(), 1, "{:?}", field.calls);
    let until = |field: &Field| {
        let case = field.case("i001", FaultKind::GroupMissing).unwrap();
        case.incident.not_before.unwrap().since(field.now)
    };
    let left = until(&field);
    assert!(left > Span::ZERO);
    let start = Start { fence: Fence(2), acting: true };
    let ahead = field.now + Span::from_min(5);
    let how = Restored { start, now: ahead, last_alive: Some(field.now) };
    let mut next = Field::with(State::restore(roster(), how, field.records.clone()));
    next.now = ahead;
    assert_eq!(until(&next), left);
}

/// Names are given again: what is told of a node that went says nothing of a machine of its name that no ledger knows.
#[test]
fn event_of_a_gone_node_is_not_matched_to_unknown_namesake() {
    let mut field = Field::new(roster()).populate(5);
    field.run(Span::from_min(2));
    let how = Restored {
        start: Start { fence: Fence(2), acting: true },
        now: field.now + Span::from_s(5),
        last_alive: Some(field.now),
    };
    let mut next = Field::with(State::restore(roster(), how, field.records.clone())).populate(5);
    next.now = field.now + Span::from_s(5);
    next.add_machine("i009", false);
    next.feed(Event::Cluster(ClusterFact::NodeEvent(NodeEvent {
        node: "node-i009".into(),
        uid: None,
        reason: "RemovingNode".into(),
        message: "Node node-i009 event: Removing Node node-i009 from Controller".into(),
        reporter: "node-controller".into(),
        stamped: None,
    })));
    next.run(Span::from_s(30));
    assert!(next.case("i009", FaultKind::Vanished).is_none());
    assert!(next.case("i009", FaultKind::NeverJoined).is_some());
}

/// Two repairs were being proved in one domain, and the later one was: the earlier one's failure counts for the next process.
#[test]
fn proof_of_a_repair_does_not_hide_failure_of_an_earlier_one() {
    let at = Time::from_ms(1_000_000);
    let domain = Domain { pool: "workers".into(), zone: None, kind: FaultKind::NotReady };
    let key = |id: &str| IncidentKey {
        subject: Subject::Machine(MachineKey::Instance("os".into(), id.into())),
        kind: FaultKind::NotReady,
    };
    let tried = |number: u64, id: &str, repair_step: u8, call: Call| {
        let (incident, intent) = (IncidentId(number), IntentId(number));
        let (pool, label) = (Some("workers".into()), id.into());
        let (before, domain) = (None, Some(domain.clone()));
        [
            Record::Opened {
                at,
                incident,
                key: key(id),
                pool,
                label,
                served_since: None,
                away_since: None,
                watched_from: None,
                resumed_at: None,
            },
            Record::Intended { at, intent, incident, repair_step, fence: Fence(1), call, before, domain },
            Record::Ended { at, intent, outcome: Outcome::Accepted { request: None } },
            Record::Judged { at, intent, held: true, text: "it took effect".into() },
        ]
    };
    let owned = roster().pools.into_values().next().unwrap().owned;
    let reboot = Call::Reboot(Reboot {
        cloud: "os".into(),
        instance: "i001".into(),
        hard: false,
        owned: owned.clone(),
    });
    let delete = Call::DeleteInstance(DeleteInstance {
        cloud: "os".into(),
        instance: "i002".into(),
        owned,
        rests_on: None,
    });
    let repair_step = |repair_step| {
        escalation(FaultKind::NotReady).iter().position(|known| *known == repair_step).unwrap() as u8
    };
    let mut records = Vec::from(tried(1, "i001", repair_step(RepairStep::Reboot), reboot));
    records.extend(tried(2, "i002", repair_step(RepairStep::Replace), delete));
    let (not_before, failures, proved) = (None, 0, Some(IntentId(2)));
    let successor = None;
    records.push(Record::Width { at, domain, width: 2, not_before, failures, proved, successor });
    let text = "it took effect and did not help in time".into();
    records.push(Record::Judged { at, intent: IntentId(1), held: false, text });
    let how = Restored { start: Start { fence: Fence(2), acting: true }, now: at, last_alive: Some(at) };
    let state = State::restore(roster(), how, records);
    let context = state.context();
    assert_eq!(context.cases.get(&key("i001")).unwrap().incident.tries, 1);
    assert!(context.book.operations.is_empty(), "one was proved, and the other failed");
}

/// Only a successor that joined makes old faults forgotten, and so it is for the next process.
#[test]
fn node_cleanup_does_not_forgive_faults_after_restart() {
    let at = Time::from_ms(1_000_000);
    let fault = |instance: &str| Record::FaultSeen {
        at,
        pool: "workers".into(),
        instance: instance.into(),
        fault: "no valid host".into(),
    };
    let domain = Domain { pool: "workers".into(), zone: None, kind: FaultKind::Ghost };
    let width =
        Record::Width { at, domain, width: 2, not_before: None, failures: 0, proved: None, successor: None };
    let how = Restored { start: Start { fence: Fence(2), acting: true }, now: at, last_alive: Some(at) };
    let state = State::restore(roster(), how, [fault("a"), fault("b"), width]);
    assert_eq!(
        state.context().book.fault_count(Time::from_ms(0), &"workers".into(), "no valid host", None),
        2
    );
}

/// The instance ended while no process was looking, and its cloud still lists it as ended.
#[test]
fn instance_ended_in_our_absence_was_deleted_by_other_client() {
    let mut field = Field::new(roster()).populate(5);
    field.run(Span::from_min(2));
    field.instances.get_mut("i001").unwrap().state = InstanceState::Gone;
    field.ports.remove("i001");
    field.nodes.remove("i001");
    let mut next = restarted(field);
    next.run(Span::from_min(1));
    assert!(
        next.state.context().others.of(&"workers".into()).next().is_some(),
        "its pool is left alone for a while"
    );
}

/// A full disk refuses that a machine joined, and a smaller record that was on its way already finds room: that it was drained
/// and deleted. What is written again must not unsay that.
#[test]
fn refused_record_that_is_written_again_unsays_no_later_one() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(3));
    field.add_machine("i050", false);
    field.run(Span::from_s(30));
    field.nodes.insert("i050".into(), node("i050", Ready::True));
    let there = Arc::new(field.nodes["i050"].clone());
    let cordoned = Arc::new(Node { cordoned: true, ..field.nodes["i050"].clone() });
    let (name, uid) = (there.name.clone(), there.uid.clone());
    let refused = field.step(Event::Cluster(ClusterFact::Applied(there)));
    let mut kept = field.step(Event::Cluster(ClusterFact::Applied(cordoned)));
    kept.extend(field.step(Event::Cluster(ClusterFact::Deleted { name, uid })));
    field.nodes.remove("i050");
    for effect in refused {
        let Effect::Record { id, .. } = effect else { continue };
        field.step(Event::RecordFailed(id));
    }
    for effect in kept {
        let Effect::Record { id, record } = effect else { continue };
        field.records.push(record);
        field.step(Event::Recorded(id));
    }
    // The ledger that lagged behind is given a checkpoint, before the refused records come again.
    field.records = field.state.checkpoint();
    field.run(Span::from_min(30));
    assert_eq!(field.calls, []);
    let mut next = field.restarted(roster());
    next.run(Span::from_min(90));
    assert_eq!(next.calls, []);
}

/// Time synchronisation sets the clock back by some milliseconds each few minutes.
#[test]
fn clock_that_steps_back_by_milliseconds_delays_no_repair() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    field.nodes.get_mut("i007").unwrap().ready = Ready::Unknown;
    for _ in 0..60 {
        field.run(Span::from_min(4));
        let now = field.now;
        field.now = now - Span::from_ms(900);
        field.feed(Event::Tick);
        field.now = now;
    }
    assert!(field.destructive_calls() > 1, "{:?}", field.calls);
}

/// A replacement took effect, and its successor is waited for. A rotation of the ledger forgets neither: the next process does
/// not ask the cloud about it, as if its call were still out.
#[test]
fn a_checkpoint_keeps_that_a_deletion_took_effect() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    let found = field.instances.get_mut("i004").unwrap();
    found.state = InstanceState::Errored;
    field.nodes.remove("i004");
    let judged =
        |field: &Field| field.records.iter().any(|it| matches!(it, Record::Judged { held: true, .. }));
    field.run_until(Span::from_min(60), judged);
    assert!(judged(&field), "{:?}", field.calls);
    let tried = |state: &State| state.context().book.tried().clone();
    let how = field.next_begins();
    let whole = State::restore(roster(), how, field.records.clone());
    let rotated = State::restore(roster(), how, field.state.checkpoint());
    let phases = |state: &State| {
        state.context().book.operations.values().map(|it| it.phase.clone()).collect::<Vec<_>>()
    };
    assert!(matches!(phases(&rotated)[..], [Phase::Proving { .. }]), "{:?}", phases(&rotated));
    assert_eq!(phases(&rotated), phases(&whole));
    assert_eq!(tried(&rotated), tried(&whole));
}

/// Twice within the hour a reboot cured it; the third one is answered as changed, which is no try. The next process climbed all
/// the same, because two tries were counted before, and the machine was deleted.
#[test]
fn reboot_that_was_no_try_is_no_step_in_the_next_process() {
    let mut roster = roster();
    let pool = roster.pools.values_mut().next().unwrap();
    pool.repair.rejoin = Mode::Off;
    let mut field = Field::new(roster.clone()).populate(10);
    field.run(Span::from_min(5));
    let falls_silent = |field: &mut Field| {
        let calls = field.calls.len();
        field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
        field.run_until(Span::from_min(60), |field| field.calls.len() > calls);
        assert!(field.calls.len() > calls, "{}", field.held("i004", FaultKind::NotReady));
    };
    for _ in 0..2 {
        falls_silent(&mut field);
        field.boots("i004");
        field.run(Span::from_min(4));
        assert!(field.case("i004", FaultKind::NotReady).is_none(), "it helped");
    }
    field.denial = Some(Outcome::Moved { text: "the server is locked".into() });
    falls_silent(&mut field);
    let stands = |field: &Field| {
        let incident = &field.case("i004", FaultKind::NotReady).unwrap().incident;
        (incident.repair_step, incident.tries)
    };
    let before = stands(&field);
    assert_eq!(stands(&field.restarted(roster)), before);
}

/// A pool of bare metal, whose machines boot for an hour: the patience of a reboot is its pool's in the next process, too.
#[test]
fn patience_of_a_slow_pool_outlives_a_restart() {
    let mut roster = roster();
    let pool = roster.pools.values_mut().next().unwrap();
    pool.repair.rejoin = Mode::Off;
    pool.deadlines.join_within = Some(Span::from_min(60));
    let mut field = Field::new(roster.clone()).populate(10);
    field.run(Span::from_min(5));
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    let not_before = |field: &Field| field.case("i004", FaultKind::NotReady)?.incident.not_before;
    field.run_until(Span::from_min(90), |field| not_before(field).is_some());
    let before = not_before(&field);
    assert!(before > Some(field.now + Span::from_min(55)), "{before:?}");
    let after = not_before(&field.restarted(roster));
    assert!(after >= before, "{after:?} {before:?}");
}

/// The process died before it could say that its deletion took effect, and the successor is there when the next one looks: it is
/// the proof, although the next process never saw it being made.
#[test]
fn successor_made_before_the_verdict_proves_the_replacement() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    field.instances.get_mut("i004").unwrap().state = InstanceState::Errored;
    field.nodes.remove("i004");
    field.mute = Some(Vec::new());
    field.run_until(Span::from_min(60), |field| !field.calls.is_empty());
    let call = field.calls.first().cloned().expect("it is replaced");
    field.apply(&call);
    field.add_machine("new", true);
    let mut field = field.restarted(roster());
    field.run(Span::from_min(10));
    let helped = |it: &Record| matches!(it, Record::Width { proved: Some(_), .. });
    assert!(field.records.iter().any(helped), "its successor answers");
    assert!(field.state.context().book.operations.is_empty());
}

/// A person cordons a Node, and deletes it hours later while no process runs: what kubelets said of the cordon is forgotten by
/// then. The next process knows it by the ledger, and leaves the machine alone.
#[test]
fn cordoned_node_deleted_while_no_process_ran_was_drained() {
    for rotated in [false, true] {
        let mut field = Field::new(roster()).populate(10);
        field.run(Span::from_min(5));
        field.nodes.get_mut("i004").unwrap().cordoned = true;
        field.run(Span::from_min(5));
        if rotated {
            field.records = field.state.checkpoint();
        }
        field.nodes.remove("i004");
        let mut field = field.restarted(roster());
        field.run(Span::from_min(240));
        assert_eq!(field.calls, [], "rotated: {rotated}");
        assert!(field.records.iter().any(|record| matches!(record, Record::Left { .. })));
    }
}

/// The cordon was taken back: its Node went for another reason.
#[test]
fn node_whose_cordon_was_taken_back_is_missed() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    for cordoned in [true, false] {
        field.nodes.get_mut("i004").unwrap().cordoned = cordoned;
        field.run(Span::from_min(5));
    }
    let gone = field.nodes.remove("i004").unwrap();
    let mut field = field.restarted(roster());
    cloud_deletes(&mut field, &gone);
    field.run(Span::from_min(60));
    assert!(matches!(field.calls.first(), Some(Call::Reboot(_))), "{:?}", field.calls);
}
