//! An instance is proved to be gone and its Node is still there: the controller deletes the Node object.

use std::fmt;

use crate::event::Answer;
use crate::model::before::Before;
use crate::model::blocker::Blocker;
use crate::model::call::DeleteNode;
use crate::model::id::InstanceId;
use crate::model::incident::FaultKind;
use crate::model::node::Identity;
use crate::model::violation::ensure;
use crate::observe::cloud::SERVED_WITHIN;
use crate::observe::cluster::{LinkedBy, NodeSeen};
use crate::plan::context::{Case, PlanContext};

use super::invariants::{self, Checked};
use super::{Act, Call, Effectiveness, NoCall, Remedy, Target, facts, gone, no_call, not_seen, seen};

pub(super) const REMEDY: Remedy = Remedy { says: "delete the orphaned Node object", plan, blocks };

fn plan(context: &PlanContext<'_>, case: &Case) -> Result<Call, NoCall> {
    let (_, seen) = facts::machine(context, case)?;
    if case.incident.key.kind != FaultKind::Ghost || !seen.is_gone() {
        return no_call("its instance is not proved to be gone");
    }
    let Some((name, NodeSeen { node, .. })) = context.node(seen) else { return no_call("it has no Node") };
    let (name, uid, boot_id) = (name.clone(), node.uid.clone(), node.boot_id.clone());
    Ok(Call::DeleteNode(DeleteNode { name, uid, boot_id }))
}

/// A Node of another machine, which is there, is no left-over.
fn blocks(context: &PlanContext<'_>, case: &Case, _call: Option<&Call>, blockers: &mut Vec<Blocker>) {
    let Some((_, seen)) = context.seen_of(&case.incident.key.subject) else { return };
    let nodes = seen.nodes.iter().filter_map(|name| context.cluster.nodes.get(name));
    blockers.extend(nodes.filter_map(|node| {
        let (other, by) = context.views().other_machine(&seen.instance.id, node)?;
        let by = match by {
            Identity::Address(address) => format!("address {address}"),
            Identity::Name => "name".to_owned(),
            Identity::SystemUuid | Identity::Agent => "system UUID".to_owned(),
        };
        let text = format!("Node {} has the {by} of {}", node.node.name, other.instance.id);
        Some(Blocker::SharedIdentity(text.into()))
    }));
    // Of a Node that names no instance, an address or a name is all that leads to one. A tenant made a server with the address of
    // a control plane, and deleted it: the control plane's Node was a left-over while it rebooted.
    // And a kubelet that showed the address of a drained machine as its own went off was that one's left-over (seed 8582160).
    let nodes = seen.nodes.iter().filter_map(|name| context.cluster.nodes.get(name));
    // One that showed its UUID was so as well (seed 9302616).
    let is_named = |node: &&NodeSeen| node.link.as_ref().is_some_and(|link| link.by == LinkedBy::ProviderId);
    let others = nodes.filter(|node| !is_named(node)).filter_map(|node| {
        let name = &node.node.name;
        let is_by_hint = node.link.as_ref().is_some_and(|link| link.by > LinkedBy::SystemUuid);
        if is_by_hint && node.first_seen + SERVED_WITHIN < seen.first_seen {
            return Some(format!("Node {name} is older"));
        }
        // By its UUID it is its own, unless it showed another one before.
        let may_be_own = !is_by_hint && node.changed_host.is_none();
        let joined_so = may_be_own || seen.joined.as_ref().map_or(!is_by_hint, |joined| joined == name);
        (!joined_so).then(|| format!("it did not join as Node {name}"))
    });
    blockers.extend(others.map(|text| Blocker::SharedIdentity(text.into())));
}

impl Act for DeleteNode {
    const IS_DESTRUCTIVE: bool = true;

    fn target(&self) -> Target<'_> {
        Target::Node(&self.name)
    }

    fn is_same_change(&self, other: &Self) -> bool {
        self.name == other.name
    }

    fn judge(&self, _before: Option<&Before>, answer: &Answer) -> Effectiveness {
        match answer {
            Answer::Node(None) => seen("read back: the Node is gone"),
            Answer::Node(Some(node)) if node.uid != self.uid => {
                seen("read back: the Node is another one now")
            }
            // A finalizer holds it, which its owner has to end.
            Answer::Node(Some(node)) if node.intent.deleting => seen("read back: the Node is being deleted"),
            Answer::Node(Some(_)) => not_seen("read back: the Node is still there"),
            _ => gone(),
        }
    }

    /// The Node runs on no machine that is there, and cleanups have a share of the hour's rate.
    fn check(&self, context: &PlanContext<'_>) -> Checked {
        let node = context.cluster.nodes.get(&self.name);
        let link = node.and_then(|node| node.link.as_ref());
        let seen = link.and_then(|link| invariants::listed(context, &link.cloud, &link.instance));
        let seen = invariants::known(seen, self)?;
        let uuid = node.and_then(|node| node.node.system_uuid.as_ref());
        let is_there = |id: &InstanceId| {
            let other = context.clouds.values().find_map(|view| view.instances.get(id));
            other.is_some_and(|other| *id != seen.instance.id && other.unlisted.is_none())
        };
        ensure(!uuid.is_some_and(is_there), 1, || format!("{self}: it runs on another machine"))?;
        invariants::may_hurt(context, self, seen, |pool| pool.repair.cleanup)?;
        let (tidied, share) =
            (context.book.tidied_within_hour(context.now), context.roster.limits.cleanups_per_hour());
        ensure(tidied <= share, 5, || format!("{self}: {tidied} cleanups within the hour"))
    }
}

impl fmt::Display for DeleteNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "delete the Node object {}", self.name)
    }
}
