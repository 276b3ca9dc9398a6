//! Since when it is open what became of a machine that went from its cloud's list.
//!
//! ```text
//!  a full list lacks it, and it is not proved to be gone ─▶ a minute later: the ledger knows since when ─▶ `plan::interlock`
//!  listed again ──────────────────────────────────────────▶ that is over, in the ledger too
//!  proved to be gone, or without its marks ───────────────▶ the ledger tells that
//! ```
//!
//! Meanwhile a client may be deleting machines of its pool, which is held for an hour. A cell was down, and we were restarted
//! each fifty minutes: each process counted that hour from its own first list, and repaired nothing in the pool for as long.

use crate::model::id::{CloudName, InstanceId};
use crate::model::incident::MachineKey;
use crate::model::time::{Span, Time};
use crate::observe::cloud::Seen;
use crate::observe::machine_signs::Signs;

use super::State;

/// Most are asked for and denied within this, and the ledger needs to know nothing more of them.
const TOLD_AFTER: Span = Span::from_min(1);

impl State {
    /// The cloud was listed in full.
    pub(super) fn review_fates(&mut self, cloud: &CloudName) {
        let Some(view) = self.clouds.get(cloud) else { return };
        let key = |id: &InstanceId| MachineKey::Instance(cloud.clone(), id.clone());
        let unlisted = |seen: &Seen| {
            // Of one of no pool the ledger knows nothing: as one that the first list lacks it would hold every pool.
            let unlisted = seen.unlisted.filter(|unlisted| !unlisted.is_gone() && seen.pool().is_some())?;
            Some((key(&seen.instance.id), unlisted.since, seen.signs.clone()))
        };
        let mut open: Vec<(MachineKey, Time, Signs)> = view.unlisted().filter_map(unlisted).collect();
        if let Some(listed) = view.first_listed() {
            let is_unseen = |key: &MachineKey| match key {
                MachineKey::Instance(of, id) => of == cloud && !view.instances.contains_key(id),
                MachineKey::Node(_) => false,
            };
            let unseen = self.out_of_sight.unseen().iter().filter(|(key, _)| is_unseen(key));
            open.extend(unseen.map(|(key, memory)| (key.clone(), listed, memory.signs.clone())));
        }
        self.end_fates(cloud, &open);
        for (key, since, signs) in open {
            if self.now.since(since) >= TOLD_AFTER && self.out_of_sight.note_fate(&key, since) {
                self.outbox.record(self.signed(key, signs));
            }
        }
    }

    /// What is not open any more is over. Of what is out of sight by now the ledger knows it.
    fn end_fates(&mut self, cloud: &CloudName, open: &[(MachineKey, Time, Signs)]) {
        let is_open = |key: &MachineKey| open.iter().any(|(open, ..)| open == key);
        let here = |key: &&MachineKey| matches!(key, MachineKey::Instance(of, _) if of == cloud);
        let over: Vec<MachineKey> =
            self.out_of_sight.open_fates().keys().filter(here).filter(|key| !is_open(key)).cloned().collect();
        for key in over {
            self.out_of_sight.set_fate(&key, None);
            let signs = self.context().seen(&key).map(|(_, seen)| seen.signs.clone());
            if let Some(signs) = signs {
                self.outbox.record(self.signed(key, signs));
            }
        }
    }
}
