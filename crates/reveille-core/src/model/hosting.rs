//! What a provider says of how it hosts an instance: its own checks, what it announced, why it took it, who keeps it.
//!
//! ```text
//!  status checks · scheduled events · interruption · scaling group ─▶ Hosting, on the instance, where a cloud tells any of it
//! ```
//!
//! In words that fit every provider; the provider's own stand beside them as text, for people. A time of theirs stays
//! text. A cloud that says none of this leaves it out, and nothing is concluded from that.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What a provider says of how it hosts an instance. At its default it says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Hosting {
    /// Its own checks of the machine.
    pub checks: Checks,
    /// What it announced to do to it, in its own order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
    /// Why the provider, and no user of it, stopped or ended it: in its words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Arc<str>>,
    /// It is sold until the provider wants it back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spot: bool,
    /// A group of the cloud that keeps it, and replaces it: another actor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<OwnerGroup>,
    /// It is known to have no identity of its own towards the cloud (EC2: no instance role).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_identity: bool,
    /// It has disks whose data is lost when it stops.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loses_disks: bool,
}

/// The provider's checks of one machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Checks {
    /// Of the host, its power and its network: the provider's to mend.
    pub host: Check,
    /// Of the guest as it is seen from the host: the machine's own.
    pub guest: Check,
    /// Of its disks.
    pub disk: Check,
}

impl Checks {
    /// Which of them the machine fails, in the order of who has to mend it.
    pub fn impaired(self) -> impl Iterator<Item = &'static str> {
        let all = [(self.host, "host"), (self.disk, "disk"), (self.guest, "guest")];
        all.into_iter().filter(|(check, _)| *check == Check::Impaired).map(|(_, name)| name)
    }
}

/// What one check says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// Nothing.
    #[default]
    Unknown,
    /// It has not been made often enough yet.
    Pending,
    /// All is well.
    Passed,
    /// It failed.
    Impaired,
}

/// Something that the provider announced to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Notice {
    /// What.
    pub kind: NoticeKind,
    /// Not before this: the provider's own text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Arc<str>>,
    /// In its words.
    pub text: Arc<str>,
}

/// What a provider announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoticeKind {
    /// It will reboot the machine, or its host.
    Reboot,
    /// It will stop it.
    Stop,
    /// It will end it, or its host.
    Retire,
    /// Network or power will be worked on.
    Maintenance,
    /// It takes a machine back that it sold until it wants it back.
    Interruption,
    /// It is likely to do that soon.
    Rebalance,
}

impl NoticeKind {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::Reboot, Self::Stop, Self::Retire, Self::Maintenance, Self::Interruption, Self::Rebalance];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reboot => "reboot",
            Self::Stop => "stop",
            Self::Retire => "retire",
            Self::Maintenance => "maintenance",
            Self::Interruption => "interruption",
            Self::Rebalance => "rebalance",
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.text)?;
        match &self.not_before {
            Some(time) => write!(f, ", not before {time}"),
            None => Ok(()),
        }
    }
}

/// A group of the cloud (EC2: Auto Scaling group) that makes, ends and replaces its machines by its own rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OwnerGroup {
    /// Its name.
    pub name: Arc<str>,
    /// Where the machine is in the group's hands.
    pub phase: GroupPhase,
    /// The same in the provider's word.
    pub word: Arc<str>,
    /// An operator asked the group not to take this instance when it shrinks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub protected: bool,
}

impl fmt::Display for OwnerGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "group {} keeps it ({})", self.name, self.word)
    }
}

/// Where a machine is in its group's hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupPhase {
    /// In service: the group replaces it when it stops or ends.
    Kept,
    /// On its way into service.
    Coming,
    /// The group takes it away.
    Leaving,
    /// An operator took it out of service for a while, on purpose.
    Apart,
    /// Made ready and kept out of service, stopped or not, until the group needs it (EC2: a warm pool).
    Reserve,
    /// Anything else, or not told.
    Unknown,
}

impl GroupPhase {
    /// Every phase.
    pub const ALL: [Self; 6] =
        [Self::Kept, Self::Coming, Self::Leaving, Self::Apart, Self::Reserve, Self::Unknown];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Coming => "coming",
            Self::Leaving => "leaving",
            Self::Apart => "apart",
            Self::Reserve => "reserve",
            Self::Unknown => "unknown",
        }
    }
}
