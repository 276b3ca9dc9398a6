//! What people ask for by annotations on a Node: that a machine is repaired now, and that a failed machine is kept.
//!
//! ```text
//!  annotation ─▶ new value? ─▶ Record::Asked ─▶ the open absence is due now ─▶ decide ─▶ every interlock as ever
//!                    └ no open absence: recorded all the same, so that it is not carried out another day
//! ```
//!
//! A request skips the waiting time and nothing else. The controller first reads evidence, and checks budgets, interlocks
//! and invariants as for any other repair. Each value counts once, also over a restart, because the ledger holds it. Of values
//! that come too often the last one counts, a little later (`told_seldom`).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::decide::Decision;
use crate::diagnose::machine_state::MachineState;
use crate::model::blocker::Blocker;
use crate::model::incident::{Asked, IncidentKey, MachineKey, Subject};
use crate::model::time::Time;
use crate::record::Record;
use crate::remedies::RepairStep;
use crate::safeguard::{Safeguard, stands};

use super::State;
use super::told_seldom::ToldSeldom;

/// So many requests for a machine are remembered, the last ones.
const REQUESTS_MAX: usize = 8;

/// The last requests for a repair of each machine, oldest first, whatever came of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    of: BTreeMap<MachineKey, Vec<Arc<str>>>,
    pub(super) told: ToldSeldom,
}

impl Requests {
    fn knows(&self, machine: &MachineKey, value: &Arc<str>) -> bool {
        self.of.get(machine).is_some_and(|values| values.contains(value))
    }

    /// This value counted, and does not count again, also when another came between.
    pub(super) fn note(&mut self, machine: &MachineKey, value: Arc<str>) {
        let values = self.of.entry(machine.clone()).or_default();
        values.retain(|known| *known != value);
        if values.len() == REQUESTS_MAX {
            values.remove(0);
        }
        values.push(value);
    }

    pub(super) fn forget(&mut self, machine: &MachineKey) {
        self.of.remove(machine);
        self.told.forget(machine);
    }

    /// What restores this, for a rotated ledger. It stands after the incidents: the last value of a machine may be another than
    /// its last incident's.
    pub(super) fn checkpoint(&self, at: Time) -> impl Iterator<Item = Record> {
        let all =
            self.of.iter().flat_map(|(machine, values)| values.iter().map(move |value| (machine, value)));
        all.map(move |(machine, value)| {
            let (machine, value) = (machine.clone(), value.clone());
            Record::Asked { at, machine, value, incident: None }
        })
    }
}

impl State {
    /// Takes in a request that stands on a machine's node.
    pub(super) fn hear_request(&mut self, key: &MachineKey, machine_state: &MachineState, value: Arc<str>) {
        let known = self.requests.knows(key, &value);
        let open = match machine_state {
            // The controller does not refuse a request while the machine's state is unknown or excused. The request counts
            // once the controller knows which incident it is for.
            MachineState::CannotTell(_) | MachineState::Excused(_) => return,
            MachineState::Answers | MachineState::Starting(_) => None,
            MachineState::Absent(absence) => {
                Some(IncidentKey { subject: Subject::Machine(key.clone()), kind: absence.kind })
            }
        };
        if known && (open.is_none() || stands(Safeguard::RequestOnce)) {
            return;
        }
        let at = self.now;
        if !self.requests.told.may_tell(key, at) {
            self.requests.told.put_off(key, false);
            return;
        }
        let open = open.filter(|_| !self.is_from_before(key));
        let case = open.as_ref().and_then(|open| self.incidents.get_mut(open));
        let incident = case.map(|case| {
            case.incident.asked = Some(Asked { at, value: value.clone() });
            case.incident.id
        });
        self.requests.note(key, value.clone());
        self.outbox.record(Record::Asked { at, machine: key.clone(), value, incident });
        self.ripe.extend(open);
    }

    /// Looks again at machines whose Nodes asked too often: the value that stands there now counts.
    pub(super) fn hear_put_off(&mut self) {
        for key in self.requests.told.due(self.now) {
            self.requests.told.take(&key);
            if self.context().seen(&key).is_some() {
                self.dirty.insert(key);
            }
        }
    }

    /// It stood there when the node was first seen, and no ledger tells whether it was carried out long ago.
    fn is_from_before(&self, key: &MachineKey) -> bool {
        let context = self.context();
        let node = context.seen(key).and_then(|(_, seen)| context.node(seen));
        !self.resumed && node.is_some_and(|(_, node)| node.found_asking)
    }

    /// The machine would be deleted now, and is kept first: from here on its time runs.
    pub(super) fn begin_keeping(&mut self, key: &IncidentKey, decision: &Decision) {
        let replace = decision.held.iter().find(|(repair_step, _)| *repair_step == RepairStep::Replace);
        let Some([Blocker::Kept(left)]) = replace.map(|(_, blockers)| blockers.as_slice()) else { return };
        let at = self.now;
        let until = at + *left;
        let Some(case) = self.incidents.get(key).filter(|case| case.incident.kept_until.is_none()) else {
            return;
        };
        let incident = case.incident.id;
        self.incidents.keep(incident, until);
        self.outbox.record(Record::Kept { at, incident, until });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_counts_once_however_many_come_between_up_to_a_bound() {
        let (mut requests, machine) = (Requests::default(), MachineKey::Node("n1".into()));
        let value = |number: usize| Arc::from(number.to_string());
        (0..REQUESTS_MAX).for_each(|number| requests.note(&machine, value(number)));
        requests.note(&machine, value(0));
        requests.note(&machine, value(90));
        let known = [0, 1, 2, 90].map(|number| requests.knows(&machine, &value(number)));
        assert_eq!(known, [true, false, true, true], "the oldest goes, and 0 was said again");
        assert_eq!(requests.checkpoint(Time::default()).count(), REQUESTS_MAX);
        requests.forget(&machine);
        assert!(!requests.knows(&machine, &value(90)));
    }
}
