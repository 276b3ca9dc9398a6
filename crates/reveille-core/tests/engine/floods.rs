//! A Node whose signs and requests change many times a second: the ledger is told of some, and of the last.

use std::sync::Arc;

use reveille_core::event::{AgentFact, ClusterFact, Event};
use reveille_core::model::agent::{AgentBlocker, AgentBlockerKind, StageError, StageSaid};
use reveille_core::model::agent_report::AgentReport;
use reveille_core::model::id::AgentId;
use reveille_core::model::incident::FaultKind;
use reveille_core::model::node::{Asks, Node, Ready};
use reveille_core::model::roster::Mode;
use reveille_core::model::signs;
use reveille_core::model::stage::Stage;
use reveille_core::model::time::Span;
use reveille_core::record::Record;

use super::fixture::{Field, roster};
use super::steps::{made, min, roster_with, set};

/// The watch tells of this Node as it is now, with no time between.
fn writes(field: &mut Field, change: impl FnOnce(&mut Node)) {
    let node = field.nodes.get_mut("i004").unwrap();
    change(node);
    let node = Arc::new(node.clone());
    field.now = field.now + Span::from_ms(20);
    field.feed(Event::Cluster(ClusterFact::Applied(node)));
}

/// A kubelet may annotate its own Node, fifty times a second. Each line is an fsync, and nine segments are all that the ledger
/// keeps: what it knew of others was pushed out of its history within a night. The last value is heard in the end.
#[test]
fn requests_of_one_node_fill_no_ledger() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    let before = field.records.len();
    for number in 0..1000 {
        writes(&mut field, |node| {
            let asks = Asks { repair: Some(format!("OPS-{number}").into()), ..Asks::default() };
            node.intent.asks = Some(Box::new(asks));
        });
    }
    let asked = |record: &&Record| matches!(record, Record::Asked { .. });
    let count = field.records[before..].iter().filter(asked).count();
    assert!(count <= 100, "{count} records of requests in twenty seconds");
    field.run(Span::from_min(3));
    let last = field.records.iter().rev().find_map(|record| match record {
        Record::Asked { value, .. } => Some(&**value),
        _ => None,
    });
    assert_eq!(last, Some("OPS-999"));
}

/// Three minutes in which the Node stays as it is. A process that began in the first two of them would read its last sign from
/// the Node alone, so that this does without the check that the ledger has all.
fn pass_minutes(field: &mut Field) {
    for _ in 0..18 {
        field.now = field.now + Span::from_s(10);
        writes(field, |_| ());
    }
}

/// The last sign that the ledger knows of a machine's Node, and whether it is a cordon.
fn last_sign(field: &Field) -> Option<(String, bool)> {
    field.records.iter().rev().find_map(|record| match record {
        Record::Cordoned { sign, cordoned, .. } => {
            Some((sign.as_deref().unwrap_or_default().to_owned(), *cordoned))
        }
        _ => None,
    })
}

/// The same with a pause that comes and goes.
#[test]
fn pauses_of_one_node_fill_no_ledger() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    let before = field.records.len();
    for number in 0..1000 {
        writes(&mut field, |node| node.intent.paused = number % 2 == 0);
    }
    let count = field.records.len() - before;
    assert!(count <= 200, "{count} records in twenty seconds");
    writes(&mut field, |node| node.intent.paused = true);
    pass_minutes(&mut field);
    assert_eq!(last_sign(&field), Some((signs::PAUSE.to_owned(), false)));
}

/// And with a cordon.
#[test]
fn cordons_of_one_node_fill_no_ledger() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    let before = field.records.len();
    for number in 0..1000 {
        writes(&mut field, |node| node.cordoned = number % 2 == 0);
    }
    let count = field.records.len() - before;
    assert!(count <= 200, "{count} records in twenty seconds");
    writes(&mut field, |node| node.cordoned = true);
    pass_minutes(&mut field);
    assert_eq!(last_sign(&field), Some((String::new(), true)));
}

/// After a quiet time a person's request counts at once, however often the kubelet asked before.
#[test]
fn request_after_a_quiet_time_is_heard_at_once() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    let ask = |field: &mut Field, value: &str| {
        writes(field, |node| {
            node.intent.asks = Some(Box::new(Asks { repair: Some(value.into()), ..Asks::default() }));
        });
    };
    (0..1000).for_each(|number| ask(&mut field, &format!("OPS-{number}")));
    field.run(Span::from_min(5));
    ask(&mut field, "of-a-person");
    let heard = |record: &Record| matches!(record, Record::Asked { value, .. } if **value == *"of-a-person");
    assert!(field.records.iter().any(heard));
}

/// A client creates a Node with a made-up providerID, whose read fails, and deletes it; and so on. What is kept of each of them
/// is kept for three hours.
#[test]
fn failed_reads_for_deleted_nodes_are_forgotten() {
    let mut field = Field::new(roster()).populate(10);
    field.run(min(5));
    let mut ids = Vec::new();
    for number in 0..500 {
        let id = format!("made-up-{number}");
        field.cell_down = Some(id.clone());
        field.nodes.insert(id.clone(), super::fixture::node(&id, Ready::Unknown));
        field.run(Span::from_s(10));
        field.nodes.remove(&id);
        ids.push(id);
    }
    field.run(Span::from_s(40));
    let view = &field.state.context().clouds[super::fixture::CLOUD];
    let kept = ids.iter().filter(|id| view.failed_reads(&id.as_str().into()).is_some()).count();
    assert!(kept < 50, "{kept} of {} ids of Nodes that are gone are kept", ids.len());
}

/// A client that may create Nodes gives a serving machine a second one, Ready, and annotates the two in turn. Each change is a
/// record.
#[test]
fn two_changing_nodes_of_one_machine_fill_no_ledger() {
    let mut field = Field::new(roster()).populate(10);
    field.run(min(20));
    let mut twin = super::fixture::node("i003", Ready::True);
    (twin.name, twin.uid) = ("node-twin".into(), "uid-twin".into());
    field.nodes.insert("twin".into(), twin);
    field.run(min(2));
    let before = field.records.len();
    for number in 0..500_u32 {
        for id in ["i003", "twin"] {
            let mut node = field.nodes[id].clone();
            node.intent.asks =
                Some(Box::new(Asks { confirm: Some(format!("inc-{number}").into()), ..Asks::default() }));
            field.nodes.insert(id.into(), node.clone());
            field.feed(Event::Cluster(ClusterFact::Applied(Arc::new(node))));
        }
    }
    let joined = |record: &&Record| matches!(record, Record::Joined { .. });
    let told = field.records[before..].iter().filter(joined).count();
    assert!(told < 100, "{told} records of joins: {:?}", field.records.last());
}

/// A kubelet may write the Ready condition of its own Node, fifty times a second. Each finding that differs is a record.
#[test]
fn changing_findings_fill_no_ledger() {
    let mut told = Vec::new();
    for turns in [[Ready::False, Ready::Unknown], [Ready::False, Ready::True]] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        set(&mut field, "i004", Ready::False);
        field.run(min(2));
        let before = field.records.len();
        for _ in 0..500 {
            for ready in turns {
                applies(&mut field, |node| node.ready = ready);
            }
        }
        told.push((turns, field.records.len() - before));
    }
    assert!(told.iter().all(|(_, told)| *told < 100), "records in twenty seconds: {told:?}");
}

/// Others change the signs on a machine's Node again and again. A person pauses it, is done, and reboots it by hand; we are
/// restarted in that minute. The next process does not know that it was let go of, and reboots it while it boots.
#[test]
fn released_machine_gets_time_to_boot_amid_a_cordon_quarrel() {
    let wanted = || {
        roster_with(|pool| {
            (pool.repair.rejoin, pool.deadlines.join_within) = (Mode::Off, Some(min(60)));
        })
    };
    for changes in [0, 30] {
        let mut field = Field::new(wanted()).populate(10);
        field.run(min(20));
        for number in 0..changes {
            applies(&mut field, |node| node.cordoned = number % 2 == 0);
        }
        applies(&mut field, |node| node.intent.paused = true);
        field.now = field.now + Span::from_s(20);
        applies(&mut field, |node| node.intent.paused = false);
        let mut field = field.restarted(wanted());
        field.run(min(1));
        set(&mut field, "i004", Ready::Unknown);
        field.run(min(40));
        assert_eq!(field.calls, [], "after {changes} changes: {:?}", made(&field));
    }
}

/// Two programs quarrel about the cordon of a dead machine. A person pauses it, looks, takes the pause away, and asks for a
/// repair two minutes later: they know what was done before. What was put off is told a moment after that, as if they had let
/// go of the machine then, and their request waits for the time of a boot.
#[test]
fn request_after_pause_is_carried_out_amid_a_cordon_quarrel() {
    let wanted = || {
        roster_with(|pool| {
            (pool.repair.rejoin, pool.deadlines.join_within) = (Mode::Off, Some(min(60)));
        })
    };
    for changes in [0, 30] {
        let mut field = Field::new(wanted()).populate(10);
        field.run(min(20));
        set(&mut field, "i004", Ready::Unknown);
        field.run(min(1));
        for number in 0..changes {
            applies(&mut field, |node| node.cordoned = number % 2 == 0);
        }
        applies(&mut field, |node| node.intent.paused = true);
        applies(&mut field, |node| node.intent.paused = false);
        field.watch_for(Span::from_s(110));
        field.unanswered = Some(Vec::new());
        let asks = Asks { repair: Some("OPS-1".into()), ..Asks::default() };
        applies(&mut field, |node| node.intent.asks = Some(Box::new(asks)));
        field.watch_for(Span::from_s(20));
        field.answer_all();
        field.watch_for(min(20));
        let held = field.case("i004", FaultKind::NotReady).map(|_| field.held("i004", FaultKind::NotReady));
        assert!(!field.calls.is_empty(), "after {changes} changes: {held:?}");
    }
}

fn applies(field: &mut Field, change: impl FnOnce(&mut Node)) {
    let node = field.nodes.get_mut("i004").unwrap();
    change(node);
    let node = Arc::new(node.clone());
    field.now = field.now + Span::from_ms(20);
    field.feed(Event::Cluster(ClusterFact::Applied(node)));
}

/// The agent of `i004` reports a second later.
fn reports(field: &mut Field, report: &mut AgentReport) {
    report.number += 1;
    let said = AgentFact::Said { agent: AgentId::new("agent-i004"), report: Arc::new(report.clone()) };
    field.now = field.now + Span::from_s(1);
    field.feed(Event::Agent(said));
}

/// What an agent says of a machine that is to go, or is not.
fn leaving(is_to_go: bool) -> Option<AgentBlocker> {
    is_to_go.then(|| AgentBlocker { kind: AgentBlockerKind::Leaving, text: "scaled down".into() })
}

/// A stage that fails with another error each time.
fn failed_stage(number: u64) -> Vec<StageSaid> {
    let error = Some(StageError { code: format!("CODE_{number}").as_str().into(), text: "".into() });
    vec![StageSaid { stage: Stage::KubeletStart, passed: false, attempts: 1, error }]
}

/// Whether each trace of these records says that the machine is to go.
fn traced(records: &[Record]) -> Vec<bool> {
    let is_to_go = |record: &Record| match record {
        Record::Traced { told, .. } => {
            let blocker = told.as_ref().and_then(|told| told.blocker.as_ref());
            Some(blocker.is_some_and(|blocker| blocker.kind == AgentBlockerKind::Leaving))
        }
        _ => None,
    };
    records.iter().filter_map(is_to_go).collect()
}

/// A trace takes up to five kilobytes of the ledger, and an agent may change its mind with each report. Here it does so for ten
/// minutes. What it says last is told in the end, and until then the ledger holds that the machine is to go.
#[test]
fn reports_of_one_agent_fill_no_ledger() {
    for how in ["leaving", "codes"] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(5));
        set(&mut field, "i004", if how == "codes" { Ready::Unknown } else { Ready::True });
        field.run(min(7));
        let (before, mut report) = (field.records.len(), Field::report("i004"));
        for number in 1..=601 {
            match how {
                "leaving" => report.blocker = leaving(number % 2 == 0),
                _ => report.stages = failed_stage(number),
            }
            reports(&mut field, &mut report);
        }
        let told = traced(&field.records[before..]);
        assert!((1..=20).contains(&told.len()), "{how}: {told:?}");
        if how == "leaving" {
            assert_eq!([told.last(), traced(&field.state.checkpoint()).last()], [Some(&true); 2]);
        }
        pass_minutes(&mut field);
        assert_eq!(traced(&field.records).last(), Some(&false), "{how}");
    }
}

/// An agent floods the ledger with errors, and then a person has the machine go: a process that begins a moment later has to
/// know.
#[test]
fn machine_that_is_to_go_is_told_of_at_once_in_a_flood() {
    let mut field = Field::new(roster()).populate(10);
    field.run(min(5));
    set(&mut field, "i004", Ready::Unknown);
    field.run(min(7));
    let mut report = Field::report("i004");
    for number in 1..=100 {
        report.stages = failed_stage(number);
        reports(&mut field, &mut report);
    }
    report.blocker = leaving(true);
    reports(&mut field, &mut report);
    assert_eq!(traced(&field.records).last(), Some(&true));
}
