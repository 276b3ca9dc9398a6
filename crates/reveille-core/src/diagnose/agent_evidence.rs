//! What the agent on a machine proves of why it did not join, does not come back, or is not Ready.
//!
//! ```text
//!  report ─▶ what its checks prove ─▶ findings: first, but for what ports and groups prove of an earlier stage
//!         └▶ its stage, kubelet, contact, blockers ─▶ one line of evidence, and the stage where nothing else tells it
//! ```
//!
//! A console only lets the controller guess, but an agent tried. So the agent's report ranks before every guess from other
//! texts, and beside what objects prove: a port without its group explains why an agent reaches no API server, and not the
//! other way round. Why a Node went, the cluster knows better than the machine of that Node.

use crate::model::agent_report::AgentReport;
use crate::model::cause::Cause;
use crate::model::evidence::{Evidence, GuestFact, Source, quoted};
use crate::model::incident::{Confidence, FaultKind, Finding};
use crate::model::log_findings::LogFinding;
use crate::model::time::Time;

use super::fault::Fault;

/// Takes the agent's word into a fault of its machine. `silent`: it was said, and nothing was heard since.
pub fn hear(fault: &mut Fault, report: &AgentReport, heard: Time, silent: bool) {
    if !matches!(fault.kind, FaultKind::NeverJoined | FaultKind::Vanished | FaultKind::NotReady) {
        return;
    }
    // What is going to be done to a machine is no reason why it does not answer now.
    let explains =
        |told: &&LogFinding| told.confidence >= Confidence::Likely && told.cause != Cause::Announced;
    let told = report.told.iter().filter(explains);
    let told: Vec<Finding> = told.map(|told| told.finding(heard)).collect();
    let said = Evidence::new(Source::Agent, says(report), heard);
    if told.is_empty() && fault.finding.cause == Cause::Unknown && report.stage().is_some() {
        // The cause is unknown, but the agent knows the stage.
        fault.finding.stage = report.stage().map_or(fault.finding.stage, |said| said.stage);
        fault.finding.evidence.insert(0, said);
    } else {
        rank(fault, told);
        fault.finding.evidence.push(said);
    }
    if silent {
        fault.finding.evidence.push(Evidence::new(Source::Agent, GuestFact::AgentSilent, heard));
    }
}

/// Puts what it proves in its place among what is known already.
fn rank(fault: &mut Fault, mut told: Vec<Finding>) {
    let Some(first) = told.first().map(|finding| finding.stage) else { return };
    fault.more.retain(|known| told.iter().all(|told| told.cause != known.cause));
    let own = &fault.finding;
    let of_an_object = own.cause != Cause::Unknown && own.cause.entry().is_none();
    let stays = match fault.kind {
        FaultKind::NeverJoined => of_an_object && own.confidence == Confidence::Sure && own.stage < first,
        FaultKind::Vanished => own.confidence >= Confidence::Likely,
        // How far it came, its Node tells; what its agent proves of an earlier stage explains that.
        _ => own.stage < first && own.stage != own.cause.stage(),
    };
    if told.iter().any(|told| told.cause == own.cause) && stays {
        told.retain(|told| told.cause != fault.finding.cause);
    }
    if stays {
        told.append(&mut fault.more);
        fault.more = told;
        return;
    }
    let mut first = told.remove(0);
    let same = first.cause == own.cause;
    first.evidence.extend(fault.finding.evidence.iter().cloned());
    let before = std::mem::replace(&mut fault.finding, first);
    // A guess that is known to be one is not kept beside what was tried.
    if !same && before.cause != Cause::Unknown && before.confidence >= Confidence::Likely {
        fault.more.insert(0, before);
    }
    told.append(&mut fault.more);
    fault.more = told;
}

/// What it says of itself. How often it tried is in the trace: a number that moves would be news with every report.
fn says(report: &AgentReport) -> GuestFact {
    let stage = report.stage();
    GuestFact::Agent {
        kubelet: report.kubelet,
        api: report.api,
        stage: stage.map(|said| said.stage),
        error: stage.and_then(|said| said.error.clone()),
        work: report.work.as_ref().map(|work| quoted(&work.what)),
        blocker: report.blocker.as_ref().map(|blocker| quoted(&blocker.text)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use super::*;
    use crate::model::agent::{ApiSaid, KubeletSaid, StageError, StageSaid, Who};
    use crate::model::cause::Entry;
    use crate::model::log_findings::LogFinding;
    use crate::model::stage::Stage;

    fn catalogued(label: &str, stage: Stage) -> Cause {
        Cause::Catalogued(Arc::new(Entry::named("RV117".into(), label.into(), stage)))
    }

    fn report(told: Vec<LogFinding>) -> AgentReport {
        let error = Some(StageError::new("TOKEN_EXPIRED", "valid until noon"));
        AgentReport {
            who: Who::default(),
            life: "1".into(),
            number: 1,
            stages: vec![StageSaid { stage: Stage::Authenticate, passed: false, attempts: 3, error }],
            told,
            unsaid: false,
            kubelet: KubeletSaid::Stopped,
            api: ApiSaid::Answers,
            work: None,
            blocker: None,
            may: BTreeSet::new(),
        }
    }

    fn told(label: &str) -> LogFinding {
        let cause = catalogued(label, Stage::Authenticate);
        let (proof, against, follows) = (Vec::new(), Vec::new(), Vec::new());
        let (unanswered, no_lease) = (false, false);
        let (stage, confidence) = (Stage::Authenticate, Confidence::Sure);
        LogFinding { cause, stage, confidence, unanswered, no_lease, proof, against, follows }
    }

    fn absent(kind: FaultKind, finding: Finding) -> Fault {
        let (more, counted_from) = (Vec::new(), Time::from_ms(0));
        Fault { kind, finding, more, due_after: None, rests_on_cluster: true, counted_from }
    }

    fn heard(kind: FaultKind, cause: Cause, confidence: Confidence, told: Vec<LogFinding>) -> Vec<String> {
        let finding = Finding::new(cause, confidence, Vec::new());
        let mut fault = absent(kind, finding);
        hear(&mut fault, &report(told), Time::from_ms(0), false);
        std::iter::once(&fault.finding).chain(&fault.more).map(|it| it.cause.label().to_owned()).collect()
    }

    #[test]
    fn agent_errors_rank_above_guesses_and_below_port_proofs() {
        use Confidence::{Likely, Possible, Sure};
        let guess = || catalogued("no-network-at-boot", Stage::OsBoot);
        for (kind, own, confidence, wanted) in [
            (FaultKind::NeverJoined, Cause::Unknown, Possible, &["token"][..]),
            (FaultKind::NeverJoined, guess(), Likely, &["token", "no-network-at-boot"]),
            (FaultKind::NeverJoined, guess(), Possible, &["token"]),
            (FaultKind::NeverJoined, Cause::SecurityGroupMissing, Sure, &["security-group-missing", "token"]),
            (FaultKind::Vanished, Cause::NodeDeletedByPerson, Possible, &["token"]),
            (
                FaultKind::Vanished,
                Cause::NodeDeletedByCloudController,
                Sure,
                &["node-deleted-not-in-cloud", "token"],
            ),
            (FaultKind::NotReady, Cause::KubeletSilent, Likely, &["token", "kubelet-silent"]),
        ] {
            assert_eq!(heard(kind, own.clone(), confidence, vec![told("token")]), wanted, "{kind} {own}");
        }
    }

    #[test]
    fn agent_stage_is_reported_when_the_cause_is_unknown() {
        let finding = Finding::new(Cause::Unknown, Confidence::Possible, Vec::new());
        let kind = FaultKind::NeverJoined;
        let mut fault = absent(kind, finding);
        hear(&mut fault, &report(Vec::new()), Time::from_ms(0), true);
        assert_eq!(fault.finding.stage, Stage::Authenticate);
        let said: Vec<String> = fault.finding.evidence.iter().map(|it| it.fact.to_string()).collect();
        assert_eq!(
            said,
            [
                "its kubelet does not run; the API server answers it; at stage authenticate: TOKEN_EXPIRED: valid until noon",
                "it has not been heard since"
            ]
        );
    }
}
