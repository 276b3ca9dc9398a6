//! One observation of a project with 1,000 servers and four pools: Reveille's listing against one listing per pool.
//!
//! The baseline does what Kubernikus flight control does for its snapshot: for each pool it reads every server of the
//! project, page by page, into untyped maps, re-encodes and decodes them again (as its client library does), and keeps
//! those whose name begins with the pool's. It reads no ports and no router, so it knows less when it is done. Both run in
//! this process, on this thread, against the same service in another thread; processor time is this thread's own.

use std::time::Duration;

use reveille_core::model::id::RouterId;
use reveille_core::model::roster::{Limits, Roster};
use reveille_openstack::{CloudConfig, Environment, Interest, Lister, Project};

use super::cloud_service::{self, POOLS};
use super::cost::Cost;
use super::fleet;
use super::http_service::HttpService;

const ROUNDS: u32 = 9;
/// Exactly one of Nova's pages: only an empty one after it tells that there are no more.
const SERVERS: usize = 1_000;
/// With default periods one listing of twenty is a full one, the others ask for changes.
const LISTINGS_PER_FULL: u32 = 20;

pub(crate) fn per_cycle() -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "one OpenStack cycle: 1,000 servers, {POOLS} pools (median figures of {ROUNDS} cycles after one to warm up)"
    );
    let service = cloud_service::start(SERVERS)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ours = runtime.block_on(reveille_cycle(&service, true))?;
    let changes = runtime.block_on(reveille_cycle(&service, false))?;
    let theirs = runtime.block_on(per_pool_cycle(&service))?;
    for (name, cost) in
        [("reveille, everything", &ours), ("reveille, changes", &changes), ("one listing per pool", &theirs)]
    {
        cost.print(name);
    }
    println!(
        "  ratio of the last to the first {:.2} x calls, {:.2} x bytes, {:.2} x processor",
        theirs.calls / ours.calls,
        theirs.bytes / ours.bytes,
        theirs.cpu.as_secs_f64() / ours.cpu.as_secs_f64()
    );
    println!(
        "  mean of the {LISTINGS_PER_FULL} cycles of a full period {:.2} calls (target: at most 4; full ones right after each other have five every second time)\n",
        runtime.block_on(calls_of_a_period(&service))?
    );
    Ok(())
}

fn environment(service: &HttpService) -> Environment {
    Environment::of([
        ("OS_AUTH_URL", format!("http://{}/v3", service.address)),
        ("OS_USERNAME", "bench".to_owned()),
        ("OS_PASSWORD", "bench".to_owned()),
        ("OS_USER_DOMAIN_NAME", "Default".to_owned()),
        ("OS_PROJECT_NAME", "bench".to_owned()),
        ("OS_PROJECT_DOMAIN_ID", "default".to_owned()),
    ])
}

/// Calls of a cycle with default periods, where one listing of twenty is a full one.
async fn calls_of_a_period(service: &HttpService) -> Result<f64, Box<dyn std::error::Error>> {
    let mut lister = lister(service).await?;
    lister.list(true).await?;
    service.take_counts();
    for number in 1..=LISTINGS_PER_FULL {
        lister.list(number == LISTINGS_PER_FULL).await?;
    }
    Ok(service.take_counts().0 as f64 / f64::from(LISTINGS_PER_FULL))
}

/// Either everything is listed each time, or what changed.
async fn reveille_cycle(service: &HttpService, full: bool) -> Result<Cost, Box<dyn std::error::Error>> {
    let mut lister = lister(service).await?;
    if !full {
        // Changes are asked for once everything was listed.
        lister.list(true).await?;
    }
    let cycle = async || {
        let snapshot = lister.list(full).await?;
        let expected = if full { SERVERS } else { 0 };
        assert_eq!(
            (snapshot.instances.len(), snapshot.ports.len()),
            (expected, SERVERS),
            "everything is listed"
        );
        Ok(())
    };
    Cost::of(service, ROUNDS, cycle).await
}

async fn lister(service: &HttpService) -> Result<Lister, Box<dyn std::error::Error>> {
    let config = CloudConfig { name: "os".into(), cloud: "envvars".to_owned(), clouds_file: None };
    let project = Project::connect_in(&config, environment(service)).await?;
    let mut roster: Roster = fleet::roster(&"os".into(), Limits::default());
    roster.network.router = Some(("os".into(), RouterId::from("9d9e7f1a-0000-4000-8000-00000000000f")));
    let cloud = "os".into();
    Ok(Lister::new(project, Interest::of([(&roster, &cloud)])))
}

async fn per_pool_cycle(service: &HttpService) -> Result<Cost, Box<dyn std::error::Error>> {
    let client = reqwest::Client::builder().build()?;
    let base = format!("http://{}", service.address);
    let cycle = async || {
        for path in ["/v3/auth/tokens", "/v3/auth/tokens"] {
            client.post(format!("{base}{path}")).send().await?.bytes().await?;
        }
        for pool in 0..POOLS {
            let found = list_by_name(&client, &base, &format!("kks-bench-pool{pool}-")).await?;
            assert_eq!(found, SERVERS / POOLS, "every server of the pool is found");
        }
        client.get(format!("{base}/v2.0/security-groups?name=k8s-nodes")).send().await?.bytes().await?;
        Ok(())
    };
    Cost::of(service, ROUNDS, cycle).await
}

async fn list_by_name(
    client: &reqwest::Client,
    base: &str,
    prefix: &str,
) -> Result<usize, Box<dyn std::error::Error>> {
    let mut found = 0;
    let mut marker = String::new();
    loop {
        let body = client
            .get(format!("{base}/v2.1/servers/detail?limit=1000{marker}"))
            .send()
            .await?
            .bytes()
            .await?;
        let decoded: serde_json::Value = serde_json::from_slice(&body)?;
        let again: serde_json::Value = serde_json::from_slice(&serde_json::to_vec(&decoded)?)?;
        let servers = again["servers"].as_array().cloned().unwrap_or_default();
        let Some(last) = servers.last() else { return Ok(found) };
        marker = format!("&marker={}", last["id"].as_str().unwrap_or_default());
        found += servers
            .iter()
            .filter(|s| s["name"].as_str().is_some_and(|name| name.starts_with(prefix)))
            .count();
    }
}

/// Processor time of this thread so far.
pub(crate) fn thread_cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
