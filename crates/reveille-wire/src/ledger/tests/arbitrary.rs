//! Arbitrary records: any text, any number, every word, every variant.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use reveille_core::effect::{Call, Outcome};
use reveille_core::event::PauseScope;
use reveille_core::model::access::{Role, UserRef};
use reveille_core::model::agent::{AgentBlocker, AgentBlockerKind, Ask, StageError};
use reveille_core::model::attempt::{Attempt, Ending, Readback};
use reveille_core::model::before::{ActionMark, Before};
use reveille_core::model::cause::{Cause, Entry};
use reveille_core::model::evidence::Line;
use reveille_core::model::id::*;
use reveille_core::model::incident::{Confidence, FaultKind, Finding, IncidentKey, MachineKey, Subject};
use reveille_core::model::instance::{InstanceState, Mark};
use reveille_core::model::network::{Direction, Family, Protocol, Remote, Route, RuleSpec};
use reveille_core::model::roster::Ownership;
use reveille_core::model::stage::Stage;
use reveille_core::model::time::{Span, Time};
use reveille_core::model::trace::{Passage, Trace};
use reveille_core::record::{AgentTold, Domain, Joined, Place, Record, Verdict};
use reveille_core::remedies::{
    AddPortPairs, AddRoutes, AddRules, AskAgent, AssignRoles, DeleteInstance, DeleteNode, DropRule,
    NudgeGroup, NudgeRouter, Reboot, RemoveRoutes, SetPortGroups, StartInstance,
};

use super::blockers::why;
use super::evidence::evidence;

pub(crate) fn state() -> impl Strategy<Value = InstanceState> {
    use InstanceState::{Active, Building, Deleting, Errored, Gone, Other, Rebooting, Stopped};
    select(vec![Building, Active, Rebooting, Stopped, Errored, Deleting, Gone, Other])
}

pub(crate) fn text() -> impl Strategy<Value = Arc<str>> {
    any::<String>().prop_map(Arc::from)
}

pub(crate) fn maybe_text() -> impl Strategy<Value = Option<Arc<str>>> {
    option::of(text())
}

pub(crate) fn at() -> impl Strategy<Value = Time> {
    prop_oneof![(0..4_000_000_000_000_i64).prop_map(Time::from_ms), any::<i64>().prop_map(Time::from_ms)]
}

/// A name of any kind from any text.
pub(crate) fn id<T: std::fmt::Debug>(new: fn(Arc<str>) -> T) -> impl Strategy<Value = T> {
    text().prop_map(new)
}

pub(crate) fn cloud() -> impl Strategy<Value = CloudName> {
    id(CloudName::new)
}

pub(crate) fn net() -> impl Strategy<Value = IpNet> {
    prop_oneof![
        (any::<[u8; 4]>(), 0..=32_u8).prop_map(|(ip, len)| IpNet::new(IpAddr::from(ip), len).unwrap()),
        (any::<[u8; 16]>(), 0..=128_u8).prop_map(|(ip, len)| IpNet::new(IpAddr::from(ip), len).unwrap()),
    ]
}

fn machine() -> impl Strategy<Value = MachineKey> {
    prop_oneof![
        (cloud(), id(InstanceId::new)).prop_map(|(cloud, id)| MachineKey::Instance(cloud, id)),
        id(NodeName::new).prop_map(MachineKey::Node),
    ]
}

pub(crate) fn user() -> impl Strategy<Value = Arc<UserRef>> {
    let named = (text(), maybe_text()).prop_map(|(name, domain)| UserRef::Name { name, domain });
    prop_oneof![id(UserId::new).prop_map(UserRef::Id), named].prop_map(Arc::new)
}

prop_compose! {
    pub(crate) fn role()(id in id(RoleId::new), name in text()) -> Role {
        Role { id, name }
    }
}

fn subject() -> impl Strategy<Value = Subject> {
    prop_oneof![
        machine().prop_map(Subject::Machine),
        (cloud(), id(GroupId::new)).prop_map(|(cloud, id)| Subject::Group(cloud, id)),
        (cloud(), id(RouterId::new)).prop_map(|(cloud, id)| Subject::Router(cloud, id)),
        (cloud(), user()).prop_map(|(cloud, user)| Subject::User(cloud, user)),
        id(PoolName::new).prop_map(Subject::Pool),
        cloud().prop_map(Subject::Cloud),
        Just(Subject::Cluster),
    ]
}

fn kind() -> impl Strategy<Value = FaultKind> {
    select(FaultKind::ALL.to_vec())
}

prop_compose! {
    pub(crate) fn line()(number in any::<u64>(), times in any::<u64>(), sign in text()) -> Line {
        Line { number, times, sign }
    }
}

prop_compose! {
    fn entry()(
        code in id(CauseCode::new),
        label in id(CauseLabel::new),
        stage in select(Stage::ALL.to_vec()),
        (says, remedy) in (text(), text()),
        commands in vec(text(), 0..3),
        collect in vec(text(), 0..3),
        first_boot in any::<bool>(),
        no_reboot in option::of(text()),
        no_replace in option::of(text()),
    ) -> Entry {
        Entry { code, label, stage, says, remedy, commands, collect, first_boot, no_reboot, no_replace }
    }
}

pub(crate) fn cause() -> impl Strategy<Value = Cause> {
    let catalogued = entry().prop_map(|entry| Cause::Catalogued(Arc::new(entry)));
    prop_oneof![select(Cause::OWN), catalogued]
}

prop_compose! {
    fn finding()(
        cause in cause(),
        stage in select(Stage::ALL.to_vec()),
        confidence in select(vec![Confidence::Possible, Confidence::Likely, Confidence::Sure]),
        evidence in vec(evidence(), 0..3),
        against in vec(evidence(), 0..3),
    ) -> Finding {
        let follows = Vec::new();
        Finding { cause, stage, confidence, evidence, against, follows }
    }
}

fn remote() -> impl Strategy<Value = Remote> {
    prop_oneof![
        Just(Remote::Any),
        net().prop_map(Remote::Prefix),
        id(GroupId::new).prop_map(Remote::Group),
        Just(Remote::Other),
    ]
}

prop_compose! {
    pub(crate) fn rule()(
        direction in select(vec![Direction::Ingress, Direction::Egress]),
        family in select(vec![Family::V4, Family::V6]),
        protocol in option::of(any::<u8>().prop_map(Protocol)),
        ports in option::of(any::<(u16, u16)>()),
        remote in remote(),
    ) -> RuleSpec {
        RuleSpec { direction, family, protocol, ports, remote }
    }
}

prop_compose! {
    pub(crate) fn route()(destination in net(), next_hop in any::<IpAddr>()) -> Route {
        Route { destination, next_hop }
    }
}

pub(crate) fn call() -> impl Strategy<Value = Call> {
    let instance = || (cloud(), id(InstanceId::new));
    let routes = || (cloud(), id(RouterId::new), vec(route(), 0..3));
    prop_oneof![
        (cloud(), id(GroupId::new), vec(rule(), 0..3))
            .prop_map(|(cloud, group, rules)| Call::AddRules(AddRules { cloud, group, rules })),
        (cloud(), id(GroupId::new), id(RuleId::new))
            .prop_map(|(cloud, group, rule)| Call::DropRule(DropRule { cloud, group, rule })),
        (cloud(), id(GroupId::new), text()).prop_map(|(cloud, group, mark)| Call::NudgeGroup(NudgeGroup {
            cloud,
            group,
            mark
        })),
        (instance(), owned(), id(PortId::new), vec(id(GroupId::new), 0..3), any::<u64>()).prop_map(
            |((cloud, instance), owned, port, groups, if_revision)| Call::SetPortGroups(SetPortGroups {
                cloud,
                port,
                groups,
                if_revision,
                instance,
                owned
            })
        ),
        (instance(), owned(), id(PortId::new), vec(net(), 0..3), any::<u64>()).prop_map(
            |((cloud, instance), owned, port, pairs, if_revision)| Call::AddPortPairs(AddPortPairs {
                cloud,
                port,
                pairs,
                if_revision,
                instance,
                owned
            })
        ),
        (routes(), any::<bool>()).prop_map(|((cloud, router, routes), rests)| {
            let unless_used = routes.iter().filter(|_| rests).map(|route| route.next_hop).collect();
            Call::RemoveRoutes(RemoveRoutes { cloud, router, routes, unless_used })
        }),
        routes().prop_map(|(cloud, router, routes)| Call::AddRoutes(AddRoutes { cloud, router, routes })),
        (cloud(), id(RouterId::new), route())
            .prop_map(|(cloud, router, route)| Call::NudgeRouter(NudgeRouter { cloud, router, route })),
        (cloud(), id(ProjectId::new), id(UserId::new), vec(role(), 0..3)).prop_map(
            |(cloud, project, user, roles)| Call::AssignRoles(AssignRoles { cloud, project, user, roles })
        ),
        (instance(), any::<bool>(), owned()).prop_map(|((cloud, instance), hard, owned)| Call::Reboot(
            Reboot { cloud, instance, hard, owned }
        )),
        (instance(), id(AgentId::new), select(Ask::ALL.to_vec()), id(NodeName::new)).prop_map(
            |((cloud, instance), agent, ask, node)| Call::AskAgent(AskAgent {
                cloud,
                instance,
                agent,
                ask,
                node
            })
        ),
        (instance(), owned()).prop_map(|((cloud, instance), owned)| Call::Start(StartInstance {
            cloud,
            instance,
            owned
        })),
        (instance(), owned(), option::of(state())).prop_map(|((cloud, instance), owned, rests_on)| {
            Call::DeleteInstance(DeleteInstance { cloud, instance, owned, rests_on })
        }),
        (id(NodeName::new), id(NodeUid::new), option::of(text()))
            .prop_map(|(name, uid, boot_id)| Call::DeleteNode(DeleteNode { name, uid, boot_id })),
    ]
}

fn owned() -> impl Strategy<Value = Ownership> {
    let mark = || {
        let pair = (text(), text()).prop_map(|(key, value)| Mark::Metadata(key, value));
        prop_oneof![text().prop_map(Mark::Tag), pair]
    };
    (mark(), option::of(mark())).prop_map(|(cluster, pool)| Ownership { cluster, pool })
}

pub(crate) fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        option::of(id(RequestId::new)).prop_map(|request| Outcome::Accepted { request }),
        text().prop_map(|text| Outcome::AlreadySo { text }),
        text().prop_map(|text| Outcome::Moved { text }),
        (option::of(any::<u32>()), text()).prop_map(|(limit, text)| Outcome::Limit { limit, text }),
        text().prop_map(|text| Outcome::Refused { text }),
        text().prop_map(|text| Outcome::Denied { text }),
        (text(), option::of(any::<i64>().prop_map(Span::from_ms)))
            .prop_map(|(text, retry_after)| Outcome::Failed { text, retry_after }),
        (text(), option::of(any::<i64>().prop_map(Span::from_ms)))
            .prop_map(|(text, retry_after)| Outcome::NotSent { text, retry_after }),
        text().prop_map(|text| Outcome::Unknown { text }),
        Just(Outcome::Fenced {}),
    ]
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![
        (at(), why()).prop_map(|(at, why)| Ending::Dropped { at, why }),
        (at(), outcome()).prop_map(|(at, outcome)| Ending::Answered { at, outcome }),
    ]
}

fn readback() -> impl Strategy<Value = Readback> {
    (at(), any::<bool>(), text()).prop_map(|(at, held, text)| Readback { at, held, text })
}

prop_compose! {
    fn attempt()(
        intent in any::<u64>().prop_map(IntentId),
        call in call(),
        at in at(),
        ending in option::of(ending()),
        readback in option::of(readback()),
        seen in any::<bool>(),
        logged_as in option::of(id(RequestId::new)),
    ) -> Attempt {
        Attempt { intent, call, at, ending, readback, seen, logged_as }
    }
}

prop_compose! {
    fn domain()(pool in id(PoolName::new), zone in option::of(id(ZoneName::new)), kind in kind()) -> Domain {
        Domain { pool, zone, kind }
    }
}

prop_compose! {
    fn place()(domain in option::of(domain()), settled in at(), until in at()) -> Place {
        Place { domain, settled, until }
    }
}

fn action_mark() -> impl Strategy<Value = ActionMark> {
    prop_oneof![maybe_text().prop_map(ActionMark::Reboot), text().prop_map(ActionMark::Launch)]
}

prop_compose! {
    fn before()(
        action in option::of(action_mark()), node in option::of(id(NodeName::new)), node_boot in maybe_text(),
        agent_boot in maybe_text(),
    ) -> Before {
        Before { action, node, node_boot, agent_boot }
    }
}

prop_compose! {
    fn intended()(
        at in at(), intent in any::<u64>(), incident in any::<u64>(), repair_step in any::<u8>(), fence in any::<u64>(),
        call in call(), before in option::of(before()),
        domain in option::of(domain()),
    ) -> Record {
        let (intent, incident, fence) = (IntentId(intent), IncidentId(incident), Fence(fence));
        Record::Intended { at, intent, incident, repair_step, fence, call, before, domain }
    }
}

pub(crate) fn blocker() -> impl Strategy<Value = AgentBlocker> {
    (select(AgentBlockerKind::ALL.to_vec()), text()).prop_map(|(kind, text)| AgentBlocker { kind, text })
}

pub(crate) fn stage_error() -> impl Strategy<Value = StageError> {
    (text(), text()).prop_map(|(code, text)| StageError { code, text })
}

fn trace() -> impl Strategy<Value = Trace> {
    let row = || {
        (select(Stage::ALL.to_vec()), at(), option::of(at()), any::<u32>(), option::of(stage_error()))
            .prop_map(|(stage, entered, left, attempts, error)| Passage {
                stage,
                entered,
                left,
                attempts,
                error,
            })
    };
    (vec(row(), 0..3), vec(row(), 0..3)).prop_map(|(seen, said)| Trace { seen, said })
}

fn joined() -> impl Strategy<Value = Joined> {
    (machine(), id(NodeName::new), option::of(id(PoolName::new))).prop_map(|(machine, node, pool)| Joined {
        machine,
        node,
        pool,
    })
}

pub(crate) fn pause_scope() -> impl Strategy<Value = PauseScope> {
    prop_oneof![
        Just(PauseScope::Roster),
        Just(PauseScope::OtherController),
        text().prop_map(PauseScope::Pool),
        text().prop_map(PauseScope::Machine),
    ]
}

fn others_acted() -> impl Strategy<Value = Record> {
    let times = (at(), at(), option::of(at()));
    let editions = (vec(text(), 0..3), vec(text(), 0..3));
    let how = (any::<bool>(), any::<bool>());
    (times, vec(id(PoolName::new), 0..3), text(), how, editions).prop_map(
        |((at, until, since), pools, what, (rollout, guessed), (images, versions))| Record::OthersActed {
            at,
            pools,
            until,
            what,
            rollout,
            guessed,
            since,
            images,
            versions,
        },
    )
}

fn cordoned() -> impl Strategy<Value = Record> {
    let names = vec(text(), 0..3);
    let texts = (option::of(text()), option::of(text()), names);
    (at(), machine(), any::<[bool; 5]>(), texts, option::of(at())).prop_map(
        |(at, machine, [cordoned, paused, locked, apart, gone], (sign, group, named), missing_since)| {
            Record::Cordoned {
                at,
                machine,
                cordoned,
                sign,
                paused,
                locked,
                apart,
                group,
                named,
                gone,
                missing_since,
            }
        },
    )
}

fn of_machines() -> impl Strategy<Value = Record> {
    prop_oneof![
        (at(), any::<u64>()).prop_map(|(at, fence)| Record::Started { at, fence: Fence(fence) }),
        (at(), id(ClusterUid::new)).prop_map(|(at, cluster)| Record::Cluster { at, cluster }),
        (at(), vec(joined(), 0..4)).prop_map(|(at, machines)| Record::Joined { at, machines }),
        (at(), machine()).prop_map(|(at, machine)| Record::Born { at, machine }),
        cordoned(),
        (at(), machine(), text()).prop_map(|(at, machine, why)| Record::Left { at, machine, why }),
        others_acted(),
        (at(), machine(), trace(), option::of((id(AgentId::new), option::of(blocker())))).prop_map(
            |(at, machine, trace, told)| {
                let told = told.map(|(agent, blocker)| AgentTold { agent, blocker });
                Record::Traced { at, machine, trace, told }
            }
        ),
        (at(), vec(machine(), 0..4)).prop_map(|(at, machines)| Record::Forgotten { at, machines }),
        (at(), vec(machine(), 0..4), any::<bool>()).prop_map(|(at, machines, disowned)| Record::Departed {
            at,
            machines,
            disowned
        }),
        (at(), pause_scope(), any::<bool>()).prop_map(|(at, scope, over)| Record::Paused { at, scope, over }),
        (at(), vec(machine(), 0..4)).prop_map(|(at, machines)| Record::Returned { at, machines }),
        (at(), vec(machine(), 0..4)).prop_map(|(at, machines)| Record::LostTogether { at, machines }),
    ]
}

fn opened() -> impl Strategy<Value = Record> {
    let incident = any::<u64>().prop_map(IncidentId);
    let of_pool = (option::of(id(PoolName::new)), text());
    let times = (option::of(at()), option::of(at()), option::of(at()), option::of(at()));
    (at(), incident, subject(), kind(), of_pool, times).prop_map(
        |(at, incident, subject, kind, (pool, label), times)| {
            let (served_since, away_since, watched_from, resumed_at) = times;
            let key = IncidentKey { subject, kind };
            Record::Opened {
                at,
                incident,
                key,
                pool,
                label,
                served_since,
                away_since,
                watched_from,
                resumed_at,
            }
        },
    )
}

fn numbered() -> impl Strategy<Value = Record> {
    let (incident, intent) = (any::<u64>().prop_map(IncidentId), any::<u64>().prop_map(IntentId));
    (
        at(),
        incident,
        intent,
        vec(at(), 0..3),
        vec(at(), 0..2),
        vec(id(InstanceId::new), 0..3),
        option::of(at()),
        option::of(at()),
    )
        .prop_map(|(at, incident, intent, begun, tidied, deleted, unseen_since, jumped_from)| {
            Record::Numbered { at, incident, intent, begun, tidied, deleted, unseen_since, jumped_from }
        })
}

pub(crate) fn record() -> impl Strategy<Value = Record> {
    let incident = || any::<u64>().prop_map(IncidentId);
    let intent = || any::<u64>().prop_map(IntentId);
    let verdicts = vec![Verdict::Mended, Verdict::Recovered, Verdict::SubjectGone, Verdict::Superseded];
    let incidents = prop_oneof![
        opened(),
        (at(), incident(), vec(finding(), 0..3)).prop_map(|(at, incident, findings)| Record::Diagnosed {
            at,
            incident,
            findings
        }),
        (incident(), attempt(), any::<u8>()).prop_map(|(incident, attempt, repair_step)| Record::Tried {
            incident,
            attempt,
            repair_step
        }),
        (
            incident(),
            any::<u8>(),
            any::<u32>(),
            option::of(at()),
            option::of(action_mark()),
            vec(intent(), 0..3),
            (option::of(place()), option::of(at()), option::of(at()))
        )
            .prop_map(|(incident, repair_step, tries, not_before, unconfirmed, lapsed, kept)| {
                let (place, late_since, outlasted) = kept;
                Record::CarriedOver {
                    incident,
                    repair_step,
                    tries,
                    not_before,
                    unconfirmed,
                    lapsed,
                    place,
                    late_since,
                    outlasted,
                }
            }),
        numbered(),
        (at(), incident(), text()).prop_map(|(at, incident, why)| Record::GivenUp { at, incident, why }),
        (at(), machine(), text(), option::of(incident()))
            .prop_map(|(at, machine, value, incident)| Record::Asked { at, machine, value, incident }),
        (at(), incident(), at()).prop_map(|(at, incident, until)| Record::Kept { at, incident, until }),
        (at(), incident(), select(verdicts), option::of(at())).prop_map(
            |(at, incident, verdict, watched_from)| Record::Closed { at, incident, verdict, watched_from }
        ),
    ];
    let intents = prop_oneof![
        intended(),
        (at(), intent(), why()).prop_map(|(at, intent, why)| Record::Dropped { at, intent, why }),
        (at(), intent(), outcome()).prop_map(|(at, intent, outcome)| Record::Ended { at, intent, outcome }),
        (at(), intent(), any::<bool>(), text()).prop_map(|(at, intent, held, text)| Record::Judged {
            at,
            intent,
            held,
            text
        }),
        (
            at(),
            domain(),
            any::<u32>(),
            option::of(at()),
            any::<u32>(),
            option::of(intent()),
            option::of(machine())
        )
            .prop_map(|(at, domain, width, not_before, failures, proved, successor)| {
                Record::Width { at, domain, width, not_before, failures, proved, successor }
            }),
        (at(), id(PoolName::new), machine(), option::of(intent()), vec(intent(), 0..4)).prop_map(
            |(at, pool, machine, after, beside)| Record::Arrived { at, pool, machine, after, beside }
        ),
        (at(), id(PoolName::new)).prop_map(|(at, pool)| Record::FaultsForgiven { at, pool }),
        (at(), id(PoolName::new), id(InstanceId::new), text())
            .prop_map(|(at, pool, instance, fault)| Record::FaultSeen { at, pool, instance, fault }),
        (at(), text(), any::<u32>(), any::<u32>()).prop_map(|(at, repair, requested, verified)| {
            Record::Counted { at, repair, requested, verified }
        }),
    ];
    // The parts are boxed, because a union holds a tree of each part: all of them in one need more than a thread's stack.
    prop_oneof![6 => of_machines().boxed(), 7 => incidents.boxed(), 12 => intents.boxed()]
}
