//! A whole region of an account, unfiltered: for a caller that does not know yet what to look for.
//!
//! ```text
//! instances, with their interfaces ─┐
//! Auto Scaling groups              ─┤ every page, whatever they carry ─▶ all whole? ─▶ Inventory
//! security groups, rules           ─┤                                    no: ReadError
//! route tables                     ─┘
//! ```
//!
//! [`crate::Lister`] asks for what rosters want, in every cycle; a survey asks for everything, once. A survey does not decide who
//! owns an object: it hands over names and marks as it found them. It hands over instances without the results of status checks
//! and spot requests. Subnets and networks have no list of their own: the survey derives them from the instances in them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reveille_cloud::inventory::{Inventory, Keeper, NamedRouter, RouterLeg};
use reveille_core::effect::ReadError;
use reveille_core::model::id::{InstanceId, NetworkId, RouterId};
use reveille_core::model::instance::{InstanceState, Mark, Port};
use reveille_core::model::network::Router;

use crate::account::Account;
use crate::actions::DESCRIBE_GROUPS;
use crate::fetch;
use crate::hosting::hosted;
use crate::instance::{CLUSTER_TAG, SCALING_GROUP_TAG, Surroundings, Tables, WireInstance, cluster_mark};
use crate::list::{routers, targets};
use crate::query_protocol::Request;
use crate::reply::instance_id;
use crate::scaling::{Member, WireGroup};
use crate::table::WireTable;

impl Account {
    /// Reads everything: five requests, and further pages where a list is longer than one.
    ///
    /// # Errors
    /// Any list that could not be read completely makes the whole reading void.
    pub async fn survey(&self) -> Result<Inventory, ReadError> {
        let groups = async {
            let groups = fetch::all_groups(self, Request::new(DESCRIBE_GROUPS)).await?;
            fetch::with_rules(self, groups).await
        };
        let (found, scaling, groups, wires) = futures::try_join!(
            fetch::instances(self, None),
            fetch::scaling_groups(self),
            groups,
            fetch::tables(self, None)
        )?;
        let wires: Vec<WireTable> = wires.into_values().collect();
        let (targets, strangers, _) = targets(self, found.values(), &wires).await?;
        let routers = routers(self, &wires, &targets)?;
        let mut tables = Tables::default();
        let (mut ports, vpcs) = ports(&found, &mut tables);
        ports.extend(strangers.into_iter().map(|(id, port)| (id, Arc::new(port))));
        let (members, keepers) = keepers(scaling);
        let around = Surroundings { members, ..Surroundings::default() };
        let legs = wires.iter().flat_map(|wire| {
            let router = RouterId::from(wire.route_table_id.as_str());
            let subnets = counts_in(wire, &wires, &vpcs).into_iter();
            subnets.map(move |network| RouterLeg { router: router.clone(), network })
        });
        let named =
            |(wire, router): (&WireTable, Arc<Router>)| NamedRouter { name: wire.name().into(), router };
        let instances = found.into_values().map(|wire| Arc::new(hosted(wire, &around, &mut tables)));
        Ok(Inventory {
            instances: instances.map(|one| (one.id.clone(), one)).collect(),
            ports,
            groups: groups.into_iter().map(|group| (group.id.clone(), Arc::new(group))).collect(),
            legs: legs.collect(),
            routers: wires.iter().zip(routers).map(named).collect(),
            within: vpcs,
            keepers,
        })
    }
}

/// An interface and whose it is.
type Attached = (InstanceId, Arc<Port>);

/// The interfaces of those that have not ended, and the network of each subnet that they are in.
fn ports(
    found: &BTreeMap<String, WireInstance>,
    tables: &mut Tables,
) -> (Vec<Attached>, BTreeMap<NetworkId, Arc<str>>) {
    let (mut ports, mut vpcs) = (Vec::new(), BTreeMap::new());
    for wire in found.values().filter(|wire| wire.state() != InstanceState::Gone) {
        for interface in &wire.network_interface_set.items {
            let port = interface.to_port(&mut tables.texts);
            if let Some(vpc) = &wire.vpc_id {
                vpcs.entry(port.network.clone()).or_insert_with(|| Arc::from(vpc.as_str()));
            }
            ports.push((instance_id(&wire.instance_id), Arc::new(port)));
        }
    }
    (ports, vpcs)
}

/// The subnets that this table counts in: those that were given it, and for a main one those that were given none.
fn counts_in(
    table: &WireTable,
    all: &[WireTable],
    vpcs: &BTreeMap<NetworkId, Arc<str>>,
) -> BTreeSet<NetworkId> {
    let mut subnets: BTreeSet<NetworkId> = table.subnets().map(NetworkId::from).collect();
    if table.is_main() {
        let given: BTreeSet<&str> = all.iter().flat_map(WireTable::subnets).collect();
        let of_it = vpcs
            .iter()
            .filter(|(id, vpc)| table.vpc_id.as_deref() == Some(&***vpc) && !given.contains(id.as_str()));
        subnets.extend(of_it.map(|(id, _)| id.clone()));
    }
    subnets
}

/// What groups say of their machines, and the groups themselves.
fn keepers(groups: BTreeMap<String, WireGroup>) -> (BTreeMap<String, Member>, Vec<Keeper>) {
    let (mut members, mut keepers) = (BTreeMap::new(), Vec::new());
    for (name, group) in groups {
        let mark = Mark::Metadata(Arc::from(SCALING_GROUP_TAG), Arc::from(name.as_str()));
        let mut gives = BTreeSet::from([mark.clone()]);
        for tag in group.tags.items.into_iter().filter(|tag| tag.propagate_at_launch) {
            gives.extend(tag.key.strip_prefix(CLUSTER_TAG).map(cluster_mark));
            gives.insert(Mark::Metadata(Arc::from(tag.key), Arc::from(tag.value)));
        }
        let own: Vec<(String, Member)> =
            group.instances.items.into_iter().map(|member| member.of(&name)).collect();
        let machines = own.iter().map(|(id, _)| instance_id(id)).collect();
        members.extend(own);
        keepers.push(Keeper { name: Arc::from(name), mark, gives, machines });
    }
    (members, keepers)
}
