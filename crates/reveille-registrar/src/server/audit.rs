//! Which account asked for what, as one log line each: an operator later finds there what admitted or removed machines.
//!
//! ```text
//!  the socket's peer (SO_PEERCRED) ─▶ by      the question and its answer ─▶ what      ─▶ tracing, after it is durable
//!  an invitation that opens nothing any more, by its last client ─▶ over              ─┘
//! ```
//!
//! No line holds a token: of an invitation a line has the id. A refused question changed nothing and has no line.

use tokio::net::UnixStream;

use super::admin::{Answer, Ask};
use crate::registry::{InvitationOver, Reimage, Removal};

/// The account of the process at the other end of the socket, where the operating system tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asker(Option<u32>);

impl Asker {
    pub(super) fn of(stream: &UnixStream) -> Self {
        Self(stream.peer_cred().ok().map(|peer| peer.uid()))
    }
}

impl std::fmt::Display for Asker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(uid) => write!(f, "uid {uid}"),
            None => f.write_str("an unknown account"),
        }
    }
}

/// Logs what was asked for and done.
pub(super) fn done(by: Asker, ask: &Ask, answer: &Answer) {
    match (ask, answer) {
        (Ask::Invite { pool, machine, reimage, ttl_s, uses, .. }, Answer::Invited(invited)) => {
            let (invitation, roster) = (&invited.id, &invited.roster);
            let machine = machine.as_deref().unwrap_or("any");
            let what = match reimage {
                None => "an invitation was made",
                Some(Reimage::WhenSilent) => {
                    "an invitation was made by which a machine is rebuilt when it is silent"
                }
                Some(Reimage::AtOnce) => "an invitation was made by which a machine is rebuilt at once",
            };
            tracing::info!(%by, %invitation, %roster, %pool, machine, uses, ttl_s, "{what}");
        }
        (Ask::Revoke { id }, Answer::Revoked { count, .. }) => {
            tracing::info!(%by, invitation = %id, let_in = count, "an invitation was taken back");
        }
        (Ask::Remove { machine: name, what }, Answer::Removed(machine)) => {
            let what = match what {
                Some(Removal::Machine) => "a machine was removed",
                Some(Removal::Node) => "the Node of a machine was removed",
                None => "a machine was let in again",
            };
            tracing::info!(%by, %machine, %name, "{what}");
        }
        (Ask::RotateCa {}, Answer::Pins(pins)) => {
            let pin = pins.last().map(|pin| pin.as_str()).unwrap_or_default();
            tracing::info!(%by, pin, "another authority was introduced");
        }
        (Ask::FinishRotation { force: false }, Answer::Pins(_)) => {
            tracing::info!(%by, "the authorities before the newest were retired");
        }
        (Ask::FinishRotation { force: true }, Answer::Pins(_)) => {
            tracing::warn!(%by, "the authorities before the newest were retired; machines that know no newer one are locked out");
        }
        _ => {}
    }
}

/// Logs that an invitation is used up or void, because of the machines that used it.
pub(super) fn over(over: &InvitationOver) {
    let InvitationOver { id, roster, pool, uses, conflicts } = over;
    if over.is_void() {
        tracing::warn!(invitation = %id, %roster, %pool, uses, conflicts, "an invitation is void: too many came with it as another machine");
    } else {
        tracing::info!(invitation = %id, %roster, %pool, uses, "an invitation was used for the last time");
    }
}
