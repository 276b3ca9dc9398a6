//! Entries of clouds.yaml for the tests that log in, and a catalogue of any shape.

use crate::fake::{Fake, Reply, Seen, TOKEN, reply};
use reveille_core::effect::Look;
use reveille_core::model::id::{CloudName, InstanceId};
use reveille_openstack::{CloudConfig, Environment};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const LOGIN: &str = "POST /identity/v3/auth/tokens";
pub(crate) const SERVER: &str = r#"{"server": {"id": "a", "status": "ACTIVE"}}"#;

pub(crate) fn look() -> Look {
    Look::Instance(CloudName::from("os"), InstanceId::from("a"))
}

/// A file of this test's own below the build folder.
pub(crate) fn file(name: &str, text: &str) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::SeqCst);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

pub(crate) fn clouds_yaml(fake: &Fake, password: &str) -> String {
    format!(
        "clouds:\n  prod:\n    auth:\n      auth_url: http://{}/identity/v3/\n      username: reveille\n      \
         password: {password}\n      user_domain_name: Default\n      project_name: prod\n      \
         project_domain_name: Default\n    region_name: RegionOne\n    api_timeout: 1\n",
        fake.address
    )
}

pub(crate) fn config(path: PathBuf) -> CloudConfig {
    CloudConfig { name: CloudName::from("os"), cloud: "prod".to_owned(), clouds_file: Some(path) }
}

pub(crate) fn nowhere() -> Environment {
    Environment::of([("HOME", "/nonexistent")])
}

pub(crate) fn logins(seen: &[Seen]) -> usize {
    seen.iter().filter(|seen| seen.line() == LOGIN).count()
}

/// A login whose catalogue is `catalog`, with `ADDRESS` for the fake's.
pub(crate) fn catalog(address: &str, catalog: &str) -> Reply {
    let body = format!(
        r#"{{"token": {{"project": {{"id": "{}", "name": "prod"}}, "catalog": [{catalog}]}}}}"#,
        crate::fake::PROJECT_ID
    );
    reply(201, body.replace("ADDRESS", address)).with("X-Subject-Token", TOKEN)
}

pub(crate) fn endpoint(kind: &str, interface: &str, region: &str, path: &str) -> String {
    format!(
        r#"{{"type": "{kind}", "endpoints": [{{"interface": "{interface}", "region_id": "{region}", "url": "http://ADDRESS{path}"}}]}}"#
    )
}
