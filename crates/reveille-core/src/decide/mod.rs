//! Stage four: answers "what next?" for one incident, completely and without changing anything.
//!
//! ```text
//!  incident ─▶ remedies::escalation(kind) ─▶ repair_step.call(..) ─▶ repair_step.blockers(..) ─▶ Decision
//! ```
//!
//! The checks are, in order: is a call under way, is a step left to try, is it time, does another fault explain this one,
//! is the evidence read. Then: which step is next, what exactly would be called, and what blocks it. The first check that
//! does not pass is the answer. The acting engine and the `plan` command both ask here.

pub mod advice;

use std::sync::Arc;

use crate::diagnose::gathered::evidence_query;
use crate::effect::{Call, Look};
use crate::model::attempt::{Attempt, Ending};
use crate::model::blocker::Blocker;
use crate::model::class::Class;
use crate::model::id::IntentId;
use crate::model::incident::{Confidence, FaultKind, Finding, IncidentKey, Subject};
use crate::model::instance::InstanceState;
use crate::model::roster::Mode;
use crate::model::time::{Span, Time};
use crate::observe::cloud::Unlisted;
use crate::observe::source::Trust;
use crate::remedies::{RepairStep, escalation, rejoin};
use crate::safeguard::{Safeguard, stands};

use crate::plan::context::{Case, PlanContext};
use crate::plan::{annotations, interlock};

/// What should happen next with a case, and everything that is held back meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What is next.
    pub next: Next,
    /// Repair steps that are not taken, and why. In order of the escalation.
    pub held: Vec<(RepairStep, Vec<Blocker>)>,
    /// Repair steps that would not help, and why.
    pub no_use: Vec<(RepairStep, Arc<str>)>,
    /// What a person is offered until then, and nothing after it: it is decided again then, whatever else holds it.
    pub offered_until: Option<Time>,
}

/// What is next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// This, now.
    Act {
        /// Which repair step.
        repair_step: RepairStep,
        /// The call, complete.
        call: Call,
    },
    /// This would be next; something stands against it (see `held`).
    Held {
        /// Which repair step.
        repair_step: RepairStep,
        /// The call, complete, when there is one.
        call: Option<Call>,
    },
    /// Nothing before this time, and why.
    Wait {
        /// Until when.
        until: Time,
        /// Why.
        why: Arc<str>,
    },
    /// First read these.
    Gather(Vec<Look>),
    /// An intent is on its way.
    UnderWay(IntentId),
    /// Nothing can be told, so nothing is decided.
    Blind(Arc<str>),
    /// Only a person can go on, and how.
    Ask(Arc<str>),
    /// It looks well; it closes by itself.
    Well,
}

impl Decision {
    fn just(next: Next) -> Self {
        Self { next, held: Vec::new(), no_use: Vec::new(), offered_until: None }
    }
}

/// A read that takes longer is not waited for. It is not asked for again before it is answered: performers answer each within a
/// minute, be it that it failed.
pub const EVIDENCE_WITHIN: Span = Span::from_min(2);
/// Evidence of an absence is read so long before its deadline: sixty machines that are due at once wait for 120 reads, sixteen
/// at a time, which took 1.2 s of a real EC2 API when they began at the deadline.
/// No earlier than that takes: a console that is read half a minute before a deadline lacks the last half minute of the boot,
/// and a first boot that fails in it was rebooted instead of replaced.
const READ_AHEAD: Span = Span::from_s(5);
/// Console and action log older than this are read again before something that can hurt.
const EVIDENCE_FRESH: Span = Span::from_min(10);
/// An action log older than this is read again before a reboot or a deletion: while rejoin is offered to a person, who reboots
/// the machine instead, the log that was read at the deadline grows five minutes old.
const LOG_FRESH: Span = Span::from_s(30);
/// "No such id" older than this is asked again before the Node of that instance is deleted: lists and cells come back.
const DENIAL_FRESH: Span = Unlisted::APART;
/// Connections outlive a group or a route that is taken away for minutes; a machine that serves for so long without one does not
/// need it.
const SERVED: Span = Span::from_min(30);
/// What a user was said to hold longer ago is asked again before it is given more.
const ROLES_FRESH: Span = Span::from_s(30);
/// A console that could not be read so often in a row is gone without.
const CONSOLE_TRIES: u32 = 3;

/// When the case is due: from first sight, or from when sight returned if that is later (docs/SAFETY.md, invariant 4).
///
/// For each process sight begins with its own first list. The ledger does not keep how long a source was blind in an earlier one:
/// a machine of bare metal that waits for an API server which was away for 40 minutes would be due at the first list after a
/// restart. So a machine that never joined, where a join takes an hour, is not repaired by a process that is restarted each fifty
/// minutes. The same is so of a build that hangs: an owner may have begun it again by a rebuild, which no record tells.
pub fn due_at(context: &PlanContext<'_>, case: &Case) -> Result<Option<Time>, Arc<str>> {
    let mut from = case.incident.counted_from;
    for trust in sources(context, case) {
        match trust {
            Trust::No(why) => return Err(why),
            Trust::Since(since) => from = from.max(since),
        }
    }
    Ok(case.due_after.map(|after| from + after))
}

fn sources(context: &PlanContext<'_>, case: &Case) -> impl Iterator<Item = Trust> {
    let cloud = match &case.incident.key.subject {
        Subject::Machine(crate::model::incident::MachineKey::Instance(cloud, _))
        | Subject::Group(cloud, _)
        | Subject::Router(cloud, _)
        | Subject::User(cloud, _) => context.clouds.get(cloud).map(|cloud| cloud.source.trust(context.now)),
        _ => None,
    };
    let cluster = case.rests_on_cluster.then(|| context.cluster.source.trust(context.now));
    cloud.into_iter().chain(cluster)
}

/// Decides about one case.
pub fn decide(context: &PlanContext<'_>, case: &Case) -> Decision {
    let incident = &case.incident;
    if let Some((intent, _)) = context.book.operation_of(incident.id) {
        return Decision::just(Next::UnderWay(intent));
    }
    if incident.well_since.is_some() {
        let next = annotations::unconfirmed(context, case).map_or(Next::Well, Next::Ask);
        return Decision::just(next);
    }
    if incident.given_up || case.due_after.is_none() || escalation(incident.key.kind).is_empty() {
        return Decision::just(Next::Ask(Arc::from(advice::ask(incident.key.kind))));
    }
    let due = match due_at(context, case) {
        Err(why) => return Decision::just(Next::Blind(why)),
        Ok(due) => due.unwrap_or(context.now),
    };
    if context.now < due && !incident.is_asked_for() && stands(Safeguard::Patience) {
        if read_ahead_at(context, case).is_some_and(|at| at <= context.now) {
            return Decision::just(Next::Gather(evidence_wanted(context, case)));
        }
        let why = format!("waits until {} after it was first seen", case.due_after.unwrap_or_default());
        return Decision::just(Next::Wait { until: due, why: why.into() });
    }
    if let Some(root) = explained_by(context, case).filter(|_| stands(Safeguard::RootFirst)) {
        let kind = root.incident.key.kind;
        if root.incident.given_up || !may_be_mended(context, root) {
            // What explains it cannot be mended: nothing further down the escalation would help either.
            let why = format!("its {kind} explains this and could not be repaired: {}", advice::ask(kind));
            return Decision::just(Next::Ask(why.into()));
        }
        let why = format!("its {kind} comes first: it explains this");
        return Decision::just(Next::Wait {
            until: context.now + context.roster.timing.backoff_min,
            why: why.into(),
        });
    }
    if let Some(until) =
        incident.not_before.filter(|until| context.now < *until && stands(Safeguard::Backoff))
    {
        let why = match incident.attempts.last() {
            Some(last) if last.denied() => {
                let said = last.ending.as_ref().map(Ending::to_string).unwrap_or_default();
                format!("{}: {said}. Retries; give the credential this permission", last.call)
            }
            Some(last) => format!("{}: waits for its effect, or for the next try", last.call),
            None => "waits before the next try".to_owned(),
        };
        return Decision::just(Next::Wait { until, why: why.into() });
    }
    if let Some(until) = evidence_under_way(context, case) {
        let why = Arc::from("reading evidence");
        return Decision::just(Next::Wait { until, why });
    }
    let looks = evidence_wanted(context, case);
    let missed = case.gathered.failures > 0 && !suffices(case);
    let unread = case.gathered.asked_at.is_none() || !case.gathered.outstanding.is_empty() || missed;
    if unread && !looks.is_empty() {
        return Decision::just(Next::Gather(looks));
    }
    if let (true, Some(asked_at)) = (missed, case.gathered.asked_at) {
        let until = asked_at + again_after(context, case);
        let why = Arc::from("its evidence could not be read: retries");
        return Decision::just(Next::Wait { until, why });
    }
    let decision = escalate(context, case, due);
    // Old evidence is read again just before it is acted on, not over and over while something stands against acting. Only the
    // log tells whose a reboot is that does not end.
    let looks = if looks.is_empty() { log_wanted(context, case, &decision.next) } else { looks };
    let seen = context.seen_of(&incident.key.subject).map(|(_, seen)| seen);
    let reboots = seen.is_some_and(|seen| seen.instance.state == InstanceState::Rebooting);
    if (matches!(decision.next, Next::Act { .. }) || reboots) && !looks.is_empty() {
        return Decision::just(Next::Gather(looks));
    }
    decision
}

/// The action log tells whether a person or a program has just rebooted the machine: it is read directly before we do.
fn log_wanted(context: &PlanContext<'_>, case: &Case, next: &Next) -> Vec<Look> {
    let hurts = |repair_step: &RepairStep| matches!(repair_step.class(), Class::Reboot | Class::Replace);
    let fresh = case.gathered.asked_at.is_some_and(|at| context.now.since(at) <= LOG_FRESH);
    let stand = stands(Safeguard::EvidenceFirst) && stands(Safeguard::LogAgain);
    let wants = has_evidence_to_read(case.incident.key.kind) && stand;
    if fresh || !wants || !matches!(next, Next::Act { repair_step, .. } if hurts(repair_step)) {
        return Vec::new();
    }
    let subject = PlanContext::instance_of(&case.incident.key.subject);
    subject.map(|(cloud, id)| Look::Actions(cloud.clone(), id.clone())).into_iter().collect()
}

/// The first repair step from the present one on that is allowed at all, of use, and has something to call.
fn escalate(context: &PlanContext<'_>, case: &Case, due: Time) -> Decision {
    let incident = &case.incident;
    let mut decision = Decision::just(Next::Ask(Arc::from(advice::ask(incident.key.kind))));
    let repair_steps = escalation(incident.key.kind).iter().copied().enumerate();
    for (index, repair_step) in repair_steps.skip(usize::from(incident.repair_step)) {
        if let Some(why) = useless(repair_step, &incident.findings).filter(|_| stands(Safeguard::NoUse)) {
            decision.no_use.push((repair_step, why));
            continue;
        }
        let mode = interlock::mode_of(context, case, repair_step.class());
        if mode == Mode::Off {
            decision.held.push((repair_step, vec![Blocker::Off(repair_step.class())]));
            continue;
        }
        if repair_step == RepairStep::Rejoin {
            if let Some(next) = rejoin(context, case, &mut decision, due, index) {
                decision.next = next;
                return decision;
            }
            continue;
        }
        match repair_step.call(context, case) {
            Err(why) => decision.no_use.push((repair_step, why)),
            Ok(call) => {
                if let Some(until) = failed_for_another(context, case, &call) {
                    let why = format!("{call}: the same call failed a moment ago for another machine");
                    decision.next = Next::Wait { until, why: why.into() };
                    return decision;
                }
                let blockers = repair_step.blockers(context, case, Some(&call));
                decision.next = if blockers.is_empty() {
                    Next::Act { repair_step, call }
                } else {
                    decision.held.push((repair_step, blockers));
                    Next::Held { repair_step, call: Some(call) }
                };
                return decision;
            }
        }
    }
    decision
}

/// An agent that is heard is asked, or it is said why not, and nothing further up is thought of while it lives. Without one
/// the repair step is a person's, for a while.
fn rejoin(
    context: &PlanContext<'_>,
    case: &Case,
    decision: &mut Decision,
    due: Time,
    index: usize,
) -> Option<Next> {
    let repair_step = RepairStep::Rejoin;
    let why = match rejoin::ask(context, case) {
        Ok(call) => {
            let blockers = repair_step.blockers(context, case, Some(&call));
            if blockers.is_empty() {
                return Some(Next::Act { repair_step, call });
            }
            decision.held.push((repair_step, blockers));
            return Some(Next::Held { repair_step, call: Some(call) });
        }
        Err(why) => why,
    };
    if never_joined_for_sure(context, case) {
        let never_joined = "it never joined, so its kubelet has no Node to return to".to_owned();
        let why = if why == Blocker::NoAgent { never_joined } else { why.to_string() };
        decision.no_use.push((repair_step, why.into()));
        return None;
    }
    // Offered to a person for as long again as was waited: no agent is there to do it. A person who asks for a repair now has
    // declined that offer.
    let offered_until = due + case.due_after.unwrap_or_default();
    let offered = context.now < offered_until && !case.incident.is_asked_for();
    decision.offered_until = Some(offered_until).filter(|_| offered);
    let mut blockers = repair_step.blockers(context, case, None);
    // There is no agent to propose this step to: the step after it does not wait for a person's consent to this one.
    blockers.retain(|blocker| !matches!(blocker, Blocker::Propose(_)));
    blockers.push(why);
    decision.held.push((repair_step, blockers));
    (offered || is_last_allowed(context, case, index)).then_some(Next::Held { repair_step, call: None })
}

/// One nudge serves every machine of a group. Where it failed for one of them, its backoff is the others' as well.
fn failed_for_another(context: &PlanContext<'_>, case: &Case, call: &Call) -> Option<Time> {
    if !matches!(call, Call::NudgeGroup(_)) || !stands(Safeguard::Backoff) {
        return None;
    }
    let others = context.nudged.iter().filter_map(|key| context.cases.get(key));
    let others = others.filter(|other| other.incident.id != case.incident.id);
    let waits = others.filter_map(|other| {
        let last = other.incident.attempts.last()?;
        let failed = last.call.is_same_change(call) && last.ending.is_some() && last.readback.is_none();
        other.incident.not_before.filter(|until| failed && context.now < *until)
    });
    waits.max()
}

/// The controller saw the machine being created, and the machine never had a Node. For a machine older than the
/// controller's watch, or one that came before a gap in it, that is unknown, so the controller treats it as one whose Node
/// vanished: its agent is asked to rejoin first (docs/SAFETY.md, invariant 3).
fn never_joined_for_sure(context: &PlanContext<'_>, case: &Case) -> bool {
    let seen = context.seen_of(&case.incident.key.subject).map(|(_, seen)| seen);
    case.incident.key.kind == FaultKind::NeverJoined && seen.is_some_and(|seen| seen.is_known_since_birth())
}

fn is_last_allowed(context: &PlanContext<'_>, case: &Case, index: usize) -> bool {
    let repair_steps = escalation(case.incident.key.kind);
    repair_steps
        .iter()
        .skip(index + 1)
        .all(|repair_step| interlock::mode_of(context, case, repair_step.class()) == Mode::Off)
}

/// A repair step is of no use when any finding that is at least likely says so: a first boot that failed for want of a group has
/// failed all the same once the group is back. What merely follows from another finding goes with it, but for a first boot,
/// which is over: a machine that had no network did not reach the API server either, and its successor may. What events alone
/// tell counts for nothing here: without the reboot, the next step is a deletion.
pub fn useless(repair_step: RepairStep, findings: &[Finding]) -> Option<Arc<str>> {
    let is_likely = |finding: &&Finding| finding.confidence >= Confidence::Likely;
    let over = |finding: &&Finding| finding.cause.entry().is_some_and(|entry| entry.first_boot);
    let first = findings.first().into_iter();
    let roots = findings.iter().filter(is_likely);
    let over = findings.iter().flat_map(|finding| &finding.follows).filter(is_likely).filter(over);
    let mut told = first.chain(roots).chain(over).filter(|finding| !finding.is_of_events_alone());
    told.find_map(|finding| advice::no_use(repair_step, &finding.cause))
}

/// A machine without its group, rules or route cannot join: the controller repairs those first, and they explain the rest.
/// A fault that the roster leaves alone is repaired by no controller, and blocks no repair of the machine. The same holds
/// for a fault that none of our steps will repair and that the machine served with for long. On a network without port
/// security no group can be put on a port, and a kubelet that died months later was never repaired.
fn explained_by<'a>(context: &PlanContext<'a>, case: &Case) -> Option<&'a Case> {
    let absence =
        matches!(case.incident.key.kind, FaultKind::NeverJoined | FaultKind::NotReady | FaultKind::Vanished);
    if !absence {
        return None;
    }
    [FaultKind::GroupMissing, FaultKind::PairMissing, FaultKind::MissingRoute].into_iter().find_map(|kind| {
        let key = IncidentKey { subject: case.incident.key.subject.clone(), kind };
        let explains = |root: &&Case| match interlock::mode_of(context, root, Class::Network) {
            Mode::Off => false,
            Mode::Act
                if !root.incident.given_up && may_be_mended(context, root) && !is_in_vain(context, root) =>
            {
                true
            }
            Mode::Propose | Mode::Act => !served_with(context, case, root),
        };
        context.cases.get(&key).filter(explains)
    })
}

/// The machine was well for [`SERVED`] while it had the other fault, so that fault does not explain why it is away. Where
/// the controller did not see the cluster for all that time, the answer is no. What it did not see after the machine went
/// away does not matter.
fn served_with(context: &PlanContext<'_>, case: &Case, root: &Case) -> bool {
    let Some(served) = case.served_since else { return false };
    let joined = context.seen_of(&case.incident.key.subject).is_some_and(|(_, seen)| seen.joined.is_some());
    let had_joined = case.incident.key.kind != FaultKind::NeverJoined && joined;
    had_joined && case.away_since.since(root.incident.first_seen.max(served)) >= SERVED
}

/// The last try to repair it came to nothing or did not last, and the next may as well: our credential lacked the right to put a
/// group on a port, which is tried for as long as the group is missing, and a kubelet that died meanwhile was never repaired.
fn is_in_vain(context: &PlanContext<'_>, root: &Case) -> bool {
    let in_vain = |last: &Attempt| last.ending.is_some() && !last.held();
    let under_way = context.book.operation_of(root.incident.id).is_some();
    !under_way && root.incident.well_since.is_none() && root.incident.attempts.last().is_some_and(in_vain)
}

/// Something is under way for it, it looks mended, or there is a call that may help.
fn may_be_mended(context: &PlanContext<'_>, root: &Case) -> bool {
    let repair_steps = escalation(root.incident.key.kind).iter().skip(usize::from(root.incident.repair_step));
    let has_call = || repair_steps.copied().any(|repair_step| repair_step.call(context, root).is_ok());
    let under_way = context.book.operation_of(root.incident.id).is_some();
    under_way || root.incident.well_since.is_some() || (root.due_after.is_some() && has_call())
}

/// When the evidence of a case that waits for its deadline is read, so that it is at hand then; `None`: no evidence is wanted,
/// or it was asked for already.
pub fn read_ahead_at(context: &PlanContext<'_>, case: &Case) -> Option<Time> {
    let due = due_at(context, case).ok()??;
    let waits =
        context.now < due && case.gathered.asked_at.is_none() && has_evidence_to_read(case.incident.key.kind);
    let backs_off = case.incident.not_before.is_some_and(|until| until > due);
    (waits && !backs_off && !evidence_wanted(context, case).is_empty()).then(|| due - READ_AHEAD)
}

/// Reads that are out are waited for, but not for ever.
fn evidence_under_way(context: &PlanContext<'_>, case: &Case) -> Option<Time> {
    let until = case.gathered.asked_at? + EVIDENCE_WITHIN;
    (!case.gathered.outstanding.is_empty() && context.now < until).then_some(until)
}

/// Reads that failed are tried again later and later.
fn again_after(context: &PlanContext<'_>, case: &Case) -> Span {
    let timing = context.roster.timing;
    timing.backoff_min.doubled(case.gathered.failures.saturating_sub(1), timing.backoff_max)
}

/// The evidence is enough although some reads failed: a console may be broken for good. But the controller deletes no
/// machine whose action log it has not read, and no Node whose instance the cloud did not deny just now. One whose log says that
/// another client deletes it, and that cannot be read, was rebooted in the middle of that.
fn suffices(case: &Case) -> bool {
    match case.incident.key.kind {
        _ if case.gathered.unread_deletion => false,
        FaultKind::Ghost => false,
        FaultKind::Errored | FaultKind::StuckBuilding => case.gathered.failures >= CONSOLE_TRIES,
        _ => case.gathered.failures >= CONSOLE_TRIES && case.gathered.newest_reboot.is_some(),
    }
}

/// Console and action log are read about it.
const fn has_evidence_to_read(kind: FaultKind) -> bool {
    matches!(
        kind,
        FaultKind::NeverJoined
            | FaultKind::Vanished
            | FaultKind::NotReady
            | FaultKind::Errored
            | FaultKind::StuckBuilding
    )
}

/// Evidence comes first: what the console and the action log say is read before anything is done, and again before
/// anything that can hurt, because a deleted machine takes them along.
fn evidence_wanted(context: &PlanContext<'_>, case: &Case) -> Vec<Look> {
    let wants = has_evidence_to_read(case.incident.key.kind);
    let again = |at: Time| case.gathered.failures > 0 && context.now.since(at) >= again_after(context, case);
    let stale = case.gathered.asked_at.is_none_or(|at| context.now.since(at) > EVIDENCE_FRESH || again(at));
    if case.incident.key.kind == FaultKind::Ghost {
        return denial_wanted(context, case, case.gathered.asked_at.is_none_or(again));
    }
    if case.incident.key.kind == FaultKind::RolesMissing {
        return roles_wanted(context, case, case.gathered.asked_at.is_none_or(again));
    }
    if !wants || !stands(Safeguard::EvidenceFirst) || (!stale && case.gathered.outstanding.is_empty()) {
        return Vec::new();
    }
    let Some((cloud, instance)) = PlanContext::instance_of(&case.incident.key.subject) else {
        return Vec::new();
    };
    let mut looks = vec![Look::Actions(cloud.clone(), instance.clone())];
    if let Some((_, seen)) = context.seen_of(&case.incident.key.subject) {
        looks.extend(evidence_query(case.incident.key.kind, cloud, seen));
        let gone = seen.joined.iter().filter(|_| case.incident.key.kind == FaultKind::Vanished);
        looks.extend(gone.cloned().map(Look::NodeEvents));
    }
    looks
}

/// A ghost is proved once more just before its Node goes: what was denied a while ago may have been a cell that was down.
fn denial_wanted(context: &PlanContext<'_>, case: &Case, may_ask: bool) -> Vec<Look> {
    let seen = context.seen_of(&case.incident.key.subject).map(|(_, seen)| seen);
    let denied_at = seen.and_then(|seen| seen.unlisted).and_then(|unlisted| unlisted.last_denial);
    let fresh = denied_at.is_some_and(|at| context.now.since(at) <= DENIAL_FRESH);
    let answered = case.gathered.failures == 0;
    let waived = !stands(Safeguard::EvidenceFirst) || !stands(Safeguard::DeniedById);
    if fresh || waived || !(may_ask || answered) {
        return Vec::new();
    }
    let subject = PlanContext::instance_of(&case.incident.key.subject);
    subject.map(|(cloud, id)| Look::Instance(cloud.clone(), id.clone())).into_iter().collect()
}

/// Roles are read seldom: before any is given, they are read once more. Where none is given, telling needs no second look.
fn roles_wanted(context: &PlanContext<'_>, case: &Case, may_ask: bool) -> Vec<Look> {
    let Subject::User(cloud, user) = &case.incident.key.subject else { return Vec::new() };
    let heard = context.clouds.get(cloud).and_then(|view| view.access.heard(user));
    let said_at = heard.and_then(|heard| heard.said.as_ref()).map(|(_, at)| *at);
    let told_only = interlock::mode_of(context, case, Class::Access) != Mode::Act;
    let fresh = said_at.is_some_and(|at| context.now.since(at) <= ROLES_FRESH);
    if told_only || fresh || !stands(Safeguard::RolesAfresh) || !(may_ask || case.gathered.failures == 0) {
        return Vec::new();
    }
    let wanted = context.roster.access.user(cloud, user);
    wanted.map(|wanted| Look::Roles(cloud.clone(), user.clone(), wanted.roles.clone())).into_iter().collect()
}
