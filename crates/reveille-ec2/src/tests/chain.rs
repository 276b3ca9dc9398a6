//! Credentials and addresses come from where every AWS program looks for them, and show nowhere.

use jiff::Timestamp;
use reveille_core::effect::{Look, ReadErrorKind};
use reveille_core::model::id::InstanceId;

use super::fake::{Fake, KEY, Reply, SECRET, Seen, aws, config, fault, loader, pace, reply};
use super::words::result;
use crate::{Account, ConnectError, Ec2Config};

const KEYS: [(&str, &str); 3] =
    [("AWS_ACCESS_KEY_ID", KEY), ("AWS_SECRET_ACCESS_KEY", SECRET), ("AWS_REGION", "eu-central-1")];

fn at(fake: &Fake) -> Ec2Config {
    Ec2Config { endpoint: Some(fake.url().parse().unwrap()), ..config() }
}

/// The key in the signature of the first request, and its region and service.
fn scope(seen: &[Seen]) -> String {
    let header = &seen.iter().find(|seen| !seen.action().is_empty()).unwrap().headers["authorization"];
    let credential = header.split("Credential=").nth(1).unwrap().split(',').next().unwrap();
    let mut parts = credential.split('/');
    let (key, _date, region, service) = (parts.next(), parts.next(), parts.next(), parts.next());
    [key, region, service].map(|part| part.unwrap().to_owned()).join(" ")
}

#[tokio::test]
async fn roster_setting_precedes_environment_and_aws_profile() {
    let files = [
        ("/home/r/.aws/config", "[default]\nregion = us-west-2\n[profile ops]\nregion = ap-south-1\n"),
        ("/home/r/.aws/credentials", "[ops]\naws_access_key_id = AKIAOPS\naws_secret_access_key = x\n"),
    ];
    let home = ("HOME", "/home/r");
    let cases: [(&[(&str, &str)], Option<&str>, Option<&str>, &str); 4] = [
        (&KEYS, None, None, "AKIAEXAMPLE eu-central-1 sts"),
        (&KEYS, None, Some("eu-north-1"), "AKIAEXAMPLE eu-north-1 sts"),
        (&[home], Some("ops"), None, "AKIAOPS ap-south-1 sts"),
        (&[home, ("AWS_PROFILE", "ops")], None, None, "AKIAOPS ap-south-1 sts"),
    ];
    for (env, profile, region, expected) in cases {
        let fake = Fake::start(|_| None).await;
        let config =
            Ec2Config { profile: profile.map(Into::into), region: region.map(Into::into), ..at(&fake) };
        let account = Account::connect_by(&config, loader(env, &files), pace()).await.unwrap();
        assert_eq!(scope(&fake.take_seen()), expected);
        assert_eq!(&**account.id(), "123456789012");
    }
}

#[tokio::test]
async fn a_services_own_address_goes_before_the_general_one() {
    let (own, general) = (Fake::start(|_| None).await, Fake::start(|_| None).await);
    let (own_url, general_url) = (own.url(), general.url());
    let env: Vec<(&str, &str)> = KEYS
        .into_iter()
        .chain([("AWS_ENDPOINT_URL", general_url.as_str()), ("AWS_ENDPOINT_URL_EC2", own_url.as_str())])
        .collect();
    let account = Account::connect_by(&config(), loader(&env, &[]), pace()).await.unwrap();
    account.look(&Look::Ports(aws(), InstanceId::from("i-1"))).await.unwrap();
    assert_eq!(general.take_actions(), ["GetCallerIdentity"]);
    assert_eq!(own.take_actions(), ["DescribeNetworkInterfaces"]);
}

fn in_an_hour() -> String {
    (Timestamp::now() + jiff::SignedDuration::from_hours(1)).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Instance metadata, version 2: first a token, then the role, then its keys. All through our own HTTP client.
fn metadata(seen: &Seen) -> Option<Reply> {
    let with_token = seen.headers.get("x-aws-ec2-metadata-token").map(String::as_str) == Some("imds-token");
    match seen.line.as_str() {
        "PUT /latest/api/token" => {
            Some(reply(200, "imds-token").with("x-aws-ec2-metadata-token-ttl-seconds", "21600"))
        }
        line if !line.starts_with("GET /latest/") => None,
        _ if !with_token => Some(reply(401, "")),
        line if line.ends_with("/security-credentials/")
            || line.ends_with("/security-credentials-extended/") =>
        {
            Some(reply(200, "node-role"))
        }
        line if line.ends_with("/node-role") => Some(reply(
            200,
            format!(
                r#"{{"Code":"Success","LastUpdated":"2026-11-22T10:00:00Z","Type":"AWS-HMAC","AccessKeyId":"ASIAIMDS",
                "SecretAccessKey":"{SECRET}","Token":"session-token","Expiration":"{}"}}"#,
                in_an_hour()
            ),
        )),
        "GET /latest/meta-data/placement/region" => Some(reply(200, "sa-east-1")),
        _ => Some(reply(404, "")),
    }
}

#[tokio::test]
async fn an_instances_role_is_had_from_its_metadata_with_a_token() {
    let fake = Fake::start(metadata).await;
    let url = fake.url();
    let env = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", url.as_str())];
    let account = Account::connect_by(&at(&fake), loader(&env, &[]), pace()).await.unwrap();
    assert_eq!(account.region(), "sa-east-1");
    let seen = fake.take_seen();
    assert_eq!(scope(&seen), "ASIAIMDS sa-east-1 sts");
    let signed = seen.iter().find(|seen| !seen.action().is_empty()).unwrap();
    assert_eq!(signed.headers["x-amz-security-token"], "session-token");
}

#[tokio::test]
async fn a_service_accounts_token_is_exchanged_for_a_role() {
    let fake = Fake::start(|seen| {
        (seen.action() == "AssumeRoleWithWebIdentity").then(|| {
            assert_eq!((seen.get("WebIdentityToken"), seen.get("RoleArn")), ("jwt-canary", "arn:aws:iam::1:role/r"));
            let keys = format!(
                "<AssumedRoleUser><AssumedRoleId>a:b</AssumedRoleId><Arn>arn:aws:sts::1:assumed-role/r/b</Arn></AssumedRoleUser>\
                 <Credentials><AccessKeyId>ASIAWEB</AccessKeyId><SecretAccessKey>{SECRET}</SecretAccessKey>\
                 <SessionToken>t</SessionToken><Expiration>{}</Expiration></Credentials>",
                in_an_hour()
            );
            result("AssumeRoleWithWebIdentity", &keys)
        })
    })
    .await;
    let url = fake.url();
    let env = [
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "/token"),
        ("AWS_ROLE_ARN", "arn:aws:iam::1:role/r"),
        ("AWS_ROLE_SESSION_NAME", "s"),
        ("AWS_REGION", "eu-central-1"),
        ("AWS_ENDPOINT_URL", url.as_str()),
    ];
    Account::connect_by(&config(), loader(&env, &[("/token", "jwt-canary")]), pace()).await.unwrap();
    let seen: Vec<Seen> =
        fake.take_seen().into_iter().filter(|seen| seen.action() == "GetCallerIdentity").collect();
    assert_eq!(scope(&seen), "ASIAWEB eu-central-1 sts");
}

/// What the agent of a pod or a task answers (EKS Pod Identity, ECS): an address and a token for it, both in the environment.
#[tokio::test]
async fn a_containers_role_is_had_from_the_agent_beside_it() {
    let fake = Fake::start(|seen| {
        (seen.line == "GET /v1/credentials").then(|| {
            assert_eq!(seen.headers["authorization"], "pod-canary");
            let until = in_an_hour();
            let keys = format!(
                r#"{{"AccessKeyId":"ASIAPOD","SecretAccessKey":"{SECRET}","Token":"t","Expiration":"{until}"}}"#
            );
            reply(200, keys)
        })
    })
    .await;
    let uri = format!("{}/v1/credentials", fake.url());
    let env = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", uri.as_str()),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "pod-canary"),
        ("AWS_REGION", "eu-central-1"),
    ];
    Account::connect_by(&at(&fake), loader(&env, &[]), pace()).await.unwrap();
    assert_eq!(scope(&fake.take_seen()), "ASIAPOD eu-central-1 sts");
}

/// A profile may name a program that prints the keys.
#[tokio::test]
async fn a_profiles_process_prints_the_keys() {
    let fake = Fake::start(|_| None).await;
    let keys = format!(r#"{{"Version":1,"AccessKeyId":"AKIAPROCESS","SecretAccessKey":"{SECRET}"}}"#);
    let profile = format!("[profile ops]\nregion = eu-west-1\ncredential_process = echo '{keys}'\n");
    let files = [("/home/r/.aws/config", profile.as_str())];
    let config = Ec2Config { profile: Some("ops".into()), ..at(&fake) };
    Account::connect_by(&config, loader(&[("HOME", "/home/r")], &files), pace()).await.unwrap();
    assert_eq!(scope(&fake.take_seen()), "AKIAPROCESS eu-west-1 sts");
}

/// `aws sso login` left a token; it is exchanged for the keys of a role.
#[tokio::test]
async fn a_login_by_sso_is_exchanged_for_a_role() {
    let fake = Fake::start(|seen| {
        seen.line.starts_with("GET /federation/credentials").then(|| {
            assert_eq!(seen.headers["x-amz-sso_bearer_token"], "sso-canary");
            let until = (Timestamp::now() + jiff::SignedDuration::from_hours(1)).as_millisecond();
            let keys = format!(
                r#"{{"roleCredentials":{{"accessKeyId":"ASIASSO","secretAccessKey":"{SECRET}","sessionToken":"t","expiration":{until}}}}}"#
            );
            reply(200, keys)
        })
    })
    .await;
    let token = format!(
        r#"{{"accessToken":"sso-canary","expiresAt":"{}","region":"eu-west-1","startUrl":"https://corp.example/start"}}"#,
        in_an_hour()
    );
    let profile = "[profile ops]\nregion = eu-west-1\nsso_session = corp\nsso_account_id = 123456789012\n\
                   sso_role_name = nodes\n[sso-session corp]\nsso_region = eu-west-1\n\
                   sso_start_url = https://corp.example/start\n";
    // The cache names its files by the SHA-1 of the session's name.
    let cached = "/home/r/.aws/sso/cache/ee0bfd2552fbd840c02cc48b6e823320543c450f.json";
    let files = [("/home/r/.aws/config", profile), (cached, token.as_str())];
    let url = fake.url();
    let env = [("HOME", "/home/r"), ("AWS_ENDPOINT_URL", url.as_str())];
    let config = Ec2Config { profile: Some("ops".into()), ..config() };
    Account::connect_by(&config, loader(&env, &files), pace()).await.unwrap();
    let seen: Vec<Seen> =
        fake.take_seen().into_iter().filter(|seen| seen.action() == "GetCallerIdentity").collect();
    assert_eq!(scope(&seen), "ASIASSO eu-west-1 sts");
}

/// A role's keys end; a service that no longer takes them is asked once more with others.
#[tokio::test]
async fn keys_that_ended_are_replaced_by_others_once() {
    let fake = Fake::start(metadata).await;
    let url = fake.url();
    let env = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", url.as_str())];
    let account = Account::connect_by(&at(&fake), loader(&env, &[]), pace()).await.unwrap();
    fake.take_seen();
    fake.answer(|seen| match seen.headers.get("authorization") {
        Some(signed) if signed.contains("ASIAIMDS") => Some(fault(400, "ExpiredToken")),
        _ => metadata(seen).map(|reply| Reply { body: reply.body.replace("ASIAIMDS", "ASIANEXT"), ..reply }),
    });
    account.look(&Look::Ports(aws(), InstanceId::from("i-1"))).await.unwrap();
    let asked = fake.take_actions().into_iter().filter(|action| !action.is_empty()).count();
    assert_eq!(asked, 2);
}

#[tokio::test]
async fn without_a_region_or_credentials_it_says_what_to_give() {
    let fake = Fake::start(|_| None).await;
    let off = ("AWS_EC2_METADATA_DISABLED", "true");
    let error =
        Account::connect_by(&at(&fake), loader(&[KEYS[0], KEYS[1], off], &[]), pace()).await.unwrap_err();
    assert!(matches!(error, ConnectError::NoRegion { .. }), "{error}");
    let error = Account::connect_by(&at(&fake), loader(&[KEYS[2], off], &[]), pace()).await.unwrap_err();
    assert!(matches!(error, ConnectError::Credentials { .. }), "{error}");
    assert_eq!(error.as_read_error().kind, ReadErrorKind::Unauthorized);
    assert!(error.to_string().contains("Name a profile"), "{error}");
    assert_eq!(fake.take_seen().len(), 0);
}

#[tokio::test]
async fn no_secret_shows_in_what_is_printed_or_told() {
    let fake = Fake::start(|_| None).await;
    let account = fake.connect().await;
    fake.answer(|_| Some(fault(401, "AuthFailure")));
    let error = account.look(&Look::Ports(aws(), InstanceId::from("i-1"))).await.unwrap_err();
    let refused = Account::connect_by(&at(&fake), loader(&KEYS, &[]), pace()).await.unwrap_err();
    for text in [format!("{account:?}"), error.to_string(), refused.to_string(), format!("{refused:?}")] {
        assert!(!text.contains(SECRET), "{text}");
        assert!(!text.contains(KEY), "{text}");
    }
}
