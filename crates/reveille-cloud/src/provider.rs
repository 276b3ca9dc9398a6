//! A cloud as the program sees it: what an adapter answers, and how it is found and reached.
//!
//! ```text
//!  roster: CloudRef ─▶ Provider::connect ─▶ Project ─┬─▶ look, perform
//!                                                    ├─▶ lister(wants) ─▶ Listing: listed over and over
//!                                                    └─▶ survey ─▶ Inventory: everything, once, for `init`
//!  init: what a person says, or the nodes ─▶ Provider::open ─▶ Project, and a Site (see `site`)
//! ```
//!
//! An adapter implements [`Provider`] for its kind of cloud and [`Project`] for its connection; the program has one list of
//! providers and knows nothing else of any cloud. Nothing here retries or judges.

use std::sync::Arc;

use futures::future::BoxFuture;
use reveille_core::effect::{Call, Look, Outcome, ReadError};
use reveille_core::event::{Answer, CloudSnapshot};
use reveille_core::model::id::CloudName;
use reveille_core::model::instance::Instance;
use reveille_core::model::node::Node;
use reveille_core::model::roster::Roster;
use reveille_wire::roster::CloudRef;

use crate::inventory::Inventory;
use crate::options::{CloudOption, Given};
use crate::site::{OpenError, Site};

/// The machines that the listings are for: each roster with its own name for the cloud.
pub type Wants = Arc<[(Roster, CloudName)]>;

/// Instances that carry none of the wanted marks.
pub type Unwanted = Vec<Arc<Instance>>;

/// One project of a cloud, connected.
pub trait Project: Send + Sync {
    /// Reads one thing again from the API.
    fn look(&self, look: Look) -> BoxFuture<'static, Result<Answer, ReadError>>;
    /// Makes one change.
    fn perform(&self, call: Call) -> BoxFuture<'static, Outcome>;
    /// The object that lists the project from now on.
    fn lister(&self, wants: &Wants) -> Box<dyn Listing>;
    /// Reads the whole project, instances of all owners included, for `init`, which does not know yet which marks matter.
    fn survey(&self) -> BoxFuture<'static, Result<Inventory, ReadError>>;
    /// A risk of the connection that the operator must know, if there is one: that the server's certificate is not verified.
    fn warning(&self) -> Option<String> {
        None
    }
}

/// A shared connection.
pub type Connected = Arc<dyn Project>;

/// Reads a whole project again and again, and may keep data that saves work.
pub trait Listing: Send {
    /// Reads the whole project, or (when that is safe) only the changes.
    fn list(&mut self, now_full: bool) -> BoxFuture<'_, Result<CloudSnapshot, ReadError>>;
    /// Reads the whole project, also instances without our marks, as far as this provider can list them.
    fn list_with_strangers(&mut self) -> BoxFuture<'_, Result<(CloudSnapshot, Unwanted), ReadError>>;
}

/// Why there is no connection.
#[derive(Debug)]
pub struct Unconnected {
    /// The error of the adapter.
    pub error: ReadError,
    /// Another try cannot help, because the configuration is wrong.
    pub hopeless: bool,
}

/// A login that is under way.
pub type Connecting = BoxFuture<'static, Result<Connected, Unconnected>>;

/// A cloud that `init` can survey.
pub struct Opened {
    /// The connection.
    pub project: Connected,
    /// The provider's part of a roster and its words.
    pub site: Box<dyn Site>,
}

/// One kind of cloud. A reference of a roster to another kind gives `None`.
pub trait Provider: Sync {
    /// Its words for the command line.
    fn kind(&self) -> &'static Kind;
    /// The name of this cloud in messages: its entry in clouds.yaml, its region.
    fn entry(&self, at: &CloudRef) -> Option<Arc<str>>;
    /// Logs in.
    fn connect(&self, name: CloudName, at: &CloudRef) -> Option<Connecting>;
    /// Finds the cloud that the command line means, and logs in.
    fn open(&self, given: Given) -> BoxFuture<'static, Result<Opened, OpenError>>;
    /// Whether this Node says that it runs on this kind of cloud.
    fn has(&self, node: &Node) -> bool;
}

/// A kind of cloud on the command line.
#[derive(Debug)]
pub struct Kind {
    /// Its name, as in a roster and for `--kind`: `openstack`.
    pub name: &'static str,
    /// What such a cloud is, for `init --help`.
    pub about: &'static str,
    /// The heading of its options there: `On OpenStack`.
    pub heading: &'static str,
    /// The options of `init` that say which cloud of this kind is meant.
    pub options: &'static [CloudOption],
    /// The command that prints the permissions that Reveille needs there.
    pub rights: RightsCommand,
}

/// A command that prints the permissions that Reveille needs on one kind of cloud.
#[derive(Debug)]
pub struct RightsCommand {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
    /// Examples, after its long help.
    pub examples: &'static str,
    /// Its options.
    pub options: &'static [CloudOption],
    /// The permissions, in the form that the cloud's own tools take.
    pub print: fn(&Given) -> String,
}
