//! The authority is replaced: begun, and ended when nobody is locked out by that.
//!
//! ```text
//!  --rotate-ca ─▶ one more authority ─▶ agents come again, are certified by it ─▶ their next session shows it: Record::Shown
//!  --finish-rotation ─▶ somebody who did not show it yet? ─ yes ─▶ Late, with their names
//!                                                        └ no, or --force ─▶ the authorities before are retired
//! ```
//!
//! What was shown counts, not what was issued: an answer with a certificate can be lost on its way. It is remembered over a
//! restart. It counts from the welcome of a session on, which says who comes by more than a key: a copy of the key renews, too.
//! Machines that were removed, or whose instance is gone for good, are not waited for. One of which only the Node was removed is:
//! it is welcomed by no session, so that a person lets it in again until it came, or insists.

use std::sync::PoisonError;

use reveille_wire::agent::text::List;

use super::admin::{Answer, Office, refused};
use super::authority::{Authorities, AuthorityError};
use super::listing::MachineRow;
use super::routes::Hall;
use super::tls::Doorman;

impl Office {
    pub(super) async fn rotate(&self) -> Answer {
        self.change(Authorities::add).await
    }

    pub(super) async fn finish_rotation(&self, force: bool) -> Answer {
        let keys = self.authorities();
        if let (false, [_, .., newest]) = (force, keys.as_slice()) {
            let (newest, keys) = (*newest, keys.clone());
            let late = self.hall.hand.view(move |registry, now| {
                let mut late = registry.book().machines().filter(|known| known.waits_for(&newest));
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
        let changed = {
            let mut authorities = self.hall.authorities.lock().unwrap_or_else(PoisonError::into_inner);
            change(&mut authorities).map_err(|error| error.to_string())
        };
        if let Err(why) = changed.and_then(|()| self.hall.reopen(&self.names)) {
            return refused(why);
        }
        let pins = self.pins();
        match self.hall.hand.pins(pins.iter().map(ToString::to_string).collect()).await {
            Ok(()) => Answer::Pins(pins),
            Err(over) => refused(over.to_string()),
        }
    }
}

impl Hall {
    /// Another certificate of the server, after the authorities of this moment; those who are connected stay so.
    pub(super) fn reopen(&self, names: &[String]) -> Result<(), String> {
        let authorities = self.authorities.lock().unwrap_or_else(PoisonError::into_inner);
        let serving = authorities.serving(names).map_err(|error| error.to_string())?;
        let doorman = Doorman::new(&authorities, serving).map_err(|error| error.to_string())?;
        *self.doorman.write().unwrap_or_else(PoisonError::into_inner) = doorman;
        Ok(())
    }
}
