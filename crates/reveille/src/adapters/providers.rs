//! The cloud providers: each has one line of wiring here, and no other module of the program knows one.
//!
//! ```text
//!  roster: CloudRef ─▶ connect ─▶ Project: read and changed              PROVIDERS, a line for each kind, here
//!                                   ├─▶ lister(wants) ─▶ Listing: listed over and over
//!                                   └─▶ survey ─▶ Inventory: everything, once, for `init`
//!  init: what a person says, or the nodes ─▶ open ─▶ Project, and a Site  likewise
//! ```
//!
//! [`Project`] is what a cloud must answer; an adapter's crate answers it in the core's types. Two rosters with equal
//! [`CloudRef`]s share one connection and one listing. [`site::Site`] holds what `init` needs beside that. Nothing here
//! retries or judges. docs/internals/adding-a-cloud.md explains how to add a provider.

use std::sync::Arc;

use anyhow::anyhow;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use reveille_core::effect::{Call, Look, Outcome, ReadError, ReadErrorKind};
use reveille_core::event::{Answer, CloudSnapshot};
use reveille_core::model::id::CloudName;
use reveille_core::model::instance::Instance;
use reveille_core::model::node::Node;
use reveille_core::model::roster::Roster;
use reveille_wire::roster::CloudRef;

use self::inventory::Inventory;
use self::site::Opened;
use crate::cli::failure::Failure;
use crate::cli::init::{CloudChoice, Kind};

mod ec2;
pub(crate) mod inventory;
mod openstack;
pub(crate) mod site;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use self::{ec2::Ec2Site, openstack::OpenStackSite};

/// The machines that the listings are for: each roster with its own name for the cloud.
pub(crate) type Wants = Arc<[(Roster, CloudName)]>;

/// Instances that carry none of the wanted marks.
pub(crate) type Unwanted = Vec<Arc<Instance>>;

/// One project of a cloud, connected.
pub(crate) trait Project: Send + Sync {
    /// Reads one thing again from the API.
    fn look(&self, look: Look) -> BoxFuture<'static, Result<Answer, ReadError>>;
    /// Makes one change.
    fn perform(&self, call: Call) -> BoxFuture<'static, Outcome>;
    /// The object that lists the project from now on.
    fn lister(&self, wants: &Wants) -> Box<dyn Listing>;
    /// Reads the whole project, instances of all owners included, for `init`, which does not know yet which marks matter.
    fn survey(&self) -> BoxFuture<'static, Result<Inventory, ReadError>>;
    /// A risk of the connection that the operator must know, if there is one: that the server's certificate is not verified.
    fn warning(&self) -> Option<String>;
}

/// A shared connection.
pub(crate) type Connected = Arc<dyn Project>;

/// Reads a whole project again and again, and may keep data that saves work.
pub(crate) trait Listing: Send {
    /// Reads the whole project, or (when that is safe) only the changes.
    fn list(&mut self, now_full: bool) -> BoxFuture<'_, Result<CloudSnapshot, ReadError>>;
    /// Reads the whole project, also instances without our marks, as far as this provider can list them.
    fn list_with_strangers(&mut self) -> BoxFuture<'_, Result<(CloudSnapshot, Unwanted), ReadError>>;
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) struct Unconnected {
    /// The error of the adapter.
    pub(crate) error: ReadError,
    /// Another try cannot help, because the configuration is wrong.
    pub(crate) hopeless: bool,
}

/// The interface of one provider. A reference to another provider gives `None`.
trait Wiring: Sync {
    /// The provider, as a roster names it.
    fn kind(&self) -> Kind;
    /// The name of this cloud in messages: its entry in clouds.yaml, its region.
    fn entry(&self, at: &CloudRef) -> Option<Arc<str>>;
    /// Logs in.
    fn connect(&self, name: CloudName, at: &CloudRef) -> Option<Connecting>;
    /// Finds the cloud that the command line means, and logs in.
    fn open(&self, choice: CloudChoice) -> BoxFuture<'static, Result<Opened, Failure>>;
    /// Whether this Node says that it runs on this provider.
    fn has(&self, node: &Node) -> bool;
}

/// A login that is under way.
pub(crate) type Connecting = BoxFuture<'static, Result<Connected, Unconnected>>;

/// All providers. A Node belongs to the first one whose `has` accepts it.
const PROVIDERS: [&dyn Wiring; 2] = [&ec2::Ec2, &openstack::OpenStack];

/// The name of this cloud in messages.
pub(crate) fn entry(at: &CloudRef) -> Arc<str> {
    PROVIDERS
        .iter()
        .find_map(|kind| kind.entry(at))
        .unwrap_or_else(|| Arc::from("a cloud of no kind that is known here"))
}

/// Logs in.
pub(crate) fn connect(name: CloudName, at: &CloudRef) -> Connecting {
    let unwired = || {
        let text =
            "a roster names a kind of cloud that this program has no adapter for; take another version of it";
        let error = ReadError { kind: ReadErrorKind::Malformed, text: Arc::from(text), retry_after: None };
        futures::future::ready(Err(Unconnected { error, hopeless: true })).boxed()
    };
    PROVIDERS.iter().find_map(|kind| kind.connect(name.clone(), at)).unwrap_or_else(unwired)
}

/// Finds the cloud that the command line means, and logs in.
pub(crate) fn open(kind: Kind, choice: &CloudChoice) -> BoxFuture<'static, Result<Opened, Failure>> {
    match PROVIDERS.iter().find(|wired| wired.kind() == kind) {
        Some(wired) => wired.open(choice.clone()),
        None => {
            let failure = Failure::usage(anyhow!("this program has no adapter for that kind of cloud"));
            futures::future::ready(Err(failure)).boxed()
        }
    }
}

/// The provider that the Nodes name: the most frequent one among the Nodes that name any.
pub(crate) fn recognised(nodes: &[Arc<Node>]) -> Option<Kind> {
    let of = |node: &Arc<Node>| PROVIDERS.iter().position(|kind| kind.has(node));
    let mut counts = [0_usize; PROVIDERS.len()];
    for place in nodes.iter().filter_map(of) {
        counts[place] += 1;
    }
    let most = counts.iter().zip(PROVIDERS).max_by_key(|(count, _)| **count)?;
    (*most.0 > 0).then(|| most.1.kind())
}
