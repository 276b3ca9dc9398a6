//! A service user lacks a role that the roster says it must hold: the controller assigns the role.

use std::fmt;
use std::sync::Arc;

use crate::diagnose::access_faults;
use crate::effect::Look;
use crate::event::Answer;
use crate::model::access::{Role, RoleRef, UserRef, UserRoles};
use crate::model::before::Before;
use crate::model::call::AssignRoles;
use crate::model::incident::Subject;
use crate::model::roster::Mode;
use crate::model::roster::ServiceUser;
use crate::model::violation::ensure;
use crate::plan::context::{Case, PlanContext};

use super::invariants::Checked;
use super::{Act, Call, Effectiveness, NoCall, Remedy, Target, gone, no_call, not_seen, nothing_more, seen};

pub(super) const REMEDY: Remedy =
    Remedy { says: "give the service user the roles that it lacks", plan, blocks: nothing_more };

/// Only what the roster names, the cloud knows and the user was said to lack.
fn plan(context: &PlanContext<'_>, case: &Case) -> Result<Call, NoCall> {
    let Subject::User(cloud, user) = &case.incident.key.subject else { return no_call("not a user") };
    let wanted = context.roster.access.user(cloud, user);
    let wanted = wanted.ok_or_else(|| NoCall::from("the roster does not name it"))?;
    let heard = context.clouds.get(cloud).and_then(|view| view.access.heard(user));
    let said = heard.and_then(|heard| heard.said.as_ref()).map(|(said, _)| said);
    let said = said.ok_or_else(|| NoCall::from("its roles were not read yet"))?;
    let Some(id) = &said.user else { return no_call("the cloud knows no such user") };
    let missing = access_faults::lacking(wanted, said);
    let known = said.lacking.iter().filter(|role| missing.iter().any(|wanted| wanted.means(role)));
    let roles: Vec<Role> = known.cloned().collect();
    if roles.is_empty() {
        return no_call(if missing.is_empty() { "it has every role" } else { "the cloud has no such role" });
    }
    let project = said.project.clone();
    Ok(Call::AssignRoles(AssignRoles { cloud: cloud.clone(), project, user: id.clone(), roles }))
}

impl Act for AssignRoles {
    fn target(&self) -> Target<'_> {
        Target::User(&self.cloud)
    }

    fn is_same_change(&self, other: &Self) -> bool {
        self == other
    }

    fn looks_after(&self, _before: Option<&Before>) -> Vec<Look> {
        let roles = self.roles.iter().map(|role| RoleRef::Id(role.id.clone())).collect();
        vec![Look::Roles(self.cloud.clone(), Arc::new(UserRef::Id(self.user.clone())), roles)]
    }

    /// A person who does it by hand needs the ids.
    fn in_a_line(&self) -> String {
        let Self { project, user, .. } = self;
        let one = |role: &Role| format!("openstack role add --project {project} --user {user} {}", role.id);
        let commands: Vec<String> = self.roles.iter().map(one).collect();
        format!("{self}; by hand: {}", commands.join(" && "))
    }

    fn judge(&self, _before: Option<&Before>, answer: &Answer) -> Effectiveness {
        let Answer::Roles(found) = answer else { return gone() };
        match self.roles.iter().find(|role| !found.holds(&RoleRef::Id(role.id.clone()))) {
            Some(role) => not_seen(format!("read back: it does not hold {}", role.name)),
            None => seen("read back: it holds the roles"),
        }
    }

    /// No user is given what the roster does not name, what it was not seen to lack, or what a person has not switched on.
    fn check(&self, context: &PlanContext<'_>) -> Checked {
        let Self { cloud, project, user, roles } = self;
        let access = &context.roster.access;
        ensure(access.repair == Mode::Act, 8, || format!("{self}: the roster does not allow it"))?;
        let view = context.clouds.get(cloud);
        ensure(view.is_some_and(|view| view.source.trust(context.now).is_given()), 2, || {
            format!("{self}: the cloud cannot be believed")
        })?;
        let said = |wanted: &ServiceUser| {
            let heard = view.and_then(|view| view.access.heard(&wanted.user))?;
            let said = heard.said.as_ref().map(|(said, _)| said);
            said.filter(|said| said.user.as_ref() == Some(user) && said.project == *project)
        };
        let here = access.users.iter().filter(|wanted| wanted.cloud == *cloud);
        let named: Vec<(&ServiceUser, &UserRoles)> =
            here.filter_map(|wanted| Some((wanted, said(wanted)?))).collect();
        for role in roles {
            let wanted = |(user, _): &(&ServiceUser, &UserRoles)| user.roles.iter().any(|it| it.means(role));
            let is_named = named.iter().any(wanted);
            ensure(is_named, 5, || format!("{self}: the roster does not name {}", role.name))?;
            let held = named.iter().any(|(_, said)| said.holds(&RoleRef::Id(role.id.clone())));
            ensure(!held, 7, || format!("{self}: it holds {} already", role.name))?;
        }
        Ok(())
    }
}

impl fmt::Display for AssignRoles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.roles.iter().map(|role| &*role.name).collect();
        write!(f, "give user {} on project {}: {}", self.user, self.project, names.join(", "))
    }
}
