//! Everything that a project of a cloud holds of what Reveille knows, in words that fit every kind.
//!
//! Read once, unfiltered, for whoever does not know yet what to look for. Names and marks are as they were found: nothing here
//! says whose any of it is. What a kind of cloud does not have is left empty.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reveille_core::model::id::{GroupId, InstanceId, NetworkId, RouterId};
use reveille_core::model::instance::{Instance, Mark, Port};
use reveille_core::model::network::{Router, SecurityGroup};

/// What a project holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inventory {
    /// Every instance, whoever's it is.
    pub(crate) instances: BTreeMap<InstanceId, Arc<Instance>>,
    /// Their ports, of all of them.
    pub(crate) ports: Vec<(InstanceId, Arc<Port>)>,
    /// The groups that could be listed.
    pub(crate) groups: BTreeMap<GroupId, Arc<SecurityGroup>>,
    /// Every router of the project.
    pub(crate) routers: Vec<NamedRouter>,
    /// Where routers reach into networks.
    pub(crate) legs: Vec<RouterLeg>,
    /// Of networks that are part of a larger one, that one: the VPC of a subnet.
    pub(crate) within: BTreeMap<NetworkId, Arc<str>>,
    /// Groups of the cloud that make machines and keep them.
    pub(crate) keepers: Vec<Keeper>,
}

/// A router as people know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedRouter {
    /// Its name; it proves nothing.
    pub(crate) name: Arc<str>,
    /// Its id and its routes.
    pub(crate) router: Arc<Router>,
}

/// A router reaches into a network.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RouterLeg {
    /// The router.
    pub(crate) router: RouterId,
    /// The network.
    pub(crate) network: NetworkId,
}

/// A group of the cloud that makes machines and keeps them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Keeper {
    /// Its name.
    pub(crate) name: Arc<str>,
    /// The mark by which the cloud itself tells its machines.
    pub(crate) mark: Mark,
    /// All marks that its next machine will carry.
    pub(crate) gives: BTreeSet<Mark>,
    /// The machines that it has.
    pub(crate) machines: BTreeSet<InstanceId>,
}
