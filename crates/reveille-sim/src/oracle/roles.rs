//! Roles of service users: which user gets them, on which evidence, and whether the controller read them back.
//!
//! A role that no roster wants the user to hold, or one on another project, is harm, and the world counts it. This module judges
//! what a careful operator would not have done either. Examples are a role given where that is not switched on, on an old
//! reading, on one of another user, or although the user just held it. So is a role that counts as given without another read.

use std::sync::Arc;

use reveille_core::effect::{Call, Look, ReadError};
use reveille_core::event::Answer;
use reveille_core::model::access::{RoleRef, UserRef, UserRoles};
use reveille_core::model::id::LookId;
use reveille_core::model::roster::{Mode, Roster};
use reveille_core::model::time::{Span, Time};
use reveille_core::remedies::AssignRoles;

use super::{Intent, Oracle};

/// What a user was said to hold longer ago is no ground for giving it more.
const SAID_LASTS: Span = Span::from_s(35);

/// What Keystone last said of a user.
#[derive(Clone, Debug)]
pub(super) struct Said {
    roles: UserRoles,
    asked_at: Time,
    heard_at: Time,
}

impl Oracle {
    /// A question about roles was answered, or not.
    pub(super) fn note_roles(&mut self, id: LookId, look: &Look, answer: &Result<Answer, ReadError>) {
        let asked_at = self.roles_asked.remove(&id).unwrap_or(self.now);
        if let (Look::Roles(_, user, _), Ok(Answer::Roles(roles))) = (look, answer) {
            let said = Said { roles: roles.clone(), asked_at, heard_at: self.now };
            self.roles_said.insert(user.clone(), said);
        }
    }

    /// Before it is recorded that roles are to be given.
    pub(super) fn judge_giving(&mut self, call: &Call, roster: &Roster) {
        let Call::AssignRoles(AssignRoles { user, roles, project, .. }) = call else { return };
        if roster.access.repair != Mode::Act {
            self.foul("not switched on", call.to_string());
        }
        let (now, written_at) = (self.now, self.written_at());
        let named = roster.access.users.iter().filter_map(|known| self.roles_said.get(&known.user));
        let of_whom =
            named.filter(|said| said.roles.user.as_ref() == Some(user) && said.roles.project == *project);
        let newest = of_whom.max_by_key(|said| said.heard_at).cloned();
        let Some(said) = newest else {
            return self.foul("it was not looked at", format!("{call}: what it holds was not read"));
        };
        if written_at.since(said.asked_at) > SAID_LASTS {
            let ago = now.since(said.asked_at);
            self.foul("it was not looked at", format!("{call}: what it holds was asked for {ago} ago"));
        }
        let holds = |id: &_| said.roles.holds(&RoleRef::Id(Clone::clone(id)));
        if let Some(role) = roles.iter().find(|role| holds(&role.id)) {
            self.foul("it holds it", format!("{call}: it was just said to hold {}", role.name));
        }
    }

    /// The role counts as given: the controller must have read that since.
    pub(super) fn judge_given(&mut self, intended: &Intent) {
        let Call::AssignRoles(AssignRoles { user, roles, .. }) = &intended.call else { return };
        let after = intended.done_at.or(intended.called).unwrap_or(self.began_at);
        let shows = |said: &Said| {
            said.roles.user.as_ref() == Some(user)
                && said.heard_at >= after
                && roles.iter().all(|role| said.roles.holds(&RoleRef::Id(role.id.clone())))
        };
        if !self.roles_said.values().any(shows) {
            self.foul("read back", format!("{} counts as done, and it was not seen", intended.call));
        }
    }

    /// Another process has heard nothing yet.
    pub(super) fn forget_roles(&mut self) {
        self.roles_said.clear();
        self.roles_asked.clear();
        self.began_at = self.now;
    }
}

/// By the words that it was asked for with.
pub(super) type SaidOf = std::collections::BTreeMap<Arc<UserRef>, Said>;
