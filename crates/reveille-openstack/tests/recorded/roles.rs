//! A user's roles are what Keystone says that it holds in effect; what cannot be told is no missing role.

use std::sync::Arc;

use crate::fake::{Fake, PROJECT_ID, Reply, Seen, lines, os, perform, reply};
use reveille_core::effect::{Call, Look, Outcome, ReadError, ReadErrorKind};
use reveille_core::event::Answer;
use reveille_core::model::access::{Role, RoleRef, UserRef, UserRoles};
use reveille_core::remedies::AssignRoles;

fn role(id: &str, name: &str) -> Role {
    Role { id: id.into(), name: name.into() }
}

fn assigned(user: &str, project: &str, role: &Role) -> String {
    format!(
        r#"{{"role": {{"id": "{}", "name": "{}", "domain": null}}, "user": {{"id": "{user}", "name": "ccm"}},
            "scope": {{"project": {{"id": "{project}"}}}}, "links": {{}}}}"#,
        role.id, role.name
    )
}

fn assignments(rows: &[String]) -> Reply {
    reply(200, format!(r#"{{"role_assignments": [{}], "links": {{}}}}"#, rows.join(", ")))
}

fn keystone_error(status: u16, title: &str, message: &str) -> Reply {
    reply(status, format!(r#"{{"error": {{"code": {status}, "title": "{title}", "message": "{message}"}}}}"#))
}

/// Keystone with one user who is a member, and the roles that there are.
fn keystone(seen: &Seen) -> Option<Reply> {
    let asked = |key: &str| seen.query(key).first().map(|text| (*text).to_owned());
    Some(match seen.path.as_str() {
        "/identity/v3/users" => match asked("name").as_deref() {
            Some("ccm") => reply(200, r#"{"users": [{"id": "u-1", "name": "ccm", "domain_id": "default"}]}"#),
            Some("twin") => {
                reply(200, r#"{"users": [{"id": "u-2", "name": "twin"}, {"id": "u-3", "name": "twin"}]}"#)
            }
            _ => reply(200, r#"{"users": []}"#),
        },
        "/identity/v3/role_assignments" => assignments(&[
            assigned("u-1", PROJECT_ID, &role("r-1", "member")),
            assigned("u-1", PROJECT_ID, &role("r-1", "member")),
            assigned("u-1", "another", &role("r-2", "network_admin")),
            assigned("u-9", PROJECT_ID, &role("r-2", "network_admin")),
        ]),
        "/identity/v3/roles" => match asked("name").as_deref() {
            Some("network_admin") => reply(
                200,
                r#"{"roles": [{"id": "r-7", "name": "network_admin", "domain_id": "d"},
                              {"id": "r-2", "name": "network_admin", "domain_id": null}]}"#,
            ),
            _ => reply(200, r#"{"roles": []}"#),
        },
        _ => return None,
    })
}

fn named(name: &str) -> Arc<UserRef> {
    Arc::new(UserRef::Name { name: name.into(), domain: Some("default".into()) })
}

async fn ask(
    user: &Arc<UserRef>,
    roles: &[RoleRef],
    handler: impl FnMut(&Seen) -> Option<Reply> + Send + 'static,
) -> (Result<UserRoles, ReadError>, Vec<Seen>) {
    let fake = Fake::start(handler).await;
    let answer = fake.connect().await.look(&Look::Roles(os(), user.clone(), roles.to_vec())).await;
    let said = answer.map(|answer| match answer {
        Answer::Roles(said) => said,
        other => panic!("{other:?}"),
    });
    (said, fake.take_seen())
}

#[tokio::test]
async fn effective_project_roles_are_held_and_others_are_lacking() {
    let wanted = [
        RoleRef::Name("network_admin".into()),
        RoleRef::Name("member".into()),
        RoleRef::Id("r-3".into()),
        RoleRef::Name("no_such_role".into()),
    ];
    let (said, seen) = ask(&named("ccm"), &wanted, keystone).await;
    let expected = UserRoles {
        project: PROJECT_ID.into(),
        user: Some("u-1".into()),
        held: vec![role("r-1", "member")],
        lacking: vec![role("r-2", "network_admin"), role("r-3", "r-3")],
    };
    assert_eq!(said, Ok(expected));
    assert_eq!(seen[0].query("domain_id"), ["default"]);
    assert_eq!(seen[1].query("scope.project.id"), [PROJECT_ID]);
    assert_eq!((seen[1].query("user.id"), seen[1].query("effective")), (vec!["u-1"], vec!["true"]));
}

#[tokio::test]
async fn a_user_by_id_who_holds_everything_costs_one_request() {
    let by_id = Arc::new(UserRef::Id("u-1".into()));
    let (said, seen) = ask(&by_id, &[RoleRef::Name("member".into())], keystone).await;
    assert_eq!(said.map(|said| said.lacking), Ok(Vec::new()));
    assert_eq!(lines(&seen), ["GET /identity/v3/role_assignments"]);
}

#[tokio::test]
async fn unknown_user_is_none_and_ambiguous_name_is_error() {
    let (said, _) = ask(&named("gone"), &[RoleRef::Name("member".into())], keystone).await;
    assert_eq!(said.map(|said| said.user), Ok(None));
    let (said, _) = ask(&named("twin"), &[RoleRef::Name("member".into())], keystone).await;
    let error = said.unwrap_err();
    assert!(error.text.contains("2 users are called so; give the user's domain or id"), "{error}");
}

#[tokio::test]
async fn what_keystone_may_not_tell_or_cuts_short_is_not_nothing() {
    let forbidden =
        || keystone_error(403, "Forbidden", "You are not authorized to perform the requested action.");
    let cut = || reply(200, r#"{"role_assignments": [], "truncated": true}"#);
    let absent = || keystone_error(404, "Not Found", "Could not find user: u-1.");
    let table: [(&str, fn() -> Reply, ReadErrorKind); 5] = [
        ("role_assignments", forbidden, ReadErrorKind::Forbidden),
        ("users", forbidden, ReadErrorKind::Forbidden),
        ("roles", forbidden, ReadErrorKind::Forbidden),
        ("role_assignments", cut, ReadErrorKind::Incomplete),
        ("role_assignments", absent, ReadErrorKind::Malformed),
    ];
    for (path, answer, kind) in table {
        let handler =
            move |seen: &Seen| if seen.path.ends_with(path) { Some(answer()) } else { keystone(seen) };
        let (said, _) = ask(&named("ccm"), &[RoleRef::Name("network_admin".into())], handler).await;
        let error = said.unwrap_err();
        assert_eq!(error.kind, kind, "{path}: {error}");
    }
}

fn assign(project: &str) -> Call {
    let roles = vec![role("r-2", "network_admin"), role("r-1", "member")];
    Call::AssignRoles(AssignRoles { cloud: os(), project: project.into(), user: "u-1".into(), roles })
}

#[tokio::test]
async fn roles_are_given_one_by_one_and_the_first_refusal_ends_it() {
    let (outcome, seen) =
        perform(&assign(PROJECT_ID), |seen| (seen.method == "PUT").then(|| reply(204, ""))).await;
    assert!(matches!(outcome, Outcome::Accepted { .. }), "{outcome}");
    let path = |role: &str| format!("PUT /identity/v3/projects/{PROJECT_ID}/users/u-1/roles/{role}");
    assert_eq!(lines(&seen), [path("r-2"), path("r-1")]);
    let forbidden = || keystone_error(403, "Forbidden", "You are not authorized");
    let absent = || keystone_error(404, "Not Found", "Could not find role: r-1.");
    let unavailable = || reply(503, "");
    let table: [(fn() -> Reply, &str); 3] =
        [(forbidden, "denied: "), (absent, "refused: "), (unavailable, "failed: ")];
    for (answer, begins) in table {
        let (outcome, seen) = perform(&assign(PROJECT_ID), move |seen| {
            let second = seen.path.ends_with("/r-1");
            (seen.method == "PUT").then(|| if second { answer() } else { reply(204, "") })
        })
        .await;
        assert!(outcome.to_string().starts_with(begins), "{outcome}");
        assert!(outcome.to_string().contains("(1 of 2 given)"), "{outcome}");
        assert_eq!(seen.len(), 2);
    }
}

#[tokio::test]
async fn role_on_another_project_is_refused_without_request() {
    let (outcome, seen) = perform(&assign("another"), |_| None).await;
    assert!(matches!(outcome, Outcome::Refused { .. }) && seen.is_empty(), "{outcome}");
}
