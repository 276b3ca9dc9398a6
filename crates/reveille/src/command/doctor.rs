//! `doctor`: checks the machine, reads its logs, and says what to fix first.
//!
//! ```text
//!  arguments, or files of a join ─▶ Target ─▶ probe ─▶ Facts ─▶ checkup ─▶ checks ────────┐
//!  journal, /var/log, --log ─▶ reveille_diagnose ─▶ findings ─────────────────────────────┼─▶ DoctorReport ─▶ page, JSON, YAML
//!                                                                       --bundle FILE ◀───┘
//! ```
//!
//! Nothing is decided here, and the command writes nothing but the bundle's file.

use anyhow::{Context as _, anyhow};
use reveille_agent::checkup::{self, Check, Facts};
use reveille_core::model::cause::Cause;
use reveille_diagnose::scan::Scanner;
use reveille_diagnose::{Catalogue, Finding, Reader, judge};
use reveille_node::bundle::{self, Contents};
use reveille_node::known::Known;
use reveille_node::logs::Log;
use reveille_node::probe::Probe;
use reveille_node::report;
use reveille_node::root::Root;
use reveille_node::target::{Target, TargetError};
use reveille_wire::report::{DoctorReport, Document, LogFindingReport, LogLineReport, Report};

use super::{Answer, Context};
use crate::cli::Output;
use crate::cli::doctor::Doctor;
use crate::cli::failure::Failure;
use crate::render;

/// The most findings of logs in the report; further ones would only distract from the checks.
const FINDINGS_MAX: usize = 5;

/// `doctor`.
pub(crate) async fn doctor(context: &Context, args: &Doctor) -> Result<Answer, Failure> {
    let catalogue = context.catalogue()?;
    let root = Root::new(&args.root);
    let is_here = args.root.as_os_str() == "/";
    if !args.root.join("etc").is_dir() {
        return Err(Failure::usage(anyhow!(
            "{} is no root of a disk: it has no directory etc",
            args.root.display()
        ))
        .next("name the directory where the disk of the machine is mounted"));
    }
    let probe = if is_here { Probe::of_this_machine() } else { Probe::of_folder(root.clone()) };
    let target = target(args, &root)?;
    let token = target.as_ref().ok().and_then(Option::as_ref).and_then(|target| target.token.as_ref());
    let probe = probe.knowing(Known::of_machine(&root, token, &[]));
    let (facts, logs) = tokio::join!(probe.facts(target.as_ref().map(Option::as_ref)), async {
        if args.no_logs { Vec::new() } else { probe.logs(&args.log).await }
    });
    let checks = checkup::checkup(&facts);
    let findings = findings(&catalogue, &logs)?;
    let told = report(&catalogue, &facts, &checks, findings, &logs);
    if let Some(path) = &args.bundle {
        let document = Document::from(Report::DoctorReport(Box::new(told.clone())));
        let json = document.to_json().map_err(|error| Failure::internal(anyhow::Error::new(error)))?;
        let contents = Contents {
            root: &probe.root,
            token,
            own: &[],
            facts: &facts,
            report_json: &json,
            verdict: &report::verdict(&checks),
            logs: &logs,
        };
        bundle::pack(&contents)
            .and_then(|bytes| bundle::write(path, &bytes))
            .with_context(|| format!("cannot write {}", path.display()))
            .map_err(|error| {
                Failure::cannot_tell(error).next("name a file in a folder that can be written")
            })?;
    }
    let exit = render::doctor::exit(&told);
    let page = render::doctor::page(&told, &context.paper);
    let mut text = context.print(Report::DoctorReport(Box::new(told)), |_| page)?;
    if let (Some(path), Output::Table) = (&args.bundle, context.common.output) {
        text.push_str(&format!("Packed: {}\n", path.display()));
    }
    Ok(Answer { text, exit })
}

/// The cluster of the join. A mistake of the command line is refused; a mistake in a file of the machine
/// is a fact for the checks.
fn target(args: &Doctor, root: &Root) -> Result<Result<Option<Target>, TargetError>, Failure> {
    let arguments = args.target.arguments();
    let found = Target::find(&arguments, root);
    match found {
        // The checks report a file of the machine that cannot be read; the operator cannot fix it on the command line.
        Err(error) if Target::of_machine(root).is_err_and(|own| own == error) => Ok(Err(error)),
        Err(error) => {
            let write = error.write.clone();
            Err(Failure::usage(anyhow!(error)).next(format!("write {write}")))
        }
        Ok(target) => Ok(Ok(target)),
    }
}

fn findings(catalogue: &Catalogue, logs: &[Log]) -> Result<Vec<Finding>, Failure> {
    let scanner = Scanner::new(catalogue).map_err(|error| Failure::internal(anyhow::Error::new(error)))?;
    let mut reader = Reader::new(&scanner);
    for log in logs.iter().filter(|log| !log.text.is_empty()) {
        reader.text(&log.name, &log.text);
    }
    let mut findings = judge(&reader).findings;
    findings.truncate(FINDINGS_MAX);
    Ok(findings)
}

/// The report of the checks, with what the catalogue knows about them.
fn report(
    catalogue: &Catalogue,
    facts: &Facts,
    checks: &[Check],
    findings: Vec<Finding>,
    logs: &[Log],
) -> DoctorReport {
    let mut report = report::report(facts, checks, logs);
    for check in &mut report.checks {
        check.code = check.cause.as_deref().and_then(|label| code(catalogue, label));
    }
    report.findings = findings.into_iter().map(finding_report).collect();
    report
}

/// The code of a cause, from the catalogue or from the engine's own list.
fn code(catalogue: &Catalogue, label: &str) -> Option<String> {
    let own = || Cause::OWN.iter().find(|cause| cause.label() == label).map(|cause| cause.code().to_owned());
    catalogue.cause(label).map(|cause| cause.code.clone()).or_else(own)
}

fn finding_report(finding: Finding) -> LogFindingReport {
    let line = |quote: reveille_diagnose::Quote| LogLineReport {
        source: quote.source,
        line: quote.line,
        text: quote.text,
        times: quote.times,
    };
    LogFindingReport {
        cause: finding.cause,
        code: finding.code,
        stage: finding.stage.name().to_owned(),
        confidence: finding.confidence.word().to_owned(),
        title: finding.title,
        evidence: finding.evidence.into_iter().map(line).collect(),
        remedy: finding.remedy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_of_a_check_has_a_code() {
        let catalogue = Catalogue::built_in().unwrap();
        for label in checkup::CAUSES {
            assert!(code(&catalogue, label).is_some(), "{label}");
        }
    }
}
