//! The reasons that block a repair, checked before each step; and the proposal, which is all of them at once.
//!
//! Every answer comes from one sight. An empty list permits the next step; the caller has taken the sight a moment ago.

use std::collections::BTreeSet;

use reveille_core::model::time::Span;

use super::draft::{Draft, draft};
use super::observation::{Member, Observation, PodKind};
use super::safeguard::{Safeguard, stands};
use super::{Order, Path, etcd};
use crate::judge::{Predicate, judge};
use crate::model::{Node, Record, Role};

/// A snapshot of etcd is younger than this.
const SNAPSHOT_MAX: Span = Span::from_min(24 * 60);

/// What would be done, and what stands against it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proposal {
    /// Steps, in order, in words.
    pub steps: Vec<String>,
    /// What stands against it; nothing is begun unless there is none.
    pub against: Vec<String>,
    /// What an edit in place writes.
    pub draft: Option<Draft>,
}

/// What an order comes to, by one look.
pub fn propose(order: &Order, observation: &Observation) -> Proposal {
    let ips = node_ips(observation.node(order));
    let records: Vec<String> =
        observation.records(order, &ips).iter().map(|record| record.name.0.clone()).collect();
    let records = if records.is_empty() { "(none)".to_owned() } else { records.join(", ") };
    let mut against: Vec<String> = observation.hands_off.iter().cloned().collect();
    match order.path {
        Path::Evict => {
            against.extend(against_evict(order, observation, &ips));
            let is_etcd = observation.node(order).is_some_and(|node| node.roles.contains(&Role::Etcd));
            let mut steps = vec![
                format!("keep copies of the records {records}, without their secrets"),
                format!("cordon and drain {}, within its disruption budgets", order.node),
            ];
            if is_etcd {
                steps.push(member_step(order, observation, &ips));
            }
            steps.push(format!("delete the Node {}; look twice, 30 s apart, that it stays away", order.node));
            steps.push(format!(
                "delete the records {records}; look twice that none is left of this name or these addresses"
            ));
            steps.push(HAND_OVER.to_owned());
            Proposal { steps, against, draft: None }
        }
        Path::Mend => {
            let (more, draft) = against_mend(order, observation, &ips);
            against.extend(more);
            let steps = vec![
                format!("keep copies of the record {records}, without its secrets"),
                "one PUT with customConfig and rkeNode together, refused by the API server if the record was written meanwhile".to_owned(),
                "watch: a plan comes and the cluster is quiet, in two looks 30 s apart; otherwise take both out again".to_owned(),
            ];
            Proposal { steps, against, draft }
        }
    }
}

fn member_step(order: &Order, observation: &Observation, ips: &BTreeSet<String>) -> String {
    let left = |members: &Vec<Member>| members.len().saturating_sub(1);
    let (which, left) = match (observation.member(&order.node, ips), &observation.members) {
        (Some(member), Some(members)) => {
            let lead = if member.is_leader { "; it leads, and hands over first" } else { "" };
            (format!(" ({}, {})", member.called(), member.id), format!("; {} are left{lead}", left(members)))
        }
        _ => (String::new(), String::new()),
    };
    format!(
        "remove its member of etcd{which}, asked of another member, every other being well{left}; look twice that it stays away"
    )
}

/// What a person does when Node and records are gone.
pub const HAND_OVER: &str = "then a person cleans the machine (identity first: is it this cluster's?) and runs the current registration \
command with the same roles; reveille rancher inspect says when it is whole";

pub(super) fn node_ips(node: Option<&Node>) -> BTreeSet<String> {
    node.map(|node| node.internal_ips().into_iter().map(str::to_owned).collect()).unwrap_or_default()
}

/// What stands against anything.
fn against_any(order: &Order, observation: &Observation, ips: &BTreeSet<String>) -> Vec<String> {
    let mut against: Vec<String> =
        observation.unquiet().into_iter().filter(|_| stands(Safeguard::Quiet)).collect();
    if stands(Safeguard::RecordsRead)
        && (observation.sample.records.is_none() || observation.sample.garbled > 0)
    {
        against.push("not all records could be read".to_owned());
    }
    if observation.sample.nodes.is_none() {
        against.push("Nodes could not be read".to_owned());
        return against;
    }
    if observation.node(order).is_none() {
        against.push(format!("there is no Node {}", order.node));
    }
    match observation.snapshot_age {
        Some(age) if age < SNAPSHOT_MAX => {}
        _ if !stands(Safeguard::Snapshot) => {}
        Some(_) => against.push("the newest complete snapshot of etcd is older than a day".to_owned()),
        None => against.push("there is no complete snapshot of etcd that could be read".to_owned()),
    }
    let records = observation.records(order, ips);
    if stands(Safeguard::Faulty) && !is_found(observation, &records) {
        against.push("none of P1 to P4 holds of it: there is nothing to mend".to_owned());
    }
    let is_elsewhere = |record: &&Record| {
        !record.addresses.is_empty() && !record.internal_ips().iter().any(|ip| ips.contains(*ip))
    };
    let elsewhere = records.iter().copied().find(is_elsewhere);
    if let Some(other) = elsewhere.filter(|_| stands(Safeguard::SameMachine)) {
        against.push(format!(
            "the record {} has other addresses: it may be another machine of the same name",
            other.name
        ));
    }
    let anothers = observation.anothers(order, &records).filter(|_| stands(Safeguard::SameMachine));
    against.extend(anothers.map(|(record, node)| of_another(record, node)));
    against
}

/// It shares an address with a Node that is there under another name.
pub(super) fn of_another(record: &Record, node: &Node) -> String {
    format!(
        "the record {} has an address of it and is of the Node {}, which is there: a record whose Node exists is never touched",
        record.name, node.name
    )
}

/// Whether one of the four predicates that a repair rests on holds of these records.
pub(super) fn is_found(observation: &Observation, records: &[&Record]) -> bool {
    let rests_on = [Predicate::Mirror, Predicate::NoOwner, Predicate::NoRkeNode, Predicate::Duplicate];
    judge(&observation.sample, None).iter().any(|finding| {
        rests_on.contains(&finding.predicate)
            && records.iter().any(|record| finding.records.contains(&record.name))
    })
}

/// What stands against taking it out.
pub(super) fn against_evict(order: &Order, observation: &Observation, ips: &BTreeSet<String>) -> Vec<String> {
    let mut against = against_any(order, observation, ips);
    against.extend(tied_by_role(order, observation, ips));
    against.extend(tied_by_data(order, observation));
    against
}

/// It is the last of a role, or etcd needs it.
fn tied_by_role(order: &Order, observation: &Observation, ips: &BTreeSet<String>) -> Vec<String> {
    let mut against = Vec::new();
    let Some(node) = observation.node(order) else { return against };
    // A Node may have lost a label that its record still says: who runs an API server runs it all the same.
    let records = observation.records(order, ips);
    let roles: BTreeSet<Role> =
        node.roles.iter().chain(records.iter().flat_map(|record| &record.roles)).copied().collect();
    for role in &roles {
        if stands(Safeguard::LastOfRole) && observation.others(order, *role) == 0 {
            against.push(format!("it is the last {} that is well", role.word()));
        }
    }
    against.extend(tied_by_etcd(order, observation, node, ips));
    against
}

/// etcd needs it, or it cannot be told which member it is.
fn tied_by_etcd(
    order: &Order,
    observation: &Observation,
    node: &Node,
    ips: &BTreeSet<String>,
) -> Vec<String> {
    let (own, homeless) = observation.members_of(&order.node, ips);
    if !node.roles.contains(&Role::Etcd) {
        let records = observation.records(order, ips);
        let is_told = !own.is_empty() || records.iter().any(|record| record.roles.contains(&Role::Etcd));
        let text = "its Node has no role of etcd, and its record or a member of etcd says that it holds it";
        let is_told = is_told && stands(Safeguard::MemberKnown);
        return if is_told { vec![text.to_owned()] } else { Vec::new() };
    }
    let Some(members) = &observation.members else {
        let unread = observation.sample.unread.iter().find(|unread| unread.what == etcd::WHAT);
        let why = unread.map_or_else(
            || ": the roster's spec.rancher.etcd does not say where they are".to_owned(),
            |unread| format!(": {}", unread.why),
        );
        let against = format!("it holds etcd, and etcd's members could not be read{why}");
        return if stands(Safeguard::MembersRead) { vec![against] } else { Vec::new() };
    };
    let called =
        |members: &[&Member]| members.iter().map(|member| member.called()).collect::<Vec<_>>().join(", ");
    match own.as_slice() {
        [] if !homeless.is_empty() && stands(Safeguard::MemberKnown) => {
            vec![format!(
                "no member of etcd is known to be its own, and these are no Node's: {}",
                called(&homeless)
            )]
        }
        [_, ..] | [] if !stands(Safeguard::MembersWell) => Vec::new(),
        [] => etcd::against_removal(members, "").into_iter().take(1).collect(),
        [one] => etcd::against_removal(members, &one.id),
        several if !stands(Safeguard::MemberKnown) && !several.is_empty() => Vec::new(),
        several => vec![format!("several members of etcd may be its own: {}", called(several))],
    }
}

/// Something on it cannot go elsewhere.
fn tied_by_data(order: &Order, observation: &Observation) -> Vec<String> {
    let Some(pods) = &observation.pods else {
        let against = vec!["the pods on it could not be read".to_owned()];
        return if stands(Safeguard::PodsRead) { against } else { Vec::new() };
    };
    let named = |kind: PodKind| -> Vec<String> {
        let of_kind = pods.iter().filter(|pod| pod.kind == kind);
        of_kind.map(|pod| format!("{}/{}", pod.at.namespace, pod.at.name)).take(5).collect()
    };
    let Some(volumes) = &observation.volumes else {
        let against = "persistent volumes could not be read (reveille rbac --rancher downstream --repair has the right)";
        let against = vec![against.to_owned()];
        return if stands(Safeguard::PodsRead) { against } else { Vec::new() };
    };
    let mut against = Vec::new();
    if stands(Safeguard::LocalData) && !volumes.is_empty() && !order.local_data {
        let listed = volumes.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
        against.push(format!("volumes are on it alone (--accept-local-data-loss): {listed}"));
    }
    let (local, unmanaged) = (named(PodKind::LocalData), named(PodKind::Unmanaged));
    if stands(Safeguard::LocalData) && !local.is_empty() && !order.local_data {
        against.push(format!("pods have data on it alone (--accept-local-data-loss): {}", local.join(", ")));
    }
    if stands(Safeguard::Unmanaged) && !unmanaged.is_empty() {
        against.push(format!("no controller would create these pods again: {}", unmanaged.join(", ")));
    }
    against
}

/// What stands against an edit in place, and what it would write.
pub(super) fn against_mend(
    order: &Order,
    observation: &Observation,
    ips: &BTreeSet<String>,
) -> (Vec<String>, Option<Draft>) {
    let mut against = against_any(order, observation, ips);
    if stands(Safeguard::SaferWay)
        && against.is_empty()
        && tied_by_role(order, observation, ips).is_empty()
        && tied_by_data(order, observation).is_empty()
    {
        against.push(
            "it can be taken out and in again, which is the safer way: reveille rancher evict".to_owned(),
        );
    }
    let records = observation.records(order, ips);
    let only = records.len() == 1 || !stands(Safeguard::OneRecord);
    let Some(record) = records.first().filter(|_| only) else {
        against.push(format!("it has {} records: only a machine with one is mended in place", records.len()));
        return (against, None);
    };
    if stands(Safeguard::NotLeaving) && record.deleting.is_some() {
        against.push(format!("the record {} is on its way out", record.name));
    }
    match draft(order, observation, record) {
        Ok(draft) => (against, Some(draft)),
        Err(more) => {
            against.extend(more);
            (against, None)
        }
    }
}
