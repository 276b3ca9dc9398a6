//! A cluster in a few words, and a fixture that answers from plain maps what the engine asks.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use reveille_core::diagnose::machine_state::MachineState;
use reveille_core::effect::{Call, Effect, Look, Outcome, ReadError, ReadErrorKind};
use reveille_core::engine::invariants::{self, SeenEffects};
use reveille_core::engine::{Restored, Start, State};
use reveille_core::event::{AgentFact, Answer, CloudFact, CloudSnapshot, ClusterFact, Event, Scope};
use reveille_core::model::access::{Role, RoleRef, UserRoles};
use reveille_core::model::agent::*;
use reveille_core::model::agent_report::AgentReport;
use reveille_core::model::guest::Guest;
use reveille_core::model::id::*;
use reveille_core::model::incident::{FaultKind, IncidentKey, MachineKey, Subject};
use reveille_core::model::instance::*;
use reveille_core::model::log_findings::{LogFinding, LogFindings};
use reveille_core::model::network::*;
use reveille_core::model::node::*;
use reveille_core::model::roster::*;
use reveille_core::model::time::{ServiceTime, Span, Time};
use reveille_core::plan::context::Case;
use reveille_core::record::Record;
use reveille_core::remedies::{
    AddRules, AskAgent, AssignRoles, DeleteInstance, DeleteNode, NudgeRouter, Reboot, RemoveRoutes,
    SetPortGroups, StartInstance,
};

use super::next_process::Ledger;

pub const CLOUD: &str = "os";

pub fn roster() -> Roster {
    let pool = Pool {
        name: "workers".into(),
        cloud: CLOUD.into(),
        owned: Ownership {
            cluster: Mark::Tag("k8s-cluster=prod".into()),
            pool: Some(Mark::Tag("k8s-pool=workers".into())),
        },
        groups: vec![GroupRef::Name("k8s-nodes".into())],
        min: 1,
        deadlines: Deadlines::default(),
        repair: Repair {
            network: Mode::Act,
            rejoin: Mode::Act,
            reboot: Mode::Act,
            replace: Mode::Act,
            cleanup: Mode::Act,
        },
        paused: false,
        startup_taints: Vec::new(),
        keep: None,
        through_group: false,
    };
    Roster {
        name: "prod".into(),
        clouds: vec![CLOUD.into()],
        settles: BTreeMap::new(),
        network: Network { pod_ranges: vec!["198.19.0.0/16".parse().unwrap()], ..Network::default() },
        access: Access::default(),
        pools: BTreeMap::from([(pool.name.clone(), pool)]),
        limits: Limits::default(),
        timing: Timing::default(),
    }
}

/// A role whose id tells its name.
pub fn role(name: &str) -> Role {
    let name = name.strip_prefix("r-").unwrap_or(name);
    Role { id: format!("r-{name}").as_str().into(), name: name.into() }
}

pub fn instance(id: &str) -> Instance {
    Instance {
        id: id.into(),
        name: format!("node-{id}").as_str().into(),
        state: InstanceState::Active,
        task: None,
        fault: None,
        zone: Some("z1".into()),
        image: Some("image".into()),
        marks: Arc::new([Mark::Tag("k8s-cluster=prod".into()), Mark::Tag("k8s-pool=workers".into())].into()),
        addresses: Box::new([]),
        config_drive: true,
        locked: false,
        created: None,
        hostname: None,
        hosting: None,
    }
}

/// How a cloud writes a moment of the first hours of 1970, where the fixture's clock begins.
pub fn stamp(at: Time) -> Arc<str> {
    let s = at.ms / 1000;
    format!("1970-01-{:02}T{:02}:{:02}:{:02}Z", 1 + s / 86_400, s / 3600 % 24, s / 60 % 60, s % 60).into()
}

/// The address of a machine's port: 10.8.0.9 for `i001`, and another one for each other.
fn address(id: &str) -> IpAddr {
    let number = id.bytes().fold(0_u16, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let [high, low] = number.to_be_bytes();
    if id == "i001" { [10, 8, 0, 9].into() } else { [10, 9, high, low].into() }
}

pub fn port(id: &str, groups: &[&str]) -> Port {
    Port {
        id: format!("port-{id}").as_str().into(),
        network: "net".into(),
        addresses: Box::new([address(id)]),
        groups: groups.iter().map(|group| GroupId::from(*group)).collect(),
        pairs: Box::new([]),
        security: true,
        status: PortStatus::Active,
        revision: 1,
    }
}

pub fn node(id: &str, ready: Ready) -> Node {
    Node {
        name: format!("node-{id}").as_str().into(),
        uid: format!("uid-{id}").as_str().into(),
        provider: Provider::Instance(id.into()),
        system_uuid: None,
        boot_id: Some(boot_id(id, 0)),
        kubelet: Some("v1.36.3".into()),
        addresses: Box::new([]),
        pod_ranges: Box::new([]),
        ready,
        conditions: Box::new([]),
        zone: None,
        cordoned: false,
        intent: NodeIntent::default(),
        uninitialized: false,
        taints: Box::default(),
    }
}

/// The boot id that the kubelet reports after so many reboots: another one after each boot of the machine
/// (kubernetes: pkg/kubelet/nodestatus/setters.go, `MachineInfo`).
pub fn boot_id(id: &str, reboots: usize) -> Arc<str> {
    format!("boot-{id}-{reboots}").as_str().into()
}

pub fn pod_rules() -> Vec<GroupRule> {
    let rule = |protocol: Protocol| GroupRule {
        id: format!("rule-{protocol}").as_str().into(),
        allows: RuleSpec {
            direction: Direction::Ingress,
            family: Family::V4,
            protocol: Some(protocol),
            ports: None,
            remote: Remote::Prefix("198.19.0.0/16".parse().unwrap()),
        },
        description: "".into(),
    };
    vec![rule(Protocol::TCP), rule(Protocol::UDP), rule(Protocol::ICMP)]
}

/// The world as plain maps, and the engine in it.
pub struct Field {
    pub state: State,
    pub now: Time,
    pub instances: BTreeMap<String, Instance>,
    pub ports: BTreeMap<String, Port>,
    /// Leases that are renewed while no list shows their nodes.
    pub unlisted_leases: Vec<NodeName>,
    pub nodes: BTreeMap<String, Node>,
    pub rules: Vec<GroupRule>,
    pub routers: Vec<Router>,
    /// What is on ports that belong to no instance, and in allowed address pairs.
    pub in_use: BTreeSet<IpNet>,
    pub renewals: u64,
    pub silent: Vec<String>,
    /// What the leases show that no kubelet renews.
    pub renewal_of_silent: u64,
    /// Machines whose leases are renewed although the watch goes on showing their Nodes as silent.
    pub renews: Vec<String>,
    /// Machines whose agents report with every round, and what they say.
    pub agents: BTreeMap<String, AgentReport>,
    /// How an agent that is asked answers, and whether its node comes back.
    pub answers_ask: (Outcome, bool),
    /// Calls are accepted and have no effect.
    pub deaf: bool,
    /// Calls take effect and are answered as failed.
    pub fails: bool,
    /// Calls are answered so, and have no effect.
    pub denial: Option<Outcome>,
    /// Only those on these instances, where there are any.
    pub denied_only: Vec<String>,
    /// Reads of action logs fail once a call was made.
    pub no_action_log: bool,
    /// No watch tells which Nodes went: lists do.
    pub lists_alone: bool,
    /// The Nodes of the last list.
    pub shown: Vec<(NodeName, NodeUid)>,
    /// The cloud's own clock is so far behind ours.
    pub cloud_behind: Span,
    /// What others did to instances, as the cloud's log of actions tells it.
    pub by_others: Vec<(String, InstanceAction)>,
    /// While there are any, lists are of what changed, and name none of these.
    pub unnamed: Vec<String>,
    /// Nudges of the router keep their route there.
    pub leaves_nudges: bool,
    /// Calls have no effect and are answered with this.
    pub refuses: Option<Outcome>,
    /// Calls are not made, and the test answers them: these are out.
    pub mute: Option<Vec<IntentId>>,
    /// Calls that were made, at once or late, and when by the cloud's clock.
    pub made: Vec<(Call, Arc<str>)>,
    /// What the texts of each machine prove.
    pub told: Vec<LogFinding>,
    /// Its cloud describes these without the addresses of their ports.
    pub unaddressed: Vec<String>,
    /// Reads of this instance by its id fail.
    pub cell_down: Option<String>,
    /// What other clouds than [`CLOUD`] answer when they are asked for an instance by id.
    pub elsewhere: BTreeMap<String, Instance>,
    /// Targeted reads are not answered for now; those that were asked for meanwhile.
    pub unanswered: Option<Vec<(LookId, Look)>>,
    /// Roles that every user holds; `None`: the cloud refuses to tell.
    pub held: Option<Vec<Role>>,
    /// How often the engine read a user's roles.
    pub role_reads: u32,
    pub calls: Vec<Call>,
    pub records: Vec<Record>,
    pub ledger: Ledger,
    seen_effects: SeenEffects,
}

impl Field {
    pub fn new(roster: Roster) -> Self {
        let state = State::new(roster, Start { fence: Fence(1), acting: true });
        Self { ledger: Ledger::empty(), ..Self::with(state) }
    }

    pub fn with(state: State) -> Self {
        Self {
            state,
            now: Time::from_ms(1_000_000),
            instances: BTreeMap::new(),
            ports: BTreeMap::new(),
            unlisted_leases: Vec::new(),
            nodes: BTreeMap::new(),
            rules: pod_rules(),
            routers: Vec::new(),
            in_use: BTreeSet::new(),
            renewals: 0,
            silent: Vec::new(),
            renewal_of_silent: 0,
            renews: Vec::new(),
            agents: BTreeMap::new(),
            answers_ask: (Outcome::Accepted { request: None }, true),
            deaf: false,
            fails: false,
            denial: None,
            denied_only: Vec::new(),
            no_action_log: false,
            lists_alone: false,
            shown: Vec::new(),
            cloud_behind: Span::ZERO,
            by_others: Vec::new(),
            unnamed: Vec::new(),
            leaves_nudges: false,
            refuses: None,
            mute: None,
            made: Vec::new(),
            told: Vec::new(),
            unaddressed: Vec::new(),
            cell_down: None,
            elsewhere: BTreeMap::new(),
            unanswered: None,
            held: Some(Vec::new()),
            role_reads: 0,
            calls: Vec::new(),
            records: Vec::new(),
            ledger: Ledger::unknown(),
            seen_effects: SeenEffects::default(),
        }
    }

    /// `count` machines with their nodes, all well.
    pub fn populate(mut self, count: usize) -> Self {
        for number in 0..count {
            self.add_machine(&format!("i{number:03}"), true);
        }
        self
    }

    pub fn add_machine(&mut self, id: &str, joined: bool) {
        let now = self.cloud_time();
        self.instances.insert(id.into(), Instance { created: Some(now), ..instance(id) });
        self.ports.insert(id.into(), port(id, &["g-nodes"]));
        if joined {
            self.nodes.insert(id.into(), node(id, Ready::True));
        }
    }

    /// Others delete the instance, and its port goes with it. Its Node stays.
    pub fn delete_machine(&mut self, id: &str) {
        self.instances.remove(id);
        self.ports.remove(id);
    }

    /// How the next process begins, were it to begin now.
    pub fn next_begins(&self) -> Restored {
        let start = Start { fence: Fence(2), acting: true };
        Restored { start, now: self.now, last_alive: Some(self.now) }
    }

    /// An agent that says that all is well and takes any order.
    pub fn report(id: &str) -> AgentReport {
        AgentReport {
            who: Who { instance: Some(id.into()), ..Who::default() },
            life: "one".into(),
            number: 0,
            stages: Vec::new(),
            told: Vec::new(),
            unsaid: false,
            kubelet: KubeletSaid::Runs,
            api: ApiSaid::Answers,
            work: None,
            blocker: None,
            may: Ask::ALL.into(),
        }
    }

    /// Machines with agents that are well.
    pub fn with_agents(mut self, ids: &[&str]) -> Self {
        self.agents.extend(ids.iter().map(|id| ((*id).to_owned(), Self::report(id))));
        self
    }

    pub fn hear_agents(&mut self) {
        for said in self.said() {
            self.feed(Event::Agent(said));
        }
    }

    /// What each agent says next.
    pub fn said(&mut self) -> Vec<AgentFact> {
        let reports = self.agents.iter_mut().map(|(id, report)| {
            report.number += 1;
            let agent = AgentId::new(format!("agent-{id}"));
            AgentFact::Said { agent, report: Arc::new(report.clone()) }
        });
        reports.collect()
    }

    /// What the clock of the cloud shows.
    pub fn cloud_time(&self) -> Arc<str> {
        stamp(self.now - self.cloud_behind)
    }

    pub fn sync_nodes(&mut self) {
        self.shown = self.nodes.values().map(|node| (node.name.clone(), node.uid.clone())).collect();
        let nodes = self.nodes.values().cloned().map(Arc::new).collect();
        self.feed(Event::Cluster(ClusterFact::Synced(nodes)));
    }

    pub fn list_cloud(&mut self) {
        let snapshot = self.snapshot();
        self.feed(Event::Cloud { cloud: CLOUD.into(), fact: CloudFact::read(snapshot) });
    }

    pub fn snapshot(&self) -> CloudSnapshot {
        CloudSnapshot {
            instances: self.listed(),
            begun: Some(ServiceTime::from_s((self.now - self.cloud_behind).ms / 1000)),
            scope: if self.unnamed.is_empty() { Scope::Full } else { Scope::Changes },
            ports: self.ports.iter().map(|(id, port)| (id.as_str().into(), Arc::new(port.clone()))).collect(),
            in_use: Arc::new(self.in_use.clone()),
            groups: Some(vec![Arc::new(self.group())]),
            routers: self.routers.iter().cloned().map(Arc::new).collect(),
        }
    }

    /// Adapters list what carries the cluster's mark: nothing else is asked for, or handed on.
    fn listed(&self) -> Vec<Arc<Instance>> {
        let mark = Mark::Tag("k8s-cluster=prod".into());
        let named = self.instances.keys().filter(|id| !self.unnamed.contains(id));
        named
            .filter_map(|id| self.described(id))
            .filter(|instance| instance.marks.contains(&mark) || instance.is_bare())
            .collect()
    }

    /// As its cloud describes it: with the addresses of its ports, which Neutron tells Nova of when one comes or goes (nova:
    /// nova/compute/manager.py, `external_instance_event`).
    fn described(&self, id: &str) -> Option<Arc<Instance>> {
        let mut instance = self.instances.get(id)?.clone();
        if let Some(port) = self.ports.get(id).filter(|_| instance.addresses.is_empty()) {
            instance.addresses = port.addresses.clone();
        }
        if self.unaddressed.iter().any(|it| it == id) {
            instance.addresses = Box::new([]);
        }
        Some(Arc::new(instance))
    }

    fn group(&self) -> SecurityGroup {
        let rules = self.rules.clone();
        SecurityGroup { id: "g-nodes".into(), name: "k8s-nodes".into(), project: None, rules }
    }

    pub fn feed(&mut self, event: Event) {
        let effects = self.step(event);
        self.perform(effects);
    }

    /// One step, with the invariants asserted after it.
    pub fn step(&mut self, event: Event) -> Vec<Effect> {
        if let Event::Recorded(id) = &event {
            self.seen_effects.acknowledge(*id);
        }
        self.ledger.hear(&event);
        let effects = self.state.step(self.now, event);
        if let Err(violation) = invariants::check(&self.state, &effects, &mut self.seen_effects) {
            panic!("{violation}");
        }
        if let Err(violation) = invariants::check_waits(&self.state) {
            panic!("{violation}");
        }
        if let Err(violation) = invariants::check_kept(&self.state) {
            panic!("{violation}");
        }
        effects
    }

    pub fn perform(&mut self, effects: Vec<Effect>) {
        self.ledger.take(&effects);
        for effect in effects {
            match effect {
                Effect::Record { id, record } => {
                    self.records.push(record);
                    self.feed(Event::Recorded(id));
                }
                Effect::Look { id, look } if self.unanswered.is_some() => {
                    self.unanswered.iter_mut().for_each(|out| out.push((id, look.clone())));
                }
                Effect::Look { id, look } => {
                    self.role_reads += u32::from(matches!(look, Look::Roles(..)));
                    let answer = self.answer_or_fail(&look);
                    self.feed(Event::Looked { look: id, answer });
                }
                Effect::Call { intent, call: call @ Call::AskAgent(_), .. } => {
                    self.calls.push(call.clone());
                    let (outcome, comes_back) = self.answers_ask.clone();
                    if let (Call::AskAgent(AskAgent { instance, .. }), true) = (&call, comes_back) {
                        let id = instance.as_str();
                        self.nodes.insert(id.to_owned(), node(id, Ready::True));
                    }
                    self.feed(Event::Done { intent, outcome });
                }
                Effect::Call { intent, call, .. } if self.mute.is_some() => {
                    self.calls.push(call);
                    self.mute.iter_mut().for_each(|out| out.push(intent));
                }
                Effect::Call { intent, call, .. } if self.denial.is_some() && self.is_denied(&call) => {
                    self.calls.push(call);
                    let outcome = self.denial.clone().unwrap();
                    self.feed(Event::Done { intent, outcome });
                }
                Effect::Call { intent, call, .. } => {
                    self.calls.push(call.clone());
                    // Nova logs an action under the id of its request (nova/api/openstack, `x-openstack-request-id`).
                    let request = format!("req-{}", self.made.len());
                    if self.refuses.is_none() {
                        self.made.push((call.clone(), self.cloud_time()));
                    }
                    if !self.deaf && self.refuses.is_none() {
                        self.apply(&call);
                    }
                    let failed = Outcome::Failed { retry_after: None, text: "504 Gateway Timeout".into() };
                    let outcome = if self.fails {
                        failed
                    } else {
                        Outcome::Accepted { request: Some(request.as_str().into()) }
                    };
                    let outcome = self.refuses.clone().unwrap_or(outcome);
                    self.feed(Event::Done { intent, outcome });
                }
                Effect::List { .. } | Effect::WakeAt(_) => {}
            }
        }
    }

    /// Answers the reads that were kept waiting, as things are now.
    pub fn answer_all(&mut self) {
        for (look, asked) in self.unanswered.take().unwrap_or_default() {
            let answer = self.answer(&asked);
            self.feed(Event::Looked { look, answer: Ok(answer) });
        }
    }

    fn answer_or_fail(&self, look: &Look) -> Result<Answer, ReadError> {
        match look {
            Look::Instance(_, id) if self.cell_down.as_deref() == Some(id.as_str()) => {
                let (kind, text) = (ReadErrorKind::Unavailable, "503: its cell is down".into());
                Err(ReadError { kind, text, retry_after: None })
            }
            Look::Actions(..) if self.no_action_log && !self.calls.is_empty() => {
                let (kind, text) = (ReadErrorKind::Unavailable, "503: the action log cannot be read".into());
                Err(ReadError { kind, text, retry_after: None })
            }
            Look::Roles(..) if self.held.is_none() => {
                let (kind, text) = (ReadErrorKind::Forbidden, "403: may not list role assignments".into());
                Err(ReadError { kind, text, retry_after: None })
            }
            _ => Ok(self.answer(look)),
        }
    }

    pub fn answer(&self, look: &Look) -> Answer {
        match look {
            Look::Instance(cloud, id) if cloud.as_str() != CLOUD => {
                Answer::Instance(self.elsewhere.get(id.as_str()).cloned().map(Arc::new))
            }
            Look::Instance(_, id) => Answer::Instance(self.described(id.as_str())),
            Look::Ports(_, id) => {
                Answer::Ports(self.ports.get(id.as_str()).cloned().map(Arc::new).into_iter().collect())
            }
            Look::Group(..) => Answer::Group(Some(Arc::new(self.group()))),
            Look::Router(_, id) => {
                Answer::Router(self.routers.iter().find(|router| router.id == *id).cloned().map(Arc::new))
            }
            Look::Roles(_, _, wanted) => {
                let held = self.held.clone().unwrap_or_default();
                let lacks = |wanted: &&RoleRef| !held.iter().any(|role| wanted.means(role));
                let lacking = wanted.iter().filter(lacks).map(|role| self::role(&role.to_string())).collect();
                Answer::Roles(UserRoles { project: "p-1".into(), user: Some("u-1".into()), held, lacking })
            }
            Look::Console(..) | Look::LogEvidence(..) => {
                let (console, guest) = (Ok("".into()), Guest::UNSEEN);
                let (told, unread) = (self.told.clone(), Vec::new());
                Answer::LogFindings(Arc::new(LogFindings { console, guest, told, unread }))
            }
            Look::Actions(_, id) => Answer::Actions(self.actions(id)),
            Look::Node(name) => {
                Answer::Node(self.nodes.values().find(|node| node.name == *name).cloned().map(Arc::new))
            }
            Look::NodeEvents(_) => Answer::NodeEvents(Vec::new()),
        }
    }

    /// Nova logs each reboot when its API takes the request (nova: nova/compute/api.py, `_record_action_start`). EC2 keeps
    /// no such log: it shows when an instance was last started, which a reboot in place does not change (Amazon EC2 API
    /// Reference, `Instance.LaunchTime`), and a stop and start does.
    fn actions(&self, id: &InstanceId) -> Vec<InstanceAction> {
        let action = |action: &str, request: String, started: &Arc<str>| InstanceAction {
            request: request.as_str().into(),
            action: action.into(),
            started: started.clone(),
            user: None,
            message: None,
        };
        if self.instances.get(id.as_str()).is_some_and(|found| found.hosting.is_some()) {
            let starts =
                |call: &Call| matches!(call, Call::Reboot(Reboot { hard: true, .. }) | Call::Start(_));
            let launched = format!("launched-{}", self.acts_on(id, starts).count());
            let last = self.acts_on(id, starts).last().map_or_else(Arc::default, |(_, at)| Arc::clone(at));
            return vec![action("launch", launched, &last)];
        }
        let reboots = self.acts_on(id, |call| matches!(call, Call::Reboot(_)));
        let reboots: Vec<_> =
            reboots.map(|(number, at)| action("reboot", format!("req-{number}"), at)).collect();
        let by_others = self.by_others.iter().filter(|(of, _)| of == id.as_str()).map(|(_, it)| it.clone());
        reboots.into_iter().rev().chain(by_others).collect()
    }

    /// The calls of this kind that took effect on the instance: their numbers, and when they were made.
    fn acts_on<'a>(
        &'a self,
        id: &'a InstanceId,
        is_such: impl Fn(&Call) -> bool + 'a,
    ) -> impl Iterator<Item = (usize, &'a Arc<str>)> {
        let on_it = move |call: &Call| {
            matches!(call, Call::Reboot(Reboot { instance, .. }) | Call::Start(StartInstance { instance, .. })
                if instance == id && is_such(call))
        };
        let made = self.made.iter().enumerate().filter(move |(_, (call, _))| !self.deaf && on_it(call));
        made.map(|(number, (_, at))| (number, at))
    }

    /// Its kubelet runs again after a boot of the machine: its Node is Ready and carries another boot id.
    pub fn boots(&mut self, id: &str) {
        let reboots = self.acts_on(&id.into(), |_| true).count();
        let node = self.nodes.get_mut(id).unwrap();
        (node.ready, node.boot_id) = (Ready::True, Some(boot_id(id, reboots)));
    }

    fn is_denied(&self, call: &Call) -> bool {
        let on = match call {
            Call::Reboot(Reboot { instance, .. })
            | Call::DeleteInstance(DeleteInstance { instance, .. })
            | Call::Start(StartInstance { instance, .. }) => Some(instance.as_str()),
            _ => None,
        };
        self.denied_only.is_empty() || on.is_some_and(|on| self.denied_only.iter().any(|id| id == on))
    }

    pub fn apply(&mut self, call: &Call) {
        match call {
            Call::SetPortGroups(SetPortGroups { port, groups, .. }) => {
                let found = self.ports.values_mut().find(|found| found.id == *port).unwrap();
                found.groups = groups.iter().cloned().collect();
                found.revision += 1;
            }
            Call::AddRules(AddRules { rules, .. }) => {
                for allows in rules {
                    let id = format!("new-{allows}");
                    let rule =
                        GroupRule { id: id.as_str().into(), allows: allows.clone(), description: "".into() };
                    self.rules.push(rule);
                }
            }
            Call::AssignRoles(AssignRoles { roles, .. }) => {
                self.held.get_or_insert_default().extend(roles.iter().cloned())
            }
            Call::NudgeRouter(NudgeRouter { router, route, .. }) if self.leaves_nudges => {
                let found = self.routers.iter_mut().find(|found| found.id == *router).unwrap();
                found.routes.push(*route);
            }
            Call::RemoveRoutes(RemoveRoutes { router, routes, .. }) => {
                let found = self.routers.iter_mut().find(|found| found.id == *router).unwrap();
                found.routes.retain(|route| !routes.contains(route));
            }
            Call::DeleteInstance(DeleteInstance { instance, .. }) => {
                self.instances.remove(instance.as_str());
                self.ports.remove(instance.as_str());
            }
            Call::DeleteNode(DeleteNode { name, .. }) => self.nodes.retain(|_, node| node.name != *name),
            _ => {}
        }
    }

    pub fn case(&self, id: &str, kind: FaultKind) -> Option<&Case> {
        let subject = Subject::Machine(MachineKey::Instance(CLOUD.into(), id.into()));
        self.state.context().cases.get(&IncidentKey { subject, kind })
    }

    pub fn machine_state(&self, id: &str) -> MachineState {
        self.state
            .machine_state(&MachineKey::Instance(CLOUD.into(), id.into()))
            .expect("the machine is known")
    }

    pub fn destructive_calls(&self) -> usize {
        self.calls.iter().filter(|call| call.is_destructive()).count()
    }

    /// Why nothing is done about a case, in the tool's own words.
    pub fn held(&self, id: &str, kind: FaultKind) -> String {
        let case = self.case(id, kind).expect("the case is open");
        let decision = reveille_core::decide::decide(&self.state.context(), case);
        let lines = decision.held.iter().flat_map(|(_, holds)| holds).map(ToString::to_string);
        lines.collect::<Vec<_>>().join("\n")
    }
}
