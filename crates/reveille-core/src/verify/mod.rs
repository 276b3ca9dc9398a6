//! Stage five: did it work? An accepted call is not a repair.
//!
//! For each call there are fresh reads that can tell ([`looks_after`]) and one pure comparison of what each found with
//! what should be there now ([`judge`]). Reading, waiting and counting are the engine's; here is only the question. What the
//! real services show after each act, and what they do not, stands in `docs/acts.md`.

use std::sync::Arc;

use crate::effect::{Call, Look};
use crate::event::Answer;
use crate::model::access::{RoleRef, UserRef};
use crate::model::before::{ActionMark, Before};
use crate::model::hosting::GroupPhase;
use crate::model::id::InstanceId;
use crate::model::instance::{Instance, InstanceState};
use crate::model::network::NUDGE_MARK;
use crate::model::node::{Node, Provider, Ready};

/// What a fresh read says about a call's effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effectiveness {
    /// It is there.
    Seen(Arc<str>),
    /// It is not there (yet), and would be by now.
    NotSeen(Arc<str>),
    /// What was read cannot show it, or does not show it before the machine is up again.
    Unseen(Arc<str>),
}

fn seen(text: impl Into<Arc<str>>) -> Effectiveness {
    Effectiveness::Seen(text.into())
}

fn not_seen(text: impl Into<Arc<str>>) -> Effectiveness {
    Effectiveness::NotSeen(text.into())
}

fn unseen(text: impl Into<Arc<str>>) -> Effectiveness {
    Effectiveness::Unseen(text.into())
}

/// The reads that tell. `instance` is the machine's, for calls on its ports.
pub fn looks_after(call: &Call, instance: Option<&InstanceId>, before: Option<&Before>) -> Vec<Look> {
    let node = before.and_then(|before| before.node.clone()).map(Look::Node);
    let first = look_after(call, instance);
    let booted = node.filter(|_| matches!(call, Call::Reboot { .. }));
    first.into_iter().chain(booted).collect()
}

fn look_after(call: &Call, instance: Option<&InstanceId>) -> Option<Look> {
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

/// Compares what was found with what the call was to bring about.
pub fn judge(call: &Call, before: Option<&Before>, answer: &Answer) -> Effectiveness {
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

fn stands_for(node: &Node, instance: &InstanceId) -> bool {
    match &node.provider {
        Provider::Instance(id) => id == instance,
        // A node that the cloud controller has not initialised has no other identity yet.
        Provider::Unset | Provider::Unread(_) => node.system_uuid.as_ref() == Some(instance),
    }
}

/// Its node is back when it is there, stands for this very machine, and is Ready. That it stays, the dwell tells.
fn judge_rejoin(instance: &InstanceId, found: Option<&Node>) -> Effectiveness {
    let Some(node) = found else { return not_seen("read back: its node is not there") };
    match (stands_for(node, instance), node.ready) {
        (false, _) => not_seen(format!("read back: node {} stands for another machine", node.name)),
        (true, Ready::True) => seen(format!("read back: node {} is there and Ready", node.name)),
        (true, _) => not_seen(format!("read back: node {} is there and not Ready", node.name)),
    }
}

/// Whether the cloud shows a boot of the machine since.
fn judge_actions(before: Option<&ActionMark>, now: &ActionMark) -> Effectiveness {
    match (before, now) {
        (None, _) => unseen("what the cloud's action log showed before is not known"),
        (Some(ActionMark::Launch(before)), ActionMark::Launch(now)) if before != now => {
            seen(format!("the cloud shows a new launch: {now}"))
        }
        (Some(ActionMark::Launch(_)), ActionMark::Launch(_)) => {
            unseen("the cloud shows no new launch, and shows no reboot in place")
        }
        (Some(ActionMark::Reboot(before)), ActionMark::Reboot(Some(now))) if before.as_ref() != Some(now) => {
            seen(format!("the cloud's action log shows reboot {now}"))
        }
        (Some(before), now) if before == now => not_seen("the cloud's action log shows no new reboot"),
        _ => unseen("the cloud's action log is another one than before"),
    }
}

/// The kubelet reports the boot id when it comes back, and not before.
fn judge_boot(instance: &InstanceId, before: Option<&Before>, found: Option<&Node>) -> Effectiveness {
    let was = before.and_then(|before| before.node_boot.as_deref());
    let Some(node) = found else { return unseen("read back: its node is not there") };
    match (was, node.boot_id.as_deref()) {
        _ if !stands_for(node, instance) => {
            unseen(format!("read back: node {} stands for another machine", node.name))
        }
        (Some(was), Some(is)) if was != is => {
            seen(format!("read back: node {} carries another boot id: {is}", node.name))
        }
        (Some(_), Some(_)) => unseen(format!("read back: node {} carries the same boot id", node.name)),
        _ => unseen(format!("read back: no boot id of node {} to compare", node.name)),
    }
}

/// A group of the cloud takes it away by itself, however long its hooks keep the instance running.
fn is_taken_away(found: &Instance) -> bool {
    let group = found.hosting.as_ref().and_then(|hosting| hosting.group.as_ref());
    found.state.is_leaving() || group.is_some_and(|group| group.phase == GroupPhase::Leaving)
}

fn judge_instance(call: &Call, before: Option<&Before>, answer: &Answer) -> Effectiveness {
    match (call, answer) {
        (Call::AskAgent { instance, .. }, Answer::Node(found)) => judge_rejoin(instance, found.as_deref()),
        (Call::Reboot { .. }, Answer::Actions(actions)) => {
            judge_actions(before.and_then(|before| before.action.as_ref()), &ActionMark::of(actions))
        }
        (Call::Reboot { instance, .. }, Answer::Node(found)) => {
            judge_boot(instance, before, found.as_deref())
        }
        (Call::Start { .. }, Answer::Instance(Some(found))) => match found.state {
            InstanceState::Active => seen("read back: it runs"),
            InstanceState::Stopped => not_seen("read back: it is stopped"),
            // On its way up, which takes a machine of bare metal many minutes.
            state => unseen(format!("read back: it is {state:?}")),
        },
        (Call::DeleteInstance { .. }, Answer::Instance(None)) => seen("asked by id: gone"),
        (Call::DeleteInstance { .. }, Answer::Instance(Some(found))) if is_taken_away(found) => {
            seen("read back: it is being deleted")
        }
        (Call::DeleteInstance { .. }, Answer::Instance(Some(found))) => {
            not_seen(format!("read back: it is {:?} and not being deleted", found.state))
        }
        (Call::DeleteNode { .. }, Answer::Node(None)) => seen("read back: the Node is gone"),
        (Call::DeleteNode { uid, .. }, Answer::Node(Some(node))) if node.uid != *uid => {
            seen("read back: the Node is another one now")
        }
        // A finalizer holds it, which is for whoever put it there to end.
        (Call::DeleteNode { .. }, Answer::Node(Some(node))) if node.intent.deleting => {
            seen("read back: the Node is being deleted")
        }
        (Call::DeleteNode { .. }, Answer::Node(Some(_))) => not_seen("read back: the Node is still there"),
        _ => not_seen("read back: what it was about is gone"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::hosting::{Hosting, OwnerGroup};
    use crate::model::instance::Mark;
    use crate::model::roster::Ownership;

    fn found(state: InstanceState, group: Option<GroupPhase>) -> Answer {
        let word = Arc::from("the provider's word");
        let group = group.map(|phase| OwnerGroup { name: "asg".into(), phase, word, protected: false });
        let hosting = Some(Arc::new(Hosting { group, ..Hosting::default() }));
        Answer::Instance(Some(Arc::new(Instance {
            state,
            hosting,
            ..Instance::unknown("i-1".into(), "one".into())
        })))
    }

    /// EC2 keeps an instance running while a termination hook of its group waits (EC2 Auto Scaling, "lifecycle hooks":
    /// `Terminating:Wait`, an hour by default), so that its own state does not show the deletion.
    #[test]
    fn deletion_is_seen_in_the_instance_or_in_what_its_group_says() {
        let owned = Ownership { cluster: Mark::Tag("k8s".into()), pool: None };
        let call =
            Call::DeleteInstance { cloud: "ec2".into(), instance: "i-1".into(), owned, rests_on: None };
        let cases = [
            (InstanceState::Deleting, None, true),
            (InstanceState::Gone, None, true),
            (InstanceState::Active, Some(GroupPhase::Leaving), true),
            (InstanceState::Active, Some(GroupPhase::Kept), false),
            (InstanceState::Active, Some(GroupPhase::Apart), false),
            (InstanceState::Stopped, Some(GroupPhase::Reserve), false),
            (InstanceState::Active, None, false),
        ];
        for (state, group, is_seen) in cases {
            let judged = judge(&call, None, &found(state, group));
            assert_eq!(matches!(judged, Effectiveness::Seen(_)), is_seen, "{state:?}, {group:?}: {judged:?}");
        }
        assert!(matches!(judge(&call, None, &Answer::Instance(None)), Effectiveness::Seen(_)));
    }
}
