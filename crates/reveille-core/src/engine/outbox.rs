//! What leaves the engine: effects of this step, and records on their way to the ledger.
//!
//! ```text
//!  record ─▶ outstanding ─┬─ acknowledged ─▶ the ledger has it
//!     │                   └─ refused ─▶ unwritten ─▶ write_again ─▶ outstanding
//!     └─ while anything is unwritten: behind it
//! ```
//!
//! A full disk must not make the engine forget what it saw, or remember it in another order than it happened. So a refused
//! record waits, every record after it waits behind it, and the engine decides nothing new until all of them are durable.
//! The ledger may keep records that were on their way when it refused the first one, and so keep them before it. The engine
//! then records the present state of those machines again. An intent that is refused does not wait: its call is not made.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::effect::Effect;
use crate::model::id::{IntentId, RecordId};
use crate::model::incident::MachineKey;
use crate::record::Record;

use super::{JOINED_MAX, State};

/// So many refused records are kept before old findings among them are let go.
const UNWRITTEN_MAX: usize = 16_384;

/// Effects and records that wait to be taken, acknowledged or written.
#[derive(Clone, Debug)]
pub(super) struct Outbox {
    effects: Vec<Effect>,
    /// The number of the last record.
    last: RecordId,
    /// Records that the ledger has not acknowledged yet.
    outstanding: BTreeMap<RecordId, Record>,
    /// Records that the ledger refused, in order: they are written before anything new is decided.
    unwritten: VecDeque<Record>,
    /// At so many of them, findings are let go.
    unwritten_max: usize,
    /// A record was kept after an earlier one was refused.
    overtaken: bool,
    /// Why the ledger refused a record, until it has every record.
    refusal: Option<Arc<str>>,
}

/// What became of a record that the ledger answered for.
pub(super) struct Acknowledged {
    /// The intent that it holds.
    pub(super) intent: Option<IntentId>,
    /// The ledger had refused records, and has all of them now.
    pub(super) works_again: bool,
}

/// Machines of which a record that comes late says something that may be over.
#[derive(Default)]
struct Told {
    signed: BTreeSet<MachineKey>,
    traced: BTreeSet<MachineKey>,
    gone: BTreeSet<MachineKey>,
}

impl Default for Outbox {
    fn default() -> Self {
        Self {
            effects: Vec::new(),
            last: RecordId::default(),
            outstanding: BTreeMap::new(),
            unwritten: VecDeque::new(),
            unwritten_max: UNWRITTEN_MAX,
            overtaken: false,
            refusal: None,
        }
    }
}

impl Outbox {
    pub(super) fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// How many effects this step has so far.
    pub(super) const fn len(&self) -> usize {
        self.effects.len()
    }

    /// The effects of this step.
    pub(super) fn take(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Asks the ledger to keep a record; one that comes after a refused one waits behind it.
    pub(super) fn record(&mut self, record: Record) {
        if self.unwritten.is_empty() {
            self.emit(record);
        } else {
            self.keep(record);
        }
    }

    /// The same, whatever waits.
    pub(super) fn emit(&mut self, record: Record) -> RecordId {
        self.last = self.last.next();
        self.outstanding.insert(self.last, record.clone());
        self.effects.push(Effect::Record { id: self.last, record });
        self.last
    }

    /// Findings are replaced by later ones anyway; they alone are let go when a disk is full for very long. All at once, and
    /// again only when as many records have come: to look for the oldest at each new one would cost their square.
    fn keep(&mut self, record: Record) {
        let findings = |kept: &Record| matches!(kept, Record::Diagnosed { .. });
        if self.unwritten.len() >= self.unwritten_max {
            self.unwritten.retain(|kept| !findings(kept));
            self.unwritten_max = UNWRITTEN_MAX.max(2 * self.unwritten.len());
        }
        self.unwritten.push_back(record);
    }

    /// The ledger has it.
    pub(super) fn acknowledge(&mut self, id: RecordId) -> Acknowledged {
        let intent = self.outstanding.remove(&id).as_ref().and_then(intent_of);
        self.overtaken |= !self.unwritten.is_empty();
        // The ledger knows everything again: only then may anything new rest on it.
        let works_again = self.refusal.is_some() && self.unwritten.is_empty() && self.settle();
        Acknowledged { intent, works_again }
    }

    /// The ledger refused it. An intent comes to nothing with that, and everything else waits.
    pub(super) fn refuse(&mut self, id: RecordId) -> Option<IntentId> {
        self.refusal = Some(Arc::from("the last record was refused"));
        let record = self.outstanding.remove(&id)?;
        let intent = intent_of(&record);
        if intent.is_none() {
            self.keep(record);
        }
        intent
    }

    /// Why nothing may rest on the ledger now.
    pub(super) const fn refusal(&self) -> Option<&Arc<str>> {
        self.refusal.as_ref()
    }

    /// Records wait that the ledger refused, or that came behind those.
    pub(super) fn has_unwritten(&self) -> bool {
        !self.unwritten.is_empty()
    }

    /// Asks the ledger once more to keep what it refused.
    fn emit_unwritten(&mut self) -> Told {
        self.unwritten_max = UNWRITTEN_MAX;
        let mut told = Told::default();
        for record in std::mem::take(&mut self.unwritten) {
            told.take(&record);
            self.emit(record);
        }
        told
    }

    /// A refusal is over where nothing is on its way any more. True then.
    fn settle(&mut self) -> bool {
        let settled = self.outstanding.is_empty();
        if settled {
            self.refusal = None;
        }
        settled
    }
}

const fn intent_of(record: &Record) -> Option<IntentId> {
    match record {
        Record::Intended { intent, .. } => Some(*intent),
        _ => None,
    }
}

impl Told {
    fn take(&mut self, record: &Record) {
        match record {
            Record::Cordoned { machine, .. } => drop(self.signed.insert(machine.clone())),
            Record::Traced { machine, .. } => drop(self.traced.insert(machine.clone())),
            Record::Departed { machines, .. } | Record::Forgotten { machines, .. } => {
                self.gone.extend(machines.iter().cloned());
            }
            _ => {}
        }
    }
}

impl State {
    /// Tries the ledger once more.
    pub(super) fn write_again(&mut self) {
        let told = self.outbox.emit_unwritten();
        if std::mem::take(&mut self.outbox.overtaken) {
            let mut records = Vec::new();
            self.checkpoint_machines(&mut records);
            self.say_what_is_over(&told, &mut records);
            records.extend(self.requests.checkpoint(self.now));
            records.push(self.numbered(None));
            for record in records {
                self.outbox.emit(record);
            }
        }
        if self.outbox.settle() {
            self.rouse_held();
        }
    }

    /// A checkpoint tells what is so, and not what is over, because before a checkpoint there is nothing. Here there is: a cordon
    /// that was refused comes behind the record that it was taken off.
    fn say_what_is_over(&self, told: &Told, records: &mut Vec<Record>) {
        let at = self.now;
        for (machine, memory) in self.ever_in_memory().filter(|(machine, _)| told.signed.contains(machine)) {
            records.push(self.signed(machine, memory.signs));
        }
        records.extend(told.traced.iter().filter_map(|machine| self.traces.record(at, machine)));
        let is_there = |machine: &&MachineKey| self.context().seen(machine).is_some();
        let machines: Vec<MachineKey> = told.gone.iter().filter(is_there).cloned().collect();
        records
            .extend(machines.chunks(JOINED_MAX).map(|them| Record::Returned { at, machines: them.to_vec() }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::{Fence, IncidentId};
    use crate::model::time::Time;

    fn started(fence: u64) -> Record {
        Record::Started { at: Time::default(), fence: Fence(fence) }
    }

    fn findings() -> Record {
        Record::Diagnosed { at: Time::default(), incident: IncidentId(1), findings: Vec::new() }
    }

    fn taken(outbox: &mut Outbox) -> Vec<Record> {
        let record = |effect| match effect {
            Effect::Record { record, .. } => Some(record),
            _ => None,
        };
        outbox.take().into_iter().filter_map(record).collect()
    }

    #[test]
    fn record_after_a_refused_one_waits_behind_it() {
        let mut outbox = Outbox::default();
        let first = outbox.emit(started(1));
        assert_eq!(taken(&mut outbox), [started(1)]);
        assert_eq!(outbox.refuse(first), None);
        outbox.record(started(2));
        assert!(outbox.refusal().is_some() && taken(&mut outbox).is_empty());
        outbox.emit_unwritten();
        assert_eq!(taken(&mut outbox), [started(1), started(2)]);
        let ids: Vec<RecordId> = outbox.outstanding.keys().copied().collect();
        let works_again = ids.into_iter().map(|id| outbox.acknowledge(id).works_again).collect::<Vec<_>>();
        assert_eq!(works_again, [false, true], "only with the last of them");
        assert!(outbox.refusal().is_none() && !outbox.overtaken);
    }

    #[test]
    fn record_that_is_kept_before_a_refused_one_overtakes_it() {
        let mut outbox = Outbox::default();
        let [first, second] = [outbox.emit(started(1)), outbox.emit(started(2))];
        outbox.refuse(first);
        assert!(!outbox.acknowledge(second).works_again);
        assert!(outbox.overtaken);
    }

    #[test]
    fn findings_alone_are_let_go_when_too_many_records_wait() {
        let mut outbox = Outbox::default();
        let first = outbox.emit(started(1));
        outbox.refuse(first);
        (1..UNWRITTEN_MAX).for_each(|_| outbox.record(findings()));
        outbox.record(started(2));
        assert_eq!(outbox.unwritten, [started(1), started(2)]);
    }
}
