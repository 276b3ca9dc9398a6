//! What the provider itself says of a machine, held beside how it stands: a host that failed its checks, work that was
//! announced, a machine that was taken back, an identity that is missing.
//!
//! ```text
//!  absent  ─▶ explain: cause and evidence of the absence        answers ─▶ notices: told, and nothing is done
//! ```
//!
//! The provider's word explains an absence and is never one by itself: a machine whose node is Ready answers, whatever a
//! check says. Clouds that say none of this change nothing here.

use crate::model::agent_report::AgentReport;
use crate::model::cause::Cause;
use crate::model::evidence::{Evidence, MachineFact, NodeFact, Source, quoted};
use crate::model::hosting::{Check, GroupPhase, Hosting, Notice, NoticeKind, OwnerGroup};
use crate::model::id::{InstanceId, NodeName};
use crate::model::incident::{Confidence, FaultKind, Finding};
use crate::model::time::{Span, Time};
use crate::observe::cloud::Seen;

use super::fault::{Fault, fault};
use super::machine_state::Absence;
use super::question::JudgeContext;

/// What the provider says of it, if anything.
pub fn of(seen: &Seen) -> Option<&Hosting> {
    seen.instance.hosting.as_deref()
}

/// The group of the cloud that keeps it.
pub fn group(seen: &Seen) -> Option<&OwnerGroup> {
    of(seen)?.group.as_ref()
}

/// Its group takes it away: it is not expected to answer.
pub(super) fn is_taken_by_its_group(seen: &Seen) -> Option<&OwnerGroup> {
    group(seen).filter(|group| group.phase == GroupPhase::Leaving)
}

/// Its group keeps it ready and out of service: it is not expected to answer, nor to run.
pub(super) fn is_in_reserve(seen: &Seen) -> Option<&OwnerGroup> {
    group(seen).filter(|group| group.phase == GroupPhase::Reserve)
}

/// Announcements that say that the machine goes, and when.
fn going(hosting: &Hosting) -> impl Iterator<Item = NoticeKind> {
    hosting.notices.iter().map(|notice| notice.kind)
}

/// The provider takes the machine back within minutes: the provider is at work on it, and the controller leaves it alone.
pub fn is_interrupted(seen: &Seen) -> bool {
    of(seen).is_some_and(|hosting| going(hosting).any(|kind| kind == NoticeKind::Interruption))
}

/// Why the provider ended it, where it did.
pub(super) fn ended(seen: &Seen) -> Option<&str> {
    of(seen)?.ended.as_deref()
}

/// Adds to an absence what the provider says, and lets it name the cause where that says more than silence does.
pub(super) fn explain(context: JudgeContext<'_>, seen: &Seen, absence: &mut Absence) {
    let Some(hosting) = of(seen) else { return };
    let finding = &mut absence.finding;
    let checks = hosting.checks;
    let impaired = checks.impaired().next().is_some();
    if impaired {
        let fact = MachineFact::ChecksFailed { checks, ready: false };
        finding.evidence.push(context.evidence(Source::StatusChecks, fact));
    }
    // A roster that allows replacement also allows the loss of this storage. The finding says so beforehand, and not only
    // where a stop is considered.
    use FaultKind::{Errored, NeverJoined, NotReady, StuckBuilding, Vanished};
    let may_go = matches!(absence.kind, NeverJoined | Vanished | NotReady | Errored | StuckBuilding);
    if hosting.loses_disks && may_go {
        finding.evidence.push(context.evidence(Source::Disks, MachineFact::LosesDisks));
    }
    finding.evidence.extend(announced(hosting, context.now));
    if let Some(group) = &hosting.group {
        finding.evidence.push(context.evidence(Source::ScalingGroup, MachineFact::Kept(group.clone())));
    }
    let silent = matches!(finding.cause, Cause::KubeletSilent | Cause::Unknown);
    let named = match absence.kind {
        FaultKind::Stopped if hosting.ended.is_some() => Some((Cause::TakenBack, Confidence::Sure)),
        FaultKind::NotReady | FaultKind::NeverJoined if silent && checks.host == Check::Impaired => {
            Some((Cause::HostImpaired, Confidence::Likely))
        }
        FaultKind::NotReady | FaultKind::NeverJoined if silent && impaired => {
            Some((Cause::GuestImpaired, Confidence::Likely))
        }
        FaultKind::NeverJoined if silent && hosting.no_identity => {
            Some((Cause::IdentityMissing, without_identity(context, seen)))
        }
        _ => None,
    };
    if let Some((cause, confidence)) = named {
        if cause == Cause::IdentityMissing {
            finding.evidence.insert(0, context.evidence(Source::Instance, MachineFact::NoIdentity));
        } else if let (Cause::TakenBack, Some(why)) = (&cause, &hosting.ended) {
            finding.evidence.insert(0, context.evidence(Source::Instance, MachineFact::Ended(quoted(why))));
        }
        finding.stage = cause.stage();
        finding.cause = cause;
        finding.confidence = confidence;
    }
}

/// Where others of its pool have an identity, that it has none is no way of the pool.
fn without_identity(context: JudgeContext<'_>, seen: &Seen) -> Confidence {
    let has = |other: &Seen| of(other).is_some_and(|hosting| !hosting.no_identity);
    let sibling = |other: &&Seen| other.pool() == seen.pool() && !other.nodes.is_empty() && has(other);
    let siblings = context.cloud.instances.values().any(|other| sibling(&other));
    if siblings { Confidence::Likely } else { Confidence::Possible }
}

fn announced(hosting: &Hosting, now: Time) -> impl Iterator<Item = Evidence> {
    let fact = |notice: &Notice| MachineFact::Announced(notice.clone());
    hosting.notices.iter().map(move |notice| Evidence::new(Source::Provider, fact(notice), now))
}

/// What the provider announced, or says of a machine that answers all the same: told, never acted upon.
pub(super) fn notices(seen: &Seen, answers: bool, now: Time, faults: &mut Vec<Fault>) {
    let Some(hosting) = of(seen) else { return };
    let mut findings: Vec<Finding> = Vec::new();
    if !hosting.notices.is_empty() {
        let evidence = announced(hosting, now).collect();
        findings.push(Finding::new(Cause::Announced, Confidence::Sure, evidence));
    }
    let checks = hosting.checks;
    if answers && checks.impaired().next().is_some() {
        let host = checks.host == Check::Impaired;
        let cause = if host { Cause::HostImpaired } else { Cause::GuestImpaired };
        let fact = MachineFact::ChecksFailed { checks, ready: true };
        let evidence = vec![Evidence::new(Source::StatusChecks, fact, now)];
        findings.push(Finding::new(cause, Confidence::Likely, evidence));
    }
    if findings.is_empty() {
        return;
    }
    let first = findings.remove(0);
    let mut told = fault(FaultKind::ProviderNotice, first.cause.clone(), Vec::new(), None, false);
    (told.finding, told.more) = (first, findings);
    faults.push(told);
}

/// What its provider told the machine itself, and perhaps no other client. Its agent passes it on: the controller reports
/// it and never acts on it.
pub fn announced_to_agent(report: &AgentReport, heard: Time, faults: &mut Vec<Fault>) {
    let Some(told) = report.told.iter().find(|told| told.cause == Cause::Announced) else { return };
    let mut finding = told.finding(heard);
    let known = faults.iter_mut().find(|fault| fault.kind == FaultKind::ProviderNotice);
    match known {
        Some(notice) if notice.finding.cause == Cause::Announced => {
            notice.finding.evidence.append(&mut finding.evidence);
        }
        Some(notice) => notice.more.push(finding),
        None => {
            let mut notice = fault(FaultKind::ProviderNotice, Cause::Announced, Vec::new(), None, false);
            notice.finding = finding;
            faults.push(notice);
        }
    }
}

/// A node names an instance that is there and carries none of the roster's marks.
pub fn unmarked(node: &NodeName, instance: &InstanceId, now: Time) -> Fault {
    let fact = NodeFact::NamesUnmarked(instance.clone());
    let evidence = vec![Evidence::new(Source::Node(node.clone()), fact, now)];
    fault(FaultKind::Stray, Cause::ClusterMarkMissing, evidence, None::<Span>, true)
}
