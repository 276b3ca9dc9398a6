//! The one place that every act passes before it may happen: it collects all reasons that block the act.
//!
//! Given the context, the incident and the call, the answer is the list of [`Blocker`]s; only an empty list permits the call. The
//! engine asks twice for each intent: when it decides, and again when the ledger holds the intent, because the world
//! changes while the disk writes. The list has all reasons, not only the first, so that an operator sees everything that
//! blocks the act.

mod agents;
mod correlated;
mod released;

use std::sync::Arc;

use crate::diagnose::hosting;
use crate::event::PauseScope;
use crate::model::blocker::Blocker;
use crate::model::call::{Call, NudgeGroup};
use crate::model::class::Class;
use crate::model::hosting::GroupPhase;
use crate::model::id::{CloudName, GroupId, NodeName, PoolName};
use crate::model::incident::{FaultKind, MachineKey, Subject};
use crate::model::instance::InstanceState;
use crate::model::node::Ready;
use crate::model::repair_step::RepairStep;
use crate::model::roster::{GroupRef, Mode, Pool};
use crate::model::signs;
use crate::model::time::Span;
use crate::observe::cloud::{CloudView, Seen};
use crate::observe::cluster::{LinkedBy, NodeSeen};
use crate::observe::source::Trust;
use crate::record::Domain;
use crate::safeguard::{Safeguard, stands};

use super::annotations;
use super::budget::UsedUp;
use super::context::{Case, PlanContext};

pub(crate) use agents::{agents_lost, settling};
pub use agents::{agents_outage, leases_say_otherwise};
use correlated::{correlated, fates};
pub use correlated::{dark_fleet, dark_zone, most_are_away};
use released::just_released;
pub use released::reboot_never_ends;

/// No list of Nodes is so old as this. A client with the right to write leases kept a machine that never joined from every
/// repair, by a lease of a longer name that belonged to no Node.
const UNLISTED_LASTS: Span = Span::from_min(6 * 60);

/// The list of leases that tells which are silent may be late by this.
const LEASES_AGAIN: Span = Span::from_s(5);

/// What blocks one repair besides what blocks every repair of its class.
pub type OwnBlockers = fn(&PlanContext<'_>, &Case, Option<&Call>, &mut Vec<Blocker>);

/// Everything that stands against this act now, with what its repair adds (`own`). Empty: it may happen.
pub fn blockers(
    context: &PlanContext<'_>,
    case: &Case,
    repair_step: RepairStep,
    call: Option<&Call>,
    own: OwnBlockers,
) -> Vec<Blocker> {
    let mut blockers = Vec::new();
    let class = repair_step.class();
    let pools = pools_of(context, case, call);
    mode(context, case, class, &mut blockers);
    paused(context, case, &pools, &mut blockers);
    shared(context, case, class, &pools, &mut blockers);
    sight(context, case, class, &mut blockers);
    if class.is_destructive() {
        if let Some((cloud, seen)) = context.seen_of(&case.incident.key.subject) {
            machine(context, case, seen, repair_step, &mut blockers);
            correlated(context, seen, repair_step, &mut blockers);
            own(context, case, call, &mut blockers);
            budget(context, case, cloud, seen, repair_step, &mut blockers);
        } else {
            blockers.push(Blocker::NotOwned);
        }
    } else if matches!(class, Class::Network | Class::Access) {
        network(context, case, repair_step, &mut blockers);
        own(context, case, call, &mut blockers);
    } else {
        own(context, case, call, &mut blockers);
    }
    // Looked for only where nothing else stands against it: this asks every machine.
    if class.is_destructive() && repair_step != RepairStep::Cleanup && blockers.is_empty() {
        fates(context, case, &mut blockers);
    }
    blockers.retain(|blocker| blocker.safeguard().is_none_or(stands));
    blockers
}

fn mode(context: &PlanContext<'_>, case: &Case, class: Class, blockers: &mut Vec<Blocker>) {
    match mode_of(context, case, class) {
        Mode::Off => blockers.push(Blocker::Off(class)),
        Mode::Propose => blockers.push(Blocker::Propose(class)),
        Mode::Act => {}
    }
    if !context.acting {
        blockers.push(Blocker::DryRun);
    }
    if let Some(why) = context.ledger_error {
        blockers.push(Blocker::Ledger(why.clone()));
    }
    if !context.leading {
        blockers.push(Blocker::NotLeading);
    }
}

/// What the roster allows for the case: its pool's mode, or for what pools share the most careful of them.
pub fn mode_of(context: &PlanContext<'_>, case: &Case, class: Class) -> Mode {
    let mode = |pool: &Pool| class.mode(&pool.repair, context.roster.access.repair);
    if let Some(pool) = context.pool_of(case).and_then(|name| context.roster.pools.get(name)) {
        return mode(pool);
    }
    context.roster.pools.values().map(mode).min().unwrap_or(Mode::Off)
}

/// The pools whose machines a repair may change: that of the machine, or all that use the group or the router. A nudge is for one
/// machine, and changes what many share.
fn pools_of<'a>(context: &PlanContext<'a>, case: &'a Case, call: Option<&Call>) -> Vec<&'a PoolName> {
    let all = || context.roster.pools.iter();
    let using = |cloud: &CloudName, group: &GroupId| {
        let view = context.clouds.get(cloud);
        let is_it = |named: &GroupRef| view.is_some_and(|view| view.resolve(named).as_ref() == Ok(group));
        let uses = |pool: &Pool| pool.cloud == *cloud && pool.groups.iter().any(is_it);
        all().filter(|(_, pool)| uses(pool)).map(|(name, _)| name).collect()
    };
    match (call, &case.incident.key.subject) {
        (Some(Call::NudgeGroup(NudgeGroup { cloud, group, .. })), _) | (_, Subject::Group(cloud, group)) => {
            using(cloud, group)
        }
        (Some(Call::NudgeRouter(_)), _) | (_, Subject::Router(..)) => all().map(|(name, _)| name).collect(),
        _ => context.pool_of(case).into_iter().collect(),
    }
}

fn paused(context: &PlanContext<'_>, case: &Case, pools: &[&PoolName], blockers: &mut Vec<Blocker>) {
    let seen = context.seen_of(&case.incident.key.subject).map(|(_, seen)| seen);
    let is_called = |name: &str| is_named(case, seen, name);
    let covers = |scope: &PauseScope| {
        let of_pool = pools.iter().any(|pool| scope.covers(Some(pool), is_called));
        of_pool || pools.is_empty() && scope.covers(None, is_called)
    };
    for pause in context.pauses.iter().filter(|pause| covers(&pause.scope)) {
        let scope = match &pause.scope {
            PauseScope::Roster | PauseScope::OtherController => format!("roster {}", context.roster.name),
            PauseScope::Pool(name) => format!("pool {name}"),
            PauseScope::Machine(name) => format!("machine {name}"),
        };
        let by = format!("by {}: {}", pause.by, pause.reason);
        blockers.push(Blocker::Paused { scope: scope.into(), by: by.into() });
    }
    let paused = pools.iter().filter_map(|name| context.roster.pools.get(*name)).find(|pool| pool.paused);
    if let Some(pool) = paused {
        blockers.push(Blocker::Paused {
            scope: format!("pool {}", pool.name).into(),
            by: "in the roster".into(),
        });
    }
    // Also one that names another machine, and that this one's kubelet took over.
    let nodes = seen.into_iter().flat_map(|seen| {
        let own = |name: &&NodeName| !context.cluster.is_anothers(name, &seen.instance.id);
        seen.nodes.iter().chain(seen.joined.iter().filter(own))
    });
    let mut paused =
        nodes.filter(|name| context.cluster.nodes.get(*name).is_some_and(|it| it.node.intent.paused));
    if let Some(name) = paused.next() {
        let by = "by the annotation reveille.dev/pause".into();
        blockers.push(Blocker::Paused { scope: format!("node {name}").into(), by });
    } else if let Some(name) = seen.and_then(|seen| paused_before(context, seen)) {
        let by = "by the annotation reveille.dev/pause, as it was last seen".into();
        blockers.push(Blocker::Paused { scope: format!("node {name}").into(), by });
    }
}

/// No list has shown its Node yet, or its name is another machine's by now, and the ledger says that a person paused it there.
/// Its cloud is listed first at a start, or the API server is away: a person who cuts a machine off changes the groups of its
/// port, and they were put back.
fn paused_before<'a>(context: &PlanContext<'_>, seen: &'a Seen) -> Option<&'a NodeName> {
    let name = seen.joined.as_ref().filter(|_| seen.signs.paused)?;
    let is_its = |node: &NodeSeen| node.link.as_ref().is_none_or(|link| link.instance == seen.instance.id);
    (!context.cluster.nodes.get(name).is_some_and(is_its)).then_some(name)
}

/// What other pools use as well is changed for a machine only where their own rules would let it be changed.
fn shared(
    context: &PlanContext<'_>,
    case: &Case,
    class: Class,
    pools: &[&PoolName],
    blockers: &mut Vec<Blocker>,
) {
    let Some(own) = context.pool_of(case) else { return };
    let others = pools.iter().filter(|name| **name != own).filter_map(|name| context.roster.pools.get(*name));
    for pool in others {
        let set = match class.mode(&pool.repair, context.roster.access.repair) {
            Mode::Act => continue,
            Mode::Propose => "propose",
            Mode::Off => "off",
        };
        let by = format!("for this: {}: {set}, in the roster", class.name());
        blockers.push(Blocker::Paused { scope: format!("pool {}", pool.name).into(), by: by.into() });
    }
}

fn is_named(case: &Case, seen: Option<&Seen>, name: &str) -> bool {
    if let Subject::Machine(MachineKey::Node(node)) = &case.incident.key.subject {
        return node.as_str() == name;
    }
    seen.is_some_and(|seen| is_called(seen, name))
}

/// Whether a person may mean this machine by the name.
pub fn is_called(seen: &Seen, name: &str) -> bool {
    seen.names().any(|known| known == name)
}

/// Sources that this rests on must be believed, and believed for a while.
fn sight(context: &PlanContext<'_>, case: &Case, class: Class, blockers: &mut Vec<Blocker>) {
    let cloud = match &case.incident.key.subject {
        Subject::Machine(MachineKey::Instance(cloud, _))
        | Subject::Group(cloud, _)
        | Subject::Router(cloud, _)
        | Subject::User(cloud, _) => context.clouds.get(cloud),
        _ => None,
    };
    let cloud = cloud.map(|cloud| (Arc::<str>::from(cloud.name.as_str()), cloud.source.trust(context.now)));
    let missing = context.seen_of(&case.incident.key.subject).filter(|(_, seen)| seen.unlisted.is_some());
    // A young one that its cloud does not know yet is asked to come back all the same: nothing is lost by that.
    let rejoins =
        |(cloud, seen): &(&CloudView, &Seen)| class == Class::Rejoin && cloud.is_young(context.now, seen);
    if let Some((cloud, _)) = missing.filter(|it| class != Class::Cleanup && !rejoins(it)) {
        let (source, why) =
            (Arc::from(cloud.name.as_str()), Arc::from("this machine is missing from its newest list"));
        blockers.push(Blocker::Blind { source, why });
    }
    let rests_on_cluster = class.is_destructive() || case.rests_on_cluster;
    let cluster = rests_on_cluster.then(|| (Arc::from("cluster"), context.cluster.source.trust(context.now)));
    for (source, trust) in [cloud, cluster].into_iter().flatten() {
        match trust {
            Trust::No(why) => blockers.push(Blocker::Blind { source, why }),
            Trust::Since(since) if class.is_destructive() => {
                let settled = since + context.roster.timing.settle;
                if context.now < settled {
                    blockers.push(Blocker::Settling(settled.since(context.now)));
                }
            }
            Trust::Since(_) => {}
        }
    }
    // After a restart an empty list of leases was believed, and a machine whose kubelet lived was rebooted; one that had just
    // joined was in the lists alone that were not believed (seed 5809872).
    let is_blind = || context.cluster.is_blind_to_leases(context.now);
    if class.is_destructive() && is_blind() && stands(Safeguard::BelievedLeases) {
        let why = Arc::from("its list lacks the leases of too many Nodes");
        blockers.push(Blocker::Blind { source: Arc::from("leases"), why });
    }
    // Lists without leases came for a quarter of an hour, in which every kubelet fell silent: in the second of the first whole
    // one all counted as just renewed, and a machine was rebooted (seed 7922885).
    let resume_for = context.cluster.leases_resume_for(context.roster.timing.lease_silent_after);
    if let Some(left) = resume_for.filter(|_| class.is_destructive()) {
        blockers.push(Blocker::Settling(left.max(LEASES_AGAIN)));
    }
    if class.is_destructive() && context.cluster.synced_once() && !context.cluster.has_node() {
        blockers.push(Blocker::NoNode);
    }
}

/// The Node that it joined as is there and is linked to it no more, while another one is: a cloud described the machine without
/// the address that linked them (seed 7971309), or its kubelet shows another machine's UUID, as a successor of its name does
/// (seed 8330502). Those are two Nodes of one machine, unless a provider ID says whose the first one is now.
fn has_lost_link(context: &PlanContext<'_>, seen: &Seen) -> bool {
    let Some(joined) = seen.joined.as_ref().filter(|name| !seen.nodes.contains(name)) else { return false };
    let names_another =
        |node: &NodeSeen| node.link.as_ref().is_some_and(|link| link.by == LinkedBy::ProviderId);
    !seen.nodes.is_empty() && context.cluster.nodes.get(joined).is_some_and(|node| !names_another(node))
}

/// What the machine itself says against it.
fn machine(
    context: &PlanContext<'_>,
    case: &Case,
    seen: &Seen,
    repair_step: RepairStep,
    blockers: &mut Vec<Blocker>,
) {
    if seen.pool().is_none() {
        blockers.push(Blocker::NotOwned);
    }
    // All that a machine left behind goes one after another.
    if (seen.nodes.len() > 1 || has_lost_link(context, seen)) && repair_step != RepairStep::Cleanup
        || case.incident.key.kind == FaultKind::Duplicate
    {
        blockers.push(Blocker::Contested);
    }
    let own = |name: &&NodeName| !context.cluster.is_anothers(name, &seen.instance.id);
    // The one that it joined as as well, where nothing leads from that to it: a cloud lists it without its addresses.
    let mut its = seen.nodes.iter().chain(seen.joined.iter().filter(own));
    if its.any(|name| context.cluster.answers(name)) {
        blockers.push(Blocker::Ready);
    }
    if repair_step != RepairStep::Cleanup {
        shared_identity(context, case, seen, blockers);
    }
    if let Subject::Machine(key) = &case.incident.key.subject {
        if let Some((_, agent)) = context.agents.fresh(context.now, key) {
            blockers.push(Blocker::AgentHeard(context.agents.silence(context.now, agent)));
        }
        // It may have one that has not come back to us yet.
        let awaited =
            context.agents.awaited(context.now, key).filter(|_| repair_step.class().is_destructive());
        blockers.extend(awaited.map(Blocker::AgentAwaited));
        // On the account of such a word alone nothing is deleted, however long ago it was said.
        if let Some(blocker) = context.agents.is_leaving(key).filter(|_| repair_step != RepairStep::Cleanup) {
            blockers.push(Blocker::AgentLeaves(blocker.text.clone()));
        }
    }
    for name in seen.nodes.iter().chain(seen.joined.iter().filter(own)) {
        if let Some(age) = context.cluster.lease_age(name)
            && age <= context.roster.timing.lease_silent_after
        {
            blockers.push(Blocker::LeaseFresh { age, listed: context.cluster.leases_listed(context.now) });
            break;
        }
    }
    blockers.extend(lease_without_node(context, case, seen));
    // A lock of an instance that is gone protects nothing any more.
    if seen.instance.locked && !seen.is_gone() {
        blockers.push(Blocker::Locked);
    }
    if repair_step != RepairStep::Cleanup {
        taken_out(seen, repair_step, blockers);
    }
    worked_on(context, case, seen, repair_step, blockers);
    let awaits = seen.awaits_word_until.map(|until| until.since(context.now));
    blockers.extend(awaits.filter(|left| *left > Span::ZERO).map(Blocker::Settling));
    let lost = &context.cluster.lost_together;
    if matches!(&case.incident.key.subject, Subject::Machine(machine) if lost.contains(machine)) {
        blockers.push(Blocker::LostTogether { machines: lost_beside(context, seen) });
    }
    // The client that marked a left-over Node took its machine away, and may never come back for the Node.
    // Who says that a machine is out of service is a person, and does.
    let holds = |sign: &str| repair_step != RepairStep::Cleanup || sign == signs::OUT_OF_SERVICE;
    leaving(context, seen, holds, blockers);
    if matches!(repair_step.class(), Class::Reboot | Class::Replace)
        && let Some((cloud, _)) = context.seen_of(&case.incident.key.subject)
    {
        blockers.extend(just_released(context, case, cloud, seen));
        blockers.extend(annotations::looked_at_for(context, case, seen, repair_step).map(Blocker::Kept));
    }
}

/// Of how many Nodes a person has to know with this machine's: of one that is not known to have had a Node, of none besides.
fn lost_beside(context: &PlanContext<'_>, seen: &Seen) -> usize {
    if seen.joined.is_some() { context.cluster.lost_together.nodes() } else { 1 }
}

/// Where the lists of Nodes are old, the lease of a Node that no list shows is the only sign of its kubelet. It holds the machine
/// until the cluster was seen for [`UNLISTED_LASTS`] without a gap, and the machine had no Node in all that time.
fn lease_without_node(context: &PlanContext<'_>, case: &Case, seen: &Seen) -> Option<Blocker> {
    let since = match context.cluster.source.trust(context.now) {
        Trust::Since(since) => since.max(case.incident.first_seen),
        Trust::No(_) => context.now,
    };
    let lacked = context.now.since(since);
    if !seen.nodes.is_empty() || seen.joined.is_some() || lacked >= UNLISTED_LASTS {
        return None;
    }
    let age = context.cluster.unlisted_lease_age(seen.instance.node_names())?;
    let listed = context.cluster.leases_listed(context.now);
    (age <= context.roster.timing.lease_silent_after).then_some(Blocker::LeaseFresh { age, listed })
}

/// Others are at work on it, as far as its cloud tells.
pub(crate) fn worked_on(
    context: &PlanContext<'_>,
    case: &Case,
    seen: &Seen,
    repair_step: RepairStep,
    blockers: &mut Vec<Blocker>,
) {
    // The task of a building instance is the build that hangs, and the last task of an instance that is gone is no work of
    // any client.
    let unended = reboot_never_ends(context, case, seen);
    let working = !seen.is_gone() && seen.instance.state != InstanceState::Building && !unended;
    if let Some(task) = seen.instance.task.as_ref().filter(|_| working) {
        let text = format!("the cloud says task {task} since {}", seen.task_since);
        blockers.push(Blocker::OtherActor(text.into()));
    }
    // A machine that a client rescues, resizes or starts has no task while it stays in that state.
    if let Some(what) =
        being_handled(seen.instance.state).filter(|_| repair_step != RepairStep::Cleanup && !unended)
    {
        let text = format!("{what}, since {}", seen.state_since);
        blockers.push(Blocker::OtherActor(text.into()));
    }
}

/// States that neither a fault nor a remedy of ours leaves a machine in: an operator or the cloud itself is at work.
const fn being_handled(state: InstanceState) -> Option<&'static str> {
    match state {
        InstanceState::Rebooting => Some("the cloud reboots or starts it"),
        InstanceState::Other => {
            Some("it is in a state that an operator or the cloud has to end (rescue, resize)")
        }
        _ => None,
    }
}

/// A Node that is not linked to the machine carries an identity of it, so the machine may serve under that Node.
pub(crate) fn shared_identity(
    context: &PlanContext<'_>,
    case: &Case,
    seen: &Seen,
    blockers: &mut Vec<Blocker>,
) {
    let Some((cloud, _)) = PlanContext::instance_of(&case.incident.key.subject) else { return };
    if case.contested_since.is_some() {
        blockers.push(Blocker::SharedIdentity("a Node shows the identity of two machines".into()));
        return;
    }
    let silent_after = context.roster.timing.lease_silent_after;
    let lives = |name: &NodeName| context.cluster.lives(name, silent_after);
    if let Some(sharer) = context.views().contesting(cloud, seen, lives) {
        let is = if sharer.seen.node.ready == Ready::True { "is Ready with" } else { "has" };
        let text = format!("Node {} {is} {}", sharer.name, sharer.by);
        blockers.push(Blocker::SharedIdentity(text.into()));
    }
}

/// Its Node carries the sign of a program that takes it away.
pub(crate) fn leaving(
    context: &PlanContext<'_>,
    seen: &Seen,
    holds: impl Fn(&str) -> bool,
    blockers: &mut Vec<Blocker>,
) {
    let nodes = seen.nodes.iter().filter_map(|name| context.cluster.nodes.get(name));
    let signs = nodes.filter_map(|node| node.node.intent.leaving.clone());
    blockers.extend(signs.filter(|sign| holds(sign)).map(Blocker::OtherActor));
}

/// It was taken out on purpose, or is in the hands of its provider: who did that may use it for something else, with other
/// security groups. Ends when it has a Node again, and when its provider lets go of it.
fn taken_out(seen: &Seen, repair_step: RepairStep, blockers: &mut Vec<Blocker>) {
    if let Some(left) = &seen.left {
        blockers.push(Blocker::OtherActor(format!("its Node was removed on purpose ({})", left.sign).into()));
    }
    provider(seen, repair_step, blockers);
}

/// The provider and the groups that it keeps machines in are actors of their own.
fn provider(seen: &Seen, repair_step: RepairStep, blockers: &mut Vec<Blocker>) {
    if hosting::is_interrupted(seen) && stands(Safeguard::TakenBack) {
        blockers.push(Blocker::OtherActor(Arc::from("the provider takes the machine back")));
    }
    let Some(group) = hosting::group(seen) else {
        if let Some(group) = seen.detached_from().filter(|_| stands(Safeguard::TakenOut)) {
            blockers.push(Blocker::OtherActor(format!("it was taken out of group {group}").into()));
        }
        return;
    };
    match group.phase {
        // What it keeps may be repaired, and is ended through it alone.
        GroupPhase::Kept | GroupPhase::Unknown => {}
        // It comes into service once it has joined.
        GroupPhase::Coming if matches!(repair_step.class(), Class::Network | Class::Rejoin) => {}
        GroupPhase::Coming | GroupPhase::Leaving | GroupPhase::Apart | GroupPhase::Reserve => {
            if stands(Safeguard::GroupHands) {
                blockers.push(Blocker::OtherActor(format!("group {}: {}", group.name, group.word).into()));
            }
        }
    }
}

/// A successor needs a route of its own, and its predecessor's may linger. Where the roster's router is full: how many routes
/// it has, and how many it may hold.
pub fn router_room(context: &PlanContext<'_>) -> Option<(u32, u32)> {
    let (cloud, router) = context.roster.network.router.as_ref()?;
    let limit = context.route_limit(router)?;
    let used =
        context.clouds.get(cloud).and_then(|c| c.routers.get(router)).map_or(0, |r| r.routes.len() as u32);
    (used >= limit).then_some((used, limit))
}

/// Level, rate and width.
fn budget(
    context: &PlanContext<'_>,
    case: &Case,
    cloud: &CloudView,
    seen: &Seen,
    repair_step: RepairStep,
    blockers: &mut Vec<Blocker>,
) {
    let limits = context.roster.limits;
    let used = context.book.places_taken(context.now);
    if used >= limits.at_once {
        blockers.push(Blocker::AtOnce { used, limit: limits.at_once });
    }
    if let Some(UsedUp { used, limit, free_at }) = context.book.used_up(context.now, &limits, repair_step) {
        let free_in = free_at.map_or(Span::ZERO, |at| at.since(context.now));
        blockers.push(Blocker::PerHour { used, limit, free_in });
    }
    if let Some(domain) = domain(context, case, seen) {
        let width = context.book.width(&domain, context.now);
        let under_way = context.book.places_taken_in(&domain, context.now);
        if under_way >= width.width {
            blockers.push(Blocker::Width { used: under_way, width: width.width });
        }
        if let Some(left) = width.not_before.filter(|at| context.now < *at).map(|at| at.since(context.now)) {
            blockers.push(Blocker::CoolingDown(left));
        }
    }
    debug_assert!(cloud.instances.contains_key(&seen.instance.id), "the machine is in its cloud's view");
}

/// Where the act earns or loses trust.
pub fn domain(context: &PlanContext<'_>, case: &Case, seen: &Seen) -> Option<Domain> {
    let pool = seen.pool()?.clone();
    Some(Domain { pool, zone: context.zone(seen), kind: case.incident.key.kind })
}

/// What stands against a step that interrupts nothing: others who have the machine in hand, and how many run at once.
pub(crate) fn network(
    context: &PlanContext<'_>,
    case: &Case,
    repair_step: RepairStep,
    blockers: &mut Vec<Blocker>,
) {
    if let Some((_, seen)) = context.seen_of(&case.incident.key.subject) {
        if seen.pool().is_none() {
            blockers.push(Blocker::NotOwned);
        }
        taken_out(seen, repair_step, blockers);
        // A person may have drained it, and have put other groups on its port. Until it has a Node again the two are not told
        // apart. What only adds goes on: nothing of theirs is lost by it.
        let lost = &context.cluster.lost_together;
        let is_lost =
            matches!(&case.incident.key.subject, Subject::Machine(machine) if lost.contains(machine));
        if is_lost && repair_step == RepairStep::SetGroups {
            blockers.push(Blocker::LostTogether { machines: lost_beside(context, seen) });
        }
    }
    let (used, limit) = (context.book.network_under_way(), context.roster.limits.network_at_once);
    if used >= limit {
        blockers.push(Blocker::AtOnce { used, limit });
    }
}
