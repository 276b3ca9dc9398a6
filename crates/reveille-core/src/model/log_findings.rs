//! What a machine said of itself, judged: texts come in, and what they prove comes out as types.
//!
//! ```text
//!  console (text) ─┐                                                    ┌▶ Guest: how far the boot came, what answered it
//!  conditions,     ├▶ catalogue, at the driver's edge ─▶ LogFindings ───┤
//!  events, csr     ┘    (pure, and outside of the core)                └▶ LogFinding: causes in order, with their lines
//! ```
//!
//! The core holds no catalogue. The performer of a console read judges the text before it hands the result to the engine;
//! the simulator does so with the same function as the driver. A recording keeps the judgement, so that a replay decides by
//! the same findings whatever the catalogue says by then. The engine asks for the findings, weighs them against ports and
//! groups, and dates them: findings have no time of their own.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::cause::Cause;
use super::evidence::{Evidence, Fact, Line, Source, quoted};
use super::guest::Guest;
use super::incident::{Confidence, Finding};
use super::log_evidence::Unread;
use super::stage::Stage;
use super::time::Time;

/// What was read of one machine, judged together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LogFindings {
    /// The end of its console, masked; or why there is none.
    pub console: Result<Arc<str>, Arc<str>>,
    /// What the console shows of the guest. Nothing, where there is none.
    pub guest: Guest,
    /// Causes, the one to act on first.
    pub told: Vec<LogFinding>,
    /// What could have told more, and was not to be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<Unread>,
}

/// A cause that the texts prove.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LogFinding {
    /// Which.
    pub cause: Cause,
    /// Where it stopped this machine.
    pub stage: Stage,
    /// How sure the texts make it.
    pub confidence: Confidence,
    /// Packets went out and nothing came back: a filter, a wire or a route, not the other side.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unanswered: bool,
    /// It got no address, or lost its link: what a port without a wire looks like from inside.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_lease: bool,
    /// Lines that prove it, strongest first.
    pub proof: Vec<Quote>,
    /// Lines that speak against it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<Quote>,
    /// What follows from it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub follows: Vec<Self>,
}

/// A line, masked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Quote {
    /// Where it was read.
    pub source: Source,
    /// What it says.
    pub text: Arc<str>,
    /// Where it stands there, and what it is a sign of.
    pub line: Line,
}

impl LogFinding {
    /// Nothing of it was read on the console: others say it of the machine, or to it.
    pub fn is_of_the_cluster(&self) -> bool {
        self.proof.iter().all(|quote| quote.source != Source::Console)
    }

    /// As a finding of what was read then.
    pub fn finding(&self, read_at: Time) -> Finding {
        let evidence = |quotes: &[Quote]| quotes.iter().map(|quote| quote.evidence(read_at)).collect();
        Finding {
            cause: self.cause.clone(),
            stage: self.stage,
            confidence: self.confidence,
            evidence: evidence(&self.proof),
            against: evidence(&self.against),
            follows: self.follows.iter().map(|told| told.finding(read_at)).collect(),
        }
    }
}

impl Quote {
    /// As evidence that was read then.
    pub fn evidence(&self, read_at: Time) -> Evidence {
        let (source, fact) = (self.source.clone(), Fact::Quoted(quoted(&self.text)));
        Evidence { source, fact, read_at, line: Some(self.line.clone()) }
    }
}
