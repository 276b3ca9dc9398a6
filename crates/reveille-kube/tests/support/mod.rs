//! An API server in this process, for tests, and what a cluster behind it tells.
#![allow(
    dead_code,
    unused_imports,
    clippy::unwrap_used,
    reason = "each test file uses its own part; in a test what cannot be is a failure"
)]

mod answer;
mod api;

use std::time::Duration;

use reveille_core::event::ClusterFact;
use reveille_kube::{Cluster, Rhythm};
use tokio::sync::mpsc;
use tokio::time::Instant;

pub(crate) use answer::{Answer as Reply, Refuse, full, status, streamed};
pub(crate) use api::{Api, certificate_request, event, node};

/// What a cluster tells, with the virtual seconds since the start.
pub(crate) struct FactStream {
    facts: mpsc::Receiver<ClusterFact>,
    start: Instant,
}

impl FactStream {
    /// Watches this cluster.
    pub(crate) fn of(cluster: Cluster) -> Self {
        let (sender, facts) = mpsc::channel(4096);
        tokio::spawn(async move { cluster.watch(sender, std::future::pending()).await });
        Self { facts, start: Instant::now() }
    }

    /// Watches the cluster behind this API in the default rhythm.
    pub(crate) fn by(api: &Api) -> Self {
        Self::of(api.cluster())
    }

    /// Watches in another rhythm.
    pub(crate) fn in_rhythm(api: &Api, rhythm: Rhythm) -> Self {
        Self::of(api.cluster().with_rhythm(rhythm))
    }

    /// Everything told during the next seconds, with when.
    pub(crate) async fn during(&mut self, seconds: u64) -> Vec<(u64, ClusterFact)> {
        let until = Instant::now() + Duration::from_secs(seconds);
        let mut told = Vec::new();
        while let Ok(Some(fact)) = tokio::time::timeout_at(until, self.facts.recv()).await {
            told.push((self.start.elapsed().as_secs(), fact));
        }
        told
    }

    /// The next fact that the question picks, within a virtual minute.
    pub(crate) async fn next<T>(&mut self, pick: impl Fn(&ClusterFact) -> Option<T>) -> T {
        let until = Instant::now() + Duration::from_secs(60);
        let mut seen = Vec::new();
        loop {
            match tokio::time::timeout_at(until, self.facts.recv()).await {
                Ok(Some(fact)) => match pick(&fact) {
                    Some(picked) => return picked,
                    None => seen.push(word(&fact)),
                },
                _ => panic!("not told within a minute; told instead: {seen:?}"),
            }
        }
    }

    /// Waits for the first complete list and returns its names.
    pub(crate) async fn synced(&mut self) -> Vec<String> {
        self.next(synced).await
    }
}

/// Names of a complete list.
pub(crate) fn synced(fact: &ClusterFact) -> Option<Vec<String>> {
    match fact {
        ClusterFact::Synced(nodes) => Some(nodes.iter().map(|node| node.name.to_string()).collect()),
        _ => None,
    }
}

/// A failure.
pub(crate) fn failed(fact: &ClusterFact) -> Option<reveille_core::effect::ReadError> {
    match fact {
        ClusterFact::Failed(error) => Some(error.clone()),
        _ => None,
    }
}

/// One word for a fact.
pub(crate) fn word(fact: &ClusterFact) -> String {
    match fact {
        ClusterFact::Identity(cluster) => format!("Identity({cluster})"),
        ClusterFact::IdentityUnread(error) => format!("IdentityUnread({:?})", error.kind),
        ClusterFact::Synced(nodes) => format!("Synced({})", nodes.len()),
        ClusterFact::Applied(node) => format!("Applied({})", node.name),
        ClusterFact::Deleted { name, .. } => format!("Deleted({name})"),
        ClusterFact::Leases(leases) => format!("Leases({})", leases.len()),
        ClusterFact::NodeEvent(event) => format!("NodeEvent({} {})", event.reason, event.node),
        ClusterFact::Alive => "Alive".to_owned(),
        ClusterFact::Failed(error) => format!("Failed({:?})", error.kind),
    }
}

/// The words of what was told, without those that come in every rhythm.
pub(crate) fn news(told: &[(u64, ClusterFact)]) -> Vec<String> {
    told.iter()
        .map(|(_, fact)| word(fact))
        .filter(|word| *word != "Alive" && !word.starts_with("Leases") && !word.starts_with("Identity"))
        .collect()
}

/// When `Alive` was told.
pub(crate) fn alive(told: &[(u64, ClusterFact)]) -> Vec<u64> {
    told.iter().filter(|(_, fact)| *fact == ClusterFact::Alive).map(|(at, _)| *at).collect()
}

/// An API with nodes a, b and c, all Ready and leased.
pub(crate) fn three() -> Api {
    let api = Api::default();
    for name in ["a", "b", "c"] {
        api.put(node(name, &format!("uid-{name}")));
    }
    api.leases(&[("a", "t1"), ("b", "t1"), ("c", "t1")]);
    api
}
