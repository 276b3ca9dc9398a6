//! The only task that lists one project, for any number of rosters and pools.
//!
//! ```text
//!  period, or "list now" ─▶ list (one at a time, with a deadline) ─▶ Snapshot / Failed ─▶ every roster that shares it
//!                               └─ failed: wait, twice as long each time, with jitter, Retry-After honoured
//! ```
//!
//! Listings never overlap: the next one begins after the last has ended. A request to list at once is a request for a full
//! listing, and stays until a full listing was read. It shortens a period, but never a wait after a failure or one that the
//! service asked for in Retry-After. [`Pacer`] holds the rule for when which listing begins, and the simulator uses the same
//! rule. A roster whose driver takes no events delays no other roster (`post`). The engine decides what a listing means.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use reveille_core::effect::{ReadError, ReadErrorKind};
use reveille_core::event::{CloudFact, CloudSnapshot, Scope};
use reveille_core::model::time::{Span, Time};
use reveille_core::pace::{self, Pacer};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use super::post::{Listener, Post, took};

/// A source that the poller lists again and again.
pub(crate) trait Reader: Send {
    /// Reads the whole project, or (when that is safe) only the changes.
    fn list(&mut self, now_full: bool) -> impl Future<Output = Result<CloudSnapshot, ReadError>> + Send;
    /// Its name for people.
    fn name(&self) -> &str;
}

/// The intervals and the time limit of listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// When which listing begins.
    pub(crate) rule: pace::Pace,
    /// The longest that one listing may take.
    pub(crate) within: Duration,
}

impl Pace {
    /// The pace for these periods; the other values follow from them.
    pub(crate) fn of(period: Span, full_period: Span) -> Self {
        Self { rule: pace::Pace::of(period, full_period), within: Duration::from_secs(180) }
    }
}

/// Lists until no roster receives the listings any more, or `stop` resolves. A listing under way is then abandoned,
/// because it only reads.
pub(crate) async fn poll<R: Reader>(
    mut reader: R,
    listeners: Vec<Listener>,
    pace: Pace,
    kick: Arc<Notify>,
    stop: impl Future<Output = ()>,
) {
    let start = Instant::now();
    let posts: Vec<Post> = listeners.into_iter().map(Post::to).collect();
    let delivering = join_all(posts.iter().map(|post| post.deliver(&kick)));
    // The rule's clock starts with the poller. It is monotonic, and pauses where the clock of the runtime does.
    let now = || Time::default() + took(start);
    let polling = async {
        let mut pacer = Pacer::new(pace.rule, now());
        loop {
            let begun = Instant::now();
            let now_full = pacer.begin(now());
            let listed = match timeout(pace.within, reader.list(now_full)).await {
                Ok(listed) => listed,
                Err(_) => Err(took_too_long(reader.name(), pace.within)),
            };
            let fact = match listed {
                Ok(snapshot) => {
                    pacer.listed(now(), snapshot.scope == Scope::Full);
                    CloudFact::Snapshot { snapshot: Arc::new(snapshot), took: took(begun) }
                }
                Err(error) => {
                    let wait = wait_after(&error, pacer.backoff(), pace.rule);
                    pacer.failed(now(), wait);
                    let (failures, next_try_s) = (pacer.failures(), wait.ms / 1000);
                    tracing::warn!(cloud = reader.name(), failures, next_try_s, "{error}");
                    CloudFact::Failed(error)
                }
            };
            for post in &posts {
                post.put(begun, fact.clone());
            }
            loop {
                tokio::select! {
                    () = sleep_until(start + Duration::from(pacer.due().since(Time::default()))) => break,
                    () = kick.notified() => pacer.want_full(now()),
                }
            }
        }
    };
    tokio::select! {
        () = polling => {}
        // No roster receives the listings any more.
        _ = delivering => {}
        () = stop => {}
    }
}

/// The wait, spread by a tenth to either side, and never shorter than the service asked for.
fn wait_after(error: &ReadError, backoff: Span, rule: pace::Pace) -> Span {
    let spread = Duration::from(backoff).mul_f64(0.9 + fastrand::f64() * 0.2);
    Span::from(spread).max(error.retry_after.unwrap_or_default()).min(rule.backoff_max.max(RETRY_AFTER_MAX))
}

/// The poller asks again after this time, even if the service asked for a longer wait.
const RETRY_AFTER_MAX: Span = Span::from_min(10);

fn took_too_long(name: &str, within: Duration) -> ReadError {
    let text = format!(
        "listing cloud {name} took longer than {} s and was given up. Nothing is judged from it",
        within.as_secs()
    );
    ReadError { kind: ReadErrorKind::TimedOut, text: Arc::from(text), retry_after: None }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use reveille_core::event::Event;
    use tokio::sync::mpsc;

    use super::*;

    /// Answers from a script, takes `takes` for each answer, and records when and how it was asked.
    struct Scripted {
        answers: VecDeque<Result<CloudSnapshot, ReadError>>,
        takes: Duration,
        asked: Arc<Mutex<Vec<(u64, bool)>>>,
        start: Instant,
    }

    impl Reader for Scripted {
        async fn list(&mut self, now_full: bool) -> Result<CloudSnapshot, ReadError> {
            let at = self.start.elapsed().as_secs();
            self.asked.lock().unwrap().push((at, now_full));
            tokio::time::sleep(self.takes).await;
            self.answers.pop_front().unwrap_or_else(|| Ok(CloudSnapshot::default()))
        }

        fn name(&self) -> &str {
            "scripted"
        }
    }

    fn pace() -> Pace {
        let pace = Pace::of(Span::from_s(30), Span::from_min(10));
        Pace { rule: pace::Pace { backoff_min: Span::from_s(10), ..pace.rule }, ..pace }
    }

    fn refused(retry_after: Option<Span>) -> Result<CloudSnapshot, ReadError> {
        Err(ReadError { kind: ReadErrorKind::Unavailable, text: Arc::from("refused"), retry_after })
    }

    /// Runs the poller for this long and returns when it listed.
    async fn asked_at(
        answers: Vec<Result<CloudSnapshot, ReadError>>,
        takes: Duration,
        span: Duration,
        kicks: &[u64],
    ) -> Vec<(u64, bool)> {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let start = Instant::now();
        let reader = Scripted { answers: answers.into(), takes, asked: asked.clone(), start };
        let (events, mut inbox) = mpsc::channel(64);
        let listeners = vec![Listener { cloud: "os".into(), events }];
        let kick = Arc::new(Notify::new());
        let kicking = {
            let (kick, kicks) = (kick.clone(), kicks.to_vec());
            async move {
                for at in kicks {
                    sleep_until(start + Duration::from_secs(at)).await;
                    kick.notify_one();
                }
                std::future::pending::<()>().await
            }
        };
        let drained = async { while inbox.recv().await.is_some() {} };
        tokio::select! {
            () = poll(reader, listeners, pace(), kick, tokio::time::sleep(span)) => {}
            () = kicking => {}
            () = drained => {}
        }
        asked.lock().unwrap().clone()
    }

    #[tokio::test(start_paused = true)]
    async fn lists_once_a_period_and_in_full_once_a_full_period() {
        let asked = asked_at(vec![], Duration::from_secs(1), Duration::from_secs(70), &[]).await;
        assert_eq!(asked.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 30, 60]);
        assert_eq!(asked[0], (0, true), "the first listing is a full one");
    }

    #[tokio::test(start_paused = true)]
    async fn listing_is_shared_by_rosters_under_their_own_cloud_names() {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let reader = Scripted {
            answers: VecDeque::new(),
            takes: Duration::ZERO,
            asked: asked.clone(),
            start: Instant::now(),
        };
        let (one, mut first) = mpsc::channel(8);
        let (two, mut second) = mpsc::channel(8);
        let listeners = vec![
            Listener { cloud: "os".into(), events: one },
            Listener { cloud: "elsewhere".into(), events: two },
        ];
        poll(reader, listeners, pace(), Arc::new(Notify::new()), tokio::time::sleep(Duration::from_secs(5)))
            .await;
        let heard = |event: Option<Event>| match event {
            Some(Event::Cloud { cloud, fact: CloudFact::Snapshot { snapshot, .. } }) => {
                (cloud, Arc::as_ptr(&snapshot))
            }
            other => panic!("no snapshot: {other:?}"),
        };
        let (first, second) = (heard(first.recv().await), heard(second.recv().await));
        assert_eq!((first.0.as_str(), second.0.as_str()), ("os", "elsewhere"));
        assert_eq!(first.1, second.1, "the same bytes");
        assert_eq!(asked.lock().unwrap().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_roster_that_takes_nothing_stops_no_listing_of_the_others() {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let start = Instant::now();
        let reader =
            Scripted { answers: VecDeque::new(), takes: Duration::ZERO, asked: asked.clone(), start };
        let (hangs, _full) = mpsc::channel(1);
        hangs.try_send(Event::Tick).unwrap();
        let (well, mut inbox) = mpsc::channel(64);
        let listeners = [hangs, well].map(|events| Listener { cloud: "os".into(), events });
        let stop = tokio::time::sleep(Duration::from_secs(100));
        poll(reader, listeners.into(), pace(), Arc::new(Notify::new()), stop).await;
        assert_eq!(asked.lock().unwrap().len(), 4);
        let told = std::iter::from_fn(|| inbox.try_recv().ok()).count();
        assert_eq!(told, 4, "each listing reached the other");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_listing_never_overlaps_itself() {
        let asked = asked_at(vec![], Duration::from_secs(45), Duration::from_secs(100), &[]).await;
        assert_eq!(asked.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 45, 90]);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_wait_longer_each_time_and_as_long_as_asked() {
        let answers = vec![refused(None), refused(None), refused(Some(Span::from_s(300)))];
        let asked = asked_at(answers, Duration::ZERO, Duration::from_secs(400), &[1, 100, 200]).await;
        let at: Vec<u64> = asked.iter().map(|(at, _)| *at).collect();
        assert!((9..=11).contains(&at[1]), "{at:?}");
        assert!((at[1] + 18..=at[1] + 22).contains(&at[2]), "{at:?}");
        assert!(at[3] >= at[2] + 300, "Retry-After is honoured for every trigger: {at:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn kick_takes_full_listings_one_a_period_at_most() {
        let changes = || Ok(CloudSnapshot { scope: Scope::Changes, ..CloudSnapshot::default() });
        let full = || Ok(CloudSnapshot::default());
        let answers = vec![full(), changes(), full(), changes()];
        let asked = asked_at(answers, Duration::ZERO, Duration::from_secs(70), &[31, 35]).await;
        assert_eq!(asked, [(0, true), (30, false), (33, true), (63, true)], "the second kick waits");
    }

    #[tokio::test(start_paused = true)]
    async fn a_listing_that_never_ends_is_given_up() {
        let span = Duration::from_secs(200);
        let asked = asked_at(vec![], Duration::from_secs(10_000), span, &[]).await;
        assert_eq!(asked.len(), 2, "{asked:?}");
    }
}
