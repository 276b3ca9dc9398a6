//! Which user holds which role on the project, as Keystone truly has it.
//!
//! Users are those that the roster names; each begins with every role that it must hold, and one more that no roster asks for.
//! Ids are made from names, so that a log can be read. A fault takes a role away or gives it back, or lets answers lag. Lagging
//! answers show the roles as they were when the lag began.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reveille_core::model::access::{Role, RoleRef, UserRef, UserRoles};
use reveille_core::model::id::{ProjectId, RoleId, UserId};
use reveille_core::model::roster::Access;
use reveille_core::model::time::Time;

/// The project's id.
pub(crate) const PROJECT: &str = "4f9d8c1be2a94f0e";
/// The second one.
pub(crate) const OTHER_PROJECT: &str = "5a0e9d2cf3ba5b1f";

type Holdings = BTreeMap<UserId, BTreeSet<Arc<str>>>;

/// Who holds what.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keystone {
    held: Holdings,
    /// When another client last took a role away.
    lost: BTreeMap<(UserId, RoleId), Time>,
    /// What is shown instead, while answers lag.
    shown: Option<Holdings>,
    /// What the roster wants each to hold.
    wanted: Holdings,
}

impl Keystone {
    pub(crate) fn new(access: &Access) -> Self {
        let mut keystone = Self::default();
        for user in &access.users {
            let wanted: BTreeSet<Arc<str>> = user.roles.iter().map(name_of).collect();
            let held = wanted.iter().cloned().chain([Arc::from("reader")]).collect();
            keystone.held.insert(id_of(&user.user), held);
            keystone.wanted.insert(id_of(&user.user), wanted);
        }
        keystone
    }

    /// What it says when it may.
    pub(crate) fn says(&self, user: &UserRef, asked: &[RoleRef]) -> UserRoles {
        let id = id_of(user);
        let known = self.shown.as_ref().unwrap_or(&self.held).get(&id);
        let held: Vec<Role> = known.into_iter().flatten().map(|name| role(name)).collect();
        let lacks = |wanted: &&RoleRef| !held.iter().any(|role| wanted.means(role));
        let lacking = asked.iter().filter(lacks).map(|wanted| role(&name_of(wanted))).collect();
        UserRoles { project: ProjectId::from(PROJECT), user: known.is_some().then_some(id), held, lacking }
    }

    /// The user holds the role from now on.
    pub(crate) fn give(&mut self, user: &UserId, role: &str) {
        if let Some(held) = self.held.get_mut(user) {
            held.insert(Arc::from(role));
        }
    }

    /// Another client takes the role away.
    pub(crate) fn take(&mut self, now: Time, user: &UserId, role: &str) {
        if self.held.get_mut(user).is_some_and(|held| held.remove(role)) {
            self.lost.insert((user.clone(), role_id(role)), now);
        }
    }

    /// When another client last took one of these roles away.
    pub(crate) fn lost_at(&self, user: &UserId, roles: &[Role]) -> Option<Time> {
        roles.iter().filter_map(|role| self.lost.get(&(user.clone(), role.id.clone())).copied()).max()
    }

    /// From now on answers tell what is so, or go on telling what is so at this moment.
    pub(crate) fn shows_what_is(&mut self, current: bool) {
        self.shown = if current { None } else { Some(self.held.clone()) };
    }

    /// The user lacks one of the roles that the roster wants it to hold.
    pub(crate) fn is_wanting(&self, user: &UserRef) -> bool {
        let id = id_of(user);
        let held = self.held.get(&id);
        self.wanted.get(&id).is_some_and(|wanted| !held.is_some_and(|held| wanted.is_subset(held)))
    }

    /// The roster wants the user to hold this role.
    pub(crate) fn is_wanted(&self, user: &UserId, role: &RoleId) -> bool {
        self.wanted.get(user).is_some_and(|wanted| wanted.iter().any(|name| self::role(name).id == *role))
    }

    /// No user lacks a role that it must hold.
    pub(crate) fn is_well(&self) -> bool {
        let holds = |user: &UserId, wanted: &BTreeSet<Arc<str>>| {
            self.held.get(user).is_some_and(|held| wanted.is_subset(held))
        };
        self.wanted.iter().all(|(user, wanted)| holds(user, wanted))
    }
}

/// The id of the user of that name.
pub(crate) fn user_id(name: &str) -> UserId {
    UserId::new(format!("user-{name}"))
}

/// The id of the role of that name.
pub(crate) fn role_id(name: &str) -> RoleId {
    RoleId::new(format!("role-{name}"))
}

fn id_of(user: &UserRef) -> UserId {
    match user {
        UserRef::Id(id) => id.clone(),
        UserRef::Name { name, .. } => user_id(name),
    }
}

fn role(name: &str) -> Role {
    Role { id: role_id(name), name: Arc::from(name) }
}

fn name_of(wanted: &RoleRef) -> Arc<str> {
    match wanted {
        RoleRef::Id(id) => Arc::from(id.as_str().trim_start_matches("role-")),
        RoleRef::Name(name) => name.clone(),
    }
}
