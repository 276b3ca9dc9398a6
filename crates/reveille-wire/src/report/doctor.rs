//! What `doctor` found on a machine.

use serde::{Deserialize, Serialize};

/// A check-up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DoctorReport {
    /// The name of the Node that the machine is, or would be; not there when it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// What is joined, or to be joined, as `host:port`.
    pub servers: Vec<String>,
    /// Who says so: `the command line`, or a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_by: Option<String>,
    /// The id of the check to see to first; not there when none failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// How many checks came to what.
    pub summary: DoctorSummary,
    /// Every check, in the order in which one rests on another.
    pub checks: Vec<CheckReport>,
    /// What the machine's logs prove, best first.
    pub findings: Vec<LogFindingReport>,
    /// The logs that were read, or why not.
    pub logs: Vec<LogReport>,
}

/// How many checks came to what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DoctorSummary {
    /// As it should be.
    pub passed: u32,
    /// Not as it should be; a machine joins all the same.
    pub warned: u32,
    /// Not as it should be; a machine does not join or stay.
    pub failed: u32,
    /// Not judged.
    pub skipped: u32,
    /// What they rest on could not be read.
    pub cannot_tell: u32,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckReport {
    /// Its name, which stays.
    pub id: String,
    /// Name of the stage where a machine stops when it fails.
    pub stage: String,
    /// Ids of the checks that it rests on.
    pub rests_on: Vec<String>,
    /// `passed`, `warned`, `failed`, `skipped` or `cannot-tell`.
    pub result: String,
    /// What was found, or why it was not judged, as a clause.
    pub says: String,
    /// What it was found by, a line each.
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
    /// The same, as commands to copy.
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
    /// What is amiss, as a clause.
    pub title: String,
    /// Lines that prove it.
    pub evidence: Vec<LogLineReport>,
    /// What to do, in words.
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
    /// The line, masked.
    pub text: String,
    /// How often lines like it were seen.
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
