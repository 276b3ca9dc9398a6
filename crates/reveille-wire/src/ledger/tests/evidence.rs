//! Every source and every fact, with its sentence: the samples of the golden file, and the shapes of arbitrary ones.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;
use reveille_core::model::access::{RoleRef, UserRef};
use reveille_core::model::agent::{ApiSaid, KubeletSaid, StageError};
use reveille_core::model::evidence::{Evidence, Fact, GuestFact, MachineFact, NetworkFact, NodeFact, Source};
use reveille_core::model::guest::BootProgress;
use reveille_core::model::hosting::{Check, Checks, GroupPhase, Notice, NoticeKind, OwnerGroup};
use reveille_core::model::id::*;
use reveille_core::model::instance::{Fault, Mark};
use reveille_core::model::network::{Direction, Family, Obstacle, Remote, Route, RuleSpec};
use reveille_core::model::node::{Identity, Provider};
use reveille_core::model::roster::GroupRef;
use reveille_core::model::stage::Stage;
use reveille_core::model::time::Span;
use serde_json::{Value, json};

use super::arbitrary::{at, line, text};
use super::words;

/// Each source that there is, where names and ids are this text.
fn sources(x: &Arc<str>) -> Vec<Source> {
    use Source::*;
    let user = Arc::new(UserRef::Name { name: x.clone(), domain: None });
    vec![
        Instance,
        Marks,
        OwnNode,
        Node(NodeName::new(x.clone())),
        Nodes,
        Port(PortId::new(x.clone())),
        Group(GroupRef::Name(x.clone())),
        GroupOfPool(x.clone(), PoolName::from("workers")),
        Router(RouterId::new(x.clone())),
        User(user),
        Console,
        ActionLog,
        Agent,
        Provider,
        StatusChecks,
        Disks,
        ScalingGroup,
        Cluster,
        Cloud,
        Ledger,
        Lease,
        Taint,
        Event(x.clone()),
        Events,
        CertificateRequests,
        Named(x.clone()),
    ]
}

fn of_machines(x: &Arc<str>, span: Span) -> Vec<(MachineFact, &'static str)> {
    use MachineFact::*;
    let checks = Checks { host: Check::Impaired, guest: Check::Impaired, disk: Check::Passed };
    let notice = Notice { kind: NoticeKind::Retire, not_before: Some(x.clone()), text: x.clone() };
    let group = OwnerGroup { name: x.clone(), phase: GroupPhase::Kept, word: x.clone(), protected: false };
    let drive = |attached, found| ConfigDrive { attached, found };
    use reveille_core::model::guest::ConfigDrive::{Absent, Present, Unknown};
    vec![
        (Denied(2), "asked for by id 2 times: no such instance"),
        (
            DeniedYoung { denied_for: span, age: span },
            "its cloud has not known it for 2 min; it came into sight 2 min ago, and so young a denial is not believed",
        ),
        (Ended(x.clone()), "the provider says: X"),
        (Marks(vec![Mark::Tag(x.clone()), Mark::Metadata(x.clone(), x.clone())]), "tag X, metadata X=X"),
        (Deleting(Some(x.clone()), span), "task_state X for 2 min"),
        (Building(None, span), "building for 2 min, task_state none"),
        (Errored(Some(Fault { code: 500, message: x.clone() })), "fault 500: X"),
        (Errored(None), "status ERROR, and the cloud gives no fault"),
        (ShutOff(span), "shut off for 2 min"),
        (
            NodeLeft { sign: x.clone(), ago: span },
            "its node left on purpose (X) 2 min ago, and the instance is still there",
        ),
        (ChecksFailed { checks, ready: false }, "the provider's checks failed: host, guest"),
        (
            ChecksFailed { checks, ready: true },
            "the provider's checks failed: host, guest; its node is Ready",
        ),
        (Announced(notice), "retire: X, not before X"),
        (Kept(group), "group X keeps it (X)"),
        (LosesDisks, "its instance store is lost when it stops, and when it is replaced"),
        (NoIdentity, "it has no identity towards its cloud (no instance role)"),
        (NoPort, "it has no network port"),
        (drive(true, Absent), "a config drive is attached, and the guest did not find it: look at the image"),
        (
            drive(true, Present),
            "a config drive is attached and was found: the first boot asked the network for more",
        ),
        (drive(true, Unknown), "a config drive is attached"),
        (drive(false, Unknown), "no config drive is attached: the first boot needs the network"),
        (NodesUnseen, "the nodes went unseen since it was made: it may have joined then"),
        (OlderThanWatch, "it is older than our watch: it may have joined before"),
    ]
}

fn of_nodes(x: &Arc<str>, span: Span) -> Vec<(NodeFact, &'static str)> {
    use NodeFact::*;
    let (node, instance) = (NodeName::new(x.clone()), InstanceId::new(x.clone()));
    let condition =
        reveille_core::model::node::Condition { kind: x.clone(), reason: x.clone(), message: x.clone() };
    let shared =
        |ready, by, stands_for, provider| Shared { node: node.clone(), ready, by, stands_for, provider };
    vec![
        (None, "no node has its provider ID, UUID, name or address"),
        (Ready, "its node is Ready"),
        (ReadyUnreported, "Ready was never reported"),
        (Condition(reveille_core::model::node::Ready::False, condition), "X is False: X: X"),
        (
            Uninitialized,
            "node.cloudprovider.kubernetes.io/uninitialized: the cloud controller has not initialised it",
        ),
        (LeaseRenewed, "its lease was renewed lately: its kubelet lives"),
        (LeaseOutlives, "its lease is still renewed: its kubelet lives"),
        (StartupTaint(x.clone(), span), "carries the startup taint X, for 2 min"),
        (Leaving(x.clone(), span), "carries the sign X, for 2 min, is not Ready, and is still there"),
        (Gone { node: node.clone(), events_doubted: false }, "node X was there once and is gone"),
        (
            Gone { node: node.clone(), events_doubted: true },
            "node X was there once and is gone; the controller did not watch when it went, so the events may be about an earlier node of that name",
        ),
        (Event { message: x.clone(), reporter: x.clone() }, "X (by X)"),
        (SameInstance(vec![node.clone(), node.clone()]), "X and X name this instance"),
        (StandIn(node.clone()), "node X names this instance, too, and has not been Ready"),
        (
            OthersUuid { node: node.clone(), ready: true, instance: instance.clone() },
            "node X is Ready with the system UUID of X",
        ),
        (
            shared(true, Identity::Name, Some(instance.clone()), Provider::Unset),
            "node X is Ready with the name of this machine, and stands for X",
        ),
        (
            shared(false, Identity::SystemUuid, Option::None, Provider::Instance(instance.clone())),
            "node X exists with the system UUID of this machine, and names instance X, which is not listed",
        ),
        (
            shared(false, Identity::Agent, Option::None, Provider::Unread(x.clone())),
            "node X exists with the name that the agent of this machine gives, and has the providerID X",
        ),
        (
            shared(false, Identity::Address(IpAddr::from([10, 0, 0, 7])), Option::None, Provider::Unset),
            "node X exists with the address 10.0.0.7 of this machine, and has no providerID",
        ),
        (
            NamesUnmarked(instance.clone()),
            "its provider ID names X, which is there and carries no mark of the roster",
        ),
        (NamesDenied(instance, 2), "its provider ID names X, which was denied by id 2 times"),
    ]
}

fn of_networks(x: &Arc<str>) -> Vec<(NetworkFact, &'static str)> {
    use NetworkFact::*;
    let group = GroupId::new(x.clone());
    let route =
        Route { destination: "100.64.1.0/24".parse().unwrap(), next_hop: IpAddr::from([10, 0, 0, 7]) };
    let (direction, remote) = (Direction::Ingress, Remote::Any);
    let rule = RuleSpec { direction, family: Family::V4, protocol: None, ports: None, remote };
    vec![
        (
            GroupsMissing { missing: vec![GroupRef::Name(x.clone())], carried: 1, obstacle: None },
            "lacks group \"X\"; carries 1 group(s)",
        ),
        (
            Groups {
                carried: vec![group.clone(), group.clone()],
                missing: vec![group],
                obstacle: Some(Obstacle::NoFixedAddress),
            },
            "security_groups: [X, X], lacks X; it has no fixed address, so it takes no security group",
        ),
        (PortDown(vec![route.next_hop]), "status DOWN while the instance is ACTIVE; addresses 10.0.0.7"),
        (PairsMissing(vec![route.destination]), "does not allow 100.64.1.0/24"),
        (GroupsOfThatName(2), "2 groups are called so in the project"),
        (RuleMissing(rule), "no rule allows ingress any protocol from anywhere"),
        (
            NudgeRule { rule: RuleId::new(x.clone()), mark: x.clone() },
            "rule X \"X\" was put for a nudge and not taken back",
        ),
        (NudgeRoute(route), "100.64.1.0/24 via 10.0.0.7: put for a nudge and not taken back"),
        (
            RoutesMissing(vec![route, route]),
            "holds no 100.64.1.0/24 via 10.0.0.7, 100.64.1.0/24 via 10.0.0.7",
        ),
        (DeadHop(route), "100.64.1.0/24 via 10.0.0.7: no port and no node has that address"),
        (HopsAlive(vec![route]), "100.64.1.0/24 via 10.0.0.7: more than one next hop is alive"),
        (
            RouterFull { used: 9, limit: 10, foreign: 2, needed: 1 },
            "holds 9 of 10 routes, 2 of them not of this cluster; 1 more are needed now, and one for the next node",
        ),
    ]
}

fn of_guests(x: &Arc<str>) -> Vec<(GuestFact, &'static str)> {
    use GuestFact::*;
    let agent = |kubelet, api, stage: Option<Stage>, more: Option<Arc<str>>| Agent {
        kubelet,
        api,
        stage,
        error: more.as_ref().map(|text| StageError { code: text.clone(), text: text.clone() }),
        work: more.clone(),
        blocker: more,
    };
    vec![
        (ConsoleUnread, "not read yet: read the console log"),
        (NoConsole(x.clone()), "there is no console log (X): collect the kubelet's journal on the machine"),
        (Boot(BootProgress::Kubelet), "the kubelet was started: read its journal"),
        (Answered, "the metadata service or the API server answered: packets pass"),
        (Addressed, "it got an address: packets pass"),
        (HeardOf, "the cluster has heard of it: packets pass"),
        (NeedsNoNetwork, "what failed there was answered, or needs no network"),
        (
            NoLease(x.clone()),
            "DHCP failed as well (\"X\"); Neutron's own firewalls let DHCP pass without any group",
        ),
        (
            agent(KubeletSaid::Runs, ApiSaid::Lost, Some(Stage::Trust), Some(x.clone())),
            "its kubelet runs; it does not reach the API server; at stage trust: X: X; it brings its node back by X; it leaves its join alone: X",
        ),
        (agent(KubeletSaid::CannotTell, ApiSaid::CannotTell, None, None), ""),
        (AgentSilent, "it has not been heard since"),
    ]
}

/// Each fact that there is, where names, ids and texts of others are this text, and its sentence for "X" and two minutes.
fn facts(x: &Arc<str>, span: Span) -> Vec<(Fact, &'static str)> {
    let lacks = Fact::RolesMissing {
        missing: vec![RoleRef::Name(x.clone()), RoleRef::Id(RoleId::new(x.clone()))],
        unknown: vec![RoleRef::Name(x.clone())],
        project: ProjectId::new(x.clone()),
        held: vec![],
    };
    let mut all = vec![
        (Fact::Quoted(x.clone()), "X"),
        (Fact::Unread(x.clone()), "could not tell: X"),
        (Fact::NoUser(Arc::new(UserRef::Id(UserId::new(x.clone())))), "the cloud knows no user X"),
        (lacks, "lacks X, X on project X; it holds nothing; the cloud has no role X"),
    ];
    all.extend(of_machines(x, span).into_iter().map(|(fact, says)| (fact.into(), says)));
    all.extend(of_nodes(x, span).into_iter().map(|(fact, says)| (fact.into(), says)));
    all.extend(of_networks(x).into_iter().map(|(fact, says)| (fact.into(), says)));
    all.extend(of_guests(x).into_iter().map(|(fact, says)| (fact.into(), says)));
    all
}

/// Every source and every fact once.
pub(crate) fn every_kind() -> Vec<Evidence> {
    let x = Arc::from("X");
    let (sources, facts) = (sources(&x), facts(&x, Span::from_min(2)));
    let sources = sources.into_iter().cycle();
    facts
        .into_iter()
        .zip(sources)
        .map(|((fact, _), source)| Evidence::new(source, fact, super::samples::AT))
        .collect()
}

pub(crate) fn source() -> impl Strategy<Value = Source> {
    (text(), any::<Index>()).prop_map(|(text, place)| {
        let mut all = sources(&text);
        all.swap_remove(place.index(all.len()))
    })
}

fn fact() -> impl Strategy<Value = Fact> {
    (text(), any::<i64>(), any::<Index>()).prop_map(|(text, ms, place)| {
        let mut all = facts(&text, Span::from_ms(ms));
        all.swap_remove(place.index(all.len())).0
    })
}

prop_compose! {
    pub(crate) fn evidence()(
        source in source(),
        fact in fact(),
        read_at in at(),
        line in proptest::option::of(line()),
    ) -> Evidence {
        Evidence { source, fact, read_at, line }
    }
}

#[test]
fn each_fact_has_its_sentence() {
    for (fact, says) in facts(&Arc::from("X"), Span::from_min(2)) {
        assert_eq!(fact.to_string(), says, "{fact:?}");
    }
    let long = Fact::Unread("ü".repeat(Evidence::TEXT_BYTES_MAX).into());
    assert!((Evidence::TEXT_BYTES_MAX - 1..=Evidence::TEXT_BYTES_MAX).contains(&long.to_string().len()));
}

#[test]
fn the_golden_file_holds_every_source_and_fact() {
    let all = every_kind();
    let word = |value: &Value| match value {
        Value::Object(fields) => fields.keys().next().cloned().unwrap_or_default(),
        word => word.as_str().unwrap_or_default().to_owned(),
    };
    let sources: BTreeSet<String> = all.iter().map(|it| word(&json!(it.source))).collect();
    assert_eq!(sources, words::<Source>(json!("?")));
    let facts: Vec<Value> = all.iter().map(|it| json!(it.fact)).collect();
    assert_eq!(facts.iter().map(word).collect::<BTreeSet<_>>(), words::<Fact>(json!("?")));
    let of = |topic: &str| facts.iter().filter_map(|it| it.get(topic)).map(word).collect::<BTreeSet<_>>();
    assert_eq!(of("machine"), words::<MachineFact>(json!("?")));
    assert_eq!(of("cluster"), words::<NodeFact>(json!("?")));
    assert_eq!(of("net"), words::<NetworkFact>(json!("?")));
    assert_eq!(of("guest"), words::<GuestFact>(json!("?")));
}
