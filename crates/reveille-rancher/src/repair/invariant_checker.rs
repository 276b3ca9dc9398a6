//! The rules of a repair, held against every step from a record of its own.
//!
//! An [`InvariantChecker`] is shown every event that goes in and every effect that comes out. It never looks into the
//! escalation, asks none of its safeguards, and knows only what a look showed. What it says is the breach; silence is
//! consent. Tests and the simulator ask it after every step.
//!
//! Here is the record, and what concerns the course of a repair: order, waits, tries. What must be so before anything is
//! changed at all stands in [`conditions`].

mod conditions;

use std::collections::{BTreeMap, BTreeSet};

use reveille_core::model::time::Time;

use super::mend::REPLACED;
use super::observation::{Observation, PodKind};
use super::{Act, ActKind, Closing, Effect, Event, Line, Order, Outcome, Pace};
use crate::model::{Record, Role};

/// One thing is tried so often by one process.
const TRIES_MAX: usize = 3;

/// What the checker has seen.
pub struct InvariantChecker {
    order: Order,
    pace: Pace,
    newest: Option<Observation>,
    /// Since when every look of this process has shown the Node, and nothing that disturbs.
    undisturbed: Option<Time>,
    /// Since when every look has shown no Node, by our clock.
    without_node: Option<Time>,
    /// The same of its member of etcd.
    without_member: Option<Time>,
    /// The same of its records.
    without_records: Option<Time>,
    /// Since when every look has shown an edit that holds.
    holding: Option<Time>,
    member_removed: bool,
    ips: BTreeSet<String>,
    was_etcd: bool,
    /// The uid of the Node that it was begun for.
    begun_for: Option<String>,
    durable: BTreeMap<u32, Act>,
    pending: BTreeMap<u32, Line>,
    begun: BTreeSet<u32>,
    /// What this process did, in order.
    tried: Vec<Act>,
    refused: bool,
    saved: bool,
    node_deleted: bool,
    /// When an edit was meant last.
    written_at: Option<Time>,
    writes_taken: u32,
    putting_back: bool,
}

impl InvariantChecker {
    /// Nothing seen yet.
    pub fn new(order: Order, pace: Pace) -> Self {
        Self {
            order,
            pace,
            newest: None,
            undisturbed: None,
            without_node: None,
            without_member: None,
            without_records: None,
            holding: None,
            member_removed: false,
            ips: BTreeSet::new(),
            was_etcd: false,
            begun_for: None,
            durable: BTreeMap::new(),
            pending: BTreeMap::new(),
            begun: BTreeSet::new(),
            tried: Vec::new(),
            refused: false,
            saved: false,
            node_deleted: false,
            written_at: None,
            writes_taken: 0,
            putting_back: false,
        }
    }

    /// The process is gone: what was not durable never was, and what the process saw is lost.
    pub fn crashed(&mut self) {
        self.pending.clear();
        self.blind();
        self.tried.clear();
        self.refused = false;
    }

    fn blind(&mut self) {
        self.newest = None;
        for since in [
            &mut self.undisturbed,
            &mut self.without_node,
            &mut self.without_member,
            &mut self.without_records,
            &mut self.holding,
        ] {
            *since = None;
        }
    }

    /// An event that goes in.
    pub fn hear(&mut self, now: Time, event: &Event) {
        match event {
            Event::Looked { seen, .. } => match &**seen {
                Ok(observation) => self.look(now, observation),
                Err(_) => self.blind(),
            },
            Event::Recorded { line } => {
                if let Some(Line::Intent { number, what, .. }) = self.pending.remove(line) {
                    self.durable.insert(number, what);
                }
            }
            Event::Done { number, outcome } => self.done(*number, outcome),
            Event::Tick => {}
        }
    }

    fn done(&mut self, number: u32, outcome: &Outcome) {
        self.refused |= matches!(outcome, Outcome::Refused { .. });
        let is_so = matches!(outcome, Outcome::Accepted | Outcome::AlreadySo);
        let may_be_so = is_so || matches!(outcome, Outcome::Unknown { .. });
        match self.durable.get(&number).map(Act::kind) {
            Some(ActKind::Save) => self.saved |= is_so,
            Some(ActKind::DeleteNode) => self.node_deleted |= may_be_so,
            Some(ActKind::RemoveMember) => self.member_removed |= may_be_so,
            Some(ActKind::Write) if is_so => self.writes_taken += 1,
            _ => {}
        }
    }

    fn look(&mut self, now: Time, observation: &Observation) {
        let sample = &observation.sample;
        if let Some(node) = observation.node(&self.order) {
            self.ips.extend(node.internal_ips().into_iter().map(str::to_owned));
            self.was_etcd |= node.roles.contains(&Role::Etcd);
        }
        let is_there = observation.node(&self.order).is_some();
        // A cluster that shows no Node at all proves of none that it is gone.
        let is_away = !is_there && sample.nodes.as_ref().is_some_and(|nodes| !nodes.is_empty());
        let are_read = sample.records.is_some() && sample.garbled == 0;
        let is_disturbed =
            observation.hands_off.is_some() || observation.unquiet().is_some() || !are_read || !is_there;
        let is_memberless =
            observation.members.is_some() && observation.member(&self.order.node, &self.ips).is_none();
        let is_recordless = are_read && is_away && observation.records(&self.order, &self.ips).is_empty();
        let holds = !is_disturbed && self.is_whole(observation);
        for (is_so, since) in [
            (!is_disturbed, &mut self.undisturbed),
            (is_away, &mut self.without_node),
            (is_memberless, &mut self.without_member),
            (is_recordless, &mut self.without_records),
            (holds, &mut self.holding),
        ] {
            *since = if is_so { since.or(Some(now)) } else { None };
        }
        self.newest = Some(observation.clone());
    }

    /// It has one record, with both parts and a plan.
    fn is_whole(&self, observation: &Observation) -> bool {
        let is_whole = |record: &&Record| {
            let has_parts = record.custom_config.is_some() && record.rke_node.is_some();
            has_parts && record.has_plan && record.deleting.is_none()
        };
        let own = observation.records(&self.order, &self.ips);
        own.len() == 1 && own.iter().all(is_whole)
    }

    fn lasts(&self, now: Time, since: Option<Time>) -> bool {
        since.is_some_and(|since| now.since(since) >= self.pace.apart)
    }

    /// An effect that comes out: the rules that it breaks.
    pub fn judge(&mut self, now: Time, effect: &Effect) -> Vec<String> {
        match effect {
            Effect::Record { line, what } => {
                let breaches = match what {
                    Line::Closed { how } => self.closing(now, how),
                    // Durable or not: a process that finds it not to be says it again.
                    Line::Begun { node_uid, .. } => {
                        self.begun_for = Some(node_uid.clone());
                        Vec::new()
                    }
                    _ => Vec::new(),
                };
                self.pending.insert(*line, what.clone());
                breaches
            }
            Effect::Do { number, act } => {
                let mut breaches = self.act(now, act);
                if self.durable.get(number) != Some(act) {
                    breaches.push(format!("{}: its intent is not durable", act.words()));
                }
                if !self.begun.insert(*number) {
                    breaches.push(format!("{}: carried out twice under one number", act.words()));
                }
                breaches
            }
            _ => Vec::new(),
        }
    }

    fn closing(&self, now: Time, how: &Closing) -> Vec<String> {
        let (is_proved, rule) = match how {
            Closing::HandedOver => (self.lasts(now, self.without_records), "a record of it may be left"),
            Closing::Mended => (self.lasts(now, self.holding), "it is not proved that the edit holds"),
            Closing::PutBack | Closing::Abandoned => (true, ""),
        };
        if is_proved { Vec::new() } else { vec![format!("closed: {rule}")] }
    }

    fn act(&mut self, now: Time, act: &Act) -> Vec<String> {
        let Some(observation) = self.newest.clone() else {
            return vec![format!("{}: done blind", act.words())];
        };
        let mut broken = self.details(now, act, &observation);
        if self.changes_first(act) {
            broken.extend(self.conditions(act, &observation));
        }
        broken.extend(self.course(now, act));
        self.tried.push(act.clone());
        broken.into_iter().map(|rule| format!("{}: {rule}", act.words())).collect()
    }

    /// Steps before there is no way back, by which a machine that is as it was begins to be another.
    fn changes_first(&self, act: &Act) -> bool {
        let kinds =
            [ActKind::Cordon, ActKind::Evict, ActKind::RemoveMember, ActKind::DeleteNode, ActKind::Write];
        kinds.contains(&act.kind())
    }

    /// What was done before, and how often.
    fn course(&self, now: Time, act: &Act) -> Vec<&'static str> {
        let mut broken = Vec::new();
        let mut must = |holds: bool, rule: &'static str| {
            if !holds {
                broken.push(rule);
            }
        };
        must(!self.refused, "done after something was refused");
        let same = |before: &&Act| match (before, act) {
            (Act::DeleteRecord { uid: a, .. }, Act::DeleteRecord { uid: b, .. }) => a == b,
            (Act::Evict { .. }, _) => false,
            _ => before.kind() == act.kind(),
        };
        must(self.tried.iter().filter(same).count() < TRIES_MAX, "tried too often");
        if self.changes_first(act) {
            must(self.saved, "no copy is kept");
            must(self.lasts(now, self.undisturbed), "no second look agreed");
        }
        broken
    }

    fn details(&mut self, now: Time, act: &Act, observation: &Observation) -> Vec<&'static str> {
        let mut broken = Vec::new();
        let mut must = |holds: bool, rule: &'static str| {
            if !holds {
                broken.push(rule);
            }
        };
        must(observation.hands_off.is_none(), "people said hands off");
        let changes = !matches!(act, Act::Save { .. } | Act::PutBack { .. });
        must(!changes || observation.unquiet().is_none(), "the cluster is busy");
        let node = observation.node(&self.order);
        let found = |name| observation.sample.records.iter().flatten().find(|(other, _)| *other == name);
        let member = observation.member(&self.order.node, &self.ips);
        match act {
            Act::Cordon { uid } => {
                must(self.begun_for.as_ref() == Some(uid), "not the Node it was begun for")
            }
            Act::RemoveMember { .. } => {
                let members = observation.members.as_deref().unwrap_or_default();
                let well = members.iter().filter(|other| Some(*other) != member && other.healthy).count();
                must(well > members.len() / 2, "etcd loses its quorum");
                must(node.is_some(), "the Node went before the member");
            }
            Act::DeleteNode { uid } => {
                must(node.is_some_and(|node| node.uid.as_str() == uid), "it is not the Node that was seen");
                must(self.begun_for.as_ref() == Some(uid), "not the Node it was begun for");
                must(node.is_some_and(|node| node.unschedulable), "it is not cordoned");
                let stays = |pod: &super::observation::Pod| pod.kind == PodKind::Staying;
                must(observation.pods.iter().flatten().all(stays), "pods are still on it");
                let is_member = member.is_some() || observation.members.is_none();
                must(!self.was_etcd || !is_member, "the member of etcd is still there");
                let stays_away = self.lasts(now, self.without_member);
                must(!self.member_removed || stays_away, "its member of etcd is not proved gone");
                must(self.written_at.is_none(), "both ways in one repair");
            }
            Act::DeleteRecord { record, uid } => {
                let is_away = self.lasts(now, self.without_node) && node.is_none();
                must(is_away, "its Node is not proved gone");
                must(
                    found(record).is_some_and(|(_, found)| found.uid == *uid),
                    "not the record that was seen",
                );
                let names = |found: &Record| {
                    observation.sample.nodes.iter().flatten().any(|(name, _)| found.names(name))
                };
                must(
                    !found(record).is_some_and(|(_, found)| names(found)),
                    "a Node that is there is its own",
                );
                must(self.written_at.is_none(), "both ways in one repair");
            }
            Act::Write { record, uid, revision, draft } => {
                must(self.writes_taken == 0, "written again although it was taken");
                self.written_at = Some(now);
                let fits = |found: &Record| found.uid == *uid && found.revision == *revision;
                must(
                    found(record).is_some_and(|(_, found)| fits(found)),
                    "not on the revision that was seen",
                );
                let is_fact = node.is_some_and(|node| {
                    node.roles == draft.roles
                        && node.addresses.iter().any(|known| known.address == draft.address)
                });
                must(is_fact, "what it writes is not what the Node says");
                must(!self.node_deleted, "both ways in one repair");
            }
            Act::PutBack { record, draft, .. } => {
                must(
                    found(record).is_some_and(|(_, found)| draft.is_in(found)),
                    "what stands there is not ours",
                );
                let conditions = &observation.sample.cluster.conditions;
                let is_replaced = conditions.values().any(|condition| condition.message.contains(REPLACED));
                let is_late = self.written_at.is_some_and(|at| now.since(at) > self.pace.plan_within);
                must(is_replaced || is_late || self.putting_back, "taken back before its time");
                let has_plan = found(record).is_some_and(|(_, found)| found.has_plan);
                let is_applied =
                    has_plan && !conditions.values().any(|condition| condition.status == "False");
                must(is_replaced || self.putting_back || !is_applied, "taken back while its plan is applied");
                self.putting_back = true;
            }
            Act::Save { .. } | Act::Evict { .. } => {}
        }
        broken
    }
}
