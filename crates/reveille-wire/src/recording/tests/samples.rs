//! A roster and steps with one event and one effect of every kind, as the golden file holds them.

use std::collections::BTreeSet;
use std::sync::Arc;

use reveille_core::effect::{Call, Effect, Look, Outcome, ReadError, ReadErrorKind};
use reveille_core::engine::Start;
use reveille_core::event::{
    AgentFact, Answer, CloudFact, CloudSnapshot, ClusterFact, Command, Event, Pause, PauseScope, Scope,
};
use reveille_core::model::access::{Role, RoleRef, UserRef, UserRoles};
use reveille_core::model::agent::{
    AgentBlocker, AgentBlockerKind, ApiSaid, Ask, KubeletSaid, StageError, StageSaid, Who, Work,
};
use reveille_core::model::agent_report::AgentReport;
use reveille_core::model::cause::{Cause, Entry};
use reveille_core::model::evidence::{Line, Source};
use reveille_core::model::guest::{BootProgress, ConfigDrive, Guest};
use reveille_core::model::id::*;
use reveille_core::model::incident::Confidence;
use reveille_core::model::instance::{
    Fault, Instance, InstanceAction, InstanceState, Mark, Port, PortStatus,
};
use reveille_core::model::lease::Renewal;
use reveille_core::model::log_evidence::{CertificateRequest, EvidenceQuery, RequestState, Said, Unread};
use reveille_core::model::log_findings::{LogFinding, LogFindings, Quote};
use reveille_core::model::network::{
    Direction, Family, GroupRule, Protocol, Remote, Route, Router, RuleSpec, SecurityGroup,
};
use reveille_core::model::node::{Asks, Condition, Node, NodeEvent, NodeIntent, Provider, Ready};
use reveille_core::model::roster::{Access, ServiceUser};
use reveille_core::model::roster::{
    Deadlines, GroupRef, Keep, Limits, Mode, Network, Ownership, Pool, Repair, Roster, Timing,
};
use reveille_core::model::stage::Stage;
use reveille_core::model::time::{ServiceTime, Span, Time};
use reveille_core::record::Record;
use reveille_core::remedies::Reboot;

use crate::recording::{Header, Memory};

pub(super) const AT: Time = Time::from_ms(1_792_401_133_042);

fn text(text: &str) -> Arc<str> {
    Arc::from(text)
}

pub(super) fn header() -> Header {
    let pool = |name: &str, mark: Option<Mark>| Pool {
        name: name.into(),
        cloud: "os".into(),
        owned: Ownership { cluster: Mark::Tag(text("k8s-cluster=prod")), pool: mark },
        groups: vec![GroupRef::Name(text("k8s-nodes")), GroupRef::Id("sg-1".into())],
        min: 3,
        deadlines: Deadlines { join_within: None, ..Deadlines::default() },
        repair: Repair { network: Mode::Act, ..Repair::default() },
        paused: false,
        startup_taints: Vec::new(),
        keep: None,
        through_group: false,
    };
    let gpu = pool("gpu", Some(Mark::Metadata(text("pool"), text("gpu"))));
    let gpu = Pool {
        deadlines: Deadlines { in_service_within: Span::from_min(3), confirm: true, ..gpu.deadlines },
        startup_taints: vec![text("nvidia.com/gpu-not-ready")],
        keep: Some(Keep { within: Span::from_min(60), at_most: 2, failed: true }),
        ..gpu
    };
    let pools = [gpu, pool("workers", Some(Mark::Tag(text("k8s-pool=workers"))))];
    let roster = Roster {
        name: "prod".into(),
        clouds: vec!["os".into()],
        settles: std::collections::BTreeMap::new(),
        network: Network {
            pod_ranges: vec!["198.19.0.0/16".parse().unwrap()],
            router: Some(("os".into(), "r-1".into())),
            address_pairs: true,
            unreachable_conditions: vec![text("NetworkUnavailable")],
        },
        access: Access {
            users: vec![ServiceUser {
                cloud: "os".into(),
                user: Arc::new(UserRef::Id("u-1".into())),
                roles: vec![RoleRef::Name(text("member")), RoleRef::Id("r-2".into())],
            }],
            repair: Mode::Act,
            check_every: Span::from_min(30),
        },
        pools: pools.map(|pool| (pool.name.clone(), pool)).into(),
        limits: Limits::default(),
        timing: Timing::default(),
    };
    Header {
        program: "0.1.0".to_owned(),
        engine: "0123456789abcdef".to_owned(),
        of: "run".to_owned(),
        roster,
        start: Start { fence: Fence(3), acting: true },
        restored: Some(Memory {
            now: AT,
            last_alive: Some(Time::from_ms(AT.ms - 4_000)),
            records: vec![Record::Started { at: AT, fence: Fence(2) }],
        }),
    }
}

pub(super) fn instance(id: &str) -> Instance {
    Instance {
        id: id.into(),
        name: "w-1".into(),
        state: InstanceState::Active,
        task: None,
        fault: None,
        zone: Some("nova".into()),
        image: Some("img-1".into()),
        marks: Arc::new(BTreeSet::from([
            Mark::Tag(text("k8s-cluster=prod")),
            Mark::Metadata(text("pool"), text("gpu")),
        ])),
        addresses: Box::new(["10.0.0.7".parse().unwrap(), "fd00::7".parse().unwrap()]),
        config_drive: true,
        locked: false,
        created: Some(text("2026-10-19T09:00:00Z")),
        hostname: None,
        hosting: None,
    }
}

pub(super) fn port(id: &str) -> Port {
    Port {
        id: id.into(),
        network: "net-1".into(),
        addresses: Box::new(["10.0.0.7".parse().unwrap()]),
        groups: Box::new(["sg-1".into()]),
        pairs: Box::new(["198.19.3.0/24".parse().unwrap()]),
        security: true,
        status: PortStatus::Active,
        revision: 12,
    }
}

pub(super) fn node(name: &str) -> Node {
    Node {
        name: name.into(),
        uid: "u-1".into(),
        provider: Provider::Instance("7f3a".into()),
        system_uuid: Some("7f3a".into()),
        boot_id: Some(text("boot-1")),
        kubelet: Some(text("v1.34.0")),
        addresses: Box::new(["10.0.0.7".parse().unwrap()]),
        pod_ranges: Box::new(["198.19.3.0/24".parse().unwrap()]),
        ready: Ready::True,
        conditions: Box::new([]),
        zone: Some("nova".into()),
        cordoned: false,
        intent: NodeIntent::default(),
        uninitialized: false,
        taints: Box::default(),
    }
}

fn asks() -> Box<Asks> {
    Box::new(Asks { repair: Some(text("OPS-7")), confirm: Some(text("inc-7")), keep: Some(true) })
}

fn ill_node() -> Node {
    Node {
        provider: Provider::Unread(text("aws:///x")),
        ready: Ready::Unknown,
        conditions: Box::new([Condition {
            kind: text("Ready"),
            reason: text("NodeStatusUnknown"),
            message: text("-"),
        }]),
        cordoned: true,
        intent: NodeIntent {
            deleting: true,
            leaving: Some(text("ToBeDeleted")),
            paused: true,
            asks: Some(asks()),
        },
        uninitialized: true,
        taints: Box::new([text("ToBeDeleted"), text("node.kubernetes.io/unreachable")]),
        ..node("n2")
    }
}

fn group() -> SecurityGroup {
    let allows = RuleSpec {
        direction: Direction::Ingress,
        family: Family::V4,
        protocol: Some(Protocol::TCP),
        ports: None,
        remote: Remote::Any,
    };
    let rule = GroupRule { id: "rule-1".into(), allows, description: text("reveille") };
    SecurityGroup { id: "sg-1".into(), name: text("k8s-nodes"), project: Some(text("p")), rules: vec![rule] }
}

fn router() -> Router {
    let route =
        Route { destination: "198.19.3.0/24".parse().unwrap(), next_hop: "10.0.0.7".parse().unwrap() };
    Router { id: "r-1".into(), routes: vec![route], limit: Some(30) }
}

fn snapshot(instances: Vec<Instance>, scope: Scope) -> Event {
    let snapshot = CloudSnapshot {
        instances: instances.into_iter().map(Arc::new).collect(),
        begun: Some(ServiceTime::from_s(1_792_400_400)),
        scope,
        ports: vec![("7f3a".into(), Arc::new(port("p-1")))],
        in_use: Arc::new(["10.0.0.250/32".parse().unwrap()].into()),
        groups: Some(vec![Arc::new(group())]),
        routers: vec![Arc::new(router())],
    };
    Event::Cloud { cloud: "os".into(), fact: CloudFact::read(snapshot) }
}

fn unread() -> ReadError {
    let retry_after = Some(Span::from_s(20));
    ReadError { kind: ReadErrorKind::Throttled, text: text("429: next try in 20 s"), retry_after }
}

fn leases(renewal: u64) -> Event {
    let lease = |node: &str| (node.into(), Renewal::nth(renewal));
    Event::Cluster(ClusterFact::Leases([lease("n1"), lease("n2")].into_iter().collect()))
}

fn role(id: &str, name: &str) -> Role {
    Role { id: id.into(), name: text(name) }
}

fn answers() -> Vec<Answer> {
    let event = NodeEvent {
        node: "n1".into(),
        uid: Some("u-1".into()),
        reason: text("DeletingNode"),
        message: text("because it does not exist in the cloud provider"),
        reporter: text("cloud-node-lifecycle-controller"),
        stamped: Some(text("2026-10-19T09:00:00Z")),
    };
    let action = InstanceAction {
        request: "req-1".into(),
        action: text("reboot"),
        started: text("2026-10-19T09:00:00"),
        user: Some(text("u")),
        message: Some(text("Error")),
    };
    vec![
        Answer::Instance(Some(Arc::new(instance("7f3a")))),
        Answer::Instance(None),
        Answer::Ports(vec![Arc::new(port("p-1"))]),
        Answer::Group(Some(Arc::new(group()))),
        Answer::Router(Some(Arc::new(router()))),
        Answer::Console(text("[    0.0] Linux\nlogin:")),
        Answer::LogFindings(Arc::new(log_findings())),
        Answer::NoConsole(text("no console")),
        Answer::Actions(vec![action]),
        Answer::Node(Some(Arc::new(ill_node()))),
        Answer::NodeEvents(vec![event.clone()]),
        Answer::Roles(UserRoles {
            project: "p-1".into(),
            user: Some("u-1".into()),
            held: vec![role("r-1", "member")],
            lacking: vec![role("r-2", "network_admin")],
        }),
        Answer::Said(Arc::new(said(event))),
    ]
}

pub(super) fn events() -> Vec<Event> {
    let errored = Instance {
        state: InstanceState::Errored,
        task: Some(text("spawning")),
        fault: Some(Fault { code: 500, message: text("no valid host") }),
        locked: true,
        ..instance("8b1c")
    };
    let pause = |scope| Pause { scope, by: text("ann"), reason: text("drivers") };
    let pauses = BTreeSet::from([
        pause(PauseScope::Roster),
        pause(PauseScope::Pool(text("gpu"))),
        pause(PauseScope::Machine(text("w-1"))),
    ]);
    let Answer::NodeEvents(node_events) = answers().remove(10) else { unreachable!("the last of them") };
    let mut events = vec![
        snapshot(vec![instance("7f3a"), instance("8b1c")], Scope::Full),
        snapshot(vec![errored.clone()], Scope::Changes),
        snapshot(vec![instance("7f3a"), errored], Scope::Full),
        Event::Cloud { cloud: "os".into(), fact: CloudFact::Failed(unread()) },
        Event::Cluster(ClusterFact::Identity("uid-of-kube-system".into())),
        Event::Cluster(ClusterFact::IdentityUnread(unread())),
        Event::Cluster(ClusterFact::Synced(vec![Arc::new(node("n1")), Arc::new(ill_node())])),
        Event::Cluster(ClusterFact::Applied(Arc::new(node("n2")))),
        Event::Cluster(ClusterFact::Deleted { name: "n2".into(), uid: "u-1".into() }),
        leases(1),
        leases(2),
        Event::Cluster(ClusterFact::NodeEvent(node_events[0].clone())),
        Event::Cluster(ClusterFact::Alive),
        Event::Cluster(ClusterFact::Failed(unread())),
        Event::Recorded(RecordId(4)),
        Event::RecordFailed(RecordId(5)),
        Event::Done { intent: IntentId(1), outcome: Outcome::Accepted { request: Some("req-1".into()) } },
        Event::Command(Command::Pauses(pauses)),
        Event::Command(Command::ConfirmCluster("uid-of-kube-system".into())),
        Event::Command(Command::ForgetCloud("os-a".into())),
        Event::Tick,
        Event::Agent(AgentFact::Said { agent: "a-1".into(), report: Arc::new(report()) }),
        Event::Agent(AgentFact::Parted { agent: "a-1".into(), why: text("its connection was closed") }),
        Event::Agent(AgentFact::Deaf(unread())),
        Event::Agent(AgentFact::Listening),
        Event::Looked { look: LookId(9), answer: Err(unread()) },
    ];
    events.extend(answers().into_iter().map(|answer| Event::Looked { look: LookId(9), answer: Ok(answer) }));
    events
}

fn evidence_query(name: &NodeName) -> EvidenceQuery {
    EvidenceQuery { node: Some(name.clone()), asks_as: name.clone(), console_counts: false }
}

pub(super) fn effects() -> Vec<Effect> {
    let (os, id, name) = (CloudName::from("os"), InstanceId::from("7f3a"), NodeName::from("n1"));
    let looks = [
        Look::Instance(os.clone(), id.clone()),
        Look::Ports(os.clone(), id.clone()),
        Look::Group(os.clone(), "sg-1".into()),
        Look::Router(os.clone(), "r-1".into()),
        Look::Console(os.clone(), id.clone()),
        Look::Actions(os.clone(), id.clone()),
        Look::Node(name.clone()),
        Look::NodeEvents(name.clone()),
        Look::LogEvidence(os.clone(), id.clone(), Arc::new(evidence_query(&name))),
        Look::Roles(
            os.clone(),
            Arc::new(UserRef::Name { name: text("ccm"), domain: Some(text("default")) }),
            vec![RoleRef::Name(text("member")), RoleRef::Id("r-2".into())],
        ),
    ];
    let owned = Ownership::of_cluster(Mark::Tag(text("k8s-cluster=prod")));
    let mut effects = vec![
        Effect::Record { id: RecordId(4), record: Record::Started { at: AT, fence: Fence(3) } },
        Effect::Call {
            intent: IntentId(1),
            fence: Fence(3),
            call: Call::Reboot(Reboot { cloud: os.clone(), instance: id, hard: false, owned }),
        },
        Effect::List { cloud: os },
        Effect::WakeAt(AT),
    ];
    effects.extend(looks.map(|look| Effect::Look { id: LookId(2), look }));
    effects
}

/// A report of an agent whose token has expired.
fn report() -> AgentReport {
    let stage = |stage, passed, attempts, error| StageSaid { stage, passed, attempts, error };
    let expired = StageError::new("TOKEN_EXPIRED", "the token was valid until noon");
    AgentReport {
        who: Who {
            instance: Some("7f3a".into()),
            system_uuid: Some("7f3a".into()),
            node: Some("n1".into()),
            boot: Some(text("boot-1")),
        },
        life: text("boot-1/1"),
        number: 7,
        stages: vec![stage(Stage::Trust, true, 1, None), stage(Stage::Authenticate, false, 4, Some(expired))],
        told: log_findings().told,
        unsaid: true,
        kubelet: KubeletSaid::Stopped,
        api: ApiSaid::LostByAll,
        work: Some(Work { what: text("a new token"), attempt: 2, of: 5 }),
        blocker: Some(AgentBlocker {
            kind: AgentBlockerKind::Leaving,
            text: text("its Node was being deleted"),
        }),
        may: Ask::ALL.into(),
    }
}

fn unread_source() -> Unread {
    Unread { source: Source::CertificateRequests, why: text("403 Forbidden") }
}

/// What the cluster reports about a machine whose certificate signing request no controller approved.
fn said(event: NodeEvent) -> Said {
    let request = CertificateRequest {
        name: text("csr-82bb8"),
        signer: text("kubernetes.io/kube-apiserver-client-kubelet"),
        requester: text("system:bootstrap:rpabcu"),
        state: RequestState::Pending,
        message: text(""),
        stamped: text("2026-10-19T09:00:00Z"),
    };
    let (node, requests) = (Some(Arc::new(ill_node())), vec![request]);
    Said { node, events: vec![event], requests, unread: vec![unread_source()] }
}

/// A console log of a failed first boot.
fn log_findings() -> LogFindings {
    let entry = Entry::named("RV113".into(), "no-network-at-boot".into(), Stage::OsBoot);
    let cause = Cause::Catalogued(Arc::new(Entry { first_boot: true, ..entry }));
    let line = Line { number: 2, times: 3, sign: text("no-lease") };
    let proof = vec![Quote { source: Source::Console, text: text("no lease, failing"), line }];
    let told = LogFinding {
        stage: cause.stage(),
        cause,
        confidence: Confidence::Likely,
        unanswered: true,
        no_lease: true,
        proof: proof.clone(),
        against: proof,
        follows: vec![],
    };
    let told = LogFinding { follows: vec![told.clone()], ..told };
    let boot = BootProgress::FirstBoot;
    let guest = Guest { boot, config_drive: ConfigDrive::Absent, addressed: false, answered: true };
    LogFindings {
        console: Ok(text("[    0.0] Linux\nno lease, failing")),
        guest,
        told: vec![told],
        unread: vec![unread_source()],
    }
}
