//! Records on their way to the ledger: outstanding until the ledger acknowledges them, kept in order when it refuses them.
//!
//! A full disk must not make the engine forget what it saw, or remember it in another order than it happened. So a refused
//! record waits, every record after it waits behind it, and the engine decides nothing new until all of them are durable.
//! The ledger may keep records that were on their way when it refused the first one, and so keep them before it. The engine
//! then records the present state of those machines again.

use std::collections::BTreeSet;

use crate::effect::Effect;
use crate::model::id::RecordId;
use crate::model::incident::MachineKey;
use crate::record::Record;

use super::{JOINED_MAX, State};

/// So many refused records are kept before old findings among them are let go.
pub(super) const UNWRITTEN_MAX: usize = 16_384;

/// Machines of which a record that comes late says something that may be over.
#[derive(Default)]
struct Told {
    signed: BTreeSet<MachineKey>,
    traced: BTreeSet<MachineKey>,
    gone: BTreeSet<MachineKey>,
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
    /// Asks the ledger to keep a record; one that comes after a refused one waits behind it.
    pub(super) fn record(&mut self, record: Record) {
        if self.unwritten.is_empty() {
            self.emit_record(record);
        } else {
            self.keep_unwritten(record);
        }
    }

    pub(super) fn emit_record(&mut self, record: Record) -> RecordId {
        self.numbers.record = self.numbers.record.next();
        let id = self.numbers.record;
        self.outstanding.insert(id, record.clone());
        self.effects.push(Effect::Record { id, record });
        id
    }

    /// Findings are replaced by later ones anyway; they alone are let go when a disk is full for very long. All at once, and
    /// again only when as many records have come: to look for the oldest at each new one would cost their square.
    pub(super) fn keep_unwritten(&mut self, record: Record) {
        let findings = |kept: &Record| matches!(kept, Record::Diagnosed { .. });
        if self.unwritten.len() >= self.unwritten_max {
            self.unwritten.retain(|kept| !findings(kept));
            self.unwritten_max = UNWRITTEN_MAX.max(2 * self.unwritten.len());
        }
        self.unwritten.push_back(record);
    }

    pub(super) fn write_again(&mut self) {
        self.unwritten_max = UNWRITTEN_MAX;
        let mut told = Told::default();
        for record in std::mem::take(&mut self.unwritten) {
            told.take(&record);
            self.emit_record(record);
        }
        if std::mem::take(&mut self.overtaken) {
            let mut records = Vec::new();
            self.checkpoint_machines(&mut records);
            self.say_what_is_over(&told, &mut records);
            self.checkpoint_requests(&mut records);
            records.push(self.numbered(None));
            for record in records {
                self.emit_record(record);
            }
        }
        if self.outstanding.is_empty() {
            self.ledger_error = None;
            self.rouse_held();
        }
    }

    /// A checkpoint tells what is so, and not what is over, because before a checkpoint there is nothing. Here there is: a cordon
    /// that was refused comes behind the record that it was taken off.
    fn say_what_is_over(&self, told: &Told, records: &mut Vec<Record>) {
        let at = self.now;
        let known = self.in_memory().chain(self.departed.iter().cloned());
        for (machine, memory) in known.filter(|(machine, _)| told.signed.contains(machine)) {
            records.push(self.signed(machine, memory.signs));
        }
        for machine in &told.traced {
            if let Some(traced) = self.traces.get(machine) {
                let (machine, trace, told) = (machine.clone(), traced.trace.clone(), traced.told.clone());
                records.push(Record::Traced { at, machine, trace, told });
            }
        }
        let is_there = |machine: &&MachineKey| self.desk().seen(machine).is_some();
        let machines: Vec<MachineKey> = told.gone.iter().filter(is_there).cloned().collect();
        records
            .extend(machines.chunks(JOINED_MAX).map(|them| Record::Returned { at, machines: them.to_vec() }));
    }
}
