//! What the last listing handed over, by id, so that what did not change keeps its `Arc`: an unchanged fleet then costs no
//! memory and compares by address.

use std::collections::BTreeMap;
use std::sync::Arc;

use reveille_core::model::id::{InstanceId, PortId};
use reveille_core::model::instance::{Instance, Port};

/// Instances and ports as of the last listing that was handed over.
#[derive(Debug, Default)]
pub(crate) struct Known {
    instances: BTreeMap<InstanceId, Arc<Instance>>,
    ports: BTreeMap<PortId, Arc<Port>>,
}

impl Known {
    /// What was read, as the object that is known when nothing of it differs.
    pub(crate) fn instance(&self, mut read: Instance) -> Arc<Instance> {
        let Some(old) = self.instances.get(&read.id) else { return Arc::new(read) };
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

    /// A listing counts: this is all there is.
    pub(crate) fn take(&mut self, instances: &[Arc<Instance>], ports: &[(InstanceId, Arc<Port>)]) {
        self.instances = instances.iter().map(|one| (one.id.clone(), one.clone())).collect();
        self.ports = ports.iter().map(|(_, port)| (port.id.clone(), port.clone())).collect();
    }
}
