//! The result of a check-up, as the doctor's report and as the one line by which `diagnose` recognises it.
//!
//! Facts that only the catalogue has (codes of causes, findings from logs) are left out: the doctor's command adds them,
//! and `diagnose` reads the logs of a bundle itself.

use reveille_agent::checkup::{self, Check, Facts, Result as Came};
use reveille_wire::report::{CheckReport, DoctorReport, DoctorSummary, LogReport};

use crate::logs::Log;

/// The report, without codes and findings.
pub fn report(facts: &Facts, checks: &[Check], logs: &[Log]) -> DoctorReport {
    DoctorReport {
        node: facts.names.node(),
        servers: facts.servers.iter().map(|server| server.endpoint.clone()).collect(),
        told_by: facts.aim.read().and_then(Option::as_ref).map(|aim| aim.told_by.clone()),
        first: checkup::first_failed(checks).map(|check| check.id.to_owned()),
        summary: summary(checks),
        checks: checks.iter().map(check_report).collect(),
        findings: Vec::new(),
        logs: logs
            .iter()
            .map(|log| LogReport {
                name: log.name.clone(),
                lines: u64::try_from(log.text.lines().count()).unwrap_or(0),
                note: log.note.clone(),
            })
            .collect(),
    }
}

/// The number of checks with each result.
pub fn summary(checks: &[Check]) -> DoctorSummary {
    let count =
        |result| u32::try_from(checks.iter().filter(|check| check.result == result).count()).unwrap_or(0);
    DoctorSummary {
        passed: count(Came::Passed),
        warned: count(Came::Warned),
        failed: count(Came::Failed),
        skipped: count(Came::Skipped),
        cannot_tell: count(Came::CannotTell),
    }
}

/// The line by which `diagnose` recognises the result.
pub fn verdict(checks: &[Check]) -> String {
    match checkup::first_failed(checks) {
        None => "reveille doctor: no check failed\n".to_owned(),
        Some(Check { id, cause: None, .. }) => {
            format!("reveille doctor: check {id} failed: no cause is named\n")
        }
        Some(Check { id, cause: Some(cause), .. }) => {
            format!("reveille doctor: check {id} failed: cause {cause}\n")
        }
    }
}

fn check_report(check: &Check) -> CheckReport {
    CheckReport {
        id: check.id.to_owned(),
        stage: check.stage.name().to_owned(),
        rests_on: check.rests_on.iter().map(|id| (*id).to_owned()).collect(),
        result: check.result.word().to_owned(),
        says: check.says.clone(),
        evidence: check.evidence.clone(),
        cause: check.cause.map(str::to_owned),
        code: None,
        remedy: check.advice.as_ref().map(|advice| advice.words.clone()),
        commands: check.advice.as_ref().map_or_else(Vec::new, |advice| advice.commands.clone()),
    }
}
