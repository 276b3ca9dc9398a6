//! Machines whose instances are gone for good: their records are forgotten, after a grace, and their certificates with them.
//!
//! ```text
//!  the engine: gone for good ─▶ Departed ─▶ a day without a session or a word ─▶ Forgotten ─▶ MACHINE_FORGOTTEN from then on
//!  the engine: in sight again ─▶ Returned        enrolled anew ─▶ the mark is gone with the record before
//! ```
//!
//! That an instance is gone the engine knows and nobody here: it asked the cloud by its id. What a machine says of itself neither
//! makes its mark nor takes it away; but one that is heard is not forgotten, whatever is said of it. An instance's id is never
//! given twice, so that nothing is lost with the record but who had that key; that much is kept of the last few thousand.

use std::collections::BTreeSet;

use reveille_core::model::id::RosterName;
use reveille_wire::agent::Reason;
use reveille_wire::agent::identity::normal;
use reveille_wire::agent::text::Word;

use super::course::JoinEnd;
use super::event::What;
use super::ids::MachineId;
use super::machine::Machine;
use super::record::Record;
use super::{Registry, Turn};

impl Registry {
    /// These are gone for good, or in sight again.
    pub(super) fn instances_seen(
        &mut self,
        turn: &mut Turn,
        roster: &RosterName,
        instances: &[Word],
        gone: bool,
    ) {
        // Not over the index: a machine that was removed claims nothing in it, and goes with its instance like any other.
        let instances: BTreeSet<String> = instances.iter().map(|instance| normal(instance)).collect();
        let is_meant = |known: &&Machine| {
            known.roster == *roster
                && known.departed.is_some() != gone
                && known.instance().is_some_and(|instance| instances.contains(&normal(instance)))
        };
        let machines: Vec<MachineId> =
            self.book.machines().filter(is_meant).map(|known| known.id.clone()).collect();
        for machine in machines {
            let at = turn.now;
            self.record(
                turn,
                if gone { Record::Departed { at, machine } } else { Record::Returned { machine } },
            );
        }
    }

    /// Those that have been gone for long, and of which nothing was heard since.
    pub(super) fn forget_departed(&mut self, turn: &mut Turn) {
        let over = |known: &&Machine| {
            let heard_at = self.heard_at(&known.id).unwrap_or(self.started_at);
            let since = known.departed.map(|departed| departed.max(heard_at));
            let is_over = since.is_some_and(|since| turn.now.since(since) >= self.settings.departed_kept);
            is_over && !self.conn_of.contains_key(&known.id)
        };
        let over: Vec<MachineId> = self.book.machines().filter(over).map(|known| known.id.clone()).collect();
        for machine in over {
            self.end_join(turn, &machine, JoinEnd::TimedOut);
            self.drop_token(turn, &machine);
            if let Some(known) = self.book.machine(&machine) {
                turn.tell(known, What::Forgotten);
            }
            self.heard_at.remove(&machine);
            self.told_silent.remove(&machine);
            self.tokens.remove(&machine);
            self.record(turn, Record::Forgotten { at: turn.now, machine });
        }
    }

    /// Why a certificate's machine is not known.
    pub(super) fn unknown(&self, machine: &MachineId) -> Reason {
        if self.book.was_forgotten(machine) { Reason::MachineForgotten } else { Reason::CertificateUnknown }
    }
}
