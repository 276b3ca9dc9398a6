//! Invitations: who may come, as what, for how long, how often.
//!
//! A token is `rvi1.ID.SECRET`. The id is public and finds the invitation; the secret is 32 random bytes, of which the hash is
//! kept and compared in constant time. An unknown id and a wrong secret are one answer, so that nobody learns from it which ids
//! there are; what else is wrong with an invitation is said to whoever has its secret, and to nobody else.
//!
//! Who has a token can try names: each refusal tells what the machine that is known says of itself, and tells that one, too.
//! So an invitation is void after a few conflicts.
//!
//! One that a person took back is kept until it is forgotten like any other: whoever has its secret is told so.

use std::collections::BTreeSet;

use reveille_core::model::id::{PoolName, RosterName};
use reveille_core::model::time::{Span, Time};
use reveille_wire::agent::text::Word;
use reveille_wire::agent::{Reason, Role};
use serde::{Deserialize, Serialize};

use super::ids::{InvitationId, MachineId, TokenHash};

/// Conflicts of identity that an invitation may lead to, beside one for each of its uses: a machine whose name is taken is
/// corrected and comes again, and a rack of a hundred has its clones.
const CONFLICTS_MAX: u32 = 4;

/// What somebody wants an invitation for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Of which roster.
    pub roster: RosterName,
    /// For which pool.
    pub pool: PoolName,
    /// As what.
    pub roles: BTreeSet<Role>,
    /// For this machine alone: its record, a lasting part of its identity, or the name of its node.
    pub machine: Option<Word>,
    /// It may be a machine that is known, made anew.
    pub reimage: Option<Reimage>,
    /// How long it lasts.
    pub ttl: Span,
    /// How often it may be used.
    pub uses: u32,
}

/// When a known machine may come with another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reimage {
    /// When the one that is known has been silent for a while: two that live are two machines.
    WhenSilent,
    /// At once: a person said that the one that is known is no more.
    AtOnce,
}

/// An invitation, in the book and in its record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Invitation {
    /// When it was given.
    pub at: Time,
    /// Its public half.
    #[serde(rename = "invitation")]
    pub id: InvitationId,
    /// The hash of its secret half.
    pub hash: TokenHash,
    /// Of which roster.
    pub roster: RosterName,
    /// For which pool.
    pub pool: PoolName,
    /// As what.
    pub roles: BTreeSet<Role>,
    /// For this machine alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<Word>,
    /// The record that was meant by that, where one was known when the invitation was given: another machine may be called alike
    /// since. None in a line of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<MachineId>,
    /// It may be one that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reimage: Option<Reimage>,
    /// It ends then; for one that was given by a clock that was ahead, see [`Invitation::ends`].
    pub until: Time,
    /// Since when it is known to be given at a time that is still to come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead_since: Option<Time>,
    /// Since when it is over for good: it had been given all of its time. A clock that is set opens it no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_since: Option<Time>,
    /// How often it may be used.
    pub uses_max: u32,
    /// How often it was.
    #[serde(default)]
    pub uses: u32,
    /// How often somebody came with it who claimed what another machine is known by.
    #[serde(default)]
    pub conflicts: u32,
    /// A person took it back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_revoked: bool,
}

/// An invitation that was used for the last time, or is void.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvitationOver {
    /// Its public half.
    pub id: InvitationId,
    /// Of which roster.
    pub roster: RosterName,
    /// For which pool.
    pub pool: PoolName,
    /// How often it was used.
    pub uses: u32,
    /// The conflicts that made it void; none when it was used up.
    pub conflicts: Option<u32>,
}

impl InvitationOver {
    /// It is void, and not only used up.
    pub const fn is_void(&self) -> bool {
        self.conflicts.is_some()
    }
}

impl Invitation {
    /// It has just been used for the last time, or met the conflict that makes it void.
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

    /// It opens with this secret.
    pub fn opens(&self, hash: &TokenHash) -> bool {
        aws_lc_rs::constant_time::verify_slices_are_equal(&self.hash.0, &hash.0).is_ok()
    }

    /// When it ends. Given at a time that is still to come, it lasts as long as it was to from when that was seen: the clock was
    /// ahead, and an hour that ends in half a year is time enough to find a token. Or the clock is behind, for a moment: then
    /// what was given stays as it was when the clock is mended.
    pub fn ends(&self, now: Time) -> Time {
        let end = match self.ahead_since {
            Some(since) if self.at > now => since + self.lasts(),
            _ => self.until,
        };
        self.over_since.map_or(end, |over| end.min(over))
    }

    /// How long it was to last.
    pub(super) fn lasts(&self) -> Span {
        self.until.since(self.at)
    }

    /// Its time is over.
    pub fn is_expired(&self, now: Time) -> bool {
        self.over_since.is_some() || now >= self.ends(now)
    }

    /// What is wrong with it; to be said only to whoever has its secret.
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

    /// Too often somebody came with it who claimed to be another machine.
    pub fn is_void(&self) -> bool {
        self.conflicts >= self.uses_max.saturating_add(CONFLICTS_MAX)
    }
}
