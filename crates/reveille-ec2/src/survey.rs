//! A whole region of an account, unfiltered: for whoever does not know yet what to look for.
//!
//! [`crate::Lister`] asks for what rosters want, over and over; this asks for everything, once. Nothing here says whose any of
//! it is: names and marks are handed over as they were found. Instances are handed over without what Auto Scaling, status checks
//! and spot requests say of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use reveille_core::effect::ReadError;
use reveille_core::model::id::InstanceId;
use reveille_core::model::instance::{Instance, Mark, Port};
use reveille_core::model::network::{Router, SecurityGroup};

use crate::account::Account;
use crate::actions::DESCRIBE_GROUPS;
use crate::fetch;
use crate::instance::{CLUSTER_TAG, Surroundings, Tables, instance_id};
use crate::list::{routers, targets};
use crate::query::Request;
use crate::table::WireTable;

/// A route table as people know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTable {
    /// Its name tag; it proves nothing.
    pub name: Arc<str>,
    /// The network (VPC) that it is of.
    pub network: Option<Arc<str>>,
    /// Its id and its routes.
    pub router: Arc<Router>,
}

/// Everything that an account holds in a region of what Reveille knows.
#[derive(Clone, Debug, Default)]
pub struct AccountSurvey {
    /// Every instance, also those that have ended and are still listed.
    pub instances: Vec<Arc<Instance>>,
    /// Every interface of an instance.
    pub ports: Vec<(InstanceId, Arc<Port>)>,
    /// Every security group.
    pub groups: Vec<Arc<SecurityGroup>>,
    /// Every route table.
    pub tables: Vec<NamedTable>,
}

impl AccountSurvey {
    /// The ids of the clusters that any instance is tagged with.
    pub fn clusters(&self) -> BTreeSet<Arc<str>> {
        let marks = self.instances.iter().flat_map(|instance| instance.marks.iter());
        let ids = marks.filter_map(|mark| match mark {
            Mark::Tag(key) => key.strip_prefix(CLUSTER_TAG).map(Arc::from),
            Mark::Metadata(..) => None,
        });
        ids.collect()
    }
}

impl Account {
    /// Reads everything.
    ///
    /// # Errors
    /// Any list that could not be read completely makes the whole reading void.
    pub async fn survey(&self) -> Result<AccountSurvey, ReadError> {
        let groups = async {
            let groups = fetch::all_groups(self, Request::new(DESCRIBE_GROUPS)).await?;
            fetch::with_rules(self, groups).await
        };
        let (found, groups, wires) =
            futures::try_join!(fetch::instances(self, None), groups, fetch::tables(self, None))?;
        let wires: Vec<WireTable> = wires.into_values().collect();
        let (targets, strangers) = targets(self, found.values(), &wires).await?;
        let routers = routers(self, &wires, &targets)?;
        let mut tables = Tables::default();
        let mut ports: Vec<(InstanceId, Arc<Port>)> = Vec::new();
        for wire in found.values() {
            let own = wire.network_interface_set.items.iter();
            ports.extend(own.map(|interface| {
                (instance_id(&wire.instance_id), Arc::new(interface.to_port(&mut tables.texts)))
            }));
        }
        ports.extend(strangers.into_iter().map(|(id, port)| (id, Arc::new(port))));
        let around = Surroundings::default();
        let named = |(wire, router): (&WireTable, Arc<Router>)| NamedTable {
            name: Arc::from(wire.name()),
            network: wire.vpc_id.as_deref().map(Arc::from),
            router,
        };
        Ok(AccountSurvey {
            instances: found
                .into_values()
                .map(|wire| Arc::new(wire.into_instance(&around, &mut tables)))
                .collect(),
            ports,
            groups: groups.into_iter().map(Arc::new).collect(),
            tables: wires.iter().zip(routers).map(named).collect(),
        })
    }
}
