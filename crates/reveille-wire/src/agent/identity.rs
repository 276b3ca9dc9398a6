//! The identity of a machine, and the facts that it reports about itself.
//!
//! An identity consists of what does not change while the machine is the same one: the cloud's instance id, the system's
//! machine id, the firmware's UUID. The boot id changes with each boot and tells two machines with one disk image apart.
//! The key is not here, because the connection proved it. The host name is an attribute, and so is everything else that a
//! person can type.

use serde::{Deserialize, Serialize};

use super::text::{List, Word};

/// Which machine this is.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The cloud's id of the instance; `None` where there is no cloud, or the cloud does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<Word>,
    /// `/etc/machine-id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_id: Option<Word>,
    /// The firmware's UUID (`/sys/class/dmi/id/product_uuid`), lower case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_uuid: Option<Word>,
    /// This boot (`/proc/sys/kernel/random/boot_id`).
    pub boot_id: Word,
}

/// One part of an identity, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// [`Identity::instance_id`].
    InstanceId,
    /// [`Identity::machine_id`].
    MachineId,
    /// [`Identity::system_uuid`].
    SystemUuid,
    /// [`Identity::boot_id`].
    BootId,
    /// The key that the connection proved.
    Key,
    /// The name for the machine's Node.
    NodeName,
}

impl Part {
    /// The name of the part in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InstanceId => "instance id",
            Self::MachineId => "machine id",
            Self::SystemUuid => "system UUID",
            Self::BootId => "boot id",
            Self::Key => "key",
            Self::NodeName => "node name",
        }
    }
}

impl Identity {
    /// The parts that last longer than a boot and have a usable value.
    pub fn lasting(&self) -> impl Iterator<Item = (Part, &str)> {
        let parts = [
            (Part::InstanceId, &self.instance_id),
            (Part::MachineId, &self.machine_id),
            (Part::SystemUuid, &self.system_uuid),
        ];
        parts.into_iter().filter_map(|(part, word)| Some((part, says_something(word.as_deref()?)?)))
    }

    /// A part of the identity, where it has a usable value.
    pub fn part(&self, wanted: Part) -> Option<&str> {
        self.lasting().find(|(part, _)| *part == wanted).map(|(_, word)| word)
    }

    /// The first lasting part in which both have a value and the values differ.
    pub fn differs(&self, other: &Self) -> Option<Part> {
        let differ = |part, word| other.part(part).is_some_and(|theirs| normal(theirs) != normal(word));
        self.lasting().find(|(part, word)| differ(*part, word)).map(|(part, _)| part)
    }

    /// The first lasting part that this identity has and the other lacks, so that the two cannot be compared. The system
    /// UUID comes from the firmware, and a copy of a disk does not copy it. Where both have the same system UUID, the
    /// other parts may be missing; an instance id is missing while the cloud's metadata service does not answer.
    pub fn left_out_by(&self, other: &Self) -> Option<Part> {
        let says = |part| other.part(part).is_some();
        if self.part(Part::SystemUuid).is_some() && says(Part::SystemUuid) {
            return None;
        }
        self.lasting().find(|(part, _)| !says(*part)).map(|(part, _)| part)
    }

    /// The first lasting part that both have in common.
    pub fn shares(&self, other: &Self) -> Option<Part> {
        let same = |part, word| other.part(part).is_some_and(|theirs| normal(theirs) == normal(word));
        self.lasting().find(|(part, word)| same(*part, word)).map(|(part, _)| part)
    }
}

/// The normal form of a word that names a machine, for any kind of id: two words with one form are the same name.
///
/// Lower case, without spaces around it, and a UUID without its dashes and braces. Firmware, kubelet and clouds write the
/// same UUID in each of these ways. OpenStack's instance id is the system UUID of the guest.
pub fn normal(word: &str) -> String {
    let lower = word.trim().to_lowercase();
    let digits: String = lower.chars().filter(|c| !matches!(c, '-' | '{' | '}')).collect();
    let is_uuid = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_uuid { digits } else { lower }
}

/// Firmware and images without an identity of their own all carry the same placeholder, which identifies no machine.
fn says_something(word: &str) -> Option<&str> {
    let digits = || word.chars().filter(|c| *c != '-');
    let first = digits().next()?;
    let one_digit = word.len() >= 8 && digits().all(|c| c == first);
    let unset = ["uninitialized", "not settable", "none", "03000200-0400-0500-0006-000700080009"];
    let said = !one_digit && !unset.iter().any(|junk| word.eq_ignore_ascii_case(junk));
    said.then_some(word)
}

/// What a machine reports about itself beside its identity. Operators see and compare it; it grants no rights.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Facts {
    /// Its host name.
    #[serde(default)]
    pub hostname: Word,
    /// Its addresses.
    #[serde(default)]
    pub addresses: List<Word, 32>,
    /// Its operating system, as in `os-release`.
    #[serde(default)]
    pub os: Word,
    /// Its kernel.
    #[serde(default)]
    pub kernel: Word,
    /// Its processor's architecture.
    #[serde(default)]
    pub arch: Word,
    /// Its failure domain, where the machine knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<Word>,
    /// The agent's version.
    #[serde(default)]
    pub agent: Word,
    /// Where its agent answers other agents, as `ADDRESS:PORT`; `None` when it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers_at: Option<Word>,
}
