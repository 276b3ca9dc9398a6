//! The nodes: one complete list, then every change, for ever.
//!
//! ```text
//!   kube-system, list (pages) ──▶ Identity, Synced ──▶ watch ──▶ watch ──▶ … ──▶ Applied, Deleted
//!     ▲                           │ 410, count differs, store went back
//!     └────── Failed(Gap) ◀───────┘
//! ```
//!
//! Each watch request takes a few seconds (`watch_request`) and continues where the last one ended, so a broken one costs
//! nothing but a `Failed`; only a lost place needs a new list. The last node told is kept for each name, and shared with
//! the engine: a heartbeat that changes nothing we read is not told. Every `audit_period` the nodes are listed once more,
//! quietly; one that fails is repeated after waits of its own, while the watch goes on. What differs is told as the change
//! that it is, so that nothing missed stays missed; a list that lacks several nodes, or is older than what was told, is
//! handed over whole, so that it is judged as a list.
//!
//! A node that is too long for a line of the watch is read by its name, at once: what follows in the watch is newer or the same.
//! Where the line does not hold its name, or the node cannot be read, the quiet list comes sooner. While that goes on, the list
//! comes ever later, so that one kubelet does not cause a list of all nodes with each of its writes. Either way the watch goes
//! on. Only a node that came or went, and that neither way tells, is found by the count, as a gap.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use reveille_core::effect::ReadErrorKind;
use reveille_core::event::ClusterFact;
use reveille_core::model::id::{NodeName, NodeUid};
use reveille_core::model::node::Node;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout};

use crate::backoff::Backoff;
use crate::beginning::Beginning;
use crate::failure::Failure;
use crate::identity;
use crate::listing::{Listing, list};
use crate::liveness::Held;
use crate::paths;
use crate::query;
use crate::sender::{Closed, FactSender};
use crate::shared::Shared;
use crate::watch_request::{Step, WatchRequest};
use crate::wire::{Headed, Meta};

/// An audit that lacks more nodes than this is a list of its own, and judged as one.
const AUDIT_LACKS_MAX: usize = 1;

/// A watch that ends sooner proves nothing and must not be repeated at once.
const WATCH_MIN: Duration = Duration::from_secs(1);

/// A node that is read by its name holds up the watch, whose end may be so much late (`watch_request`).
const LONG_WITHIN: Duration = Duration::from_secs(5);

/// The list as it goes on.
struct NodeList {
    known: BTreeMap<NodeName, Arc<Node>>,
    nameless: u64,
    version: String,
}

/// When the nodes are listed once more.
struct Audits {
    period: Duration,
    due: Instant,
    backoff: Backoff,
    /// The waits of those that a node asks for which could not be read.
    owing: Backoff,
    /// Such a node is owed.
    owes: bool,
}

/// Lists and watches until the receiver is gone.
pub(crate) async fn run(cluster: &Shared, sender: &FactSender) -> Result<(), Closed> {
    let mut backoff = Backoff::new(cluster.rhythm.backoff_min, cluster.rhythm.backoff_max);
    loop {
        let (identity, mut nodes) = match identified(cluster).await {
            Ok((identity, listing)) => (identity, NodeList::of(listing)),
            Err((what, failure)) => {
                report(cluster, sender, &mut backoff, what, &failure).await?;
                continue;
            }
        };
        sender.identify(identity).await?;
        sender.tell(ClusterFact::Synced(nodes.known.values().cloned().collect())).await?;
        cluster.liveness.holds(Some(nodes.held()));
        cluster.book.iter().for_each(|book| book.holds(Some(&nodes.known)));
        cluster.liveness.is_up(true);
        let gap = follow(cluster, sender, &mut nodes, &mut backoff).await?;
        cluster.liveness.holds(None);
        cluster.book.iter().for_each(|book| book.holds(None));
        report(cluster, sender, &mut backoff, "follow the nodes", &gap).await?;
    }
}

/// Which cluster answers, and then its nodes.
async fn identified(cluster: &Shared) -> Result<(ClusterFact, Listing), (&'static str, Failure)> {
    let identity =
        identity::read(cluster).await.map_err(|failure| ("read namespace kube-system", failure))?;
    let listing = list(cluster).await.map_err(|failure| ("list nodes", failure))?;
    Ok((identity, listing))
}

/// Says what failed and when the next try is, and waits until then.
async fn report(
    cluster: &Shared,
    sender: &FactSender,
    backoff: &mut Backoff,
    what: &str,
    failure: &Failure,
) -> Result<(), Closed> {
    cluster.liveness.is_up(false);
    sender.put_off(&cluster.liveness, backoff, what, failure).await
}

/// Watch after watch, until the place in history is lost.
async fn follow(
    cluster: &Shared,
    sender: &FactSender,
    nodes: &mut NodeList,
    backoff: &mut Backoff,
) -> Result<Failure, Closed> {
    let mut audits = Audits::new(cluster);
    loop {
        let began = Instant::now();
        let watched = tokio::select! {
            biased;
            why = cluster.liveness.gap() => return Ok(Failure::gap(why)),
            watched = watch_once(cluster, sender, nodes, backoff, &mut audits) => watched?,
        };
        match watched {
            Ok(()) if began.elapsed() < WATCH_MIN => tokio::time::sleep(WATCH_MIN).await,
            Ok(()) => {
                backoff.worked();
                proved(cluster, sender);
            }
            // A place that the server does not understand (400, after its store was replaced) is as lost as an old one.
            Err(failure) if matches!(failure.kind, ReadErrorKind::Gap | ReadErrorKind::Malformed) => {
                return Ok(Failure { kind: ReadErrorKind::Gap, ..failure });
            }
            Err(failure) => report(cluster, sender, backoff, "watch nodes", &failure).await?,
        }
        if audits.due <= Instant::now() {
            match identified(cluster).await {
                Ok((identity, listing)) => {
                    audits.worked();
                    sender.identify(identity).await?;
                    audit(cluster, sender, nodes, listing).await?;
                }
                Err((what, failure)) => {
                    cluster.liveness.broken();
                    let wait = audits.failed(&failure);
                    sender.fail(failure.read_error(what, Some(wait))).await?;
                }
            }
        }
    }
}

impl Audits {
    fn new(cluster: &Shared) -> Self {
        let (period, floor) = (cluster.rhythm.audit_period, cluster.rhythm.backoff_min);
        // Not the watch's: each watch that goes well would have the next audit wait the shortest time.
        let waits = || Backoff::new(floor, period.max(floor));
        Self { period, due: Instant::now() + period, backoff: waits(), owing: waits(), owes: false }
    }

    /// A node changed and could not be read: the list has it. Each such list waits longer than the last one.
    fn owe(&mut self) {
        if !std::mem::replace(&mut self.owes, true) {
            self.due = self.due.min(Instant::now() + self.owing.failed(None));
        }
    }

    fn worked(&mut self) {
        self.backoff.worked();
        if !std::mem::take(&mut self.owes) {
            self.owing.worked();
        }
        self.due = Instant::now() + self.period;
    }

    /// How long the next one waits.
    fn failed(&mut self, failure: &Failure) -> Duration {
        let wait = self.backoff.failed(failure.retry_after);
        self.due = Instant::now() + wait;
        wait
    }
}

/// One watch request from its first line to its end.
async fn watch_once(
    cluster: &Shared,
    sender: &FactSender,
    nodes: &mut NodeList,
    backoff: &mut Backoff,
    audits: &mut Audits,
) -> Result<Result<(), Failure>, Closed> {
    let (began, length) = (Instant::now(), cluster.rhythm.watch_length);
    let seconds = u32::try_from(length.as_secs()).unwrap_or(u32::MAX).max(1);
    let mut watch =
        match WatchRequest::open(&cluster.session, paths::nodes_watch(&nodes.version, seconds), length).await
        {
            Ok(watch) => watch,
            Err(failure) => return Ok(Err(failure)),
        };
    cluster.liveness.is_up(true);
    loop {
        let fact = match watch.next().await {
            Ok(Some(Step::Put(raw))) => {
                let fact = nodes.put(raw, cluster);
                cluster.hot_objects.pass();
                fact
            }
            Ok(Some(Step::Gone(raw))) => {
                nodes.gone(serde_json::from_str::<Headed>(raw.get()).unwrap_or_default().metadata, cluster)
            }
            Ok(Some(Step::Long(beginning))) => nodes.long(beginning, cluster, audits).await,
            Ok(Some(Step::Mark(version))) => {
                nodes.reach(version);
                cluster.hot_objects.pass();
                cluster.liveness.holds(Some(nodes.held()));
                // Of a server that gives a mark and then loses the place, all nodes would be listed once a second.
                if began.elapsed() >= WATCH_MIN {
                    backoff.worked();
                }
                proved(cluster, sender);
                None
            }
            Ok(None) => return Ok(Ok(())),
            Err(failure) => return Ok(Err(failure)),
        };
        if let Some(fact) = fact {
            cluster.liveness.holds(Some(nodes.held()));
            sender.tell(fact).await?;
        }
    }
}

fn proved(cluster: &Shared, sender: &FactSender) {
    if cluster.liveness.watch_proved(Instant::now()) {
        sender.alive();
    }
}

/// Tells what the list has and the watch has not told.
///
/// A list that lacks several nodes, or that is of an older version, is handed over whole. Told as single deletions it would
/// pass by the doubt of a list that shrank: an API server whose etcd was restored from a backup, or is empty, answers with
/// 200 and a complete list. Its revisions, which are the versions, then begin again at those of the backup (etcd, "Disaster
/// recovery": restored members start with the revision of the snapshot, unless `--bump-revision` is given).
async fn audit(
    cluster: &Shared,
    sender: &FactSender,
    nodes: &mut NodeList,
    listing: Listing,
) -> Result<(), Closed> {
    let fresh = NodeList::of(listing);
    let old = std::mem::replace(nodes, fresh);
    cluster.liveness.holds(Some(nodes.held()));
    cluster.book.iter().for_each(|book| book.holds(Some(&nodes.known)));
    let gone: Vec<_> = old.known.iter().filter(|(name, _)| !nodes.known.contains_key(*name)).collect();
    if gone.len() > AUDIT_LACKS_MAX || went_back(&old.version, &nodes.version) {
        tracing::warn!(
            missing = gone.len(),
            known = old.known.len(),
            "cluster: the audit of nodes differs from the watch: version {} then, {} now; it is taken as a new list",
            old.version,
            nodes.version
        );
        return sender.tell(ClusterFact::Synced(nodes.known.values().cloned().collect())).await;
    }
    for (name, node) in gone {
        sender.tell(ClusterFact::Deleted { name: name.clone(), uid: node.uid.clone() }).await?;
    }
    for (name, node) in &mut nodes.known {
        match old.known.get(name) {
            // The engine holds the old copy already; keeping it keeps one in memory.
            Some(told) if told == node => *node = told.clone(),
            _ => sender.tell(ClusterFact::Applied(node.clone())).await?,
        }
    }
    Ok(())
}

/// The list is of an older version than what was told. Versions of one kind of object are ordered as numbers (Kubernetes API
/// concepts, "Resource versions", and KEP-5504); kube-apiserver takes them from etcd. What is no number is never older.
fn went_back(told: &str, listed: &str) -> bool {
    let number = |version: &str| version.parse::<u64>().ok();
    matches!((number(told), number(listed)), (Some(told), Some(listed)) if listed < told)
}

impl NodeList {
    fn of(listing: Listing) -> Self {
        let Listing { nodes, nameless, version } = listing;
        Self { known: nodes, nameless, version }
    }

    fn held(&self) -> Held {
        Held { count: self.known.len() as u64 + self.nameless, version: self.version.parse().ok() }
    }

    fn reach(&mut self, version: Option<String>) {
        if let Some(version) = version.filter(|version| !version.is_empty()) {
            self.version = version;
        }
    }

    /// The fact in an added or changed object; `None` when nothing that we read has changed.
    fn put(&mut self, raw: &RawValue, cluster: &Shared) -> Option<ClusterFact> {
        let read = cluster.read_node(raw)?;
        cluster.hot_objects.written(&read.node.name);
        self.reach(read.version);
        self.now(read.node, cluster)
    }

    /// A node as it is now.
    fn now(&mut self, node: Arc<Node>, cluster: &Shared) -> Option<ClusterFact> {
        match self.known.get(&node.name) {
            Some(told) if *told == node => None,
            _ => {
                self.known.insert(node.name.clone(), node.clone());
                cluster.book.iter().for_each(|book| book.put(&node));
                Some(ClusterFact::Applied(node))
            }
        }
    }

    /// The fact in an object of which the watch brought the beginning alone.
    async fn long(&mut self, of: Beginning, cluster: &Shared, audits: &mut Audits) -> Option<ClusterFact> {
        let Some(name) = of.meta.name.as_deref().map(NodeName::from) else {
            tracing::warn!("cluster: a node is too long for the watch, and its name cannot be read");
            self.reach(of.meta.resource_version);
            audits.owe();
            return None;
        };
        if of.is_gone {
            return self.gone(of.meta, cluster);
        }
        cluster.hot_objects.written(&name);
        // Its version is not that of the place in history: other nodes may have changed before.
        self.reach(of.meta.resource_version);
        let late = || Failure::timed_out(LONG_WITHIN, cluster.session.server());
        let read = timeout(LONG_WITHIN, query::node(cluster, &name)).await;
        match read.unwrap_or_else(|_| Err(late())) {
            Ok(Some(node)) => self.now(node, cluster),
            // Its end is on the way.
            Ok(None) => None,
            Err(failure) => {
                let cause = failure.cause;
                tracing::warn!("cluster: node {name} is too long for the watch, and cannot be read: {cause}");
                audits.owe();
                None
            }
        }
    }

    /// The fact in a deleted object.
    fn gone(&mut self, last: Meta, cluster: &Shared) -> Option<ClusterFact> {
        self.reach(last.resource_version);
        let Some(name) = last.name.map(|name| NodeName::from(name.as_str())) else {
            // The count tells that one is missing, and a new list which.
            tracing::warn!("cluster: a node was deleted and its name cannot be read");
            return None;
        };
        let told = self.known.get(&name).map(|node| node.uid.clone());
        let uid = last.uid.map(|uid| NodeUid::from(uid.as_str())).or_else(|| told.clone())?;
        if told.as_ref() == Some(&uid) {
            self.known.remove(&name);
            cluster.book.iter().for_each(|book| book.gone(&name));
        }
        Some(ClusterFact::Deleted { name, uid })
    }
}
