//! Conclusions and tries, as JSON.
//!
//! A cause is its code with its label, and what its catalogue says of it where it is a catalogue's. Lists and answers that
//! are not there are left out.

use std::sync::Arc;

use reveille_core::effect::{Call, Outcome};
use reveille_core::model::attempt::{Attempt, Ending, Readback};
use reveille_core::model::incident::{Confidence, Evidence, Finding, Line};
use reveille_core::model::stage::Stage;
use reveille_core::model::time::Time;
use serde::{Deserialize, Serialize};

use super::FromWireError;
use super::cause::{self, WireKnown};
use super::mirror::{Mirror, mirror_enum, mirror_struct};

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
        call: Call,
        at: Time,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ending: Option<Ending>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        readback: Option<Readback>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        seen: bool,
    }
}

mirror_enum! {
    WireEnding of Ending by "is" {
        "dropped" Dropped { at: Time, why: Arc<str> },
        "answered" Answered { at: Time, outcome: Outcome },
    }
}

mirror_struct! {
    WireReadback of Readback { at: Time, held: bool, text: Arc<str> }
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
