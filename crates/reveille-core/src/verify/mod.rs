//! Stage five: did it work? An accepted call is not a repair.
//!
//! For each call there is one fresh read that can tell ([`look_after`]) and one pure comparison of what it found with
//! what should be there now ([`judge`]). Reading, waiting and counting are the engine's; here is only the question.

use std::sync::Arc;

use crate::effect::{Call, Look};
use crate::event::Answer;
use crate::model::access::{RoleRef, UserRef};
use crate::model::id::InstanceId;
use crate::model::instance::{InstanceAction, InstanceState};
use crate::model::network::NUDGE_MARK;
use crate::model::node::{Node, Provider, Ready};

/// What a fresh read says about a call's effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effectiveness {
    /// It is there.
    Seen(Arc<str>),
    /// It is not there (yet).
    NotSeen(Arc<str>),
}

fn seen(text: impl Into<Arc<str>>) -> Effectiveness {
    Effectiveness::Seen(text.into())
}

fn not_seen(text: impl Into<Arc<str>>) -> Effectiveness {
    Effectiveness::NotSeen(text.into())
}

/// The read that tells. `instance` is the machine's, for calls on its ports.
pub fn look_after(call: &Call, instance: Option<&crate::model::id::InstanceId>) -> Option<Look> {
    Some(match call {
        Call::AddRules { cloud, group, .. }
        | Call::DropRule { cloud, group, .. }
        | Call::NudgeGroup { cloud, group, .. } => Look::Group(cloud.clone(), group.clone()),
        Call::SetPortGroups { cloud, .. } | Call::AddPortPairs { cloud, .. } => {
            Look::Ports(cloud.clone(), instance?.clone())
        }
        Call::RemoveRoutes { cloud, router, .. }
        | Call::AddRoutes { cloud, router, .. }
        | Call::NudgeRouter { cloud, router, .. } => Look::Router(cloud.clone(), router.clone()),
        Call::AssignRoles { cloud, user, roles, .. } => {
            let roles = roles.iter().map(|role| RoleRef::Id(role.id.clone())).collect();
            Look::Roles(cloud.clone(), Arc::new(UserRef::Id(user.clone())), roles)
        }
        Call::Reboot { cloud, instance, .. } => Look::Actions(cloud.clone(), instance.clone()),
        Call::Start { cloud, instance, .. } | Call::DeleteInstance { cloud, instance, .. } => {
            Look::Instance(cloud.clone(), instance.clone())
        }
        Call::AskAgent { node: name, .. } | Call::DeleteNode { name, .. } => Look::Node(name.clone()),
    })
}

/// The newest reboot in an action log: what must differ afterwards for a reboot to have happened. Where a cloud keeps no log, it
/// tells at least when it last let the machine run (`launch`), and a stop and start changes that.
pub fn newest_reboot(actions: &[InstanceAction]) -> Arc<str> {
    actions
        .iter()
        .find(|action| matches!(&*action.action, "reboot" | "launch"))
        .map_or_else(|| Arc::from("none"), |action| action.request.shared())
}

/// Compares what was found with what the call was to bring about. `before` is what [`newest_reboot`] said beforehand.
pub fn judge(call: &Call, before: Option<&str>, answer: &Answer) -> Effectiveness {
    match (call, answer) {
        (Call::SetPortGroups { port, groups, .. }, Answer::Ports(ports)) => {
            match ports.iter().find(|found| found.id == *port) {
                Some(found) if groups.iter().all(|group| found.groups.contains(group)) => {
                    seen(format!("read back: port {port} carries {} group(s)", found.groups.len()))
                }
                Some(_) => not_seen(format!("read back: port {port} still lacks a group")),
                None => not_seen(format!("read back: port {port} is gone")),
            }
        }
        (Call::AddPortPairs { port, pairs, .. }, Answer::Ports(ports)) => {
            let found = ports.iter().find(|found| found.id == *port);
            match found {
                Some(found)
                    if pairs.iter().all(|pair| found.pairs.iter().any(|held| held.contains(pair))) =>
                {
                    seen(format!("read back: port {port} allows it"))
                }
                _ => not_seen(format!("read back: port {port} does not allow it")),
            }
        }
        (Call::AddRules { rules, .. }, Answer::Group(Some(group))) => {
            let absent = rules.iter().filter(|rule| !group.rules.iter().any(|r| r.allows == **rule)).count();
            match absent {
                0 => seen("read back: the group holds every rule"),
                _ => not_seen(format!("read back: {absent} rule(s) are not there")),
            }
        }
        (Call::DropRule { rule, .. }, Answer::Group(Some(group))) => {
            if group.rules.iter().any(|r| r.id == *rule) {
                not_seen("read back: the rule is still there")
            } else {
                seen("read back: the rule is gone")
            }
        }
        (Call::NudgeGroup { mark, .. }, Answer::Group(Some(group))) => {
            if group.rules.iter().any(|r| r.description == *mark) {
                not_seen(format!("read back: the harmless rule {NUDGE_MARK} is still there"))
            } else {
                seen("read back: the harmless rule was put and taken back")
            }
        }
        (Call::RemoveRoutes { routes, .. }, Answer::Router(Some(router))) => {
            match routes.iter().find(|route| router.routes.contains(route)) {
                Some(route) => not_seen(format!("read back: {route} is still there")),
                None => seen("read back: the routes are gone"),
            }
        }
        (Call::AddRoutes { routes, .. }, Answer::Router(Some(router))) => {
            match routes.iter().find(|route| !router.routes.contains(route)) {
                Some(route) => not_seen(format!("read back: {route} is not there")),
                None => seen("read back: the routes are there"),
            }
        }
        (Call::NudgeRouter { route, .. }, Answer::Router(Some(router))) => {
            if router.routes.contains(route) {
                not_seen(format!("read back: the harmless route {route} is still there"))
            } else {
                seen("read back: the harmless route was put and taken back")
            }
        }
        (Call::AssignRoles { roles, .. }, Answer::Roles(found)) => {
            match roles.iter().find(|role| !found.holds(&RoleRef::Id(role.id.clone()))) {
                Some(role) => not_seen(format!("read back: it does not hold {}", role.name)),
                None => seen("read back: it holds the roles"),
            }
        }
        _ => judge_instance(call, before, answer),
    }
}

/// Its node is back when it is there, stands for this very machine, and is Ready. That it stays, the dwell tells.
fn judge_rejoin(instance: &InstanceId, found: Option<&Node>) -> Effectiveness {
    let Some(node) = found else { return not_seen("read back: its node is not there") };
    let is_its = match &node.provider {
        Provider::Instance(id) => id == instance,
        // A node that the cloud controller has not initialised has no other identity yet.
        Provider::Unset | Provider::Unread(_) => node.system_uuid.as_ref() == Some(instance),
    };
    match (is_its, node.ready) {
        (false, _) => not_seen(format!("read back: node {} stands for another machine", node.name)),
        (true, Ready::True) => seen(format!("read back: node {} is there and Ready", node.name)),
        (true, _) => not_seen(format!("read back: node {} is there and not Ready", node.name)),
    }
}

fn judge_instance(call: &Call, before: Option<&str>, answer: &Answer) -> Effectiveness {
    match (call, answer) {
        (Call::AskAgent { instance, .. }, Answer::Node(found)) => judge_rejoin(instance, found.as_deref()),
        (Call::Reboot { .. }, Answer::Actions(actions)) => {
            let newest = newest_reboot(actions);
            if before == Some(&*newest) || &*newest == "none" {
                not_seen("the cloud's action log shows no new reboot")
            } else {
                seen(format!("the cloud's action log shows reboot {newest}"))
            }
        }
        (Call::Start { .. }, Answer::Instance(Some(found))) => match found.state {
            InstanceState::Active => seen("read back: it runs"),
            state => not_seen(format!("read back: it is {state:?}")),
        },
        (Call::DeleteInstance { .. }, Answer::Instance(None)) => seen("asked by id: gone"),
        (Call::DeleteInstance { .. }, Answer::Instance(Some(found))) if found.state.is_leaving() => {
            seen("read back: it is being deleted")
        }
        (Call::DeleteInstance { .. }, Answer::Instance(Some(found))) => {
            not_seen(format!("read back: it is {:?} and not being deleted", found.state))
        }
        (Call::DeleteNode { .. }, Answer::Node(None)) => seen("read back: the Node is gone"),
        (Call::DeleteNode { uid, .. }, Answer::Node(Some(node))) if node.uid != *uid => {
            seen("read back: the Node is another one now")
        }
        (Call::DeleteNode { .. }, Answer::Node(Some(_))) => not_seen("read back: the Node is still there"),
        _ => not_seen("read back: what it was about is gone"),
    }
}
