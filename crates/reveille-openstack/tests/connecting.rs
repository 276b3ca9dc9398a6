//! Logging in: which entry, which endpoint, one login at a time, and no secret anywhere it does not belong.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test, what cannot be is a failure")]

mod fake;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fake::{Fake, PASSWORD, Reply, Seen, TOKEN, Way, neutron_error, nova_fault, reply, way};
use reveille_core::effect::{Call, Look, ReadErrorKind};
use reveille_core::event::Answer;
use reveille_core::model::id::{CloudName, InstanceId};
use reveille_openstack::{CloudConfig, ConnectError, Environment, LoginError, Project, list_clouds_in};

const LOGIN: &str = "POST /identity/v3/auth/tokens";
const SERVER: &str = r#"{"server": {"id": "a", "status": "ACTIVE"}}"#;

fn look() -> Look {
    Look::Instance(CloudName::from("os"), InstanceId::from("a"))
}

/// A file of this test's own below the build folder.
fn file(name: &str, text: &str) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::SeqCst);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn clouds_yaml(fake: &Fake, password: &str) -> String {
    format!(
        "clouds:\n  prod:\n    auth:\n      auth_url: http://{}/identity/v3/\n      username: reveille\n      \
         password: {password}\n      user_domain_name: Default\n      project_name: prod\n      \
         project_domain_name: Default\n    region_name: RegionOne\n    api_timeout: 1\n",
        fake.address
    )
}

fn config(path: PathBuf) -> CloudConfig {
    CloudConfig { name: CloudName::from("os"), cloud: "prod".to_owned(), clouds_file: Some(path) }
}

fn nowhere() -> Environment {
    Environment::of([("HOME", "/nonexistent")])
}

fn logins(seen: &[Seen]) -> usize {
    seen.iter().filter(|seen| seen.line() == LOGIN).count()
}

#[tokio::test]
async fn a_password_opens_its_project() {
    let fake = Fake::start(|_| None).await;
    let path = file("clouds.yaml", &clouds_yaml(&fake, PASSWORD));
    let project = Project::connect_in(&config(path), nowhere()).await.unwrap();
    assert_eq!((&**project.id(), &**project.name()), (fake::PROJECT_ID, "prod"));
    assert_eq!(project.microversion(), "2.96");
    let seen = fake.take_seen();
    assert_eq!(
        seen[0].json(),
        serde_json::json!({"auth": {
            "identity": {"methods": ["password"], "password": {"user": {
                "name": "reveille", "domain": {"name": "Default"}, "password": PASSWORD}}},
            "scope": {"project": {"name": "prod", "domain": {"name": "Default"}}},
        }})
    );
    assert_eq!(seen[1].line(), "GET /compute/v2.1/");
    let traffic = project.traffic();
    assert_eq!((traffic.calls, traffic.logins), (2, 1));
    assert!(traffic.received_bytes > 500 && traffic.sent_bytes > 100);
}

#[tokio::test]
async fn an_application_credential_needs_no_scope_and_secrets_lie_beside() {
    let fake = Fake::start(|_| None).await;
    let path = file(
        "clouds.yaml",
        &format!(
            "clouds:\n  prod:\n    auth_type: v3applicationcredential\n    auth:\n      auth_url: http://{}/identity\n      \
             application_credential_id: abc\n",
            fake.address
        ),
    );
    let secure = "clouds:\n  prod:\n    auth:\n      application_credential_secret: 0123\n";
    std::fs::write(path.with_file_name("secure.yaml"), secure).unwrap();
    Project::connect_in(&config(path), nowhere()).await.unwrap();
    assert_eq!(
        fake.take_seen()[0].json(),
        serde_json::json!({"auth": {"identity": {
            "methods": ["application_credential"],
            "application_credential": {"id": "abc", "secret": "0123"},
        }}})
    );
}

#[tokio::test]
async fn an_entry_that_cannot_be_used_says_what_to_do() {
    let fake = Fake::start(|_| None).await;
    let good = clouds_yaml(&fake, PASSWORD);
    let cases = [
        (good.replace("  prod:", "  other:"), "has no cloud `prod`; it has: other"),
        (good.replace("      username: reveille\n", ""), "lacks `auth.username`"),
        (good.replace("      user_domain_name: Default\n", ""), "lacks `auth.user_domain_name`"),
        (good.replace("      project_domain_name: Default\n", ""), "lacks `auth.project_domain_name`"),
        (good.replace("      project_name: prod\n", ""), "lacks `auth.project_name`"),
        (good.replace("http://", "ftp://"), "`auth.auth_url` is not a http or https address"),
        (good.replace("region_name: RegionOne", "interface: secret"), "`interface` is not public"),
        (good.replace("api_timeout: 1", "api_timeout: soon"), "`api_timeout` is not 1 to 300 seconds"),
        (
            good.replace("    region_name", "    auth_type: v3oidcpassword\n    region_name"),
            "v3applicationcredential",
        ),
        (good.replace("password: ", "password: {[ "), "cannot read"),
    ];
    for (text, says) in cases {
        let error = Project::connect_in(&config(file("clouds.yaml", &text)), nowhere()).await.unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
        assert!(!format!("{error} {error:?}").contains(PASSWORD), "{error:?}");
    }
    assert!(fake.take_seen().is_empty());
    let absent = config(PathBuf::from("/nonexistent/clouds.yaml"));
    let error = Project::connect_in(&absent, nowhere()).await.unwrap_err();
    assert!(error.to_string().contains("cannot read /nonexistent/clouds.yaml"), "{error}");
}

#[tokio::test]
async fn clouds_are_listed_in_order_without_their_secrets() {
    let fake = Fake::start(|_| None).await;
    let text =
        format!("{}  abc:\n    profile: vendor\n    region_name: west\n", clouds_yaml(&fake, PASSWORD));
    let path = file("clouds.yaml", &text);
    let mut variables = fake.variables();
    variables.push(("OS_CLIENT_CONFIG_FILE", path.display().to_string()));
    let clouds = list_clouds_in(None, &Environment::of(variables)).unwrap();
    assert!(!format!("{clouds:?}").contains(PASSWORD));
    let shown: Vec<(&str, Option<&str>, Option<&str>)> =
        clouds.iter().map(|c| (c.cloud.as_str(), c.region.as_deref(), c.project.as_deref())).collect();
    assert_eq!(
        shown,
        [("abc", None, None), ("prod", Some("RegionOne"), Some("prod")), ("envvars", None, Some("prod")),]
    );
    // A profile that nobody here knows is no reason to hide the entry, only not to use it.
    let unusable = CloudConfig { cloud: "abc".to_owned(), ..config(path) };
    let error = Project::connect_in(&unusable, nowhere()).await.unwrap_err().to_string();
    assert!(error.contains("profile `vendor`"), "{error}");
    let error = list_clouds_in(None, &nowhere()).unwrap_err().to_string();
    assert!(error.contains("no clouds.yaml found") && error.contains("OS_CLIENT_CONFIG_FILE"), "{error}");
}

/// A login whose catalogue is `catalog`, with `ADDRESS` for the fake's.
fn catalog(address: &str, catalog: &str) -> Reply {
    let body = format!(
        r#"{{"token": {{"project": {{"id": "{}", "name": "prod"}}, "catalog": [{catalog}]}}}}"#,
        fake::PROJECT_ID
    );
    reply(201, body.replace("ADDRESS", address)).with("X-Subject-Token", TOKEN)
}

fn endpoint(kind: &str, interface: &str, region: &str, path: &str) -> String {
    format!(
        r#"{{"type": "{kind}", "endpoints": [{{"interface": "{interface}", "region_id": "{region}", "url": "http://ADDRESS{path}"}}]}}"#
    )
}

#[tokio::test]
async fn a_wrong_region_is_never_chosen() {
    let two = [
        endpoint("compute", "public", "east", "/compute/v2.1"),
        endpoint("compute", "public", "west", "/west/v2.1"),
        endpoint("network", "public", "east", "/network"),
    ]
    .join(",");
    let one = [
        endpoint("compute", "internal", "east", "/compute/v2.1"),
        endpoint("network", "public", "east", "/network"),
    ]
    .join(",");
    let cases = [
        (two.clone(), None, "several regions (east, west); name one"),
        (two.clone(), Some("north"), "no public compute endpoint in region north"),
        (
            one,
            Some("east"),
            "no public compute endpoint in region east; it has: compute internal east, network",
        ),
        (two, Some("east"), ""),
    ];
    for (list, region, says) in cases {
        let fake = Fake::start(|_| None).await;
        let address = fake.address.to_string();
        fake.answer(move |seen| (seen.line() == LOGIN).then(|| catalog(&address, &list)));
        let mut variables = fake.variables();
        variables.extend(region.map(|region| ("OS_REGION_NAME", region.to_owned())));
        let result = Project::connect_in(&fake::config(), Environment::of(variables)).await;
        match result {
            Ok(_) => assert_eq!(says, ""),
            Err(error) => assert!(!says.is_empty() && error.to_string().contains(says), "{error}"),
        }
    }
}

#[tokio::test]
async fn endpoints_with_a_project_or_without_a_version_work() {
    let with_project = format!("/compute/v2.1/{}", fake::PROJECT_ID);
    for (path, expected) in [
        (with_project.as_str(), format!("/compute/v2.1/{}/servers/a", fake::PROJECT_ID)),
        ("/compute", "/compute/v2.1/servers/a".to_owned()),
        ("/compute/v2.1/", "/compute/v2.1/servers/a".to_owned()),
    ] {
        let list =
            [endpoint("compute", "public", "r", path), endpoint("network", "public", "r", "/network/v2.0/")]
                .join(",");
        let fake = Fake::start(|_| None).await;
        let address = fake.address.to_string();
        fake.answer(move |seen| match seen.line().as_str() {
            LOGIN => Some(catalog(&address, &list)),
            "GET /compute/" => Some(reply(
                200,
                r#"{"versions": [{"id": "v2.0", "version": "", "min_version": ""},
                                 {"id": "v2.1", "version": "2.79", "min_version": "2.1"}]}"#,
            )),
            _ => None,
        });
        let project = Project::connect_in(&fake::config(), fake.environment()).await.unwrap();
        fake.take_seen();
        assert_eq!(project.look(&look()).await, Ok(Answer::Instance(None)));
        assert_eq!(fake.take_seen()[0].path, expected, "{path}");
    }
}

#[tokio::test]
async fn a_nova_without_tags_is_refused() {
    for (version, offered, works) in [
        ("2.104", "2.96", true),
        ("2.69", "2.69", true),
        ("2.26", "2.26", true),
        ("2.25", "2.25", false),
        ("", "2.0 without microversions", false),
    ] {
        let fake = Fake::start(move |seen| {
            let body =
                format!(r#"{{"version": {{"id": "v2.1", "version": "{version}", "min_version": "2.1"}}}}"#);
            (seen.line() == "GET /compute/v2.1/").then(|| reply(200, body))
        })
        .await;
        match Project::connect_in(&fake::config(), fake.environment()).await {
            Ok(project) => assert!(works && project.microversion() == offered, "{version}"),
            Err(error @ ConnectError::TooOld { .. }) => {
                assert!(!works && error.to_string().contains(offered), "{error}");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

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

#[tokio::test]
async fn a_login_that_fails_says_why_and_is_not_repeated_at_once() {
    let cases: [(fn() -> Reply, ReadErrorKind, &str); 5] = [
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
        let call = Call::Start { cloud: CloudName::from("os"), instance: InstanceId::from("a") };
        assert!(project.perform(&call).await.to_string().starts_with("failed"), "{says}");
    }
}

#[tokio::test]
async fn a_token_is_replaced_before_its_end_and_serves_while_that_fails() {
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
        login.body = login.body.replace(fake::PROJECT_ID, "another");
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
        let call = Call::Start { cloud: CloudName::from("os"), instance: InstanceId::from("a") };
        clean("call", format!("{:?}", project.perform(&call).await));
    }
    for answer in [|| reply(401, ""), || reply(201, "{}"), || way(Way::Dropped), || reply(302, "")] {
        fake.answer(move |seen| (seen.line() == LOGIN).then(answer));
        let error = Project::connect_in(&fake::config(), fake.environment()).await.unwrap_err();
        assert!(matches!(
            &error,
            ConnectError::Login {
                source: LoginError::Refused { .. } | LoginError::NoToken | LoginError::Exchange { .. },
                ..
            }
        ));
        clean("connect", format!("{error} {error:?}"));
        let mut cause: Option<&dyn std::error::Error> = Some(&error);
        while let Some(error) = cause {
            clean("cause", format!("{error} {error:?}"));
            cause = error.source();
        }
    }
}
