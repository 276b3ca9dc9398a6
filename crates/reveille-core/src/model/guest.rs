//! What a console shows of the guest, whatever is wrong with it: how far its boot came, and whether it reached the network.

use serde::{Deserialize, Serialize};

use super::stage::Stage;

/// What a console shows of the guest, whatever is wrong with it. Of the last boot in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Guest {
    /// How far the boot came.
    pub boot: BootProgress,
    /// Whether it found a config drive.
    pub config_drive: ConfigDrive,
    /// It got an address.
    pub addressed: bool,
    /// The metadata service or the API server answered it.
    pub answered: bool,
}

impl Guest {
    /// A guest that was never read.
    pub const UNSEEN: Self = Self {
        boot: BootProgress::Nothing,
        config_drive: ConfigDrive::Unknown,
        addressed: false,
        answered: false,
    };
}

/// How far a boot came. In order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BootProgress {
    /// No sign of a kernel.
    Nothing,
    /// A kernel or init system runs.
    Kernel,
    /// The tool of the first boot runs.
    FirstBoot,
    /// Multi-user or a login prompt.
    Userland,
    /// The kubelet was started, or kubeadm runs.
    Kubelet,
    /// The node registered.
    Joined,
}

impl BootProgress {
    /// All of them, in order.
    pub const ALL: [Self; 6] =
        [Self::Nothing, Self::Kernel, Self::FirstBoot, Self::Userland, Self::Kubelet, Self::Joined];

    /// The word for it in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Kernel => "kernel",
            Self::FirstBoot => "first-boot",
            Self::Userland => "userland",
            Self::Kubelet => "kubelet",
            Self::Joined => "joined",
        }
    }

    /// Where a machine is that came so far and shows nothing wrong.
    pub const fn stage(self) -> Stage {
        match self {
            Self::Nothing | Self::Kernel => Stage::OsBoot,
            Self::FirstBoot => Stage::FetchConfig,
            Self::Userland => Stage::KubeletStart,
            Self::Kubelet => Stage::Register,
            Self::Joined => Stage::Ready,
        }
    }
}

/// Whether the guest found a config drive, as the guest says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConfigDrive {
    /// It did.
    Present,
    /// It looked and found none.
    Absent,
    /// It does not say.
    Unknown,
}

impl ConfigDrive {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Present, Self::Absent, Self::Unknown];

    /// The word for it in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Absent => "absent",
            Self::Unknown => "unknown",
        }
    }
}
