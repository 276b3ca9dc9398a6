//! Asks the API server for one node and the count of all, again and again: the second proof of `liveness`.
//!
//! ```text
//!  a tick ─▶ the watch is up? ─▶ one node from the store ─▶ Counted ─▶ Liveness ─▶ Alive, or a gap for the node watch
//!                                   └─ failed: every proof is taken back ─▶ Failed, and a growing wait
//! ```
//!
//! What a count proves, `liveness` says.

use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::backoff::Backoff;
use crate::failure::Failure;
use crate::liveness::Counted;
use crate::paths;
use crate::sender::{Closed, FactSender};
use crate::session::Question;
use crate::shared::Shared;
use crate::wire::List;

/// One node is a small answer; a server that needs longer is not well.
const PROBE_WITHIN: Duration = Duration::from_secs(10);

/// Asks the store for one node and the count of all, again and again.
pub(crate) async fn beat(cluster: &Shared, sender: &FactSender) -> Result<(), Closed> {
    let mut ticks = interval(cluster.rhythm.probe_period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut backoff = Backoff::new(cluster.rhythm.backoff_min, cluster.rhythm.backoff_max);
    let mut body = Vec::new();
    loop {
        ticks.tick().await;
        cluster.liveness.while_down().await;
        match probe(cluster, &mut body).await {
            Ok(counted) => {
                backoff.worked();
                if cluster.liveness.counted(Instant::now(), counted) {
                    sender.alive();
                }
            }
            Err(failure) => {
                sender.put_off(&cluster.liveness, &mut backoff, "count nodes", &failure).await?;
                ticks.reset_immediately();
            }
        }
    }
}

async fn probe(cluster: &Shared, body: &mut Vec<u8>) -> Result<Counted, Failure> {
    let ask = paths::nodes_count().map_err(|error| Failure::unsendable(&error))?;
    let held_before = cluster.liveness.held_version();
    cluster.session.read(Question { ask, within: PROBE_WITHIN, about: None }, body).await?;
    let list: List<'_> =
        serde_json::from_slice(body).map_err(|error| Failure::unread("the count of nodes", &error))?;
    let Some(version) = list.metadata.resource_version.filter(|version| !version.is_empty()) else {
        return Err(Failure::malformed("the count of nodes is no list: it has no version"));
    };
    let listed = list.items.as_ref().map_or(0, |items| items.len() as u64);
    let more = list.metadata.next.as_deref().is_some_and(|next| !next.is_empty());
    let count = match list.metadata.remaining_item_count {
        Some(rest) => Some(listed + rest),
        None => (!more).then_some(listed),
    };
    Ok(Counted { count, version: version.parse().ok(), held_before })
}
