//! Which machine this is, and whether a Node is its own: by what the hardware and the installation say, never by a name.
//!
//! A Node says of its machine what the kubelet read there. The system's UUID comes first, because a cloned disk takes its
//! `machine-id` along; firmware writes the UUID's first three groups in either byte order (SMBIOS 2.6), and some leave the
//! dashes out, so both spellings are compared.

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

/// Whose a Node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// This machine's.
    Own,
    /// Another's.
    Another,
    /// It says nothing that can be compared.
    CannotTell,
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

    /// Whose the Node is that says this of its machine.
    pub fn whose(&self, node: &NodeInfo) -> Whose {
        let same = |own: &Option<String>, theirs: &str, equal: fn(&str, &str) -> bool| {
            let own = own.as_deref().filter(|own| is_telling(own));
            own.filter(|_| is_telling(theirs)).map(|own| equal(own, theirs))
        };
        let by_uuid = same(&self.system_uuid, &node.system_uuid, same_uuid);
        let by_machine = same(&self.machine_id, &node.machine_id, |own, theirs| plain(own) == plain(theirs));
        match by_uuid.or(by_machine) {
            Some(true) => Whose::Own,
            Some(false) => Whose::Another,
            None => Whose::CannotTell,
        }
    }
}

/// A value that firmware leaves everywhere tells nobody apart.
fn is_telling(text: &str) -> bool {
    let plain = plain(text);
    plain.len() == 32 && !plain.bytes().all(|byte| byte == plain.as_bytes()[0])
}

fn plain(text: &str) -> String {
    text.chars().filter(char::is_ascii_hexdigit).map(|digit| digit.to_ascii_lowercase()).collect()
}

fn same_uuid(own: &str, theirs: &str) -> bool {
    let (own, theirs) = (plain(own), plain(theirs));
    own == theirs || swapped(&own) == theirs
}

/// The first three groups in the other byte order.
fn swapped(plain: &str) -> String {
    let group = |from: usize, to: usize| -> String {
        (from..to).step_by(2).rev().filter_map(|place| plain.get(place..place + 2)).collect()
    };
    format!("{}{}{}{}", group(0, 8), group(8, 12), group(12, 16), plain.get(16..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "33221100-5544-7766-8899-aabbccddeeff";
    const MACHINE: &str = "0123456789abcdef0123456789abcdef";

    fn own(machine_id: &str, system_uuid: &str) -> Identity {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Identity { machine_id: some(machine_id), system_uuid: some(system_uuid), ..Identity::default() }
    }

    fn node(machine_id: &str, system_uuid: &str) -> NodeInfo {
        NodeInfo { machine_id: machine_id.into(), system_uuid: system_uuid.into(), ..NodeInfo::default() }
    }

    #[test]
    fn a_node_is_known_by_its_system_and_then_by_its_installation() {
        let other = "ffeeddcc-bbaa-9988-7766-554433221100";
        let swapped = "00112233-4455-6677-8899-AABBCCDDEEFF";
        let undashed = UUID.replace('-', "");
        for (own_machine, own_uuid, theirs, their_uuid, wanted) in [
            (MACHINE, UUID, MACHINE, UUID, Whose::Own),
            // A new installation on the same machine.
            (MACHINE, UUID, "fedcba9876543210fedcba9876543210", UUID, Whose::Own),
            (MACHINE, UUID, MACHINE, swapped, Whose::Own),
            (MACHINE, UUID, MACHINE, &undashed, Whose::Own),
            // A clone of the disk.
            (MACHINE, UUID, MACHINE, other, Whose::Another),
            // Somebody who is not root cannot read the UUID.
            (MACHINE, "", MACHINE, other, Whose::Own),
            (MACHINE, "", "fedcba9876543210fedcba9876543210", UUID, Whose::Another),
            (MACHINE, UUID, "", "", Whose::CannotTell),
            ("", UUID, MACHINE, "", Whose::CannotTell),
            // Firmware that nobody filled in.
            (MACHINE, "00000000-0000-0000-0000-000000000000", MACHINE, other, Whose::Own),
        ] {
            let found = own(own_machine, own_uuid).whose(&node(theirs, their_uuid));
            assert_eq!(found, wanted, "{own_machine} {own_uuid} against {theirs} {their_uuid}");
        }
    }
}
