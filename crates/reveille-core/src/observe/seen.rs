//! One machine of a cloud as the controller sees it: the instance, whose it is, and what is remembered of it.
//!
//! [`super::cloud`] makes one for each instance of the roster's clusters, and marks it *unlisted* when a full listing lacks it.
//! What the ledger keeps of a machine that goes out of sight is [`super::remembered`].

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use crate::model::hosting::GroupPhase;
use crate::model::id::{NodeName, NodeUid, PoolName};
use crate::model::instance::{Instance, InstanceState, Port};
use crate::model::time::{Span, Time};
use crate::safeguard::{Safeguard, stands};

use super::machine_signs::Signs;

/// A machine that is older than this when it is seen first may have joined, served and been drained, all of it unseen: an EC2
/// machine with a baked image is Ready within a minute or two.
pub const SERVED_WITHIN: Span = Span::from_min(5);

/// One instance and what the controller remembers of it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The instance as its cloud last described it.
    pub instance: Arc<Instance>,
    /// Which pool its marks prove it to be of.
    pub claim: Whose,
    /// The pool that it is of, or was of last: an operator may have taken that mark off.
    pub of_pool: Option<PoolName>,
    /// When the controller first saw it.
    pub first_seen: Time,
    /// When the first process saw it of those that have watched it since; as long ago as it was, whatever was watched meanwhile.
    pub known_since: Time,
    /// Every address that is its own.
    pub addresses: Box<[IpAddr]>,
    /// Its ports, as of the newest snapshot or fresh read.
    pub ports: Vec<Arc<Port>>,
    /// The nodes that stand for it, in order of name. More than one is a conflict.
    pub nodes: Vec<NodeName>,
    /// The Node that it was seen with, by this process or an earlier one.
    pub joined: Option<NodeName>,
    /// The uid of the Node that it last stood as, in this process. Of the next Node of that name, another machine's, nothing is
    /// said of this one.
    pub joined_uid: Option<NodeUid>,
    /// Its Node was seen Ready.
    pub was_ready: bool,
    /// A client removed its Node on purpose: the machine is not expected back.
    pub left: Option<Box<Left>>,
    /// Names by which people paused it, and which it may have lost since: a person renames a server while they look at it.
    pub paused_as: BTreeSet<Arc<str>>,
    /// Its Node went in a gap, and until then events may come that tell who removed it.
    pub awaits_word_until: Option<Time>,
    /// What stands on it and on its Node, as far as the ledger knows.
    pub signs: Signs,
    /// It was created while the controller watched: its whole history is known.
    pub born_in_sight: bool,
    /// The ledger holds that it was.
    pub born_kept: bool,
    /// It was minutes old when it came into sight, or its cloud had not been listed for as long: by then it may have joined,
    /// served and been drained under a Node that names no instance.
    pub came_late: bool,
    /// Since it came into sight the nodes went unseen for longer than events live: it may have joined, served and been drained.
    pub may_have_served: bool,
    /// For a part of its life nothing tells whether it joined and was drained: no process was looking, and events have expired.
    pub is_unaccounted: bool,
    /// An earlier process left a ledger that does not name this instance: it was made while no process was looking.
    pub made_meanwhile: bool,
    /// Since when it has been in its present state.
    pub state_since: Time,
    /// When its last Node that went had stopped answering, in this process.
    pub silent_since: Option<Time>,
    /// Since when its cloud has named its present task, or none.
    pub task_since: Time,
    /// When a list last showed that it was given back after others had it in hand: it was off, or its cloud named a task, and it
    /// runs again or is in ERROR.
    pub released: Option<Time>,
    /// When that happened the time before.
    pub released_before: Option<Time>,
    /// It came out of what a reboot or a start of ours brings about. We move nothing to another host, and rescue nothing.
    pub released_by_boot: bool,
    /// When the last full list began that showed it running or in ERROR, without a task, before the last time that it was not so.
    /// None where no such change was seen.
    pub rested_at: Option<Time>,
    /// Missing from listings since then, and how often it was asked for by id in vain.
    pub unlisted: Option<Unlisted>,
}

/// A claim in the space of one pointer-sized name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Exactly this pool's.
    Pool(PoolName),
    /// The cluster's and no pool's.
    Unclaimed,
    /// The marks of several pools.
    Several,
}

impl Whose {
    /// The pool, when exactly one claims it.
    pub const fn pool(&self) -> Option<&PoolName> {
        match self {
            Self::Pool(pool) => Some(pool),
            Self::Unclaimed | Self::Several => None,
        }
    }
}

/// A node that left on purpose: drained, scaled down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// When it went, as far as the controller saw.
    pub at: Time,
    /// The sign that showed the purpose.
    pub sign: Arc<str>,
}

/// An instance that the listing no longer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unlisted {
    /// Since when.
    pub since: Time,
    /// How often its id was answered with "no such id".
    pub denials: u8,
    /// When the last of these was.
    pub last_denial: Option<Time>,
}

impl Unlisted {
    /// How many denials prove that the instance is gone.
    pub const DENIALS: u8 = 2;
    /// The least time between two denials that count separately.
    pub const APART: Span = Span::from_s(10);

    /// Proved gone.
    pub fn is_gone(&self) -> bool {
        let enough = if stands(Safeguard::SecondDenial) { Self::DENIALS } else { 1 };
        self.denials >= enough || !stands(Safeguard::DeniedById)
    }
}

impl Seen {
    pub(super) fn new(now: Time, instance: Arc<Instance>, claim: Whose) -> Self {
        let of_pool = claim.pool().cloned();
        Self {
            addresses: instance.addresses.clone(),
            instance,
            claim,
            of_pool,
            first_seen: now,
            known_since: now,
            ports: Vec::new(),
            nodes: Vec::new(),
            joined: None,
            joined_uid: None,
            was_ready: false,
            left: None,
            paused_as: BTreeSet::new(),
            awaits_word_until: None,
            signs: Signs::default(),
            born_in_sight: false,
            born_kept: false,
            may_have_served: false,
            came_late: false,
            is_unaccounted: false,
            made_meanwhile: false,
            state_since: now,
            silent_since: None,
            task_since: now,
            released: None,
            released_before: None,
            released_by_boot: false,
            rested_at: None,
            unlisted: None,
        }
    }

    /// Its cloud describes it so from now on. The listing before began at `listed_at`.
    pub(super) fn note_change(&mut self, now: Time, instance: &Instance, listed_at: Time) {
        let is_built = self.instance.state == InstanceState::Building && self.joined.is_none();
        if instance.is_given_back_since(&self.instance) && !is_built {
            (self.released_before, self.released) = (self.released, Some(now));
            let before = self.instance.state;
            self.released_by_boot = matches!(before, InstanceState::Rebooting | InstanceState::Stopped);
        }
        if self.instance.is_at_rest() && !instance.is_at_rest() {
            self.rested_at = Some(listed_at);
        }
        if self.instance.task != instance.task {
            self.task_since = now;
        }
        if self.instance.state != instance.state {
            self.state_since = now;
        }
    }

    /// The group of the cloud that kept it and keeps it no more: a person took it out, to have it to themselves.
    pub fn detached_from(&self) -> Option<&Arc<str>> {
        let is_in_one = self.instance.hosting.as_ref().is_some_and(|hosting| hosting.group.is_some());
        self.signs.group.as_ref().filter(|_| !is_in_one && !self.instance.state.is_leaving())
    }

    /// Its addresses, as its description and its ports tell them: Nova's cache of the former may lack some for hours
    /// (<https://bugs.launchpad.net/nova/+bug/1751923>).
    pub(super) fn note_addresses(&mut self) {
        let of_ports = self.ports.iter().flat_map(|port| port.addresses.iter());
        let lacks = |address: &&IpAddr| !self.instance.addresses.contains(address);
        let more: BTreeSet<IpAddr> = of_ports.filter(lacks).copied().collect();
        let more = more.into_iter().filter(|_| stands(Safeguard::PortAddresses));
        self.addresses = self.instance.addresses.iter().copied().chain(more).collect();
    }

    /// Its description, with all addresses that are known of it.
    pub(super) fn described(&self) -> Arc<Instance> {
        if self.addresses == self.instance.addresses {
            return self.instance.clone();
        }
        Arc::new(Instance { addresses: self.addresses.clone(), ..(*self.instance).clone() })
    }

    /// The pool, when exactly one claims it.
    pub const fn pool(&self) -> Option<&PoolName> {
        self.claim.pool()
    }

    /// A kubelet may run on it. It serves also in ERROR, after a live migration that failed, while it waits for the word of its
    /// owner after a resize, and while its cloud says that it is being rebooted.
    pub fn may_run(&self) -> bool {
        !self.goes() && !matches!(self.instance.state, InstanceState::Stopped | InstanceState::Building)
    }

    /// The Nodes that stand for it and that it joined as; before it joined, all that stand for it.
    pub fn own_nodes(&self) -> impl Iterator<Item = &NodeName> {
        self.nodes.iter().filter(|name| self.joined.as_ref().is_none_or(|joined| joined == *name))
    }

    /// The Node that stands for it, where that is one. Of several none is surely its own: the kubelet of another machine showed
    /// this one's UUID, and the pod range of that machine was allowed on the port of this one, and routed to it (seed 8200209).
    pub fn only_node(&self) -> Option<&NodeName> {
        match self.nodes.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The instance carries the cluster's mark alone, and as far as the controller knows it was never of a pool: a bastion,
    /// or a machine of a pool that the roster does not name.
    pub fn is_stray(&self) -> bool {
        self.claim == Whose::Unclaimed && self.of_pool.is_none()
    }

    /// Proved gone by id.
    pub fn is_gone(&self) -> bool {
        self.unlisted.is_some_and(|unlisted| unlisted.is_gone())
    }

    /// It does not stay: proved gone, or described as being deleted or gone, as EC2 describes an instance for an hour after its
    /// end, or its group takes it away, where a hook may keep it for hours and its Node is Ready meanwhile.
    pub fn goes(&self) -> bool {
        let group = self.instance.hosting.as_ref().and_then(|hosting| hosting.group.as_ref());
        let is_taken = group.is_some_and(|group| group.phase == GroupPhase::Leaving);
        is_taken || self.is_gone() || self.instance.state.is_leaving()
    }

    /// It was created while the controller watched, and the controller has watched since: that it has no Node means that it
    /// never had one.
    pub const fn is_known_since_birth(&self) -> bool {
        self.born_in_sight && !self.may_have_served
    }

    /// The same, and its cloud was listed all the time: it was in sight from its birth on.
    pub const fn was_watched_from_birth(&self) -> bool {
        self.is_known_since_birth() && !self.came_late
    }

    /// Nothing tells of a part of its life, in which it may have served.
    pub(crate) const fn doubt_life(&mut self) {
        (self.may_have_served, self.is_unaccounted) = (true, true);
    }

    /// It is still being made for the first time: whatever was not seen, it has not run.
    pub(super) const fn trust_life(&mut self) {
        (self.may_have_served, self.is_unaccounted) = (false, false);
    }

    /// Since when it has been watched, where it has not been Ready in all its life.
    pub fn joins_since(&self) -> Option<Time> {
        (self.is_known_since_birth() && !self.was_ready).then_some(self.known_since)
    }

    /// What a person may call this machine.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let nodes = self.nodes.iter().chain(&self.joined).map(NodeName::as_str);
        let paused = self.paused_as.iter().map(|name| &**name);
        std::iter::once(self.instance.id.as_str())
            .chain(self.instance.node_names())
            .chain(nodes)
            .chain(paused)
    }
}
