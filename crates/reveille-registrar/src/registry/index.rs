//! What the registry remembers: invitations and machines. Only records change it.
//!
//! ```text
//!  decide ─▶ Record ─┬▶ Index::apply ─▶ the index            step, now
//!                    └▶ the store ─▶ Record ─▶ Index::apply ─▶ the same index      a start, later
//! ```
//!
//! Indexes find a machine by its ids ([`super::claims`]) and by its key. The index builds them as it takes machines in, so
//! a replay has them too. A removed machine stays in the index, so that the server knows it when it comes again. It claims
//! no name any more, and is found in the index of removed machines. Of the newest few thousand forgotten machines the
//! index keeps the record's name.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use reveille_core::model::id::RosterName;
use reveille_core::model::stage::Stage;
use reveille_core::model::time::Time;
use reveille_wire::agent::Identity;
use reveille_wire::agent::identity::Part;
use reveille_wire::agent::plan::Held;
use reveille_wire::agent::text::Word;

use super::claims::{Claims, names};
use super::flow::JoinFlow;
use super::ids::{InvitationId, KeyHash, MachineId};
use super::invitation::Invitation;
use super::machine::{Machine, Removal};
use super::record::{Enrolled, KeptLeg, Record};
use super::trace::Trace;

/// The number of forgotten machines whose names are kept. The certificates of older ones have expired, unless a fleet is
/// replaced more than twice a day.
const FORGOTTEN_MAX: usize = 4096;

/// The number of next keys of a machine. One is enough for a machine that soon begins a session with it. A machine whose
/// Node was removed renews for as long as the removal lasts, and is welcomed with none of these keys.
const NEXT_KEYS_MAX: usize = 4;

/// The durable state.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Index {
    invitations: BTreeMap<InvitationId, Invitation>,
    machines: BTreeMap<MachineId, Machine>,
    claims: Claims,
    /// The ids of removed machines: they do not claim them any more.
    away: Claims,
    by_key: BTreeMap<KeyHash, MachineId>,
    forgotten: BTreeSet<(Time, MachineId)>,
    /// The rosters whose cluster's API server has answered once; the rosters of a controller are few.
    answered: BTreeSet<RosterName>,
}

impl Index {
    /// An invitation.
    pub fn invitation(&self, id: &InvitationId) -> Option<&Invitation> {
        self.invitations.get(id)
    }

    /// Invitations after this one, in the order of their ids.
    pub fn invitations_after(&self, after: Option<&InvitationId>) -> impl Iterator<Item = &Invitation> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.invitations.range::<InvitationId, _>((from, Bound::Unbounded)).map(|(_, invitation)| invitation)
    }

    /// All invitations.
    pub fn invitations(&self) -> impl Iterator<Item = &Invitation> {
        self.invitations.values()
    }

    /// A machine.
    pub fn machine(&self, id: &MachineId) -> Option<&Machine> {
        self.machines.get(id)
    }

    /// All machines.
    pub fn machines(&self) -> impl Iterator<Item = &Machine> {
        self.machines.values()
    }

    /// Machines after this one, in the order of their records.
    pub fn machines_after(&self, after: Option<&MachineId>) -> impl Iterator<Item = &Machine> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.machines.range::<MachineId, _>((from, Bound::Unbounded)).map(|(_, machine)| machine)
    }

    /// The machine that a text names: by its record, by a lasting part of its identity, or by its Node, where no other
    /// machine claims the same. A machine chooses its own name: if it takes the name of another, that name finds neither
    /// of them from then on.
    pub fn find(&self, text: &str) -> Option<&Machine> {
        if let Some(known) = self.machines.get(&MachineId::new(text)) {
            return Some(known);
        }
        let mut named = self.claims.of(text).map(|(id, _)| id);
        let first = named.next()?;
        named.all(|id| id == first).then(|| self.machines.get(first))?
    }

    /// All machines that a text names, removed ones included: an operator who takes a removal back writes the name used
    /// for the removal.
    pub fn named(&self, text: &str) -> Vec<&Machine> {
        if let Some(known) = self.machines.get(&MachineId::new(text)) {
            return vec![known];
        }
        let ids: BTreeSet<&MachineId> =
            self.claims.of(text).chain(self.away.of(text)).map(|(id, _)| id).collect();
        ids.into_iter().filter_map(|id| self.machines.get(id)).collect()
    }

    /// Removed machines that have one of these ids, as any kind of id.
    pub(super) fn away_with(&self, identity: &Identity) -> impl Iterator<Item = &MachineId> {
        let owners = identity.lasting().flat_map(|(_, word)| self.away.of(word));
        owners.filter(|(_, part)| *part != Part::NodeName).map(|(id, _)| id)
    }

    /// The server knew the machine, and forgot it after its instance was gone for good.
    pub fn was_forgotten(&self, id: &MachineId) -> bool {
        self.forgotten.iter().any(|(_, forgotten)| forgotten == id)
    }

    /// The API server of this roster's cluster has answered once, in this process or in one before.
    pub fn has_answered(&self, roster: &RosterName) -> bool {
        self.answered.contains(roster)
    }

    /// The machine that has this key, or has it as a next key.
    pub fn holder(&self, key: &KeyHash) -> Option<&Machine> {
        self.by_key.get(key).and_then(|id| self.machines.get(id))
    }

    /// Machines that have one of these names, as any kind of name; names of Nodes conflict only within one roster. Each
    /// comes with the name that is claimed, in the order of the names.
    pub fn rivals(
        &self,
        identity: &Identity,
        node_name: &Word,
        roster: &RosterName,
    ) -> Vec<(Part, &Machine)> {
        let mut rivals = Vec::new();
        for (part, word) in names(identity, node_name) {
            for (id, theirs) in self.claims.of(word) {
                let both_names = part == Part::NodeName && *theirs == Part::NodeName;
                let known = self.machines.get(id).filter(|known| !both_names || known.roster == *roster);
                rivals.extend(known.map(|known| (part, known)));
            }
        }
        rivals
    }

    /// The number of invitations and of machines.
    pub fn counts(&self) -> (usize, usize) {
        (self.invitations.len(), self.machines.len())
    }

    /// Applies a change. A record that names an unknown machine or invitation changes nothing.
    pub fn apply(&mut self, record: &Record) {
        match record {
            Record::Invited(invited) => {
                self.invitations.insert(invited.id.clone(), invited.clone());
            }
            Record::Uninvited { invitation } => {
                self.invitations.remove(invitation);
            }
            Record::Revoked { invitation, .. } => {
                if let Some(invitation) = self.invitations.get_mut(invitation) {
                    invitation.is_revoked = true;
                }
            }
            Record::Conflicted { invitation, .. } => {
                if let Some(invitation) = self.invitations.get_mut(invitation) {
                    invitation.conflicts = invitation.conflicts.saturating_add(1);
                }
            }
            Record::Enrolled(enrolled) => self.enrol(enrolled),
            Record::Described { machine, boot_id, facts } => self.change(machine, |known| {
                known.identity.boot_id = boot_id.clone();
                known.facts = facts.clone();
            }),
            Record::KeyOffered { machine, key } => {
                self.offer(machine, *key);
            }
            Record::KeyTaken { machine, key } => self.take_key(machine, *key),
            Record::Shown { machine, authority } => {
                self.change(machine, |known| known.shown_by = Some(*authority));
            }
            Record::Planned { machine, plan } => self.change(machine, |known| known.plan = plan.clone()),
            Record::Staged(staged) => {
                let report = staged.report();
                self.change(&staged.machine, |known| {
                    let at = staged.at;
                    known.trace.reported(at, &report);
                    if known.flow.is_none() {
                        known.flow = JoinFlow::begun_by(at, &report).map(Box::new);
                    }
                    if let Some(flow) = &mut known.flow {
                        flow.reported(at, &report);
                    }
                    known.reports_kept = known.reports_kept.max(report.seq);
                });
            }
            Record::Noted { at, machine, stage, trouble } => self.change(machine, |known| {
                known.trace.noted(stage.0, trouble.clone());
                if let (Some(flow), Some(trouble)) = (&mut known.flow, trouble) {
                    flow.noted(*at, stage.0, trouble);
                }
            }),
            Record::FellSilent { machine, since, .. } => {
                self.join_of(machine, |flow| flow.fell_silent(*since));
            }
            Record::HeardAgain { at, machine } => {
                self.join_of(machine, |flow| flow.heard_again(*at));
            }
            Record::JoinOver { machine, .. } => self.change(machine, |known| known.flow = None),
            Record::Joining { machine, flow } => {
                self.change(machine, |known| known.flow = Some(flow.clone()));
            }
            Record::Removed { machine, what, .. } => self.remove(machine, Some(*what)),
            Record::Readmitted { machine } => self.remove(machine, None),
            Record::Departed { at, machine } => {
                self.change(machine, |known| known.departed = Some(*at));
            }
            Record::Returned { machine } => self.change(machine, |known| known.departed = None),
            Record::Forgotten { at, machine } => self.forget(*at, machine),
            Record::ClusterAnswered { roster } => {
                self.answered.insert(roster.clone());
            }
            Record::Leg(kept) => {
                self.change(&kept.machine, |known| known.trace.restored(kept.stage.0, kept.leg()))
            }
            Record::Kept { machine, next_key, reports_kept } => {
                next_key.iter().for_each(|key| self.offer(machine, *key));
                self.change(machine, |known| known.reports_kept = *reports_kept);
            }
        }
    }

    /// Records that rebuild the same index.
    pub fn checkpoint(&self) -> Vec<Record> {
        let mut records: Vec<Record> = self.invitations.values().cloned().map(Record::Invited).collect();
        for machine in self.machines.values() {
            let id = || machine.id.clone();
            records.push(Record::Enrolled(Enrolled::kept(machine)));
            if let Some(authority) = machine.shown_by {
                records.push(Record::Shown { machine: id(), authority });
            }
            if machine.plan.version > 0 {
                records.push(Record::Planned { machine: id(), plan: machine.plan.clone() });
            }
            records.extend(
                machine.trace.legs().map(|(stage, leg)| Record::Leg(KeptLeg::of(&machine.id, stage, leg))),
            );
            let newest = machine.next_keys.split_last();
            let before = newest.map_or(&[] as &[_], |(_, before)| before);
            records.extend(before.iter().map(|key| Record::KeyOffered { machine: id(), key: *key }));
            let (next_key, reports_kept) = (newest.map(|(key, _)| *key), machine.reports_kept);
            if next_key.is_some() || reports_kept > 0 {
                records.push(Record::Kept { machine: id(), next_key, reports_kept });
            }
            if let Some(flow) = machine.flow.clone() {
                records.push(Record::Joining { machine: id(), flow });
            }
            if let Some(at) = machine.departed {
                records.push(Record::Departed { at, machine: id() });
            }
            if let Some(what) = machine.removed {
                records.push(Record::Removed { at: machine.enrolled_at, machine: id(), what });
            }
        }
        let answered = self.answered.iter().cloned();
        records.extend(answered.map(|roster| Record::ClusterAnswered { roster }));
        let forgotten = self.forgotten.iter().cloned();
        records.extend(forgotten.map(|(at, machine)| Record::Forgotten { at, machine }));
        records
    }

    fn forget(&mut self, at: Time, machine: &MachineId) {
        if let Some(known) = self.machines.remove(machine) {
            self.unindex(&known);
        }
        self.forgotten.insert((at, machine.clone()));
        if self.forgotten.len() > FORGOTTEN_MAX {
            self.forgotten.pop_first();
        }
    }

    fn change(&mut self, machine: &MachineId, change: impl FnOnce(&mut Machine)) {
        if let Some(known) = self.machines.get_mut(machine) {
            change(known);
        }
    }

    fn join_of(&mut self, machine: &MachineId, change: impl FnOnce(&mut JoinFlow)) {
        self.change(machine, |known| {
            if let Some(flow) = &mut known.flow {
                change(flow);
            }
        });
    }

    fn enrol(&mut self, enrolled: &Enrolled) {
        let id = &enrolled.machine;
        let before = self.machines.remove(id);
        if let Some(before) = &before {
            self.unindex(before);
        }
        let at = enrolled.at;
        let mut trace = Trace::default();
        if enrolled.used {
            trace.passed(at, Stage::Trust);
            trace.passed(at, Stage::Authenticate);
            if let Some(invitation) = self.invitations.get_mut(&enrolled.invitation) {
                invitation.uses += 1;
            }
        }
        let machine = Machine {
            id: id.clone(),
            roster: enrolled.roster.clone(),
            pool: enrolled.pool.clone(),
            roles: enrolled.roles.clone(),
            identity: enrolled.identity.clone(),
            facts: enrolled.facts.clone(),
            node_name: enrolled.node_name.clone(),
            key: enrolled.key,
            next_keys: Vec::new(),
            shown_by: None,
            enrolled_at: at,
            invitation: enrolled.invitation.clone(),
            removed: None,
            departed: None,
            // The next plan has a higher version than any before, also for a machine that was reimaged.
            plan: Held { version: before.map_or(0, |before| before.plan.version), ..Held::default() },
            trace,
            flow: enrolled.used.then(|| Box::new(JoinFlow::enrolled(at))),
            reports_kept: 0,
        };
        self.index(&machine);
        self.machines.insert(id.clone(), machine);
    }

    /// Makes the key the newest next key, also if it was one already; beyond the limit the oldest one is dropped.
    fn offer(&mut self, machine: &MachineId, key: KeyHash) {
        let Some(known) = self.machines.get_mut(machine) else { return };
        known.next_keys.retain(|before| *before != key);
        known.next_keys.push(key);
        self.by_key.insert(key, machine.clone());
        if known.next_keys.len() > NEXT_KEYS_MAX {
            self.by_key.remove(&known.next_keys.remove(0));
        }
    }

    fn take_key(&mut self, machine: &MachineId, key: Option<KeyHash>) {
        let Some(known) = self.machines.get_mut(machine) else { return };
        let Some(key) = key.or_else(|| known.next_keys.last().copied()) else { return };
        for before in known.next_keys.drain(..).chain([known.key]) {
            self.by_key.remove(&before);
        }
        known.key = key;
        self.by_key.insert(key, machine.clone());
    }

    fn remove(&mut self, machine: &MachineId, what: Option<Removal>) {
        let Some(mut known) = self.machines.remove(machine) else { return };
        self.unindex(&known);
        known.removed = what;
        self.index(&known);
        self.machines.insert(machine.clone(), known);
    }

    fn index(&mut self, machine: &Machine) {
        let id = || machine.id.clone();
        for key in machine.next_keys.iter().chain([&machine.key]) {
            self.by_key.insert(*key, id());
        }
        if machine.removed == Some(Removal::Machine) {
            self.away.add(machine);
        } else {
            self.claims.add(machine);
        }
    }

    /// A key or name that belongs to another machine by now stays with that machine.
    fn unindex(&mut self, machine: &Machine) {
        let ours = |id: Option<&MachineId>| id == Some(&machine.id);
        for key in machine.next_keys.iter().chain([&machine.key]) {
            if ours(self.by_key.get(key)) {
                self.by_key.remove(key);
            }
        }
        self.claims.take_out(machine);
        self.away.take_out(machine);
    }
}
