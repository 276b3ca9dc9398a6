//! Records on their way to the ledger: outstanding until the ledger acknowledges them, kept in order when it refuses them.
//!
//! A full disk must not make the engine forget what it saw, or remember it in another order than it happened. So a refused
//! record waits, every record after it waits behind it, and the engine decides nothing new until all of them are durable.
//! The ledger may keep records that were on their way when it refused the first one, and so keep them before it. The engine
//! then records the present state of those machines again.

use crate::effect::Effect;
use crate::model::id::RecordId;
use crate::record::Record;

use super::State;

/// So many refused records are kept before old findings among them are let go.
pub(super) const UNWRITTEN_MAX: usize = 16_384;

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
        for record in std::mem::take(&mut self.unwritten) {
            self.emit_record(record);
        }
        if std::mem::take(&mut self.overtaken) {
            let mut records = Vec::new();
            self.checkpoint_machines(&mut records);
            self.checkpoint_requests(&mut records);
            for record in records {
                self.emit_record(record);
            }
        }
        if self.outstanding.is_empty() {
            self.ledger_error = None;
            self.rouse_held();
        }
    }
}
