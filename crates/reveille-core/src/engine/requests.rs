//! What people ask for by annotations on a Node: that a machine is repaired now, and that a failed machine is kept.
//!
//! ```text
//!  annotation ─▶ new value? ─▶ Record::Asked ─▶ the open absence is due now ─▶ decide ─▶ every interlock as ever
//!                    └ no open absence: recorded all the same, so that it is not carried out another day
//! ```
//!
//! A request skips the waiting time and nothing else. The controller first reads evidence, and checks budgets, interlocks
//! and invariants as for any other repair. Each value counts once, also over a restart, because the ledger holds it.

use std::sync::Arc;

use crate::diagnose::absence::Standing;
use crate::guard::{Guard, stands};
use crate::model::incident::{Asked, IncidentKey, MachineKey, Subject};
use crate::plan::decide::Decision;
use crate::plan::hold::Hold;
use crate::record::Record;
use crate::remedies::Rung;

use super::State;

/// So many requests for a machine are remembered, the last ones.
const REQUESTS_MAX: usize = 8;

impl State {
    /// Takes in a request that stands on a machine's node.
    pub(super) fn hear_request(&mut self, key: &MachineKey, standing: &Standing, value: Arc<str>) {
        let known = self.requests.get(key).is_some_and(|values| values.contains(&value));
        let open = match standing {
            // The controller does not refuse a request while the machine's state is unknown or excused. The request counts
            // once the controller knows which incident it is for.
            Standing::CannotTell(_) | Standing::Excused(_) => return,
            Standing::Answers | Standing::Starting(_) => None,
            Standing::Absent(absence) => {
                Some(IncidentKey { subject: Subject::Machine(key.clone()), kind: absence.kind })
            }
        };
        if known && (open.is_none() || stands(Guard::RequestOnce)) {
            return;
        }
        let at = self.now;
        let open = open.filter(|_| !self.is_from_before(key));
        let case = open.as_ref().and_then(|open| self.incidents.get_mut(open));
        let incident = case.map(|case| {
            case.incident.asked = Some(Asked { at, value: value.clone() });
            case.incident.id
        });
        self.note_request(key, value.clone());
        self.outbox.record(Record::Asked { at, machine: key.clone(), value, incident });
        self.ripe.extend(open);
    }

    /// This value counted, and does not count again, also when another came between.
    pub(super) fn note_request(&mut self, key: &MachineKey, value: Arc<str>) {
        let values = self.requests.entry(key.clone()).or_default();
        values.retain(|known| *known != value);
        if values.len() == REQUESTS_MAX {
            values.remove(0);
        }
        values.push(value);
    }

    /// It stood there when the node was first seen, and no ledger tells whether it was carried out long ago.
    fn is_from_before(&self, key: &MachineKey) -> bool {
        let desk = self.desk();
        let node = desk.seen(key).and_then(|(_, seen)| desk.node(seen));
        !self.resumed && node.is_some_and(|(_, node)| node.found_asking)
    }

    /// The machine would be deleted now, and is kept first: from here on its time runs.
    pub(super) fn begin_keeping(&mut self, key: &IncidentKey, decision: &Decision) {
        let replace = decision.held.iter().find(|(rung, _)| *rung == Rung::Replace);
        let Some([Hold::Kept(left)]) = replace.map(|(_, holds)| holds.as_slice()) else { return };
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
