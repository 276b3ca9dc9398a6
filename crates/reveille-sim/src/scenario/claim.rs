//! Claims: whether one holds now, and what is true instead.

use reveille_core::decide::{self, Decision, Next};
use reveille_core::diagnose::machine_state::MachineState;
use reveille_core::effect::Call;
use reveille_core::event::PauseScope;
use reveille_core::model::cause::Cause;
use reveille_core::model::id::{InstanceId, PoolName};
use reveille_core::model::incident::{FaultKind, Incident, MachineKey, Subject};
use reveille_core::model::stage::Stage;
use reveille_core::observe::source::Trust;
use reveille_core::plan::context::Case;
use reveille_core::record::{Record, Verdict};
use reveille_core::remedies::{AskAgent, DeleteInstance, DeleteNode, Reboot, SetPortGroups, StartInstance};

use crate::world::layout::{CLOUD, GROUP};

use super::agent_claim::AgentClaim;
use super::counted::{self, Bound, Kind, is_of};
use super::scene::Scene;
use super::words::Machines;

/// Something that is so, or is not.
#[derive(Clone, Debug)]
pub(crate) enum Claim {
    Answers(Machines),
    Exists(Machines),
    Gone(Machines),
    Grouped(Machines),
    Cordoned(Machines),
    Size(PoolName, u32),
    AllWell,
    Called(&'static str, Machines),
    Absent(Machines, FaultKind),
    Present(Machines),
    Excused(Machines, String),
    CannotTell(Machines, String),
    NothingOpen,
    Open(FaultKind, Option<Machines>),
    Closed(FaultKind, Option<Machines>, Verdict),
    Cause(Machines, Cause),
    Stage(Machines, Stage),
    Evidence(Machines, String),
    Held(Machines, String),
    Next(Machines, String),
    Asked(Machines, String),
    GivenUp(Machines),
    /// The cloud's word, or the cluster's.
    Disbelieved(bool, String),
    /// A pool is paused for a reason that says this.
    Paused(PoolName, String),
    /// The roster's file has so many mistakes.
    Mistakes(u32),
    /// It is refused at this field, for a reason that says this.
    Refused(String, String),
    Dropped(String),
    /// Of agents on the machines.
    Agent(Machines, AgentClaim),
    Replayed,
    Count(Bound, Kind),
}

impl Claim {
    /// Whom it is about, when it is about machines.
    const fn machines(&self) -> Option<&Machines> {
        match self {
            Self::Answers(who)
            | Self::Exists(who)
            | Self::Gone(who)
            | Self::Grouped(who)
            | Self::Cordoned(who)
            | Self::Called(_, who)
            | Self::Absent(who, _)
            | Self::Present(who)
            | Self::Excused(who, _)
            | Self::CannotTell(who, _)
            | Self::Open(_, Some(who))
            | Self::Closed(_, Some(who), _)
            | Self::Cause(who, _)
            | Self::Stage(who, _)
            | Self::Evidence(who, _)
            | Self::Held(who, _)
            | Self::Next(who, _)
            | Self::Asked(who, _)
            | Self::Agent(who, _)
            | Self::GivenUp(who) => Some(who),
            _ => None,
        }
    }

    /// True when it is about what Reveille says, and not about the world.
    pub(crate) const fn is_word(&self) -> bool {
        !matches!(
            self,
            Self::Answers(_)
                | Self::Exists(_)
                | Self::Gone(_)
                | Self::Grouped(_)
                | Self::Cordoned(_)
                | Self::Size(..)
                | Self::AllWell
                | Self::Called(..)
                | Self::Agent(..)
                | Self::Replayed
                | Self::Mistakes(_)
                | Self::Refused(..)
                | Self::Count(..)
        )
    }

    /// True when it holds now.
    pub(crate) fn holds(&self, scene: Scene<'_>) -> bool {
        let Some(who) = self.machines() else { return self.holds_at_large(scene) };
        let names = scene.cast.named(who, scene.drive);
        let mut each =
            names.iter().map(|name| scene.cast.id(name).is_some_and(|id| self.holds_for(scene, id)));
        if scene.any { each.any(|holds| holds) } else { !names.is_empty() && each.all(|holds| holds) }
    }

    fn holds_at_large(&self, scene: Scene<'_>) -> bool {
        let drive = scene.drive;
        let context = drive.state().context();
        match self {
            Self::Size(pool, size) => scene.size(pool) == *size,
            Self::AllWell => drive.world.all_is_well(),
            Self::NothingOpen => context.cases.is_empty(),
            Self::Open(kind, _) => context.cases.keys().any(|key| key.kind == *kind),
            Self::Closed(kind, _, verdict) => drive
                .state()
                .closed()
                .any(|closed| closed.incident.key.kind == *kind && closed.verdict == *verdict),
            Self::Disbelieved(cloud, text) => {
                matches!(scene.trust(*cloud), Trust::No(why) if why.contains(text.as_str()))
            }
            Self::Paused(pool, text) => scene.pauses_of(pool).any(|reason| reason.contains(text)),
            // A play has a roster that was accepted.
            Self::Mistakes(count) => *count == 0,
            Self::Refused(..) => false,
            Self::Dropped(text) => scene.kept.records.iter().any(|(at, record)| {
                *at >= scene.from
                    && matches!(record, Record::Dropped { why, .. } if why.to_string().contains(text.as_str()))
            }),
            Self::Count(bound, kind) => bound.holds(counted::count(*kind, scene.from, drive, scene.kept)),
            // The player compares a second play when the first is over.
            _ => true,
        }
    }

    fn holds_for(&self, scene: Scene<'_>, id: &InstanceId) -> bool {
        let machine = || scene.drive.world.machine(id);
        match self {
            Self::Answers(_) => machine().is_some_and(|machine| machine.well),
            Self::Exists(_) => machine().is_some(),
            Self::Gone(_) => machine().is_none(),
            Self::Grouped(_) => machine().is_some_and(|machine| {
                machine.groups.iter().all(|port| port.iter().any(|group| group.as_str() == GROUP))
            }),
            Self::Cordoned(_) => machine().is_some_and(|machine| machine.cordoned),
            Self::Called(kind, _) => scene.called(kind, id),
            Self::Absent(_, kind) => {
                matches!(scene.machine_state(id), Some(MachineState::Absent(absence)) if absence.kind == *kind)
            }
            Self::Present(_) => matches!(scene.machine_state(id), Some(MachineState::Answers)),
            Self::Excused(_, text) => match scene.machine_state(id) {
                Some(machine_state @ (MachineState::Excused(_) | MachineState::Starting(_))) => {
                    machine_state.to_string().contains(text.as_str())
                }
                _ => false,
            },
            Self::CannotTell(_, text) => match scene.machine_state(id) {
                Some(MachineState::CannotTell(why)) => why.to_string().contains(text.as_str()),
                _ => false,
            },
            Self::Open(kind, _) => scene.cases(id).any(|case| case.incident.key.kind == *kind),
            Self::Closed(kind, _, verdict) => scene.drive.state().closed().any(|closed| {
                of(&closed.incident, id) && closed.incident.key.kind == *kind && closed.verdict == *verdict
            }),
            Self::Cause(_, cause) => scene
                .incidents(id)
                .any(|i| i.findings.first().is_some_and(|f| f.cause.code() == cause.code())),
            Self::Stage(_, stage) => {
                scene.incidents(id).any(|i| i.findings.first().is_some_and(|f| f.stage == *stage))
            }
            Self::Evidence(_, text) => scene.incidents(id).any(|incident| {
                let findings = incident.findings.iter();
                findings
                    .flat_map(|f| f.evidence.iter().chain(&f.against))
                    .any(|e| e.fact.to_string().contains(text.as_str()))
            }),
            Self::Held(_, text) => scene.decisions(id).any(|decision| {
                let stopped = matches!(decision.next, Next::Held { .. } | Next::Ask(_));
                let blockers = decision.held.iter().flat_map(|(_, blockers)| blockers);
                stopped
                    && blockers
                        .map(|blocker| scene.cast.plain(&blocker.to_string()))
                        .any(|blocker| blocker.contains(text))
            }),
            Self::Next(_, text) => scene.decisions(id).any(|decision| scene.next(&decision).contains(text)),
            Self::Asked(_, text) => scene
                .decisions(id)
                .any(|decision| matches!(&decision.next, Next::Ask(how) if how.contains(text.as_str()))),
            Self::Agent(_, claim) => claim.holds(&scene, id),
            Self::GivenUp(_) => scene.cases(id).any(|case| case.incident.given_up),
            _ => false,
        }
    }

    /// What is so instead.
    pub(crate) fn tell(&self, scene: Scene<'_>) -> String {
        if let Some(who) = self.machines() {
            let names = scene.cast.named(who, scene.drive);
            let odd = names.iter().find(|name| {
                let holds = scene.cast.id(name).is_some_and(|id| self.holds_for(scene, id));
                holds == scene.any
            });
            let Some(name) = odd.or(names.first()) else { return "there is no such machine".to_owned() };
            let Some(id) = scene.cast.id(name) else { return format!("{name} has not been made by then") };
            return self.tell_of(scene, name, id);
        }
        let context = scene.drive.state().context();
        match self {
            Self::Size(pool, _) => format!("pool {pool} has {} machines", scene.size(pool)),
            Self::AllWell => {
                let all = scene.drive.world.machines().into_iter();
                let ill = all.filter(|machine| machine.pool.is_some() && !machine.well);
                let ill: Vec<String> = ill.map(|machine| scene.cast.name(&machine.id)).collect();
                if ill.is_empty() {
                    "a pool's size, a rule or a route is wrong".to_owned()
                } else {
                    format!("not well: {}", ill.join(", "))
                }
            }
            Self::NothingOpen | Self::Open(..) => {
                let open = context
                    .cases
                    .keys()
                    .map(|key| format!("{} of {}", key.kind, scene.cast.plain(&key.subject.to_string())));
                let open: Vec<String> = open.take(6).collect();
                if open.is_empty() {
                    "no incident is open".to_owned()
                } else {
                    format!("open: {}", open.join(", "))
                }
            }
            Self::Closed(kind, ..) => {
                let closed = scene.drive.state().closed().filter(|closed| closed.incident.key.kind == *kind);
                let closed: Vec<&str> = closed.map(|closed| closed.verdict.name()).collect();
                if closed.is_empty() {
                    format!("no {kind} incident was closed")
                } else {
                    format!("closed as {}", closed.join(", "))
                }
            }
            Self::Disbelieved(cloud, _) => match scene.trust(*cloud) {
                Trust::Since(_) => "it is believed".to_owned(),
                Trust::No(why) => format!("it is not believed: {why}"),
            },
            Self::Paused(pool, _) => {
                let reasons: Vec<String> = scene.pauses_of(pool).collect();
                if reasons.is_empty() { format!("pool {pool} is not paused") } else { reasons.join("; ") }
            }
            Self::Mistakes(_) | Self::Refused(..) => "the roster is accepted".to_owned(),
            Self::Dropped(_) => {
                let dropped = scene.kept.records.iter().filter_map(|(_, record)| match record {
                    Record::Dropped { why, .. } => Some(why.to_string()),
                    _ => None,
                });
                let dropped: Vec<String> = dropped.collect();
                if dropped.is_empty() { "no intent was dropped".to_owned() } else { dropped.join("; ") }
            }
            Self::Count(_, kind) => {
                counted::tell(*kind, scene.from, scene.start, scene.drive, scene.cast, scene.kept)
            }
            _ => "it is not so".to_owned(),
        }
    }

    fn tell_of(&self, scene: Scene<'_>, name: &str, id: &InstanceId) -> String {
        match self {
            Self::Answers(_) | Self::Exists(_) | Self::Gone(_) | Self::Grouped(_) | Self::Cordoned(_) => {
                match scene.drive.world.machine(id) {
                    None => format!("{name} is gone"),
                    Some(machine) => {
                        let word = if machine.well { "answers" } else { "does not answer" };
                        format!("{name} exists ({:?}) and {word}", machine.state)
                    }
                }
            }
            Self::Called(..) => counted::tell(
                Kind::Call("call"),
                scene.from,
                scene.start,
                scene.drive,
                scene.cast,
                scene.kept,
            ),
            Self::Absent(..) | Self::Present(_) | Self::Excused(..) | Self::CannotTell(..) => {
                match scene.machine_state(id) {
                    None => format!("Reveille does not know {name}"),
                    Some(MachineState::Answers) => format!("{name} counts as present"),
                    Some(machine_state @ (MachineState::Excused(_) | MachineState::Starting(_))) => {
                        format!("{name} is excused: {machine_state}")
                    }
                    Some(MachineState::CannotTell(why)) => format!("the state of {name} is unknown: {why}"),
                    Some(MachineState::Absent(absence)) => format!("{name} is absent as {}", absence.kind),
                }
            }
            Self::Agent(_, claim) => claim.tell(&scene, name, id),
            _ => scene.tell_incidents(name, id),
        }
    }
}

fn of(incident: &Incident, id: &InstanceId) -> bool {
    matches!(&incident.key.subject, Subject::Machine(MachineKey::Instance(_, own)) if own == id)
}

impl<'a> Scene<'a> {
    fn machine_state(&self, id: &InstanceId) -> Option<MachineState> {
        self.drive.state().machine_state(&MachineKey::Instance(CLOUD.into(), id.clone()))
    }

    fn trust(&self, cloud: bool) -> Trust {
        let context = self.drive.state().context();
        let of_cloud = || context.clouds.values().next().map(|cloud| cloud.source.trust(context.now));
        let trust = if cloud { of_cloud() } else { None };
        trust.unwrap_or_else(|| context.cluster.source.trust(context.now))
    }

    fn pauses_of(&self, pool: &PoolName) -> impl Iterator<Item = String> {
        let pauses = self.drive.state().context().pauses.iter();
        let of_pool = pauses
            .filter(move |pause| matches!(&pause.scope, PauseScope::Pool(name) if **name == *pool.as_str()));
        of_pool.map(|pause| pause.reason.to_string())
    }

    fn size(&self, pool: &PoolName) -> u32 {
        let machines = self.drive.world.machines().into_iter();
        machines.filter(|m| m.pool.as_ref() == Some(pool) && !m.state.is_leaving()).count() as u32
    }

    /// Open cases about an instance, and about a node of the same name that no instance stands behind.
    fn cases(&self, id: &'a InstanceId) -> impl Iterator<Item = &'a Case> {
        let name = self.cast.name(id);
        self.drive.state().context().cases.values().filter(move |case| {
            let node = matches!(&case.incident.key.subject, Subject::Machine(MachineKey::Node(node)) if node.as_str() == name);
            node || of(&case.incident, id)
        })
    }

    fn incidents(&self, id: &'a InstanceId) -> impl Iterator<Item = &'a Incident> {
        let closed = self.drive.state().closed().map(|closed| &closed.incident).filter(move |i| of(i, id));
        self.cases(id).map(|case| &case.incident).chain(closed)
    }

    fn decisions(&self, id: &'a InstanceId) -> impl Iterator<Item = Decision> {
        let context = self.drive.state().context();
        self.cases(id).map(move |case| decide::decide(&context, case))
    }

    fn called(&self, kind: &str, id: &InstanceId) -> bool {
        let name = self.cast.name(id);
        let port = |port: &str| self.cast.plain(port) == format!("of {name}");
        self.drive
            .world
            .calls()
            .iter()
            .filter(|called| called.at >= self.from && is_of(&called.call, kind))
            .any(|called| match &called.call {
                Call::AskAgent(AskAgent { instance, .. })
                | Call::Reboot(Reboot { instance, .. })
                | Call::DeleteInstance(DeleteInstance { instance, .. })
                | Call::Start(StartInstance { instance, .. }) => instance == id,
                Call::DeleteNode(DeleteNode { name: node, .. }) => node.as_str() == name,
                Call::SetPortGroups(SetPortGroups { port: of, .. }) => port(of.as_str()),
                _ => false,
            })
    }

    /// What is next, in words.
    pub(crate) fn next(&self, decision: &Decision) -> String {
        let text = match &decision.next {
            Next::Act { repair_step, .. } | Next::Held { repair_step, .. } => repair_step.says().to_owned(),
            Next::Wait { why, .. } => format!("wait: {why}"),
            Next::Gather(_) => "read the evidence".to_owned(),
            Next::UnderWay(_) => "what is under way".to_owned(),
            Next::Blind(why) => format!("nothing, because nothing can be told: {why}"),
            Next::Ask(how) => format!("ask a person: {how}"),
            Next::Well => "nothing: it looks well".to_owned(),
        };
        self.cast.plain(&text)
    }

    fn tell_incidents(&self, name: &str, id: &'a InstanceId) -> String {
        let context = self.drive.state().context();
        let open = self.cases(id).map(|case| {
            let decision = decide::decide(&context, case);
            let cause = case.incident.cause();
            let held = decision.held.iter().flat_map(|(_, blockers)| blockers);
            let held: Vec<String> = held.map(|blocker| self.cast.plain(&blocker.to_string())).collect();
            let held =
                if held.is_empty() { String::new() } else { format!("; held back: {}", held.join("; ")) };
            format!(
                "{} of {name} is open, {} ({cause}); next: {}{held}",
                case.incident.key.kind,
                cause.code(),
                self.next(&decision)
            )
        });
        let open: Vec<String> = open.collect();
        if !open.is_empty() {
            return open.join(" / ");
        }
        let closed = self.drive.state().closed().filter(|closed| of(&closed.incident, id)).map(|closed| {
            let cause = closed.incident.cause();
            format!("{} of {name} is closed as {} ({cause})", closed.incident.key.kind, closed.verdict.name())
        });
        let closed: Vec<String> = closed.collect();
        if closed.is_empty() {
            format!("no incident of {name} is open, none was closed")
        } else {
            closed.join(" / ")
        }
    }
}
