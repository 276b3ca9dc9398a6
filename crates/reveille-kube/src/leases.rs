//! The leases of all nodes, read as a whole every few seconds.
//!
//! A list and not a watch: each kubelet renews every ten seconds, so a watch would bring every lease one by one, each
//! with a decode and a wake-up of its own; one list from the server's cache brings the same news for a fraction. The
//! list is decoded straight into borrowed fields. Texts that have not changed since the last list are shared with it.
//!
//! A reading that is older than the last one (another API server, whose cache is behind) is not handed over: it would
//! make renewals look as if they had been taken back.

use std::sync::Arc;
use std::time::Duration;

use reveille_core::event::ClusterFact;
use reveille_core::model::id::NodeName;
use reveille_core::model::node::LeaseFact;
use tokio::time::{MissedTickBehavior, interval};

use crate::backoff::Backoff;
use crate::cluster::Inner;
use crate::failure::Failure;
use crate::outlet::{Closed, Outlet};
use crate::paths;
use crate::session::Question;
use crate::wire::{LeaseDoc, LeaseList, List, ListMeta};

const LIST_WITHIN: Duration = Duration::from_secs(30);

/// A list of leases and its place in history.
#[derive(Default)]
pub(crate) struct Reading {
    /// The leases, in the server's order.
    pub(crate) leases: Vec<LeaseFact>,
    version: Option<u64>,
}

/// Lists the leases again and again.
pub(crate) async fn tell(cluster: &Inner, outlet: &Outlet) -> Result<(), Closed> {
    let mut ticks = interval(cluster.rhythm.lease_period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut backoff = Backoff::new(cluster.rhythm.backoff_min, cluster.rhythm.backoff_max);
    let mut body = Vec::new();
    let mut last = Reading::default();
    loop {
        ticks.tick().await;
        cluster.pulse.while_down().await;
        match read(cluster, &mut body, &last).await {
            Ok(reading) if reading.is_before(&last) => {
                tracing::debug!("cluster: a list of leases is older than the last one and left out");
                // Once is a slow cache; the same again is a new history, and the roll finds out about that.
                last.version = None;
            }
            Ok(reading) => {
                backoff.worked();
                outlet.tell(ClusterFact::Leases(reading.leases.clone())).await?;
                last = reading;
            }
            Err(failure) => {
                cluster.pulse.broken();
                let wait = backoff.failed(failure.retry_after);
                outlet.fail(failure.read_error("list node leases", Some(wait))).await?;
                tokio::time::sleep(wait).await;
                ticks.reset_immediately();
            }
        }
    }
}

impl Reading {
    fn is_before(&self, last: &Self) -> bool {
        matches!((self.version, last.version), (Some(ours), Some(before)) if ours < before)
    }
}

/// Reads all leases once. `last` lends its texts.
pub(crate) async fn read(cluster: &Inner, body: &mut Vec<u8>, last: &Reading) -> Result<Reading, Failure> {
    let ask = paths::leases().map_err(|error| Failure::unsendable(&error))?;
    cluster.session.read(Question { ask, within: LIST_WITHIN, about: None }, body).await?;
    decode(body, last)
}

fn decode(body: &[u8], last: &Reading) -> Result<Reading, Failure> {
    let unreadable =
        |error: serde_json::Error| Failure::malformed(format!("the list of leases cannot be read: {error}"));
    let (meta, docs) = match serde_json::from_slice::<LeaseList<'_>>(body) {
        Ok(list) => (list.metadata, list.items.unwrap_or_default()),
        // Some lease in it is malformed, or all of it is: find out one by one.
        Err(_) => one_by_one(serde_json::from_slice::<List<'_>>(body).map_err(unreadable)?),
    };
    let more = meta.next.is_some_and(|next| !next.is_empty());
    if more {
        return Err(Failure::incomplete("the list of leases is cut, although no page was asked for"));
    }
    let Some(version) = meta.resource_version.filter(|version| !version.is_empty()) else {
        return Err(Failure::malformed("the list of leases is no list: it has no version"));
    };
    let leases = docs.iter().enumerate().map(|(at, doc)| fact(doc, at, last)).collect();
    Ok(Reading { leases, version: version.parse().ok() })
}

fn one_by_one(list: List<'_>) -> (ListMeta, Vec<LeaseDoc<'_>>) {
    let items = list.items.unwrap_or_default();
    let count = items.len();
    let docs: Vec<LeaseDoc<'_>> =
        items.into_iter().filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect();
    tracing::warn!(unread = count - docs.len(), "cluster: some leases cannot be read and are left out");
    (list.metadata, docs)
}

fn fact(doc: &LeaseDoc<'_>, at: usize, last: &Reading) -> LeaseFact {
    let renewed = doc.spec.as_ref().and_then(|spec| spec.renewed).unwrap_or_default();
    // Both lists are in the server's order, so the same lease is nearly always at the same place.
    let before = last.leases.get(at).filter(|fact| fact.node.as_str() == doc.metadata.name);
    LeaseFact {
        node: before.map_or_else(|| NodeName::from(&*doc.metadata.name), |fact| fact.node.clone()),
        renewed: before
            .filter(|fact| &*fact.renewed == renewed)
            .map_or_else(|| Arc::from(renewed), |fact| fact.renewed.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(version: u64, items: &str) -> Vec<u8> {
        format!(r#"{{"kind":"LeaseList","metadata":{{"resourceVersion":"{version}"}},"items":[{items}]}}"#)
            .into_bytes()
    }

    fn told(reading: &Reading) -> Vec<(&str, &str)> {
        reading.leases.iter().map(|fact| (fact.node.as_str(), &*fact.renewed)).collect()
    }

    #[test]
    fn a_malformed_lease_costs_only_itself() {
        let body = list(
            7,
            r#"{"metadata":{"name":"a"},"spec":{"renewTime":"t1"}},{"metadata":{"name":3}},
            {"metadata":{"name":"b"}},{"metadata":{"name":"c"},"spec":{"renewTime":null}}"#,
        );
        let reading = decode(&body, &Reading::default()).unwrap();
        assert_eq!(told(&reading), [("a", "t1"), ("b", ""), ("c", "")]);
    }

    #[test]
    fn unchanged_texts_are_shared_with_the_last_reading() {
        let first =
            decode(&list(7, r#"{"metadata":{"name":"a"},"spec":{"renewTime":"t1"}}"#), &Reading::default())
                .unwrap();
        let same =
            decode(&list(8, r#"{"metadata":{"name":"a"},"spec":{"renewTime":"t1"}}"#), &first).unwrap();
        assert!(Arc::ptr_eq(&first.leases[0].renewed, &same.leases[0].renewed));
        let later =
            decode(&list(9, r#"{"metadata":{"name":"a"},"spec":{"renewTime":"t2"}}"#), &same).unwrap();
        assert_eq!(told(&later), [("a", "t2")]);
        assert!(Arc::ptr_eq(&first.leases[0].node.shared(), &later.leases[0].node.shared()));
    }

    #[test]
    fn a_list_that_is_cut_or_no_list_is_a_failure() {
        let cut = br#"{"metadata":{"resourceVersion":"7","continue":"x"},"items":[]}"#;
        assert!(decode(cut, &Reading::default()).is_err());
        assert!(decode(b"<html>", &Reading::default()).is_err());
        assert!(decode(b"{}", &Reading::default()).is_err());
        assert!(decode(&list(7, ""), &Reading::default()).is_ok_and(|reading| reading.leases.is_empty()));
    }
}
