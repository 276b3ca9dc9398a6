//! Delivers the listings of a poller to one roster: only the newest waits, and no other roster waits with it.
//!
//! ```text
//!  poller ─▶ Post::put, which never waits ─▶ one waiting fact ─▶ deliver, when the inbox has room ─▶ the roster's driver
//!                                              └─ changes had to be left out ─▶ "list in full"
//! ```
//!
//! A driver whose disk hangs takes no events, and must not stop the listings of the other rosters of its cloud. So each
//! roster has a place for one fact. A full listing replaces any fact that waits there. A listing of changes cannot,
//! because it has only what is new since the one before. If another listing waits, the changes are left out, and so are
//! those after them. Once the roster takes events again, the poller makes a full listing that includes them. A failure
//! never displaces a listing and does not wait; the next failure says the same.

use std::sync::{Mutex, PoisonError};

use reveille_core::event::{CloudFact, Event, Scope};
use reveille_core::model::id::CloudName;
use reveille_core::model::time::Span;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

/// A roster that receives the listings, under its own name for the cloud.
#[derive(Clone, Debug)]
pub(crate) struct Listener {
    /// The roster's name for it.
    pub(crate) cloud: CloudName,
    /// The inbox of its driver.
    pub(crate) events: mpsc::Sender<Event>,
}

/// The delivery to one roster.
pub(super) struct Post {
    cloud: CloudName,
    events: mpsc::Sender<Event>,
    place: Mutex<Place>,
    filled: Notify,
}

#[derive(Default)]
struct Place {
    waits: Option<(Instant, CloudFact)>,
    /// Changes were left out since the last full listing.
    lacks: bool,
}

impl Post {
    /// The delivery to this listener.
    pub(super) fn to(listener: Listener) -> Self {
        let Listener { cloud, events } = listener;
        Self { cloud, events, place: Mutex::default(), filled: Notify::new() }
    }

    /// Stores a fact of a listing that began at `begun`, for delivery.
    pub(super) fn put(&self, begun: Instant, fact: CloudFact) {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        let listing_waits = matches!(&place.waits, Some((_, CloudFact::Snapshot { .. })));
        match &fact {
            CloudFact::Snapshot { snapshot, .. } if snapshot.scope == Scope::Full => place.lacks = false,
            CloudFact::Snapshot { .. } => {
                place.lacks |= listing_waits;
                if place.lacks {
                    return;
                }
            }
            CloudFact::Failed(_) if listing_waits => return,
            CloudFact::Failed(_) => {}
        }
        place.waits = Some((begun, fact));
        drop(place);
        self.filled.notify_one();
    }

    /// Delivers the waiting fact whenever the inbox has room, until the roster stops receiving. `wants_full` is notified
    /// when changes were left out.
    pub(super) async fn deliver(&self, wants_full: &Notify) {
        loop {
            tokio::select! {
                () = self.filled.notified() => {}
                () = self.events.closed() => return,
            }
            let Ok(room) = self.events.reserve().await else { return };
            let (waits, lacks) = {
                let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
                (place.waits.take(), place.lacks)
            };
            let Some((begun, fact)) = waits else { continue };
            // The fact grew older while it waited.
            let fact = match fact {
                CloudFact::Snapshot { snapshot, .. } => CloudFact::Snapshot { snapshot, took: took(begun) },
                failed => failed,
            };
            room.send(Event::Cloud { cloud: self.cloud.clone(), fact });
            if lacks {
                wants_full.notify_one();
            }
        }
    }
}

/// The time since `begun`, in the unit of the engine's clock. A listing hits its time limit long before this overflows.
pub(super) fn took(begun: Instant) -> Span {
    begun.elapsed().into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use reveille_core::effect::{ReadError, ReadErrorKind};
    use reveille_core::event::CloudSnapshot;

    use super::*;

    fn listing(scope: Scope) -> CloudFact {
        CloudFact::read(CloudSnapshot { scope, ..CloudSnapshot::default() })
    }

    fn failed() -> CloudFact {
        CloudFact::Failed(ReadError {
            kind: ReadErrorKind::Unavailable,
            text: Arc::from("503"),
            retry_after: None,
        })
    }

    fn word(fact: &CloudFact) -> &'static str {
        match fact {
            CloudFact::Snapshot { snapshot, .. } if snapshot.scope == Scope::Full => "full",
            CloudFact::Snapshot { .. } => "changes",
            CloudFact::Failed(_) => "failed",
        }
    }

    /// Whatever facts arrive while the roster takes none, it gets one fact afterwards. What that fact lacks
    /// comes with a full listing.
    #[tokio::test(start_paused = true)]
    async fn one_fact_waits_and_what_was_left_out_is_asked_for() {
        let (full, changes) = (|| listing(Scope::Full), || listing(Scope::Changes));
        let table = [
            (vec![changes()], "changes", false),
            (vec![failed(), changes()], "changes", false),
            (vec![full(), full()], "full", false),
            (vec![changes(), full()], "full", false),
            (vec![full(), failed()], "full", false),
            (vec![failed(), failed()], "failed", false),
            (vec![full(), changes()], "full", true),
            (vec![changes(), changes(), failed()], "changes", true),
            (vec![changes(), changes(), full()], "full", false),
        ];
        for (put, wanted, lacks) in table {
            let words: Vec<_> = put.iter().map(word).collect();
            let (events, mut inbox) = mpsc::channel(1);
            events.try_send(Event::Tick).unwrap();
            let (post, wants_full) = (Post::to(Listener { cloud: "os".into(), events }), Notify::new());
            put.into_iter().for_each(|fact| post.put(Instant::now(), fact));
            let taking = async {
                tokio::time::sleep(Duration::from_secs(70)).await;
                assert_eq!(inbox.recv().await, Some(Event::Tick));
                let Some(Event::Cloud { fact, .. }) = inbox.recv().await else { panic!("{words:?}") };
                assert_eq!(word(&fact), wanted, "{words:?}");
                if let CloudFact::Snapshot { took, .. } = fact {
                    assert!(took >= Span::from_s(70), "it is as old as it is: {took}");
                }
                let asked = tokio::time::timeout(Duration::from_secs(1), wants_full.notified()).await;
                assert_eq!(asked.is_ok(), lacks, "{words:?}");
                assert!(inbox.try_recv().is_err(), "{words:?}");
            };
            tokio::select! {
                () = post.deliver(&wants_full) => panic!("the roster still listens"),
                () = taking => {}
            }
        }
    }

    /// The engine would take changes after a gap for the whole state.
    #[tokio::test(start_paused = true)]
    async fn after_changes_were_left_out_only_a_full_listing_is_delivered() {
        let (events, mut inbox) = mpsc::channel(8);
        let (post, wants_full) = (Post::to(Listener { cloud: "os".into(), events }), Notify::new());
        for scope in [Scope::Changes, Scope::Changes] {
            post.put(Instant::now(), listing(scope));
        }
        let taking = async {
            assert!(
                matches!(inbox.recv().await, Some(Event::Cloud { fact, .. }) if word(&fact) == "changes")
            );
            post.put(Instant::now(), listing(Scope::Changes));
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert!(inbox.try_recv().is_err());
            for wanted in ["full", "changes"] {
                let scope = if wanted == "full" { Scope::Full } else { Scope::Changes };
                post.put(Instant::now(), listing(scope));
                assert!(
                    matches!(inbox.recv().await, Some(Event::Cloud { fact, .. }) if word(&fact) == wanted)
                );
            }
        };
        tokio::select! {
            () = post.deliver(&wants_full) => panic!("the roster still listens"),
            () = taking => {}
        }
    }
}
