//! One machine as a row: whether it is Ready, its stage, since when, and its problem in one line.
//!
//! A machine may have several open problems; the row has the one to act on. A network problem that explains a missing
//! Node comes before the missing Node, and a missing Node comes before smaller problems.

use std::sync::Arc;

use reveille_core::diagnose::absence;
use reveille_core::diagnose::machine_state::MachineState;
use reveille_core::model::cause::Cause;
use reveille_core::model::id::NodeName;
use reveille_core::model::incident::{FaultKind, IncidentKey, MachineKey, Subject};
use reveille_core::model::stage::Stage;
use reveille_core::model::time::Time;
use reveille_core::observe::cloud::{CloudView, Seen};
use reveille_core::plan::context::{Case, PlanContext};
use reveille_core::record::Verdict;
use reveille_wire::report::{Ago, Answers, MachineReport, key_text};

/// A machine with all its open problems.
pub(crate) struct Machine<'a> {
    /// Its identity.
    pub(crate) key: MachineKey,
    /// The state of the machine; `None` for a Node without an instance.
    pub(crate) machine_state: Option<MachineState>,
    /// Its cloud and instance, where there is one.
    pub(crate) seen: Option<(&'a CloudView, &'a Seen)>,
    /// Whether the data source that would show it, its cloud or the cluster, can be believed now.
    pub(crate) is_read: bool,
    /// Its open incidents, the one to act on first.
    pub(crate) cases: Vec<&'a Case>,
}

/// Every machine of the roster: all instances with a cluster mark, and Nodes without an instance that have a problem.
pub(crate) fn all<'a>(context: &PlanContext<'a>) -> Vec<Machine<'a>> {
    let mut keys: Vec<MachineKey> = Vec::new();
    for (cloud, view) in context.clouds {
        keys.extend(view.instances.keys().map(|id| MachineKey::Instance(cloud.clone(), id.clone())));
    }
    for key in context.cases.keys() {
        if let Subject::Machine(machine) = &key.subject
            && context.seen(machine).is_none()
            && keys.last() != Some(machine)
        {
            keys.push(machine.clone());
        }
    }
    keys.into_iter().map(|key| one(context, key)).collect()
}

/// One machine.
pub(crate) fn one<'a>(context: &PlanContext<'a>, key: MachineKey) -> Machine<'a> {
    let seen = context.seen(&key);
    let machine_state = seen.map(|(cloud, seen)| absence::judge_instance(context.judge_context(cloud), seen));
    let subject = Subject::Machine(key.clone());
    let first = IncidentKey { subject: subject.clone(), kind: FaultKind::ALL[0] };
    let last = IncidentKey { subject, kind: FaultKind::ALL[FaultKind::ALL.len() - 1] };
    let mut cases: Vec<&Case> = context.cases.range(first..=last).map(|(_, case)| case).collect();
    let absent = matches!(machine_state, Some(MachineState::Absent(_)) | None);
    // Of several problems the one at the earliest stage comes first: without a security group, pod ranges do not matter yet.
    let stage = |case: &Case| case.incident.findings.first().map(|finding| finding.stage);
    cases.sort_by_key(|case| (rank(case, absent), stage(case), case.incident.id));
    let source = match &key {
        MachineKey::Instance(cloud, _) => context.clouds.get(cloud).map(|view| &view.source),
        MachineKey::Node(_) => Some(&context.cluster.source),
    };
    let is_read = source.is_some_and(|source| source.trust(context.now).is_given());
    Machine { key, machine_state, seen, is_read, cases }
}

/// A problem that explains another one comes before it.
const fn rank(case: &Case, absent: bool) -> u8 {
    let kind = case.incident.key.kind;
    let explains = matches!(kind, FaultKind::GroupMissing | FaultKind::PairMissing | FaultKind::MissingRoute);
    match (case.incident.well_since.is_some(), kind.is_absence()) {
        (true, _) => 3,
        (false, false) if absent && explains && !case.incident.given_up => 0,
        (false, true) => 1,
        (false, false) => 2,
    }
}

impl<'a> Machine<'a> {
    /// Its name for people: the instance's, else its id, else the Node's.
    pub(crate) fn name(&self) -> Arc<str> {
        match (self.seen, &self.key) {
            (Some((_, seen)), _) if !seen.instance.name.as_str().is_empty() => seen.instance.name.shared(),
            (_, MachineKey::Instance(_, id)) => self.label().unwrap_or_else(|| id.shared()),
            (_, MachineKey::Node(name)) => name.shared(),
        }
    }

    fn label(&self) -> Option<Arc<str>> {
        self.cases.first().map(|case| case.incident.label.clone())
    }

    /// The incident to act on: the first that has not recovered.
    pub(crate) fn root(&self) -> Option<&'a Case> {
        self.cases.iter().copied().find(|case| case.incident.well_since.is_none())
    }

    /// The incident of a missing or not Ready Node, if it is open.
    pub(crate) fn absence(&self) -> Option<&'a Case> {
        let open = |case: &&Case| case.incident.well_since.is_none() && case.incident.key.kind.is_absence();
        self.cases.iter().copied().find(open)
    }

    /// The name of its Node.
    pub(crate) fn node(&self) -> Option<NodeName> {
        match (self.seen, &self.key) {
            (Some((_, seen)), _) => seen.nodes.first().cloned(),
            (None, MachineKey::Node(name)) => Some(name.clone()),
            (None, MachineKey::Instance(..)) => None,
        }
    }

    /// Whether the machine is Ready.
    pub(crate) fn answers(&self) -> Answers {
        match &self.machine_state {
            Some(MachineState::Answers) => Answers::Yes,
            Some(MachineState::Absent(_)) => Answers::No,
            Some(MachineState::CannotTell(_)) => Answers::Unknown,
            Some(MachineState::Excused(_) | MachineState::Starting(_)) => Answers::Excused,
            // A Node without an instance is listed only because it has a problem. While its source cannot be read, the ledger
            // alone tells of the machine, and a machine that was Ready with a port at fault may be Ready.
            None if self.is_read && self.root().is_some() => Answers::No,
            None => Answers::Unknown,
        }
    }

    /// The stage of the machine.
    pub(crate) fn stage(&self) -> Option<Stage> {
        match self.answers() {
            Answers::Yes => Some(Stage::Stay),
            Answers::Excused if matches!(self.machine_state, Some(MachineState::Starting(_))) => {
                Some(Stage::Ready)
            }
            Answers::Unknown | Answers::Excused => None,
            Answers::No => {
                match (self.root().and_then(|case| case.incident.findings.first()), &self.machine_state) {
                    (Some(finding), _) => Some(finding.stage),
                    (None, Some(MachineState::Absent(absence))) => Some(absence.finding.stage),
                    (None, _) => None,
                }
            }
        }
    }

    /// Its row.
    pub(crate) fn report(&self, context: &PlanContext<'a>) -> MachineReport {
        let answers = self.answers();
        let root = self.root();
        let state = match (answers, root, &self.machine_state) {
            (Answers::Excused, _, Some(MachineState::Starting(_))) => "starting".to_owned(),
            (Answers::Excused, ..) => "excused".to_owned(),
            (Answers::Unknown, ..) => "unknown".to_owned(),
            (Answers::No, _, Some(MachineState::Absent(absence))) => absence.kind.name().to_owned(),
            (_, Some(case), _) => case.incident.key.kind.name().to_owned(),
            (_, None, _) => "ready".to_owned(),
        };
        let node = self.node();
        let node_zone = || node.as_ref().and_then(|name| context.cluster.nodes.get(name)?.node.zone.clone());
        let zone = self.seen.and_then(|(_, seen)| seen.instance.zone.clone()).or_else(node_zone);
        let (cloud, instance) = match &self.key {
            MachineKey::Instance(cloud, id) => (Some(cloud.to_string()), Some(id.to_string())),
            MachineKey::Node(_) => (None, None),
        };
        MachineReport {
            name: self.name().to_string(),
            key: key_text(&self.key),
            pool: self.seen.and_then(|(_, seen)| seen.pool()).map(ToString::to_string),
            zone: zone.map(|zone| zone.to_string()),
            answers,
            stage: self.stage().map(|stage| stage.name().to_owned()),
            state,
            since: self.since(context).map(|at| Ago::new(at, context.now)),
            what: self.what(context),
            node: node.map(|node| node.to_string()),
            instance,
            cloud,
        }
    }

    fn since(&self, context: &PlanContext<'a>) -> Option<Time> {
        let opened = || self.absence().or_else(|| self.root()).map(|case| case.incident.first_seen);
        let ready_since = || self.node().and_then(|name| Some(context.cluster.nodes.get(&name)?.ready_since));
        let seen = self.seen.map(|(_, seen)| seen);
        match self.answers() {
            Answers::No => opened(),
            Answers::Yes => match self.root() {
                Some(case) => Some(case.incident.first_seen),
                None => ready_since(),
            },
            Answers::Excused => match &self.machine_state {
                Some(MachineState::Starting(_)) => ready_since(),
                _ => seen.map(|seen| seen.state_since),
            },
            Answers::Unknown => seen.and_then(|seen| Some(seen.unlisted?.since)).or_else(opened),
        }
    }

    /// The problem in one line; empty when there is none.
    fn what(&self, context: &PlanContext<'_>) -> String {
        match (&self.machine_state, self.root()) {
            (Some(MachineState::CannotTell(why)), _) => super::blind_words(context, &why.to_string()),
            (Some(machine_state @ (MachineState::Excused(_) | MachineState::Starting(_))), _) => {
                machine_state.to_string()
            }
            (Some(MachineState::Absent(absence)), root) => {
                let finding =
                    root.and_then(|case| case.incident.findings.first()).unwrap_or(&absence.finding);
                describe(absence.kind, &finding.cause)
            }
            (Some(MachineState::Answers), Some(case)) => {
                format!("Ready, but {}", case_clause(case))
            }
            (None, Some(case)) => describe(case.incident.key.kind, case.incident.cause()),
            (Some(MachineState::Answers) | None, None) => String::new(),
        }
    }
}

/// The problem of an incident, as a clause.
pub(crate) fn case_clause(case: &Case) -> String {
    match case.incident.findings.first() {
        Some(finding) if finding.cause != Cause::Unknown => finding.cause.says().to_owned(),
        _ => kind_words(case.incident.key.kind).to_owned(),
    }
}

/// A kind of problem and its cause in one line, without repetition.
fn describe(kind: FaultKind, cause: &Cause) -> String {
    let words = kind_words(kind);
    match (kind, cause) {
        (_, Cause::Unknown) => format!("{words}; {}", Cause::Unknown.says()),
        // Here the cause says everything that the kind says, and more.
        (
            FaultKind::NotReady
            | FaultKind::Errored
            | FaultKind::StuckBuilding
            | FaultKind::StuckDeleting
            | FaultKind::Duplicate
            | FaultKind::Stopped
            | FaultKind::NotInService
            | FaultKind::StuckLeaving
            | FaultKind::Stray,
            cause,
        ) => cause.says().to_owned(),
        (_, cause) => format!("{words}: {}", cause.says()),
    }
}

/// How an incident ended, in plain words. Reports for programs have [`Verdict::name`].
pub(crate) const fn verdict_words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Mended => "repaired",
        Verdict::Recovered => "recovered",
        Verdict::SubjectGone => "gone",
        Verdict::Superseded => "superseded by another incident",
    }
}

/// The same for a verdict that a report names; a name that this version does not know stands for itself.
pub(crate) fn verdict_words_of(name: &str) -> &str {
    let all = [Verdict::Mended, Verdict::Recovered, Verdict::SubjectGone, Verdict::Superseded];
    let known = all.into_iter().find(|verdict| verdict.name() == name);
    if let Some(verdict) = known { verdict_words(verdict) } else { name }
}

/// A kind of problem in plain words.
pub(crate) const fn kind_words(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::NeverJoined => "never joined",
        FaultKind::Vanished => "joined, but its Node was deleted",
        FaultKind::NotReady => "NotReady",
        FaultKind::Ghost => "Node without an instance",
        FaultKind::Stray => "matches no pool",
        FaultKind::Errored => "instance in state ERROR",
        FaultKind::StuckBuilding => "stuck building",
        FaultKind::StuckDeleting => "stuck deleting",
        FaultKind::Duplicate => "duplicate identity",
        FaultKind::Stopped => "shut off",
        FaultKind::NotInService => "Ready, but a startup taint stays",
        FaultKind::StuckLeaving => "stuck in removal",
        FaultKind::GroupMissing => "a port is missing a security group",
        FaultKind::RulesMissing => "no rules for pod traffic",
        FaultKind::GroupUnresolved => "security group not found, or ambiguous",
        FaultKind::Unreachable => "pods unreachable",
        FaultKind::DuplicateRoute => "several routes to one pod range",
        FaultKind::MissingRoute => "no route to its pods",
        FaultKind::RouteLimit => "route limit reached",
        FaultKind::PairMissing => "its port does not allow its pod range",
        FaultKind::NudgeLeftover => "holds what an interrupted nudge left",
        FaultKind::SourceSuspect => "says what cannot be true",
        FaultKind::RolesMissing => "lacks a role on the project",
        FaultKind::RolesUnreadable => "its roles cannot be read",
        FaultKind::ProviderNotice => "its provider says something of it",
    }
}
