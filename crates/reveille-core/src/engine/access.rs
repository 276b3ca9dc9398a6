//! Service users: when the controller reads their roles, and what it does with the answers.
//!
//! ```text
//!  first listing of the cloud ─▶ read each user ─┬─ all is well ─▶ again after `check_every`
//!                                                └─ a role is missing, or the read failed (not 403) ─▶ again sooner
//! ```
//!
//! These reads have an interval of their own, so a cycle of listings costs no more because of them. For a roster that names
//! no service user, the controller reads no roles.

use std::sync::Arc;

use crate::diagnose::access_faults::{self, OfUser};
use crate::effect::{Look, ReadError, ReadErrorKind};
use crate::event::Answer;
use crate::model::access::UserRef;
use crate::model::id::CloudName;
use crate::model::incident::{IncidentKey, Subject};
use crate::model::time::Span;

use super::cases::Blind;
use super::{LookFor, State, Wake};

/// While a role is missing, or a read failed by chance, the controller reads the roles this often: an operator may be
/// granting the role at that moment.
const AGAIN: Span = Span::from_min(5);

impl State {
    /// A cloud was heard: from now on its service users are asked for.
    pub(super) fn begin_access(&mut self, cloud: &CloudName) {
        if self.roster.access.users.is_empty() {
            return;
        }
        let here = self.roster.access.users.iter().filter(|user| user.cloud == *cloud);
        let users: Vec<Arc<UserRef>> = here.map(|user| user.user.clone()).collect();
        for user in users {
            if !self.timers.has(&Wake::Access(cloud.clone(), user.clone())) {
                self.ask_for_roles(cloud, &user);
            }
        }
    }

    pub(super) fn ask_for_roles(&mut self, cloud: &CloudName, user: &Arc<UserRef>) {
        let Some(wanted) = self.roster.access.user(cloud, user) else { return };
        let look = Look::Roles(cloud.clone(), user.clone(), wanted.roles.clone());
        self.reads.ask(look, LookFor::Access(cloud.clone(), user.clone()));
        // An answer that never comes is asked for again in its turn.
        let again = self.now + self.roster.access.check_every;
        self.timers.set(again, Wake::Access(cloud.clone(), user.clone()));
    }

    pub(super) fn on_access_answer(
        &mut self,
        cloud: &CloudName,
        user: &Arc<UserRef>,
        answer: &Result<Answer, ReadError>,
    ) {
        if let (Err(error), Some(view)) = (answer, self.clouds.get_mut(cloud)) {
            view.access.could_not_tell(user, error);
            self.dirty_projects.insert(cloud.clone());
        }
        let every = self.roster.access.check_every;
        let lacks = || {
            let said = self.clouds.get(cloud).and_then(|view| view.access.heard(user)?.said.as_ref());
            let wanted = self.roster.access.user(cloud, user);
            said.zip(wanted)
                .is_some_and(|((said, _), wanted)| !access_faults::lacking(wanted, said).is_empty())
        };
        let sooner = match answer {
            Ok(_) => lacks(),
            // A read that is refused now is refused in an hour, too.
            Err(error) => error.kind != ReadErrorKind::Forbidden,
        };
        let again = if sooner { every.min(AGAIN) } else { every };
        self.timers.set(self.now + again, Wake::Access(cloud.clone(), user.clone()));
    }

    /// Opens, refreshes and closes the incidents of a cloud's service users.
    pub(super) fn review_access(&mut self, name: &CloudName) {
        let Some(view) = self.clouds.get(name) else { return };
        let sighted = view.source.trust(self.now).is_given();
        let mut found = access_faults::of_users(&self.roster, view, self.now);
        // The controller closes the incidents of users that the roster no longer names.
        let unnamed = |key: &IncidentKey| match &key.subject {
            Subject::User(cloud, user) => cloud == name && self.roster.access.user(cloud, user).is_none(),
            _ => false,
        };
        for key in self.incidents.open().keys().filter(|key| unnamed(key)) {
            let label = Arc::from(key.subject.to_string());
            found.push(OfUser { subject: key.subject.clone(), label, faults: Vec::new(), told: true });
        }
        for OfUser { subject, label, faults, told } in found {
            let blind = if sighted && told { Blind::No } else { Blind::Yes };
            self.settle_cases(&subject, faults, blind, label, None);
        }
    }
}
