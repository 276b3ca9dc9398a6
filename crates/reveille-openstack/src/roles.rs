//! Which roles a user holds on the project, read from Keystone.
//!
//! ```text
//!  name ─▶ users?name=…  ─▶ id ─▶ role_assignments?user.id=…&scope.project.id=…&effective ─▶ held
//!                                                    what is wanted and not held ─▶ roles?name=… ─▶ lacking
//! ```
//!
//! `effective` counts what a user holds through a group, by inheritance or by another role, so that only what it really
//! lacks is called missing. A credential that may not list assignments is told so by Keystone (403), and a list that
//! Keystone cut short is no list: both are failures, never "it holds nothing".

use reveille_cloud::report::Reading;
use reveille_core::effect::{ReadError, ReadErrorKind};
use reveille_core::event::Answer;
use reveille_core::model::access::{Role, RoleRef, UserRef, UserRoles};
use reveille_core::model::id::{ProjectId, RoleId, UserId};
use serde::Deserialize;

use crate::catalog::Service;
use crate::client::Request;
use crate::project::Project;

#[derive(Deserialize)]
struct Named {
    id: String,
    #[serde(default)]
    name: String,
    /// Of a role: only in this domain. Such a role is another one than the cloud's of the same name.
    #[serde(default)]
    domain_id: Option<String>,
}

#[derive(Deserialize)]
struct Assignment {
    role: Named,
    user: Option<OnlyId>,
    #[serde(default)]
    scope: Scope,
}

#[derive(Deserialize, Default)]
struct Scope {
    project: Option<OnlyId>,
}

#[derive(Deserialize)]
struct OnlyId {
    id: String,
}

impl Project {
    /// What the user holds on this project, and which of these roles it lacks.
    pub(crate) async fn roles(&self, user: &UserRef, wanted: &[RoleRef]) -> Result<Answer, ReadError> {
        let project = ProjectId::new(self.id().clone());
        let id = match user {
            UserRef::Id(id) => id.clone(),
            UserRef::Name { name, domain } => match self.user_named(name, domain.as_deref()).await? {
                Some(id) => id,
                None => {
                    let nothing = UserRoles { project, user: None, held: Vec::new(), lacking: Vec::new() };
                    return Ok(Answer::Roles(nothing));
                }
            },
        };
        let held = self.held(&id).await?;
        let mut roles = UserRoles { project, user: Some(id), held, lacking: Vec::new() };
        for role in wanted {
            if roles.holds(role) {
                continue;
            }
            let known = match role {
                RoleRef::Id(id) => Some(Role { id: id.clone(), name: id.shared() }),
                RoleRef::Name(name) => self.role_named(name).await?,
            };
            roles.lacking.extend(known);
        }
        Ok(Answer::Roles(roles))
    }

    async fn held(&self, user: &UserId) -> Result<Vec<Role>, ReadError> {
        #[derive(Deserialize)]
        struct Body {
            role_assignments: Vec<Assignment>,
            #[serde(default)]
            truncated: bool,
        }
        let reading = self.place().look(format!("list the roles of user {user}"));
        let request = Request::get(Service::Identity, &["role_assignments"])
            .query("user.id", user.to_string())
            .query("scope.project.id", self.id().to_string())
            .query("effective", "true")
            .query("include_names", "true");
        let body = self.read_existing(&request, &reading).await?;
        let Body { role_assignments, truncated } = reading.json(&body)?;
        if truncated {
            return Err(cut_short(&reading));
        }
        let is = |found: &Option<OnlyId>, id: &str| found.as_ref().is_some_and(|found| found.id == id);
        let here = role_assignments
            .into_iter()
            .filter(|it| is(&it.user, user.as_str()) && is(&it.scope.project, self.id()));
        let mut held: Vec<Role> = here.map(|it| it.role.into()).collect();
        held.sort();
        held.dedup();
        Ok(held)
    }

    /// `None`: Keystone knows no user of that name.
    async fn user_named(&self, name: &str, domain: Option<&str>) -> Result<Option<UserId>, ReadError> {
        #[derive(Deserialize)]
        struct Body {
            users: Vec<Named>,
            #[serde(default)]
            truncated: bool,
        }
        let reading = self.place().look(format!("look up user {name}"));
        let mut request = Request::get(Service::Identity, &["users"]).query("name", name.to_owned());
        if let Some(domain) = domain {
            request = request.query("domain_id", domain.to_owned());
        }
        let body = self.read_existing(&request, &reading).await?;
        let Body { users, truncated } = reading.json(&body)?;
        if truncated {
            return Err(cut_short(&reading));
        }
        let mut found = users.into_iter().filter(|user| user.name == name);
        match (found.next(), found.count()) {
            (None, _) => Ok(None),
            (Some(user), 0) => Ok(Some(UserId::from(user.id.as_str()))),
            (Some(_), more) => {
                let cause = format!("{} users are called so; give the user's domain or id", more + 1);
                Err(reading.error(ReadErrorKind::Malformed, &cause))
            }
        }
    }

    /// `None`: the cloud has no such role.
    async fn role_named(&self, name: &str) -> Result<Option<Role>, ReadError> {
        #[derive(Deserialize)]
        struct Body {
            roles: Vec<Named>,
        }
        let reading = self.place().look(format!("look up role {name}"));
        let request = Request::get(Service::Identity, &["roles"]).query("name", name.to_owned());
        let body = self.read_existing(&request, &reading).await?;
        let Body { roles } = reading.json(&body)?;
        let mut found = roles.into_iter().filter(|role| role.name == name && role.domain_id.is_none());
        Ok(found.next().map(Role::from))
    }
}

impl From<Named> for Role {
    fn from(named: Named) -> Self {
        let id = RoleId::from(named.id.as_str());
        let name = if named.name.is_empty() { id.shared() } else { named.name.into() };
        Self { id, name }
    }
}

fn cut_short(reading: &Reading) -> ReadError {
    reading.error(ReadErrorKind::Incomplete, "Keystone cut the list short (list_limit)")
}
