//! A project of a cloud as a world, of whatever kind, shared by every roster that names the same one.
//!
//! Logging in may fail when we start and succeed later, so the connection is a value that the poller puts here once it
//! has one: until then reads fail as unavailable and calls as "not now". Calls and reads use the same connection as the
//! listings, so that one token and one view of the service serve all. What kinds there are, `kinds` knows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use reveille_core::effect::{Call, Look, Outcome, ReadError, ReadErrorKind};
use reveille_core::event::{Answer, CloudSnapshot};
use reveille_core::model::id::CloudName;
use reveille_wire::roster::CloudRef;
use reveille_wire::roster::look::Crowd;
use tokio::sync::{Notify, watch};

use super::World;
use super::kinds::{self, Connected, Listing, Wants};
use super::poller::Reader;
use crate::driver::caution::Strangers;

/// The world.
pub(crate) struct Cloud {
    entry: Arc<str>,
    project: watch::Receiver<Option<Connected>>,
    kick: Arc<Notify>,
}

impl World for Cloud {
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

/// A project that was connected once, or not: for looking once, where nobody connects later.
pub(crate) struct Once {
    /// Name of the entry, for people.
    pub(crate) entry: Arc<str>,
    /// The connection, if there is one.
    pub(crate) project: Option<Connected>,
}

impl World for Once {
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

/// How often everybody in the project is counted, ours or not. Marks change seldom.
const COUNT_PERIOD: Duration = Duration::from_secs(3600);

/// Lists the project; logs in first when nobody has.
pub(crate) struct CloudReader {
    name: CloudName,
    at: CloudRef,
    entry: Arc<str>,
    wants: Wants,
    listing: Option<Box<dyn Listing>>,
    project: watch::Sender<Option<Connected>>,
    strangers: watch::Sender<Option<Arc<Crowd>>>,
    counted_at: Option<Instant>,
}

impl CloudReader {
    /// A reader, its world, and what makes it list at once. `project` is a connection that is there already.
    pub(crate) fn new(
        name: CloudName,
        at: CloudRef,
        wants: Wants,
        project: Option<Connected>,
    ) -> (Self, Cloud, Arc<Notify>) {
        let entry = kinds::entry(&at);
        let listing = project.as_ref().map(|project| project.lister(&wants));
        let (project, receiver) = watch::channel(project);
        let kick = Arc::new(Notify::new());
        let world = Cloud { entry: entry.clone(), project: receiver, kick: kick.clone() };
        let strangers = watch::channel(None).0;
        (Self { name, at, entry, wants, listing, project, strangers, counted_at: None }, world, kick)
    }

    /// What those carry who are of no roster, counted with the first full listing and then hourly.
    pub(crate) fn strangers(&self) -> Strangers {
        self.strangers.subscribe()
    }

    async fn connect(&mut self) -> Result<&mut Box<dyn Listing>, ReadError> {
        let connecting = kinds::connect(self.name.clone(), &self.at);
        let project = connecting.await.map_err(|unconnected| unconnected.error)?;
        let listing = project.lister(&self.wants);
        self.project.send_replace(Some(project));
        Ok(self.listing.insert(listing))
    }
}

impl Reader for CloudReader {
    async fn list(&mut self, now_full: bool) -> Result<CloudSnapshot, ReadError> {
        let counted = self.counted_at.is_some_and(|at| at.elapsed() < COUNT_PERIOD);
        let listing = match self.listing.take() {
            Some(listing) => self.listing.insert(listing),
            None => self.connect().await?,
        };
        if !now_full || counted {
            return listing.list(now_full).await;
        }
        let (snapshot, strangers) = listing.list_with_strangers().await?;
        // Told before the snapshot is: whoever gets that one can hold it against this.
        self.strangers.send_replace(Some(Arc::new(Crowd::of(&strangers))));
        self.counted_at = Some(Instant::now());
        Ok(snapshot)
    }

    fn name(&self) -> &str {
        &self.entry
    }
}
