//! A VPC's route table as the model's router.
//!
//! Routes of EC2 name an interface where the model's name an address: a route is handed over with its interface's own address of
//! that family. A black hole whose interface is gone is handed over as a route with a dead next hop. Routes through gateways are
//! not pod routes: they are left out, and counted against the limit.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use reveille_core::model::id::RouterId;
use reveille_core::model::network::{Route, Router};
use serde::Deserialize;

use crate::interface::WireInterface;
use crate::reply::{Set, Tag, filled};

/// `DescribeRouteTables`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Tables {
    pub(crate) route_table_set: Set<WireTable>,
    pub(crate) next_token: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WireTable {
    pub(crate) route_table_id: String,
    pub(crate) vpc_id: Option<String>,
    #[serde(default)]
    pub(crate) route_set: Set<WireRoute>,
    #[serde(default)]
    pub(crate) association_set: Set<Association>,
    #[serde(default)]
    pub(crate) tag_set: Set<Tag>,
}

/// Where a table counts: in a subnet, or (as the main one) in all those of its network that have none of their own.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Association {
    subnet_id: Option<String>,
    main: Option<bool>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WireRoute {
    destination_cidr_block: Option<String>,
    destination_ipv6_cidr_block: Option<String>,
    network_interface_id: Option<String>,
    instance_id: Option<String>,
    instance_owner_id: Option<String>,
    state: Option<String>,
    origin: Option<String>,
}

/// Where interfaces and instances are reached, by their ids: an interface's first address of each family.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    addresses: BTreeMap<String, (Option<IpAddr>, Option<IpAddr>)>,
}

impl Targets {
    /// An interface, and the instance that it is the first one of.
    pub(crate) fn know(&mut self, interface: &WireInterface, instance: Option<&str>) {
        let own = interface.first_addresses();
        if let Some(instance) = instance {
            self.addresses.entry(instance.to_owned()).or_insert(own);
        }
        self.addresses.insert(interface.network_interface_id.clone(), own);
    }

    fn holds(&self, id: &str) -> bool {
        self.addresses.contains_key(id)
    }

    fn address(&self, id: &str, v4: bool) -> Option<IpAddr> {
        let (four, six) = self.addresses.get(id)?;
        if v4 { *four } else { *six }
    }
}

/// What a route of EC2 is to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Leads {
    /// A route through a machine, or one with a dead next hop.
    To(Route),
    /// Through a gateway, or into another account.
    Elsewhere,
    /// Through an interface that should be there and was not found: two readings that conflict.
    Lost(String),
}

impl WireRoute {
    pub(crate) fn destination(&self) -> Option<IpNet> {
        let text = self.destination_cidr_block.as_deref().or(self.destination_ipv6_cidr_block.as_deref())?;
        text.trim().parse::<IpNet>().ok().map(|net| net.trunc())
    }

    pub(crate) fn is_black_hole(&self) -> bool {
        self.state.as_deref() == Some("blackhole")
    }

    /// The interface or the instance that it names.
    pub(crate) fn target(&self) -> Option<String> {
        filled(self.network_interface_id.clone()).or_else(|| filled(self.instance_id.clone()))
    }

    pub(crate) fn leads(&self, targets: &Targets, account: &str) -> Leads {
        let (Some(target), Some(destination)) = (self.target(), self.destination()) else {
            return Leads::Elsewhere;
        };
        let v4 = matches!(destination, IpNet::V4(_));
        match targets.address(&target, v4) {
            Some(next_hop) => Leads::To(Route { destination, next_hop }),
            None if self.is_black_hole() => Leads::To(Route::nowhere(destination)),
            None if targets.holds(&target) => Leads::Elsewhere,
            None if self.instance_owner_id.as_deref().is_some_and(|owner| owner.trim() != account) => {
                Leads::Elsewhere
            }
            None => Leads::Lost(target),
        }
    }
}

impl WireTable {
    /// The interfaces and instances that its routes name and that are not known.
    pub(crate) fn unknown_targets(&self, targets: &Targets) -> BTreeSet<String> {
        let named = self.route_set.items.iter().filter_map(WireRoute::target);
        named.filter(|target| !targets.holds(target)).collect()
    }

    /// Turns it into the model's words. `routes_max`: how many it may hold, where that is known.
    ///
    /// # Errors
    /// The interface that a route names and that should be there, but was not found.
    pub(crate) fn router(
        &self,
        targets: &Targets,
        account: &str,
        routes_max: Option<u32>,
    ) -> Result<Router, String> {
        let (mut routes, mut elsewhere) = (Vec::new(), 0_u32);
        for route in &self.route_set.items {
            match route.leads(targets, account) {
                Leads::To(route) => routes.push(route),
                // Routes that a gateway propagates have a limit of their own.
                Leads::Elsewhere if route.origin.as_deref() == Some("EnableVgwRoutePropagation") => {}
                Leads::Elsewhere => elsewhere += 1,
                Leads::Lost(target) => return Err(target),
            }
        }
        let limit = routes_max.map(|limit| limit.saturating_sub(elsewhere));
        Ok(Router { id: RouterId::from(self.route_table_id.as_str()), routes, limit })
    }

    /// So many routes are in it that count against its limit.
    pub(crate) fn counted(&self) -> u32 {
        let own = |route: &&WireRoute| route.origin.as_deref() != Some("EnableVgwRoutePropagation");
        u32::try_from(self.route_set.items.iter().filter(own).count()).unwrap_or(u32::MAX)
    }

    /// The route to exactly this network.
    pub(crate) fn route_to(&self, destination: IpNet) -> Option<&WireRoute> {
        self.route_set.items.iter().find(|route| route.destination() == Some(destination))
    }

    /// The subnets that were given this table.
    pub(crate) fn subnets(&self) -> impl Iterator<Item = &str> {
        let given = self.association_set.items.iter().filter_map(|one| one.subnet_id.as_deref());
        given.map(str::trim).filter(|id| !id.is_empty())
    }

    /// It counts wherever its network's subnets were given no table.
    pub(crate) fn is_main(&self) -> bool {
        self.association_set.items.iter().any(|one| one.main == Some(true))
    }

    pub(crate) fn name(&self) -> &str {
        self.tag_set.items.iter().find(|tag| tag.key == "Name").map_or("", |tag| tag.value.as_str())
    }
}
