//! What comes out: findings in the order in which to act, and an honest "could not tell".

use reveille_core::model::stage::Stage;

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// Something else may explain it as well.
    Possible,
    /// The usual reason of what was seen.
    Likely,
    /// The text itself says so.
    Sure,
}

impl Confidence {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Possible => "possible",
            Self::Likely => "likely",
            Self::Sure => "sure",
        }
    }
}

/// A line that was seen, masked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote {
    /// Where it came from.
    pub source: String,
    /// Its line there, from 1.
    pub line: u64,
    /// The line, without secrets and control characters, cut to a readable length.
    pub text: String,
    /// How often lines like it were seen in that source.
    pub times: u64,
    /// The sign of the catalogue that it carries: what in it proves the cause.
    pub sign: String,
}

/// One cause with its proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The taxonomy's label.
    pub cause: String,
    /// Stable code with a page of its own.
    pub code: String,
    /// Where on its way the machine stopped.
    pub stage: Stage,
    /// How sure it is.
    pub confidence: Confidence,
    /// What is wrong, as a clause.
    pub title: String,
    /// Lines that prove it, strongest first.
    pub evidence: Vec<Quote>,
    /// What speaks against it.
    pub against: Vec<Quote>,
    /// What to do, in words.
    pub remedy: String,
    /// What to do, as commands to copy.
    pub commands: Vec<String>,
    /// What to collect next when it is not sure.
    pub collect: Vec<String>,
    /// Causes that follow from this one and end with it.
    pub follows: Vec<Self>,
}

/// Why it could not be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// Where the machine stopped, when the lines tell that and not why.
    pub stage: Option<Stage>,
    /// What was there.
    pub says: String,
    /// Lines that sound like trouble and that nothing in the catalogue explains.
    pub lines: Vec<Quote>,
    /// What to collect next.
    pub collect: Vec<String>,
}

/// The whole answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnosis {
    /// Best first; empty when nothing is wrong, or when it could not be told.
    pub findings: Vec<Finding>,
    /// Why it could not be told; `None` when it could.
    pub unknown: Option<Unknown>,
}
