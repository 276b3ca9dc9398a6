//! The rules of a repair, held against every step from a book of its own.
//!
//! A [`Witness`] is shown every event that goes in and every effect that comes out. It never looks into the ladder, asks
//! none of its guards, and knows only what a look showed. What it says is the breach; silence is consent. Tests ask it after
//! every step.

use std::collections::{BTreeMap, BTreeSet};

use reveille_core::model::time::Time;

use super::sight::Sight;
use super::{Act, Effect, Event, Line, Order, Outcome, Pace};
use crate::model::Role;

/// The book.
pub struct Witness {
    order: Order,
    pace: Pace,
    newest: Option<Sight>,
    /// Since when every look has shown no Node, by our clock.
    without_node: Option<Time>,
    /// The same of its member of etcd.
    without_member: Option<Time>,
    ips: BTreeSet<String>,
    was_etcd: bool,
    durable: BTreeMap<u32, Act>,
    pending: BTreeMap<u32, Line>,
    begun: BTreeSet<u32>,
    node_deleted: bool,
    member_removed: bool,
    written: u32,
}

impl Witness {
    /// An empty book.
    pub fn new(order: Order, pace: Pace) -> Self {
        Self {
            order,
            pace,
            newest: None,
            without_node: None,
            without_member: None,
            ips: BTreeSet::new(),
            was_etcd: false,
            durable: BTreeMap::new(),
            pending: BTreeMap::new(),
            begun: BTreeSet::new(),
            node_deleted: false,
            member_removed: false,
            written: 0,
        }
    }

    /// The process is gone: what was not durable never was.
    pub fn crashed(&mut self) {
        self.pending.clear();
        self.newest = None;
    }

    /// An event that goes in.
    pub fn hear(&mut self, now: Time, event: &Event) {
        match event {
            Event::Looked { seen, .. } => match &**seen {
                Ok(sight) => self.look(now, sight),
                Err(_) => {
                    self.newest = None;
                    self.without_node = None;
                    self.without_member = None;
                }
            },
            Event::Recorded { line } => {
                if let Some(Line::Intent { number, what, .. }) = self.pending.remove(line) {
                    self.durable.insert(number, what);
                }
            }
            Event::Done { number, outcome } => {
                let taken =
                    matches!(outcome, Outcome::Accepted | Outcome::AlreadySo | Outcome::Unknown { .. });
                if taken && matches!(self.durable.get(number), Some(Act::DeleteNode { .. })) {
                    self.node_deleted = true;
                }
                if taken && matches!(self.durable.get(number), Some(Act::RemoveMember { .. })) {
                    self.member_removed = true;
                }
            }
            Event::Tick => {}
        }
    }

    fn look(&mut self, now: Time, sight: &Sight) {
        if let Some(node) = sight.node(&self.order) {
            self.without_node = None;
            self.ips.extend(node.internal_ips().into_iter().map(str::to_owned));
            self.was_etcd |= node.roles.contains(&Role::Etcd);
        } else if sight.sample.nodes.is_some() {
            self.without_node.get_or_insert(now);
        } else {
            self.without_node = None;
        }
        if sight.members.is_some() && sight.member(&self.order.node, &self.ips).is_none() {
            self.without_member.get_or_insert(now);
        } else {
            self.without_member = None;
        }
        self.newest = Some(sight.clone());
    }

    /// An effect that comes out: the rules that it breaks.
    pub fn judge(&mut self, now: Time, effect: &Effect) -> Vec<String> {
        match effect {
            Effect::Record { line, what } => {
                self.pending.insert(*line, what.clone());
                Vec::new()
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

    fn act(&mut self, now: Time, act: &Act) -> Vec<String> {
        let Some(sight) = self.newest.clone() else { return vec![format!("{}: done blind", act.words())] };
        let mut breaches = Vec::new();
        let mut must = |holds: bool, rule: &str| {
            if !holds {
                breaches.push(format!("{}: {rule}", act.words()));
            }
        };
        must(sight.hands_off.is_none(), "people said hands off");
        let changes = !matches!(act, Act::Save { .. } | Act::PutBack { .. });
        must(!changes || sight.unquiet().is_none(), "the cluster is busy");
        let member = sight.member(&self.order.node, &self.ips);
        match act {
            Act::RemoveMember { .. } => {
                let members = sight.members.as_deref().unwrap_or_default();
                let well = members.iter().filter(|other| Some(*other) != member && other.healthy).count();
                must(well > members.len() / 2, "etcd loses its quorum");
                let is_well = |other: &crate::repair::sight::Member| Some(other) == member || other.healthy;
                must(members.iter().all(is_well), "another member of etcd is not well");
                must(sight.node(&self.order).is_some(), "the Node went before the member");
            }
            Act::DeleteNode { uid } => {
                let node = sight.node(&self.order);
                must(node.is_some_and(|node| node.uid.as_str() == uid), "it is not the Node that was seen");
                let is_member = member.is_some() || sight.members.is_none();
                must(!self.was_etcd || !is_member, "the member of etcd is still there");
                let stays_away = self.without_member.is_some_and(|since| now.since(since) >= self.pace.apart);
                must(!self.member_removed || stays_away, "its member of etcd is not proved gone");
                let roles = node.map(|node| node.roles.clone()).unwrap_or_default();
                must(
                    self.node_deleted || roles.iter().all(|role| sight.others(&self.order, *role) > 0),
                    "it is the last of a role",
                );
                must(self.written == 0, "both ways in one repair");
            }
            Act::DeleteRecord { record, uid } => {
                let since = self.without_node.is_some_and(|since| now.since(since) >= self.pace.apart);
                must(since && sight.node(&self.order).is_none(), "its Node is not proved gone");
                let found = sight.sample.records.iter().flatten().find(|(name, _)| *name == record);
                must(found.is_some_and(|(_, found)| found.uid == *uid), "it is not the record that was seen");
                must(self.written == 0, "both ways in one repair");
            }
            Act::Write { record, uid, revision, draft } => {
                self.written += 1;
                let found = sight.sample.records.iter().flatten().find(|(name, _)| *name == record);
                let fits = |found: &crate::model::Record| found.uid == *uid && found.revision == *revision;
                must(found.is_some_and(|(_, found)| fits(found)), "not on the revision that was seen");
                let node = sight.node(&self.order);
                let is_fact = node.is_some_and(|node| {
                    node.roles == draft.roles
                        && node.addresses.iter().any(|known| known.address == draft.address)
                });
                must(is_fact, "what it writes is not what the Node says");
                must(!self.node_deleted, "both ways in one repair");
            }
            Act::PutBack { record, draft, .. } => {
                let found = sight.sample.records.iter().flatten().find(|(name, _)| *name == record);
                must(found.is_some_and(|(_, found)| draft.is_in(found)), "what stands there is not ours");
            }
            Act::Save { .. } | Act::Cordon { .. } | Act::Evict { .. } => {}
        }
        breaches
    }
}
