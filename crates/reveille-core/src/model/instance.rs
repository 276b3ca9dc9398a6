//! What a cloud says of one machine: the instance, its ports, and the marks that prove whose it is.
//!
//! Adapters build these from the provider's answers; nothing here knows a provider. Values that many machines share
//! (zone, image, the set of marks) are shared bytes, because adapters intern them.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use serde::{Deserialize, Serialize};

use super::hosting::Hosting;
use super::id::{GroupId, ImageId, InstanceId, InstanceName, NetworkId, PortId, RequestId, ZoneName};

/// One instance as its cloud last described it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Instance {
    /// The cloud's id. The only identity.
    pub id: InstanceId,
    /// The display name: a hint for people, and the last resort of joining when it is unique.
    pub name: InstanceName,
    /// Another name that the guest goes by inside its cloud (EC2: the private DNS name), lower case and without a dot at
    /// the end. Nodes are often called so. A hint as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<Arc<str>>,
    /// Where the instance is in its life, in provider-neutral words.
    pub state: InstanceState,
    /// The provider's own word for work under way (`rebooting`, `image_uploading`, …). While it stands, a client or the
    /// cloud is at work on the instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<Arc<str>>,
    /// Why the cloud put it into an error state; only there when the state is [`InstanceState::Errored`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// Failure domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<ZoneName>,
    /// What it was made from; pools whose images differ are rolling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageId>,
    /// Every tag and metadata pair on the object.
    pub marks: Arc<BTreeSet<Mark>>,
    /// All addresses of all its ports.
    pub addresses: Box<[IpAddr]>,
    /// True when a config drive is attached: first boot then needs no metadata service.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub config_drive: bool,
    /// True when the cloud refuses changes to it (Nova `locked`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub locked: bool,
    /// When the cloud says it was made, in its own text. Compared with the same cloud's clock, never subtracted from anything.
    /// Not when it was last started: that is no sign of its age.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<Arc<str>>,
    /// What its provider says of how it hosts it, where it says any of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosting: Option<Arc<Hosting>>,
}

impl Instance {
    /// An instance of which only the id is known: it is, or was, there. It counts as alive, and as belonging to no pool.
    pub fn unknown(id: InstanceId, name: InstanceName) -> Self {
        Self {
            id,
            name,
            hostname: None,
            state: InstanceState::Other,
            task: None,
            fault: None,
            zone: None,
            image: None,
            marks: Arc::default(),
            addresses: Box::default(),
            config_drive: false,
            locked: false,
            created: None,
            hosting: None,
        }
    }

    /// A record of a cell that is down: the cloud knows the id, and nothing else of it at this moment.
    pub fn is_bare(&self) -> bool {
        self.state == InstanceState::Other && self.marks.is_empty()
    }

    /// It runs, and its cloud names no task.
    pub fn runs_freely(&self) -> bool {
        self.state == InstanceState::Active && self.task.is_none()
    }

    /// No client is at work on it, as far as its cloud tells: it runs or is in ERROR, without a task.
    pub fn is_at_rest(&self) -> bool {
        matches!(self.state, InstanceState::Active | InstanceState::Errored) && self.task.is_none()
    }

    /// Its disk is copied while it runs: a snapshot or a backup.
    pub fn is_copied(&self) -> bool {
        let copies = self.task.as_deref().is_some_and(|task| COPIES.contains(&task));
        self.state == InstanceState::Active && copies
    }

    /// So described after `before`, it was given back: it runs again, or what was done to it failed. A deletion that failed gave
    /// nothing back, and neither did a copy of its disk: a dead machine that a backup copies each quarter of an hour had the time
    /// of a boot after each, for ever.
    pub fn is_given_back_since(&self, before: &Self) -> bool {
        let runs = self.runs_freely() && !before.runs_freely();
        if runs && before.is_copied() {
            return false;
        }
        runs || self.is_at_rest() && !before.is_at_rest() && !before.state.is_leaving()
    }

    /// The names that its node may have, the stronger first: what the guest calls itself, then what people call it.
    pub fn node_names(&self) -> impl Iterator<Item = &str> {
        self.hostname.as_deref().into_iter().chain(Some(self.name.as_str()).filter(|name| !name.is_empty()))
    }

    /// Takes over from another reading of the same instance each text that did not change, so that the two readings hold
    /// one copy of it.
    pub fn share_texts_of(&mut self, other: &Self) {
        share(&mut self.id, &other.id);
        share(&mut self.name, &other.name);
        share(&mut self.created, &other.created);
        share(&mut self.task, &other.task);
        share(&mut self.hostname, &other.hostname);
        share(&mut self.hosting, &other.hosting);
    }
}

/// The tasks of Nova that leave a guest where it was, in the hands in which it was (nova/compute/task_states.py, "during
/// snapshot()" and "during backup()"): the guest goes on, or stands still while its disk is copied and goes on where it stood.
/// Every other task interrupts the guest, or a person asked for it and goes on to work there (`updating_password`). Nova sets no
/// task when a volume comes or goes.
const COPIES: [&str; 5] =
    ["image_snapshot", "image_snapshot_pending", "image_pending_upload", "image_uploading", "image_backup"];

/// Equal values become one value.
fn share<T: Clone + PartialEq>(mine: &mut T, other: &T) {
    if mine == other {
        mine.clone_from(other);
    }
}

/// Life of an instance in words that fit every cloud.
///
/// Everything a provider says that is not plainly one of these is [`InstanceState::Other`]: alive, unknown, left alone.
/// Nova has forty-two task states; reading an unknown one as "going away" once made Kubernikus replace live machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstanceState {
    /// Being made; no guest runs yet.
    Building,
    /// Running, as far as the cloud knows.
    Active,
    /// The provider reboots it now.
    Rebooting,
    /// Shut off, paused, suspended, shelved: it exists and does not run.
    Stopped,
    /// The cloud gave up on it. See [`Instance::fault`].
    Errored,
    /// Going away: deleting or soft-deleting.
    Deleting,
    /// Gone: deleted or soft-deleted, still listed.
    Gone,
    /// Anything else, and everything new: alive, unknown.
    Other,
}

impl InstanceState {
    /// True for the two states that mean "this one leaves or has left".
    pub const fn is_leaving(self) -> bool {
        matches!(self, Self::Deleting | Self::Gone)
    }
}

/// The cloud's reason for an errored instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fault {
    /// The provider's number (Nova: 500 and friends).
    pub code: u32,
    /// The provider's words.
    pub message: Arc<str>,
}

/// A tag or metadata pair on the object itself: the only proof of ownership (docs/SAFETY.md, invariant 5).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Mark {
    /// A tag, compared whole: `k8s-cluster=prod`.
    Tag(Arc<str>),
    /// A metadata pair.
    Metadata(Arc<str>, Arc<str>),
}

impl Mark {
    /// The tag by which the cloud controller, too, knows the cluster (`kubernetes.io/cluster/<id>`), and not one that a roster
    /// chose for itself.
    pub fn is_known_to_all(&self) -> bool {
        matches!(self, Self::Tag(tag) if tag.starts_with("kubernetes.io/cluster/"))
    }
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tag(tag) => write!(f, "tag {tag}"),
            Self::Metadata(key, value) => write!(f, "metadata {key}={value}"),
        }
    }
}

/// One network port. Security is decided here and not on the server: a server's own list of groups is the union over
/// its ports, so a port without its group hides behind a healthy sibling (flight control D13).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Port {
    /// The port's id.
    pub id: PortId,
    /// The network that it is on.
    pub network: NetworkId,
    /// Its fixed addresses.
    pub addresses: Box<[IpAddr]>,
    /// The groups bound to it, sorted.
    pub groups: Box<[GroupId]>,
    /// Allowed address pairs (plain addresses are /32 or /128), sorted.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub pairs: Box<[IpNet]>,
    /// False where port security is off: groups and pairs cannot be set there.
    pub security: bool,
    /// Whether the cloud has wired it.
    pub status: PortStatus,
    /// The revision that a write must name, so that the write undoes no other client's change (docs/SAFETY.md, invariant 10).
    pub revision: u64,
}

impl Port {
    /// As [`Instance::share_texts_of`].
    pub fn share_texts_of(&mut self, other: &Self) {
        share(&mut self.id, &other.id);
        share(&mut self.network, &other.network);
    }
}

/// Whether a port's wiring is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PortStatus {
    /// Wired.
    Active,
    /// Not wired, or being wired (Neutron DOWN, BUILD). On a running server: the latency of the data plane.
    Down,
    /// The cloud does not say.
    Unknown,
}

/// One entry of the cloud's log of what was done to an instance. Best evidence of who rebooted or deleted it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstanceAction {
    /// The request that did it; unique per action.
    pub request: RequestId,
    /// `create`, `reboot`, `delete`, …
    pub action: Arc<str>,
    /// When it began: the cloud's own text.
    pub started: Arc<str>,
    /// Who asked: the cloud's user id, when it tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<Arc<str>>,
    /// The cloud's message: `Error`, or nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Arc<str>>,
}
