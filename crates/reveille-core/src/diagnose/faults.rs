//! The faults that a machine, a group or a router has now, each with its finding.
//!
//! Gathers what `network` and `absence` can tell from the views into one list of [`Fault`]s per subject. The engine
//! opens an incident for each and closes those that are in no list any more. Pure readings; nothing here proposes.

use std::sync::Arc;

use crate::model::cause::Cause;
use crate::model::evidence::{Evidence, Fact, NetworkFact, NodeFact, Source, quoted};
use crate::model::id::{GroupId, InstanceId, NodeName, PoolName, RuleId};
use crate::model::incident::{Confidence, FaultKind, Finding, Subject};
use crate::model::instance::InstanceState;
use crate::model::log_evidence::Unread;
use crate::model::log_findings::{LogFinding, LogFindings};
use crate::model::network::{NUDGE_MARK, RuleSpec, SecurityGroup};
use crate::model::node::Ready;
use crate::model::roster::{GroupRef, Pool, Roster};
use crate::model::time::{Span, Time};
use crate::observe::cloud::{CloudView, Seen};
use crate::observe::cluster::{ClusterView, NodeSeen};

use super::console::{self, NeverJoinedFacts};
use super::fault::{Fault, fault};
use super::gathered::{Gathered, console_counts};
use super::network::membership::{self, PortNeed};
use super::network::pairs::{self, PairNeed};
use super::network::rules;
use super::{hosting, route_faults};

/// A missing group or rule is seen on the object itself: one more look, then act.
const AT_ONCE: Span = Span::ZERO;

/// Route and address pair of a node that has just come are the cloud controller's to make; ours only when it does not.
const fn route_patience(roster: &Roster) -> Span {
    Span::from_ms(2 * roster.timing.verify_within.ms)
}

fn pool_of<'a>(roster: &'a Roster, seen: &Seen) -> Option<&'a Pool> {
    seen.pool().and_then(|name| roster.pools.get(name))
}

/// All faults of a machine's ports and reachability. `absence` judges whether the machine itself is absent.
pub fn of_machine(
    roster: &Roster,
    cloud: &CloudView,
    cluster: &ClusterView,
    seen: &Seen,
    now: Time,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    let runs = matches!(seen.instance.state, InstanceState::Active | InstanceState::Rebooting);
    if pool_of(roster, seen).is_none() || !runs {
        return faults;
    }
    group_missing(roster, cloud, seen, now, &mut faults);
    hosting::notices(seen, seen.nodes.iter().any(|name| cluster.answers(name)), now, &mut faults);
    let Some(node) = seen.nodes.first().and_then(|name| cluster.nodes.get(name)) else { return faults };
    if let Some(need) = pairs_needed(roster, cluster, seen) {
        let evidence =
            vec![Evidence::new(Source::Port(need.port), NetworkFact::PairsMissing(need.missing), now)];
        let patience = Some(route_patience(roster));
        faults.push(fault(FaultKind::PairMissing, Cause::AddressPairMissing, evidence, patience, true));
    }
    unreachable(roster, node, now, &mut faults);
    let router = roster.network.router.as_ref().filter(|(name, _)| *name == cloud.name);
    if let Some((_, router)) = router {
        let needed = route_faults::routes_needed(roster, cloud, cluster, router, seen);
        if !needed.is_empty() && cloud.routers.contains_key(router) {
            let fact = NetworkFact::RoutesMissing(needed);
            let evidence = vec![Evidence::new(Source::Router(router.clone()), fact, now)];
            let patience = Some(route_patience(roster));
            faults.push(fault(FaultKind::MissingRoute, Cause::MissingRoute, evidence, patience, true));
        }
    }
    faults
}

fn group_missing(roster: &Roster, cloud: &CloudView, seen: &Seen, now: Time, faults: &mut Vec<Fault>) {
    let mut lacking = Vec::new();
    let mut unsecurable = Vec::new();
    for need in port_needs(roster, cloud, seen) {
        let missing = need.missing.iter().map(|id| named(cloud, id)).collect();
        let (carried, obstacle) = (need.full_list.len() - need.missing.len(), need.verdict.obstacle());
        let fact = NetworkFact::GroupsMissing { missing, carried, obstacle };
        let whose = if obstacle.is_none() { &mut lacking } else { &mut unsecurable };
        whose.push(Evidence::new(Source::Port(need.port), fact, now));
    }
    if !lacking.is_empty() {
        lacking.extend(unsecurable);
        faults.push(fault(
            FaultKind::GroupMissing,
            Cause::SecurityGroupMissing,
            lacking,
            Some(AT_ONCE),
            false,
        ));
    } else if !unsecurable.is_empty() {
        // Nothing can be put there, so nothing is tried: it is reported, once.
        faults.push(fault(FaultKind::GroupMissing, Cause::PortUnsecurable, unsecurable, None, false));
    }
}

/// A group as people know it: by its name, where its cloud lists it.
fn named(cloud: &CloudView, id: &GroupId) -> GroupRef {
    cloud.group(id).map_or_else(|| GroupRef::Id(id.clone()), |group| GroupRef::Name(group.name.clone()))
}

fn unreachable(roster: &Roster, node: &NodeSeen, now: Time, faults: &mut Vec<Fault>) {
    let told = node
        .node
        .conditions
        .iter()
        .find(|condition| roster.network.unreachable_conditions.contains(&condition.kind));
    let Some(condition) = told else { return };
    let fact = NodeFact::Condition(Ready::True, condition.clone());
    let evidence = vec![Evidence::new(Source::Node(node.node.name.clone()), fact, now)];
    faults.push(fault(
        FaultKind::Unreachable,
        Cause::PodsUnreachable,
        evidence,
        Some(roster.timing.verify_within),
        true,
    ));
}

/// The groups that a pool's machines must carry, as far as each is exactly one group.
pub fn wanted_groups(cloud: &CloudView, pool: &Pool) -> Vec<GroupId> {
    pool.groups.iter().filter_map(|group| cloud.resolve(group).ok()).collect()
}

/// Ports of the machine that lack a group.
pub fn port_needs(roster: &Roster, cloud: &CloudView, seen: &Seen) -> Vec<PortNeed> {
    pool_of(roster, seen)
        .map(|pool| membership::membership(&seen.ports, &wanted_groups(cloud, pool)))
        .unwrap_or_default()
}

/// What the machine's port must allow and does not.
pub fn pairs_needed(roster: &Roster, cluster: &ClusterView, seen: &Seen) -> Option<PairNeed> {
    if !roster.network.address_pairs {
        return None;
    }
    let node = seen.only_node().and_then(|name| cluster.nodes.get(name))?;
    let ranges = cluster.own_pod_ranges(&node.node, &roster.network);
    pairs::missing_pairs(&seen.ports, &node.node.addresses, &ranges)
}

/// The rules that a group lacks: those that no group of any pool that uses it provides.
pub fn rules_needed(roster: &Roster, cloud: &CloudView, group: &GroupId) -> Vec<RuleSpec> {
    let mut needed: Vec<RuleSpec> = Vec::new();
    for pool in roster.pools.values().filter(|pool| pool.cloud == cloud.name) {
        let wanted = wanted_groups(cloud, pool);
        // What is missing is put into the pool's first group; a rule in any of them counts.
        if wanted.first() != Some(group) {
            continue;
        }
        let groups: Vec<&SecurityGroup> =
            wanted.iter().filter_map(|id| cloud.group(id)).map(|group| &**group).collect();
        for rule in rules::missing_rules(&groups, &roster.network.pod_ranges) {
            if !needed.contains(&rule) {
                needed.push(rule);
            }
        }
    }
    needed.sort();
    needed
}

/// A rule that an interrupted nudge left in the group.
pub fn nudge_leftover(cloud: &CloudView, group: &GroupId) -> Option<RuleId> {
    let group = cloud.group(group)?;
    group.rules.iter().find(|rule| rule.description.starts_with(NUDGE_MARK)).map(|rule| rule.id.clone())
}

/// All faults of the groups of a cloud. `own_nudges` are marks of nudges on their way.
pub fn of_groups(
    roster: &Roster,
    cloud: &CloudView,
    own_nudges: &[Arc<str>],
    now: Time,
) -> Vec<(Subject, Arc<str>, Vec<Fault>)> {
    let mut found: Vec<(Subject, Arc<str>, Vec<Fault>)> = Vec::new();
    let mut refs: Vec<(&GroupRef, &PoolName)> = Vec::new();
    for pool in roster.pools.values().filter(|pool| pool.cloud == cloud.name) {
        for group in &pool.groups {
            if !refs.iter().any(|(known, _)| *known == group) {
                refs.push((group, &pool.name));
            }
        }
    }
    for (wanted, pool) in refs {
        match cloud.resolve(wanted) {
            Ok(id) => {
                let subject = Subject::Group(cloud.name.clone(), id.clone());
                if !found.iter().any(|(known, ..)| *known == subject) {
                    let label = Arc::from(named(cloud, &id).to_string());
                    found.push((subject, label, of_group(roster, cloud, &id, own_nudges, now)));
                }
            }
            Err(count) => {
                let GroupRef::Name(name) = wanted else { continue };
                let source = Source::GroupOfPool(name.clone(), pool.clone());
                let evidence = vec![Evidence::new(source, NetworkFact::GroupsOfThatName(count), now)];
                let fault = fault(FaultKind::GroupUnresolved, Cause::GroupUnresolved, evidence, None, false);
                let subject = Subject::Group(cloud.name.clone(), GroupId::new(name.clone()));
                found.push((subject, name.clone(), vec![fault]));
            }
        }
    }
    found
}

fn of_group(
    roster: &Roster,
    cloud: &CloudView,
    id: &GroupId,
    own_nudges: &[Arc<str>],
    now: Time,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    let evidence = |fact| Evidence::new(Source::Group(named(cloud, id)), fact, now);
    let missing = rules_needed(roster, cloud, id);
    if !missing.is_empty() {
        let evidence = missing.into_iter().map(|rule| evidence(NetworkFact::RuleMissing(rule))).collect();
        faults.push(fault(FaultKind::RulesMissing, Cause::PodRulesMissing, evidence, Some(AT_ONCE), false));
    }
    let leftover = cloud.group(id).and_then(|group| {
        group
            .rules
            .iter()
            .find(|rule| rule.description.starts_with(NUDGE_MARK) && !own_nudges.contains(&rule.description))
    });
    if let Some(rule) = leftover {
        let (rule, mark) = (rule.id.clone(), quoted(&rule.description));
        let evidence = vec![evidence(NetworkFact::NudgeRule { rule, mark })];
        faults.push(fault(
            FaultKind::NudgeLeftover,
            Cause::PodsUnreachable,
            evidence,
            Some(Span::from_min(1)),
            false,
        ));
    }
    faults
}

/// A node that names an instance which its cloud denies, and which this ledger never knew: reported only, because
/// nothing proves that it was ever ours.
pub fn ghost_without_memory(node: &NodeName, instance: &InstanceId, denials: u8, now: Time) -> Fault {
    let fact = NodeFact::NamesDenied(instance.clone(), denials);
    let evidence = vec![Evidence::new(Source::Node(node.clone()), fact, now)];
    fault(FaultKind::Ghost, Cause::InstanceGone, evidence, None, true)
}

/// Findings that rest on what was read on purpose (console, action log) take the place of the first guess.
pub fn enrich(
    fault: &mut Fault,
    gathered: &Gathered,
    roster: &Roster,
    cloud: &CloudView,
    seen: &Seen,
    now: Time,
) {
    let read_at = gathered.asked_at.unwrap_or(now);
    if let Some(action) = &gathered.last_action {
        let fact = Fact::Quoted(quoted(action));
        fault.finding.evidence.push(Evidence::new(Source::ActionLog, fact, read_at));
    }
    if let Some(words) = &gathered.last_words {
        fault.finding.evidence.push(Evidence::new(Source::Console, Fact::Quoted(quoted(words)), read_at));
    }
    if !gathered.is_complete() {
        return;
    }
    let log_findings =
        gathered.log_findings.as_ref().map(|read| read.as_ref().map(|it| &**it).map_err(Arc::clone));
    let read = log_findings.as_ref().and_then(|read| read.as_ref().ok()).copied();
    if !console_counts(fault.kind, seen) {
        if let Some(log_findings) = read {
            explain_one_that_joined(fault, log_findings, read_at);
        }
        return;
    }
    let needs = port_needs(roster, cloud, seen);
    let facts = NeverJoinedFacts {
        log_findings,
        ports: &seen.ports,
        group_needs: &needs,
        instance: &seen.instance,
        read_at,
    };
    let mut findings = console::explain_never_joined(&facts);
    if fault.kind == FaultKind::Vanished {
        // It may have joined after all: then a first boot alone tells of it.
        findings.retain(|it| it.cause.is_of_the_first_boot() && it.confidence >= Confidence::Likely);
    }
    if !findings.is_empty() {
        let mut first = findings.remove(0);
        first.evidence.append(&mut fault.finding.evidence);
        fault.finding = first;
        fault.more = findings;
    }
    if let Some(log_findings) = read {
        note_unread(fault, log_findings, read_at);
    }
}

/// For a machine that has joined, what the cluster says counts, and what its console says does not. What the cluster's
/// words prove says more than that the Node is not Ready. The exception is a fault that the engine found earlier on the
/// machine's way: a Node that no cloud controller initialised has no pod network either. Objects show how far the machine
/// came. They also show why its Node went: in that case the words stand behind.
fn explain_one_that_joined(fault: &mut Fault, log_findings: &LogFindings, read_at: Time) {
    // What the engine tells by itself rests on more than words, and a first boot is long over.
    let counts = |told: &&LogFinding| {
        told.confidence >= Confidence::Likely
            && told.is_of_the_cluster()
            && !told.cause.is_of_the_first_boot()
            && Cause::from_code(told.cause.code()).is_none()
    };
    let told = log_findings.told.iter().filter(counts).map(|told| told.finding(read_at));
    fault.more = told.collect();
    let own = &fault.finding;
    let says_more = |first: &Finding| first.stage <= own.stage || own.stage == own.cause.stage();
    if fault.kind == FaultKind::NotReady && fault.more.first().is_some_and(says_more) {
        let mut first = fault.more.remove(0);
        first.evidence.append(&mut fault.finding.evidence);
        fault.finding = Finding { stage: fault.finding.stage, ..first };
    }
    note_unread(fault, log_findings, read_at);
}

/// What could have told more and was not to be read, where nothing sure was found without it.
fn note_unread(fault: &mut Fault, log_findings: &LogFindings, read_at: Time) {
    if fault.finding.confidence == Confidence::Sure {
        return;
    }
    let notes = log_findings
        .unread
        .iter()
        .map(|Unread { source, why }| Evidence::new(source.clone(), Fact::Unread(quoted(why)), read_at));
    fault.finding.evidence.extend(notes);
}
