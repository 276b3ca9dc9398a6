//! Incidents: those that are open, those that are over and still remembered, and what leads to them.
//!
//! ```text
//!  insert ─▶ open ─▶ remove ─▶ close ─▶ closed, the newest so many
//!             ├─ by number, by the intents that were begun for it
//!             ├─ of unreachable machines for which something was tried; of machines that are kept
//!             └─ machines by Node, as they are judged
//! ```
//!
//! The indexes hold open incidents alone: `remove` takes an incident out of all of them but the last, which `note_joined_as`
//! keeps. When an incident opens and closes, `cases` says; what a new one takes over from others of its machine, `inherited`
//! says.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::model::attempt::Attempt;
use crate::model::id::{IncidentId, IntentId, NodeName};
use crate::model::incident::{FaultKind, Incident, IncidentKey, MachineKey, Subject};
use crate::model::jump::Jump;
use crate::model::time::Time;
use crate::plan::context::Case;
use crate::record::Verdict;

/// Incidents that are over and still remembered for `incidents` and for "it came back".
const CLOSED_MAX: usize = 256;

/// An incident that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// As it was when it closed.
    pub incident: Incident,
    /// When.
    pub at: Time,
    /// The same by a clock that stands still while nothing is watched.
    pub watched_from: Time,
    /// How.
    pub verdict: Verdict,
}

/// Every incident, with indexes of the open ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Incidents {
    open: BTreeMap<IncidentKey, Case>,
    /// Oldest first.
    closed: VecDeque<Closed>,
    by_number: BTreeMap<IncidentId, IncidentKey>,
    /// For which incident an intent was begun, as long as that is open.
    begun_for: BTreeMap<IntentId, IncidentId>,
    /// Of unreachable machines for which something was tried: a group that was nudged, first of all.
    nudged: BTreeSet<IncidentKey>,
    /// Whose machine is kept, or was.
    kept: BTreeSet<IncidentKey>,
    /// Machines by the Node that they joined as: an event about it concerns them, also when it is no more.
    joined_as: BTreeMap<NodeName, BTreeSet<MachineKey>>,
}

/// Open incidents.
impl Incidents {
    pub(super) const fn open(&self) -> &BTreeMap<IncidentKey, Case> {
        &self.open
    }

    pub(super) const fn nudged(&self) -> &BTreeSet<IncidentKey> {
        &self.nudged
    }

    pub(super) const fn kept(&self) -> &BTreeSet<IncidentKey> {
        &self.kept
    }

    pub(super) fn get(&self, key: &IncidentKey) -> Option<&Case> {
        self.open.get(key)
    }

    pub(super) fn get_mut(&mut self, key: &IncidentKey) -> Option<&mut Case> {
        self.open.get_mut(key)
    }

    pub(super) fn cases_mut(&mut self) -> impl Iterator<Item = &mut Case> {
        self.open.values_mut()
    }

    /// The incident of this number is open.
    pub(super) fn is_open(&self, id: IncidentId) -> bool {
        self.by_number.contains_key(&id)
    }

    /// Those of this subject.
    pub(super) fn of(&self, subject: &Subject) -> impl Iterator<Item = &Case> {
        let first = IncidentKey { subject: subject.clone(), kind: FaultKind::ALL[0] };
        let last = IncidentKey { subject: subject.clone(), kind: FaultKind::ALL[FaultKind::ALL.len() - 1] };
        self.open.range(first..=last).map(|(_, case)| case)
    }

    /// The keys of those of this subject.
    pub(super) fn keys_of(&self, subject: &Subject) -> Vec<IncidentKey> {
        self.of(subject).map(|case| case.incident.key.clone()).collect()
    }

    /// The machine has an open incident.
    pub(super) fn has_open(&self, machine: &MachineKey) -> bool {
        self.of(&Subject::Machine(machine.clone())).next().is_some()
    }

    /// The same, and one was opened after that.
    pub(super) fn has_open_since(&self, machine: &MachineKey, then: Option<Time>) -> bool {
        let subject = Subject::Machine(machine.clone());
        self.of(&subject).any(|case| then.is_none_or(|then| case.incident.first_seen > then))
    }

    /// Keeps the machine under the name of the Node that it joined as, while an incident of it is open.
    pub(super) fn note_joined_as(&mut self, node: &NodeName, machine: &MachineKey) {
        if self.has_open(machine) {
            self.joined_as.entry(node.clone()).or_default().insert(machine.clone());
        } else if let Some(machines) = self.joined_as.get_mut(node) {
            machines.remove(machine);
            if machines.is_empty() {
                self.joined_as.remove(node);
            }
        }
    }

    /// Machines with an open incident that joined as this Node.
    pub(super) fn joined_as(&self, node: &NodeName) -> impl Iterator<Item = &MachineKey> {
        self.joined_as.get(node).into_iter().flatten()
    }

    pub(super) fn insert(&mut self, case: Case) {
        let Incident { id, key, kept_until, .. } = &case.incident;
        self.by_number.insert(*id, key.clone());
        if kept_until.is_some() {
            self.kept.insert(key.clone());
        }
        self.open.insert(key.clone(), case);
    }

    /// An intent was begun for this incident.
    pub(super) fn note_begun(&mut self, key: &IncidentKey, id: IncidentId, intent: IntentId) {
        self.begun_for.insert(intent, id);
        if key.kind == FaultKind::Unreachable {
            self.nudged.insert(key.clone());
        }
    }

    /// It never was: the ledger refused it, or another intent took its place.
    pub(super) fn forget_intent(&mut self, intent: IntentId) {
        self.begun_for.remove(&intent);
    }

    /// Its machine is kept until then.
    pub(super) fn keep(&mut self, id: IncidentId, until: Time) {
        let Some(key) = self.by_number.get(&id) else { return };
        if let Some(case) = self.open.get_mut(key).filter(|case| case.incident.id == id) {
            case.incident.kept_until = Some(until);
            self.kept.insert(key.clone());
        }
    }

    /// It is open no more, and nothing leads to it.
    pub(super) fn remove(&mut self, key: &IncidentKey) -> Option<Case> {
        let case = self.open.remove(key)?;
        self.by_number.remove(&case.incident.id);
        for attempt in &case.incident.attempts {
            self.begun_for.remove(&attempt.intent);
        }
        self.kept.remove(key);
        self.nudged.remove(key);
        Some(case)
    }
}

/// Incidents that are over, and both kinds together.
impl Incidents {
    /// Oldest first.
    pub(super) fn closed(&self) -> impl DoubleEndedIterator<Item = &Closed> {
        self.closed.iter()
    }

    pub(super) fn closed_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Closed> {
        self.closed.iter_mut()
    }

    /// Where as many are remembered as can be, the first of them: what closed before it is not known.
    pub(super) fn first_known(&self) -> Option<&Closed> {
        self.closed.front().filter(|_| self.closed.len() >= CLOSED_MAX)
    }

    /// Remembers it in the place of the oldest. One whose replacement is being proved, or may only be late, is kept however many
    /// closed since: it is written down at a rotation.
    pub(super) fn close(&mut self, closed: Closed, is_under_way: impl Fn(IncidentId) -> bool) {
        if self.closed.len() >= CLOSED_MAX {
            let oldest = self.closed.iter().position(|closed| !is_under_way(closed.incident.id));
            oldest.and_then(|oldest| self.closed.remove(oldest));
        }
        self.closed.push_back(closed);
    }

    /// There is none, open or over.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.closed.is_empty()
    }

    /// The incident of this number.
    pub(super) fn numbered(&self, id: IncidentId) -> Option<&Incident> {
        let open = self.by_number.get(&id).and_then(|key| self.open.get(key)).map(|case| &case.incident);
        open.or_else(|| self.newest_closed().find(|over| over.id == id))
    }

    /// The incident for which this intent was begun.
    pub(super) fn of_intent(&self, intent: IntentId) -> Option<&Incident> {
        let open = self.begun_for.get(&intent).and_then(|id| self.numbered(*id));
        let tried = |over: &&Incident| over.attempts.iter().any(|attempt| attempt.intent == intent);
        open.or_else(|| self.newest_closed().find(tried))
    }

    /// The incidents that are over, the newest first.
    pub(super) fn newest_closed(&self) -> impl Iterator<Item = &Incident> {
        self.closed.iter().rev().map(|closed| &closed.incident)
    }

    /// Every one that can be changed, open or over.
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Incident> {
        let closed = self.closed.iter_mut().map(|closed| &mut closed.incident);
        self.open.values_mut().map(|case| &mut case.incident).chain(closed)
    }

    pub(super) fn attempt(&self, key: &IncidentKey, intent: IntentId) -> Option<&Attempt> {
        let open = self.open.get(key).map(|case| &case.incident);
        let of_key = open.into_iter().chain(self.newest_closed().filter(|incident| incident.key == *key));
        of_key.flat_map(|incident| &incident.attempts).find(|attempt| attempt.intent == intent)
    }

    /// Changes an attempt. Its incident may be over by now, and another one of the same key be open, which goes on from it.
    pub(super) fn note_attempt(
        &mut self,
        key: &IncidentKey,
        intent: IntentId,
        note: impl FnOnce(&mut Attempt),
    ) {
        let open = self.open.get_mut(key).map(|case| &mut case.incident);
        let closed = self.closed.iter_mut().rev().map(|closed| &mut closed.incident);
        let of_key = open.into_iter().chain(closed.filter(|incident| incident.key == *key));
        let found = of_key.flat_map(|incident| &mut incident.attempts).find(|it| it.intent == intent);
        if let Some(attempt) = found {
            note(attempt);
        }
    }

    /// Their times go over a jump.
    pub(super) fn over(&mut self, jump: Jump) {
        let Self { open, closed, by_number: _, begun_for: _, nudged: _, kept: _, joined_as: _ } = self;
        open.values_mut().for_each(|case| case.over(jump));
        closed.iter_mut().for_each(|closed| closed.over(jump));
    }
}

impl Closed {
    /// Its times go over a jump.
    fn over(&mut self, jump: Jump) {
        let Self { incident, at, watched_from, verdict: _ } = self;
        incident.over(jump);
        // A machine that has the same fault again hours later goes on with no harsher step, whether the controller slept or not.
        jump.stands([at]);
        jump.counts([watched_from]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::Call;
    use crate::remedies::NudgeGroup;
    use std::sync::Arc;

    fn key(number: u64, kind: FaultKind) -> IncidentKey {
        let machine = MachineKey::Node(format!("n{number}").as_str().into());
        IncidentKey { subject: Subject::Machine(machine), kind }
    }

    fn case(number: u64, kind: FaultKind) -> Case {
        let label = Arc::from("a machine");
        Case::new(Incident::opened(IncidentId(number), key(number, kind), None, label, Time::default()))
    }

    fn over(number: u64) -> Closed {
        let (incident, at) = (case(number, FaultKind::NotReady).incident, Time::default());
        Closed { incident, at, watched_from: at, verdict: Verdict::Recovered }
    }

    #[test]
    fn incident_that_is_removed_is_led_to_by_nothing() {
        let mut incidents = Incidents::default();
        let key = key(1, FaultKind::Unreachable);
        incidents.insert(case(1, FaultKind::Unreachable));
        incidents.note_begun(&key, IncidentId(1), IntentId(7));
        incidents.keep(IncidentId(1), Time::from_ms(9));
        assert!(incidents.nudged().contains(&key) && incidents.kept().contains(&key));
        assert!(incidents.is_open(IncidentId(1)) && incidents.of_intent(IntentId(7)).is_some());
        let nudge = NudgeGroup { cloud: "os".into(), group: "g".into(), mark: "n".into() };
        let call = Call::NudgeGroup(nudge);
        incidents.get_mut(&key).unwrap().incident.begin_attempt(IntentId(7), call, Time::default());
        assert!(incidents.attempt(&key, IntentId(7)).is_some());
        incidents.remove(&key).unwrap();
        let Incidents { open, closed: _, by_number, begun_for, nudged, kept, joined_as: _ } = &incidents;
        let left = [open.len(), by_number.len(), begun_for.len(), nudged.len(), kept.len()];
        assert_eq!(left, [0; 5]);
    }

    #[test]
    fn machine_has_open_incidents_until_the_last_is_removed() {
        let mut incidents = Incidents::default();
        for (number, kind) in [(1, FaultKind::NotReady), (1, FaultKind::Errored), (2, FaultKind::NotReady)] {
            incidents.insert(case(number, kind));
        }
        let subject = key(1, FaultKind::NotReady).subject;
        let Subject::Machine(machine) = &subject else { unreachable!() };
        let node = "a-node".into();
        assert_eq!(incidents.keys_of(&subject).len(), 2);
        incidents.remove(&key(1, FaultKind::NotReady));
        incidents.note_joined_as(&node, machine);
        assert!(incidents.has_open(machine) && incidents.joined_as(&node).eq([machine]));
        incidents.remove(&key(1, FaultKind::Errored));
        incidents.note_joined_as(&node, machine);
        assert!(!incidents.has_open(machine) && incidents.joined_as(&node).next().is_none());
    }

    #[test]
    fn oldest_that_is_over_gives_way_but_one_under_way() {
        let mut incidents = Incidents::default();
        (0..=CLOSED_MAX as u64 + 1)
            .for_each(|number| incidents.close(over(number), |id| id == IncidentId(1)));
        let first: Vec<u64> = incidents.closed().take(2).map(|closed| closed.incident.id.0).collect();
        assert_eq!((first, incidents.closed().count()), (vec![1, 3], CLOSED_MAX));
        assert_eq!(incidents.first_known().map(|closed| closed.incident.id), Some(IncidentId(1)));
        assert!(incidents.numbered(IncidentId(0)).is_none() && incidents.numbered(IncidentId(9)).is_some());
    }
}
