//! The types for "a subject has a problem": machine, subject, fault, finding, incident.
//!
//! An [`Incident`] is one fault of one subject from first sight to verdict. The engine remembers nothing else, and the
//! ledger stores nothing else: a healthy machine has no entry.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::access::UserRef;
use super::attempt::Attempt;
use super::call::Call;
use super::cause::Cause;
use super::evidence::{Evidence, Source};
use super::id::{CloudName, GroupId, IncidentId, InstanceId, IntentId, NodeName, PoolName, RouterId};
use super::stage::Stage;
use super::time::Time;

/// One row of the status report: an instance with or without its node, or a node without an instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum MachineKey {
    /// Known by its instance; the instance's id is its identity for life.
    Instance(CloudName, InstanceId),
    /// A node that no instance stands behind.
    Node(NodeName),
}

impl fmt::Display for MachineKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instance(_, id) => f.pad(id.as_str()),
            Self::Node(name) => f.pad(name.as_str()),
        }
    }
}

/// What an incident is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Subject {
    /// One machine.
    Machine(MachineKey),
    /// A security group of a cloud.
    Group(CloudName, GroupId),
    /// A router of a cloud.
    Router(CloudName, RouterId),
    /// A service user of a cloud, as the roster names it.
    User(CloudName, Arc<UserRef>),
    /// A pool as a whole.
    Pool(PoolName),
    /// A cloud as a source of truth.
    Cloud(CloudName),
    /// The cluster's API as a source of truth.
    Cluster,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine(key) => write!(f, "{key}"),
            Self::Group(_, id) => write!(f, "group {id}"),
            Self::Router(_, id) => write!(f, "router {id}"),
            Self::User(_, user) => write!(f, "user {user}"),
            Self::Pool(name) => write!(f, "pool {name}"),
            Self::Cloud(name) => write!(f, "cloud {name}"),
            Self::Cluster => f.write_str("cluster"),
        }
    }
}

/// What is wrong with a subject: one kind, one way of handling it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// A running instance that no node ever stood for.
    NeverJoined,
    /// It joined once; its node is gone and the instance lives.
    Vanished,
    /// Its node is there and not Ready.
    NotReady,
    /// A node whose instance is gone, asked by id.
    Ghost,
    /// An instance that carries the cluster's mark and that no pool claims.
    Stray,
    /// The cloud says ERROR.
    Errored,
    /// Building for too long.
    StuckBuilding,
    /// Deleting for too long.
    StuckDeleting,
    /// Two claim one identity.
    Duplicate,
    /// Shut off.
    Stopped,
    /// Its node is Ready and carries a startup taint: it has joined and is not in service.
    NotInService,
    /// A client removes its Node, and the Node does not go: a drain that hangs.
    StuckLeaving,
    /// A port lacks a group.
    GroupMissing,
    /// A group lacks pod rules.
    RulesMissing,
    /// The roster's group is not exactly one group.
    GroupUnresolved,
    /// The node says that its pods cannot be reached.
    Unreachable,
    /// Several routes to one pod range.
    DuplicateRoute,
    /// No route to a node's pod range.
    MissingRoute,
    /// The router is full, or will be.
    RouteLimit,
    /// A port does not allow its node's pod range.
    PairMissing,
    /// A leftover of an interrupted nudge.
    NudgeLeftover,
    /// A source says what cannot be true.
    SourceSuspect,
    /// A service user lacks a role.
    RolesMissing,
    /// The cloud does not let the controller read which roles a service user holds.
    RolesUnreadable,
    /// The provider announced something, or its checks failed on a machine that answers.
    ProviderNotice,
}

impl FaultKind {
    /// Every kind.
    pub const ALL: [Self; 25] = [
        Self::NeverJoined,
        Self::Vanished,
        Self::NotReady,
        Self::Ghost,
        Self::Stray,
        Self::Errored,
        Self::StuckBuilding,
        Self::StuckDeleting,
        Self::Duplicate,
        Self::Stopped,
        Self::NotInService,
        Self::StuckLeaving,
        Self::GroupMissing,
        Self::RulesMissing,
        Self::GroupUnresolved,
        Self::Unreachable,
        Self::DuplicateRoute,
        Self::MissingRoute,
        Self::RouteLimit,
        Self::PairMissing,
        Self::NudgeLeftover,
        Self::SourceSuspect,
        Self::RolesMissing,
        Self::RolesUnreadable,
        Self::ProviderNotice,
    ];

    /// The word for it in tables, files and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NeverJoined => "never-joined",
            Self::Vanished => "vanished",
            Self::NotReady => "not-ready",
            Self::Ghost => "ghost",
            Self::Stray => "stray",
            Self::Errored => "errored",
            Self::StuckBuilding => "stuck-building",
            Self::StuckDeleting => "stuck-deleting",
            Self::Duplicate => "duplicate",
            Self::Stopped => "stopped",
            Self::NotInService => "not-in-service",
            Self::StuckLeaving => "stuck-leaving",
            Self::GroupMissing => "group-missing",
            Self::RulesMissing => "rules-missing",
            Self::GroupUnresolved => "group-unresolved",
            Self::Unreachable => "unreachable",
            Self::DuplicateRoute => "duplicate-route",
            Self::MissingRoute => "missing-route",
            Self::RouteLimit => "route-limit",
            Self::PairMissing => "pair-missing",
            Self::NudgeLeftover => "nudge-leftover",
            Self::SourceSuspect => "source-suspect",
            Self::RolesMissing => "roles-missing",
            Self::RolesUnreadable => "roles-unreadable",
            Self::ProviderNotice => "provider-notice",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// True when a machine with this fault is not Ready.
    pub const fn is_absence(self) -> bool {
        matches!(
            self,
            Self::NeverJoined
                | Self::Vanished
                | Self::NotReady
                | Self::Ghost
                | Self::Stray
                | Self::Errored
                | Self::StuckBuilding
                | Self::StuckDeleting
                | Self::Duplicate
                | Self::Stopped
                | Self::NotInService
                | Self::StuckLeaving
        )
    }

    /// True when its instance runs: its Node has the problem, or is missing.
    pub const fn is_of_one_that_runs(self) -> bool {
        matches!(self, Self::NeverJoined | Self::Vanished | Self::NotReady | Self::NotInService)
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What was concluded, and from what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Finding {
    /// Why.
    pub cause: Cause,
    /// Where the machine stopped; usually the cause's own stage.
    pub stage: Stage,
    /// How sure.
    pub confidence: Confidence,
    /// What speaks for it, strongest first. Bounded.
    pub evidence: Vec<Evidence>,
    /// What speaks against it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<Evidence>,
    /// What follows from it and ends with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub follows: Vec<Self>,
}

impl Finding {
    /// At its cause's usual stage, with nothing against it and nothing that follows.
    pub fn new(cause: Cause, confidence: Confidence, evidence: Vec<Evidence>) -> Self {
        let stage = cause.stage();
        Self { cause, stage, confidence, evidence, against: Vec::new(), follows: Vec::new() }
    }

    /// All lines that prove it are of events. Each kubelet may write events about every Node: they explain a problem, and take no
    /// repair away and permit none.
    pub fn is_of_events_alone(&self) -> bool {
        let mut lines = self.evidence.iter().filter(|evidence| evidence.line.is_some()).peekable();
        lines.peek().is_some() && lines.all(|evidence| evidence.source == Source::Events)
    }
}

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// A guess from what is missing.
    Possible,
    /// Symptoms that mostly mean this.
    Likely,
    /// The object itself says so.
    Sure,
}

impl Confidence {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Possible => "possible",
            Self::Likely => "likely",
            Self::Sure => "sure",
        }
    }
}

/// Key of an open incident: a subject has at most one open incident of a kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IncidentKey {
    /// About what.
    pub subject: Subject,
    /// What is wrong.
    #[serde(rename = "fault")]
    pub kind: FaultKind,
}

/// One fault from first sight to verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    /// Its number.
    pub id: IncidentId,
    /// Its subject, and what is wrong with it.
    pub key: IncidentKey,
    /// The pool that it is charged to, where there is one.
    pub pool: Option<PoolName>,
    /// The subject's name for people, as of the last sight.
    pub label: Arc<str>,
    /// When we first saw it, on our clock. For people; timers use `counted_from`.
    pub first_seen: Time,
    /// What the timers count from: first sight, or the return of sight after blindness, pause or jump.
    pub counted_from: Time,
    /// Since when it has looked well again, if it does.
    pub well_since: Option<Time>,
    /// What was concluded; the first is the one to act on.
    pub findings: Vec<Finding>,
    /// What was tried, in order. Bounded by the escalation: repair steps × tries, each time that it was well for long and was
    /// not confirmed.
    pub attempts: Vec<Attempt>,
    /// The repair step that the next try is on.
    pub repair_step: u8,
    /// Tries made on this repair step.
    pub tries: u32,
    /// Not before this.
    pub not_before: Option<Time>,
    /// Every repair step is used up: a person is asked, nothing more is tried.
    pub given_up: bool,
    /// A person asked for a repair without waiting.
    pub asked: Option<Asked>,
    /// Its machine is kept for a look, and not deleted before this.
    pub kept_until: Option<Time>,
}

/// A person's request for a repair now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// When we saw it.
    pub at: Time,
    /// In the person's words.
    pub value: Arc<str>,
}

impl Incident {
    /// One that was seen first just now, and for which nothing was tried.
    pub fn opened(
        id: IncidentId,
        key: IncidentKey,
        pool: Option<PoolName>,
        label: Arc<str>,
        at: Time,
    ) -> Self {
        Self {
            id,
            key,
            pool,
            label,
            first_seen: at,
            counted_from: at,
            well_since: None,
            findings: Vec::new(),
            attempts: Vec::new(),
            repair_step: 0,
            tries: 0,
            not_before: None,
            given_up: false,
            asked: None,
            kept_until: None,
        }
    }

    /// Why, as far as it is known by now.
    pub fn cause(&self) -> &Cause {
        self.findings.first().map_or(&Cause::Unknown, |finding| &finding.cause)
    }

    /// It goes on from here on its escalation, without what people wanted of it before.
    pub fn carry_over(&mut self, repair_step: u8, tries: u32, not_before: Option<Time>) {
        (self.repair_step, self.tries, self.not_before, self.given_up) =
            (repair_step, tries, not_before, false);
        (self.asked, self.kept_until) = (None, None);
    }

    /// A try begins. Of the same that was not made over and over, the last stays: it is tried for as long as the fault lasts.
    /// Of the same that was dropped over and over, the first stays as well. Returns the try whose place it took.
    pub fn begin_attempt(&mut self, intent: IntentId, call: Call, at: Time) -> Option<IntentId> {
        let again = self.was_dropped_twice();
        let takes = |last: &mut Attempt| last.was_not_made() || again;
        let replaced = self.attempts.pop_if(|last| takes(last) && last.call.is_same_change(&call));
        self.attempts.push(Attempt::new(intent, call, at));
        replaced.map(|attempt| attempt.intent)
    }

    /// The last two tries were dropped before their calls, and of the same kind.
    pub fn was_dropped_twice(&self) -> bool {
        let [.., before, last] = &self.attempts[..] else { return false };
        before.was_dropped() && last.was_dropped() && before.call.is_same_change(&last.call)
    }

    /// True while a person's request waits for a repair: nothing has come of what was begun for it since. A try that is not
    /// under way yet is no answer: what stands against it is asked once more, and must be the same as before.
    pub fn is_asked_for(&self) -> bool {
        let came = |it: &Attempt| it.ending.is_some() && !it.came_to_nothing();
        let answered = |asked: &Asked| self.attempts.iter().any(|it| it.at >= asked.at && came(it));
        self.asked.as_ref().is_some_and(|asked| !answered(asked))
    }
}
