//! Machines whose instances are gone for good: after a grace period the server forgets their records and refuses their
//! certificates.
//!
//! ```text
//!  the engine: gone for good ─▶ Departed ─▶ a day without a session or a word ─▶ Forgotten ─▶ MACHINE_FORGOTTEN from then on
//!  the engine: in sight again ─▶ Returned        enrolled again ─▶ the mark is gone with the record before
//! ```
//!
//! Only the engine knows that an instance is gone: it asked the cloud for the id. A machine's own messages neither set
//! nor remove the mark, but the server does not forget a machine that still sends messages. Clouds never reuse an
//! instance id, so the record holds nothing else of use but the key's owner. The server keeps that for the last few
//! thousand machines.

use std::collections::BTreeSet;

use reveille_core::model::id::RosterName;
use reveille_wire::agent::Reason;
use reveille_wire::agent::identity::normal;
use reveille_wire::agent::text::Word;

use super::event::What;
use super::flow::JoinEnd;
use super::ids::MachineId;
use super::machine::Machine;
use super::record::Record;
use super::{Registry, Turn};

impl Registry {
    /// The cloud says that these instances are gone for good, or in sight again.
    pub(super) fn instances_seen(
        &mut self,
        turn: &mut Turn,
        roster: &RosterName,
        instances: &[Word],
        gone: bool,
    ) {
        // This does not use the index: a removed machine claims no name in it, and departs with its instance like any
        // other.
        let instances: BTreeSet<String> = instances.iter().map(|instance| normal(instance)).collect();
        let is_meant = |known: &&Machine| {
            known.roster == *roster
                && known.departed.is_some() != gone
                && known.instance().is_some_and(|instance| instances.contains(&normal(instance)))
        };
        let machines: Vec<MachineId> =
            self.index.machines().filter(is_meant).map(|known| known.id.clone()).collect();
        for machine in machines {
            let at = turn.now;
            self.record(
                turn,
                if gone { Record::Departed { at, machine } } else { Record::Returned { machine } },
            );
        }
    }

    /// Forgets machines whose instances have been gone for long, and that were silent since.
    pub(super) fn forget_departed(&mut self, turn: &mut Turn) {
        let over = |known: &&Machine| {
            let heard_at = self.heard_at(&known.id).unwrap_or(self.started_at);
            let since = known.departed.map(|departed| departed.max(heard_at));
            let is_over = since.is_some_and(|since| turn.now.since(since) >= self.settings.departed_kept);
            is_over && !self.conn_of.contains_key(&known.id)
        };
        let over: Vec<MachineId> = self.index.machines().filter(over).map(|known| known.id.clone()).collect();
        for machine in over {
            self.end_join(turn, &machine, JoinEnd::TimedOut);
            self.drop_token(turn, &machine);
            if let Some(known) = self.index.machine(&machine) {
                turn.tell(known, What::Forgotten);
            }
            self.heard_at.remove(&machine);
            self.told_silent.remove(&machine);
            self.tokens.remove(&machine);
            self.record(turn, Record::Forgotten { at: turn.now, machine });
        }
    }

    /// Why the server does not know the machine of a certificate.
    pub(super) fn unknown(&self, machine: &MachineId) -> Reason {
        if self.index.was_forgotten(machine) { Reason::MachineForgotten } else { Reason::CertificateUnknown }
    }
}
