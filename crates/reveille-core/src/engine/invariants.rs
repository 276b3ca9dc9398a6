//! The safety invariants of DESIGN §4 as assertions over one step: the state before, the effects, the state after.
//!
//! The simulator and the tests call [`check`] after every step, and [`check_waits`] beside it, the tests [`check_kept`] as
//! well; production calls [`check_touched`] after every step and [`check_state`] now and then. What they return names the
//! invariant and what broke it.
//! Some invariants speak of one step and are checked here whole (1, 2, 5, 6, 8, 9, 10, 11, 12); those that speak of
//! history (3, 4, 7) are checked for their trace in the state: episodes have starts of their own, timers are never older
//! than sight, and no intent is repeated while one is under way.
//!
//! It judges from the views directly, not by asking the interlocks again: a check that called the guard it checks would
//! pass with the guard broken.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::effect::{Call, Effect};
use crate::model::access::{RoleRef, ServiceUser, UserRoles};
use crate::model::hosting::{GroupPhase, NoticeKind};
use crate::model::id::{CloudName, InstanceId, IntentId, NodeName, RouterId};
use crate::model::incident::{FaultKind, IncidentKey, MachineKey, Subject};
use crate::model::network::Route;
use crate::model::roster::{Mode, Pool};
use crate::observe::agents::AgentSeen;
use crate::observe::cloud::Seen;
use crate::observe::cluster::LinkedBy;
use crate::plan::decide::{Next, decide};
use crate::plan::desk::Case;
use crate::record::Record;
use crate::remedies::{
    AddPortPairs, AddRoutes, AskAgent, AssignRoles, DeleteInstance, DeleteNode, Reboot, RemoveRoutes,
    SetPortGroups, StartInstance,
};

use super::waits::WaitFor;
use super::{State, Wake};

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Its number in DESIGN §4.
    pub invariant: u8,
    /// What broke it.
    pub what: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "invariant {}: {}", self.invariant, self.what)
    }
}

/// What has been seen over a run: intents recorded and calls made, each once.
#[derive(Clone, Debug, Default)]
pub struct Witnessed {
    recorded: BTreeMap<IntentId, Call>,
    durable: BTreeSet<IntentId>,
    called: BTreeSet<IntentId>,
    asked: BTreeMap<crate::model::id::RecordId, IntentId>,
}

impl Witnessed {
    /// The ledger acknowledged a record.
    pub fn acknowledge(&mut self, record: crate::model::id::RecordId) {
        if let Some(intent) = self.asked.get(&record) {
            self.durable.insert(*intent);
        }
    }

    /// A process died: what was not acknowledged does not exist.
    pub fn crash(&mut self) {
        self.asked.clear();
        // A number that never reached the ledger is free again.
        let durable = &self.durable;
        self.recorded.retain(|intent, _| durable.contains(intent));
    }
}

/// Checks one step's effects against the state after it, and the whole state.
pub fn check(state: &State, effects: &[Effect], witnessed: &mut Witnessed) -> Result<(), Violation> {
    check_effects(state, effects, witnessed)?;
    check_state(state)
}

/// The same, but of the state only what the step judged or decided: a step among 50,000 open cases costs what it touches and
/// not 1.3 ms. What this leaves out, [`check_state`] finds on a slow beat.
pub fn check_touched(state: &State, effects: &[Effect], witnessed: &mut Witnessed) -> Result<(), Violation> {
    check_effects(state, effects, witnessed)?;
    for key in &state.touched {
        if let Some(case) = state.cases.get(key) {
            check_case(state, key, case)?;
        }
    }
    check_flights(state)
}

fn check_effects(state: &State, effects: &[Effect], witnessed: &mut Witnessed) -> Result<(), Violation> {
    for effect in effects {
        match effect {
            Effect::Record { id, record: Record::Intended { intent, call, fence, .. } } => {
                ensure(*fence == state.start.fence, 9, || format!("{intent} carries {fence}"))?;
                ensure(!witnessed.recorded.contains_key(intent), 6, || {
                    format!("{intent} was recorded twice")
                })?;
                witnessed.recorded.insert(*intent, call.clone());
                witnessed.asked.insert(*id, *intent);
            }
            // One that was refused, and is written again, was opened earlier (seed 3202337).
            Effect::Record { record: Record::Opened { at, key, .. }, .. } if *at == state.now => {
                check_opened(state, key)?;
            }
            Effect::Call { intent, fence, call } => {
                ensure(*fence == state.start.fence, 9, || format!("{intent} is called with {fence}"))?;
                ensure(witnessed.durable.contains(intent), 6, || {
                    format!("{intent} is called before the ledger has it")
                })?;
                ensure(witnessed.called.insert(*intent), 6, || format!("{intent} is called twice"))?;
                ensure(witnessed.recorded.get(intent) == Some(call), 6, || {
                    format!("{intent} is not what was recorded")
                })?;
                ensure(state.start.acting, 12, || format!("{call}: a dry run acts"))?;
                ensure(state.leading, 9, || format!("{call}: another process leads"))?;
                check_call(state, call)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// An empty list of nodes beside machines that ran before us says of none that it never joined: a wrong endpoint looks like
/// that.
fn check_opened(state: &State, key: &IncidentKey) -> Result<(), Violation> {
    if key.kind != FaultKind::NeverJoined || !state.cluster.listed_none() {
        return Ok(());
    }
    let Subject::Machine(MachineKey::Instance(cloud, id)) = &key.subject else { return Ok(()) };
    let seen = state.clouds.get(cloud).and_then(|view| view.instances.get(id));
    let is_older = seen.is_some_and(|seen| seen.joined.is_some() || !seen.born_in_sight);
    ensure(!is_older, 2, || {
        let joined = seen.and_then(|seen| seen.joined.as_ref()).map_or("nothing", NodeName::as_str);
        format!("{id}, which joined as {joined}, is called {} beside an empty list of nodes", key.kind.name())
    })
}

fn ensure(holds: bool, invariant: u8, what: impl FnOnce() -> String) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation { invariant, what: what() }) }
}

fn check_call(state: &State, call: &Call) -> Result<(), Violation> {
    check_owned(state, call)?;
    match call {
        Call::SetPortGroups(SetPortGroups { groups, port, cloud, instance, .. }) => {
            check_left_alone(state, call, cloud, instance)?;
            return ensure(!groups.is_empty(), 10, || format!("port {port} would lose all its groups"));
        }
        Call::RemoveRoutes(RemoveRoutes { cloud, routes, router, .. }) => {
            return check_removal(state, cloud, router, routes);
        }
        Call::AddRoutes(AddRoutes { routes, .. }) => {
            return check_addition(state, call, routes.iter().map(|route| route.destination));
        }
        Call::AddPortPairs(AddPortPairs { pairs, cloud, instance, .. }) => {
            check_left_alone(state, call, cloud, instance)?;
            return check_addition(state, call, pairs.iter().copied());
        }
        Call::AssignRoles(_) => return check_access(state, call),
        Call::AskAgent(_) => return check_ask(state, call),
        Call::Start(StartInstance { cloud, instance, .. }) => {
            let seen = state.clouds.get(cloud).and_then(|view| view.instances.get(instance));
            let Some(seen) = seen else { return Ok(()) };
            check_identity(state, call, seen)?;
            ensure(seen.left.is_none(), 3, || format!("{call}: its node was removed on purpose"))?;
            return check_group(state, call, seen);
        }
        _ if !call.is_destructive() => return Ok(()),
        _ => {}
    }
    let seen = match call {
        Call::Reboot(Reboot { cloud, instance, .. })
        | Call::DeleteInstance(DeleteInstance { cloud, instance, .. }) => {
            state.clouds.get(cloud).and_then(|view| view.instances.get(instance))
        }
        Call::DeleteNode(DeleteNode { name, .. }) => state
            .cluster
            .nodes
            .get(name)
            .and_then(|node| node.link.as_ref())
            .and_then(|link| state.clouds.get(&link.cloud)?.instances.get(&link.instance)),
        _ => None,
    };
    let Some(seen) = seen else { return ensure(false, 5, || format!("{call}: nobody knows that machine")) };
    check_destructive(state, call, seen)
}

/// What comes leads to pods of the roster: a route or an address pair of another network would give a machine the packets of
/// others.
fn check_addition(
    state: &State,
    call: &Call,
    mut nets: impl Iterator<Item = ipnet::IpNet>,
) -> Result<(), Violation> {
    let foreign = nets.find(|net| !state.roster.network.holds(net));
    ensure(foreign.is_none(), 5, || format!("{call}: a range that is none of the roster's"))
}

/// A route goes that leads to nothing, that stands beside the right route to the owner of its range, or that a nudge left.
fn check_removal(
    state: &State,
    cloud: &CloudName,
    router: &RouterId,
    routes: &[Route],
) -> Result<(), Violation> {
    let ours = |route: &&Route| state.roster.network.holds(&route.destination) || route.is_nudge();
    let foreign = routes.iter().find(|route| !ours(route));
    ensure(foreign.is_none(), 5, || format!("router {router} would lose a route of others"))?;
    let seen = state.clouds.values().all(|view| view.source.trust(state.now).is_given());
    ensure(seen, 2, || format!("router {router} would lose routes while a cloud cannot be believed"))?;
    let held = state.clouds.get(cloud).and_then(|view| view.routers.get(router));
    let owns = |route: &Route| {
        state.cluster.nodes.values().any(|seen| {
            seen.node.pod_ranges.contains(&route.destination) && seen.node.addresses.contains(&route.next_hop)
        })
    };
    let beside = |route: &Route| {
        let all = held.map_or(&[][..], |held| &held.routes);
        all.iter().any(|other| other.destination == route.destination && other != route && owns(other))
    };
    let in_use = |route: &&Route| {
        let hop = &route.next_hop;
        state.clouds.values().any(|view| view.uses(hop))
            || state.cluster.nodes.values().any(|seen| seen.node.addresses.contains(hop))
    };
    let wrong = routes.iter().filter(|route| !route.is_nudge()).filter(in_use).find(|route| !beside(route));
    ensure(wrong.is_none(), 1, || format!("router {router} would lose a route to a next hop that is in use"))
}

/// A call on an instance carries the marks of the one pool that claims the instance: what the performer compares with the
/// instance itself directly before the act.
fn check_owned(state: &State, call: &Call) -> Result<(), Violation> {
    let Some((cloud, instance, owned)) = call.owned() else { return Ok(()) };
    let seen = state.clouds.get(cloud).and_then(|view| view.instances.get(instance));
    let pool = seen.and_then(|seen| seen.pool()).and_then(|name| state.roster.pools.get(name));
    let is_its = pool.is_none_or(|pool| pool.owned == *owned);
    ensure(is_its, 5, || format!("{call}: the call carries other marks than those of its pool"))
}

/// Nobody is given what the roster does not name, what it was not seen to lack, or what a person has not switched on.
fn check_access(state: &State, call: &Call) -> Result<(), Violation> {
    let Call::AssignRoles(AssignRoles { cloud, project, user, roles }) = call else { return Ok(()) };
    let access = &state.roster.access;
    ensure(access.repair == Mode::Act, 8, || format!("{call}: the roster does not allow it"))?;
    let view = state.clouds.get(cloud);
    ensure(view.is_some_and(|view| view.source.trust(state.now).is_given()), 2, || {
        format!("{call}: the cloud cannot be believed")
    })?;
    let said = |wanted: &ServiceUser| {
        let heard = view.and_then(|view| view.access.heard(&wanted.user))?;
        let said = heard.said.as_ref().map(|(said, _)| said);
        said.filter(|said| said.user.as_ref() == Some(user) && said.project == *project)
    };
    let here = access.users.iter().filter(|wanted| wanted.cloud == *cloud);
    let named: Vec<(&ServiceUser, &UserRoles)> =
        here.filter_map(|wanted| Some((wanted, said(wanted)?))).collect();
    for role in roles {
        let wanted = |(user, _): &(&ServiceUser, &UserRoles)| user.roles.iter().any(|it| it.means(role));
        ensure(named.iter().any(wanted), 5, || format!("{call}: the roster does not name {}", role.name))?;
        let held = named.iter().any(|(_, said)| said.holds(&RoleRef::Id(role.id.clone())));
        ensure(!held, 7, || format!("{call}: it holds {} already", role.name))?;
    }
    Ok(())
}

/// An agent is asked for its own machine alone, one thing at a time, and never to bring back what was taken away on purpose.
fn check_ask(state: &State, call: &Call) -> Result<(), Violation> {
    let Call::AskAgent(AskAgent { cloud, instance, agent, .. }) = call else { return Ok(()) };
    check_left_alone(state, call, cloud, instance)?;
    let key = MachineKey::Instance(cloud.clone(), instance.clone());
    let seen = state.clouds.get(cloud).and_then(|view| view.instances.get(instance));
    let Some(seen) = seen else { return ensure(false, 5, || format!("{call}: nobody knows that machine")) };
    let heard = state.agents.get(agent);
    let link = heard.and_then(|heard| heard.link.as_ref());
    ensure(link.is_some_and(|link| link.machine == key && link.is_strong()), 5, || {
        format!("{call}: no identity says that {agent} is on it")
    })?;
    let Some(pool) = seen.pool().and_then(|name| state.roster.pools.get(name)) else {
        return ensure(false, 5, || format!("{call}: no pool owns it"));
    };
    ensure(pool.repair.rejoin == Mode::Act, 8, || format!("{call}: the roster does not allow it"))?;
    let held = heard.and_then(|heard| heard.report.hold.as_ref());
    ensure(held.is_none(), 5, || format!("{call}: its agent holds: {}", held.map_or("", |hold| &hold.text)))?;
    let sign = |name: &NodeName| state.cluster.nodes.get(name).and_then(|it| it.node.intent.leaving.as_ref());
    let leaves = seen.left.is_some() || seen.nodes.iter().any(|name| sign(name).is_some());
    ensure(!leaves, 3, || format!("{call}: it was taken away on purpose"))?;
    let ready = seen.nodes.iter().any(|name| state.cluster.answers(name));
    ensure(!ready, 7, || format!("{call}: its node is Ready"))?;
    ensure(state.agents.outage(state.now).is_none(), 5, || format!("{call}: nobody reaches the API server"))?;
    ensure(state.book.asked(agent).count() <= 1, 7, || format!("{call}: it is asked already"))
}

/// Who took a machine out, or sets it apart, may use it for something else: its ports and its agent are theirs, too.
fn check_left_alone(
    state: &State,
    call: &Call,
    cloud: &CloudName,
    instance: &InstanceId,
) -> Result<(), Violation> {
    let Some(seen) = state.clouds.get(cloud).and_then(|view| view.instances.get(instance)) else {
        return Ok(());
    };
    ensure(seen.left.is_none(), 3, || format!("{call}: its node was removed on purpose"))?;
    let hosting = seen.instance.hosting.as_deref();
    let group = hosting.and_then(|hosting| hosting.group.as_ref());
    let notices = hosting.map_or(&[][..], |hosting| &hosting.notices);
    let theirs = [GroupPhase::Leaving, GroupPhase::Apart, GroupPhase::Reserve];
    let is_theirs = group.is_some_and(|group| theirs.contains(&group.phase))
        || notices.iter().any(|notice| notice.kind == NoticeKind::Interruption);
    ensure(!is_theirs, 5, || format!("{call}: its group or its provider has it in hand"))
}

/// What a group of the cloud keeps is never stopped beside it, and ended only through it, where the roster says so.
fn check_group(state: &State, call: &Call, seen: &Seen) -> Result<(), Violation> {
    let Some(group) = seen.instance.hosting.as_ref().and_then(|hosting| hosting.group.as_ref()) else {
        return Ok(());
    };
    let pool = seen.pool().and_then(|name| state.roster.pools.get(name));
    let through = pool.is_some_and(|pool| pool.through_group) && !group.protected;
    let fights = match call {
        Call::DeleteInstance(_) => !through || group.phase != GroupPhase::Kept,
        Call::Reboot(Reboot { hard, .. }) => {
            *hard || !matches!(group.phase, GroupPhase::Kept | GroupPhase::Unknown)
        }
        Call::Start(_) => true,
        _ => false,
    };
    ensure(!fights, 5, || format!("{call}: {group}"))
}

/// No Node that lives carries an identity of this machine and stands for another, or is its agent's own by the agent's word;
/// and none runs on it by its system UUID.
/// Read from every Node, without the index that the guard uses: calls are rare.
fn check_identity(state: &State, call: &Call, seen: &Seen) -> Result<(), Violation> {
    if let Call::DeleteNode(DeleteNode { name, .. }) = call {
        let uuid = state.cluster.nodes.get(name).and_then(|node| node.node.system_uuid.as_ref());
        let listed = |id: &InstanceId| {
            let other = state.clouds.values().find_map(|view| view.instances.get(id));
            other.is_some_and(|other| *id != seen.instance.id && other.unlisted.is_none())
        };
        return ensure(!uuid.is_some_and(listed), 1, || format!("{call}: it runs on another machine"));
    }
    let silent_after = state.roster.timing.lease_silent_after;
    let lives = |name: &NodeName| {
        state.cluster.answers(name) || state.cluster.lease_age(name).is_some_and(|age| age <= silent_after)
    };
    let names: Vec<&str> = seen.instance.node_names().collect();
    let key = key_of(state, seen);
    let agents = key.iter().flat_map(|key| state.agents.of(key));
    let claimed: Vec<&NodeName> = agents.filter_map(|(_, agent)| agent.report.who.node.as_ref()).collect();
    for (name, node) in &state.cluster.nodes {
        if seen.nodes.contains(name) {
            continue;
        }
        let runs_here = node.node.system_uuid.as_ref() == Some(&seen.instance.id);
        let own = node.link.as_ref().filter(|link| link.by <= LinkedBy::SystemUuid);
        let own = own.and_then(|link| state.clouds.get(&link.cloud)?.instances.get(&link.instance));
        let own = own.filter(|own| own.unlisted.is_none());
        // Its kubelet and its provider ID agree that it runs on its own instance, whatever addresses it writes besides.
        let by_own_word = |own: &Seen| {
            node.node.system_uuid.as_ref() == Some(&own.instance.id)
                || node.node.addresses.iter().any(|address| own.instance.addresses.contains(address))
        };
        let address =
            |address: &&IpAddr| seen.instance.addresses.contains(address) && !own.is_some_and(by_own_word);
        let shares_address = node.node.addresses.iter().any(|it| address(&it));
        let shares_name = names.iter().any(|wanted| is_called(name.as_str(), wanted))
            && own.is_none_or(|own| !own.instance.node_names().any(|known| names.contains(&known)));
        let shares = runs_here || (shares_address || shares_name || claimed.contains(&name)) && lives(name);
        ensure(!shares, 1, || format!("{call}: node {name} carries its identity"))?;
    }
    Ok(())
}

/// The machine, with the cloud that lists it.
fn key_of(state: &State, seen: &Seen) -> Option<MachineKey> {
    let here = state.clouds.values().find(|view| view.instances.contains_key(&seen.instance.id));
    here.map(|view| MachineKey::Instance(view.name.clone(), seen.instance.id.clone()))
}

/// The two names are one, or one is the first label of the other.
fn is_called(node: &str, name: &str) -> bool {
    let label_of = |long: &str, short: &str| long.split_once('.').is_some_and(|(label, _)| label == short);
    node == name || label_of(node, name) || label_of(name, node)
}

fn check_destructive(state: &State, call: &Call, seen: &Seen) -> Result<(), Violation> {
    let now = state.now;
    check_group(state, call, seen)?;
    check_identity(state, call, seen)?;
    let goes = seen.left.is_some() && !matches!(call, Call::DeleteNode(_));
    ensure(!goes, 3, || format!("{call}: its node was removed on purpose"))?;
    let key = key_of(state, seen);
    let is_lost = key.as_ref().is_some_and(|key| state.cluster.lost_together.contains(key));
    let together = seen.nodes.is_empty() && is_lost;
    ensure(!together, 2, || format!("{call}: its Node went missing together with others"))?;
    let ready = seen.nodes.iter().any(|name| state.cluster.answers(name));
    ensure(!ready, 1, || format!("{call}: its node is Ready"))?;
    let own = |name: &&NodeName| !state.cluster.is_anothers(name, &seen.instance.id);
    let fresh = seen.nodes.iter().chain(seen.joined.iter().filter(own)).any(|name| {
        state.cluster.lease_age(name).is_some_and(|age| age <= state.roster.timing.lease_silent_after)
    });
    ensure(!fresh, 1, || format!("{call}: its lease is fresh"))?;
    if let Some(key) = key {
        let age = |agent: &AgentSeen| state.agents.silence(now, agent);
        let bound = state.roster.timing.agent_silent_after;
        let heard = state.agents.of(&key).find(|(_, agent)| age(agent) <= bound);
        ensure(heard.is_none(), 1, || format!("{call}: its agent is fresh"))?;
        let goes = state.agents.is_leaving(&key).is_some() && !matches!(call, Call::DeleteNode(_));
        ensure(!goes, 5, || format!("{call}: its agent says that it is to go"))?;
    }
    check_outage(state, call)?;
    // Another project that cannot be read says nothing for or against it: who may share its identity is known from before.
    let own = state.clouds.values().find(|cloud| cloud.instances.contains_key(&seen.instance.id));
    let believed = own.is_some_and(|cloud| cloud.source.trust(now).is_given());
    ensure(believed, 2, || format!("{call}: its cloud cannot be believed"))?;
    ensure(state.cluster.source.trust(now).is_given(), 2, || {
        format!("{call}: the cluster cannot be believed")
    })?;
    let (expected, found) = (state.cluster.identity.expected(), state.cluster.identity.found());
    let is_ours = expected.is_none() || found.is_none() || expected == found;
    ensure(is_ours, 2, || format!("{call}: another cluster answers"))?;
    let listed = state.cluster.nodes.values().any(|node| !node.lost);
    ensure(listed, 2, || format!("{call}: the cluster has no Node"))?;
    let Some(pool) = seen.pool().and_then(|name| state.roster.pools.get(name)) else {
        return ensure(false, 5, || format!("{call}: no pool owns it"));
    };
    let marks = &seen.instance.marks;
    let owned =
        marks.contains(&pool.owned.cluster) && pool.owned.pool.as_ref().is_none_or(|m| marks.contains(m));
    ensure(owned, 5, || format!("{call}: its marks do not prove that it is ours"))?;
    let under_way = state.book.destructive_under_way();
    ensure(under_way <= state.roster.limits.at_once, 5, || format!("{call}: {under_way} repairs at once"))?;
    let begun = state.book.begun_within_hour(now);
    ensure(begun <= state.roster.limits.per_hour, 5, || format!("{call}: {begun} repairs within the hour"))?;
    if let Call::DeleteNode(_) = call {
        let (tidied, share) = (state.book.tidied_within_hour(now), state.roster.limits.cleanups_per_hour());
        ensure(tidied <= share, 5, || format!("{call}: {tidied} cleanups within the hour"))?;
    }
    let count = state.tally.pool(&pool.name);
    let tolerated = state.roster.limits.tolerated(count.total());
    ensure(count.amiss <= tolerated, 5, || {
        format!("{call}: {} of {} are amiss", count.amiss, count.total())
    })?;
    let allowed = match call {
        Call::DeleteInstance(_) => pool.repair.replace,
        Call::DeleteNode(_) => pool.repair.cleanup,
        _ => pool.repair.reboot,
    };
    ensure(allowed == Mode::Act, 8, || format!("{call}: the roster does not allow it"))?;
    if let Call::DeleteInstance(_) = call {
        ensure(!seen.instance.state.is_leaving(), 7, || format!("{call}: it is being deleted already"))?;
        check_minimum(state, call, pool, seen)?;
    }
    Ok(())
}

/// The pool keeps its minimum without this machine, counted here from what is seen and by the engine as it goes along.
fn check_minimum(state: &State, call: &Call, pool: &Pool, seen: &Seen) -> Result<(), Violation> {
    let going = state.clouds.values().flat_map(|cloud| {
        let going = cloud.instances.values().filter(|seen| seen.goes());
        going.map(|seen| MachineKey::Instance(cloud.name.clone(), seen.instance.id.clone()))
    });
    let going = going.filter(|key| state.tally.counted(key, &pool.name).is_some()).count();
    let counted = state.tally.pool(&pool.name).going;
    ensure(going == counted as usize, 5, || format!("{call}: {going} machines go, {counted} are counted"))?;
    let errored = seen.instance.state == crate::model::instance::InstanceState::Errored;
    let live = state.desk().live(&pool.name, key_of(state, seen).as_ref());
    ensure(errored || live > pool.min, 5, || format!("{call}: the pool's minimum is {}", pool.min))
}

/// No outage that agents tell of, unless most of the fleet, of which they are less than a fifth, is seen to renew its leases.
fn check_outage(state: &State, call: &Call) -> Result<(), Violation> {
    let Some((_, agents)) = state.agents.outage(state.now) else { return Ok(()) };
    let (silent, leases) = state.cluster.silence();
    let others = (leases - silent).saturating_sub(agents as u32);
    let is_read = state.cluster.leases_listed(state.now) <= state.roster.timing.lease_silent_after;
    let otherwise = is_read && agents as u32 * 5 < leases && others * 2 > leases;
    ensure(otherwise, 5, || format!("{call}: nobody reaches the API server"))
}

/// Checks every open case, whatever was touched.
pub fn check_state(state: &State) -> Result<(), Violation> {
    for (key, case) in &state.cases {
        check_case(state, key, case)?;
    }
    check_flights(state)
}

fn check_case(state: &State, key: &IncidentKey, case: &Case) -> Result<(), Violation> {
    let incident = &case.incident;
    ensure(incident.counted_from >= incident.first_seen || incident.first_seen > state.now, 4, || {
        format!("{} counts from before it was first seen", incident.id)
    })?;
    let never_joined = key.kind == FaultKind::NeverJoined;
    if let (true, Subject::Machine(MachineKey::Instance(cloud, id))) = (never_joined, &key.subject) {
        let joined =
            state.clouds.get(cloud).and_then(|v| v.instances.get(id)).and_then(|s| s.joined.as_ref());
        let well = incident.well_since.is_some();
        let unsure = || state.unsure.contains(&MachineKey::Instance(cloud.clone(), id.clone()));
        ensure(joined.is_none() || well || unsure(), 3, || {
            format!("{} calls a machine never-joined that joined", incident.id)
        })?;
    }
    Ok(())
}

/// No wake-up is lost: no case that waits for a slot, for its domain or for a gate could go on, and every other case that
/// could go on has a timer. Asks for a decision about every open case, so it is for tests and the simulator.
pub fn check_waits(state: &State) -> Result<(), Violation> {
    // Nothing is to go on while the ledger refuses records or another process leads.
    if state.ledger_error.is_some() || !state.leading {
        return Ok(());
    }
    let desk = state.desk();
    for (key, case) in &state.cases {
        if !matches!(decide(&desk, case).next, Next::Act { .. }) {
            continue;
        }
        let at_once = state.waiting.of(key).is_some_and(WaitFor::is_noticed_at_once);
        let timer = state.wakes.contains_key(&Wake::Case(key.clone()));
        let pending = state.ripe.contains(key) || (timer && !at_once);
        ensure(pending, 11, || format!("{} could go on, and nothing decides it again", case.incident.id))?;
    }
    Ok(())
}

/// What is kept beside agents and traces is what a walk over all of them finds. For tests: it costs the walk that is saved.
pub fn check_kept(state: &State) -> Result<(), Violation> {
    let subjects: BTreeSet<&Subject> = state.cases.keys().map(|key| &key.subject).collect();
    let amiss = |machine: &MachineKey| subjects.contains(&Subject::Machine(machine.clone()));
    let traces = state.traces.iter().filter(|(machine, traced)| !traced.is_leaving() && !amiss(machine));
    let idle: BTreeSet<_> = traces.map(|(machine, traced)| (traced.changed, machine.clone())).collect();
    ensure(idle == state.idle_traces, 11, || {
        format!("{} traces may give way, and {} are kept as such", idle.len(), state.idle_traces.len())
    })?;
    ensure(state.agents.counts_agree(state.now), 5, || "the count of fresh agents is wrong".into())
}

fn check_flights(state: &State) -> Result<(), Violation> {
    let mut busy = BTreeSet::new();
    for flight in state.book.flights.values() {
        ensure(busy.insert(flight.incident), 7, || {
            format!("two intents are under way for {}", flight.incident)
        })?;
    }
    Ok(())
}
