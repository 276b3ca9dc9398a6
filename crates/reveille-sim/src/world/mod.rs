//! A whole world in memory: a cloud project, its machines, a cluster, its controllers, and everything that goes wrong.
//!
//! ```text
//!  Fault ─▶ inject ─▶ project, vm, cluster (what is true) ◀── actors (cloud controller, pool owner, people)
//!                          │ read, perhaps falsely                     ▲
//!                          ▼                                           │
//!  engine ◀── Event ── senses (lists, watches, answers)    Effect ─▶ calls
//! ```
//!
//! Time is virtual and comes from outside: [`World::advance`] does everything that is due up to a moment and returns the
//! events that reach the engine then; [`World::next_at`] says when there is something to do next. Whatever is waiting
//! stands in one agenda, ordered by time and then by when it was put there, so nothing depends on an address, a hash or
//! a thread. The same layout, faults and effects give the same events, byte for byte.
//!
//! Machines fail for a reason inside them (no network at first boot, a hung kubelet), and consoles, nodes, leases and
//! listings follow from it: nothing here says "never joined". The world never reads the engine's state.

pub(crate) mod access;
mod actors;
pub(crate) mod agent_plan;
pub(crate) mod agents;
mod calls;
mod causes;
mod cluster;
mod console;
pub mod fault;
mod glance;
pub(crate) mod ground_truth;
pub mod hands;
mod hosting;
mod identity;
pub mod impostors;
mod inject;
mod judge;
pub(crate) mod kubelet_credentials;
pub mod layout;
mod listener;
mod network_faults;
mod observations;
mod operators;
mod own_hardware;
mod power;
mod project;
mod reach;
mod said;
mod sentence;
pub(crate) mod trouble;
mod truth;
pub mod vm;
mod written;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reveille_core::effect::{Call, Effect, Look, Outcome};
use reveille_core::event::{ClusterFact, Event};
use reveille_core::model::cause::Cause;
use reveille_core::model::id::{
    CloudName, Fence, InstanceId, InstanceName, IntentId, LookId, NodeName, NodeUid, PoolName, PortId,
};
use reveille_core::model::time::{Span, Time};

use crate::rng::{Rng, Stream};
use access::Keystone;
use cluster::Cluster;
use fault::Fault;
use layout::{CLOUD, FirstReads, Layout};
use listener::Listener;
use network_faults::NetworkFaults;
use observations::{Lies, Listings, Watch};
use project::Project;
use vm::{GuestStep, Trouble, Vm};

pub use agent_plan::AgentPlan;
pub use agents::{AgentAct, AgentSaid};
pub use glance::Health;
pub(crate) use ground_truth::{Heard, Ours};
pub(crate) use judge::is_in_other_hands;
pub use judge::{Act, Lesser, Wrong};
pub(crate) use network_faults::Standstill;
pub use truth::{Called, Harm, MachineTruth};

/// Something happened in the world, in one sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// When.
    pub at: Time,
    /// What.
    pub text: String,
}

/// What a pool's owner wants.
#[derive(Clone, Debug)]
struct Kept {
    /// How many machines.
    size: u32,
    /// Every machine made from now on has this.
    image: Option<Trouble>,
    /// The next machines made have these, in order.
    next: Vec<Trouble>,
    /// Counts the machines made, to deal them out to zones.
    made: usize,
    /// The image's version; a rollout makes the next one.
    version: u32,
    /// The newest version that a machine was made of, and when the first was.
    shown: (u32, Time),
}

/// The world.
#[derive(Clone, Debug)]
pub struct World {
    now: Time,
    layout: Layout,
    project: Project,
    keystone: Keystone,
    cluster: Cluster,
    vms: BTreeMap<InstanceId, Vm>,
    pools: BTreeMap<PoolName, Kept>,
    /// What waits, in order of time. Boxed: entries move about in the map, and a task may be large.
    agenda: BTreeMap<(Time, u64), Box<Task>>,
    put: u64,
    out: Vec<Event>,
    names: Rng,
    delays: Rng,
    lies: Lies,
    network_faults: NetworkFaults,
    operators: operators::Operators,
    watch: Watch,
    listings: BTreeMap<CloudName, Listings>,
    /// The listener of the process that led before, while it lives.
    before: Option<Listener>,
    /// The process that listens now; no process receives the answers to requests of an earlier one.
    session: u64,
    fence: Fence,
    cloud_controller: CloudController,
    /// Pools whose startup add-on does not run.
    addons_down: BTreeSet<PoolName>,
    /// Ports that something outside takes the group off whenever it is put there.
    slippery: BTreeSet<PortId>,
    /// When something last happened that makes silence news.
    stirred: Time,
    /// The project and the pools as the pools' owner last found them in order.
    owner_saw: Option<(u64, u64)>,
    /// Counts changes of what the pools' owner wants.
    wanted: u64,
    told: Vec<Told>,
    calls: Vec<Called>,
    harms: Vec<Harm>,
    judge: judge::Judge,
    /// Reads that the listener asked for.
    reads: u64,
    /// What was wrong with which machine, and when last.
    causes: BTreeMap<(InstanceId, Cause), Time>,
    /// Who deleted a machine's node, while it has none.
    node_deleted_by: BTreeMap<InstanceId, Cause>,
    /// Machines whose Node went with a restored store, and when.
    restored: BTreeMap<InstanceId, Time>,
    agents: agents::Agents,
    provider: hosting::Provider,
    identity: identity::Changes,
    hands: hands::Hands,
}

/// The cluster's cloud controller: whether it runs, and what it fails to do.
#[derive(Clone, Debug, Default)]
struct CloudController {
    down: bool,
    /// Nodes for which it makes no route.
    routeless: BTreeSet<NodeName>,
    /// It is at work until no node is silent.
    ticking: bool,
    /// Nodes and project as they were when it last looked: the same again tells it nothing.
    left_alone: Option<(u64, u64)>,
}

/// Something that waits for its time.
#[derive(Clone, Debug)]
enum Task {
    Inject(Fault),
    Mend(Fault),
    Poll(u64, CloudName),
    Beat(u64),
    Serve(u64, Request),
    Deliver(u64, Event),
    /// Of this list's watch, by a process of this session.
    Late(u64, u64, ClusterFact),
    Watched(u64),
    Vm(InstanceId, u64, GuestStep),
    Life(InstanceId, Life),
    Unheard(InstanceId, u64),
    Heard(InstanceId, u64),
    Initialise(NodeName, NodeUid),
    NetworkReady(NodeName, NodeUid),
    AddOn(NodeName, NodeUid),
    Route(NodeName, NodeUid),
    Unroute(InstanceId),
    CollectLease(NodeName),
    CloudController,
    PoolOwner,
    RestartKubelet(InstanceId),
    GoesOn(InstanceId),
    LoseGroup(PortId),
    Reachable,
    HealthCheck,
    Again(Call),
    Belated(u64, IntentId, Call),
    Agent(InstanceId, u64, agents::AgentTask),
    Reconnect(InstanceId),
    MendWay(InstanceId, agents::reports::Way),
    Provider(InstanceId, hosting::Step),
    Groups,
}

/// A step in an instance's life that its cloud takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Built,
    Rebooted,
    /// Stopped to be started again.
    Restarted,
    Started,
    Gone,
}

/// Something that was asked of the world.
#[derive(Clone, Debug)]
enum Request {
    List { cloud: CloudName, full: bool },
    Look(LookId, Look),
    Call(IntentId, Call),
}

impl World {
    /// The layout's world, everything in it well, with no process listening yet: [`World::listen`] begins that.
    pub fn new(layout: &Layout) -> Self {
        let kept = |plan: &layout::PoolPlan| {
            let kept = Kept {
                size: plan.machines,
                image: None,
                next: Vec::new(),
                made: 0,
                version: 1,
                shown: (1, layout.start),
            };
            (plan.name.clone(), kept)
        };
        let mut world = Self {
            now: layout.start,
            project: Project::new(&layout.clouds(), layout.routed, layout.is_told_of_hosting()),
            keystone: Keystone::new(&layout.roster().access),
            cluster: Cluster::default(),
            vms: BTreeMap::new(),
            pools: layout.pools.iter().map(kept).collect(),
            agenda: BTreeMap::new(),
            put: 0,
            out: Vec::new(),
            names: Rng::new(layout.seed, Stream::Names),
            delays: Rng::new(layout.seed, Stream::Delays),
            lies: Lies::default(),
            network_faults: NetworkFaults::default(),
            operators: operators::Operators::default(),
            watch: Watch::default(),
            listings: BTreeMap::new(),
            before: None,
            session: 0,
            fence: Fence(0),
            cloud_controller: CloudController::default(),
            addons_down: BTreeSet::new(),
            slippery: BTreeSet::new(),
            stirred: layout.start,
            owner_saw: None,
            wanted: 0,
            told: Vec::new(),
            calls: Vec::new(),
            harms: Vec::new(),
            judge: judge::Judge::default(),
            reads: 0,
            causes: BTreeMap::new(),
            node_deleted_by: BTreeMap::new(),
            restored: BTreeMap::new(),
            agents: agents::Agents::new(layout.seed),
            provider: hosting::Provider::default(),
            identity: identity::Changes::default(),
            hands: hands::Hands::default(),
            layout: layout.clone(),
        };
        world.set_clocks(0);
        world.settle_in();
        world.plan(Span::from_s(20), Task::PoolOwner);
        world.begin_groups();
        world
    }

    /// A process begins to listen under this fencing number: it gets a full listing and a full node list, and from then on what
    /// changes. Requests of an earlier process still take effect, and no process receives their answers.
    pub fn listen(&mut self, now: Time, fence: Fence) {
        self.now = now;
        self.session += 1;
        self.fence = fence;
        self.watch = Watch::default();
        self.listings = BTreeMap::new();
        self.stirred = now;
        let session = self.session;
        let [nodes, cloud, beat] = self.first_reads();
        self.plan(nodes, Task::Watched(session));
        self.plan(cloud, Task::Poll(session, CLOUD.into()));
        for other in self.layout.clouds().into_iter().skip(1) {
            let mut rng =
                Rng::named(self.layout.seed.wrapping_add(session), "first listing of another project");
            self.plan(rng.span(Span::from_ms(20), Span::from_s(40)), Task::Poll(session, other));
        }
        self.plan(beat, Task::Beat(session));
    }

    /// How long a new process waits for the first list of nodes, the first listing of the cloud and the first leases.
    fn first_reads(&mut self) -> [Span; 3] {
        match self.layout.variety.first_reads {
            FirstReads::Soon => [self.soon(50, 400), Span::from_ms(20), Span::from_s(1)],
            FirstReads::CloudLate => [Span::from_ms(5), Span::from_s(30), Span::from_s(1)],
            FirstReads::AnyOrder => {
                let mut rng = Rng::named(self.layout.seed.wrapping_add(self.session), "first reads");
                [(); 3].map(|()| rng.span(Span::from_ms(5), Span::from_s(30)))
            }
        }
    }

    /// Another process holds the ledger now: calls with any other number are refused.
    pub const fn lead(&mut self, fence: Fence) {
        self.fence = fence;
    }

    /// When there is something to do next.
    pub fn next_at(&self) -> Option<Time> {
        self.agenda.first_key_value().map(|((at, _), _)| *at)
    }

    /// Does everything that is due and returns what reaches the engine, in order.
    pub fn advance(&mut self, now: Time) -> Vec<Event> {
        while let Some(entry) = self.agenda.first_entry() {
            if entry.key().0 > now {
                break;
            }
            self.now = self.now.max(entry.key().0);
            let task = entry.remove();
            if self.is_for_the_one_before(&task) {
                self.turn_to_the_other();
                self.run(*task);
                self.turn_to_the_other();
            } else {
                self.run(*task);
            }
        }
        self.now = self.now.max(now);
        std::mem::take(&mut self.out)
    }

    /// Begins to carry out an effect; its answer is one of the events of a later [`World::advance`]. Records and wake-ups
    /// are the driver's business and are passed over.
    pub fn perform(&mut self, now: Time, effect: &Effect) {
        self.now = self.now.max(now);
        let request = match effect {
            Effect::Look { id, look } => Request::Look(*id, look.clone()),
            Effect::List { cloud } => return self.want_full_listing(cloud),
            Effect::Call { intent, fence, call } => {
                if *fence != self.fence {
                    let outcome = Outcome::Fenced {};
                    let event = Event::Done { intent: *intent, outcome: outcome.clone() };
                    self.calls.push(Called { at: now, call: call.clone(), outcome, intent: *intent });
                    self.plan(Span::from_ms(1), Task::Deliver(self.session, event));
                    return;
                }
                Request::Call(*intent, call.clone())
            }
            Effect::Record { .. } | Effect::WakeAt(_) => return,
        };
        let travel = self.soon(20, 300);
        self.plan(travel, Task::Serve(self.session, request));
    }

    /// This fault strikes then.
    pub fn schedule(&mut self, at: Time, fault: Fault) {
        self.put += 1;
        self.agenda.insert((at.max(self.now), self.put), Box::new(Task::Inject(fault)));
    }

    /// A person restarts the machine's kubelet then.
    pub fn schedule_kubelet_restart(&mut self, at: Time, instance: &InstanceId) {
        self.put += 1;
        self.agenda.insert((at.max(self.now), self.put), Box::new(Task::RestartKubelet(instance.clone())));
    }

    /// What happened since this was last asked.
    pub fn take_told(&mut self) -> Vec<Told> {
        std::mem::take(&mut self.told)
    }

    fn run(&mut self, task: Task) {
        match task {
            Task::Inject(fault) => self.inject(fault),
            Task::Mend(fault) => self.mend(&fault),
            Task::GoesOn(id) => self.goes_on(&id),
            Task::Poll(session, cloud) => self.poll(session, cloud),
            Task::Beat(session) => self.beat(session),
            Task::Serve(session, request) => self.serve(session, request),
            Task::Deliver(session, event) => self.deliver(session, event),
            Task::Late(session, list, fact) => self.deliver_late(session, list, fact),
            Task::Watched(session) => self.begin_watch(session),
            Task::Vm(id, boot, step) => self.guest_step(&id, boot, step),
            Task::Life(id, life) => self.live(&id, life),
            Task::Unheard(id, turn) => self.unheard(&id, turn),
            Task::Heard(id, turn) => self.heard(&id, turn),
            Task::Initialise(name, uid) => self.initialise(&name, &uid),
            Task::NetworkReady(name, uid) => self.network_ready(&name, &uid),
            Task::AddOn(name, uid) => self.addon_runs(&name, &uid),
            Task::Route(name, uid) => self.make_route(&name, &uid),
            Task::Unroute(id) => self.review_route(&id),
            Task::CollectLease(name) => self.collect_lease(&name),
            Task::CloudController => self.run_cloud_controller(),
            Task::PoolOwner => self.run_pool_owner(),
            Task::RestartKubelet(id) => self.restart_kubelet(&id),
            Task::LoseGroup(port) => self.lose_group(&port),
            Task::Reachable => self.become_reachable(),
            Task::HealthCheck => self.check_health(),
            Task::Again(call) => self.carry_out_again(&call),
            Task::Belated(session, intent, call) => self.carry_out_belated(session, intent, call),
            Task::Agent(id, life, task) => self.run_agent(&id, life, task),
            Task::Reconnect(id) => self.reconnect(&id),
            Task::MendWay(id, way) => self.mend_way(&id, way),
            Task::Provider(id, step) => self.provider_steps(&id, step),
            Task::Groups => self.run_groups(),
        }
    }

    fn plan(&mut self, after: Span, task: Task) {
        self.put += 1;
        self.agenda.insert((self.now + after, self.put), Box::new(task));
    }

    fn deliver(&mut self, session: u64, event: Event) {
        if session == self.session {
            self.out.push(event);
        }
    }

    /// A delay between these, milliseconds, at the layout's pace.
    fn soon(&mut self, from_ms: i64, to_ms: i64) -> Span {
        let pace = self.layout.pace.max(1);
        self.delays.span(Span::from_ms(from_ms / pace), Span::from_ms(to_ms / pace))
    }

    fn tell(&mut self, text: impl Into<String>) {
        self.told.push(Told { at: self.now, text: text.into() });
    }

    fn name_of(&self, id: &InstanceId) -> InstanceName {
        self.project
            .servers
            .get(id)
            .map_or_else(|| InstanceName::new(id.shared()), |server| server.instance.name.clone())
    }
}

/// A moment in the writing of the APIs, whole seconds.
pub(crate) fn stamp(at: Time) -> Arc<str> {
    jiff::Timestamp::from_second(at.ms.div_euclid(1000))
        .map_or_else(|_| Arc::from("unknown"), |stamp| Arc::from(stamp.to_string()))
}
