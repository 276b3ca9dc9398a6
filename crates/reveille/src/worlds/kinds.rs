//! The kinds of clouds that there are: each stands here with one line of wiring, and nothing else of the program knows one.
//!
//! ```text
//!  roster: CloudRef ─▶ connect ─▶ Project: looked at, changed            one `match` over kinds, here
//!                                   ├─▶ lister(wants) ─▶ Listing: listed over and over
//!                                   └─▶ survey ─▶ Inventory: everything, once, for `init`
//!  init: what a person says ─▶ open ─▶ Project, and a Site                likewise
//! ```
//!
//! [`Project`] is what a cloud must answer; an adapter's crate answers it in the core's words. Two rosters whose [`CloudRef`]s
//! are equal share one connection and one listing. [`site::Site`] is what `init` has to know beside that. Nothing here retries
//! or judges. How to add a kind: docs/adding-a-cloud.md.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use reveille_core::effect::{Call, Look, Outcome, ReadError};
use reveille_core::event::{Answer, CloudSnapshot};
use reveille_core::model::id::CloudName;
use reveille_core::model::instance::Instance;
use reveille_core::model::node::{Node, Provider};
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

/// Finds the cloud that a person means, and logs in. One line for each kind of cloud.
pub(crate) fn open(kind: Kind, choice: &CloudChoice) -> BoxFuture<'static, Result<Opened, Failure>> {
    match kind {
        Kind::OpenStack => openstack::open(choice.clone()).boxed(),
        Kind::Ec2 => ec2::open(choice.clone()).boxed(),
    }
}

/// The kind of cloud that nodes say they are on, by what most of those say that say anything.
pub(crate) fn recognised(nodes: &[Arc<Node>]) -> Option<Kind> {
    let (mut ec2, mut openstack) = (0_usize, 0_usize);
    for node in nodes {
        match &node.provider {
            Provider::Instance(id) if ec2::is_instance(id) => ec2 += 1,
            Provider::Instance(_) => openstack += 1,
            // The firmware's UUID begins so on EC2, and is the instance's id on OpenStack.
            Provider::Unset => match &node.system_uuid {
                Some(uuid) if uuid.as_str().starts_with("ec2") => ec2 += 1,
                Some(_) => openstack += 1,
                None => {}
            },
            Provider::Unread(_) => {}
        }
    }
    match (ec2, openstack) {
        (0, 0) => None,
        _ if ec2 > openstack => Some(Kind::Ec2),
        _ => Some(Kind::OpenStack),
    }
}
