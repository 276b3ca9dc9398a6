//! Arbitrary events and effects: any text, any number, every variant.

use std::net::IpAddr;
use std::sync::Arc;

use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use reveille_core::effect::{Effect, Look, ReadError, ReadErrorKind};
use reveille_core::event::{
    AgentFact, Answer, CloudFact, CloudSnapshot, ClusterFact, Command, Event, Pause, Scope,
};
use reveille_core::model::access::{RoleRef, UserRoles};
use reveille_core::model::agent::{ApiSaid, Ask, KubeletSaid, StageSaid, Who, Work};
use reveille_core::model::agent_report::AgentReport;
use reveille_core::model::guest::{BootProgress, ConfigDrive, Guest};
use reveille_core::model::hosting::{Check, Checks, GroupPhase, Hosting, Notice, NoticeKind, OwnerGroup};
use reveille_core::model::id::*;
use reveille_core::model::incident::Confidence;
use reveille_core::model::instance::{Fault, Instance, InstanceAction, Mark, Port, PortStatus};
use reveille_core::model::log_evidence::{CertificateRequest, EvidenceQuery, RequestState, Said, Unread};
use reveille_core::model::log_findings::{LogFinding, LogFindings, Quote};
use reveille_core::model::network::{GroupRule, Router, SecurityGroup};
use reveille_core::model::node::{Asks, Condition, Node, NodeEvent, NodeIntent, Provider, Ready};
use reveille_core::model::stage::Stage;
use reveille_core::model::time::{ServiceTime, Span};

use crate::ledger::tests::arbitrary::{
    at, blocker, call, cause, cloud, id, line, maybe_text, net, outcome, pause_scope, record, role, route,
    rule, stage_error, state, text, user,
};
use crate::ledger::tests::evidence::source;

fn addresses() -> impl Strategy<Value = Box<[IpAddr]>> {
    vec(any::<IpAddr>(), 0..3).prop_map(Vec::into_boxed_slice)
}

fn mark() -> impl Strategy<Value = Mark> {
    prop_oneof![text().prop_map(Mark::Tag), (text(), text()).prop_map(|(k, v)| Mark::Metadata(k, v))]
}

fn check() -> impl Strategy<Value = Check> {
    select(vec![Check::Unknown, Check::Pending, Check::Passed, Check::Impaired])
}

prop_compose! {
    fn hosting()(
        (host, guest, disk) in (check(), check(), check()),
        notices in vec((select(NoticeKind::ALL.to_vec()), maybe_text(), text()), 0..3),
        ended in maybe_text(),
        (spot, no_identity, loses_disks) in any::<(bool, bool, bool)>(),
        group in option::of((text(), select(GroupPhase::ALL.to_vec()), text(), any::<bool>())),
    ) -> Hosting {
        let notice = |(kind, not_before, text)| Notice { kind, not_before, text };
        let group = group.map(|(name, phase, word, protected)| OwnerGroup { name, phase, word, protected });
        let checks = Checks { host, guest, disk };
        let notices = notices.into_iter().map(notice).collect();
        Hosting { checks, notices, ended, spot, group, no_identity, loses_disks }
    }
}

prop_compose! {
    fn instance()(
        (id, name, state) in (id(InstanceId::new), id(InstanceName::new), state()),
        (task, created, hostname) in (maybe_text(), maybe_text(), maybe_text()),
        hosting in option::of(hosting().prop_map(Arc::new)),
        fault in option::of((any::<u32>(), text()).prop_map(|(code, message)| Fault { code, message })),
        (zone, image) in (option::of(id(ZoneName::new)), option::of(id(ImageId::new))),
        marks in btree_set(mark(), 0..3).prop_map(Arc::new),
        addresses in addresses(),
        (config_drive, locked) in any::<(bool, bool)>(),
    ) -> Arc<Instance> {
        Arc::new(Instance {
            id, name, state, task, fault, zone, image, marks, addresses, config_drive, locked, created, hostname, hosting,
        })
    }
}

prop_compose! {
    fn port()(
        (id, network) in (id(PortId::new), id(NetworkId::new)),
        addresses in addresses(),
        groups in vec(id(GroupId::new), 0..3).prop_map(Vec::into_boxed_slice),
        pairs in vec(net(), 0..3).prop_map(Vec::into_boxed_slice),
        (security, revision) in any::<(bool, u64)>(),
        status in select(vec![PortStatus::Active, PortStatus::Down, PortStatus::Unknown]),
    ) -> Arc<Port> {
        Arc::new(Port { id, network, addresses, groups, pairs, security, status, revision })
    }
}

prop_compose! {
    fn group()(
        (id, name, project) in (id(GroupId::new), text(), maybe_text()),
        rules in vec((id(RuleId::new), rule(), text()), 0..3),
    ) -> Arc<SecurityGroup> {
        let rules = rules.into_iter().map(|(id, allows, description)| GroupRule { id, allows, description });
        Arc::new(SecurityGroup { id, name, project, rules: rules.collect() })
    }
}

prop_compose! {
    fn router()(id in id(RouterId::new), routes in vec(route(), 0..3), limit in option::of(any::<u32>())) -> Arc<Router> {
        Arc::new(Router { id, routes, limit })
    }
}

/// The strategy is boxed: a node's strategy is as large as all of its parts, and a test's stack is not.
fn wishes() -> BoxedStrategy<(Option<Box<Asks>>, Box<[Arc<str>]>)> {
    let asks = (maybe_text(), maybe_text(), option::of(any::<bool>()));
    let asks = asks.prop_map(|(repair, confirm, keep)| Box::new(Asks { repair, confirm, keep }));
    (option::of(asks), vec(text(), 0..3).prop_map(Vec::into_boxed_slice)).boxed()
}

prop_compose! {
    fn node()(
        (name, uid) in (id(NodeName::new), id(NodeUid::new)),
        provider in prop_oneof![
            Just(Provider::Unset),
            id(InstanceId::new).prop_map(Provider::Instance),
            text().prop_map(Provider::Unread),
        ],
        (system_uuid, boot_id, kubelet) in (option::of(id(InstanceId::new)), maybe_text(), maybe_text()),
        addresses in addresses(),
        pod_ranges in vec(net(), 0..3).prop_map(Vec::into_boxed_slice),
        ready in select(vec![Ready::True, Ready::False, Ready::Unknown]),
        conditions in vec((text(), text(), text()), 0..3),
        zone in option::of(id(ZoneName::new)),
        (cordoned, deleting, paused, uninitialized) in any::<(bool, bool, bool, bool)>(),
        leaving in maybe_text(),
        (asks, taints) in wishes(),
    ) -> Arc<Node> {
        let condition = |(kind, reason, message)| Condition { kind, reason, message };
        Arc::new(Node {
            name, uid, provider, system_uuid, boot_id, kubelet, addresses, pod_ranges, ready,
            conditions: conditions.into_iter().map(condition).collect(),
            zone, cordoned, intent: NodeIntent { deleting, leaving, paused, asks }, uninitialized, taints,
        })
    }
}

prop_compose! {
    fn node_event()(
        node in id(NodeName::new), uid in option::of(id(NodeUid::new)),
        (reason, message, reporter, stamped) in (text(), text(), text(), maybe_text()),
    ) -> NodeEvent {
        NodeEvent { node, uid, reason, message, reporter, stamped }
    }
}

prop_compose! {
    fn read_error()(
        kind in select(vec![
            ReadErrorKind::Unauthorized, ReadErrorKind::Forbidden, ReadErrorKind::Throttled,
            ReadErrorKind::Unavailable, ReadErrorKind::TimedOut, ReadErrorKind::Incomplete,
            ReadErrorKind::Malformed, ReadErrorKind::Gap,
        ]),
        text in text(),
        retry_after in option::of(any::<i64>().prop_map(Span::from_ms)),
    ) -> ReadError {
        ReadError { kind, text, retry_after }
    }
}

prop_compose! {
    fn snapshot()(
        instances in vec(instance(), 0..4),
        begun in option::of(any::<i64>().prop_map(ServiceTime::from_s)),
        scope in select(vec![Scope::Full, Scope::Changes]),
        ports in vec((id(InstanceId::new), port()), 0..4),
        groups in option::of(vec(group(), 0..3)),
        routers in vec(router(), 0..3),
        in_use in vec(net(), 0..3),
    ) -> Arc<CloudSnapshot> {
        let in_use = Arc::new(in_use.into_iter().collect());
        Arc::new(CloudSnapshot { instances, begun, scope, ports, in_use, groups, routers })
    }
}

fn answer() -> impl Strategy<Value = Answer> {
    let action = (id(RequestId::new), text(), text(), maybe_text(), maybe_text()).prop_map(
        |(request, action, started, user, message)| InstanceAction {
            request,
            action,
            started,
            user,
            message,
        },
    );
    prop_oneof![
        option::of(instance()).prop_map(Answer::Instance),
        vec(port(), 0..3).prop_map(Answer::Ports),
        option::of(group()).prop_map(Answer::Group),
        option::of(router()).prop_map(Answer::Router),
        text().prop_map(Answer::Console),
        log_findings().prop_map(|log_findings| Answer::LogFindings(Arc::new(log_findings))),
        said().prop_map(|said| Answer::Said(Arc::new(said))),
        text().prop_map(Answer::NoConsole),
        vec(action, 0..3).prop_map(Answer::Actions),
        option::of(node()).prop_map(Answer::Node),
        vec(node_event(), 0..3).prop_map(Answer::NodeEvents),
        (id(ProjectId::new), option::of(id(UserId::new)), vec(role(), 0..3), vec(role(), 0..3)).prop_map(
            |(project, user, held, lacking)| Answer::Roles(UserRoles { project, user, held, lacking })
        ),
    ]
}

fn pauses() -> impl Strategy<Value = Event> {
    let pause = (pause_scope(), text(), text()).prop_map(|(scope, by, reason)| Pause { scope, by, reason });
    btree_set(pause, 0..3).prop_map(|pauses| Event::Command(Command::Pauses(pauses)))
}

/// Any event except a list of leases, of which the recording keeps only the renewals; `lease` has a property of its own.
pub(super) fn event() -> impl Strategy<Value = Event> {
    let cluster = prop_oneof![
        id(ClusterUid::new).prop_map(ClusterFact::Identity),
        read_error().prop_map(ClusterFact::IdentityUnread),
        vec(node(), 0..4).prop_map(ClusterFact::Synced),
        node().prop_map(ClusterFact::Applied),
        (id(NodeName::new), id(NodeUid::new)).prop_map(|(name, uid)| ClusterFact::Deleted { name, uid }),
        node_event().prop_map(ClusterFact::NodeEvent),
        Just(ClusterFact::Alive),
        read_error().prop_map(ClusterFact::Failed),
    ];
    let fact = prop_oneof![
        3 => (snapshot(), any::<i64>())
            .prop_map(|(snapshot, took)| CloudFact::Snapshot { snapshot, took: Span::from_ms(took) }),
        1 => read_error().prop_map(CloudFact::Failed),
    ];
    let answered = prop_oneof![answer().prop_map(Ok), read_error().prop_map(Err)];
    prop_oneof![
        (cloud(), fact).prop_map(|(cloud, fact)| Event::Cloud { cloud, fact }),
        cluster.prop_map(Event::Cluster),
        agent_fact().prop_map(Event::Agent),
        (any::<u64>(), answered).prop_map(|(look, answer)| Event::Looked { look: LookId(look), answer }),
        any::<u64>().prop_map(|id| Event::Recorded(RecordId(id))),
        any::<u64>().prop_map(|id| Event::RecordFailed(RecordId(id))),
        (any::<u64>(), outcome())
            .prop_map(|(intent, outcome)| Event::Done { intent: IntentId(intent), outcome }),
        pauses(),
        Just(Event::Tick),
    ]
}

prop_compose! {
    fn report()(
        (instance, system_uuid) in (option::of(id(InstanceId::new)), option::of(id(InstanceId::new))),
        (node, boot) in (option::of(id(NodeName::new)), maybe_text()),
        (life, number) in (text(), any::<u64>()),
        stages in vec(
            (select(Stage::ALL.to_vec()), any::<bool>(), any::<u32>(), option::of(stage_error()))
                .prop_map(|(stage, passed, attempts, error)| StageSaid { stage, passed, attempts, error }),
            0..3
        ),
        told in vec(told(), 0..2),
        kubelet in select(KubeletSaid::ALL.to_vec()),
        unsaid in any::<bool>(),
        api in select(ApiSaid::ALL.to_vec()),
        work in option::of(
            (text(), any::<u32>(), any::<u32>()).prop_map(|(what, attempt, of)| Work { what, attempt, of })
        ),
        blocker in option::of(blocker()),
        may in btree_set(select(Ask::ALL.to_vec()), 0..2),
    ) -> Arc<AgentReport> {
        let who = Who { instance, system_uuid, node, boot };
        Arc::new(AgentReport { who, life, number, stages, told, unsaid, kubelet, api, work, blocker, may })
    }
}

fn agent_fact() -> impl Strategy<Value = AgentFact> {
    prop_oneof![
        (id(AgentId::new), report()).prop_map(|(agent, report)| AgentFact::Said { agent, report }),
        (id(AgentId::new), text()).prop_map(|(agent, why)| AgentFact::Parted { agent, why }),
        Just(AgentFact::Listening),
        read_error().prop_map(AgentFact::Deaf),
    ]
}

pub(super) fn effects() -> impl Strategy<Value = Vec<Effect>> {
    let machine = || (cloud(), id(InstanceId::new));
    let look = prop_oneof![
        machine().prop_map(|(cloud, id)| Look::Instance(cloud, id)),
        machine().prop_map(|(cloud, id)| Look::Ports(cloud, id)),
        (cloud(), id(GroupId::new)).prop_map(|(cloud, id)| Look::Group(cloud, id)),
        (cloud(), id(RouterId::new)).prop_map(|(cloud, id)| Look::Router(cloud, id)),
        machine().prop_map(|(cloud, id)| Look::Console(cloud, id)),
        (machine(), evidence_query()).prop_map(|((cloud, id), of)| Look::LogEvidence(
            cloud,
            id,
            Arc::new(of)
        )),
        machine().prop_map(|(cloud, id)| Look::Actions(cloud, id)),
        id(NodeName::new).prop_map(Look::Node),
        id(NodeName::new).prop_map(Look::NodeEvents),
        (cloud(), user(), vec(id(RoleId::new).prop_map(RoleRef::Id), 0..3))
            .prop_map(|(cloud, user, roles)| Look::Roles(cloud, user, roles)),
    ];
    let effect = prop_oneof![
        (any::<u64>(), record()).prop_map(|(id, record)| Effect::Record { id: RecordId(id), record }),
        (any::<u64>(), any::<u64>(), call()).prop_map(|(intent, fence, call)| Effect::Call {
            intent: IntentId(intent),
            fence: Fence(fence),
            call
        }),
        (any::<u64>(), look).prop_map(|(id, look)| Effect::Look { id: LookId(id), look }),
        cloud().prop_map(|cloud| Effect::List { cloud }),
        at().prop_map(Effect::WakeAt),
    ];
    vec(effect, 0..3)
}

prop_compose! {
    fn quote()(source in source(), text in text(), line in line()) -> Quote {
        Quote { source, text, line }
    }
}

prop_compose! {
    fn told()(
        cause in cause(),
        stage in select(Stage::ALL.to_vec()),
        confidence in select(vec![Confidence::Possible, Confidence::Likely, Confidence::Sure]),
        (unanswered, no_lease) in any::<(bool, bool)>(),
        proof in vec(quote(), 0..3),
        against in vec(quote(), 0..3),
    ) -> LogFinding {
        LogFinding { cause, stage, confidence, unanswered, no_lease, proof, against, follows: Vec::new() }
    }
}

prop_compose! {
    fn log_findings()(
        console in prop_oneof![text().prop_map(Ok), text().prop_map(Err)],
        boot in select(BootProgress::ALL.to_vec()),
        config_drive in select(ConfigDrive::ALL.to_vec()),
        (addressed, answered) in any::<(bool, bool)>(),
        told in vec(told(), 0..3),
        unread in vec(unread(), 0..2),
    ) -> LogFindings {
        LogFindings { console, guest: Guest { boot, config_drive, addressed, answered }, told, unread }
    }
}

fn unread() -> impl Strategy<Value = Unread> {
    (source(), text()).prop_map(|(source, why)| Unread { source, why })
}

prop_compose! {
    fn request()(
        (name, signer, requester) in (text(), text(), text()),
        state in select(RequestState::ALL.to_vec()),
        (message, stamped) in (text(), text()),
    ) -> CertificateRequest {
        CertificateRequest { name, signer, requester, state, message, stamped }
    }
}

prop_compose! {
    fn said()(
        node in option::of(node()),
        events in vec(node_event(), 0..2),
        requests in vec(request(), 0..2),
        unread in vec(unread(), 0..2),
    ) -> Said {
        Said { node, events, requests, unread }
    }
}

prop_compose! {
    fn evidence_query()(
        node in option::of(id(NodeName::new)),
        asks_as in id(NodeName::new),
        console_counts in any::<bool>(),
    ) -> EvidenceQuery {
        EvidenceQuery { node, asks_as, console_counts }
    }
}
