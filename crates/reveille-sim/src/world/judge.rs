//! Which destructive acts were wrong: the world's truth decides at the moment of effect, by one rule for all policies.
//!
//! ```text
//!  call takes effect ─▶ remedy: the least step that would really cure the machine ─▶ Wrong, or not
//! ```
//!
//! An act is a reboot or a deletion of an instance, or a deletion of a live machine's Node, that the world carried out and
//! that changed something: a refused call, and deleting what is already being deleted, are none. It is wrong for the
//! first of these reasons that holds:
//!
//! 1. **not ours**: the machine belongs to no pool of this cluster.
//! 2. **healthy**: its kubelet is heard and its Node is Ready, and has been for longer than a minute. Within that minute a
//!    decision and a recovery cross on their way, and no act is blamed.
//! 3. **hands off**: a person paused it, locked it or works on it, or a client takes its Node away on purpose (a taint or
//!    annotation that says so). A cordon alone says nothing about repair; a Node that a person cordons and then deletes does. The
//!    same is said by a provider that takes it back, and by a group of the cloud that takes it away, brings it in, or had it put
//!    apart.
//! 4. **its group's**: a group of the cloud keeps it, and it was stopped, which that group answers with its end; or it was ended
//!    where the roster leaves that to the group.
//! 5. **a lesser step**: something milder than what was done would have cured it, by what is really wrong inside: waiting (it
//!    boots, or is only cut off), a group put back on its port, a start, a reboot. Only steps that a client outside of the
//!    machine can take count; restarting a kubelet by hand does not.
//! 6. **a false reading**: it was a deletion, and while it happened, listings hid the machine or its Node. Even a machine that
//!    deserved it was hit by luck.
//! 7. **a stampede**: more than half of the machines of its zone or of the fleet are unwell (of three at least), and another
//!    machine was hit within the last ten minutes. In an outage a careful person tries one and looks.
//! 8. **hopeless**: every machine that its pool makes has the trouble that this one has, and two were deleted for it already.
//!
//! The judge does not ask what the actor could know. An act that no actor could have known to be wrong is wrong here, for all
//! alike. The judge does not count what was not done, nor how long it took.

use std::collections::{BTreeMap, BTreeSet};

use reveille_core::effect::{Call, Outcome};
use reveille_core::event::Pause;
use reveille_core::model::hosting::{GroupPhase, Hosting, NoticeKind};
use reveille_core::model::id::{InstanceId, InstanceName, PoolName};
use reveille_core::model::instance::InstanceState;
use reveille_core::model::time::{Span, Time};
use reveille_core::remedies::{DeleteInstance, DeleteNode, Reboot};

use super::World;
use super::hosting::Ail;
use super::truth::CROSSING;
use super::vm::{FirstBoot, Kubelet, Trouble};

/// A destructive act that took effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// When.
    pub at: Time,
    /// What was done.
    pub call: Call,
    /// To whom.
    pub machine: InstanceId,
    /// What people call it.
    pub name: InstanceName,
    /// Why it was wrong, if it was.
    pub wrong: Option<Wrong>,
}

/// Why a destructive act was wrong. The module says when each holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wrong {
    /// The machine belongs to another project or cluster.
    NotOurs,
    /// The machine was well.
    Healthy,
    /// A person or a client said, or showed, that it handles the machine itself.
    HandsOff,
    /// A group of the cloud keeps it.
    Groups,
    /// This would have been enough.
    Lesser(Lesser),
    /// A listing hid the machine or its Node.
    FalseReading,
    /// Another one, in the middle of an outage.
    Stampede,
    /// Its successor will have the same trouble, as those before.
    Hopeless,
}

/// A step milder than a deletion, mildest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lesser {
    /// Nothing at all.
    Waiting,
    /// A group back on its port.
    Network,
    /// A start.
    Start,
    /// A reboot.
    Reboot,
}

impl Wrong {
    /// For reports.
    pub const fn text(self) -> &'static str {
        match self {
            Self::NotOurs => "another owner's machine",
            Self::Healthy => "a healthy machine",
            Self::HandsOff => "hands off was said",
            Self::Groups => "its group's to end",
            Self::Lesser(Lesser::Waiting) => "waiting would have cured it",
            Self::Lesser(Lesser::Network) => "a group on its port would have cured it",
            Self::Lesser(Lesser::Start) => "a start would have cured it",
            Self::Lesser(Lesser::Reboot) => "a reboot would have cured it",
            Self::FalseReading => "rested on a false reading",
            Self::Stampede => "one of many in an outage",
            Self::Hopeless => "its successor was bound to fail, too",
        }
    }
}

/// What the judge remembers between acts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Judge {
    acts: Vec<Act>,
    /// Deletions for a trouble that the pool's image has, since the image is bad.
    hopeless: BTreeMap<PoolName, u32>,
    pauses: BTreeSet<Pause>,
}

/// In an outage, one machine in this time is a try.
const ONE_TRY_IN: Span = Span::from_min(10);
/// As many replacements of a bad image are tries.
const TRIES_OF_AN_IMAGE: u32 = 2;
/// Fewer machines than this are no zone that could be out.
const OUTAGE_OF: usize = 3;

impl World {
    /// Every destructive act that took effect, in order, judged.
    pub fn acts(&self) -> &[Act] {
        &self.judge.acts
    }

    /// People set these pauses, and no others.
    pub(crate) fn note_pauses(&mut self, pauses: &BTreeSet<Pause>) {
        self.judge.pauses.clone_from(pauses);
    }

    /// A person said of this machine, its pool (when it has one) or everything: hands off.
    pub(crate) fn is_paused(&self, id: &InstanceId, pool: Option<&PoolName>) -> bool {
        let named = |text: &str| {
            let nodes = || self.nodes_of(id).into_iter().any(|node| node.as_str() == text);
            text == id.as_str() || text == self.name_of(id).as_str() || nodes()
        };
        let on_node = || {
            let nodes = self.nodes_of(id);
            nodes.iter().filter_map(|name| self.cluster.nodes.get(name)).any(|node| node.intent.paused)
        };
        on_node() || self.judge.pauses.iter().any(|pause| pause.scope.covers(pool, named))
    }

    /// What will have to be said about this call, if it takes effect now.
    pub(super) fn judge(&mut self, call: &Call) -> Option<Act> {
        let id = match call {
            Call::Reboot(Reboot { instance, .. }) | Call::DeleteInstance(DeleteInstance { instance, .. }) => {
                instance.clone()
            }
            Call::DeleteNode(DeleteNode { name, .. }) => self.cluster.nodes.get(name)?.system_uuid.clone()?,
            _ => return None,
        };
        let server = self.project.servers.get(&id)?;
        if server.instance.state.is_leaving() {
            return None;
        }
        self.note_health(&id);
        let (wrong, name) = (self.wrong(&id, call), self.name_of(&id));
        Some(Act { at: self.now, call: call.clone(), machine: id, name, wrong })
    }

    /// The call ended like this.
    pub(super) fn note_act(&mut self, act: Option<Act>, outcome: &Outcome) {
        let Some(act) = act.filter(|_| matches!(outcome, Outcome::Accepted { .. })) else { return };
        let pool = self.project.servers.get(&act.machine).and_then(|server| server.pool.clone());
        if let (Call::DeleteInstance(_), Some(pool)) = (&act.call, pool) {
            match self.has_the_images_trouble(&act.machine, &pool) {
                true => *self.judge.hopeless.entry(pool).or_default() += 1,
                false => drop(self.judge.hopeless.remove(&pool)),
            }
        }
        self.judge.acts.push(act);
    }

    fn wrong(&self, id: &InstanceId, call: &Call) -> Option<Wrong> {
        let deletes = matches!(call, Call::DeleteInstance(_));
        let Some(pool) = self.project.servers.get(id)?.pool.clone() else { return Some(Wrong::NotOurs) };
        let well_since = self.vms.get(id).and_then(|vm| vm.well_since);
        if let Some(since) = well_since {
            return (self.now.since(since) > CROSSING).then_some(Wrong::Healthy);
        }
        if self.is_hands_off(id, &pool) {
            return Some(Wrong::HandsOff);
        }
        if self.is_its_groups(id, &pool, call) {
            return Some(Wrong::Groups);
        }
        let milder_than = |lesser: &Lesser| deletes || *lesser < Lesser::Reboot;
        if let Some(lesser) = self.remedy(id).filter(milder_than) {
            return Some(Wrong::Lesser(lesser));
        }
        let nodes_hidden = self.lies.nodes_empty && !self.nodes_of(id).is_empty();
        let reboots = matches!(call, Call::Reboot(_));
        if !reboots && (nodes_hidden || self.hides_server(id)) {
            return Some(Wrong::FalseReading);
        }
        if self.is_stampede(id) {
            return Some(Wrong::Stampede);
        }
        let tried = self.judge.hopeless.get(&pool).copied().unwrap_or_default();
        let hopeless = deletes && tried >= TRIES_OF_AN_IMAGE && self.has_the_images_trouble(id, &pool);
        hopeless.then_some(Wrong::Hopeless)
    }

    fn is_hands_off(&self, id: &InstanceId, pool: &PoolName) -> bool {
        let Some(server) = self.project.servers.get(id) else { return false };
        let instance = &server.instance;
        let nodes: Vec<_> =
            self.nodes_of(id).into_iter().filter_map(|name| self.cluster.nodes.get(&name)).collect();
        let taken = |node: &&std::sync::Arc<reveille_core::model::node::Node>| {
            node.intent.paused || node.intent.deleting || node.intent.leaving.is_some()
        };
        let busy = instance.state == InstanceState::Active && instance.task.is_some();
        if instance.hosting.as_ref().is_some_and(|hosting| is_in_other_hands(hosting)) {
            return true;
        }
        let removed = self.is_shown_removed(id);
        self.is_paused(id, Some(pool)) || instance.locked || busy || removed || nodes.iter().any(taken)
    }

    /// A group of the cloud keeps it, and would have to make up for what is done.
    fn is_its_groups(&self, id: &InstanceId, pool: &PoolName, call: &Call) -> bool {
        let hosting = self.project.servers.get(id).and_then(|server| server.instance.hosting.as_ref());
        let Some(group) = hosting.and_then(|hosting| hosting.group.as_ref()) else { return false };
        match call {
            Call::Reboot(Reboot { hard, .. }) => *hard,
            Call::DeleteInstance(_) => {
                group.protected || !self.layout.hosting_of(pool).is_some_and(|plan| plan.through)
            }
            _ => false,
        }
    }

    /// The least step below a deletion that would cure a machine that is unwell; none when only a new one helps.
    fn remedy(&self, id: &InstanceId) -> Option<Lesser> {
        let server = self.project.servers.get(id)?;
        let vm = self.vms.get(id)?;
        match server.instance.state {
            InstanceState::Errored => return None,
            InstanceState::Stopped if !vm.powered => {
                return (!lasting(vm.trouble)).then_some(Lesser::Start);
            }
            _ => {}
        }
        if lasting(vm.trouble) || vm.first_boot == FirstBoot::Failed {
            return None;
        }
        match vm.ail {
            Some(Ail::Vm) => return Some(Lesser::Reboot),
            Some(Ail::Host) => {
                let hosting = server.instance.hosting.as_ref();
                let moves = hosting.is_some_and(|hosting| hosting.group.is_none() && !hosting.loses_disks);
                return moves.then_some(Lesser::Reboot);
            }
            None => {}
        }
        let booting = !vm.powered || vm.first_boot == FirstBoot::Due;
        // What is left is ended by a start.
        if vm.trouble.is_some() && !booting {
            return Some(Lesser::Reboot);
        }
        // Its node was taken away while it ran: whatever else it lacks, it must start again to register.
        if vm.kubelet == Kubelet::Registered && self.nodes_of(id).is_empty() {
            return Some(Lesser::Reboot);
        }
        let port = self.project.port_of(id)?;
        if !self.project.is_grouped(id, port) {
            let holds = port.security && !self.slippery.contains(&port.id);
            return holds.then_some(Lesser::Network);
        }
        Some(Lesser::Waiting)
    }

    /// More than half of its zone or of the fleet is unwell, and another machine was hit just before.
    fn is_stampede(&self, id: &InstanceId) -> bool {
        let lately = |act: &&Act| self.now.since(act.at) <= ONE_TRY_IN && act.machine != *id;
        if !self.judge.acts.iter().rev().any(|act| lately(&act)) {
            return false;
        }
        let zone = self.project.servers.get(id).and_then(|server| server.instance.zone.clone());
        let ours = || self.project.servers.iter().filter(|(_, server)| server.pool.is_some());
        let out = |all: &mut dyn Iterator<Item = &InstanceId>| {
            let (mut total, mut unwell) = (0, 0);
            for id in all {
                total += 1;
                unwell += usize::from(!self.is_well(id));
            }
            total >= OUTAGE_OF && unwell * 2 > total
        };
        let in_zone = |server: &super::project::Server| zone.is_some() && server.instance.zone == zone;
        out(&mut ours().map(|(id, _)| id))
            || out(&mut ours().filter(|(_, server)| in_zone(server)).map(|(id, _)| id))
    }

    fn has_the_images_trouble(&self, id: &InstanceId, pool: &PoolName) -> bool {
        let image = self.pools.get(pool).and_then(|kept| kept.image);
        image.is_some() && self.vms.get(id).is_some_and(|vm| vm.trouble == image)
    }
}

/// The provider takes it back, or its group takes it away, brings it in, or had it put apart.
pub(crate) fn is_in_other_hands(hosting: &Hosting) -> bool {
    let interrupted = hosting.notices.iter().any(|notice| notice.kind == NoticeKind::Interruption);
    let phase = hosting.group.as_ref().map(|group| group.phase);
    use GroupPhase::{Apart, Coming, Leaving, Reserve};
    interrupted || matches!(phase, Some(Coming | Leaving | Apart | Reserve))
}

/// Troubles that neither a reboot nor a start ends.
fn lasting(trouble: Option<Trouble>) -> bool {
    trouble.is_some_and(Trouble::is_lasting)
}
