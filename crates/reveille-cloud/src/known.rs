//! What the last listing handed over, by id.
//!
//! ```text
//!  page ─▶ object ─▶ Known: the same as before? ─ yes ─▶ the old Arc, and what was read is dropped
//!                                               └ no ──▶ a new Arc, with the texts of the old one that did not change
//! ```
//!
//! An unchanged fleet costs no memory and compares by address. Objects are compared while their page is read, and not when the
//! listing is whole: a listing of a fleet that did not change then never lies in memory beside what is known of it. Nothing is
//! taken in here before the whole listing has counted; which objects count is the adapter's to say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ipnet::IpNet;
use reveille_core::model::id::{InstanceId, PortId};
use reveille_core::model::instance::{Instance, Port};

/// Instances, ports and further addresses, as of the last listing that was handed over.
#[derive(Debug, Default)]
pub struct Known {
    instances: BTreeMap<InstanceId, Arc<Instance>>,
    ports: BTreeMap<PortId, Arc<Port>>,
    in_use: Arc<BTreeSet<IpNet>>,
}

impl Known {
    /// The instance of this id as the last listing had it.
    pub fn last(&self, id: &InstanceId) -> Option<&Arc<Instance>> {
        self.instances.get(id)
    }

    /// What was read, as the object that is known when nothing of it differs.
    pub fn instance(&self, mut read: Instance) -> Arc<Instance> {
        let Some(old) = self.instances.get(&read.id) else { return Arc::new(read) };
        if **old == read {
            return old.clone();
        }
        read.share_texts_of(old);
        Arc::new(read)
    }

    /// Likewise for a port.
    pub fn port(&self, mut read: Port) -> Arc<Port> {
        let Some(old) = self.ports.get(&read.id) else { return Arc::new(read) };
        if **old == read {
            return old.clone();
        }
        read.share_texts_of(old);
        Arc::new(read)
    }

    /// The id as the instance itself has it, so that its text is there once.
    pub fn id(&self, id: InstanceId) -> InstanceId {
        self.instances.get(&id).map_or(id, |known| known.id.clone())
    }

    /// A full listing counts: these are all instances.
    pub fn take_instances<'a>(&mut self, all: impl Iterator<Item = &'a Arc<Instance>>) {
        self.instances = all.map(|one| (one.id.clone(), one.clone())).collect();
    }

    /// A listing of changes counts: these are new or other than before, those of the second list are gone.
    pub fn take_changes<'a>(
        &mut self,
        changed: impl Iterator<Item = &'a Arc<Instance>>,
        gone: impl Iterator<Item = &'a Arc<Instance>>,
    ) {
        self.instances.extend(changed.map(|one| (one.id.clone(), one.clone())));
        for one in gone {
            self.instances.remove(&one.id);
        }
    }

    /// A listing counts: these are all ports.
    pub fn take_ports<'a>(&mut self, all: impl Iterator<Item = &'a Arc<Port>>) {
        self.ports = all.map(|port| (port.id.clone(), port.clone())).collect();
    }

    /// A listing counts: this is in use beside the ports of instances. The known set, when nothing of it differs.
    pub fn in_use(&mut self, read: BTreeSet<IpNet>) -> Arc<BTreeSet<IpNet>> {
        if *self.in_use != read {
            self.in_use = Arc::new(read);
        }
        self.in_use.clone()
    }
}
