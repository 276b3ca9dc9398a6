//! The kinds of clouds that there are: each stands here with one line of wiring, and nothing else of the program knows one.
//!
//! ```text
//!  roster: CloudRef ─▶ connect ─▶ Project: looked at, changed            PROVIDERS, a line for each kind, here
//!                                   ├─▶ lister(wants) ─▶ Listing: listed over and over
//!                                   └─▶ survey ─▶ Inventory: everything, once, for `init`
//!  init: what a person says, or the nodes ─▶ open ─▶ Project, and a Site  likewise
//! ```
//!
//! [`Project`] is what a cloud must answer; an adapter's crate answers it in the core's words. Two rosters whose [`CloudRef`]s
//! are equal share one connection and one listing. [`site::Site`] is what `init` has to know beside that. Nothing here retries
//! or judges. How to add a kind: docs/internals/adding-a-cloud.md.

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
    /// Reads everything that it holds, whoever's it is: for whoever does not know yet what to look for.
    fn survey(&self) -> BoxFuture<'static, Result<Inventory, ReadError>>;
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

/// What a kind of cloud says for itself. A place of another kind is none of its.
trait Wiring: Sync {
    /// In a roster's words.
    fn kind(&self) -> Kind;
    /// What people call this cloud in messages: its entry, its region.
    fn entry(&self, at: &CloudRef) -> Option<Arc<str>>;
    /// Logs in.
    fn connect(&self, name: CloudName, at: &CloudRef) -> Option<Connecting>;
    /// Finds the cloud that a person means, and logs in.
    fn open(&self, choice: CloudChoice) -> BoxFuture<'static, Result<Opened, Failure>>;
    /// This node says that it is on one.
    fn has(&self, node: &Node) -> bool;
}

/// A connection on its way.
pub(crate) type Connecting = BoxFuture<'static, Result<Connected, Unconnected>>;

/// The kinds, each by a word. A node is of the first that has it.
const PROVIDERS: [&dyn Wiring; 2] = [&ec2::Ec2, &openstack::OpenStack];

/// What people call this cloud in messages.
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

/// Finds the cloud that a person means, and logs in.
pub(crate) fn open(kind: Kind, choice: &CloudChoice) -> BoxFuture<'static, Result<Opened, Failure>> {
    match PROVIDERS.iter().find(|wired| wired.kind() == kind) {
        Some(wired) => wired.open(choice.clone()),
        None => {
            let failure = Failure::usage(anyhow!("this program has no adapter for that kind of cloud"));
            futures::future::ready(Err(failure)).boxed()
        }
    }
}

/// The kind of cloud that nodes say they are on, by what most of those say that say anything.
pub(crate) fn recognised(nodes: &[Arc<Node>]) -> Option<Kind> {
    let of = |node: &Arc<Node>| PROVIDERS.iter().position(|kind| kind.has(node));
    let mut counts = [0_usize; PROVIDERS.len()];
    for place in nodes.iter().filter_map(of) {
        counts[place] += 1;
    }
    let most = counts.iter().zip(PROVIDERS).max_by_key(|(count, _)| **count)?;
    (*most.0 > 0).then(|| most.1.kind())
}
