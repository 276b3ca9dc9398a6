//! One login at a time, none too many, and no secret anywhere it does not belong.

use crate::entry::{LOGIN, SERVER, catalog, clouds_yaml, config, endpoint, file, logins, look, nowhere};
use crate::fake::{Fake, PASSWORD, Reply, Seen, TOKEN, Way, neutron_error, nova_fault, owned, reply, way};
use reveille_core::effect::{Call, ReadErrorKind};
use reveille_core::event::Answer;
use reveille_core::model::id::{CloudName, InstanceId};
use reveille_core::remedies::StartInstance;
use reveille_openstack::{ConnectError, LoginError, Project};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Nova accepts only the newest token that `newest` names.
fn only(newest: Arc<Mutex<u64>>) -> impl FnMut(&Seen) -> Option<Reply> + Send + 'static {
    move |seen| {
        if !seen.path.starts_with("/compute/v2.1/servers/") {
            return None;
        }
        let good = format!("{TOKEN}-{}", newest.lock().unwrap());
        Some(if seen.headers["x-auth-token"] == good {
            reply(200, SERVER)
        } else {
            reply(
                401,
                r#"{"error": {"code": 401, "title": "Unauthorized", "message": "The request you have made requires authentication."}}"#,
            )
        })
    }
}

#[tokio::test]
async fn many_refused_requests_share_one_login() {
    let newest = Arc::new(Mutex::new(1));
    let fake = Fake::start(only(newest.clone())).await;
    let project = fake.connect().await;
    *newest.lock().unwrap() = 2;
    let look = look();
    let asked = (0..12).map(|_| project.look(&look));
    for answer in futures::future::join_all(asked).await {
        assert!(matches!(answer, Ok(Answer::Instance(Some(_)))), "{answer:?}");
    }
    assert_eq!(logins(&fake.take_seen()), 1);
    // A token that is refused although it is new: one login, one more try, and then the truth.
    *newest.lock().unwrap() = 99;
    let error = project.look(&look).await.unwrap_err();
    assert_eq!(error.kind, ReadErrorKind::Unauthorized);
    let seen = fake.take_seen();
    assert_eq!((logins(&seen), seen.len()), (1, 3));
}

/// A service that refuses whatever token it is shown costs a few logins, and not one for each request.
#[tokio::test]
async fn repeatedly_refused_tokens_cause_few_logins() {
    let newest = Arc::new(Mutex::new(1));
    let fake = Fake::start(only(newest.clone())).await;
    let project = fake.connect().await;
    *newest.lock().unwrap() = 99;
    let mut told = Vec::new();
    for _ in 0..20 {
        let error = project.look(&look()).await.unwrap_err();
        assert_eq!(error.kind, ReadErrorKind::Unauthorized);
        told.push((error.text.to_string(), error.retry_after));
    }
    let seen = fake.take_seen();
    assert_eq!((logins(&seen), seen.len()), (2, 24), "twenty requests, two of them twice");
    let (text, retry_after) = told.last().unwrap();
    assert!(text.contains("a service refuses each token that Keystone gives"), "{text}");
    assert!(retry_after.is_some_and(|wait| wait.ms > 0 && wait.ms <= 3_000), "{retry_after:?}");
}

#[tokio::test]
async fn a_login_that_fails_says_why_and_is_not_repeated_at_once() {
    let cases: [(fn() -> Reply, ReadErrorKind, &str); 6] = [
        (
            || {
                reply(
                    401,
                    r#"{"error": {"code": 401, "title": "Unauthorized", "message": "Invalid credentials."}}"#,
                )
            },
            ReadErrorKind::Unauthorized,
            "Keystone does not let user reveille in: 401 Unauthorized: Invalid credentials",
        ),
        (|| reply(503, "<html>"), ReadErrorKind::Unavailable, "503 Service Unavailable"),
        (|| reply(404, "<html>"), ReadErrorKind::Unavailable, "404 Not Found"),
        (|| way(Way::Dropped), ReadErrorKind::Unavailable, "Keystone did not answer"),
        (|| way(Way::Never), ReadErrorKind::TimedOut, "no answer within 1 s"),
        (|| reply(201, "{}"), ReadErrorKind::Malformed, "no token"),
    ];
    for (answer, kind, says) in cases {
        let fake = Fake::start(only(Arc::new(Mutex::new(1)))).await;
        let project = fake.connect().await;
        let mut refuse = only(Arc::new(Mutex::new(2)));
        fake.answer(move |seen| if seen.line() == LOGIN { Some(answer()) } else { refuse(seen) });
        for _ in 0..3 {
            let error = project.look(&look()).await.unwrap_err();
            assert_eq!(error.kind, kind, "{error}");
            assert!(error.text.contains(says), "{error}");
        }
        assert_eq!(logins(&fake.take_seen()), 1, "{says}");
        // For a change the same is "it did not happen".
        let call = Call::Start(StartInstance {
            cloud: CloudName::from("os"),
            instance: InstanceId::from("a"),
            owned: owned(),
        });
        assert!(project.perform(&call).await.denies(), "{says}");
    }
}

#[tokio::test]
async fn token_is_replaced_before_expiry_and_serves_if_login_fails() {
    let fake = Fake::start(|_| None).await;
    fake.set_token_life_s(5);
    let project = fake.connect().await;
    fake.answer(|seen| (seen.path == "/compute/v2.1/servers/a").then(|| reply(200, SERVER)));
    project.look(&look()).await.unwrap();
    assert_eq!(logins(&fake.take_seen()), 0);
    tokio::time::sleep(Duration::from_millis(4100)).await;
    fake.answer(|seen| match seen.line().as_str() {
        LOGIN => Some(reply(503, "")),
        "GET /compute/v2.1/servers/a" => Some(reply(200, SERVER)),
        _ => None,
    });
    // Past four fifths of its life a new one is wanted; while there is none, the old one still works.
    project.look(&look()).await.unwrap();
    assert_eq!(logins(&fake.take_seen()), 1);
    project.look(&look()).await.unwrap();
    assert_eq!(logins(&fake.take_seen()), 0);
    tokio::time::sleep(Duration::from_millis(1000)).await;
    assert_eq!(project.look(&look()).await.unwrap_err().kind, ReadErrorKind::Unavailable);
}

#[tokio::test]
async fn rotated_credentials_count_but_never_open_another_project() {
    let fake = Fake::start(|_| None).await;
    let path = file("clouds.yaml", &clouds_yaml(&fake, "old"));
    let project = Project::connect_in(&config(path.clone()), nowhere()).await.unwrap();
    std::fs::write(&path, clouds_yaml(&fake, "new")).unwrap();
    fake.answer(only(Arc::new(Mutex::new(2))));
    fake.take_seen();
    project.look(&look()).await.unwrap();
    let seen = fake.take_seen();
    let login = seen.iter().find(|seen| seen.line() == LOGIN).unwrap();
    assert_eq!(login.json()["auth"]["identity"]["password"]["user"]["password"], "new");
    let address = fake.address.to_string();
    let mut refuse = only(Arc::new(Mutex::new(9)));
    fake.answer(move |seen| {
        if seen.line() != LOGIN {
            return refuse(seen);
        }
        let list = [
            endpoint("compute", "public", "RegionOne", "/compute/v2.1"),
            endpoint("network", "public", "RegionOne", "/network"),
        ];
        let mut login = catalog(&address, &list.join(","));
        login.body = login.body.replace(crate::fake::PROJECT_ID, "another");
        Some(login)
    });
    let error = project.look(&look()).await.unwrap_err();
    assert!(error.text.contains("the entry now opens project another"), "{error}");
}

#[tokio::test]
async fn no_secret_reaches_an_error_or_a_debug_output() {
    let canaries = [PASSWORD, TOKEN];
    let clean = |what: &str, text: String| {
        assert!(canaries.iter().all(|canary| !text.contains(canary)), "{what}: {text}");
    };
    let fake = Fake::start(|_| None).await;
    clean("environment", format!("{:?}", fake.environment()));
    let project = fake.connect().await;
    clean("project", format!("{project:?} {project:#?}"));
    for answer in [
        || nova_fault(500, "computeFault", "x"),
        || reply(200, "{"),
        || reply(401, ""),
        || way(Way::Dropped),
        || neutron_error(404, "X", "x"),
    ] {
        fake.answer(move |seen| seen.path.starts_with("/compute").then(answer));
        let error = project.look(&look()).await.unwrap_err();
        clean("look", format!("{error} {error:?}"));
        let call = Call::Start(StartInstance {
            cloud: CloudName::from("os"),
            instance: InstanceId::from("a"),
            owned: owned(),
        });
        clean("call", format!("{:?}", project.perform(&call).await));
    }
    for answer in [|| reply(401, ""), || reply(201, "{}"), || way(Way::Dropped), || reply(302, "")] {
        fake.answer(move |seen| (seen.line() == LOGIN).then(answer));
        let error = Project::connect_in(&crate::fake::config(), fake.environment()).await.unwrap_err();
        assert!(matches!(
            &error,
            ConnectError::Login {
                source: LoginError::Refused { .. } | LoginError::NoToken | LoginError::Exchange { .. },
                ..
            }
        ));
        clean("connect", format!("{error} {error:?}"));
        clean("read error", format!("{:?}", error.as_read_error()));
        let mut cause: Option<&dyn std::error::Error> = Some(&error);
        while let Some(error) = cause {
            clean("cause", format!("{error} {error:?}"));
            cause = error.source();
        }
    }
}

/// Keystone v2 and some gateways have the token itself in the body, and a parser's words quote what it did not expect.
#[tokio::test]
async fn login_that_cannot_be_read_shows_no_token() {
    for body in [
        format!(r#"{{"token": "{TOKEN}"}}"#),
        format!(r#"{{"token": {{"catalog": "{TOKEN}"}}}}"#),
        format!(r#"{{"token": {{"expires_at": "{TOKEN}"}}}}"#),
        format!(r#"{{"token": "{}"}}"#, "x".repeat(1 << 20)),
    ] {
        let fake = Fake::start(move |seen| {
            (seen.line() == LOGIN).then(|| reply(201, body.clone()).with("X-Subject-Token", TOKEN))
        })
        .await;
        let error = Project::connect_in(&crate::fake::config(), fake.environment()).await.unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains(TOKEN), "{shown}");
        assert!(shown.len() <= 2048, "{} bytes", shown.len());
        assert!(error.to_string().contains("at line 1, column"), "{error}");
    }
}

/// `expires_at` is `issued_at`: a clock that stands, or a policy of no seconds. Each request would log in, and Keystone may lock
/// the user.
#[tokio::test]
async fn tokens_that_end_at_once_cost_no_login_for_each_request() {
    let fake = Fake::start(|_| None).await;
    fake.set_token_life_s(0);
    let project = fake.connect().await;
    fake.answer(|seen| (seen.path == "/compute/v2.1/servers/a").then(|| reply(200, SERVER)));
    for _ in 0..20 {
        project.look(&look()).await.unwrap();
    }
    let logins = logins(&fake.take_seen());
    assert!(logins <= 3, "{logins} logins for twenty requests");
}
