//! The rotation of the authority: how it begins, and how it ends when that locks no machine out.
//!
//! ```text
//!  --rotate-ca ─▶ one more authority ─▶ agents come again, are certified by it ─▶ their next session shows it: Record::Shown
//!  --finish-rotation ─▶ a machine that did not show it yet? ─ yes ─▶ Late, with their names
//!                                                          └ no, or --force ─▶ the authorities before are retired
//! ```
//!
//! A machine counts when it showed a certificate of the new authority, not when it was issued one: an answer with a
//! certificate can be lost. The record of it survives a restart. It counts from the welcome of a session, which needs
//! more than a key: a copy of the key renews, too. The rotation does not wait for machines that were removed, or whose
//! instance is gone for good. It does wait for a machine of which only the Node was removed: no session of it is
//! welcomed. So an operator readmits it until it has come, or forces the end.

use std::sync::PoisonError;

use reveille_wire::agent::text::List;

use super::admin::Answer;
use super::authority::{Authorities, AuthorityError};
use super::keeper::Over;
use super::listing::MachineRow;
use super::office::{Office, refused};
use super::routes::ServerState;
use super::tls::TlsAcceptor;
use crate::registry::{AuthorityHash, Event};

impl Office {
    pub(super) async fn rotate(&self) -> Answer {
        self.change(Authorities::add).await
    }

    pub(super) async fn finish_rotation(&self, force: bool) -> Answer {
        let keys = self.authorities();
        if let (false, [_, .., newest]) = (force, keys.as_slice()) {
            let (newest, keys) = (*newest, keys.clone());
            let late = self.state.hand.view(move |registry, now| {
                let mut late = registry.index().machines().filter(|known| known.waits_for(&newest));
                let some: Vec<_> =
                    late.by_ref().take(10).map(|known| MachineRow::of(registry, now, &keys, known)).collect();
                (some.len() + late.count(), some)
            });
            match late.await {
                Ok((0, _)) => {}
                Ok((count, some)) => {
                    let count = u32::try_from(count).unwrap_or(u32::MAX);
                    return Answer::Late { count, machines: List::first(some) };
                }
                Err(over) => return refused(over.to_string()),
            }
        }
        self.change(Authorities::finish).await
    }

    async fn change(&self, change: impl FnOnce(&mut Authorities) -> Result<(), AuthorityError>) -> Answer {
        let (changed, before, after) = {
            let mut authorities = self.state.authorities.lock().unwrap_or_else(PoisonError::into_inner);
            let before = authorities.keys();
            let changed = change(&mut authorities).map_err(|error| error.to_string());
            (changed, before, authorities.keys())
        };
        // A change that failed may have been made in part.
        let taken_up = if before == after { Ok(()) } else { self.take_up(&before, &after).await };
        match changed.and(taken_up) {
            Ok(()) => Answer::Pins(self.pins()),
            Err(why) => refused(why),
        }
    }

    /// Puts the new set of authorities in force.
    async fn take_up(&self, before: &[AuthorityHash], after: &[AuthorityHash]) -> Result<(), String> {
        let retired = before.iter().filter(|key| !after.contains(key)).copied().collect();
        // The registry hears of it before it hears of the next session: a machine that was checked before and has waited
        // since is refused there.
        let over = |over: Over| over.to_string();
        self.state.hand.say(Event::Retired(retired)).await.map_err(over)?;
        self.state.reopen(&self.names)?;
        self.state.hand.pins(self.pins().iter().map(ToString::to_string).collect()).await.map_err(over)
    }
}

impl ServerState {
    /// Makes another certificate for the server, from the current authorities; existing connections stay.
    pub(super) fn reopen(&self, names: &[String]) -> Result<(), String> {
        let authorities = self.authorities.lock().unwrap_or_else(PoisonError::into_inner);
        let serving = authorities.serving(names).map_err(|error| error.to_string())?;
        let acceptor = TlsAcceptor::new(&authorities, serving).map_err(|error| error.to_string())?;
        *self.acceptor.write().unwrap_or_else(PoisonError::into_inner) = acceptor;
        Ok(())
    }
}
