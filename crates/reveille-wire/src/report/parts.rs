//! Parts that several reports share: moments, sources, findings, attempts, blocked repairs.

use std::sync::Arc;

use reveille_core::event::{Pause, PauseScope};
use reveille_core::model::attempt::{Attempt, Ending};
use reveille_core::model::evidence::Evidence;
use reveille_core::model::incident::{Asked, Confidence, Finding, MachineKey};
use reveille_core::model::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// A moment in the past.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ago {
    /// When, on the controller's clock.
    pub at: Time,
    /// Seconds from then to the making of the report; not negative.
    pub ago_s: f64,
}

/// A moment in the future.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct In {
    /// When, on the controller's clock.
    pub at: Time,
    /// Seconds from the making of the report to then; 0 when it is due.
    pub in_s: f64,
}

impl Ago {
    /// A moment as seen from `now`.
    pub fn new(at: Time, now: Time) -> Self {
        Self { at, ago_s: seconds(now.since(at)) }
    }
}

impl In {
    /// A moment as seen from `now`.
    pub fn new(at: Time, now: Time) -> Self {
        Self { at, in_s: seconds(at.since(now)) }
    }
}

/// Seconds with milliseconds as decimals.
fn seconds(span: Span) -> f64 {
    span.ms as f64 / 1000.0
}

/// The name of a machine in all reports: `CLOUD/INSTANCE-ID`, or `node/NAME` for a Node without an instance.
pub fn key_text(key: &MachineKey) -> String {
    match key {
        MachineKey::Instance(cloud, id) => format!("{cloud}/{id}"),
        MachineKey::Node(name) => format!("node/{name}"),
    }
}

/// One data source, and whether it is fresh and complete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceReport {
    /// `cluster`, or the roster's name of the cloud.
    pub name: String,
    /// The last complete answer; not there when there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Ago>,
    /// True when the last answer was complete.
    pub complete: bool,
    /// True when the controller may judge from it that a machine is missing.
    pub trusted: bool,
    /// Why not, when it is not trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}

/// A cause that was found, and its evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FindingReport {
    /// The cause's label: `security-group-missing`.
    pub cause: String,
    /// The cause's code: `RV104`.
    pub code: String,
    /// What is wrong, as a clause.
    #[serde(alias = "says")]
    pub title: String,
    /// What an operator can do about it.
    pub remedy: String,
    /// The remedy as commands to copy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// What to collect next when the cause is not sure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collect: Vec<String>,
    /// Name of the stage where the machine stopped.
    pub stage: String,
    /// `possible`, `likely` or `sure`.
    pub confidence: String,
    /// Evidence for the cause, strongest first.
    pub evidence: Vec<EvidenceReport>,
    /// Evidence against the cause.
    pub against: Vec<EvidenceReport>,
    /// Problems that this cause produces and that end with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub follows: Vec<Self>,
}

/// One quoted fact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceReport {
    /// Where it was read.
    pub source: String,
    /// The quote.
    pub text: String,
    /// When it was read.
    pub read: Ago,
    /// Its line there, from 1, where the source has lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// How often lines like it were seen there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// The sign of the catalogue that the text matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign: Option<String>,
}

/// One attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptReport {
    /// The intent: `int-9`.
    pub intent: String,
    /// The action.
    pub what: String,
    /// When it was decided.
    pub decided: Ago,
    /// When the call ended; not there while it is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ago>,
    /// The outcome of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// When a fresh read confirmed or refuted it; not there before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<Ago>,
    /// True when the effect was confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<bool>,
    /// What the fresh read returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// True once the call was made, whatever its outcome; an attempt that was dropped before its call never has it.
    #[serde(default)]
    pub requested: bool,
    /// True when a fresh read found its effect.
    #[serde(default)]
    pub verified: bool,
}

/// An operator's request for a repair now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskedReport {
    /// When it was seen.
    pub seen: Ago,
    /// The text of the request.
    pub value: String,
}

/// How often one kind of repair was requested, and how often a fresh read found its effect. A growing difference means
/// that the API accepts calls that have no effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TriedReport {
    /// Which repair: `membership`, `pod-rules`, `reboot`.
    pub repair: String,
    /// The number of calls.
    pub requested: u32,
    /// The number of calls whose effect a fresh read found.
    pub verified: u32,
}

/// A repair that is not done, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldReport {
    /// The repair.
    pub what: String,
    /// Every reason, the strongest first.
    pub why: Vec<String>,
}

/// A pause of repairs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PauseReport {
    /// What it covers: `roster`, `pool/NAME` or `machine/NAME`.
    pub scope: String,
    /// Who set the pause.
    pub by: String,
    /// Why.
    pub reason: String,
}

impl From<&Pause> for PauseReport {
    fn from(pause: &Pause) -> Self {
        let scope = match &pause.scope {
            PauseScope::Roster | PauseScope::OtherController => "roster".to_owned(),
            PauseScope::Pool(name) => format!("pool/{name}"),
            PauseScope::Machine(name) => format!("machine/{name}"),
        };
        Self { scope, by: pause.by.to_string(), reason: pause.reason.to_string() }
    }
}

impl FindingReport {
    /// A finding of the core, as seen from `now`.
    pub fn new(finding: &Finding, now: Time) -> Self {
        let quoted = |facts: &[Evidence]| facts.iter().map(|fact| EvidenceReport::new(fact, now)).collect();
        let texts = |all: &[Arc<str>]| all.iter().map(ToString::to_string).collect();
        let entry = finding.cause.entry();
        let unsure = entry.filter(|_| finding.confidence < Confidence::Sure);
        Self {
            commands: entry.map_or_else(Vec::new, |entry| texts(&entry.commands)),
            collect: unsure.map_or_else(Vec::new, |entry| texts(&entry.collect)),
            follows: finding.follows.iter().map(|follower| Self::new(follower, now)).collect(),
            cause: finding.cause.label().to_owned(),
            code: finding.cause.code().to_owned(),
            title: finding.cause.says().to_owned(),
            remedy: finding.cause.remedy().to_owned(),
            stage: finding.stage.name().to_owned(),
            confidence: finding.confidence.name().to_owned(),
            evidence: quoted(&finding.evidence),
            against: quoted(&finding.against),
        }
    }
}

impl EvidenceReport {
    /// A piece of evidence of the core, as seen from `now`.
    pub fn new(fact: &Evidence, now: Time) -> Self {
        Self {
            source: fact.source.to_string(),
            text: fact.fact.to_string(),
            read: Ago::new(fact.read_at, now),
            line: fact.line.as_ref().map(|line| line.number).filter(|number| *number > 0),
            times: fact.line.as_ref().map(|line| line.times),
            sign: fact.line.as_ref().map(|line| line.sign.to_string()).filter(|sign| !sign.is_empty()),
        }
    }
}

impl AskedReport {
    /// A request of the core, as seen from `now`.
    pub fn new(asked: &Asked, now: Time) -> Self {
        Self { seen: Ago::new(asked.at, now), value: asked.value.to_string() }
    }
}

impl AttemptReport {
    /// An attempt of the core, as seen from `now`.
    pub fn new(attempt: &Attempt, now: Time) -> Self {
        let (ending, readback) = (attempt.ending.as_ref(), attempt.readback.as_ref());
        Self {
            intent: attempt.intent.to_string(),
            what: attempt.call.to_string(),
            decided: Ago::new(attempt.at, now),
            ended: ending.map(|ending| Ago::new(ending.at(), now)),
            outcome: ending.map(Ending::to_string),
            judged: readback.map(|readback| Ago::new(readback.at, now)),
            held: readback.map(|readback| readback.held),
            seen: readback.map(|readback| readback.text.to_string()),
            requested: matches!(ending, Some(Ending::Answered { .. })),
            verified: attempt.held(),
        }
    }
}
