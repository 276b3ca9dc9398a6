//! One reading of an account's region: instances with their surroundings, groups and route tables, complete or not at all.
//!
//! ```text
//! instances by tag ─▶ status checks ─┐
//!   (every page)      Auto Scaling  ─┤
//!              spot requests, types ─┼─▶ all whole? ─▶ interfaces of routes ─▶ ours by their own marks ─▶ CloudSnapshot
//!                     groups, rules ─┤   no: ReadError
//!                     route tables  ─┘
//! ```
//!
//! Ports need no request of their own: an instance is listed with its interfaces. Those of strangers are read only where a
//! route leads through one. EC2 does not tell what changed since the last time, so every listing is a full one. What
//! did not change keeps its `Arc`.

use std::collections::BTreeSet;
use std::sync::Arc;

use ipnet::IpNet;
use reveille_cloud::interest::Interest;
use reveille_cloud::known::Known;
use reveille_core::effect::{ReadError, ReadErrorKind};
use reveille_core::event::{CloudSnapshot, Scope};
use reveille_core::model::id::InstanceId;
use reveille_core::model::instance::{Instance, InstanceState, Port};
use reveille_core::model::network::Router;

use crate::account::Account;
use crate::fetch;
use crate::filter::filter;
use crate::hosting::hosted;
use crate::instance::{Surroundings, Tables, WireInstance};
use crate::reply::instance_id;
use crate::table::{Targets, WireTable};

/// Lists one account's region, over and over, and shares what did not change.
#[derive(Debug)]
pub struct Lister {
    account: Account,
    interest: Interest,
    tables: Tables,
    known: Known,
}

/// What a first look at the instances tells about what else must be read.
#[derive(Default)]
struct Leads {
    ids: Vec<String>,
    scaling_groups: BTreeSet<String>,
    /// Instances that a group made, as their tags say.
    of_groups: BTreeSet<String>,
    vpcs: BTreeSet<String>,
    kinds: BTreeSet<String>,
    has_spot: bool,
}

impl Lister {
    /// A lister that has seen nothing yet.
    pub fn new(account: Account, interest: Interest) -> Self {
        Self { account, interest, tables: Tables::default(), known: Known::default() }
    }

    /// Asks for something else from now on.
    pub fn set_interest(&mut self, interest: Interest) {
        self.interest = interest;
    }

    /// The account that is listed.
    pub const fn account(&self) -> &Account {
        &self.account
    }

    /// Reads everything. EC2 has no other kind of listing, so `now_full` changes nothing.
    ///
    /// # Errors
    /// Any part that could not be read completely makes the whole reading void.
    pub async fn list(&mut self, now_full: bool) -> Result<CloudSnapshot, ReadError> {
        let _ = now_full;
        let (account, interest) = (&self.account, &self.interest);
        let found = fetch::instances(account, filter(interest)).await?;
        // The clock of EC2 when the last page of instances was sent: what was made later is on none of them.
        let begun = account.client().answered_at();
        let leads = Leads::of(found.values());
        let spots =
            async { if leads.has_spot { fetch::spots(account).await } else { Ok(Default::default()) } };
        let (statuses, members, spots, disks, groups, tables) = futures::try_join!(
            fetch::statuses(account, &leads.ids),
            fetch::members(account, &leads.scaling_groups, &leads.of_groups),
            spots,
            fetch::disks(account, &leads.kinds),
            fetch::groups(account, &interest.groups, &leads.vpcs),
            fetch::tables(account, Some(&interest.routers)),
        )?;
        let around = Surroundings { statuses, members, spots, disks };
        let tables: Vec<WireTable> = tables.into_values().collect();
        let (targets, strangers, in_use) = targets(account, found.values(), &tables).await?;
        let routers = routers(account, &tables, &targets)?;
        let ports = self.ports(&found.values().collect::<Vec<_>>(), strangers);
        let instances = self.instances(found.into_values(), &around);
        self.account.sighted(instances.iter().map(|one| (&one.id, one.state == InstanceState::Gone)));
        let instances: Vec<Arc<Instance>> =
            instances.into_iter().filter(|instance| self.interest.claims(instance)).collect();
        self.known.take_instances(instances.iter());
        self.known.take_ports(ports.iter().map(|(_, port)| port));
        self.tables.sweep();
        let groups = Some(groups.into_iter().map(Arc::new).collect());
        let in_use = self.known.in_use(in_use);
        Ok(CloudSnapshot { instances, begun, scope: Scope::Full, ports, in_use, groups, routers })
    }

    fn instances(
        &mut self,
        found: impl Iterator<Item = WireInstance>,
        around: &Surroundings,
    ) -> Vec<Arc<Instance>> {
        let (tables, known) = (&mut self.tables, &self.known);
        found.map(|wire| known.instance(hosted(wire, around, tables))).collect()
    }

    /// Ports of all instances that were found, ours or not: the address of a foreign machine is in use.
    fn ports(
        &mut self,
        found: &[&WireInstance],
        strangers: Vec<(InstanceId, Port)>,
    ) -> Vec<(InstanceId, Arc<Port>)> {
        let (texts, known) = (&mut self.tables.texts, &self.known);
        let mut ports: Vec<(InstanceId, Arc<Port>)> = Vec::with_capacity(found.len());
        // What has ended has given its interfaces back.
        for wire in found.iter().filter(|wire| wire.state() != InstanceState::Gone) {
            let id = instance_id(&wire.instance_id);
            for interface in &wire.network_interface_set.items {
                ports.push((id.clone(), known.port(interface.to_port(texts))));
            }
        }
        ports.extend(strangers.into_iter().map(|(id, port)| (id, known.port(port))));
        ports.sort_by(|a, b| (&a.0, &a.1.id).cmp(&(&b.0, &b.1.id)));
        ports.dedup_by(|a, b| a.1.id == b.1.id);
        ports
    }
}

impl Leads {
    fn of<'a>(found: impl Iterator<Item = &'a WireInstance>) -> Self {
        let mut leads = Self::default();
        for wire in found {
            if wire.state() == InstanceState::Gone {
                continue;
            }
            leads.ids.push(wire.instance_id.clone());
            if let Some(group) = wire.group() {
                leads.scaling_groups.insert(group.to_owned());
                leads.of_groups.insert(wire.instance_id.clone());
            }
            leads.vpcs.extend(wire.vpc_id.clone());
            leads.kinds.extend(wire.instance_type.clone());
            leads.has_spot |= wire.is_spot();
        }
        leads
    }
}

/// Where every interface is reached that a route names, the ports of those that were not known before, and the addresses of those
/// that belong to no instance.
pub(crate) async fn targets(
    account: &Account,
    found: impl Iterator<Item = &WireInstance>,
    tables: &[WireTable],
) -> Result<(Targets, Vec<(InstanceId, Port)>, BTreeSet<IpNet>), ReadError> {
    let mut targets = Targets::default();
    for wire in found {
        for interface in &wire.network_interface_set.items {
            targets.know(interface, Some(&wire.instance_id));
        }
    }
    let unknown: BTreeSet<String> = tables.iter().flat_map(|table| table.unknown_targets(&targets)).collect();
    let (mut strangers, mut in_use) = (Vec::new(), BTreeSet::new());
    if unknown.is_empty() {
        return Ok((targets, strangers, in_use));
    }
    let mut texts = reveille_core::model::intern::Texts::default();
    for interface in fetch::interfaces_of_targets(account, &unknown).await? {
        let instance = interface.instance();
        targets.know(&interface, instance.as_ref().map(InstanceId::as_str));
        match instance {
            Some(instance) => strangers.push((instance, interface.to_port(&mut texts))),
            // An interface of a NAT gateway, of a load balancer, or one that waits to be attached again.
            None => in_use.extend(interface.addresses().into_iter().map(IpNet::from)),
        }
    }
    Ok((targets, strangers, in_use))
}

/// The tables as routers; an error when one names an interface that is in no list.
pub(crate) fn routers(
    account: &Account,
    tables: &[WireTable],
    targets: &Targets,
) -> Result<Vec<Arc<Router>>, ReadError> {
    let router = |table: &WireTable| {
        let limit = account.routes_max(&table.route_table_id.as_str().into());
        table.router(targets, account.id(), limit).map(Arc::new).map_err(|target| {
            let reading = account.place().listing("read the route tables");
            let cause = format!("{} leads through {target}, which is in no list", table.route_table_id);
            reading.error(ReadErrorKind::Incomplete, &cause)
        })
    };
    tables.iter().map(router).collect()
}
