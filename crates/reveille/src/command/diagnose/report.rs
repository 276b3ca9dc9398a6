//! The result for programs.

use reveille_diagnose::sources::Input;
use reveille_diagnose::{Diagnosis, Finding, Quote, Unknown};
use serde::Serialize;

/// The whole result: the best finding first, none when nothing is wrong.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) findings: Vec<FindingReport>,
    pub(super) inputs: Vec<InputReport>,
    pub(super) unknown: Option<UnknownReport>,
}

#[derive(Debug, Serialize)]
pub(super) struct FindingReport {
    pub(super) cause: String,
    pub(super) code: String,
    pub(super) stage: String,
    #[serde(skip)]
    pub(super) stage_number: usize,
    pub(super) confidence: String,
    pub(super) title: String,
    pub(super) evidence: Vec<QuoteReport>,
    pub(super) against: Vec<QuoteReport>,
    pub(super) remedy: String,
    pub(super) commands: Vec<String>,
    pub(super) collect: Vec<String>,
    pub(super) follows: Vec<Self>,
}

#[derive(Debug, Serialize)]
pub(super) struct QuoteReport {
    pub(super) source: String,
    pub(super) line: u64,
    pub(super) text: String,
    pub(super) times: u64,
    /// The sign of the catalogue that the line matches; empty for a line that no rule explains.
    pub(super) sign: String,
}

#[derive(Debug, Serialize)]
pub(super) struct InputReport {
    pub(super) name: String,
    pub(super) form: String,
    pub(super) lines: u64,
    pub(super) note: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct UnknownReport {
    /// The stage where the machine stopped; absent where the lines do not show it either.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stage: Option<String>,
    #[serde(skip)]
    pub(super) stage_number: usize,
    pub(super) says: String,
    pub(super) lines: Vec<QuoteReport>,
    pub(super) collect: Vec<String>,
}

impl Report {
    pub(super) fn of(diagnosis: Diagnosis, inputs: &[Input]) -> Self {
        let Diagnosis { findings, unknown } = diagnosis;
        let input = |Input { name, form, lines, note }: &Input| InputReport {
            name: name.clone(),
            form: form.clone(),
            lines: *lines,
            note: note.clone(),
        };
        let unknown = unknown.map(|Unknown { stage, says, lines, collect }| UnknownReport {
            stage: stage.map(|stage| stage.name().to_owned()),
            stage_number: stage.map_or(0, |stage| stage.number()),
            says,
            lines: quotes(lines),
            collect,
        });
        Self {
            findings: findings.into_iter().map(finding).collect(),
            inputs: inputs.iter().map(input).collect(),
            unknown,
        }
    }
}

fn finding(from: Finding) -> FindingReport {
    FindingReport {
        cause: from.cause,
        code: from.code,
        stage: from.stage.name().to_owned(),
        stage_number: from.stage.number(),
        confidence: from.confidence.word().to_owned(),
        title: from.title,
        evidence: quotes(from.evidence),
        against: quotes(from.against),
        remedy: from.remedy,
        commands: from.commands,
        collect: from.collect,
        follows: from.follows.into_iter().map(finding).collect(),
    }
}

fn quotes(from: Vec<Quote>) -> Vec<QuoteReport> {
    let quote =
        |Quote { source, line, text, times, sign }: Quote| QuoteReport { source, line, text, times, sign };
    from.into_iter().map(quote).collect()
}
