//! Turns a rung into the exact call, from what the views say at this moment.
//!
//! A call names everything it needs to be refused when the world has moved on: the revision that a port's list was read
//! at, the uid of a Node, exact pairs of routes. When the facts leave nothing to call (already so, not possible here),
//! the answer is why.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use crate::diagnose::access_faults;
use crate::diagnose::faults;
use crate::diagnose::hosting;
use crate::diagnose::network::membership::Verdict;
use crate::diagnose::route_faults::{self, RouteView};
use crate::effect::Call;
use crate::guard::{Guard, stands};
use crate::model::access::Role;
use crate::model::agent::Ask;
use crate::model::hosting::Check;
use crate::model::id::{CloudName, GroupId, NodeName, RouterId};
use crate::model::incident::{FaultKind, MachineKey, Subject};
use crate::model::instance::InstanceState;
use crate::model::network::{NUDGE_MARK, Route};
use crate::model::roster::{Mode, Ownership};
use crate::observe::cloud::{CloudView, Seen};
use crate::observe::cluster::NodeSeen;

use super::desk::{Case, Desk};
use super::hold::Hold;
use super::interlock;
use super::ladder::{self, Rung};

/// Why there is nothing to call.
pub type NoCall = Arc<str>;

fn no_call<T>(why: &str) -> Result<T, NoCall> {
    Err(Arc::from(why))
}

/// The call that this rung means for this case now.
pub fn call(desk: &Desk<'_>, case: &Case, rung: Rung) -> Result<Call, NoCall> {
    match rung {
        Rung::SetGroups => set_groups(desk, case),
        Rung::AddRules => add_rules(desk, case),
        Rung::NudgeGroup => nudge_group(desk, case),
        Rung::NudgeRouter => nudge_router(desk, case),
        Rung::RemoveRoutes => remove_routes(desk, case),
        Rung::AddRoutes => add_routes(desk, case),
        Rung::AddPairs => add_pairs(desk, case),
        Rung::DropLeftover => drop_leftover(desk, case),
        Rung::AssignRoles => assign_roles(desk, case),
        Rung::Rejoin => rejoin(desk, case).map_err(|hold| Arc::from(hold.to_string())),
        Rung::Start | Rung::Reboot | Rung::Replace => on_instance(desk, case, rung),
        Rung::Cleanup => cleanup(desk, case),
    }
}

fn machine<'a>(desk: &Desk<'a>, case: &Case) -> Result<(&'a CloudView, &'a Seen), NoCall> {
    desk.seen_of(&case.incident.key.subject).ok_or_else(|| Arc::from("it has no instance"))
}

/// The marks that the machine must carry when it is touched: those of its pool.
fn marks(desk: &Desk<'_>, seen: &Seen) -> Result<Ownership, NoCall> {
    desk.pool(seen).map(|pool| pool.owned.clone()).ok_or_else(|| NoCall::from("it belongs to no pool"))
}

fn set_groups(desk: &Desk<'_>, case: &Case) -> Result<Call, NoCall> {
    let (cloud, seen) = machine(desk, case)?;
    let needs = faults::port_needs(desk.roster, cloud, seen);
    let (mut refused, mut again) = (None, None);
    let last = case.incident.attempts.last();
    for need in needs {
        match need.verdict {
            Verdict::Applicable => {
                assert!(!need.full_list.is_empty(), "a port's groups are never emptied");
                let call = Call::SetPortGroups {
                    cloud: cloud.name.clone(),
                    port: need.port,
                    groups: need.full_list,
                    if_revision: need.revision,
                    instance: seen.instance.id.clone(),
                    owned: marks(desk, seen)?,
                };
                // One port that loses its group over and over does not keep the others waiting.
                if last.is_none_or(|last| !last.call.is_same_change(&call)) {
                    return Ok(call);
                }
                again.get_or_insert(call);
            }
            Verdict::NotApplicable(why) => refused = Some(why.to_string()),
        }
    }
    again.ok_or_else(|| Arc::from(refused.as_deref().unwrap_or("every port has its security groups")))
}

fn add_rules(desk: &Desk<'_>, case: &Case) -> Result<Call, NoCall> {
    let Subject::Group(cloud, group) = &case.incident.key.subject else { return no_call("not a group") };
    let view = desk.clouds.get(cloud).ok_or_else(|| NoCall::from("its cloud is not in the roster"))?;
    let rules = faults::rules_needed(desk.roster, view, group);
    if rules.is_empty() {
        return no_call("every rule is there");
    }
    Ok(Call::AddRules { cloud: cloud.clone(), group: group.clone(), rules })
}

fn nudge_group(desk: &Desk<'_>, case: &Case) -> Result<Call, NoCall> {
    let (cloud, seen) = machine(desk, case)?;
    let pool = desk.pool(seen).ok_or_else(|| NoCall::from("it belongs to no pool"))?;
    let group: Option<GroupId> = pool.groups.iter().find_map(|group| cloud.resolve(group).ok());
    let group = group.ok_or_else(|| NoCall::from("its pool names no security group"))?;
    let mark = format!("{NUDGE_MARK}-{}", desk.next_intent.0).into();
    Ok(Call::NudgeGroup { cloud: cloud.name.clone(), group, mark })
}

fn router<'a>(desk: &Desk<'a>) -> Result<(&'a CloudName, &'a RouterId, &'a CloudView), NoCall> {
    let (cloud, router) =
        desk.roster.network.router.as_ref().ok_or_else(|| NoCall::from("the roster names no router"))?;
    let view = desk.clouds.get(cloud).ok_or_else(|| NoCall::from("its cloud is not in the roster"))?;
    Ok((cloud, router, view))
}

/// So many routes more fit, as far as the limit is known. A nudge needs a place as well, if only for a moment.
fn has_room(desk: &Desk<'_>, view: &CloudView, router: &RouterId, more: usize) -> bool {
    let held = view.routers.get(router).map_or(0, |router| router.routes.len());
    desk.route_limit_now(router).is_none_or(|limit| held + more <= limit as usize)
}

/// A harmless route: a documentation address (RFC 5737) through the node's own address, which the router accepts.
fn nudge_router(desk: &Desk<'_>, case: &Case) -> Result<Call, NoCall> {
    let (cloud, router, view) = router(desk)?;
    let (_, seen) = machine(desk, case)?;
    let held = view.routers.get(router).ok_or_else(|| NoCall::from("the router was not found"))?;
    if !has_room(desk, view, router, 1) {
        return no_call("the router is full");
    }
    let next_hop = desk
        .node(seen)
        .and_then(|(_, node)| node.node.addresses.iter().find(|address| address.is_ipv4()).copied())
        .ok_or_else(|| NoCall::from("its node has no IPv4 address"))?;
    let free = (1..=254_u8).find_map(|last| {
        let destination = ipnet::IpNet::from(std::net::IpAddr::from([198, 51, 100, last]));
        (!held.routes.iter().any(|route| route.destination == destination)).then_some(destination)
    });
    let destination =
        free.ok_or_else(|| NoCall::from("no documentation address is free for a test route"))?;
    Ok(Call::NudgeRouter {
        cloud: cloud.clone(),
        router: router.clone(),
        route: Route { destination, next_hop },
    })
}

fn remove_routes(desk: &Desk<'_>, _case: &Case) -> Result<Call, NoCall> {
    let (cloud, router, _) = router(desk)?;
    let (routes, dead) = one_by_one(desk, route_faults::stale_routes(&route_view(desk, &[]), cloud, router));
    if routes.is_empty() {
        return no_call("no route is proved dead");
    }
    let unless_used = dead.into_iter().collect();
    Ok(Call::RemoveRoutes { cloud: cloud.clone(), router: router.clone(), routes, unless_used })
}

/// Where a removal was refused because one of its next hops is in use, the refusal holds for all of them. Each is tried
/// alone then, after the others, so that the one in use keeps no other route.
fn one_by_one(
    desk: &Desk<'_>,
    (mut routes, mut dead): (Vec<Route>, BTreeSet<IpAddr>),
) -> (Vec<Route>, BTreeSet<IpAddr>) {
    let alone = |hop: &IpAddr| dead.contains(hop) && desk.doubted_hops.contains(hop);
    let only = routes.iter().all(|route| alone(&route.next_hop)).then(|| routes.first()).flatten();
    let only = only.map(|route| route.next_hop);
    let goes = |hop: &IpAddr| only.map_or(!desk.doubted_hops.contains(hop), |only| only == *hop);
    let kept = |hop: &IpAddr| dead.contains(hop) && !goes(hop);
    routes.retain(|route| !kept(&route.next_hop));
    dead.retain(goes);
    (routes, dead)
}

fn add_routes(desk: &Desk<'_>, case: &Case) -> Result<Call, NoCall> {
    let (cloud, router, view) = router(desk)?;
    let (_, seen) = machine(desk, case)?;
    let routes = route_faults::routes_needed(desk.roster, view, desk.cluster, router, seen);
    if routes.is_empty() {
        return no_call("its routes exist");
    }
    if !has_room(desk, view, router, routes.len()) {
        return no_call("the router is full");
    }
    Ok(Call::AddRoutes { cloud: cloud.clone(), router: router.clone(), routes })
}

fn add_pairs(desk: &Desk<'_>, case: &Case) -> Result<Call, NoCall> {
    let (cloud, seen) = machine(desk, case)?;
    match faults::pairs_needed(desk.roster, desk.cluster, seen) {
        Some(need) => match need.verdict {
            Verdict::Applicable => Ok(Call::AddPortPairs {
                cloud: cloud.name.clone(),
                port: need.port,
                pairs: need.missing,
                if_revision: need.revision,
                instance: seen.instance.id.clone(),
                owned: marks(desk, seen)?,
            }),
            Verdict::NotApplicable(why) => no_call(&why.to_string()),
        },
        None => no_call("its port allows its pod range"),
    }
}

fn route_view<'a>(desk: &Desk<'a>, nudges: &'a [Route]) -> RouteView<'a> {
    RouteView {
        roster: desk.roster,
        clouds: desk.clouds,
        cluster: desk.cluster,
        dead_since: desk.dead_hops,
        nudges,
        now: desk.now,
    }
}

fn drop_leftover(desk: &Desk<'_>, case: &Case) -> Result<Call, NoCall> {
    if let Subject::Router(cloud, router) = &case.incident.key.subject {
        let nudges = desk.book.router_nudges(cloud);
        let routes = route_view(desk, &nudges).nudge_leftovers(cloud, router);
        if routes.is_empty() {
            return no_call("no test rule is left");
        }
        // A leftover goes whether or not its next hop is in use: nothing is routed to a documentation address.
        let (cloud, router, unless_used) = (cloud.clone(), router.clone(), Vec::new());
        return Ok(Call::RemoveRoutes { cloud, router, routes, unless_used });
    }
    let Subject::Group(cloud, group) = &case.incident.key.subject else { return no_call("not a group") };
    let view = desk.clouds.get(cloud).ok_or_else(|| NoCall::from("its cloud is not in the roster"))?;
    match faults::nudge_leftover(view, group) {
        Some(rule) => Ok(Call::DropRule { cloud: cloud.clone(), group: group.clone(), rule }),
        None => no_call("no test rule is left"),
    }
}

/// Only what the roster names, the cloud knows and the user was said to lack.
fn assign_roles(desk: &Desk<'_>, case: &Case) -> Result<Call, NoCall> {
    let Subject::User(cloud, user) = &case.incident.key.subject else { return no_call("not a user") };
    let wanted = desk.roster.access.user(cloud, user);
    let wanted = wanted.ok_or_else(|| NoCall::from("the roster does not name it"))?;
    let heard = desk.clouds.get(cloud).and_then(|view| view.access.heard(user));
    let said = heard.and_then(|heard| heard.said.as_ref()).map(|(said, _)| said);
    let said = said.ok_or_else(|| NoCall::from("its roles were not read yet"))?;
    let Some(id) = &said.user else { return no_call("the cloud knows no such user") };
    let missing = access_faults::lacking(wanted, said);
    let known = said.lacking.iter().filter(|role| missing.iter().any(|wanted| wanted.means(role)));
    let roles: Vec<Role> = known.cloned().collect();
    if roles.is_empty() {
        return no_call(if missing.is_empty() { "it has every role" } else { "the cloud has no such role" });
    }
    let project = said.project.clone();
    Ok(Call::AssignRoles { cloud: cloud.clone(), project, user: id.clone(), roles })
}

/// The call on the machine's agent, if it has one that is heard and may be asked.
///
/// A machine that had its node gets the mildest first: the kubelet registers at its start, and at no other time. After
/// that, and for one that never joined, the agent chooses what it takes.
pub fn rejoin(desk: &Desk<'_>, case: &Case) -> Result<Call, Hold> {
    let MachineKey::Instance(cloud, instance) = machine_key(case).ok_or(Hold::NoAgent)? else {
        return Err(Hold::NoAgent);
    };
    let key = MachineKey::Instance(cloud.clone(), instance.clone());
    let Some((agent, seen)) = desk.agents.fresh(desk.now, &key) else {
        return Err(desk.agents.latest(&key).map_or(Hold::NoAgent, |(_, seen)| {
            let silent = desk.agents.silence(desk.now, seen);
            Hold::AgentSilent(Arc::from(format!("silent for {silent}")))
        }));
    };
    if let Some(why) = &seen.parted {
        return Err(Hold::AgentSilent(why.clone()));
    }
    let mildest = case.incident.key.kind != FaultKind::NeverJoined && case.incident.tries == 0;
    let order = if mildest { [Ask::RestartKubelet, Ask::Rejoin] } else { [Ask::Rejoin, Ask::RestartKubelet] };
    let Some(ask) = order.into_iter().find(|ask| seen.report.may.contains(ask)) else {
        return Err(Hold::AgentSilent(Arc::from("it does not accept orders to rejoin")));
    };
    let Some((_, machine)) = desk.seen(&key) else { return Err(Hold::NotOwned) };
    let node = machine.joined.clone().or_else(|| machine.nodes.first().cloned());
    let node = node.or_else(|| seen.report.who.node.clone());
    let named = || machine.instance.node_names().next().unwrap_or_default().to_lowercase();
    let node = node.unwrap_or_else(|| NodeName::new(named()));
    let (cloud, instance, agent) = (cloud.clone(), instance.clone(), agent.clone());
    Ok(Call::AskAgent { cloud, instance, agent, ask, node })
}

const fn machine_key(case: &Case) -> Option<&MachineKey> {
    match &case.incident.key.subject {
        Subject::Machine(key) => Some(key),
        _ => None,
    }
}

fn on_instance(desk: &Desk<'_>, case: &Case, rung: Rung) -> Result<Call, NoCall> {
    let (view, seen) = machine(desk, case)?;
    let (cloud, instance) = (view.name.clone(), seen.instance.id.clone());
    let state = seen.instance.state;
    if state.is_leaving() {
        return no_call("it is already being deleted");
    }
    // A group replaces a machine that stops: by then its end is decided, and starting it is in vain.
    let group = hosting::group(seen).filter(|_| stands(Guard::GroupKeeps));
    let owned = marks(desk, seen)?;
    match rung {
        Rung::Start if group.is_some() => no_call("its Auto Scaling group replaces machines that stop"),
        Rung::Start if state == InstanceState::Stopped => Ok(Call::Start { cloud, instance, owned }),
        Rung::Start => no_call("it is not shut off"),
        // A guest that still answers its cloud is asked first; one that was asked in vain is power-cycled.
        Rung::Reboot if case.gathered.newest_reboot.is_none() => {
            no_call("its action log could not be read, so a reboot could not be confirmed")
        }
        Rung::Reboot if state == InstanceState::Active => {
            let said = hosting::of(seen);
            let host = said.is_some_and(|said| said.checks.host == Check::Impaired);
            // Tries of the step before, a rejoin that was in vain, are none of it.
            let rung = ladder::ladder(case.incident.key.kind).get(usize::from(case.incident.rung));
            let hard = host || rung == Some(&Rung::Reboot) && case.incident.tries > 0;
            if hard && group.is_some() {
                return no_call(
                    "only a stop is left, and its Auto Scaling group replaces machines that stop",
                );
            }
            if hard && said.is_some_and(|said| said.loses_disks) && stands(Guard::DisksKept) {
                let replaced = desk.pool(seen).is_some_and(|pool| pool.repair.replace == Mode::Act);
                return no_call(if replaced {
                    "a stop loses the data on its instance store; so does a replacement, which the roster allows"
                } else {
                    "a stop loses the data on its instance store: manual decision needed"
                });
            }
            Ok(Call::Reboot { cloud, instance, hard, owned })
        }
        Rung::Reboot if interlock::reboot_never_ends(desk, case, seen) => {
            no_call("its cloud does not end the reboot that it took: another would wait behind that one")
        }
        // Somebody brought it into this state, and may need it so. That is no reason for a harsher step: the interlock holds it.
        Rung::Reboot if matches!(state, InstanceState::Rebooting | InstanceState::Other) => {
            Ok(Call::Reboot { cloud, instance, hard: false, owned })
        }
        Rung::Reboot => no_call("only a running instance can be rebooted"),
        _ => Ok(Call::DeleteInstance { cloud, instance, owned, rests_on: Some(state) }),
    }
}

fn cleanup(desk: &Desk<'_>, case: &Case) -> Result<Call, NoCall> {
    let (_, seen) = machine(desk, case)?;
    if case.incident.key.kind != FaultKind::Ghost || !seen.is_gone() {
        return no_call("its instance is not proved to be gone");
    }
    match desk.node(seen) {
        Some((name, NodeSeen { node, .. })) => {
            Ok(Call::DeleteNode { name: name.clone(), uid: node.uid.clone(), boot_id: node.boot_id.clone() })
        }
        None => no_call("it has no Node"),
    }
}
