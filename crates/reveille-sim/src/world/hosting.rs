//! A provider that tells how it hosts its machines, as EC2 does, and acts on them by itself.
//!
//! ```text
//!  host or guest breaks ─▶ Vm::ail (what is so) ─ a minute ─▶ checks (what is told) ─▶ group: unfit for three minutes
//!  provider ─ notice ─ two minutes, or as announced ─▶ ended or stopped by itself                │
//!  group: Coming ─ checks ─▶ Kept ─ unfit, stopped ─▶ Leaving ─▶ ended; the pool's owner makes another ◀┘
//!  parts of the cloud that disagree ─▶ no listing, denied by id ─▶ the cloud controller deletes the Node
//! ```
//!
//! Only pools of which the layout says so are hosted in this way: of all others a cloud tells nothing, as OpenStack does. The
//! group of a pool and the pool's owner are one: the owner makes machines, and here is what the group does with those it has.
//! Nothing here knows the engine; a group answers the stop of its machine in the same way, whichever client stops it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use reveille_core::model::hosting::{Check, Checks, GroupPhase, Hosting, Notice, NoticeKind, OwnerGroup};
use reveille_core::model::id::{InstanceId, PoolName};
use reveille_core::model::instance::{Instance, InstanceState};
use reveille_core::model::node::Ready;
use reveille_core::model::time::{Span, Time};

use super::fault::Fault;
use super::hands::Hand;
use super::{Task, World};

/// The problem of a machine that its provider truly finds. It does not run then, whatever its cloud says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ail {
    /// Its host is broken: only another host helps, which it gets when it is stopped and started.
    Host,
    /// Its own system hangs until it is booted again.
    Vm,
}

/// A step that the provider, or one of its parts, takes with a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Its checks are made.
    Checked,
    /// The time of one that was wanted back is over.
    TakenBack,
    /// It is stopped as it was announced.
    Retired,
    /// Its group ends it.
    Replaced,
    /// Parts of the cloud do not know it from now on, for so long.
    Unknown(Span),
    /// They know it.
    Known,
    /// The cloud controller asks for it, because its node is not Ready.
    AskedFor,
}

/// What the provider keeps beside its instances.
#[derive(Clone, Debug, Default)]
pub(super) struct Provider {
    /// Machines whose host the provider wrongly calls impaired until then.
    wrongly: BTreeMap<InstanceId, Time>,
    /// Since when a group finds a machine of its own unfit.
    unfit: BTreeMap<InstanceId, Time>,
    /// The next machines of a pool: so long after they are made they are not known, for so long.
    unknown: BTreeMap<PoolName, VecDeque<(Span, Span)>>,
    /// Machines that we stop to start them again.
    pub(super) stopping: BTreeMap<InstanceId, Stopping>,
    /// Machines that reads still show as they were, until then.
    pub(super) outdated: BTreeMap<InstanceId, (Time, Arc<Instance>)>,
}

/// A stop of ours that a start of ours follows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopping {
    /// When it is stopped.
    pub(super) until: Time,
    /// Whose process stopped it.
    pub(super) session: u64,
}

/// A spot machine has so long.
const TAKES_BACK_AFTER: Span = Span::from_min(2);
/// Between two looks of the groups at their machines.
const GROUPS_LOOK: Span = Span::from_s(30);
/// As long a group lets a machine be unfit.
const UNFIT_FOR: Span = Span::from_min(3);
/// Between two questions of the cloud controller for an instance.
const CONTROLLER_ASKS: Span = Span::from_s(5);

const WELL: Checks = Checks { host: Check::Passed, guest: Check::Passed, disk: Check::Unknown };
const PENDING: Checks = Checks { host: Check::Pending, guest: Check::Pending, disk: Check::Unknown };

impl Provider {
    /// The next machine of the pool will not be known so long after it was made.
    pub(super) fn next_unknown(&mut self, pool: &PoolName, after: Span, lasts: Span) {
        self.unknown.entry(pool.clone()).or_default().push_back((after, lasts));
    }
}

impl World {
    /// How a new machine of the pool is hosted.
    pub(super) fn new_hosting(&self, pool: &PoolName) -> Option<Arc<Hosting>> {
        let plan = self.layout.hosting_of(pool)?;
        let group = plan.group.then(|| OwnerGroup {
            name: format!("asg-{pool}").into(),
            phase: GroupPhase::Coming,
            word: "Pending".into(),
            protected: false,
        });
        let (spot, loses_disks) = (plan.spot, plan.loses_disks);
        Some(Arc::new(Hosting { checks: PENDING, spot, group, loses_disks, ..Hosting::default() }))
    }

    fn hosting(&self, id: &InstanceId) -> Option<&Hosting> {
        self.project.servers.get(id)?.instance.hosting.as_deref()
    }

    fn phase(&self, id: &InstanceId) -> Option<GroupPhase> {
        Some(self.hosting(id)?.group.as_ref()?.phase)
    }

    /// It has disks whose data is lost when it stops.
    pub(super) fn loses_disks(&self, id: &InstanceId) -> bool {
        self.hosting(id).is_some_and(|hosting| hosting.loses_disks)
    }

    pub(super) fn change_hosting(&mut self, id: &InstanceId, change: impl FnOnce(&mut Hosting)) {
        let Some(before) = self.hosting(id) else { return };
        let mut after = before.clone();
        change(&mut after);
        if after != *before {
            self.stirred = self.now;
            self.note_causes(id);
            self.project.change(self.now, id, |instance| instance.hosting = Some(Arc::new(after)));
            self.note_causes(id);
        }
    }

    pub(super) fn set_phase(&mut self, id: &InstanceId, phase: GroupPhase, word: &str) {
        self.change_hosting(id, |hosting| {
            if let Some(group) = &mut hosting.group {
                (group.phase, group.word) = (phase, word.into());
            }
        });
    }

    /// It has long been there.
    pub(super) fn settle_hosting(&mut self, id: &InstanceId) {
        self.change_hosting(id, |hosting| hosting.checks = WELL);
        self.set_phase(id, GroupPhase::Kept, "InService");
    }

    pub(super) fn begin_groups(&mut self) {
        if self.layout.pools.iter().any(|plan| plan.hosting.is_some_and(|hosting| hosting.group)) {
            self.plan(GROUPS_LOOK, Task::Groups);
        }
    }

    pub(super) fn is_hosted(&self, id: &InstanceId) -> bool {
        self.hosting(id).is_some()
    }

    /// The provider does only what fits how it hosts a machine.
    pub(super) fn can_host(&self, fault: &Fault) -> bool {
        let Some(id) = fault.machine() else { return true };
        let active = || {
            self.project.servers.get(id).is_some_and(|server| server.instance.state == InstanceState::Active)
        };
        match fault {
            Fault::HostImpaired(_) | Fault::GuestImpaired(_) => {
                self.is_hosted(id) && self.vms.get(id).is_some_and(|vm| vm.powered)
            }
            Fault::CheckWrong(..) => self.is_hosted(id),
            Fault::Retires(..) => self.is_hosted(id) && active(),
            Fault::SpotTaken(_) => {
                self.hosting(id).is_some_and(|it| it.spot && it.notices.is_empty()) && active()
            }
            Fault::GroupReplaces(_)
            | Fault::PutApart(..)
            | Fault::ByHand(_, Hand::Detached(_) | Hand::DetachedForAWhile(_)) => {
                self.phase(id) == Some(GroupPhase::Kept)
            }
            _ => true,
        }
    }

    pub(super) fn strike_hosting(&mut self, id: &InstanceId, fault: &Fault) {
        match fault {
            Fault::HostImpaired(_) => self.fall_ill(id, Ail::Host),
            Fault::GuestImpaired(_) => self.fall_ill(id, Ail::Vm),
            Fault::CheckWrong(_, lasts) => {
                self.provider.wrongly.insert(id.clone(), self.now + *lasts);
                self.provider_steps(id, Step::Checked);
            }
            Fault::SpotTaken(_) => {
                self.announce(id, NoticeKind::Interruption, "it will be ended: no capacity");
                self.plan(TAKES_BACK_AFTER, Task::Provider(id.clone(), Step::TakenBack));
            }
            Fault::Retires(_, after) => {
                self.announce(id, NoticeKind::Stop, "instance-stop: its host is retired");
                self.plan(*after, Task::Provider(id.clone(), Step::Retired));
            }
            Fault::GroupReplaces(_) => self.group_replaces(id),
            Fault::PutApart(..) => self.set_phase(id, GroupPhase::Apart, "Standby"),
            Fault::NotKnown(_, lasts) => self.provider_steps(id, Step::Unknown(*lasts)),
            _ => {}
        }
    }

    pub(super) fn mend_hosting(&mut self, fault: &Fault) {
        match fault {
            Fault::CheckWrong(id, _) => {
                self.provider.wrongly.remove(id);
                self.provider_steps(id, Step::Checked);
            }
            Fault::PutApart(id, _) if self.phase(id) == Some(GroupPhase::Apart) => {
                self.set_phase(id, GroupPhase::Kept, "InService");
            }
            _ => {}
        }
    }

    fn announce(&mut self, id: &InstanceId, kind: NoticeKind, text: &str) {
        let notice = Notice { kind, not_before: None, text: text.into() };
        self.change_hosting(id, |hosting| hosting.notices.push(notice));
    }

    fn fall_ill(&mut self, id: &InstanceId, ail: Ail) {
        self.power_off(id);
        if let Some(vm) = self.vms.get_mut(id) {
            vm.ail = Some(ail);
        }
        self.plan_checks(id, 60_000, 120_000);
    }

    fn plan_checks(&mut self, id: &InstanceId, from_ms: i64, to_ms: i64) {
        let after = self.soon(from_ms, to_ms);
        self.plan(after, Task::Provider(id.clone(), Step::Checked));
    }

    /// It begins to boot: it is checked in a while.
    pub(super) fn begin_checks(&mut self, id: &InstanceId) {
        if self.is_hosted(id) {
            self.change_hosting(id, |hosting| hosting.checks = PENDING);
            self.plan_checks(id, 60_000, 150_000);
        }
    }

    pub(super) fn provider_steps(&mut self, id: &InstanceId, step: Step) {
        let Some(state) = self.project.servers.get(id).map(|server| server.instance.state) else {
            self.lies.unknown.remove(id);
            return;
        };
        match step {
            Step::Checked => self.check(id, state),
            Step::TakenBack if !state.is_leaving() => {
                self.change_hosting(id, |hosting| {
                    hosting.ended = Some("Server.SpotInstanceTermination: no capacity".into());
                });
                self.end_instance(id, "spot");
                self.say_of(id, "the provider ends");
            }
            Step::Retired if state == InstanceState::Active => self.retire(id),
            Step::Replaced if self.phase(id) == Some(GroupPhase::Leaving) => {
                self.end_instance(id, "autoscaling");
                self.say_of(id, "its group ends");
            }
            Step::Unknown(lasts) => {
                self.stirred = self.now;
                self.lies.unknown.insert(id.clone());
                self.plan(lasts, Task::Provider(id.clone(), Step::Known));
                self.ask_for_unknown(id);
            }
            Step::Known => {
                self.stirred = self.now;
                if self.single_servers_are_denied() {
                    self.lies.denied_until = Some(self.now);
                }
                self.note_causes(id);
                self.lies.unknown.remove(id);
            }
            Step::AskedFor => self.ask_for(id),
            Step::TakenBack | Step::Retired | Step::Replaced => {}
        }
    }

    fn say_of(&mut self, id: &InstanceId, what: &str) {
        let name = self.name_of(id);
        self.tell(format!("{what} {name}"));
    }

    fn check(&mut self, id: &InstanceId, state: InstanceState) {
        let ail = self.vms.get(id).and_then(|vm| vm.ail);
        let wrongly = self.provider.wrongly.get(id).is_some_and(|until| self.now < *until);
        let found = |unhealthy: bool| if unhealthy { Check::Impaired } else { Check::Passed };
        let checks = match state {
            InstanceState::Active => {
                let host = found(wrongly || ail == Some(Ail::Host));
                Checks { host, guest: found(ail.is_some()), disk: Check::Unknown }
            }
            InstanceState::Rebooting | InstanceState::Building => PENDING,
            _ => Checks::default(),
        };
        self.change_hosting(id, |hosting| hosting.checks = checks);
        if state == InstanceState::Active && self.phase(id) == Some(GroupPhase::Coming) {
            self.set_phase(id, GroupPhase::Kept, "InService");
        }
    }

    fn retire(&mut self, id: &InstanceId) {
        self.change_hosting(id, |hosting| {
            hosting.notices.retain(|notice| notice.kind != NoticeKind::Stop);
            hosting.ended = Some("Server.ScheduledStop: its host is retired".into());
            hosting.checks = Checks::default();
        });
        self.project.note(self.now, id, "stop", "ec2");
        self.project.set_state(self.now, id, InstanceState::Stopped, None);
        self.power_off(id);
        self.say_of(id, "the provider stops");
    }

    /// It starts on another host: every problem of the former host, and every notice about it, is over.
    pub(super) fn move_host(&mut self, id: &InstanceId) {
        if let Some(vm) = self.vms.get_mut(id) {
            vm.ail = None;
        }
        self.change_hosting(id, |hosting| {
            hosting.ended = None;
            hosting.notices.retain(|notice| notice.kind != NoticeKind::Stop);
        });
    }

    /// To stop a machine and start it again is the hard reboot of such a cloud. A group replaces what stops.
    pub(super) fn stop_and_start(&mut self, id: &InstanceId) {
        if !self.is_hosted(id) {
            return;
        }
        self.move_host(id);
        if self.phase(id) == Some(GroupPhase::Kept) {
            self.group_replaces(id);
        }
    }

    fn group_replaces(&mut self, id: &InstanceId) {
        self.set_phase(id, GroupPhase::Leaving, "Terminating");
        let after = self.soon(20_000, 60_000);
        self.plan(after, Task::Provider(id.clone(), Step::Replaced));
    }

    /// The machine leaves its group, whichever client ends it.
    pub(super) fn leave_group(&mut self, id: &InstanceId) {
        self.set_phase(id, GroupPhase::Leaving, "Terminating");
    }

    /// Every group looks at the machines that it has in service, by what the provider says of them.
    pub(super) fn run_groups(&mut self) {
        self.plan(GROUPS_LOOK, Task::Groups);
        let is_unfit = |server: &super::project::Server| {
            let Some(hosting) = server.instance.hosting.as_deref() else { return false };
            let kept = hosting.group.as_ref().is_some_and(|group| group.phase == GroupPhase::Kept);
            let state = matches!(server.instance.state, InstanceState::Stopped | InstanceState::Errored);
            kept && (state || hosting.checks.impaired().next().is_some())
        };
        let unfit: Vec<InstanceId> = self
            .project
            .servers
            .iter()
            .filter(|(_, server)| is_unfit(server))
            .map(|(id, _)| id.clone())
            .collect();
        self.provider.unfit.retain(|id, _| unfit.contains(id));
        for id in unfit {
            let since = *self.provider.unfit.entry(id.clone()).or_insert(self.now);
            if self.now.since(since) >= UNFIT_FOR {
                self.provider.unfit.remove(&id);
                self.say_of(&id, "its group finds unfit");
                self.group_replaces(&id);
            }
        }
    }

    /// A machine that was just made, and that parts of the cloud will not know for a while.
    pub(super) fn begin_unknown(&mut self, pool: &PoolName, id: &InstanceId) {
        let next = self.provider.unknown.get_mut(pool).and_then(VecDeque::pop_front);
        if let Some((after, lasts)) = next {
            self.plan(after, Task::Provider(id.clone(), Step::Unknown(lasts)));
        }
    }

    /// The cloud controller looks for an instance that it cannot know yet.
    pub(super) fn ask_for_unknown(&mut self, id: &InstanceId) {
        if self.lies.unknown.contains(id) {
            self.plan(CONTROLLER_ASKS, Task::Provider(id.clone(), Step::AskedFor));
        }
    }

    /// It asks for as long as a node of it is not Ready, and takes "no such instance" for the truth.
    fn ask_for(&mut self, id: &InstanceId) {
        let nodes = self.nodes_of(id);
        let mut nodes = nodes.iter().filter_map(|name| self.cluster.nodes.get(name));
        if !nodes.any(|node| node.ready != Ready::True) || !self.lies.unknown.contains(id) {
            return;
        }
        if self.cloud_controller.down {
            self.ask_for_unknown(id);
        } else {
            self.mistake_for_gone(id);
        }
    }
}
