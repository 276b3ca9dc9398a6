//! What several reports share: moments, sources, findings, tries, holds.

use std::sync::Arc;

use reveille_core::event::{Pause, PauseScope};
use reveille_core::model::attempt::{Attempt, Ending};
use reveille_core::model::incident::{Asked, Confidence, Evidence, Finding, MachineKey};
use reveille_core::model::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// A moment that has been.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ago {
    /// When, on our clock.
    pub at: Time,
    /// Seconds from then to the making of the report; not negative.
    pub ago_s: f64,
}

/// A moment to come.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct In {
    /// When, on our clock.
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

/// Seconds with milliseconds behind the point.
fn seconds(span: Span) -> f64 {
    span.ms as f64 / 1000.0
}

/// How a machine is named across reports: `CLOUD/INSTANCE-ID`, or `node/NAME` where no instance stands behind it.
pub fn key_text(key: &MachineKey) -> String {
    match key {
        MachineKey::Instance(cloud, id) => format!("{cloud}/{id}"),
        MachineKey::Node(name) => format!("node/{name}"),
    }
}

/// One source of truth and how far it can be believed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceReport {
    /// `cluster`, or the roster's name of the cloud.
    pub name: String,
    /// When it last said everything; not there when it never did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Ago>,
    /// True when its last answer was whole.
    pub complete: bool,
    /// True when absence may be judged from it.
    pub trusted: bool,
    /// Why not, when it is not trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}

/// What was concluded, and from what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FindingReport {
    /// The cause's label: `security-group-missing`.
    pub cause: String,
    /// The cause's code: `RV104`.
    pub code: String,
    /// What is amiss, as a clause.
    #[serde(alias = "says")]
    pub title: String,
    /// What a person would do about it.
    pub remedy: String,
    /// The same, as commands to copy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// What to collect next when it is not sure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collect: Vec<String>,
    /// Name of the stage where the machine stopped.
    pub stage: String,
    /// `possible`, `likely` or `sure`.
    pub confidence: String,
    /// What speaks for it, strongest first.
    pub evidence: Vec<EvidenceReport>,
    /// What speaks against it.
    pub against: Vec<EvidenceReport>,
    /// What follows from it and ends with it.
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
    /// The sign of the catalogue that it carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign: Option<String>,
}

/// One try.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptReport {
    /// The intent: `int-9`.
    pub intent: String,
    /// What was to be done.
    pub what: String,
    /// When it was decided.
    pub decided: Ago,
    /// When the call ended; not there while it is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ago>,
    /// What the call said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// When a fresh read judged it; not there before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<Ago>,
    /// True when it held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<bool>,
    /// What the fresh read saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// True once the call was made, whatever came of it; one that was dropped before never was.
    #[serde(default)]
    pub requested: bool,
    /// True when a fresh read found its effect.
    #[serde(default)]
    pub verified: bool,
}

/// A person's request for a repair now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskedReport {
    /// When it was seen.
    pub seen: Ago,
    /// In the person's words.
    pub value: String,
}

/// How often one kind of repair was asked for and how often a fresh read found its effect. Where the two drift apart,
/// calls are accepted and nothing happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TriedReport {
    /// Which repair: `membership`, `pod-rules`, `reboot`.
    pub repair: String,
    /// Calls made.
    pub requested: u32,
    /// Of these, effects that a fresh read found.
    pub verified: u32,
}

/// Something that is not done, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldReport {
    /// What.
    pub what: String,
    /// Every reason, the strongest first.
    pub why: Vec<String>,
}

/// A standing "hands off".
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PauseReport {
    /// What it covers: `roster`, `pool/NAME` or `machine/NAME`.
    pub scope: String,
    /// Who said so.
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
    /// A fact of the core, as seen from `now`.
    pub fn new(fact: &Evidence, now: Time) -> Self {
        Self {
            source: fact.source.to_string(),
            text: fact.text.to_string(),
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
    /// A try of the core, as seen from `now`.
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
