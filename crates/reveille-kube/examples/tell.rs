//! Prints what the adapter tells of a cluster, with the seconds since the start: to see by hand what a fault looks like
//! from here. `cargo run -p reveille-kube --example tell -- [KUBECONFIG [SECONDS]]`
//!
//! Every ten seconds one line says how many facts of each kind came, and what the process has used. It changes nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use reveille_core::event::ClusterFact;
use reveille_kube::{Cluster, ClusterConfig};
use tokio::sync::mpsc;
use tokio::time::{Instant, interval, sleep};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().with_env_filter(tracing_subscriber::EnvFilter::from_default_env()).init();
    let mut args = std::env::args().skip(1);
    let kubeconfig = args.next().map(PathBuf::from);
    let seconds = args.next().map_or(Ok(u64::MAX), |text| text.parse())?;
    let cluster = Cluster::connect(&ClusterConfig { kubeconfig, context: None }).await?;
    println!("{cluster:?}");
    let (facts, mut told) = mpsc::channel(1024);
    let watching =
        tokio::spawn(async move { cluster.watch(facts, sleep(Duration::from_secs(seconds))).await });
    let start = Instant::now();
    let mut tally: BTreeMap<&str, u64> = BTreeMap::new();
    let mut ticks = interval(Duration::from_secs(10));
    loop {
        tokio::select! {
            fact = told.recv() => {
                let Some(fact) = fact else { break };
                let (kind, line) = describe(&fact);
                *tally.entry(kind).or_default() += 1;
                if let Some(line) = line {
                    println!("{:7.1} {line}", start.elapsed().as_secs_f64());
                }
            }
            _ = ticks.tick() => println!("{:7.1} {tally:?} {}", start.elapsed().as_secs_f64(), used()),
        }
    }
    watching.await?;
    Ok(())
}

fn describe(fact: &ClusterFact) -> (&'static str, Option<String>) {
    match fact {
        ClusterFact::Identity(cluster) => ("Identity", Some(format!("Identity {cluster}"))),
        ClusterFact::IdentityUnread(error) => ("IdentityUnread", Some(error.text.to_string())),
        ClusterFact::Synced(nodes) => ("Synced", Some(format!("Synced {} nodes", nodes.len()))),
        ClusterFact::Applied(node) => {
            ("Applied", Some(format!("Applied {} ready {:?} {:?}", node.name, node.ready, node.provider)))
        }
        ClusterFact::Deleted { name, uid } => ("Deleted", Some(format!("Deleted {name} {uid}"))),
        ClusterFact::Leases(_) => ("Leases", None),
        ClusterFact::NodeEvent(event) => (
            "NodeEvent",
            Some(format!(
                "NodeEvent {} {}: {} ({})",
                event.node, event.reason, event.message, event.reporter
            )),
        ),
        ClusterFact::Alive => ("Alive", Some("Alive".to_owned())),
        ClusterFact::Failed(error) => ("Failed", Some(format!("Failed {:?}: {}", error.kind, error.text))),
    }
}

/// CPU time and memory of this process, as the kernel counts them. Empty where it does not tell.
fn used() -> String {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .map(|rest| rest.trim().to_owned())
            .unwrap_or_default()
    };
    format!("cpu {} ms, memory {}, peak {}", (ticks(11) + ticks(12)) * 10, line("VmRSS:"), line("VmHWM:"))
}
