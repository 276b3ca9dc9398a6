//! Faults of the ways between: answers that come late, twice or in another order, and watches that lag, lose and go back. Also
//! clocks that are off, machines that stand still, and a health check of another controller.
//!
//! ```text
//!  inject ─▶ NetworkFaults (what is in force) ◀── asked by observations (what is told), calls (what is done), vm (who is heard)
//! ```
//!
//! [`NetworkFaults`] alone holds the faults in force; the code that serves a read, tells of a node or carries out a call asks it.
//! It changes no object of the project but through those who own them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use reveille_core::effect::Call;
use reveille_core::event::{CloudSnapshot, Event};
use reveille_core::model::id::{InstanceId, IntentId};
use reveille_core::model::instance::InstanceState;
use reveille_core::model::lease::Renewal;
use reveille_core::model::node::{Node, Provider, Ready};
use reveille_core::model::time::{Span, Time};

use super::cluster::{Registration, registered, set_ready};
use super::fault::{Fault, Refusal, Right};
use super::ground_truth::Ours;
use super::{Task, World};

/// What is in force.
#[derive(Clone, Debug, Default)]
pub(crate) struct NetworkFaults {
    pub(crate) answers_late: bool,
    pub(crate) answers_twice: bool,
    pub(crate) pages_repeat: bool,
    pub(crate) watch_lags: bool,
    pub(crate) watch_gap: bool,
    /// The nodes of a moment ago, which the API shows in place of those of now.
    pub(crate) old_nodes: Option<Vec<Arc<Node>>>,
    pub(crate) api_denied: bool,
    /// The nodes of another cluster, which answers in place of ours.
    pub(crate) other_cluster: Option<Vec<Arc<Node>>>,
    /// How far the clocks of machines are off, milliseconds.
    pub(crate) clocks: BTreeMap<InstanceId, i64>,
    /// Machines that stand still.
    pub(crate) still: BTreeSet<InstanceId>,
    pub(crate) fleet_dark: bool,
    /// Machines that stood still together.
    crowd: Option<Crowd>,
    /// What a policy forbids us.
    pub(crate) forbidden: Option<Right>,
    /// Which changes are not taken.
    pub(crate) refused: Option<Refusal>,
    /// A call that is done after the next one.
    pub(crate) held_back: Option<(u64, IntentId, Call)>,
    /// Since when the health check finds a node silent; none while it does not run.
    silent: Option<BTreeMap<InstanceId, Time>>,
}

/// Machines that stand still together, and go on one after another.
#[derive(Clone, Debug)]
struct Crowd {
    /// Those that stand still.
    members: BTreeSet<InstanceId>,
    /// How many of them carried the marks of their pools.
    size: u32,
    /// Of how many machines of ours that ran.
    of: u32,
    since: Time,
    /// When the first of them went on.
    returns: Option<Time>,
}

/// How many machines stood still together, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standstill {
    pub(crate) size: u32,
    /// Of how many that ran then: some of them may have been deleted since.
    pub(crate) of: u32,
    pub(crate) lasted: Span,
}

/// How far a lagging watch is behind.
pub(crate) const LAG: Span = Span::from_s(60);
/// Between two looks of another controller's health check, and how long a node must have been silent to it.
const HEALTH_LOOKS: Span = Span::from_s(30);
const HEALTH_PATIENCE: Span = Span::from_min(5);

/// The one node of another cluster: it is well, and of no instance of ours.
fn node_elsewhere() -> Node {
    let mut node = registered(Registration {
        name: "elsewhere".into(),
        uid: "0c1b2a39-0000-4000-8000-000000000001".into(),
        instance: "0c1b2a39-0000-4000-8000-000000000002".into(),
        boot_id: "0c1b2a39-0000-4000-8000-000000000003".into(),
        address: IpAddr::from([10, 99, 0, 1]),
        range: IpNet::from(ipnet::Ipv4Net::new_assert(std::net::Ipv4Addr::new(198, 18, 0, 0), 24)),
    });
    set_ready(&mut node, Ready::True);
    node
}

/// What a clock that is so many milliseconds off says, as a mark in a lease.
pub(super) fn by_clock(now: Time, off_ms: Option<&i64>) -> Renewal {
    Renewal::nth((now.ms + off_ms.copied().unwrap_or(0)).cast_unsigned())
}

impl World {
    /// What the services write is so far ahead of their usual clocks.
    pub(super) const fn set_clocks(&mut self, ahead_ms: i64) {
        let [cloud_ms, cluster_ms] = self.layout.variety.clocks_ms;
        self.project.skew_ms = cloud_ms + ahead_ms;
        self.cluster.skew_ms = cluster_ms + ahead_ms;
    }

    pub(super) fn strike_ways(&mut self, fault: &Fault) {
        match fault {
            Fault::AnswersLate(_) => self.network_faults.answers_late = true,
            Fault::AnswersTwice(_) => self.network_faults.answers_twice = true,
            Fault::PagesRepeat(_) => self.network_faults.pages_repeat = true,
            Fault::WatchLags(_) => self.network_faults.watch_lags = true,
            Fault::WatchGap(_) => self.network_faults.watch_gap = true,
            Fault::NodeListStale(lasts) => {
                self.network_faults.old_nodes = Some(self.cluster.nodes.values().cloned().collect());
                self.plan(Span::from_ms(lasts.ms / 2), Task::Watched(self.session));
            }
            Fault::OtherCluster(_) => {
                self.network_faults.other_cluster = Some(vec![Arc::new(node_elsewhere())]);
                self.lies.nodes_empty = true;
                self.break_watch();
            }
            Fault::ApiDenied(_) => {
                (self.lies.api_silent, self.network_faults.api_denied) = (true, true);
                self.break_watch();
            }
            Fault::ApiClock(ms, _) => {
                self.set_clocks(*ms);
            }
            Fault::FleetDark(_) => {
                self.network_faults.fleet_dark = true;
                self.review_all();
            }
            Fault::ManySilent { share_pct, .. } => self.silence_many(*share_pct),
            Fault::RightsLost(right, _) => self.network_faults.forbidden = Some(*right),
            Fault::WritesRefused(refusal, _) => self.network_faults.refused = Some(*refusal),
            Fault::HealthCheck(_) => self.begin_health_check(),
            _ => {}
        }
    }

    /// The cloud takes no change at this time.
    pub(crate) fn refuses_writes(&self) -> bool {
        self.network_faults.refused == Some(Refusal::Unavailable)
    }

    fn silence_many(&mut self, share_pct: u32) {
        let runs = |id: &&InstanceId| self.vms.get(*id).is_some_and(|vm| vm.powered);
        let ours = self.project.servers.iter().filter(|(_, server)| server.pool.is_some()).map(|(id, _)| id);
        let ours: Vec<InstanceId> = ours.filter(runs).cloned().collect();
        let of = ours.len() as u32;
        let count = ours.len() * share_pct as usize / 100;
        let members: BTreeSet<InstanceId> = ours.into_iter().take(count).collect();
        self.network_faults.still.extend(members.iter().cloned());
        for id in &members {
            self.review(id);
        }
        // Who gave machines away has the say over when those are silent (seed 5803794).
        let is_marked = |id: &&InstanceId| Self::is_ours(&self.project.servers[*id], Ours::Marked);
        let size = members.iter().filter(is_marked).count() as u32;
        self.network_faults.crowd = Some(Crowd { members, size, of, since: self.now, returns: None });
    }

    fn begin_return(&mut self, every: Span) {
        let now = self.now;
        let Some(mut crowd) = self.network_faults.crowd.take() else { return };
        // One that was drained shows no silence, before or since: with it, a crowd that the roster tolerates was one that
        // freezes all (seed 9300667).
        let shown = crowd.members.iter().filter(|id| !self.nodes_of(id).is_empty()).count() as u32;
        crowd.size = crowd.size.min(shown);
        crowd.returns.get_or_insert(now);
        let members: Vec<InstanceId> = crowd.members.iter().cloned().collect();
        self.network_faults.crowd = Some(crowd);
        for (number, id) in members.into_iter().enumerate() {
            let after = Span::from_ms(every.ms * number as i64);
            self.plan(after, Task::GoesOn(id));
        }
    }

    pub(super) fn goes_on(&mut self, id: &InstanceId) {
        self.network_faults.still.remove(id);
        // Whatever befalls it later is its own.
        if let Some(crowd) = &mut self.network_faults.crowd {
            crowd.members.remove(id);
        }
        self.review(id);
    }

    /// The machines that stood still together and of which it is one, while they come back and it has not yet.
    pub(crate) fn comes_back_with(&self, id: &InstanceId) -> Option<Standstill> {
        let crowd = self.network_faults.crowd.as_ref().filter(|crowd| crowd.members.contains(id))?;
        let returns = crowd.returns?;
        let waits = self.network_faults.still.contains(id) && self.vms.get(id)?.trouble.is_none();
        // One that lost its Node before does not show that it stands still, nor that it goes on.
        let waits = waits && !self.nodes_of(id).is_empty();
        waits.then(|| Standstill { size: crowd.size, of: crowd.of, lasted: returns.since(crowd.since) })
    }

    fn begin_health_check(&mut self) {
        if self.network_faults.silent.replace(BTreeMap::new()).is_none() {
            self.plan(HEALTH_LOOKS, Task::HealthCheck);
        }
    }

    pub(super) fn mend_ways(&mut self, fault: &Fault) {
        match fault {
            Fault::AnswersLate(_) => self.network_faults.answers_late = false,
            Fault::AnswersTwice(_) => self.network_faults.answers_twice = false,
            Fault::PagesRepeat(_) => self.network_faults.pages_repeat = false,
            // One stream keeps its order: what is late comes first, then the list.
            Fault::WatchLags(_) => self.plan(LAG + Span::from_s(5), Task::Watched(self.session)),
            Fault::WatchGap(_) => {
                self.network_faults.watch_gap = false;
                self.break_watch();
            }
            Fault::NodeListStale(_) => {
                self.network_faults.old_nodes = None;
                self.break_watch();
            }
            Fault::OtherCluster(_) => {
                (self.network_faults.other_cluster, self.lies.nodes_empty) = (None, false);
                self.break_watch();
            }
            Fault::ApiDenied(_) => {
                self.network_faults.api_denied = false;
                self.lies.api_silent = false;
            }
            Fault::ApiClock(..) => self.set_clocks(0),
            Fault::FleetDark(_) => {
                self.network_faults.fleet_dark = false;
                self.review_all();
            }
            Fault::ManySilent { every, .. } => self.begin_return(*every),
            Fault::RightsLost(..) => self.network_faults.forbidden = None,
            Fault::WritesRefused(..) => self.network_faults.refused = None,
            Fault::HealthCheck(_) => self.network_faults.silent = None,
            Fault::NodePaused(id, _) => {
                self.network_faults.still.remove(id);
                self.review(id);
            }
            Fault::CheckWrong(..) | Fault::PutApart(..) => self.mend_hosting(fault),
            Fault::Drained(..) | Fault::Remade(..) | Fault::MarksAway(..) => self.mend_identity(fault),
            Fault::Rescued(id, _) => self.unrescue(id),
            Fault::ByHand(id, hand) => self.mend_by_hand(id, *hand),
            _ => {}
        }
    }

    pub(super) fn strike_guest(&mut self, id: &InstanceId, fault: &Fault) {
        match fault {
            Fault::NodeClock(_, ms) => {
                self.network_faults.clocks.insert(id.clone(), *ms);
            }
            Fault::NodePaused(..) => {
                self.network_faults.still.insert(id.clone());
                self.review(id);
            }
            Fault::Rebooted(_) => {
                let active = self.project.servers[id].instance.state == InstanceState::Active;
                if active {
                    self.note_let_boot(id);
                    let _ = self.begin_reboot(id, false, "erin");
                }
            }
            Fault::Poisoned(_) => self.poison(id),
            _ => {}
        }
    }

    /// Free text that no real client would write: control characters, other scripts, far too much of it, and none at all.
    fn poison(&mut self, id: &InstanceId) {
        let garbage: Arc<str> =
            "\u{202e}\u{1b}[2J\0 '\"; DROP TABLE nodes; -- 節点 {{.Name}} %s ".repeat(200).into();
        let text = garbage.clone();
        self.project.change(self.now, id, |instance| {
            instance.image = Some(text.as_ref().into());
            instance.task = None;
            instance.created = Some(text.clone());
            instance.addresses = Box::new([]);
        });
        for name in self.nodes_of(id) {
            let text = garbage.clone();
            let node = self.cluster.change(&name, |node| {
                // An API server lets no client change a provider ID that is set (kubernetes pkg/apis/core/validation,
                // ValidateNodeUpdate). With it garbled, two Nodes of one machine could not be told of (seed 7210321).
                if !matches!(node.provider, Provider::Instance(_)) {
                    node.provider = Provider::Unread(text.clone());
                }
                node.kubelet = Some(text.clone());
                // What is empty is read as if it were not there.
                node.boot_id = None;
            });
            if let Some(node) = node {
                self.watched(node);
            }
        }
        if let Some(vm) = self.vms.get_mut(id) {
            vm.console.push_back(garbage.to_string());
        }
    }

    /// Another controller's health check: it knows nodes and instances, and neither us nor anything that we know.
    pub(super) fn check_health(&mut self) {
        let Some(mut silent) = self.network_faults.silent.take() else { return };
        let now = self.now;
        let quiet: BTreeSet<InstanceId> = self
            .cluster
            .nodes
            .values()
            .filter(|node| node.ready == Ready::Unknown)
            .filter_map(|node| node.system_uuid.clone())
            .collect();
        silent.retain(|id, _| quiet.contains(id));
        for id in quiet {
            let since = *silent.entry(id.clone()).or_insert(now);
            if now.since(since) >= HEALTH_PATIENCE {
                self.delete_instance(&id, "machine-health-check");
            }
        }
        self.network_faults.silent = Some(silent);
        self.plan(HEALTH_LOOKS, Task::HealthCheck);
    }

    /// An answer sets out, and arrives when and as often as the ways allow.
    pub(super) fn reply(&mut self, session: u64, travel: Span, event: Event) {
        let mut travel = travel;
        if self.network_faults.answers_late {
            travel = travel + self.soon(30_000, 240_000);
        }
        if self.network_faults.answers_twice {
            let again = travel + self.soon(10, 20_000);
            self.plan(again, Task::Deliver(session, event.clone()));
        }
        self.plan(travel, Task::Deliver(session, event));
    }

    /// Pages that repeat: the first half is there once more.
    pub(super) fn repeat_pages(&self, snapshot: &mut CloudSnapshot) {
        if self.network_faults.pages_repeat {
            let half = snapshot.instances.len().div_ceil(2);
            snapshot.instances.extend_from_within(..half);
            let half = snapshot.ports.len().div_ceil(2);
            snapshot.ports.extend_from_within(..half);
        }
    }

    /// What the cloud's clock says now.
    pub(super) const fn cloud_time(&self) -> Time {
        Time::from_ms(self.now.ms + self.project.skew_ms)
    }

    /// What a machine's own clock says now, as its kubelet writes it into its lease.
    pub(super) fn renewal_of(&self, id: &InstanceId) -> Renewal {
        by_clock(self.now, self.network_faults.clocks.get(id))
    }

    /// Ends every fault that would go on by itself: from here on the world does no more harm, and an ill machine stays ill until
    /// a client cures it.
    pub fn end_faults(&mut self) {
        let running: Vec<Fault> = self
            .agenda
            .values()
            .filter_map(|task| match &**task {
                Task::Mend(fault) => Some(fault.clone()),
                _ => None,
            })
            .collect();
        self.agenda.retain(|_, task| !matches!(**task, Task::Inject(_) | Task::Mend(_)));
        for fault in running {
            self.mend(&fault);
        }
        self.lies.calls.clear();
        self.slippery.clear();
        self.cloud_controller.routeless.clear();
        for kept in self.pools.values_mut() {
            kept.image = None;
            kept.next.clear();
        }
        self.wanted += 1;
    }
}
