//! Which machines are newborn: by the cloud's own clock, not by when their marks came.

use std::sync::Arc;

use reveille_core::effect::Call;
use reveille_core::model::cause::{Cause, Entry};
use reveille_core::model::incident::{Confidence, FaultKind};
use reveille_core::model::instance::{Instance, InstanceState, Mark};
use reveille_core::model::log_findings::LogFinding;
use reveille_core::model::node::Ready;
use reveille_core::model::stage::Stage;
use reveille_core::model::time::{ServiceTime, Span, Time};

use super::fixture::{Field, instance, roster, stamp};

fn marks(field: &mut Field, id: &str, marks: Arc<std::collections::BTreeSet<Mark>>) {
    field.instances.get_mut(id).unwrap().marks = marks;
}

fn replaced(field: &Field) -> bool {
    field.calls.iter().any(|call| matches!(call, Call::DeleteInstance(_)))
}

/// An operator tags a machine that has run for long, and four hours pass.
fn tags_old_machine(field: &mut Field) {
    field.add_machine("old", false);
    let own = instance("old").marks;
    marks(field, "old", Arc::default());
    field.run(Span::from_min(30));
    marks(field, "old", own);
    field.run(Span::from_min(240));
}

/// What it was before is not known, so it is not replaced.
#[test]
fn old_machine_that_is_tagged_late_is_no_newborn() {
    let mut field = Field::new(roster()).populate(10);
    tags_old_machine(&mut field);
    assert!(field.case("old", FaultKind::NeverJoined).is_some());
    assert!(!replaced(&field), "{:?}", field.calls);
    let held = field.held("old", FaultKind::NeverJoined);
    assert!(held.contains("older than this controller's first listing"), "{held}");
}

/// The clock of the cloud goes back by hours for a while, as where a time server is wrong. By it, the machine was made after the
/// last listing (7000445).
#[test]
fn tagged_machine_is_no_newborn_where_cloud_clock_went_back() {
    let mut field = Field::new(roster()).populate(10);
    field.add_machine("old", false);
    let own = field.instances["old"].marks.clone();
    marks(&mut field, "old", Arc::default());
    field.run(Span::from_min(40));
    field.cloud_behind = Span::from_min(8 * 60);
    field.run(Span::from_min(5));
    marks(&mut field, "old", own);
    field.run(Span::from_min(10));
    field.cloud_behind = Span::ZERO;
    field.run(Span::from_min(240));
    assert!(!replaced(&field), "{:?}", field.calls);
}

/// The clock of the cloud is ahead by hours for some minutes, in which a person makes a machine without its marks, tries it,
/// drains it and keeps it. By the cloud it was made in the future (8050334).
#[test]
fn machine_made_while_cloud_clock_was_ahead_is_no_newborn_later() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(30));
    field.add_machine("old", false);
    let own = field.instances["old"].marks.clone();
    let ahead = stamp(field.now + Span::from_min(8 * 60));
    field.instances.get_mut("old").unwrap().created = Some(ahead);
    marks(&mut field, "old", Arc::default());
    field.run(Span::from_min(40));
    marks(&mut field, "old", own);
    field.run(Span::from_min(240));
    assert!(field.case("old", FaultKind::NeverJoined).is_some());
    assert!(!replaced(&field), "{:?}", field.calls);
}

/// What its console says of a first boot may be of years ago, and only a proof is enough to delete what may hold data.
#[test]
fn old_machine_is_replaced_only_on_proven_first_boot_failure() {
    let mut entry = Entry::named("RV901".into(), "ignition-failed".into(), Stage::FetchConfig);
    (entry.first_boot, entry.no_reboot) = (true, Some("a first boot is not repeated".into()));
    for (confidence, gone) in [(Confidence::Likely, false), (Confidence::Sure, true)] {
        let mut field = Field::new(roster()).populate(10);
        field.told = vec![LogFinding {
            cause: Cause::Catalogued(Arc::new(entry.clone())),
            stage: Stage::FetchConfig,
            confidence,
            unanswered: false,
            no_lease: false,
            proof: Vec::new(),
            against: Vec::new(),
            follows: Vec::new(),
        }];
        tags_old_machine(&mut field);
        assert_eq!(replaced(&field), gone, "{confidence:?}: {:?}", field.calls);
    }
}

/// A person takes the marks off two of six, and the controller is restarted: no list will hold these two again.
#[test]
fn machines_without_marks_end_no_sight_of_the_others() {
    let mut field = Field::new(roster()).populate(6);
    field.run(Span::from_min(30));
    for id in ["i001", "i002"] {
        marks(&mut field, id, Arc::default());
        field.run(Span::from_min(30));
    }
    let mut field = field.restarted(roster());
    field.run(Span::from_min(60));
    sees_and_repairs(&mut field);
}

/// A third and more of a fleet is given to another cluster in one command, and their Nodes stay Ready.
#[test]
fn many_machines_unmarked_at_once_are_verified_and_released() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(30));
    for id in ["i000", "i001", "i002", "i003", "i005"] {
        marks(&mut field, id, Arc::default());
    }
    field.run(Span::from_min(60));
    sees_and_repairs(&mut field);
}

fn sees_and_repairs(field: &mut Field) {
    let doubt = field.state.context().clouds["os"].source.doubted().cloned();
    assert_eq!(doubt, None);
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(60));
    assert!(matches!(field.calls.first(), Some(Call::Reboot(_))), "{:?}", field.calls);
}

#[test]
fn machine_made_since_the_last_listing_is_newborn() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(30));
    field.add_machine("new", false);
    field.run(Span::from_min(240));
    assert!(replaced(&field), "{:?}", field.calls);
}

/// A cloud that tells neither its time nor when a machine was made: only what was seen building is newborn.
#[test]
fn without_clocks_only_a_building_machine_is_newborn() {
    for (state, newborn) in [(InstanceState::Building, true), (InstanceState::Active, false)] {
        let mut field = Field::new(roster()).populate(10);
        field.run(Span::from_min(2));
        field.instances.insert("new".into(), Instance { state, ..instance("new") });
        field.run(Span::from_min(1));
        field.instances.get_mut("new").unwrap().state = InstanceState::Active;
        field.run(Span::from_min(240));
        assert_eq!(replaced(&field), newborn, "{state:?}: {:?}", field.calls);
    }
}

/// The cloud's clock is an hour behind ours: only its own two moments are compared.
#[test]
fn clock_of_the_cloud_may_differ_from_ours() {
    let mut field = Field::new(roster()).populate(10);
    field.cloud_behind = Span::from_min(60);
    field.run(Span::from_min(90));
    field.add_machine("new", false);
    field.run(Span::from_min(240));
    assert!(replaced(&field), "{:?}", field.calls);
}

#[test]
fn moments_of_services_are_read_as_they_write_them() {
    let table = [
        ("1970-01-01T00:00:00Z", Some(0)),
        ("2026-11-21T10:00:00Z", Some(1_795_255_200)),
        ("2026-11-21T10:00:00.000Z", Some(1_795_255_200)),
        ("2024-02-29T23:59:59Z", Some(1_709_251_199)),
        ("2026-11-21T10:00:00+01:00", None),
        ("2026-13-21T10:00:00Z", None),
        ("2026-11-21 10:00:00Z", None),
        ("yesterday", None),
        ("", None),
    ];
    for (text, s) in table {
        assert_eq!(ServiceTime::parse(text), s.map(ServiceTime::from_s), "{text}");
    }
    assert_eq!(ServiceTime::parse(&stamp(Time::from_ms(90_061_000))), Some(ServiceTime::from_s(90_061)));
}

/// A machine that is built while one process gives way to the next, and never joins.
#[test]
fn machine_built_across_a_restart_is_replaced_normally() {
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Restart {
        Never,
        WhileItIsBuilt,
        BeforeItRuns,
        BeforeItIsMade,
        WithRotation,
    }
    use Restart::{BeforeItIsMade, BeforeItRuns, Never, WhileItIsBuilt, WithRotation};
    for restart in [Never, WhileItIsBuilt, BeforeItRuns, BeforeItIsMade, WithRotation] {
        let mut field = Field::new(roster()).populate(10);
        field.run(Span::from_min(20));
        let state = |field: &mut Field, is: InstanceState| field.instances.get_mut("new").unwrap().state = is;
        field.add_machine("new", false);
        state(&mut field, InstanceState::Building);
        if restart != BeforeItIsMade {
            field.run(Span::from_min(1));
        }
        match restart {
            BeforeItRuns => state(&mut field, InstanceState::Active),
            WithRotation => field.records = field.state.checkpoint(),
            _ => {}
        }
        if restart != Never {
            field = field.restarted(roster());
        }
        field.run(Span::from_min(1));
        state(&mut field, InstanceState::Active);
        field.run(Span::from_min(240));
        assert!(replaced(&field), "{restart:?}: {}", field.held("new", FaultKind::NeverJoined));
    }
}
