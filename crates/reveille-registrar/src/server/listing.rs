//! The known invitations and machines, as rows for operators: one page at a time, without any secret.
//!
//! ```text
//!  {"ask":"invitations","after":"6f0c…"} ─▶ a view of the registry ─▶ Page {rows, more} ─▶ again after its last row, while more
//! ```
//!
//! A page is bounded, so that fifty thousand machines neither fill an answer nor delay the registry's thread. Pages are
//! of different moments: a row that was added or removed between two pages may be in neither. Rows give ages and
//! remaining times by this server's clock, because the reader may have another clock.

use std::collections::BTreeSet;

use reveille_core::model::time::{Span, Time};
use reveille_wire::agent::Role;
use reveille_wire::agent::text::{List, Word};
use serde::{Deserialize, Serialize};

use crate::registry::{AuthorityHash, Invitation, Machine, Registry, Removal};

/// Rows of a page. A row with words of maximum length has about four kilobytes.
const ROWS_MAX: usize = 200;

/// Some of the rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page<T> {
    /// The rows, in the order of their ids.
    pub rows: List<T, ROWS_MAX>,
    /// More rows follow after the last one.
    pub more: bool,
}

impl<T> Page<T> {
    /// The first rows, as many as a page takes.
    pub(super) fn of(rows: impl Iterator<Item = T>) -> Self {
        let mut rows = rows.fuse();
        let some = List::first(rows.by_ref().take(ROWS_MAX));
        Self { rows: some, more: rows.next().is_some() }
    }
}

/// An invitation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InvitationRow {
    /// The token's public half.
    pub id: Word,
    /// The roster.
    pub roster: Word,
    /// The pool.
    pub pool: Word,
    /// The machine's roles.
    pub roles: BTreeSet<Role>,
    /// For this machine alone.
    pub machine: Option<Word>,
    /// The invitation may reimage a machine.
    pub reimage: bool,
    /// Whether the invitation is open.
    pub state: InvitationState,
    /// The number of uses that are left.
    pub uses_left: u32,
    /// The number of allowed uses.
    pub uses: u32,
    /// The end of the invitation.
    pub expires: Time,
    /// Seconds until the end; 0 when it has ended.
    pub expires_in_seconds: u64,
    /// How often a machine came with the invitation and claimed to be another one.
    pub conflicts: u32,
}

/// Whether an invitation is open, or why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InvitationState {
    /// The invitation is open.
    Open,
    /// The invitation was used as often as it allows.
    UsedUp,
    /// Too many machines came with the invitation and claimed to be another one.
    Void,
    /// An operator revoked the invitation.
    Revoked,
    /// The invitation has ended.
    Expired,
}

impl InvitationState {
    /// The name of the state.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::UsedUp => "used up",
            Self::Void => "void",
            Self::Revoked => "revoked",
            Self::Expired => "expired",
        }
    }

    fn of(invitation: &Invitation, now: Time) -> Self {
        if invitation.is_revoked {
            Self::Revoked
        } else if invitation.is_expired(now) {
            Self::Expired
        } else if invitation.is_void() {
            Self::Void
        } else if invitation.uses >= invitation.uses_max {
            Self::UsedUp
        } else {
            Self::Open
        }
    }
}

impl InvitationRow {
    pub(super) fn of(invitation: &Invitation, now: Time) -> Self {
        Self {
            id: Word::cut(invitation.id.as_str()),
            roster: Word::cut(invitation.roster.as_str()),
            pool: Word::cut(invitation.pool.as_str()),
            roles: invitation.roles.clone(),
            machine: invitation.machine.clone(),
            reimage: invitation.reimage.is_some(),
            state: InvitationState::of(invitation, now),
            uses_left: invitation.uses_max.saturating_sub(invitation.uses),
            uses: invitation.uses_max,
            expires: invitation.ends(now),
            expires_in_seconds: seconds(invitation.ends(now).since(now)),
            conflicts: invitation.conflicts,
        }
    }
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineRow {
    /// The machine's record.
    pub machine: Word,
    /// The name of the machine's Node.
    pub node_name: Word,
    /// The machine's instance, where it knows one.
    pub instance_id: Option<Word>,
    /// The machine's roster.
    pub roster: Word,
    /// The machine's pool.
    pub pool: Word,
    /// Seconds since the machine's last message; none: no message since this server's start.
    pub last_heard_seconds: Option<u64>,
    /// The machine has a session.
    pub connected: bool,
    /// The machine or its Node was removed.
    pub removed: Option<Removal>,
    /// The machine's instance is gone for good.
    pub departed: bool,
    /// Which authority signed the machine's certificate.
    pub certificate: Signed,
}

/// Which authority signed the certificate that a machine last showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signed {
    /// The newest authority.
    Current,
    /// An older authority, which is still in force.
    Before,
    /// A retired authority.
    Retired,
    /// The machine has not shown its certificate yet.
    NotShown,
}

impl Signed {
    /// The name of the value.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Before => "of the one before",
            Self::Retired => "of a retired one",
            Self::NotShown => "not shown yet",
        }
    }

    fn of(shown_by: Option<AuthorityHash>, authorities: &[AuthorityHash]) -> Self {
        match shown_by {
            None => Self::NotShown,
            Some(authority) if authorities.last() == Some(&authority) => Self::Current,
            Some(authority) if authorities.contains(&authority) => Self::Before,
            Some(_) => Self::Retired,
        }
    }
}

impl MachineRow {
    pub(super) fn of(registry: &Registry, now: Time, authorities: &[AuthorityHash], known: &Machine) -> Self {
        Self {
            machine: Word::cut(known.id.as_str()),
            node_name: known.node_name.clone(),
            instance_id: known.identity.instance_id.clone(),
            roster: Word::cut(known.roster.as_str()),
            pool: Word::cut(known.pool.as_str()),
            last_heard_seconds: registry.heard_at(&known.id).map(|at| seconds(now.since(at))),
            connected: registry.session_of(&known.id).is_some(),
            removed: known.removed,
            departed: known.departed.is_some(),
            certificate: Signed::of(known.shown_by, authorities),
        }
    }
}

fn seconds(span: Span) -> u64 {
    u64::try_from(span.ms / 1000).unwrap_or(0)
}
