//! Events about nodes: those that the API still holds, then new ones as they are written.
//!
//! Events are hints: which client deleted a node, and why. So no failure here ever becomes a `Failed`: without events the engine
//! knows less and is not wrong. A refusal (403) is logged once, and tried again rarely, because an operator may grant the right
//! later. The API server keeps events for an hour or so; those from before our start are told first, oldest first.
//!
//! An event that is too long for a line of the watch is left out: its text is not worth what it costs to read.
//!
//! After a lost place in the watch all events are listed again, so an event may be told twice; the engine knows it by its
//! content.

use std::time::Duration;

use reveille_core::effect::ReadErrorKind;
use reveille_core::event::ClusterFact;
use reveille_core::model::id::NodeName;
use reveille_core::model::node::NodeEvent;
use tokio::time::sleep;

use crate::backoff::Backoff;
use crate::failure::Failure;
use crate::mapping::{is_telling, said};
use crate::page::{Limit, page};
use crate::paths;
use crate::sender::{Closed, FactSender};
use crate::shared::Shared;
use crate::watch_request::{Step, WatchRequest};

/// Pages read at most, of 500 events each. An upgrade of 2,000 machines writes some 20 events about each within the hour that
/// the API server keeps them.
const PAGES_MAX: usize = 100;

/// Pages read at most about one node: each client may write events about it, and a person waits for its evidence.
const PAGES_OF_NODE_MAX: usize = 4;

/// Events told at most from before the start, and kept at most of one node: the newest.
const TOLD_MAX: usize = 1000;

/// One watch request. Shorter than etcd's usual compaction of five minutes: events have no bookmarks that would move us on.
const WATCH_FOR: Duration = Duration::from_secs(240);

/// How often a refused right is tried again.
const REFUSED_WAIT: Duration = Duration::from_secs(600);

/// Tells events until the receiver is gone.
pub(crate) async fn tell(cluster: &Shared, sender: &FactSender) -> Result<(), Closed> {
    let mut backoff = Backoff::new(cluster.rhythm.backoff_min, cluster.rhythm.backoff_max);
    let mut refused = false;
    loop {
        cluster.liveness.while_down().await;
        let failure = match list(cluster, None).await {
            Ok((events, version)) => {
                for event in events {
                    sender.tell(ClusterFact::NodeEvent(event)).await?;
                }
                follow(cluster, sender, version, &mut backoff).await?
            }
            Err(failure) => failure,
        };
        if failure.kind == ReadErrorKind::Forbidden {
            if !refused {
                tracing::warn!(
                    "cluster: events about nodes may not be read, so who deletes a node stays unknown: {}",
                    failure.cause
                );
            }
            refused = true;
            sleep(REFUSED_WAIT).await;
            continue;
        }
        if failure.kind != ReadErrorKind::Gap {
            tracing::debug!("cluster: cannot follow events about nodes: {}", failure.cause);
        }
        sleep(backoff.failed(failure.retry_after)).await;
    }
}

async fn follow(
    cluster: &Shared,
    sender: &FactSender,
    mut version: String,
    backoff: &mut Backoff,
) -> Result<Failure, Closed> {
    loop {
        let seconds = u32::try_from(WATCH_FOR.as_secs()).unwrap_or(u32::MAX);
        let mut watch =
            match WatchRequest::open(&cluster.session, paths::events_watch(&version, seconds), WATCH_FOR)
                .await
            {
                Ok(watch) => watch,
                Err(failure) => return Ok(failure),
            };
        let began = tokio::time::Instant::now();
        loop {
            let told = match watch.next().await {
                Ok(Some(Step::Put(raw))) => said(raw, &cluster.interner),
                Ok(Some(Step::Gone(_))) => None,
                Ok(Some(Step::Long(beginning))) => {
                    tracing::debug!("cluster: an event about a node is too long and left out");
                    let reached = beginning.meta.resource_version.filter(|reached| !reached.is_empty());
                    version = reached.unwrap_or(version);
                    None
                }
                Ok(Some(Step::Mark(mark))) => {
                    version = mark.filter(|mark| !mark.is_empty()).unwrap_or(version);
                    None
                }
                Ok(None) => break,
                Err(failure) => return Ok(failure),
            };
            let Some(told) = told else { continue };
            version = told.version.filter(|reached| !reached.is_empty()).unwrap_or(version);
            if is_telling(&told.event) {
                sender.tell(ClusterFact::NodeEvent(told.event)).await?;
            }
        }
        if began.elapsed() < Duration::from_secs(1) {
            sleep(backoff.failed(None)).await;
        } else {
            backoff.worked();
        }
    }
}

/// Events about all nodes that are worth telling, or all events about one node: oldest first, the newest of them, and where the
/// list stands in history.
///
/// The others are left out before anything is cut: the kubelets of an upgrade write thousands, which are newer than the cordon
/// of a machine that was drained before it.
pub(crate) async fn list(
    cluster: &Shared,
    about: Option<&NodeName>,
) -> Result<(Vec<NodeEvent>, String), Failure> {
    let mut events = Vec::new();
    let mut next = None;
    let mut version = String::new();
    let (limit, mut body) = (Limit::default(), Vec::new());
    let pages_max = if about.is_some() { PAGES_OF_NODE_MAX } else { PAGES_MAX };
    for _ in 0..pages_max {
        let ask = |limit| paths::events_page(about, limit, next.clone());
        let page = page(&cluster.session, &limit, ask, "events", &mut body).await?;
        version = page.version;
        let told = page.items.into_iter().filter_map(|raw| said(raw, &cluster.interner));
        events.extend(told.map(|said| said.event).filter(|event| about.is_some() || is_telling(event)));
        keep_newest(&mut events);
        next = page.next;
        if next.is_none() {
            return Ok((events, version));
        }
    }
    tracing::warn!(
        "cluster: there are more events about nodes than {pages_max} pages hold; the rest is not read, \
         so a cordon or a removal from before this start may stay unknown"
    );
    Ok((events, version))
}

/// Sorts the events, oldest first, and drops the oldest where there are too many.
fn keep_newest(events: &mut Vec<NodeEvent>) {
    // RFC 3339 in UTC sorts as text; the stamps are only compared with each other here.
    events.sort_by(|a, b| a.stamped.cmp(&b.stamped));
    let superfluous = events.len().saturating_sub(TOLD_MAX);
    events.drain(..superfluous);
}
