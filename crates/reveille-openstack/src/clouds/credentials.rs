//! The checked credentials: a password or an application credential, and the project that it opens.
//!
//! [`Credentials::check`] takes a filled entry and either knows every name that Keystone needs, with the domain it stands in, or
//! says which key is missing. [`Credentials::body`] is the one place where a secret becomes bytes. No domain is guessed: with the
//! wrong one, Keystone logs another user in.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::ConfigError;
use super::entry::{Entry, Login};

/// A domain by id or by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Domain {
    Id(String),
    Name(String),
}

/// A user or a project: its id stands alone, its name only within a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    Id(String),
    Name(String, Domain),
}

/// What is sent to Keystone. Debug output holds no secret: `SecretString` hides itself.
#[derive(Clone, Debug)]
pub(crate) enum Credentials {
    /// A user's password, scoped to a project.
    Password { user: Named, password: SecretString, project: Named },
    /// An application credential by its id; it brings its project along.
    CredentialId { id: String, secret: SecretString },
    /// An application credential by its name, which only its user makes unique.
    CredentialName { name: String, user: Named, secret: SecretString },
}

impl Domain {
    fn json(&self) -> Value {
        match self {
            Self::Id(id) => json!({ "id": id }),
            Self::Name(name) => json!({ "name": name }),
        }
    }
}

impl Named {
    fn json(&self) -> Value {
        match self {
            Self::Id(id) => json!({ "id": id }),
            Self::Name(name, domain) => json!({ "name": name, "domain": domain.json() }),
        }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(text) | Self::Name(text, _) => f.write_str(text),
        }
    }
}

impl Credentials {
    /// Reads the login of a filled entry; `cloud` is its name, for the error.
    ///
    /// # Errors
    /// [`ConfigError::Lacks`] names the key to add, [`ConfigError::AuthType`] a way of logging in that needs a person.
    pub(crate) fn check(cloud: &str, entry: &Entry) -> Result<Self, ConfigError> {
        let login = entry.login();
        let kind = entry.place.auth_type.as_deref().unwrap_or("");
        let by_credential =
            login.application_credential_id.is_some() || login.application_credential_name.is_some();
        match kind {
            "" if by_credential => Self::credential(cloud, &login),
            "v3applicationcredential" | "application_credential" => Self::credential(cloud, &login),
            "" | "password" | "v3password" => Self::password(cloud, &login),
            other => Err(ConfigError::AuthType { cloud: cloud.to_owned(), auth_type: other.to_owned() }),
        }
    }

    fn password(cloud: &str, login: &Login) -> Result<Self, ConfigError> {
        let password = login.password.clone().ok_or_else(|| ConfigError::lacks(cloud, "auth.password"))?;
        let project_id = login.project_id.as_ref().or(login.tenant_id.as_ref());
        let project_name = login.project_name.as_ref().or(login.tenant_name.as_ref());
        let project_domain =
            domain(login, login.project_domain_id.as_ref(), login.project_domain_name.as_ref());
        let project = match (project_id, project_name, project_domain) {
            (Some(id), ..) => Named::Id(id.clone()),
            (None, Some(name), Some(domain)) => Named::Name(name.clone(), domain),
            (None, Some(_), None) => return Err(ConfigError::lacks(cloud, "auth.project_domain_name")),
            (None, None, _) => return Err(ConfigError::lacks(cloud, "auth.project_name")),
        };
        Ok(Self::Password { user: user(cloud, login)?, password, project })
    }

    fn credential(cloud: &str, login: &Login) -> Result<Self, ConfigError> {
        let secret = login
            .application_credential_secret
            .clone()
            .ok_or_else(|| ConfigError::lacks(cloud, "auth.application_credential_secret"))?;
        match (&login.application_credential_id, &login.application_credential_name) {
            (Some(id), _) => Ok(Self::CredentialId { id: id.clone(), secret }),
            (None, Some(name)) => {
                Ok(Self::CredentialName { name: name.clone(), user: user(cloud, login)?, secret })
            }
            (None, None) => Err(ConfigError::lacks(cloud, "auth.application_credential_id")),
        }
    }

    /// The body of `POST /v3/auth/tokens`. Holds the secret: never logged, never kept.
    pub(crate) fn body(&self) -> Value {
        match self {
            Self::Password { user, password, project } => {
                let mut user = user.json();
                user["password"] = password.expose_secret().into();
                json!({ "auth": {
                    "identity": { "methods": ["password"], "password": { "user": user } },
                    "scope": { "project": project.json() },
                }})
            }
            Self::CredentialId { id, secret } => credential_body(json!({
                "id": id, "secret": secret.expose_secret(),
            })),
            Self::CredentialName { name, user, secret } => credential_body(json!({
                "name": name, "user": user.json(), "secret": secret.expose_secret(),
            })),
        }
    }

    /// Who that is, for error texts.
    pub(crate) fn who(&self) -> String {
        match self {
            Self::Password { user, .. } => format!("user {user}"),
            Self::CredentialId { id, .. } => format!("application credential {id}"),
            Self::CredentialName { name, .. } => format!("application credential {name}"),
        }
    }
}

fn credential_body(credential: Value) -> Value {
    json!({ "auth": { "identity": {
        "methods": ["application_credential"], "application_credential": credential,
    }}})
}

fn user(cloud: &str, login: &Login) -> Result<Named, ConfigError> {
    let user_domain = domain(login, login.user_domain_id.as_ref(), login.user_domain_name.as_ref());
    match (&login.user_id, &login.username, user_domain) {
        (Some(id), ..) => Ok(Named::Id(id.clone())),
        (None, Some(name), Some(domain)) => Ok(Named::Name(name.clone(), domain)),
        (None, Some(_), None) => Err(ConfigError::lacks(cloud, "auth.user_domain_name")),
        (None, None, _) => Err(ConfigError::lacks(cloud, "auth.username")),
    }
}

fn domain(login: &Login, id: Option<&String>, name: Option<&String>) -> Option<Domain> {
    id.map(|id| Domain::Id(id.clone()))
        .or_else(|| name.map(|name| Domain::Name(name.clone())))
        .or_else(|| login.default_domain.as_ref().map(|id| Domain::Id(id.clone())))
}
