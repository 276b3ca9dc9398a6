//! The kinds of clouds that there are: each stands here with one line of wiring, and nothing else of the program knows one.
//!
//! ```text
//!  roster: CloudRef ─▶ connect ─▶ Project: looked at, changed            one `match` over kinds, here
//!                                   └─▶ lister(wants) ─▶ Listing: listed over and over
//! ```
//!
//! [`Project`] is what a cloud must answer; an adapter's crate answers it in the core's words. Two rosters whose [`CloudRef`]s
//! are equal share one connection and one listing. Nothing here retries or judges. How to add a kind: docs/adding-a-cloud.md.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use reveille_core::effect::{Call, Look, Outcome, ReadError};
use reveille_core::event::{Answer, CloudSnapshot};
use reveille_core::model::id::CloudName;
use reveille_core::model::instance::Instance;
use reveille_core::model::roster::Roster;
use reveille_wire::roster::CloudRef;

mod ec2;
mod openstack;

/// Whose machines are wanted: each roster with its own name for the cloud.
pub(crate) type Wants = Arc<[(Roster, CloudName)]>;

/// Those that carry none of the wanted marks.
pub(crate) type Unwanted = Vec<Arc<Instance>>;

/// One project of a cloud, connected.
pub(crate) trait Project: Send + Sync {
    /// Reads one thing afresh.
    fn look(&self, look: Look) -> BoxFuture<'static, Result<Answer, ReadError>>;
    /// Makes one change.
    fn perform(&self, call: Call) -> BoxFuture<'static, Outcome>;
    /// What lists it from now on.
    fn lister(&self, wants: &Wants) -> Box<dyn Listing>;
    /// What must be known about the connection, if anything: that nobody checks whom we talk to.
    fn warning(&self) -> Option<String>;
}

/// A connection as it is handed around.
pub(crate) type Connected = Arc<dyn Project>;

/// Something that reads a whole project again and again, and may keep what spares it work.
pub(crate) trait Listing: Send {
    /// Reads everything, or (when that is safe) what changed.
    fn list(&mut self, now_full: bool) -> BoxFuture<'_, Result<CloudSnapshot, ReadError>>;
    /// Reads everything, also those that are nobody's of ours, as far as this kind of cloud can.
    fn list_with_strangers(&mut self) -> BoxFuture<'_, Result<(CloudSnapshot, Unwanted), ReadError>>;
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) struct Unconnected {
    /// In the adapter's words.
    pub(crate) error: ReadError,
    /// Trying again cannot help: what is configured is wrong.
    pub(crate) hopeless: bool,
}

/// What people call this cloud in messages: its entry, its region.
pub(crate) fn entry(at: &CloudRef) -> Arc<str> {
    match at {
        CloudRef::OpenStack { cloud, .. } => Arc::from(cloud.as_str()),
        CloudRef::Ec2 { region, cluster, .. } => Arc::from(format!("ec2 {region} ({cluster})")),
    }
}

/// Logs in. One line for each kind of cloud.
pub(crate) fn connect(name: CloudName, at: &CloudRef) -> BoxFuture<'static, Result<Connected, Unconnected>> {
    match at.clone() {
        CloudRef::OpenStack { cloud, clouds_file } => openstack::connect(name, cloud, clouds_file).boxed(),
        CloudRef::Ec2 { region, profile, endpoint, cluster } => {
            ec2::connect(name, region, profile, endpoint, cluster).boxed()
        }
    }
}
