//! Machines that a person takes in hand in ways that their clouds and Nodes show little of.
//!
//! ```text
//!  a pause by a machine's name ─▶ the server is renamed (its guest keeps its host name) ─▶ the pause names no machine any more
//!  Kept ─▶ detached: no group, every other tag stays; the group makes another ─▶ ended by that person, or attached again
//!  off, or dead ─▶ taint out-of-service ─▶ the person takes it off and starts the machine
//!  Nova's cache of addresses: empty for a while; the port has them all the time
//! ```
//!
//! Sources: Compute API, "Update server" (the display name changes and the host name does not); EC2 Auto Scaling User Guide,
//! "Detach instances from your Auto Scaling group"; Kubernetes, "Non-graceful node shutdown";
//! bugs.launchpad.net/nova/+bug/1751923.
//! Which process could know of it, the oracle says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reveille_core::model::hosting::GroupPhase;
use reveille_core::model::id::{InstanceId, InstanceName};
use reveille_core::model::instance::{Instance, InstanceState};
use reveille_core::model::time::Span;

use super::{Task, World};

/// By which a person says that a machine is off and has to stay so.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// What people did to machines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hands {
    /// What guests call themselves whose servers are called otherwise by now.
    host_names: BTreeMap<InstanceId, InstanceName>,
    /// Machines that a person took out of their groups.
    detached: BTreeSet<InstanceId>,
    /// Machines that the cloud lists without their addresses.
    unaddressed: BTreeSet<InstanceId>,
    /// A person cordoned its Node, its kubelet could not say so, and no process of ours watched.
    pub(super) cordoned_unseen: BTreeSet<InstanceId>,
}

/// What a person does to a machine, or their cloud tells of it, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hand {
    /// They rename its server; its guest keeps its host name.
    Renamed,
    /// They take it out of its group, which makes another, and attach it again in the end.
    DetachedForAWhile(Span),
    /// The same, and they end it.
    Detached(Span),
    /// They say with the taint `out-of-service` that it is off, and start it in the end.
    OutOfService(Span),
    /// The cloud lists it without its addresses.
    Unaddressed(Span),
}

impl Hand {
    /// The name in scenarios and logs.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Renamed => "renamed",
            Self::DetachedForAWhile(_) | Self::Detached(_) => "detached",
            Self::OutOfService(_) => "out-of-service",
            Self::Unaddressed(_) => "unaddressed",
        }
    }

    pub(super) const fn lasts(&self) -> Option<Span> {
        match self {
            Self::Renamed => None,
            Self::DetachedForAWhile(lasts)
            | Self::Detached(lasts)
            | Self::OutOfService(lasts)
            | Self::Unaddressed(lasts) => Some(*lasts),
        }
    }

    pub(super) fn sentence(&self, name: &str) -> String {
        match self {
            Self::Renamed => format!("a person renames the server of {name}"),
            Self::DetachedForAWhile(lasts) => format!("a person detaches {name} from its group for {lasts}"),
            Self::Detached(lasts) => {
                format!("a person detaches {name} from its group, and ends it after {lasts}")
            }
            Self::OutOfService(lasts) => format!("a person says for {lasts} that {name} is out of service"),
            Self::Unaddressed(lasts) => format!("the cloud lists {name} without its addresses for {lasts}"),
        }
    }
}

impl World {
    pub(super) fn strike_by_hand(&mut self, id: &InstanceId, hand: Hand) {
        match hand {
            Hand::Renamed => self.rename_server(id),
            Hand::DetachedForAWhile(_) | Hand::Detached(_) => self.detach(id),
            Hand::OutOfService(_) => {
                self.write_on(id, |written| written.taints.extend([OUT_OF_SERVICE.to_owned()]));
            }
            Hand::Unaddressed(_) => self.hands.unaddressed.extend([id.clone()]),
        }
    }

    pub(super) fn mend_by_hand(&mut self, id: &InstanceId, hand: Hand) {
        match hand {
            Hand::DetachedForAWhile(_) if self.is_detached(id) => self.attach(id),
            Hand::Detached(_) if self.is_detached(id) => {
                self.delete_instance(id, "erin");
                self.want_one_less(id);
            }
            Hand::OutOfService(_) => self.put_in_service(id),
            Hand::Unaddressed(_) => self.hands.unaddressed.retain(|lacks| lacks != id),
            Hand::Renamed | Hand::DetachedForAWhile(_) | Hand::Detached(_) => {}
        }
    }

    fn rename_server(&mut self, id: &InstanceId) {
        let name = self.name_of(id);
        self.hands.host_names.entry(id.clone()).or_insert_with(|| name.clone());
        self.project.rename(self.now, id, &InstanceName::new(format!("debug-{name}")));
    }

    /// A guest goes by this name, whatever its server is called.
    pub(super) fn is_guests_name(&self, name: &str) -> bool {
        self.hands.host_names.values().any(|known| known.as_str() == name)
    }

    /// What its guest calls itself.
    pub(super) fn host_name_of(&self, id: &InstanceId) -> InstanceName {
        self.hands.host_names.get(id).cloned().unwrap_or_else(|| self.name_of(id))
    }

    fn detach(&mut self, id: &InstanceId) {
        self.hands.detached.insert(id.clone());
        self.change_hosting(id, |hosting| hosting.group = None);
        let pool = self.project.servers.get(id).and_then(|server| server.pool.clone());
        if let Some(kept) = pool.and_then(|pool| self.pools.get_mut(&pool)) {
            kept.size += 1;
            self.plan(Span::from_ms(1), Task::PoolOwner);
        }
    }

    /// The group made another for it.
    fn want_one_less(&mut self, id: &InstanceId) {
        let pool = self.project.servers.get(id).and_then(|server| server.pool.clone());
        if let Some(kept) = pool.and_then(|pool| self.pools.get_mut(&pool)) {
            kept.size = kept.size.saturating_sub(1);
        }
    }

    fn attach(&mut self, id: &InstanceId) {
        self.hands.detached.remove(id);
        let Some(pool) = self.project.servers.get(id).and_then(|server| server.pool.clone()) else { return };
        let group = self.new_hosting(&pool).and_then(|hosting| hosting.group.clone());
        self.change_hosting(id, |hosting| hosting.group = group);
        self.set_phase(id, GroupPhase::Kept, "InService");
    }

    fn put_in_service(&mut self, id: &InstanceId) {
        self.write_on(id, |written| written.taints.retain(|taint| taint != OUT_OF_SERVICE));
        let state = self.project.servers.get(id).map(|server| server.instance.state);
        if state == Some(InstanceState::Stopped) {
            self.project.note(self.now, id, "start", "erin");
            self.run_again(id);
            self.note_let_boot(id);
        }
    }

    /// A person took it out of its group and has it to themselves.
    pub(crate) fn is_detached(&self, id: &InstanceId) -> bool {
        self.hands.detached.contains(id)
    }

    /// A person cordoned its Node, and then deleted it, where neither its kubelet nor a watch of ours could tell, and no cloud
    /// controller says that it deleted the Node.
    pub(crate) fn is_drained_unseen(&self, id: &InstanceId) -> bool {
        let name = self.node_name_of(id);
        // A cluster that shows an old state has the Node still (seed 9510122).
        let old = self.network_faults.old_nodes.iter().flatten();
        let is_shown = old.into_iter().any(|node| node.name == name);
        if !self.hands.cordoned_unseen.contains(id) || !self.is_removed_on_purpose(id) || is_shown {
            return false;
        }
        let said = self.cluster.said_of(self.now, &name);
        // Of the last object of that name.
        let last =
            said.iter().rfind(|event| &*event.reason == "RemovingNode").and_then(|event| event.uid.clone());
        let by_cloud = said.iter().any(|event| &*event.reason == "DeletingNode" && event.uid == last);
        !by_cloud
    }

    /// As the cloud's cache has it.
    pub(super) fn as_cached(&self, mut instance: Arc<Instance>) -> Arc<Instance> {
        if self.hands.unaddressed.contains(&instance.id) {
            Arc::make_mut(&mut instance).addresses = Box::new([]);
        }
        instance
    }

    /// The cloud's cache lacks some addresses.
    pub(super) fn lacks_addresses(&self) -> bool {
        !self.hands.unaddressed.is_empty()
    }
}
