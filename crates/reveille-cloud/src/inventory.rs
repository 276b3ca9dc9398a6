//! All objects of a cloud project that Reveille knows, in types that fit every provider.
//!
//! It is read once, without a filter, for `init`, which does not know yet which marks matter; a lister asks for what rosters
//! want, in every cycle. Names and marks are as they were found: nothing here says who owns an object. What a provider does not
//! have is left empty.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reveille_core::model::id::{GroupId, InstanceId, NetworkId, RouterId};
use reveille_core::model::instance::{Instance, Mark, Port};
use reveille_core::model::network::{Router, SecurityGroup};

/// The content of a project.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    /// Every instance, of all owners; also those that have ended and are still listed.
    pub instances: BTreeMap<InstanceId, Arc<Instance>>,
    /// The ports of all instances.
    pub ports: Vec<(InstanceId, Arc<Port>)>,
    /// The groups that could be listed.
    pub groups: BTreeMap<GroupId, Arc<SecurityGroup>>,
    /// Every router of the project.
    pub routers: Vec<NamedRouter>,
    /// The networks that routers are attached to.
    pub legs: Vec<RouterLeg>,
    /// For a network that is part of a larger one, the larger one: the VPC of a subnet.
    pub within: BTreeMap<NetworkId, Arc<str>>,
    /// Auto Scaling groups and the like: they create and replace machines.
    pub keepers: Vec<Keeper>,
}

/// A router with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRouter {
    /// Its name, which proves nothing.
    pub name: Arc<str>,
    /// Its id and its routes. How many it may hold need not be asked for.
    pub router: Arc<Router>,
}

/// A router is attached to a network.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RouterLeg {
    /// The router.
    pub router: RouterId,
    /// The network.
    pub network: NetworkId,
}

/// An Auto Scaling group or the like, which creates and replaces machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keeper {
    /// Its name.
    pub name: Arc<str>,
    /// The mark by which the cloud itself recognises the group's machines.
    pub mark: Mark,
    /// All marks that the group's next machine will carry.
    pub gives: BTreeSet<Mark>,
    /// The machines of the group.
    pub machines: BTreeSet<InstanceId>,
}
