//! Invitations: which machines may come, with which roles, for how long, and how often.
//!
//! A token is `rvi1.ID.SECRET`. The id is public and finds the invitation. The secret is 32 random bytes; the server
//! keeps its hash and compares in constant time. An unknown id and a wrong secret have the same answer, so that a client
//! cannot find out which ids exist. Other problems of an invitation are told only to a client that has its secret.
//!
//! A token's holder can try names: each refusal tells what the known machine says about itself, and the known machine is
//! told of the attempt. So an invitation becomes void after a few conflicts.
//!
//! A revoked invitation is kept until it is forgotten like any other: a client that has its secret is told that it was
//! revoked.

use std::collections::BTreeSet;

use reveille_core::model::id::{PoolName, RosterName};
use reveille_core::model::time::{Span, Time};
use reveille_wire::agent::text::Word;
use reveille_wire::agent::{Reason, Role};
use serde::{Deserialize, Serialize};

use super::ids::{InvitationId, MachineId, TokenHash};

/// The number of identity conflicts that an invitation allows, beyond one for each use. A machine whose name is taken is
/// corrected and comes again, and a rack of a hundred machines has its clones.
const CONFLICTS_MAX: u32 = 4;

/// The invitation that an operator asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The roster.
    pub roster: RosterName,
    /// The pool.
    pub pool: PoolName,
    /// The machine's roles.
    pub roles: BTreeSet<Role>,
    /// For this machine alone: its record, a lasting part of its identity, or the name of its Node.
    pub machine: Option<Word>,
    /// The invitation may reimage a known machine.
    pub reimage: Option<Reimage>,
    /// The invitation's lifetime.
    pub ttl: Span,
    /// The number of allowed uses.
    pub uses: u32,
}

/// When a known machine may come with another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reimage {
    /// When the known machine has been silent for a while: two machines that both send messages are two machines.
    WhenSilent,
    /// At once: an operator said that the known machine does not exist any more.
    AtOnce,
}

/// An invitation, in the index and in its record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Invitation {
    /// The time at which it was made.
    pub at: Time,
    /// The token's public half.
    #[serde(rename = "invitation")]
    pub id: InvitationId,
    /// The hash of the token's secret half.
    pub hash: TokenHash,
    /// The roster.
    pub roster: RosterName,
    /// The pool.
    pub pool: PoolName,
    /// The machine's roles.
    pub roles: BTreeSet<Role>,
    /// For this machine alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<Word>,
    /// The record of the named machine, where one was known when the invitation was made: another machine may have got
    /// the same name since. None in a record of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<MachineId>,
    /// The invitation may reimage a known machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reimage: Option<Reimage>,
    /// The end of the invitation. For an invitation that was made while the clock was ahead, see [`Invitation::ends`].
    pub until: Time,
    /// Since when the server knows that the invitation's date is in the future.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead_since: Option<Time>,
    /// Since when the invitation has ended for good: it had its whole lifetime. Setting the clock does not open it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_since: Option<Time>,
    /// The number of allowed uses.
    pub uses_max: u32,
    /// The number of uses so far.
    #[serde(default)]
    pub uses: u32,
    /// How often a machine came with the invitation and claimed a name of another machine.
    #[serde(default)]
    pub conflicts: u32,
    /// An operator revoked the invitation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_revoked: bool,
}

/// An invitation that was used for the last time, or became void.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvitationOver {
    /// The token's public half.
    pub id: InvitationId,
    /// The roster.
    pub roster: RosterName,
    /// The pool.
    pub pool: PoolName,
    /// The number of uses.
    pub uses: u32,
    /// The number of conflicts that made the invitation void; none when it was used up.
    pub conflicts: Option<u32>,
}

impl InvitationOver {
    /// The invitation is void, and not only used up.
    pub const fn is_void(&self) -> bool {
        self.conflicts.is_some()
    }
}

impl Invitation {
    /// The result if the invitation has just been used for the last time, or had the conflict that makes it void.
    pub(super) fn over(&self, by_conflict: bool) -> Option<InvitationOver> {
        let is_over = if by_conflict { self.is_void() } else { self.uses == self.uses_max };
        is_over.then(|| InvitationOver {
            id: self.id.clone(),
            roster: self.roster.clone(),
            pool: self.pool.clone(),
            uses: self.uses,
            conflicts: by_conflict.then_some(self.conflicts),
        })
    }

    /// The secret with this hash opens the invitation.
    pub fn opens(&self, hash: &TokenHash) -> bool {
        aws_lc_rs::constant_time::verify_slices_are_equal(&self.hash.0, &hash.0).is_ok()
    }

    /// The end of the invitation. An invitation with a date in the future lasts for its lifetime, counted from when the
    /// server noticed the date. Then the clock was ahead, and an invitation that ends in half a year gives an attacker
    /// time to find its token. Or the clock is behind for a moment; then the invitation keeps its own end once the clock
    /// is right again.
    pub fn ends(&self, now: Time) -> Time {
        let end = match self.ahead_since {
            Some(since) if self.at > now => since + self.lasts(),
            _ => self.until,
        };
        self.over_since.map_or(end, |over| end.min(over))
    }

    /// The lifetime of the invitation.
    pub(super) fn lasts(&self) -> Span {
        self.until.since(self.at)
    }

    /// The invitation has ended.
    pub fn is_expired(&self, now: Time) -> bool {
        self.over_since.is_some() || now >= self.ends(now)
    }

    /// The problem of the invitation, told only to a client that has its secret.
    pub fn trouble(&self, now: Time) -> Option<Reason> {
        if self.is_revoked {
            return Some(Reason::TokenRevoked);
        }
        if self.is_expired(now) {
            return Some(Reason::TokenExpired);
        }
        if self.is_void() {
            return Some(Reason::TokenVoid);
        }
        (self.uses >= self.uses_max).then_some(Reason::TokenUsedUp)
    }

    /// Too often a machine came with the invitation and claimed to be another machine.
    pub fn is_void(&self) -> bool {
        self.conflicts >= self.uses_max.saturating_add(CONFLICTS_MAX)
    }
}
