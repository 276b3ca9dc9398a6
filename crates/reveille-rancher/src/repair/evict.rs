//! Evict: the next step on the way from a broken record to none, by a fresh look and the journal.
//!
//! ```text
//!  safeguards hold, twice ─▶ copies ─▶ cordon ─▶ drain ─▶ etcd member, twice ─▶ Node ─▶ gone, twice ─▶ records ─▶ gone, twice
//!  └──────────── before the Node: any surprise ends it ────────────┘   └── after it: forward only, and never out of order; a
//!                                                                         person at its end
//! ```
//!
//! Before the Node is deleted every safeguard is asked at every look. After the deletion there is no way back. The repair then
//! waits until Node and records are gone, and stops where another client changes one of them.

use reveille_core::model::time::{Span, Time};

use super::journal::{Journal, Next, Seen};
use super::observation::{Observation, PodKind, PodRef};
use super::safeguard::{Safeguard, stands};
use super::safeguards::{against_evict, of_another};
use super::{Act, ActKind, Closing, Order, Pace};
use crate::model::Role;

/// A drain that takes longer is left to a person.
const DRAIN_WITHIN: Span = Span::from_min(15);
/// A deletion that takes longer waits for something that we do not do for it.
const DELETION_WITHIN: Span = Span::from_min(10);
/// After a member was removed, etcd may be of two minds for so long.
const ELECTION_WITHIN: Span = Span::from_min(2);
/// Evicted at once.
const PODS_AT_ONCE: usize = 20;

/// What comes next.
pub(super) fn next(
    order: &Order,
    pace: Pace,
    journal: &Journal,
    seen: &mut Seen,
    now: Time,
    observation: &Observation,
) -> Next {
    // An intent whose call has no known outcome, beside a Node that is still the same, counts as never begun, with every
    // safeguard.
    let is_same = observation.node(order).is_some_and(|node| journal.node_uid() == Some(node.uid.as_str()));
    let is_undone = is_same && !journal.was_taken(ActKind::DeleteNode);
    if journal.may_have_begun(ActKind::DeleteNode) && !is_undone {
        return after(order, pace, journal, seen, now, observation);
    }
    let against = against_evict(order, observation, &journal.ips(order, observation));
    if !against.is_empty() {
        seen.agreed_since = None;
        seen.memberless_since = None;
        // The removal of a member may have begun an election: for a while the members do not agree on a leader.
        if observation.members.is_none()
            && journal.last(ActKind::RemoveMember).is_some_and(|at| now.since(at) < ELECTION_WITHIN)
        {
            return Next::Wait("for etcd's members to be read again".to_owned());
        }
        return Next::Stop(against.join("; "));
    }
    // The safeguards say that it is there.
    let Some(node) = observation.node(order) else { return Next::Stop("its Node is not there".to_owned()) };
    if stands(Safeguard::SameNode) && journal.node_uid().is_some_and(|uid| uid != node.uid.as_str()) {
        return Next::Stop("its Node is another one than the repair was begun for".to_owned());
    }
    if !seen.agrees(now, pace) && stands(Safeguard::SecondLook) {
        return Next::Wait("for a second look that agrees".to_owned());
    }
    if stands(Safeguard::CopyFirst) && !journal.has_done(ActKind::Save) {
        let records = observation.records(order, &journal.ips(order, observation));
        return Next::Act(Act::Save { records: records.iter().map(|record| record.name.clone()).collect() });
    }
    if stands(Safeguard::CordonFirst) && !node.unschedulable {
        return Next::Act(Act::Cordon { uid: node.uid.as_str().to_owned() });
    }
    let moving: Vec<PodRef> = observation
        .pods
        .iter()
        .flatten()
        .filter(|pod| pod.kind != PodKind::Staying)
        .map(|pod| pod.at.clone())
        .take(PODS_AT_ONCE)
        .collect();
    if stands(Safeguard::DrainFirst) && !moving.is_empty() {
        if journal.first(ActKind::Evict).is_some_and(|at| now.since(at) > DRAIN_WITHIN) {
            return Next::Stop(format!("{} pod(s) have not left it for a quarter of an hour", moving.len()));
        }
        // Asking again each time would spend the budget of writes: what was asked is given time to go.
        let asked_every = Span::from_ms(pace.apart.ms * 2);
        if journal.last(ActKind::Evict).is_some_and(|at| now.since(at) < asked_every) {
            return Next::Wait("for pods to leave".to_owned());
        }
        return Next::Act(Act::Evict { pods: moving });
    }
    if stands(Safeguard::MemberFirst) && node.roles.contains(&Role::Etcd) {
        if let Some(member) = observation.member(&order.node, &journal.ips(order, observation)) {
            seen.memberless_since = None;
            return Next::Act(Act::RemoveMember { id: member.id.clone() });
        }
        let since = *seen.memberless_since.get_or_insert(now);
        let is_new = now.since(since) < pace.apart && stands(Safeguard::MemberStaysAway);
        if journal.may_have_begun(ActKind::RemoveMember) && is_new {
            return Next::Wait("for a second look that its member of etcd stays away".to_owned());
        }
    }
    Next::Act(Act::DeleteNode { uid: node.uid.as_str().to_owned() })
}

/// The Node was deleted, or may have been.
fn after(
    order: &Order,
    pace: Pace,
    journal: &Journal,
    seen: &mut Seen,
    now: Time,
    observation: &Observation,
) -> Next {
    if observation.sample.nodes.is_none()
        || observation.sample.records.is_none()
        || observation.sample.garbled > 0
    {
        // What was not seen agrees with nothing.
        (seen.gone_since, seen.clear_since) = (None, None);
        return Next::Wait("for Nodes and records to be read whole".to_owned());
    }
    if let Some(node) = observation.node(order).filter(|_| stands(Safeguard::NodeBack)) {
        (seen.gone_since, seen.clear_since) = (None, None);
        if journal.node_uid() != Some(node.uid.as_str()) {
            return Next::Stop(
                "its Node came back: its kubelet runs. Stop the kubelet, or clean the machine, first"
                    .to_owned(),
            );
        }
        let late = journal.last(ActKind::DeleteNode).is_some_and(|at| now.since(at) > DELETION_WITHIN);
        return if late {
            Next::Stop("its Node does not go: a finalizer holds it".to_owned())
        } else {
            Next::Wait("for the Node to go".to_owned())
        };
    }
    if stands(Safeguard::NodesListed)
        && observation.sample.nodes.as_ref().is_some_and(std::collections::BTreeMap::is_empty)
    {
        // It was not the last of its roles, so that others are there.
        (seen.gone_since, seen.clear_since) = (None, None);
        return Next::Wait("for Nodes to be listed: none at all proves of none that it is gone".to_owned());
    }
    let gone_since = *seen.gone_since.get_or_insert(now);
    if stands(Safeguard::NodeStaysAway) && now.since(gone_since) < pace.apart {
        return Next::Wait("for a second look that the Node stays away".to_owned());
    }
    if let Some(busy) = observation.unquiet().filter(|_| stands(Safeguard::QuietAfter)) {
        return Next::Wait(busy);
    }
    let records = observation.records(order, &journal.ips(order, observation));
    if let Some((record, node)) = observation.anothers(order, &records) {
        return Next::Stop(of_another(record, node));
    }
    if let Some(record) = records.iter().find(|record| record.deleting.is_none()) {
        seen.clear_since = None;
        return Next::Act(Act::DeleteRecord { record: record.name.clone(), uid: record.uid.clone() });
    }
    if let Some(record) = records.first() {
        seen.clear_since = None;
        if journal.last(ActKind::DeleteRecord).is_none_or(|at| now.since(at) > DELETION_WITHIN) {
            let held = record.finalizers.join(", ");
            return Next::Stop(format!(
                "the record {} does not go; it waits for {held}, which is not stripped",
                record.name
            ));
        }
        return Next::Wait(format!("for the record {} to go", record.name));
    }
    let clear_since = *seen.clear_since.get_or_insert(now);
    if stands(Safeguard::RecordsStayAway) && now.since(clear_since) < pace.apart {
        return Next::Wait("for a second look that no record of it is left".to_owned());
    }
    Next::Close(Closing::HandedOver)
}
