//! What a provider says of its machines, and clouds whose parts take a while to agree. The controller does not work against
//! groups, does not believe denials of young instances, and cleans up only what really ended.

use std::sync::Arc;

use reveille_core::diagnose::machine_state::{Excuse, MachineState};
use reveille_core::effect::Call;
use reveille_core::event::{ClusterFact, Event};
use reveille_core::model::agent::Ask;
use reveille_core::model::cause::Cause;
use reveille_core::model::evidence::{Line, Source};
use reveille_core::model::hosting::{Check, Checks, GroupPhase, Hosting, Notice, NoticeKind, OwnerGroup};
use reveille_core::model::incident::{Confidence, FaultKind, IncidentKey, MachineKey, Subject};
use reveille_core::model::instance::{Instance, InstanceState, Mark};
use reveille_core::model::log_findings::{LogFinding, Quote};
use reveille_core::model::node::{NodeEvent, Provider, Ready};
use reveille_core::model::roster::Roster;
use reveille_core::model::time::Span;
use reveille_core::remedies::{AskAgent, Reboot};

use super::fixture::{CLOUD, Field, instance, node, roster};

const ONE: &str = "i004";
const NEW: &str = "i900";

/// A roster whose cloud takes five minutes to agree with itself.
fn settling() -> Roster {
    let mut roster = roster();
    roster.settles.insert(CLOUD.into(), Span::from_min(5));
    roster
}

/// Ten machines, all well, of which one is hosted so.
fn fleet(roster: Roster, hosting: Hosting) -> Field {
    let mut field = Field::new(roster).populate(10);
    field.instances.get_mut(ONE).unwrap().hosting = Some(Arc::new(hosting));
    field.run(Span::from_min(5));
    field
}

fn group(phase: GroupPhase, word: &str) -> Hosting {
    let group = OwnerGroup { name: "asg".into(), phase, word: word.into(), protected: false };
    Hosting { group: Some(group), ..Hosting::default() }
}

fn checks(host: Check, guest: Check) -> Hosting {
    Hosting { checks: Checks { host, guest, disk: Check::Unknown }, ..Hosting::default() }
}

/// Its kubelet falls silent for an hour, and no reboot helps.
fn silent(mut field: Field) -> Field {
    field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(60));
    field
}

fn hard_reboots(field: &Field) -> Vec<bool> {
    let hard = |call: &Call| match call {
        Call::Reboot(Reboot { hard, .. }) => Some(*hard),
        _ => None,
    };
    field.calls.iter().filter_map(hard).collect()
}

fn deletes(field: &Field) -> usize {
    field.calls.iter().filter(|call| matches!(call, Call::DeleteInstance(_))).count()
}

/// The cloud controller deletes the node of a machine that it does not find.
fn controller_deletes(field: &mut Field, id: &str) {
    let Some(gone) = field.nodes.remove(id) else { panic!("{id} has a node") };
    field.feed(Event::Cluster(ClusterFact::Deleted { name: gone.name.clone(), uid: gone.uid }));
    let event = NodeEvent {
        node: gone.name,
        uid: None,
        reason: "DeletingNode".into(),
        message: "Deleting node because it does not exist in the cloud provider".into(),
        reporter: "cloud-node-lifecycle-controller".into(),
        stamped: None,
    };
    field.feed(Event::Cluster(ClusterFact::NodeEvent(event)));
}

#[test]
fn node_of_reclaimed_spot_machine_is_deleted_and_nothing_else() {
    let mut field = fleet(settling(), Hosting { spot: true, ..Hosting::default() });
    let taken = field.instances.get_mut(ONE).unwrap();
    taken.state = InstanceState::Gone;
    taken.hosting = Some(Arc::new(Hosting {
        spot: true,
        ended: Some("Server.SpotInstanceTermination: no capacity".into()),
        ..Hosting::default()
    }));
    field.ports.remove(ONE);
    field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
    while field.case(ONE, FaultKind::Ghost).is_none() {
        field.run(Span::from_s(10));
    }
    let finding = &field.case(ONE, FaultKind::Ghost).unwrap().incident.findings[0];
    assert_eq!(finding.cause, Cause::TakenBack);
    assert!(
        finding.evidence.iter().any(|it| it.fact.to_string().contains("SpotInstanceTermination")),
        "{finding:?}"
    );
    field.run(Span::from_min(30));
    assert!(matches!(field.calls[..], [Call::DeleteNode(_)]), "{:?}", field.calls);
}

/// A machine comes into sight and joins; half a minute later the cloud denies it and the controller deletes its node.
fn denied_young(field: &mut Field) {
    field.add_machine(NEW, true);
    field.run(Span::from_s(40));
    field.instances.remove(NEW);
    controller_deletes(field, NEW);
}

#[test]
fn young_denied_machine_is_rejoined_by_agent_not_replaced() {
    let mut field = Field::new(settling()).populate(10).with_agents(&[NEW]);
    field.run(Span::from_min(5));
    denied_young(&mut field);
    field.run(Span::from_min(3));
    let asks: Vec<Ask> = field
        .calls
        .iter()
        .filter_map(|call| match call {
            Call::AskAgent(AskAgent { ask, .. }) => Some(*ask),
            _ => None,
        })
        .collect();
    assert_eq!(asks, [Ask::RestartKubelet], "while its cloud still denies it");
    field.instances.insert(NEW.into(), instance(NEW));
    field.run(Span::from_min(30));
    assert_eq!(field.calls.len(), 1, "{:?}", field.calls);
    assert!(field.case(NEW, FaultKind::Vanished).is_none(), "it is back and has stayed");
}

#[test]
fn young_denied_machine_without_agent_gets_restart_advice_only() {
    let mut field = Field::new(settling()).populate(10);
    field.run(Span::from_min(5));
    denied_young(&mut field);
    field.run(Span::from_min(3));
    let case = field.case(NEW, FaultKind::Vanished).expect("the denial is not believed");
    let finding = &case.incident.findings[0];
    assert_eq!(finding.cause, Cause::NodeDeletedByCloudController);
    assert!(finding.cause.remedy().starts_with("restart the kubelet"));
    assert!(
        finding.evidence.iter().any(|it| it.fact.to_string().contains("so young a denial is not believed"))
    );
    assert!(field.held(NEW, FaultKind::Vanished).contains("manual action needed"));
    assert!(field.calls.is_empty(), "{:?}", field.calls);
}

/// It was listed once, as being built, and joined while its cloud did not list it any more.
#[test]
fn machine_joined_while_unlisted_is_not_being_built() {
    let mut field = Field::new(settling()).populate(10);
    field.run(Span::from_min(5));
    let building = Instance { state: InstanceState::Building, ..instance(NEW) };
    field.instances.insert(NEW.into(), building);
    field.run(Span::from_s(30));
    field.instances.remove(NEW);
    field.run(Span::from_s(30));
    field.nodes.insert(NEW.into(), node(NEW, Ready::False));
    field.run(Span::from_s(10));
    controller_deletes(&mut field, NEW);
    field.run(Span::from_min(1));
    assert!(field.case(NEW, FaultKind::Vanished).is_some(), "its last known state is older than its node");
}

#[test]
fn a_denial_that_outlasts_youth_is_believed() {
    let mut field = Field::new(settling()).populate(10);
    field.run(Span::from_min(5));
    denied_young(&mut field);
    field.run(Span::from_min(4));
    let key = MachineKey::Instance(CLOUD.into(), NEW.into());
    assert!(field.state.machine_state(&key).is_some());
    field.run(Span::from_min(5));
    assert!(field.state.machine_state(&key).is_none(), "two denials of one that is old enough prove it gone");
    assert!(field.calls.is_empty(), "{:?}", field.calls);
}

#[test]
fn machine_whose_node_went_before_its_listing_has_joined() {
    let mut field = Field::new(settling()).populate(10);
    field.run(Span::from_min(5));
    field.nodes.insert(NEW.into(), node(NEW, Ready::True));
    field.run(Span::from_s(10));
    controller_deletes(&mut field, NEW);
    field.run(Span::from_s(30));
    field.add_machine(NEW, false);
    field.run(Span::from_min(1));
    assert!(field.case(NEW, FaultKind::NeverJoined).is_none(), "it had its node");
    let case = field.case(NEW, FaultKind::Vanished).expect("its node was deleted");
    assert_eq!(case.incident.findings[0].cause, Cause::NodeDeletedByCloudController);
}

#[test]
fn young_node_of_unknown_machine_is_no_ghost() {
    let mut field = Field::new(settling()).populate(10);
    field.run(Span::from_min(5));
    field.nodes.insert(NEW.into(), node(NEW, Ready::False));
    let ghost = |field: &Field| {
        let subject = Subject::Machine(MachineKey::Node(node(NEW, Ready::False).name));
        let key = IncidentKey { subject, kind: FaultKind::Ghost };
        field.state.context().cases.contains_key(&key)
    };
    field.run(Span::from_min(4));
    assert!(!ghost(&field));
    field.run(Span::from_min(4));
    assert!(ghost(&field), "in the end it is one, and told");
}

#[test]
fn a_machine_without_the_clusters_mark_is_told_and_left_alone() {
    let mut roster = settling();
    let mut pool = roster.pools.values().next().expect("a pool").clone();
    pool.name = "others".into();
    pool.owned.cluster = Mark::Tag("kubernetes.io/cluster/prod".into());
    roster.pools.insert(pool.name.clone(), pool);
    let field = with_an_unmarked_machine(roster);
    let case = field.state.context().cases.get(&stray()).expect("it is told");
    assert_eq!(case.incident.findings[0].cause, Cause::ClusterMarkMissing);
}

/// The roster's marks are its own: the machine may be another roster's. It is asked for now and then, and not without end, which
/// would be the end of this test's stack.
#[test]
fn unmarked_machine_in_roster_with_own_marks_may_be_foreign() {
    let field = with_an_unmarked_machine(settling());
    assert!(!field.state.context().cases.contains_key(&stray()));
}

fn stray() -> IncidentKey {
    let subject = Subject::Machine(MachineKey::Node(node(NEW, Ready::False).name));
    IncidentKey { subject, kind: FaultKind::Stray }
}

fn with_an_unmarked_machine(roster: Roster) -> Field {
    let mut field = Field::new(roster).populate(10);
    field.run(Span::from_min(5));
    field.instances.insert(NEW.into(), Instance { marks: Arc::default(), ..instance(NEW) });
    field.nodes.insert(NEW.into(), node(NEW, Ready::False));
    field.run(Span::from_min(10));
    assert!(field.calls.is_empty(), "{:?}", field.calls);
    field
}

#[test]
fn what_a_group_keeps_is_rebooted_softly_and_left_to_the_group() {
    let field = silent(fleet(roster(), group(GroupPhase::Kept, "InService")));
    assert_eq!(hard_reboots(&field), [false], "the group would replace what stops");
    assert_eq!(deletes(&field), 0);
    let held = field.held(ONE, FaultKind::NotReady);
    assert!(held.contains("group asg keeps it (InService)") && held.contains("throughGroup"), "{held}");
}

#[test]
fn a_roster_may_let_machines_be_replaced_through_their_group() {
    let mut through = roster();
    through.pools.values_mut().for_each(|pool| pool.through_group = true);
    let field = silent(fleet(through.clone(), group(GroupPhase::Kept, "InService")));
    assert_eq!(deletes(&field), 1, "{:?}", field.calls);
    let mut protected = group(GroupPhase::Kept, "InService");
    protected.group.as_mut().unwrap().protected = true;
    assert_eq!(deletes(&silent(fleet(through, protected))), 0, "an operator protects it");
}

#[test]
fn what_a_group_or_the_provider_has_in_its_hands_is_not_touched() {
    let notice = Notice { kind: NoticeKind::Interruption, not_before: None, text: "spot".into() };
    let interrupted = Hosting { notices: vec![notice], ..Hosting::default() };
    let words = [
        group(GroupPhase::Leaving, "Terminating:Wait"),
        group(GroupPhase::Apart, "Standby"),
        group(GroupPhase::Coming, "Pending:Wait"),
        interrupted,
    ];
    for hosting in words {
        let field = silent(fleet(roster(), hosting.clone()));
        assert!(field.calls.is_empty(), "{hosting:?}: {:?}", field.calls);
    }
}

/// A warm pool: machines that were made ready, joined or not, and wait until their group needs them.
#[test]
fn reserve_machine_is_not_missed_counted_or_touched() {
    for state in [InstanceState::Active, InstanceState::Stopped] {
        let mut field = fleet(roster(), group(GroupPhase::Reserve, "Warmed:Stopped"));
        field.instances.get_mut(ONE).unwrap().state = state;
        let field = silent(field);
        assert!(field.calls.is_empty(), "{state:?}: {:?}", field.calls);
        let machine_state = field.machine_state(ONE);
        assert!(
            matches!(machine_state, MachineState::Excused(Excuse::InReserve(_))),
            "{state:?}: {machine_state:?}"
        );
        assert!(machine_state.to_string().ends_with("in reserve (Warmed:Stopped)"), "{machine_state}");
    }
}

#[test]
fn a_group_starts_what_it_wants_started() {
    let mut field = fleet(roster(), group(GroupPhase::Kept, "InService"));
    field.instances.get_mut(ONE).unwrap().state = InstanceState::Stopped;
    let field = silent(field);
    assert!(field.calls.is_empty(), "{:?}", field.calls);
}

#[test]
fn machine_on_impaired_host_is_stopped_and_started() {
    let field = silent(fleet(roster(), checks(Check::Impaired, Check::Impaired)));
    assert_eq!(hard_reboots(&field).first(), Some(&true), "{:?}", field.calls);
    let field = silent(fleet(roster(), checks(Check::Passed, Check::Impaired)));
    assert_eq!(hard_reboots(&field).first(), Some(&false), "the host is well: {:?}", field.calls);
    let lost = Hosting { loses_disks: true, ..checks(Check::Impaired, Check::Passed) };
    assert!(hard_reboots(&silent(fleet(roster(), lost))).is_empty(), "its data would be lost");
}

/// Who lets a pool's machines be replaced loses these disks as well, and reads it before.
#[test]
fn disk_loss_is_reported_before_replacement() {
    let mut field = fleet(roster(), Hosting { loses_disks: true, ..Hosting::default() });
    field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(8));
    let finding = &field.case(ONE, FaultKind::NotReady).expect("it is silent").incident.findings[0];
    assert!(
        finding.evidence.iter().any(|it| it.fact.to_string().contains("and when it is replaced")),
        "{finding:?}"
    );
    assert_eq!(deletes(&field), 0, "not yet");
}

#[test]
fn failed_checks_name_the_cause_of_a_silence() {
    let table = [
        (Check::Impaired, Check::Impaired, Cause::HostImpaired),
        (Check::Passed, Check::Impaired, Cause::GuestImpaired),
        (Check::Passed, Check::Passed, Cause::KubeletSilent),
        (Check::Unknown, Check::Pending, Cause::KubeletSilent),
    ];
    for (host, guest, cause) in table {
        let mut field = fleet(roster(), checks(host, guest));
        field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
        field.run(Span::from_s(30));
        let case = field.case(ONE, FaultKind::NotReady).unwrap();
        assert_eq!(case.incident.findings[0].cause, cause, "{host:?} {guest:?}");
    }
}

#[test]
fn provider_notice_is_reported_once_and_ends_when_withdrawn() {
    let notice = Notice {
        kind: NoticeKind::Retire,
        not_before: Some("2026-12-01".into()),
        text: "instance-retirement".into(),
    };
    let mut field = fleet(roster(), Hosting { notices: vec![notice], ..Hosting::default() });
    let case = field.case(ONE, FaultKind::ProviderNotice).expect("it is told");
    let finding = &case.incident.findings[0];
    assert_eq!(finding.cause, Cause::Announced);
    assert_eq!(finding.evidence[0].fact.to_string(), "retire: instance-retirement, not before 2026-12-01");
    field.run(Span::from_min(30));
    field.instances.get_mut(ONE).unwrap().hosting = None;
    field.run(Span::from_min(5));
    assert!(field.case(ONE, FaultKind::ProviderNotice).is_none());
    assert!(field.calls.is_empty(), "{:?}", field.calls);
}

#[test]
fn unjoined_machine_lacking_siblings_identity_is_diagnosed() {
    let mut field = fleet(settling(), Hosting::default());
    field.add_machine(NEW, false);
    let none = Hosting { no_identity: true, ..Hosting::default() };
    field.instances.get_mut(NEW).unwrap().hosting = Some(Arc::new(none));
    field.run(Span::from_min(1));
    let case = field.case(NEW, FaultKind::NeverJoined).unwrap();
    assert_eq!(case.incident.findings[0].cause, Cause::IdentityMissing);
}

#[test]
fn node_is_found_by_the_cloud_hostname_of_its_machine() {
    let mut field = Field::new(roster()).populate(3);
    let hostname = "ip-10-0-0-9.eu-central-1.compute.internal";
    field.add_machine(NEW, false);
    let new = field.instances.get_mut(NEW).unwrap();
    (new.hostname, new.name) = (Some(hostname.into()), "".into());
    let mut joined = node(NEW, Ready::True);
    (joined.name, joined.provider) = (hostname.into(), Provider::Unset);
    field.nodes.insert(NEW.into(), joined);
    field.run(Span::from_min(1));
    assert_eq!(field.machine_state(NEW), reveille_core::diagnose::machine_state::MachineState::Answers);
}

/// EC2 sends a rebalance recommendation only to the machine itself: its agent passes it on.
#[test]
fn provider_notice_from_agent_is_reported_without_action() {
    let mut field = fleet(roster(), Hosting::default()).with_agents(&[ONE]);
    field.run(Span::from_min(2));
    assert!(field.case(ONE, FaultKind::ProviderNotice).is_none());
    let line = Line { number: 0, times: 1, sign: "rebalance".into() };
    let text = "rebalance: recommended at 2026-11-23T08:22:00Z";
    let told = LogFinding {
        cause: Cause::Announced,
        stage: Cause::Announced.stage(),
        confidence: Confidence::Sure,
        unanswered: false,
        no_lease: false,
        proof: vec![Quote { source: Source::Provider, text: text.into(), line }],
        against: Vec::new(),
        follows: Vec::new(),
    };
    field.agents.get_mut(ONE).unwrap().told = vec![told];
    field.run(Span::from_min(2));
    let case = field.case(ONE, FaultKind::ProviderNotice).expect("it is told");
    assert_eq!(case.incident.findings[0].cause, Cause::Announced);
    assert!(
        case.incident.findings[0]
            .evidence
            .iter()
            .any(|evidence| evidence.fact.to_string().contains("recommended"))
    );
    // It is no reason why the machine falls silent after that.
    field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
    let silent = (0..30).find_map(|_| {
        field.run(Span::from_min(1));
        field.case(ONE, FaultKind::NotReady).map(|case| case.incident.findings.clone())
    });
    let findings = silent.expect("it is silent");
    assert!(findings.iter().all(|finding| finding.cause != Cause::Announced), "{findings:?}");
    field.agents.get_mut(ONE).unwrap().told.clear();
    field.run(Span::from_min(30));
    assert!(field.case(ONE, FaultKind::ProviderNotice).is_none(), "what is told no more is over");
}
