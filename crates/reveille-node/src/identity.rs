//! This machine's ids, as it reads them, and whether a Node belongs to another machine: by the same rule as the check-up.

use reveille_agent::sameness::{self, Ids};
use reveille_core::model::id::NodeName;

use crate::node_object::NodeInfo;
use crate::root::Root;

/// The ids that distinguish this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// `/etc/machine-id`: the id of the installation.
    pub machine_id: Option<String>,
    /// The SMBIOS system UUID; only root can read it.
    pub system_uuid: Option<String>,
    /// The boot id, which changes with each boot.
    pub boot_id: Option<String>,
    /// The host name.
    pub host_name: Option<String>,
}

impl Identity {
    /// Reads the ids.
    pub fn read(root: &Root) -> Self {
        let line = |path: &str| {
            let text = root.text(path).ok().flatten()?;
            Some(text.trim().to_owned()).filter(|text| !text.is_empty())
        };
        Self {
            machine_id: line("/etc/machine-id").or_else(|| line("/var/lib/dbus/machine-id")),
            system_uuid: line("/sys/class/dmi/id/product_uuid"),
            boot_id: line("/proc/sys/kernel/random/boot_id"),
            host_name: line("/proc/sys/kernel/hostname"),
        }
    }

    /// The name that a kubelet uses without another setting: the host name, in lower case.
    pub fn node_name(&self) -> Option<NodeName> {
        self.host_name.as_ref().map(|name| NodeName::new(name.to_lowercase()))
    }

    /// True when the ids of this Node belong to another machine. False, too, where no ids could be compared.
    pub fn is_anothers(&self, node: &NodeInfo) -> bool {
        let own = Ids {
            boot: self.boot_id.as_deref(),
            system_uuid: self.system_uuid.as_deref(),
            machine: self.machine_id.as_deref(),
        };
        let node = Ids {
            boot: Some(&node.boot_id),
            system_uuid: Some(&node.system_uuid),
            machine: Some(&node.machine_id),
        };
        sameness::is_same(own, node) == Some(false)
    }
}
