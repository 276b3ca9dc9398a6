//! One observation of a region with 5,000 machines: calls, bytes, processor time; beside fetching the same bytes unread.
//!
//! The floor asks the same service for the same pages of instances and checks and throws them away: what is above it is reading,
//! judging that the list is whole, and building the model. Both run in this process, on this thread, against the service in
//! another thread. Credentials come from the environment as in production, so this part runs in a process of its own.

use std::collections::BTreeSet;
use std::process::Command;

use reveille_core::model::instance::Mark;
use reveille_ec2::{Account, Ec2Config, Interest, Lister};

use super::cost::Cost;
use super::ec2_service;
use super::http_service::HttpService;

const ROUNDS: u32 = 7;
const MACHINES: usize = 5_000;
/// Who has it is the process with credentials.
const KEY: (&str, &str) = ("AWS_ACCESS_KEY_ID", "BENCH");

pub(crate) fn per_cycle() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::var(KEY.0).ok().as_deref() == Some(KEY.1) {
        return measure();
    }
    let mut own = Command::new(std::env::current_exe()?);
    own.arg("ec2").env(KEY.0, KEY.1).env("AWS_SECRET_ACCESS_KEY", "bench").env("AWS_REGION", "eu-central-1");
    let ended = own.status()?;
    if ended.success() { Ok(()) } else { Err(format!("its process ended with {ended}").into()) }
}

fn measure() -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "one EC2 cycle: {MACHINES} machines of one group (median figures of {ROUNDS} cycles after one to warm up)"
    );
    let service = ec2_service::start(MACHINES)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ours = runtime.block_on(reveille_cycle(&service))?;
    let floor = runtime.block_on(bare_cycle(&service))?;
    for (name, cost) in [("reveille", &ours), ("fetched, not read", &floor)] {
        cost.print(name);
    }
    println!(
        "  {:.1} us of processor a machine, {:.1} x the floor; at a cycle each 30 s {:.2} % of a core\n",
        ours.cpu.as_secs_f64() * 1e6 / MACHINES as f64,
        ours.cpu.as_secs_f64() / floor.cpu.as_secs_f64(),
        ours.cpu.as_secs_f64() / 30.0 * 100.0
    );
    Ok(())
}

async fn reveille_cycle(service: &HttpService) -> Result<Cost, Box<dyn std::error::Error>> {
    let endpoint = format!("http://{}", service.address).parse()?;
    let config = Ec2Config { endpoint: Some(endpoint), ..Ec2Config::new("aws".into(), "bench") };
    let account = Account::connect(&config).await?;
    let marks = BTreeSet::from([Mark::Tag("kubernetes.io/cluster/bench".into())]);
    let mut lister = Lister::new(account, Interest { cluster_marks: marks, ..Interest::default() });
    let cycle = async || {
        let snapshot = lister.list(true).await?;
        assert_eq!((snapshot.instances.len(), snapshot.ports.len()), (MACHINES, MACHINES), "all is listed");
        Ok(())
    };
    Cost::of(service, ROUNDS, cycle).await
}

/// The same pages, by one client, one after the other, whole and unread.
async fn bare_cycle(service: &HttpService) -> Result<Cost, Box<dyn std::error::Error>> {
    let client = reqwest::Client::builder().build()?;
    let url = format!("http://{}/", service.address);
    let cycle = async || {
        let pages = MACHINES / 1_000;
        let paged = ["DescribeInstances", "DescribeInstanceStatus"].into_iter();
        let forms =
            paged.flat_map(|action| (0..pages).map(move |page| format!("Action={action}&NextToken={page}")));
        for form in forms.chain(["Action=DescribeAutoScalingGroups".to_owned()]) {
            let got = client.post(&url).body(form).send().await?.bytes().await?;
            assert!(!got.is_empty(), "a page is there");
        }
        Ok(())
    };
    Cost::of(service, ROUNDS, cycle).await
}
