//! Compares pages with files, character by character.
//!
//! Each test feeds a state by hand, makes a report, and renders it without colours in UTC. After an intended change, run
//! the tests once with `REVEILLE_BLESS=1` and read the difference with the eyes of a tired operator.

use std::path::Path;
use std::sync::Arc;

use jiff::tz::TimeZone;
use reveille_core::effect::{ReadError, ReadErrorKind};
use reveille_core::engine::{Restored, Start, State};
use reveille_core::event::{AgentFact, CloudFact, ClusterFact, Command, Event, Pause, PauseScope};
use reveille_core::model::agent::{ApiSaid, KubeletSaid, StageError, StageSaid, Who, Work};
use reveille_core::model::agent_report::AgentReport;
use reveille_core::model::id::Fence;
use reveille_core::model::incident::MachineKey;
use reveille_core::model::instance::{Fault, InstanceState};
use reveille_core::model::node::{Asks, Node, NodeEvent, Ready};
use reveille_core::model::stage::Stage;
use reveille_core::model::time::Span;
use reveille_wire::report::{Answers, Report, Side};

use super::output_style::Paper;
use super::{incidents, plan, status, why};
use crate::fixture::{self, Field};
use crate::view;
use crate::view::ask::{Ask, Asked, Reply, answer};

fn paper() -> Paper {
    Paper { width: None, colored: false, zone: TimeZone::UTC }
}

fn is_page(name: &str, page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages").join(format!("{name}.txt"));
    if std::env::var_os("REVEILLE_BLESS").is_some() {
        std::fs::write(&path, page).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(page, expected, "{name}");
}

/// Eight machines: one port lost its security group, one machine its Node; one has not joined, one is in error, one is
/// under construction.
fn troubled() -> Field {
    let mut field = Field::of(8, true);
    field.look();
    field.pass(Span::from_min(2));
    field.cloud.ports[1].1 = Arc::new(fixture::port("2", &[]));
    field.nodes.retain(|node| !matches!(node.name.as_str(), "w-3"));
    field.feed(Event::Cluster(ClusterFact::NodeEvent(NodeEvent {
        node: "w-3".into(),
        uid: None,
        reason: "DeletingNode".into(),
        message: "Deleting node w-3 because it does not exist in the cloud provider".into(),
        reporter: "cloud-node-lifecycle-controller".into(),
        stamped: None,
    })));
    let mut errored = fixture::instance("9");
    errored.state = InstanceState::Errored;
    errored.fault = Some(Fault { code: 500, message: "No valid host was found.\u{1b}[2J".into() });
    let mut building = fixture::instance("10");
    building.state = InstanceState::Building;
    for instance in [errored, building, fixture::instance("11")] {
        field.cloud.instances.push(Arc::new(instance));
    }
    field.cloud.ports.push(("i11".into(), Arc::new(fixture::port("11", &["g1"]))));
    field.pass(Span::from_s(90));
    field
}

fn report(field: &Field, ask: Ask) -> Report {
    match answer(&field.state, &ask, &Asked::default()) {
        Reply::Report(report) => *report,
        other => panic!("no report: {other:?}"),
    }
}

fn page(field: &Field, ask: Ask, all: bool, paper: &Paper) -> String {
    match report(field, ask) {
        Report::StatusReport(report) => status::page(&report, all, paper),
        Report::WhyReport(report) => why::page(&report, paper),
        Report::PlanReport(report) => plan::page(&report, paper),
        Report::IncidentsReport(report) => incidents::page(&report, all, paper),
        Report::CollectedReport(report) => crate::command::collect::page(&report),
        Report::HotReport(report) => super::hot::page(&report, paper),
        Report::JoinReport(report) => super::join::page(&report),
        Report::DoctorReport(report) => super::doctor::page(&report, paper),
        Report::RancherReport(report) => super::rancher::page(&report, paper),
        Report::RancherRepairReport(report) => super::repairs::repair_page(&report, paper),
        Report::RancherAbandonReport(report) => super::repairs::abandon_page(&report, paper),
    }
}

fn why_of(machine: &str) -> Ask {
    Ask::Why { machine: machine.to_owned(), timeline: false }
}

#[test]
fn a_troubled_morning() {
    let field = troubled();
    let pages = [
        ("status", Ask::Status, false),
        ("status-all", Ask::Status, true),
        ("why-group", why_of("w-2"), true),
        ("why-vanished", why_of("w-3"), true),
        ("why-errored", why_of("w-9"), true),
        ("why-building", why_of("w-10"), true),
        ("why-never-joined", why_of("i11"), true),
        ("why-ready", why_of("w-1"), true),
        ("plan", Ask::Plan, true),
        ("incidents", Ask::Incidents { all: false }, false),
    ];
    for (name, ask, all) in pages {
        let text = page(&field, ask, all, &paper());
        assert!(!text.contains('\u{1b}'), "{name}: foreign texts move no cursor");
        is_page(name, &text);
    }
}

#[test]
fn all_is_well() {
    let mut field = Field::of(3, true);
    field.look();
    field.pass(Span::from_min(2));
    is_page("well-status", &page(&field, Ask::Status, false, &paper()));
    is_page("well-plan", &page(&field, Ask::Plan, false, &paper()));
    is_page("well-incidents", &page(&field, Ask::Incidents { all: true }, true, &paper()));
}

#[test]
fn what_is_over_is_told_with_its_verdict() {
    let mut field = troubled();
    field.cloud.ports[1].1 = Arc::new(fixture::port("2", &["g1"]));
    field.nodes.push(Arc::new(fixture::node("3", Ready::True)));
    field.pass(Span::from_min(5));
    is_page("incidents-all", &page(&field, Ask::Incidents { all: true }, true, &paper()));
}

/// Annotations of operators on nodes, and a roster that waits for their confirmation, on the pages that show them.
#[test]
fn wishes_and_startup_taints() {
    let mut field = Field::of(8, true);
    let roster = fixture::roster_with(
        "repair: {network: act, reboot: act}, startupTaints: [node.cilium.io/agent-not-ready], \
         deadlines: {inService: 5m, confirm: true}",
    );
    field.state = State::new(roster, Start { fence: Fence(1), acting: true });
    field.look();
    field.pass(Span::from_min(2));
    let set = |field: &mut Field, index: usize, change: &dyn Fn(&mut Node)| {
        change(Arc::make_mut(&mut field.nodes[index]));
    };
    set(&mut field, 1, &|node| node.taints = Box::new(["node.cilium.io/agent-not-ready".into()]));
    set(&mut field, 2, &|node| node.ready = Ready::Unknown);
    set(&mut field, 3, &|node| node.ready = Ready::Unknown);
    field.pass(Span::from_min(1));
    is_page("why-starting", &page(&field, why_of("w-2"), true, &paper()));
    set(&mut field, 2, &|node| node.ready = Ready::True);
    set(&mut field, 3, &|node| {
        node.intent.asks = Some(Box::new(Asks { repair: Some("OPS-7".into()), ..Asks::default() }));
    });
    field.pass(Span::from_min(5));
    for (name, ask) in [
        ("why-not-in-service", why_of("w-2")),
        ("why-unconfirmed", why_of("w-3")),
        ("why-asked", why_of("w-4")),
        ("plan-wishes", Ask::Plan),
        ("incidents-wishes", Ask::Incidents { all: false }),
    ] {
        is_page(name, &page(&field, ask, false, &paper()));
    }
}

#[test]
fn blind_and_paused() {
    let mut field = troubled();
    field.feed(Event::Command(Command::Pauses(
        [Pause {
            scope: PauseScope::Pool("workers".into()),
            by: "ann".into(),
            reason: "driver upgrade".into(),
        }]
        .into(),
    )));
    let text = "os: cannot list servers of project prod (page 2): 429 Too Many Requests. Nothing is judged from this listing";
    let error = ReadError { kind: ReadErrorKind::Throttled, text: text.into(), retry_after: None };
    for _ in 0..5 {
        field.now = field.now + Span::from_s(30);
        field.feed(Event::Cloud { cloud: "os".into(), fact: CloudFact::Failed(error.clone()) });
        field.feed(Event::Cluster(ClusterFact::Synced(field.nodes.clone())));
    }
    is_page("blind-status", &page(&field, Ask::Status, false, &paper()));
    is_page("blind-plan", &page(&field, Ask::Plan, false, &paper()));
    is_page("blind-why", &page(&field, why_of("w-3"), false, &paper()));
}

#[test]
fn a_wait_counts_from_when_sight_returned_and_says_so() {
    let mut field = troubled();
    field.now = field.now + Span::from_min(10);
    field.look();
    let text = page(&field, Ask::Plan, false, &paper());
    assert!(
        text.contains("w-3   vanished")
            && text.contains("(waits until 2 min after the data source returned)"),
        "{text}"
    );
    assert!(!text.contains("2 min after first sight"), "{text}");
}

#[test]
fn a_narrow_terminal_wraps_the_last_column_only() {
    let narrow = Paper { width: Some(72), ..paper() };
    let text = page(&troubled(), Ask::Status, false, &narrow);
    is_page("narrow-status", &text);
    let table = text.lines().skip_while(|line| !line.contains("MACHINE")).take_while(|line| !line.is_empty());
    let widest = table.map(|line| line.chars().count()).max();
    assert!(widest <= Some(72), "{widest:?}\n{text}");
}

#[test]
fn a_terminal_of_eighty_columns_shows_every_page_whole() {
    let narrow = Paper { width: Some(80), ..paper() };
    let mut field = troubled();
    let port = fixture::port("2", &[]);
    let id = "20ce6461-454a-429d-95a8-2d8bf04bdd22";
    field.cloud.ports[1].1 = Arc::new(reveille_core::model::instance::Port { id: id.into(), ..port });
    field.pass(Span::from_s(90));
    for (name, ask) in [
        ("narrow-why", why_of("w-2")),
        ("narrow-plan", Ask::Plan),
        ("narrow-incidents", Ask::Incidents { all: true }),
    ] {
        let text = page(&field, ask, true, &narrow);
        is_page(name, &text);
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{name}: {line:?}");
        }
    }
}

#[test]
fn colours_say_nothing_that_is_not_said_without_them() {
    let colored = Paper { colored: true, ..paper() };
    let field = troubled();
    for ask in [Ask::Status, Ask::Plan, why_of("w-2"), Ask::Incidents { all: true }] {
        let plain = page(&field, ask.clone(), true, &paper());
        let with = page(&field, ask, true, &colored);
        assert!(with.contains('\u{1b}'));
        let lines =
            |text: &str| -> Vec<String> { text.lines().map(|line| line.trim_end().to_owned()).collect() };
        assert_eq!(lines(&plain), lines(&without_escapes(&with)));
    }
}

fn without_escapes(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            for c in chars.by_ref() {
                if c.is_ascii_alphabetic() {
                    break;
                }
            }
        } else {
            out.push(c);
        }
    }
    out
}

#[test]
fn unknown_machine_name_offers_names_of_similar_spelling() {
    let field = troubled();
    let ask = |word: &str| answer(&field.state, &why_of(word), &Asked::default());
    assert_eq!(ask("w-22"), Reply::NoMachine(vec!["w-2".into(), "w-1".into(), "w-3".into()]));
    assert_eq!(ask("zebra"), Reply::NoMachine(vec![]));
    let Reply::Report(found) = ask("os/i2") else { panic!("a key names a machine") };
    let Report::WhyReport(found) = *found else { panic!("why answers why") };
    assert_eq!(found.machine.name, "w-2");
}

#[test]
fn exit_codes_follow_the_worst_news() {
    use crate::cli::exit::Exit;
    let code = |field: &Field| match report(field, Ask::Status) {
        Report::StatusReport(report) => view::status::exit(&report),
        other => panic!("{other:?}"),
    };
    let mut field = Field::of(3, true);
    assert_eq!(code(&field), Exit::CannotTell, "no source was asked yet");
    field.look();
    assert_eq!(code(&field), Exit::NoProblem);
    field.nodes.pop();
    field.pass(Span::from_s(10));
    assert_eq!(code(&field), Exit::Problems);
    let key = MachineKey::Instance("os".into(), "i3".into());
    assert!(field.state.machine_state(&key).is_some());
}

/// w-1 is Ready, and its port lacks a group. The next process reads neither the cloud nor the cluster: the ledger alone tells of
/// w-1, and it counted as not Ready, with exit code 1.
#[test]
fn machine_known_by_the_ledger_alone_is_unknown() {
    use crate::cli::exit::Exit;
    let mut field = Field::of(3, false);
    field.look();
    let (_, port) = field.cloud.ports.first_mut().unwrap();
    *port = Arc::new(fixture::port("1", &[]));
    field.pass(Span::from_s(10));
    let how = Restored {
        start: Start { fence: Fence(2), acting: false },
        now: field.now,
        last_alive: Some(field.now),
    };
    field.state = State::restore(fixture::roster(), how, field.state.checkpoint());
    let Report::StatusReport(report) = report(&field, Ask::Status) else { panic!("no status") };
    let [machine] = &*report.machines else { panic!("{:?}", report.machines) };
    assert_eq!((machine.answers, &*machine.name, report.summary.absent), (Answers::Unknown, "w-1", 0));
    assert_eq!(view::status::exit(&report), Exit::CannotTell);
}

/// A machine that never joined, whose agent reports its stage and the reason, and then falls silent.
#[test]
fn what_an_agent_says_of_its_machine() {
    let mut field = troubled();
    let stage = |stage, passed, attempts, error| StageSaid { stage, passed, attempts, error };
    let hear = |field: &mut Field, number, stages: Vec<StageSaid>| {
        let report = AgentReport {
            who: Who { instance: Some("i11".into()), ..Who::default() },
            life: "boot-1/1".into(),
            number,
            stages,
            told: Vec::new(),
            unsaid: false,
            kubelet: KubeletSaid::Stopped,
            api: ApiSaid::Answers,
            work: Some(Work { what: "a new token".into(), attempt: 2, of: 5 }),
            blocker: None,
            may: reveille_core::model::agent::Ask::ALL.into(),
        };
        field.feed(Event::Agent(AgentFact::Said { agent: "a-11".into(), report: Arc::new(report) }));
    };
    hear(&mut field, 1, vec![stage(Stage::OsBoot, true, 1, None), stage(Stage::Trust, false, 1, None)]);
    field.pass(Span::from_s(30));
    let dead = StageError::new("TOKEN_EXPIRED", "the bootstrap token was valid until 08:40\u{1b}[2J");
    hear(
        &mut field,
        2,
        vec![
            stage(Stage::OsBoot, true, 1, None),
            stage(Stage::Trust, true, 1, None),
            stage(Stage::Authenticate, false, 3, Some(dead)),
        ],
    );
    field.pass(Span::from_s(20));
    let text = page(&field, why_of("i11"), true, &paper());
    assert!(!text.contains('\u{1b}'), "foreign texts move no cursor");
    is_page("why-agent", &text);
    field.pass(Span::from_min(4));
    is_page("why-agent-silent", &page(&field, why_of("i11"), true, &paper()));
    let timeline = Ask::Why { machine: "i11".to_owned(), timeline: true };
    is_page("why-timeline", &page(&field, timeline.clone(), true, &paper()));
    let narrow = Paper { width: Some(80), ..paper() };
    is_page("why-timeline-narrow", &page(&field, timeline, true, &narrow));
    let Report::WhyReport(why) = report(&field, why_of("i11")) else { panic!("no report of why") };
    let way = why.way.expect("an agent spoke");
    assert!(way.agent.is_some_and(|agent| agent.silent));
    assert_eq!(way.passages.iter().filter(|row| row.by == Side::Agent).count(), 3);
}
