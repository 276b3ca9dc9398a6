//! The adapter for a project of a cloud, of any provider, shared by every roster that names the same project.
//!
//! A login may fail at the start and succeed later. So the poller stores the connection here once it has one; until then
//! reads fail as unavailable and calls as "not now". Calls and reads use the same connection as the listings, so that
//! they share one token and one view of the service. `providers` knows which kinds of clouds there are.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use reveille_cloud::provider::{Connected, Listing, Wants};
use reveille_core::effect::{Call, Look, Outcome, ReadError, ReadErrorKind};
use reveille_core::event::{Answer, CloudSnapshot};
use reveille_core::model::id::CloudName;
use reveille_wire::roster::CloudRef;
use reveille_wire::roster::mark_check::MarkCounts;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};

use super::Adapter;
use super::poller::Reader;
use super::providers;

/// The marks of instances that belong to no roster, as last counted; `None` until the first count.
pub(crate) type Strangers = watch::Receiver<Option<Arc<MarkCounts>>>;

/// The adapter.
pub(crate) struct Cloud {
    entry: Arc<str>,
    project: watch::Receiver<Option<Connected>>,
    kick: Arc<Notify>,
}

impl Adapter for Cloud {
    fn look(&self, look: Look) -> BoxFuture<'static, Result<Answer, ReadError>> {
        look_at(self.project.borrow().clone(), &self.entry, look)
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Outcome> {
        match self.project.borrow().clone() {
            Some(project) => project.perform(call),
            None => {
                let text = not_connected(&self.entry).text;
                async move { Outcome::Failed { text, retry_after: None } }.boxed()
            }
        }
    }

    fn list_now(&self) {
        self.kick.notify_one();
    }
}

/// A project for a one-time look: it is connected or not, because no poller connects it later.
pub(crate) struct Once {
    /// Name of the entry, for people.
    pub(crate) entry: Arc<str>,
    /// The connection, if there is one.
    pub(crate) project: Option<Connected>,
}

impl Adapter for Once {
    fn look(&self, look: Look) -> BoxFuture<'static, Result<Answer, ReadError>> {
        look_at(self.project.clone(), &self.entry, look)
    }

    fn call(&self, _: Call) -> BoxFuture<'static, Outcome> {
        let text = Arc::from("this is a look: nothing is changed");
        async move { Outcome::Refused { text } }.boxed()
    }

    fn list_now(&self) {}
}

fn look_at(
    project: Option<Connected>,
    entry: &str,
    look: Look,
) -> BoxFuture<'static, Result<Answer, ReadError>> {
    match project {
        Some(project) => project.look(look),
        None => {
            let error = not_connected(entry);
            async move { Err(error) }.boxed()
        }
    }
}

fn not_connected(entry: &str) -> ReadError {
    let text = format!("not logged in to {entry}; the next reading tries again");
    ReadError { kind: ReadErrorKind::Unavailable, text: Arc::from(text), retry_after: None }
}

/// How often the poller counts all instances of the project, also those of other owners. Marks seldom change.
const COUNT_PERIOD: Duration = Duration::from_secs(3600);
/// The longest that counting may take: a third of the time limit of a listing. If it fails, the listing
/// without it needs the rest.
const COUNT_WITHIN: Duration = Duration::from_secs(60);

/// Lists the project, and logs in first if there is no connection yet.
pub(crate) struct CloudReader {
    name: CloudName,
    at: CloudRef,
    entry: Arc<str>,
    wants: Wants,
    listing: Option<Box<dyn Listing>>,
    project: watch::Sender<Option<Connected>>,
    strangers: watch::Sender<Option<Arc<MarkCounts>>>,
    counted_at: Option<Instant>,
}

impl CloudReader {
    /// A reader, its adapter, and the trigger of an immediate listing. `project` is a connection that exists already.
    pub(crate) fn new(
        name: CloudName,
        at: CloudRef,
        wants: Wants,
        project: Option<Connected>,
    ) -> (Self, Cloud, Arc<Notify>) {
        let entry = providers::entry(&at);
        let listing = project.as_ref().map(|project| project.lister(&wants));
        let (project, receiver) = watch::channel(project);
        let kick = Arc::new(Notify::new());
        let adapter = Cloud { entry: entry.clone(), project: receiver, kick: kick.clone() };
        let strangers = watch::channel(None).0;
        (Self { name, at, entry, wants, listing, project, strangers, counted_at: None }, adapter, kick)
    }

    /// The marks of instances that belong to no roster. They are counted with the first full listing and then hourly,
    /// where the provider allows it.
    pub(crate) fn strangers(&self) -> Strangers {
        self.strangers.subscribe()
    }

    async fn connect(&mut self) -> Result<(), ReadError> {
        let connecting = providers::connect(self.name.clone(), &self.at);
        let project = connecting.await.map_err(|unconnected| unconnected.error)?;
        self.listing = Some(project.lister(&self.wants));
        self.project.send_replace(Some(project));
        Ok(())
    }
}

impl Reader for CloudReader {
    async fn list(&mut self, now_full: bool) -> Result<CloudSnapshot, ReadError> {
        if self.listing.is_none() {
            self.connect().await?;
        }
        let Some(listing) = &mut self.listing else { return Err(not_connected(&self.entry)) };
        if !now_full || self.counted_at.is_some_and(|at| at.elapsed() < COUNT_PERIOD) {
            return listing.list(now_full).await;
        }
        // The time is stored whether or not the count succeeds: a project that is too large to be counted must still be watched.
        self.counted_at = Some(Instant::now());
        let why = match timeout(COUNT_WITHIN, listing.list_with_strangers()).await {
            Ok(Ok((snapshot, strangers))) => {
                // The count is published before the snapshot, so that the receiver of the snapshot can compare it with the count.
                self.strangers.send_replace(Some(Arc::new(MarkCounts::of(&strangers))));
                return Ok(snapshot);
            }
            Ok(Err(error)) if error.retry_after.is_some() => return Err(error),
            Ok(Err(error)) => error.text,
            Err(_) => Arc::from(format!("not read within {} s", COUNT_WITHIN.as_secs())),
        };
        tracing::warn!(
            cloud = &*self.entry,
            "cannot count who else is in the project: {why}. It is listed without them, and counted again in an hour"
        );
        listing.list(true).await
    }

    fn name(&self) -> &str {
        &self.entry
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use reveille_cloud::inventory::Inventory;
    use reveille_cloud::provider::{Project, Unwanted};

    /// A project that cannot be counted: the count fails, or never ends. The project records the requests.
    #[derive(Clone, Default)]
    struct Huge {
        fails_with: Option<ReadError>,
        asked: Arc<Mutex<Vec<&'static str>>>,
    }

    impl Project for Huge {
        fn look(&self, _: Look) -> BoxFuture<'static, Result<Answer, ReadError>> {
            futures::future::pending().boxed()
        }

        fn perform(&self, _: Call) -> BoxFuture<'static, Outcome> {
            futures::future::pending().boxed()
        }

        fn lister(&self, _: &Wants) -> Box<dyn Listing> {
            Box::new(self.clone())
        }

        fn survey(&self) -> BoxFuture<'static, Result<Inventory, ReadError>> {
            futures::future::pending().boxed()
        }
    }

    impl Listing for Huge {
        fn list(&mut self, _: bool) -> BoxFuture<'_, Result<CloudSnapshot, ReadError>> {
            self.asked.lock().unwrap().push("ours");
            futures::future::ready(Ok(CloudSnapshot::default())).boxed()
        }

        fn list_with_strangers(&mut self) -> BoxFuture<'_, Result<(CloudSnapshot, Unwanted), ReadError>> {
            self.asked.lock().unwrap().push("everybody");
            match self.fails_with.clone() {
                Some(error) => futures::future::ready(Err(error)).boxed(),
                None => futures::future::pending().boxed(),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_project_that_cannot_be_counted_is_listed_all_the_same() {
        let failed = |retry_after| {
            Some(ReadError { kind: ReadErrorKind::Unavailable, text: "504".into(), retry_after })
        };
        let asked_for_patience = failed(Some(reveille_core::model::time::Span::from_s(9)));
        for (fails_with, listed) in [(failed(None), true), (None, true), (asked_for_patience, false)] {
            let huge = Huge { fails_with, ..Huge::default() };
            let at = CloudRef::OpenStack { cloud: "prod".into(), clouds_file: None };
            let connected: Connected = Arc::new(huge.clone());
            let (mut reader, _, _) = CloudReader::new("os".into(), at, Arc::from([]), Some(connected));
            let asked = || std::mem::take(&mut *huge.asked.lock().unwrap());
            assert_eq!(reader.list(true).await.is_ok(), listed, "{:?}", huge.fails_with);
            assert_eq!(asked()[..], ["everybody", "ours"][..1 + usize::from(listed)]);
            assert!(reader.list(true).await.is_ok());
            assert_eq!(asked(), ["ours"], "not counted again at once");
            tokio::time::advance(COUNT_PERIOD).await;
            drop(reader.list(true).await);
            assert_eq!(asked()[0], "everybody", "and again an hour later");
        }
    }
}
