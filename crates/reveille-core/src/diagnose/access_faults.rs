//! Faults of a project's service users: roles that are missing, and roles that the cloud does not let us read.
//!
//! Only what the cloud said itself counts. A read that failed proves nothing: an earlier result stays as it was. Where the
//! cloud refuses the read, or the read has failed for long, the controller reports that once and never acts on it.

use std::sync::Arc;

use crate::model::access::{RoleRef, UserRoles};
use crate::model::cause::Cause;
use crate::model::evidence::{Evidence, Fact, Source, quoted, shown};
use crate::model::incident::{FaultKind, Subject};
use crate::model::read_error::ReadErrorKind;
use crate::model::roster::Roster;
use crate::model::roster::ServiceUser;
use crate::model::time::{Span, Time};
use crate::observe::access::Heard;
use crate::observe::cloud::CloudView;

use super::fault::{Fault, fault};

/// Seen on the assignments themselves, which are read once more before anything is done.
const AT_ONCE: Span = Span::ZERO;
/// So many reads in a row fail before that is told, where the cloud does not refuse them.
const FAILURES_TOLD: u32 = 3;

/// The faults of one service user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfUser {
    /// Who.
    pub subject: Subject,
    /// The user's name for people.
    pub label: Arc<str>,
    /// Its faults.
    pub faults: Vec<Fault>,
    /// The cloud has told which roles the user holds: a role without a fault is there. False: that is unknown.
    pub told: bool,
}

/// All faults of the service users of a cloud. A user has no entry before the first answer or failure of a read.
pub fn of_users(roster: &Roster, cloud: &CloudView, now: Time) -> Vec<OfUser> {
    let users = roster.access.users.iter().filter(|user| user.cloud == cloud.name);
    let heard = users.filter_map(|user| Some((user, cloud.access.heard(&user.user)?)));
    heard.map(|(user, heard)| of_user(user, heard, now)).collect()
}

/// What the user lacks of what it must hold, as far as the cloud said.
pub fn lacking<'r>(wanted: &'r ServiceUser, said: &UserRoles) -> Vec<&'r RoleRef> {
    wanted.roles.iter().filter(|role| !said.holds(role)).collect()
}

fn of_user(user: &ServiceUser, heard: &Heard, now: Time) -> OfUser {
    let subject = Subject::User(user.cloud.clone(), user.user.clone());
    let source = Source::User(user.user.clone());
    let mut faults = Vec::new();
    if let Some((said, _)) = &heard.said {
        let missing = lacking(user, said);
        if !missing.is_empty() {
            let evidence = vec![Evidence::new(source.clone(), lacks(user, said, &missing), now)];
            let kind = FaultKind::RolesMissing;
            faults.push(fault(kind, Cause::RolesMissing, evidence, Some(AT_ONCE), false));
        }
    }
    if let Some(error) = heard.failed.as_ref().filter(|error| is_told(error.kind, heard.failures)) {
        let evidence = vec![Evidence::new(source, Fact::Quoted(quoted(&error.text)), now)];
        faults.push(fault(FaultKind::RolesUnreadable, Cause::RolesUnreadable, evidence, None, false));
    }
    let label = Arc::from(subject.to_string());
    OfUser { subject, label, faults, told: heard.said.is_some() }
}

/// A refused read stays refused until an operator allows it; any other failure may pass.
const fn is_told(kind: ReadErrorKind, failures: u32) -> bool {
    matches!(kind, ReadErrorKind::Forbidden | ReadErrorKind::Malformed) || failures >= FAILURES_TOLD
}

fn lacks(user: &ServiceUser, said: &UserRoles, missing: &[&RoleRef]) -> Fact {
    if said.user.is_none() {
        return Fact::NoUser(user.user.clone());
    }
    let unknown =
        |role: &&RoleRef| matches!(role, RoleRef::Name(_)) && !said.lacking.iter().any(|it| role.means(it));
    let missing = missing.iter().copied();
    let unknown = missing.clone().filter(unknown).cloned().collect();
    let held = shown(said.held.iter().map(|role| role.name.clone()));
    Fact::RolesMissing { missing: missing.cloned().collect(), unknown, project: said.project.clone(), held }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::access::{Role, UserRef};
    use crate::model::read_error::ReadError;

    fn user() -> ServiceUser {
        let roles = vec![RoleRef::Name("network_admin".into()), RoleRef::Id("r-2".into())];
        ServiceUser { cloud: "os".into(), user: Arc::new(UserRef::Id("u-1".into())), roles }
    }

    fn role(id: &str, name: &str) -> Role {
        Role { id: id.into(), name: name.into() }
    }

    fn said(held: Vec<Role>, lacking: Vec<Role>) -> Heard {
        let said = UserRoles { project: "p-1".into(), user: Some("u-1".into()), held, lacking };
        Heard { said: Some((said, Time::from_ms(0))), failed: None, failures: 0 }
    }

    fn failed(kind: ReadErrorKind, failures: u32) -> Heard {
        let error = ReadError { kind, text: "it could not be told".into(), retry_after: None };
        Heard { said: None, failed: Some(error), failures }
    }

    #[test]
    fn missing_roles_are_told_and_unreadable_roles_are_not_missing() {
        let (admin, member) = (|| role("r-1", "network_admin"), || role("r-2", "member"));
        let table = [
            (said(vec![admin(), member()], vec![]), None),
            (
                said(vec![member()], vec![admin()]),
                Some((FaultKind::RolesMissing, "lacks network_admin on project p-1; it holds member")),
            ),
            (
                said(vec![admin()], vec![role("r-2", "r-2")]),
                Some((FaultKind::RolesMissing, "lacks r-2 on project p-1; it holds network_admin")),
            ),
            (
                said(vec![], vec![member()]),
                Some((
                    FaultKind::RolesMissing,
                    "lacks network_admin, r-2 on project p-1; it holds nothing; the cloud has no role network_admin",
                )),
            ),
            (failed(ReadErrorKind::Forbidden, 1), Some((FaultKind::RolesUnreadable, "it could not be told"))),
            (failed(ReadErrorKind::TimedOut, 1), None),
            (failed(ReadErrorKind::TimedOut, 3), Some((FaultKind::RolesUnreadable, "it could not be told"))),
        ];
        for (heard, expected) in table {
            let faults = of_user(&user(), &heard, Time::from_ms(0)).faults;
            let found = faults.first().map(|fault| (fault.kind, fault.finding.evidence[0].fact.to_string()));
            let found = found.as_ref().map(|(kind, text)| (*kind, &**text));
            assert_eq!(found, expected, "{heard:?}");
            let acts = faults.first().is_some_and(|fault| fault.due_after.is_some());
            assert_eq!(acts, matches!(found, Some((FaultKind::RolesMissing, _))));
        }
    }
}
