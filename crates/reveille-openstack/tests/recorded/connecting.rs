//! Which entry, which endpoint, which version: a wrong one is refused with a word on what to do.

use crate::entry::{LOGIN, catalog, clouds_yaml, config, endpoint, file, look, nowhere};
use crate::fake::{Fake, PASSWORD, reply};
use reveille_core::event::Answer;
use reveille_openstack::{CloudConfig, ConnectError, Environment, Project, list_clouds_in};
use std::path::PathBuf;

#[tokio::test]
async fn a_password_opens_its_project() {
    let fake = Fake::start(|_| None).await;
    let path = file("clouds.yaml", &clouds_yaml(&fake, PASSWORD));
    let project = Project::connect_in(&config(path), nowhere()).await.unwrap();
    assert_eq!((&**project.id(), &**project.name()), (crate::fake::PROJECT_ID, "prod"));
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
async fn application_credential_has_no_scope_and_reads_secure_yaml() {
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
        [
            ("abc", Some("west"), None),
            ("prod", Some("RegionOne"), Some("prod")),
            ("envvars", None, Some("prod")),
        ]
    );
    // A vendor profile that this crate does not know is no reason to hide the entry, only not to use it.
    let unusable = CloudConfig { cloud: "abc".to_owned(), ..config(path) };
    let error = Project::connect_in(&unusable, nowhere()).await.unwrap_err().to_string();
    assert!(error.contains("profile `vendor`"), "{error}");
    let error = list_clouds_in(None, &nowhere()).unwrap_err().to_string();
    assert!(error.contains("no clouds.yaml found") && error.contains("OS_CLIENT_CONFIG_FILE"), "{error}");
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
        let result = Project::connect_in(&crate::fake::config(), Environment::of(variables)).await;
        match result {
            Ok(_) => assert_eq!(says, ""),
            Err(error) => assert!(!says.is_empty() && error.to_string().contains(says), "{error}"),
        }
    }
}

#[tokio::test]
async fn endpoints_with_a_project_or_without_a_version_work() {
    let with_project = format!("/compute/v2.1/{}", crate::fake::PROJECT_ID);
    for (path, expected) in [
        (with_project.as_str(), format!("/compute/v2.1/{}/servers/a", crate::fake::PROJECT_ID)),
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
        let project = Project::connect_in(&crate::fake::config(), fake.environment()).await.unwrap();
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
        match Project::connect_in(&crate::fake::config(), fake.environment()).await {
            Ok(project) => assert!(works && project.microversion() == offered, "{version}"),
            Err(error @ ConnectError::TooOld { .. }) => {
                assert!(!works && error.to_string().contains(offered), "{error}");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Names of regions stand in a sentence of ours, which is one line of a log.
#[tokio::test]
async fn regions_of_the_catalogue_forge_no_line_and_fill_no_log() {
    for region in ["A\\n2026-01-01T00:00:00Z ERROR forged".to_owned(), "r".repeat(1 << 20)] {
        for (interface, says) in
            [("public", "several regions"), ("internal", "has no public compute endpoint")]
        {
            let services = [
                endpoint("compute", interface, &region, "/compute/v2.1"),
                endpoint("compute", interface, "B", "/compute/v2.1"),
            ]
            .join(",");
            let fake = Fake::start(|_| None).await;
            let address = fake.address.to_string();
            fake.answer(move |seen| (seen.line() == LOGIN).then(|| catalog(&address, &services)));
            let error = Project::connect_in(&crate::fake::config(), fake.environment()).await;
            let error = error.unwrap_err().to_string();
            assert!(error.contains(says), "{error:.200}");
            assert!(!error.contains('\n'), "{error:.200}");
            assert!(error.len() <= 2048, "{} bytes", error.len());
        }
    }
}
