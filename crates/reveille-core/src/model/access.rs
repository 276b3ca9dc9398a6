//! Who must be able to do what in a project: service users and the roles that they must hold there.
//!
//! A cluster's cloud controller and its storage plug-ins act as a user of the project. When that user loses a role, nothing
//! fails at once: nodes stay, and the next route, volume or port is refused. The roster may name such users; it is the only
//! source of what they should hold, and Reveille never takes a role away.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::id::{ProjectId, RoleId, UserId};

/// A user by id or name, as the roster gives it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum UserRef {
    /// By its id.
    Id(UserId),
    /// By its name, which is unique in a domain only.
    Name {
        /// The name.
        name: Arc<str>,
        /// The domain's id; none where the name is unique in the whole cloud.
        #[serde(skip_serializing_if = "Option::is_none")]
        domain: Option<Arc<str>>,
    },
}

impl fmt::Display for UserRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => f.pad(id.as_str()),
            Self::Name { name, .. } => f.pad(name),
        }
    }
}

/// A role by id or name, as the roster gives it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum RoleRef {
    /// By its id.
    Id(RoleId),
    /// By its name.
    Name(Arc<str>),
}

impl RoleRef {
    /// True when this role is meant.
    pub fn means(&self, role: &Role) -> bool {
        match self {
            Self::Id(id) => role.id == *id,
            Self::Name(name) => role.name == *name,
        }
    }
}

impl fmt::Display for RoleRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => f.pad(id.as_str()),
            Self::Name(name) => f.pad(name),
        }
    }
}

/// A role of a cloud.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Role {
    /// Its id; calls use it.
    pub id: RoleId,
    /// Its name, or its id again where the adapter did not ask for the name.
    pub name: Arc<str>,
}

/// What the cloud says of one user of the project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UserRoles {
    /// The project that was looked at.
    pub project: ProjectId,
    /// Its id; `None`: the cloud knows no such user, and says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    /// What it holds on the project, in whatever way: by itself, through a group, inherited or implied.
    pub held: Vec<Role>,
    /// Of the roles that were asked for, those that it lacks and that the cloud knows.
    pub lacking: Vec<Role>,
}

impl UserRoles {
    /// It holds this role.
    pub fn holds(&self, wanted: &RoleRef) -> bool {
        self.held.iter().any(|role| wanted.means(role))
    }
}
