//! What a machine that never joined left on its console, and what that and its ports together say of the reason.
//!
//! ```text
//!  console text ─▶ mask ─▶ lines ─▶ marks, signatures ─▶ ConsoleReading ─┐
//!  ports, needed groups, instance ────────────────────────────────────────┴▶ explain_never_joined ─▶ findings, ranked
//! ```
//!
//! Text is masked before anything else looks at it, read once from top to bottom, and judged by what stands at its end:
//! a try that failed ten times and then worked is noise, and nothing that came before a successful join counts. Several
//! lines say nothing on purpose, because every join prints them (`node "…" not found`, an uninitialised CNI).
//!
//! It reads console logs only, of machines that never joined. It decides no remedy: it says which cause stands, and
//! whether a reboot could change it.

mod explain;
mod lines;
mod mask;
mod read;
pub mod signatures;

use std::sync::Arc;

pub use explain::{NeverJoinedFacts, explain_never_joined};
pub use mask::mask_secrets;
pub use read::read_console;
pub use signatures::Reboot;

use crate::model::incident::{Evidence, Finding};
use crate::model::stage::Stage;

/// What the text says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleReading {
    /// How far the last boot in it came.
    pub boot: BootProgress,
    /// The failure of the first boot that stands at the end, if there is one; also in `findings`.
    pub first_boot_failed: Option<Finding>,
    /// The failure to get an address that stands at the end, if there is one; also in `findings`.
    pub dhcp: Option<Finding>,
    /// Whether the guest found a config drive.
    pub config_drive: ConfigDrive,
    /// Everything that stands at the end: what explains others before what follows from them, likely before possible.
    pub findings: Vec<Finding>,
    /// True when packets went out and nothing came back: a filter, a wire or a route, not the other side.
    pub unanswered: bool,
    /// True when the last boot got an address.
    pub addressed: bool,
    /// True when, in the last boot, the metadata service or the API server answered.
    pub answered: bool,
    /// Whether starting the machine once more can help.
    pub reboot_can_help: Reboot,
    /// The last lines that are not empty, oldest first.
    pub tail: Vec<Evidence>,
}

/// How far a boot came. In order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

    /// As the end of "its boot came as far as …".
    pub const fn says(self) -> &'static str {
        match self {
            Self::Nothing => "nothing that a kernel prints",
            Self::Kernel => "the kernel",
            Self::FirstBoot => "its first-boot tool",
            Self::Userland => "a login prompt",
            Self::Kubelet => "the kubelet",
            Self::Joined => "a registered node",
        }
    }
}

/// Whether the guest found a config drive, as the guest says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConfigDrive {
    /// It did.
    Present,
    /// It looked and found none.
    Absent,
    /// It does not say.
    Unknown,
}

/// The last lines of a console log, masked, at most so many bytes; none where it says nothing.
pub fn last_lines(text: &str, bytes_max: usize) -> Option<Arc<str>> {
    let kept = keep(text.trim_end());
    let last = lines::end_of(&kept, bytes_max).trim();
    (!last.is_empty()).then(|| Arc::from(last))
}

/// How much of a console is kept with an incident, from its end.
pub const KEEP_BYTES_MAX: usize = 64 * 1024;

/// The end of a console log as it may be kept: masked, at most [`KEEP_BYTES_MAX`] bytes, from the start of a line.
pub fn keep(text: &str) -> Arc<str> {
    let masked = mask_secrets(lines::end_of(text, lines::READ_BYTES_MAX));
    Arc::from(lines::end_of(&masked, KEEP_BYTES_MAX))
}
