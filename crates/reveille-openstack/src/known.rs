//! What the last listing handed over, by id.
//!
//! ```text
//!  page ─▶ object ─▶ Known: the same as before? ─ yes ─▶ the old Arc, and what was read is dropped
//!                                               └ no ──▶ a new Arc, with the texts of the old one that did not change
//! ```
//!
//! Objects are compared while their page is read, and not when the listing is whole: a listing of a fleet that did not change
//! then never lies in memory beside what is known of it. Nothing is taken in here before the whole listing has counted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ipnet::IpNet;
use reveille_core::model::id::{InstanceId, PortId};
use reveille_core::model::instance::{Instance, InstanceState, Port};

/// Instances that are ours, and the ports of all instances, as of the last listing that was handed over.
#[derive(Debug, Default)]
pub(crate) struct Known {
    instances: BTreeMap<InstanceId, Arc<Instance>>,
    ports: BTreeMap<PortId, Arc<Port>>,
    in_use: Arc<BTreeSet<IpNet>>,
}

impl Known {
    /// What was read, as the object that is known when nothing of it differs.
    pub(crate) fn instance(&self, mut read: Instance) -> Arc<Instance> {
        let Some(old) = self.instances.get(&read.id) else { return Arc::new(read) };
        if is_partial(&read) {
            read.name = old.name.clone();
            read.marks = old.marks.clone();
        }
        if **old == read {
            return old.clone();
        }
        read.share_texts_of(old);
        Arc::new(read)
    }

    /// Likewise for a port.
    pub(crate) fn port(&self, mut read: Port) -> Arc<Port> {
        let Some(old) = self.ports.get(&read.id) else { return Arc::new(read) };
        if **old == read {
            return old.clone();
        }
        read.share_texts_of(old);
        Arc::new(read)
    }

    /// The id as the instance itself has it, so that its text is there once.
    pub(crate) fn id(&self, id: InstanceId) -> InstanceId {
        self.instances.get(&id).map_or(id, |known| known.id.clone())
    }

    /// It was ours in the last listing.
    pub(crate) fn holds(&self, id: &InstanceId) -> bool {
        self.instances.contains_key(id)
    }

    /// A listing counts: these are ours. What it does not name stays known only where it named changes alone.
    pub(crate) fn take_instances(&mut self, ours: &[Arc<Instance>], keep_unnamed: bool) {
        if !keep_unnamed {
            self.instances =
                ours.iter().filter(|one| is_here(one)).map(|one| (one.id.clone(), one.clone())).collect();
            return;
        }
        for one in ours {
            if is_here(one) {
                self.instances.insert(one.id.clone(), one.clone());
            } else {
                self.instances.remove(&one.id);
            }
        }
    }

    /// A listing counts: this is in use beside the ports of instances. The known set, when nothing of it differs.
    pub(crate) fn in_use(&mut self, read: BTreeSet<IpNet>) -> Arc<BTreeSet<IpNet>> {
        if *self.in_use != read {
            self.in_use = Arc::new(read);
        }
        self.in_use.clone()
    }

    /// A listing counts: these are all ports.
    pub(crate) fn take_ports<'a>(&mut self, all: impl Iterator<Item = &'a Arc<Port>>) {
        self.ports = all.map(|port| (port.id.clone(), port.clone())).collect();
    }
}

fn is_here(instance: &Instance) -> bool {
    instance.state != InstanceState::Gone
}

/// A record of a cell that is down, or one that could not be read. Such a record names the machine without its details, so the
/// marks of the last full read stay. Its state is "alive, unknown", on which the controller never acts.
fn is_partial(instance: &Instance) -> bool {
    instance.state == InstanceState::Other && instance.marks.is_empty() && instance.name.as_str().is_empty()
}
