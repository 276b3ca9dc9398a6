//! Conclusions and tries, as JSON.
//!
//! A cause is its code with its label, and what its catalogue says of it where it is a catalogue's. Lists and answers that
//! are not there are left out.

use std::sync::Arc;

use reveille_core::model::incident::{Attempt, Confidence, Evidence, Finding, Line};
use reveille_core::model::stage::Stage;
use reveille_core::model::time::Time;
use serde::{Deserialize, Serialize};

use super::FromWireError;
use super::cause::{self, WireKnown};
use super::mirror::{Mirror, mirror_struct};
use crate::stamp::Stamp;

mirror_struct! {
    WireEvidence of Evidence {
        source: Arc<str>,
        text: Arc<str>,
        read_at: Time,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<Line>,
    }
}

mirror_struct! {
    WireLine of Line {
        number: u64,
        times: u64,
        sign: Arc<str>,
    }
}

mirror_struct! {
    WireAttempt of Attempt {
        intent: reveille_core::model::id::IntentId,
        what: Arc<str>,
        at: Time,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<(Time, Arc<str>)>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        verdict: Option<(Time, bool, Arc<str>)>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        denied: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        seen: bool,
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WireFinding {
    cause: Arc<str>,
    #[serde(default)]
    label: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    known: Option<WireKnown>,
    stage: Arc<str>,
    confidence: Arc<str>,
    evidence: Vec<WireEvidence>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    against: Vec<WireEvidence>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    follows: Vec<Self>,
}

/// What a call said, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WireAnswer {
    at: Stamp,
    text: Arc<str>,
}

/// What a fresh read said, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WireJudgement {
    at: Stamp,
    held: bool,
    text: Arc<str>,
}

impl Mirror for Finding {
    type Wire = WireFinding;

    fn out(&self) -> WireFinding {
        WireFinding {
            cause: Arc::from(self.cause.code()),
            label: Arc::from(self.cause.label()),
            known: cause::known(&self.cause),
            stage: self.stage.out(),
            confidence: self.confidence.out(),
            evidence: self.evidence.out(),
            against: self.against.out(),
            follows: self.follows.out(),
        }
    }

    fn back(wire: WireFinding) -> Result<Self, FromWireError> {
        let stage = Stage::back(wire.stage)?;
        Ok(Self {
            cause: cause::back(wire.cause, wire.label, wire.known, stage)?,
            stage,
            confidence: Confidence::back(wire.confidence)?,
            evidence: Vec::back(wire.evidence)?,
            against: Vec::back(wire.against)?,
            follows: Vec::back(wire.follows)?,
        })
    }
}

impl Mirror for (Time, Arc<str>) {
    type Wire = WireAnswer;

    fn out(&self) -> WireAnswer {
        WireAnswer { at: Stamp(self.0), text: self.1.clone() }
    }

    fn back(wire: WireAnswer) -> Result<Self, FromWireError> {
        Ok((wire.at.0, wire.text))
    }
}

impl Mirror for (Time, bool, Arc<str>) {
    type Wire = WireJudgement;

    fn out(&self) -> WireJudgement {
        WireJudgement { at: Stamp(self.0), held: self.1, text: self.2.clone() }
    }

    fn back(wire: WireJudgement) -> Result<Self, FromWireError> {
        Ok((wire.at.0, wire.held, wire.text))
    }
}
