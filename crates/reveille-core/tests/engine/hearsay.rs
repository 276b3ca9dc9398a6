//! Events about a Node, which each kubelet may write about every Node: they explain a problem, and neither permit nor prevent a
//! repair.

use std::sync::Arc;

use reveille_core::effect::Call;
use reveille_core::model::cause::{Cause, Entry};
use reveille_core::model::evidence::{Line, Source};
use reveille_core::model::incident::{Confidence, FaultKind};
use reveille_core::model::log_findings::{LogFinding, Quote};
use reveille_core::model::node::Ready;
use reveille_core::model::stage::Stage;
use reveille_core::model::time::Span;

use super::fixture::{Field, instance, roster};
use super::replacing::deletes;
use super::steps::{made, min, set, without_rejoin};

/// What a catalogue may make of one line of this source.
fn told(source: Source, change: impl FnOnce(&mut Entry)) -> LogFinding {
    let mut entry = Entry::named("RV901".into(), "by-an-event".into(), Stage::FetchConfig);
    change(&mut entry);
    LogFinding {
        cause: Cause::Catalogued(Arc::new(entry)),
        stage: Stage::FetchConfig,
        confidence: Confidence::Sure,
        unanswered: false,
        no_lease: false,
        proof: vec![Quote {
            source,
            text: "Note pod-of-another reveille doctor: check boot failed".into(),
            line: Line { number: 0, times: 1, sign: "doctor-found".into() },
        }],
        against: Vec::new(),
        follows: Vec::new(),
    }
}

fn deletions(field: &Field) -> usize {
    field.calls.iter().filter(|call| matches!(call, Call::DeleteInstance(_))).count()
}

/// Its history is not known, so it is not replaced: an event of another kubelet said that its first boot failed, and it was
/// deleted.
#[test]
fn event_alone_deletes_no_machine_of_unknown_history() {
    let mut field = Field::new(roster()).populate(10);
    field.told = vec![told(Source::Events, |entry| {
        (entry.first_boot, entry.no_reboot) = (true, Some("a first boot is not repeated".into()));
    })];
    field.add_machine("old", false);
    field.instances.get_mut("old").unwrap().marks = Arc::default();
    field.run(Span::from_min(30));
    field.instances.get_mut("old").unwrap().marks = instance("old").marks;
    field.run(Span::from_min(240));
    assert_eq!(deletions(&field), 0, "{:?}", field.calls);
}

/// A machine that had joined is rebooted before it is deleted, whatever an event says of it.
#[test]
fn event_alone_takes_no_reboot_away_before_a_deletion() {
    let mut field = Field::new(without_rejoin()).populate(10);
    field.told = vec![told(Source::Events, |entry| entry.no_reboot = Some("of no use".into()))];
    field.run(Span::from_min(5));
    set(&mut field, "i004", Ready::Unknown);
    field.run_until(Span::from_min(120), |field| field.destructive_calls() > 0);
    assert!(matches!(field.calls.first(), Some(Call::Reboot(_))), "{:?}", field.calls);
}

/// One event an hour kept a dead machine from reboot and deletion for as long as it came.
#[test]
fn event_alone_holds_no_machine_for_ever() {
    let mut field = Field::new(without_rejoin()).populate(10);
    let no_use = || Some(Arc::from("of no use"));
    field.told =
        vec![told(Source::Events, |entry| (entry.no_reboot, entry.no_replace) = (no_use(), no_use()))];
    field.run(Span::from_min(5));
    set(&mut field, "i004", Ready::Unknown);
    field.run(Span::from_min(12 * 60));
    assert!(field.destructive_calls() > 0, "held for twelve hours");
}

/// Of a machine of unknown history the console proves that its first boot failed: it is replaced. Words of events about a Node of
/// its name, which outrank that by their number, or come first by their stage, prevented it for good.
#[test]
fn event_alone_prevents_nothing_that_a_console_permits() {
    for with_event in [false, true] {
        let mut field = Field::new(roster()).populate(10);
        let first_boot = told(Source::Console, |entry| {
            (entry.first_boot, entry.no_reboot) = (true, Some("a first boot is not repeated".into()));
        });
        field.told =
            if with_event { vec![told(Source::Events, |_| {}), first_boot] } else { vec![first_boot] };
        field.add_machine("old", false);
        field.instances.get_mut("old").unwrap().marks = Arc::default();
        field.run(min(30));
        field.instances.get_mut("old").unwrap().marks = super::fixture::instance("old").marks;
        field.run(min(24 * 60));
        let held =
            field.case("old", FaultKind::NeverJoined).map(|_| field.held("old", FaultKind::NeverJoined));
        assert!(deletes(&field) > 0, "with an event: {with_event}: {:?}: {held:?}", made(&field));
    }
}
