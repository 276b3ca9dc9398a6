//! The leases of all nodes, read as a whole every few seconds.
//!
//! A list and not a watch: each kubelet renews every ten seconds, so a watch would bring every lease one by one, each
//! with a decode and a wake-up of its own; one list from the server's cache brings the same news for a fraction. The
//! list is decoded lease by lease while it arrives. As long as the same nodes have a lease, their names are those of the last
//! list, and what a kubelet wrote for the time becomes a mark that is only compared.
//!
//! A reading that is older than the last one (another API server, whose cache is behind) is not handed over: it would
//! make renewals look as if they had been taken back.

use std::time::Duration;

use reveille_core::event::ClusterFact;
use reveille_core::model::id::NodeName;
use reveille_core::model::lease::{Leases, NextLeases, Renewal};
use serde_json::value::RawValue;
use tokio::time::{MissedTickBehavior, interval};

use crate::backoff::Backoff;
use crate::failure::Failure;
use crate::paths;
use crate::sender::{Closed, FactSender};
use crate::session::Question;
use crate::shared::Shared;
use crate::wire::{LeaseDoc, ListMeta};

const LIST_WITHIN: Duration = Duration::from_secs(30);

/// A list of leases and its place in history.
#[derive(Default)]
pub(crate) struct Reading {
    /// The leases, in the server's order.
    pub(crate) leases: Leases,
    version: Option<u64>,
}

/// Lists the leases again and again.
pub(crate) async fn tell(cluster: &Shared, sender: &FactSender) -> Result<(), Closed> {
    let mut ticks = interval(cluster.rhythm.lease_period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut backoff = Backoff::new(cluster.rhythm.backoff_min, cluster.rhythm.backoff_max);
    let mut last = Reading::default();
    loop {
        ticks.tick().await;
        cluster.liveness.while_down().await;
        match read(cluster, &last).await {
            Ok(reading) if reading.is_before(&last) => {
                tracing::debug!("cluster: a list of leases is older than the last one and left out");
                // Once is a slow cache; the same again is a new history, and the node watch finds out about that.
                last.version = None;
            }
            Ok(reading) => {
                backoff.worked();
                last = reading;
                sender.tell(ClusterFact::Leases(last.leases.clone())).await?;
            }
            Err(failure) => {
                sender.put_off(&cluster.liveness, &mut backoff, "list node leases", &failure).await?;
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
pub(crate) async fn read(cluster: &Shared, last: &Reading) -> Result<Reading, Failure> {
    let ask = paths::leases().map_err(|error| Failure::unsendable(&error))?;
    let mut taking = Taking::new(last);
    let question = Question { ask, within: LIST_WITHIN, about: None };
    let read = cluster.session.read_items(question, "list of leases", &mut |raw| taking.take(raw)).await;
    taking.end(read?)
}

/// A reading under way.
struct Taking<'a> {
    leases: NextLeases<'a>,
    unread: usize,
}

impl<'a> Taking<'a> {
    fn new(last: &'a Reading) -> Self {
        Self { leases: last.leases.next(), unread: 0 }
    }

    fn take(&mut self, raw: &RawValue) {
        match serde_json::from_str::<LeaseDoc<'_>>(raw.get()) {
            // Both lists are in the server's order, so the same lease is nearly always at the same place.
            Ok(doc) => take(&mut self.leases, &doc),
            Err(_) => self.unread += 1,
        }
    }

    fn end(self, meta: ListMeta) -> Result<Reading, Failure> {
        if self.unread > 0 {
            tracing::warn!(unread = self.unread, "cluster: some leases cannot be read and are left out");
        }
        if meta.next.is_some_and(|next| !next.is_empty()) {
            return Err(Failure::incomplete("the list of leases is cut, although no page was asked for"));
        }
        let Some(version) = meta.resource_version.filter(|version| !version.is_empty()) else {
            return Err(Failure::malformed("the list of leases is no list: it has no version"));
        };
        Ok(Reading { leases: self.leases.end(), version: version.parse().ok() })
    }
}

fn take(leases: &mut NextLeases<'_>, doc: &LeaseDoc<'_>) {
    let renewed = doc.spec.as_ref().and_then(|spec| spec.renewed).unwrap_or_default();
    let name = &*doc.metadata.name;
    leases.take(|known| known.as_str() == name, || NodeName::from(name), Renewal::of(renewed));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::list_stream::ListStream;

    fn decode(body: &[u8], last: &Reading) -> Result<Reading, Failure> {
        let (mut stream, mut taking) = (ListStream::default(), Taking::new(last));
        let unreadable = |error: serde_json::Error| Failure::malformed(error.to_string());
        stream.take(body, &mut |raw| taking.take(raw)).map_err(unreadable)?;
        let meta = stream.end(&mut |raw| taking.take(raw)).map_err(unreadable)?;
        taking.end(meta)
    }

    fn list(version: u64, items: &str) -> Vec<u8> {
        format!(r#"{{"kind":"LeaseList","metadata":{{"resourceVersion":"{version}"}},"items":[{items}]}}"#)
            .into_bytes()
    }

    fn told(reading: &Reading) -> Vec<(&str, Renewal)> {
        reading.leases.iter().map(|(name, renewal)| (name.as_str(), renewal)).collect()
    }

    const fn at(text: &str) -> Renewal {
        Renewal::of(text)
    }

    #[test]
    fn a_malformed_lease_costs_only_itself() {
        let body = list(
            7,
            r#"{"metadata":{"name":"a"},"spec":{"renewTime":"t1"}},{"metadata":{"name":3}},
            {"metadata":{"name":"b"}},{"metadata":{"name":"c"},"spec":{"renewTime":null}}"#,
        );
        let reading = decode(&body, &Reading::default()).unwrap();
        assert_eq!(told(&reading), [("a", at("t1")), ("b", at("")), ("c", at(""))]);
    }

    #[test]
    fn names_are_shared_with_the_last_reading() {
        let first =
            decode(&list(7, r#"{"metadata":{"name":"a"},"spec":{"renewTime":"t1"}}"#), &Reading::default())
                .unwrap();
        let later =
            decode(&list(9, r#"{"metadata":{"name":"a"},"spec":{"renewTime":"t2"}}"#), &first).unwrap();
        assert_eq!(told(&later), [("a", at("t2"))]);
        assert!(Arc::ptr_eq(first.leases.names(), later.leases.names()));
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
