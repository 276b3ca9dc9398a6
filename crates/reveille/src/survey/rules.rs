//! The security groups of a pool's ports: which groups every machine needs, and what they let in.
//!
//! ```text
//!  ports ─▶ groups that most carry ─▶ needed, the one with the pods' rules first · that some carry ─▶ a note each
//!  their rules, pod ranges ─▶ a note: groups that let members in, groups that let pods in, what is missing
//! ```
//!
//! The controller adds missing rules to the first group of a pool, so the order is a proposal as well.

use std::collections::BTreeSet;
use std::sync::Arc;

use reveille_core::diagnose::network::rules::missing_rules;
use reveille_core::model::id::{GroupId, InstanceId};
use reveille_core::model::network::{Direction, Remote, SecurityGroup};
use reveille_core::model::roster::GroupRef;

use super::Survey;
use super::network::cover;

/// The groups of a pool, and the notes about them.
pub(crate) struct PoolGroups {
    /// Groups that every port needs.
    pub(crate) needed: Vec<GroupRef>,
    /// One line each.
    pub(crate) notes: Vec<String>,
}

/// Groups that every port of these instances carries, and those that only some carry. `default` is on every port by
/// default, so it gives no hint.
pub(crate) fn groups(survey: &Survey, ids: &BTreeSet<&InstanceId>) -> PoolGroups {
    let known = &survey.inventory.groups;
    let ports: Vec<_> =
        survey.inventory.ports.iter().filter(|(id, _)| ids.contains(id)).map(|(_, port)| port).collect();
    let all: BTreeSet<&GroupId> = ports.iter().flat_map(|port| port.groups.iter()).collect();
    let pods = cover(&survey.pod_ranges());
    let missing =
        |id: &GroupId| known.get(id).map_or(usize::MAX, |group| missing_rules(&[&**group], &pods).len());
    let (mut needed, mut notes) = (Vec::new(), Vec::new());
    for id in all {
        let name = known.get(id).map(|group| group.name.clone());
        if name.as_deref() == Some("default") {
            continue;
        }
        let carried = ports.iter().filter(|port| port.groups.contains(id)).count();
        // One machine that just lost its group must not lead to the conclusion that the pool does not need the group.
        if carried * 2 > ports.len() {
            needed.push(id);
            continue;
        }
        let called = name.map_or_else(|| id.to_string(), |name| name.to_string());
        notes.push(format!(
            "Group {called} is on some of their ports only and is left out; add it if all need it."
        ));
    }
    needed.sort_by_key(|id| missing(id));
    let read: Vec<&Arc<SecurityGroup>> = needed.iter().filter_map(|id| known.get(*id)).collect();
    notes.extend(read.iter().filter_map(|group| lets_in(group, missing(&group.id) == 0 && !pods.is_empty())));
    if let (Some(first), true) = (read.first(), read.len() == needed.len()) {
        let groups: Vec<&SecurityGroup> = read.iter().map(|group| &***group).collect();
        let lacking = missing_rules(&groups, &pods).len();
        if lacking > 0 {
            notes.push(format!(
                "They do not let all pods in: {lacking} rules are missing, and would be put into {}.",
                first.name
            ));
        }
    }
    PoolGroups { needed: needed.into_iter().map(|id| named(survey, id)).collect(), notes }
}

/// The parts of a group's rules that matter to a cluster; `None` where it lets in neither members nor pods.
fn lets_in(group: &SecurityGroup, pods: bool) -> Option<String> {
    let of_itself = |remote: &Remote| matches!(remote, Remote::Group(id) if *id == group.id);
    let own = group
        .rules
        .iter()
        .any(|rule| rule.allows.direction == Direction::Ingress && of_itself(&rule.allows.remote));
    let whom = match (own, pods) {
        (true, true) => "its own members and all pods",
        (true, false) => "its own members",
        (false, true) => "all pods",
        (false, false) => return None,
    };
    Some(format!("Group {} lets {whom} in.", group.name))
}

/// A reference by name, where no other group has this name.
fn named(survey: &Survey, id: &GroupId) -> GroupRef {
    let known = &survey.inventory.groups;
    let name = known.get(id).map(|group| group.name.clone());
    let twins = known.values().filter(|group| Some(&group.name) == name.as_ref()).count();
    match name {
        Some(name) if twins == 1 => GroupRef::Name(name),
        _ => GroupRef::Id(id.clone()),
    }
}
