//! What a cloud said about the roles of its service users, and when.
//!
//! ```text
//!  read by itself, seldom ─┬─ answered ─▶ said: held until the next answer
//!                          └─ failed ───▶ failed: what was said before is neither confirmed nor unsaid
//! ```
//!
//! No listing holds roles: the controller reads each user by itself. This view keeps answers and times and judges nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::access::{UserRef, UserRoles};
use crate::model::read_error::ReadError;
use crate::model::time::Time;

/// The service users of a cloud that were asked for.
#[derive(Clone, Debug, Default)]
pub struct AccessView {
    users: BTreeMap<Arc<UserRef>, Heard>,
}

/// What was heard of one user.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    /// The newest answer, and when it was asked for.
    pub said: Option<(UserRoles, Time)>,
    /// The newest failure, when nothing was answered since.
    pub failed: Option<ReadError>,
    /// Failures in a row.
    pub failures: u32,
}

impl AccessView {
    /// What was heard of this user; `None` before the first answer or failure.
    pub fn heard(&self, user: &UserRef) -> Option<&Heard> {
        self.users.get(user)
    }

    /// The cloud answered. A user that the roster names and that was asked for by its id, as a verdict does, is the same one.
    pub fn answered(&mut self, user: &Arc<UserRef>, roles: &UserRoles, asked_at: Time) {
        let is_same = |heard: &Heard| {
            let known = heard.said.as_ref().and_then(|(said, _)| said.user.as_ref());
            matches!(&**user, UserRef::Id(id) if known == Some(id))
        };
        if let UserRef::Id(_) = **user
            && !self.users.contains_key(user)
            && let Some(heard) = self.users.values_mut().find(|heard| is_same(heard))
        {
            heard.take(roles, asked_at);
            return;
        }
        self.users.entry(user.clone()).or_default().take(roles, asked_at);
    }

    /// It could not be told.
    pub fn could_not_tell(&mut self, user: &Arc<UserRef>, error: &ReadError) {
        let heard = self.users.entry(user.clone()).or_default();
        heard.failed = Some(error.clone());
        heard.failures = heard.failures.saturating_add(1);
    }

    /// The clock went back: what was said is as old as before.
    pub fn move_back(&mut self, moved: impl Fn(Time) -> Time) {
        for (_, asked_at) in self.users.values_mut().filter_map(|heard| heard.said.as_mut()) {
            *asked_at = moved(*asked_at);
        }
    }

    /// The clock went back: nothing was asked for later than now.
    pub fn go_back_to(&mut self, now: Time) {
        for (_, asked_at) in self.users.values_mut().filter_map(|heard| heard.said.as_mut()) {
            *asked_at = (*asked_at).min(now);
        }
    }
}

impl Heard {
    fn take(&mut self, roles: &UserRoles, asked_at: Time) {
        *self = Self { said: Some((roles.clone(), asked_at)), failed: None, failures: 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::access::Role;
    use crate::model::read_error::ReadErrorKind;
    use crate::model::time::Span;

    fn said(view: &AccessView, user: &UserRef) -> Vec<Arc<str>> {
        let heard = view.heard(user).and_then(|heard| heard.said.as_ref());
        heard.map(|(said, _)| said.held.iter().map(|role| role.name.clone()).collect()).unwrap_or_default()
    }

    #[test]
    fn failed_read_keeps_roles_and_answer_by_id_updates_named_user() {
        let at = Time::from_ms(1_000);
        let named = Arc::new(UserRef::Name { name: "ccm".into(), domain: None });
        let by_id = Arc::new(UserRef::Id("u-1".into()));
        let roles = |held: &[&str]| UserRoles {
            project: "p-1".into(),
            user: Some("u-1".into()),
            held: held.iter().map(|name| Role { id: (*name).into(), name: (*name).into() }).collect(),
            lacking: Vec::new(),
        };
        let mut view = AccessView::default();
        view.answered(&named, &roles(&["member"]), at);
        let error = ReadError { kind: ReadErrorKind::Forbidden, text: "403".into(), retry_after: None };
        view.could_not_tell(&named, &error);
        assert_eq!(said(&view, &named), ["member".into()]);
        assert_eq!(view.heard(&named).map(|heard| heard.failures), Some(1));
        view.answered(&by_id, &roles(&["member", "network_admin"]), at + Span::from_s(1));
        assert_eq!(said(&view, &named).len(), 2);
        assert!(
            view.heard(&by_id).is_none() && view.heard(&named).is_some_and(|heard| heard.failed.is_none())
        );
    }
}
