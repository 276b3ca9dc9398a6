//! `spec.access`: service users and the roles that they must hold on a cloud's project.
//!
//! A roster names a user once for each cloud, by id or by name; a name may need its domain. A roster lists all roles that
//! a user needs, so a user without roles is a mistake. The controller assigns no role until `repair` says `act`.

use std::sync::Arc;

use reveille_core::model::access::{RoleRef, UserRef};
use reveille_core::model::id::{CloudName, RoleId, UserId};
use reveille_core::model::roster::{Access, ServiceUser};
use reveille_core::model::time::Span;

use super::clouds::Clouds;
use super::clouds::alone::is_alone;
use super::complaint::Complaints;
use super::network::cloud_of;
use super::scalar::is_uuid;
use super::section::{Field, Section};
use super::shape::{ACCESS, ROLE, SERVICE_USER, USER};
use super::tree::Kind;

/// Reads `spec.access`.
pub(super) fn access(field: Option<Field<'_>>, clouds: &Clouds, complaints: &mut Complaints) -> Access {
    const BUSY: &str = "roles change a few times a year, and reading them is work for Keystone";
    let mut access = Access::default();
    if let Some(field) = field.as_ref().filter(|_| is_alone(clouds)) {
        let wrong = "the roster lists no cloud whose users could be read";
        complaints.add(&field.spot, wrong, "take it out, or list the cloud under spec.clouds");
        return access;
    }
    let Some(section) = field.and_then(|field| Section::open(&field, ACCESS, complaints)) else {
        return access;
    };
    let mode = section.take("repair").and_then(|field| field.mode(complaints));
    access.repair = mode.unwrap_or(access.repair);
    let every = section.take("checkEvery");
    let every = every.and_then(|field| field.span(Span::from_min(5), BUSY, complaints));
    access.check_every = every.unwrap_or(access.check_every);
    let Some(list) = section.require("users", "list the users, or leave access out", complaints) else {
        return access;
    };
    for item in list.items("users", complaints) {
        let Some(user) = service_user(&item, clouds, complaints) else { continue };
        if access.user(&user.cloud, &user.user).is_some() {
            complaints.add(
                &item.spot,
                "this user is listed twice for this cloud",
                "keep one, with all its roles",
            );
            continue;
        }
        access.users.push(user);
    }
    access
}

fn service_user(item: &Field<'_>, clouds: &Clouds, complaints: &mut Complaints) -> Option<ServiceUser> {
    let section = Section::open(item, SERVICE_USER, complaints)?;
    let cloud = match section.take("cloud") {
        Some(field) => cloud_of(&field, clouds, complaints),
        None => only_cloud(&section, clouds, complaints),
    };
    let user = section.require("user", "write the user's id or name", complaints);
    let user = user.and_then(|field| user_ref(&field, complaints));
    let roles = section.require("roles", "list the roles that it must hold", complaints);
    let roles = roles.map(|field| role_list(&field, complaints));
    Some(ServiceUser { cloud: cloud?, user: Arc::new(user?), roles: roles? })
}

/// A roster with only one cloud does not have to name it here.
fn only_cloud(section: &Section<'_>, clouds: &Clouds, complaints: &mut Complaints) -> Option<CloudName> {
    let mut names = clouds.keys();
    match (names.next(), names.next()) {
        (Some(only), None) => Some(only.clone()),
        (Some(_), Some(_)) => {
            let wrong = "there are several clouds, and it is not said on the project of which one";
            complaints.add(&section.spot, wrong, "write cloud: …");
            None
        }
        (None, _) => None,
    }
}

/// A user by id or name. Plain text in the form of a Keystone id is an id; a map states which it is.
fn user_ref(field: &Field<'_>, complaints: &mut Complaints) -> Option<UserRef> {
    const WHAT: &str = "a user's name or id";
    if !matches!(field.tree.kind, Kind::Map(_)) {
        let text = field.text(WHAT, complaints)?;
        return Some(if is_keystone_id(text) {
            UserRef::Id(UserId::from(text.to_ascii_lowercase().as_str()))
        } else {
            UserRef::Name { name: Arc::from(text), domain: None }
        });
    }
    let section = Section::open(field, USER, complaints)?;
    let domain = section.take("domain");
    match (section.take("name"), section.take("id")) {
        (Some(field), None) => {
            let name = Arc::from(field.text(WHAT, complaints)?);
            let domain = match domain {
                Some(domain) => Some(Arc::from(domain.text("a domain's id", complaints)?)),
                None => None,
            };
            Some(UserRef::Name { name, domain })
        }
        (None, Some(field)) => {
            if let Some(domain) = domain {
                complaints.add(&domain.spot, "an id needs no domain", "take it out");
            }
            Some(UserRef::Id(UserId::from(field.text(WHAT, complaints)?)))
        }
        _ => {
            let instead = "write {name: …, domain: …} or {id: …}";
            complaints.add(&section.spot, "exactly one of name and id is needed", instead);
            None
        }
    }
}

fn role_list(field: &Field<'_>, complaints: &mut Complaints) -> Vec<RoleRef> {
    let mut roles: Vec<RoleRef> = Vec::new();
    let before = complaints.count();
    for item in field.items("roles", complaints) {
        let Some(role) = role_ref(&item, complaints) else { continue };
        if roles.contains(&role) {
            complaints.add(&item.spot, "this role is listed twice", "keep one");
            continue;
        }
        roles.push(role);
    }
    if roles.is_empty() && complaints.count() == before {
        complaints.add(&field.spot, "no role is listed", "list at least one, or leave the user out");
    }
    roles
}

/// A role by id or name, distinguished as users are.
fn role_ref(item: &Field<'_>, complaints: &mut Complaints) -> Option<RoleRef> {
    const WHAT: &str = "a role's name or id";
    if !matches!(item.tree.kind, Kind::Map(_)) {
        let text = item.text(WHAT, complaints)?;
        return Some(if is_keystone_id(text) {
            RoleRef::Id(RoleId::from(text.to_ascii_lowercase().as_str()))
        } else {
            RoleRef::Name(Arc::from(text))
        });
    }
    let section = Section::open(item, ROLE, complaints)?;
    match (section.take("name"), section.take("id")) {
        (Some(field), None) => Some(RoleRef::Name(Arc::from(field.text(WHAT, complaints)?))),
        (None, Some(field)) => Some(RoleRef::Id(RoleId::from(field.text(WHAT, complaints)?))),
        _ => {
            let instead = "write {name: …} or {id: …}";
            complaints.add(&section.spot, "exactly one of name and id is needed", instead);
            None
        }
    }
}

/// 32 hexadecimal digits, 64 for users from a directory (LDAP), or a UUID.
fn is_keystone_id(text: &str) -> bool {
    let hex = text.chars().all(|c| c.is_ascii_hexdigit());
    (hex && matches!(text.len(), 32 | 64)) || is_uuid(text)
}
