//! What an unfinished repair leaves behind, for the person who completes it by hand.
//!
//! ```text
//!  journal ─▶ steps, each with how it ended ─┐
//!  a look ─▶ what is so now ──────────────┴▶ what is left to do by hand, in the order that is safe
//! ```
//!
//! The journal holds the intents and the look holds their results: where they differ, the look is right.
//! Without a look the module says nothing of the present state. It changes nothing.

use reveille_core::model::time::Time;

use super::journal::Journal;
use super::observation::Observation;
use super::safeguards::HAND_OVER;
use super::{ActKind, Line, Order, Outcome, Path};
use crate::model::{Record, Role};

/// A step that was meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// When, by the clock of the process that recorded the intent.
    pub at: Time,
    /// What.
    pub what: String,
    /// How it ended, in words.
    pub ended: String,
}

/// What a repair leaves behind.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Aftermath {
    /// What was meant, in order.
    pub steps: Vec<Step>,
    /// What is so now, as far as it was looked at.
    pub now: Vec<String>,
    /// What is left to a person, in order.
    pub left: Vec<String>,
}

/// What the lines of an open repair and a look come to.
pub fn aftermath(order: &Order, lines: &[Line], observation: Option<&Observation>) -> Aftermath {
    let journal = Journal::with(lines.to_vec());
    let steps =
        journal.steps().map(|(at, act, outcome)| Step { at, what: act.words(), ended: ended(outcome) });
    let steps = steps.collect();
    let Some(observation) = observation else {
        let left = vec![
            "look at the Node and at the records before anything else: reveille rancher inspect".to_owned(),
        ];
        return Aftermath { steps, now: Vec::new(), left };
    };
    let (now, left) = (so_now(order, &journal, observation), left(order, &journal, observation));
    Aftermath { steps, now, left }
}

fn ended(outcome: Option<&Outcome>) -> String {
    let unknown = || "may have been done: the repair ended before it noted the result".to_owned();
    outcome.map_or_else(unknown, Outcome::words)
}

fn so_now(order: &Order, journal: &Journal, observation: &Observation) -> Vec<String> {
    let mut now = Vec::new();
    let ips = journal.ips(order, observation);
    now.push(match observation.node(order) {
        None => format!("the Node {} is not there", order.node),
        Some(node) if journal.node_uid().is_some_and(|uid| uid != node.uid.as_str()) => {
            format!("the Node {} is there, and is another one: its kubelet registered again", order.node)
        }
        Some(node) if node.unschedulable => {
            format!("the Node {} is there, and takes no new pods", order.node)
        }
        Some(_) => format!("the Node {} is there", order.node),
    });
    if journal.had_role(Role::Etcd) {
        now.push(match (&observation.members, observation.member(&order.node, &ips)) {
            (None, _) => "whether it is a member of etcd is not known: members were not read".to_owned(),
            (Some(members), None) => format!("it is no member of etcd, which has {}", members.len()),
            (Some(_), Some(member)) => {
                format!("its member of etcd is there: {} ({})", member.called(), member.id)
            }
        });
    }
    let records = observation.records(order, &ips);
    if records.is_empty() {
        now.push("it has no record".to_owned());
    }
    now.extend(records.into_iter().map(|record| of_record(journal, record)));
    now
}

fn of_record(journal: &Journal, record: &Record) -> String {
    let parts = match (&record.custom_config, &record.rke_node) {
        (None, None) => "has neither customConfig nor rkeNode",
        _ if journal.written().is_some_and(|(_, draft)| draft.is_in(record)) => "holds what was written",
        (Some(_), Some(_)) => "has customConfig and rkeNode",
        _ => "has one of customConfig and rkeNode",
    };
    let deleting = if record.deleting.is_some() { ", and is on its way out" } else { "" };
    format!("the record {} {parts}{deleting}", record.name)
}

fn left(order: &Order, journal: &Journal, observation: &Observation) -> Vec<String> {
    let ips = journal.ips(order, observation);
    let records = observation.records(order, &ips);
    match order.path {
        Path::Evict => left_of_evict(order, journal, observation, &records),
        Path::Mend => left_of_mend(journal, &records),
    }
}

fn left_of_evict(
    order: &Order,
    journal: &Journal,
    observation: &Observation,
    records: &[&Record],
) -> Vec<String> {
    let mut left = Vec::new();
    if let Some(node) = observation.node(order) {
        if journal.node_uid().is_some_and(|uid| uid != node.uid.as_str()) {
            left.push(
                "delete no record: the Node is there. reveille rancher inspect says what is wrong by now"
                    .to_owned(),
            );
            return left;
        }
        let is_out = observation.members.is_some()
            && observation.member(&order.node, &journal.ips(order, observation)).is_none();
        if journal.may_have_begun(ActKind::RemoveMember) && is_out {
            left.push(
                "its member of etcd is out and its Node is not: etcd has one member less until the machine is registered again. \
                 reveille rancher evict goes on from here, and is the better end"
                    .to_owned(),
            );
        }
        if journal.may_have_begun(ActKind::Cordon) && node.unschedulable {
            left.push(format!("kubectl uncordon {}, when pods may come back", order.node));
        }
        return left;
    }
    for record in records {
        left.push(match record.deleting {
            None => format!(
                "while no Node of this name comes back: delete the record {} in Rancher's cluster",
                record.name
            ),
            Some(_) => format!(
                "wait until the record {} is gone; it waits for {}, which is not stripped",
                record.name,
                record.finalizers.join(", ")
            ),
        });
    }
    left.push(HAND_OVER.to_owned());
    left
}

fn left_of_mend(journal: &Journal, records: &[&Record]) -> Vec<String> {
    let Some((name, draft)) = journal.written() else { return Vec::new() };
    match records.iter().find(|record| record.name == *name) {
        Some(record) if draft.is_in(record) => vec![format!(
            "watch whether a plan comes to {name} and the cluster is quiet; otherwise take customConfig and rkeNode out again, \
             both in one edit"
        )],
        Some(record) if record.custom_config.is_some() || record.rke_node.is_some() => {
            vec![format!("look at {name}: what stands in it is not what was written")]
        }
        _ => Vec::new(),
    }
}
