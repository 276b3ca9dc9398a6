//! What `doctor` found on a machine.

use serde::{Deserialize, Serialize};

/// The checks of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DoctorReport {
    /// The name of the machine's Node, existing or planned; not there when it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The API servers that the machine has joined or is to join, as `host:port`.
    pub servers: Vec<String>,
    /// The source of the addresses: `the command line`, or a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_by: Option<String>,
    /// The id of the check to fix first; not there when none failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// How many checks had which result.
    pub summary: DoctorSummary,
    /// Every check; a check comes after those that it depends on.
    pub checks: Vec<CheckReport>,
    /// What the machine's logs prove, best first.
    pub findings: Vec<LogFindingReport>,
    /// The logs that were read, or why not.
    pub logs: Vec<LogReport>,
}

/// How many checks had which result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DoctorSummary {
    /// As it should be.
    pub passed: u32,
    /// Not as it should be; the machine can still join.
    pub warned: u32,
    /// Not as it should be; the machine cannot join or stay.
    pub failed: u32,
    /// Not judged.
    pub skipped: u32,
    /// The data of the check could not be read.
    pub cannot_tell: u32,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckReport {
    /// The id of the check, which never changes.
    pub id: String,
    /// Name of the stage where a machine stops when it fails.
    pub stage: String,
    /// Ids of the checks that this one depends on.
    pub rests_on: Vec<String>,
    /// `passed`, `warned`, `failed`, `skipped` or `cannot-tell`.
    pub result: String,
    /// What was found, or why it was not judged, as a clause.
    pub says: String,
    /// The lines that the result is based on.
    pub evidence: Vec<String>,
    /// The cause's label: `swap-enabled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The cause's code, which has a page: `RV526`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What to do, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// The remedy as commands to copy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
}

/// What logs prove.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogFindingReport {
    /// The cause's label.
    pub cause: String,
    /// The cause's code.
    pub code: String,
    /// Name of the stage where the machine stopped.
    pub stage: String,
    /// `possible`, `likely` or `sure`.
    pub confidence: String,
    /// What is wrong, as a clause.
    pub title: String,
    /// Lines that prove it.
    pub evidence: Vec<LogLineReport>,
    /// What to do, as text.
    pub remedy: String,
}

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogLineReport {
    /// Which log.
    pub source: String,
    /// Its line, from 1.
    pub line: u64,
    /// The line, secrets masked.
    pub text: String,
    /// How often the log has lines like it.
    pub times: u64,
}

/// A log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogReport {
    /// A file, or the command that prints it.
    pub name: String,
    /// How many lines were read.
    pub lines: u64,
    /// Why it was not read, or not whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
