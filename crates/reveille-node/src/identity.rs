//! Which machine this is, as it reads itself, and whether a Node is another's: by the one rule that the check-up has, too.

use reveille_agent::sameness::{self, Ids};
use reveille_core::model::id::NodeName;

use crate::node_object::NodeInfo;
use crate::root::Root;

/// What tells this machine from others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// `/etc/machine-id`: of the installation.
    pub machine_id: Option<String>,
    /// SMBIOS system UUID; readable by root alone.
    pub system_uuid: Option<String>,
    /// Changes with each boot.
    pub boot_id: Option<String>,
    /// What the host is called.
    pub host_name: Option<String>,
}

impl Identity {
    /// Reads what is there.
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

    /// The name that a kubelet takes when nobody gives it one: the host's, in lower case.
    pub fn node_name(&self) -> Option<NodeName> {
        self.host_name.as_ref().map(|name| NodeName::new(name.to_lowercase()))
    }

    /// The Node that says this of its machine is another machine's. False, too, where nothing could be compared.
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
