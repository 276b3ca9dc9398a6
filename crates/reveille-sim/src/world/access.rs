//! Who holds which role on the project, as Keystone truly has it.
//!
//! Users are those that the roster names; each begins with every role that it must hold, and one more that nobody asks for.
//! Ids are made from names, so that a log can be read. A fault takes a role away or gives it back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reveille_core::model::access::{Access, Role, RoleRef, UserRef, UserRoles};
use reveille_core::model::id::{ProjectId, RoleId, UserId};

/// The project's id.
pub(crate) const PROJECT: &str = "4f9d8c1be2a94f0e";

/// Who holds what.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keystone {
    held: BTreeMap<UserId, BTreeSet<Arc<str>>>,
    /// What the roster wants each to hold.
    wanted: BTreeMap<UserId, BTreeSet<Arc<str>>>,
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
        let known = self.held.get(&id);
        let held: Vec<Role> = known.into_iter().flatten().map(|name| role(name)).collect();
        let lacks = |wanted: &&RoleRef| !held.iter().any(|role| wanted.means(role));
        let lacking = asked.iter().filter(lacks).map(|wanted| role(&name_of(wanted))).collect();
        UserRoles { project: ProjectId::from(PROJECT), user: known.is_some().then_some(id), held, lacking }
    }

    /// The user holds the role from now on, or does not.
    pub(crate) fn set(&mut self, user: &UserId, role: &str, holds: bool) {
        let Some(held) = self.held.get_mut(user) else { return };
        if holds {
            held.insert(Arc::from(role));
        } else {
            held.remove(role);
        }
    }

    /// The roster wants the user to hold this role.
    pub(crate) fn is_wanted(&self, user: &UserId, role: &RoleId) -> bool {
        self.wanted.get(user).is_some_and(|wanted| wanted.iter().any(|name| self::role(name).id == *role))
    }

    /// Nobody lacks what it must hold.
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

fn id_of(user: &UserRef) -> UserId {
    match user {
        UserRef::Id(id) => id.clone(),
        UserRef::Name { name, .. } => user_id(name),
    }
}

fn role(name: &str) -> Role {
    Role { id: RoleId::new(format!("role-{name}")), name: Arc::from(name) }
}

fn name_of(wanted: &RoleRef) -> Arc<str> {
    match wanted {
        RoleRef::Id(id) => Arc::from(id.as_str().trim_start_matches("role-")),
        RoleRef::Name(name) => name.clone(),
    }
}
