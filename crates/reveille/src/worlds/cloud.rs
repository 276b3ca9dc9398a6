//! A project of an OpenStack cloud as a world, shared by every roster that names the same entry of the same clouds.yaml.
//!
//! Logging in may fail when we start and succeed later, so the connection is a value that the poller puts here once it
//! has one: until then reads fail as unavailable and calls as "not now". Calls and reads use the same connection as the
//! listings, so that one token and one view of the service serve all.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use reveille_core::effect::{Call, Look, Outcome, ReadError, ReadErrorKind};
use reveille_core::event::{Answer, CloudSnapshot};
use reveille_openstack::{CloudConfig, ConnectError, Interest, Lister, Project};
use reveille_wire::roster::look::Crowd;
use tokio::sync::{Notify, watch};

use super::World;
use super::poller::Reader;
use crate::driver::caution::Strangers;

/// The world.
pub(crate) struct Cloud {
    entry: Arc<str>,
    project: watch::Receiver<Option<Project>>,
    kick: Arc<Notify>,
}

impl World for Cloud {
    fn look(&self, look: Look) -> BoxFuture<'static, Result<Answer, ReadError>> {
        let project = self.project.borrow().clone();
        let entry = self.entry.clone();
        async move {
            match project {
                Some(project) => project.look(&look).await,
                None => Err(not_connected(&entry)),
            }
        }
        .boxed()
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Outcome> {
        let project = self.project.borrow().clone();
        let entry = self.entry.clone();
        async move {
            match project {
                Some(project) => project.perform(&call).await,
                None => Outcome::Failed { text: not_connected(&entry).text, retry_after: None },
            }
        }
        .boxed()
    }

    fn list_now(&self) {
        self.kick.notify_one();
    }
}

/// A project that was connected once, or not: for looking once, where nobody connects later.
pub(crate) struct Connected {
    /// Name of the entry, for people.
    pub(crate) entry: Arc<str>,
    /// The connection, if there is one.
    pub(crate) project: Option<Project>,
}

impl World for Connected {
    fn look(&self, look: Look) -> BoxFuture<'static, Result<Answer, ReadError>> {
        let (entry, project) = (self.entry.clone(), self.project.clone());
        async move {
            match project {
                Some(project) => project.look(&look).await,
                None => Err(not_connected(&entry)),
            }
        }
        .boxed()
    }

    fn call(&self, _: Call) -> BoxFuture<'static, Outcome> {
        let text = Arc::from("this is a look: nothing is changed");
        async move { Outcome::Refused { text } }.boxed()
    }

    fn list_now(&self) {}
}

fn not_connected(entry: &str) -> ReadError {
    let text = format!("not logged in to {entry}; the next reading tries again");
    ReadError { kind: ReadErrorKind::Unavailable, text: Arc::from(text), retry_after: None }
}

/// How often everybody in the project is counted, ours or not. Marks change seldom.
const COUNT_PERIOD: Duration = Duration::from_secs(3600);

/// Lists the project; logs in first when nobody has.
pub(crate) struct OpenStackReader {
    config: CloudConfig,
    interest: Interest,
    lister: Option<Lister>,
    project: watch::Sender<Option<Project>>,
    strangers: watch::Sender<Option<Arc<Crowd>>>,
    counted_at: Option<Instant>,
}

impl OpenStackReader {
    /// A reader, its world, and what makes it list at once. `project` is a connection that is there already.
    pub(crate) fn new(
        config: CloudConfig,
        interest: Interest,
        project: Option<Project>,
    ) -> (Self, Cloud, Arc<Notify>) {
        let lister = project.clone().map(|project| Lister::new(project, interest.clone()));
        let (sender, receiver) = watch::channel(project);
        let kick = Arc::new(Notify::new());
        let world = Cloud { entry: Arc::from(config.cloud.as_str()), project: receiver, kick: kick.clone() };
        let strangers = watch::channel(None).0;
        (Self { config, interest, lister, project: sender, strangers, counted_at: None }, world, kick)
    }

    /// What those carry who are of no roster, counted with the first full listing and then hourly.
    pub(crate) fn strangers(&self) -> Strangers {
        self.strangers.subscribe()
    }

    async fn connect(&mut self) -> Result<&mut Lister, ReadError> {
        let project = Project::connect(&self.config).await.map_err(|error| error.as_read_error())?;
        tracing::info!(cloud = %self.config.cloud, project = %project.name(), compute = %project.microversion(), "logged in");
        self.project.send_replace(Some(project.clone()));
        Ok(self.lister.insert(Lister::new(project, self.interest.clone())))
    }
}

impl Reader for OpenStackReader {
    async fn list(&mut self, now_full: bool) -> Result<CloudSnapshot, ReadError> {
        let counted = self.counted_at.is_some_and(|at| at.elapsed() < COUNT_PERIOD);
        let lister = match self.lister.take() {
            Some(lister) => self.lister.insert(lister),
            None => self.connect().await?,
        };
        if !now_full || counted {
            return lister.list(now_full).await;
        }
        let (snapshot, strangers) = lister.list_with_strangers().await?;
        // Told before the snapshot is: whoever gets that one can hold it against this.
        self.strangers.send_replace(Some(Arc::new(Crowd::of(&strangers))));
        self.counted_at = Some(Instant::now());
        Ok(snapshot)
    }

    fn name(&self) -> &str {
        &self.config.cloud
    }
}

/// True when trying again cannot help: the configuration itself is wrong.
pub(crate) const fn is_hopeless(error: &ConnectError) -> bool {
    matches!(error, ConnectError::Config { .. } | ConnectError::TooOld { .. })
}
