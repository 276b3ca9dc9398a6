//! The catalogue's files as they are written, and the errors found in them.
//!
//! One file holds one cause with its signs, a list of marks, or a list of steps. Unknown fields are refused, so that a
//! misspelt one is not silently nothing.

use serde::Deserialize;
use serde_saphyr::{MessageFormatter as _, Spanned};

use super::Complaint;

/// One or several, as is easier to write.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Few {
    One(String),
    Several(Vec<String>),
}

impl Few {
    pub(super) fn list(&self) -> Vec<String> {
        match self {
            Self::One(one) => vec![one.clone()],
            Self::Several(several) => several.clone(),
        }
    }
}

impl Default for Few {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

/// A file that describes a cause.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CauseDocument {
    pub(super) cause: Spanned<String>,
    pub(super) code: Spanned<String>,
    pub(super) stage: Spanned<String>,
    pub(super) title: String,
    pub(super) because: String,
    pub(super) remedy: String,
    #[serde(default)]
    pub(super) commands: Vec<String>,
    #[serde(default)]
    pub(super) collect: Vec<String>,
    #[serde(default)]
    pub(super) explains: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) first_boot: bool,
    #[serde(default)]
    pub(super) no_cause: bool,
    #[serde(default)]
    pub(super) no_use: NoUseDocument,
    #[serde(default)]
    pub(super) stage_when: Vec<StageWhen>,
    pub(super) signs: Vec<Spanned<SignDocument>>,
}

/// Repairs that are of no use against a cause, each with why.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoUseDocument {
    #[serde(default)]
    pub(super) reboot: Option<String>,
    #[serde(default)]
    pub(super) replace: Option<String>,
}

/// Where the machine stands under other circumstances.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StageWhen {
    pub(super) stage: Spanned<String>,
    pub(super) with: Vec<Spanned<String>>,
}

/// A file of marks.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MarksDocument {
    pub(super) marks: Vec<Spanned<SignDocument>>,
}

/// A file of steps.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepsDocument {
    pub(super) boot: Vec<Spanned<StepDocument>>,
}

/// What a console shows of the guest.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepDocument {
    pub(super) id: Spanned<String>,
    pub(super) tells: Few,
    pub(super) says: Few,
    #[serde(default)]
    pub(super) unless: Few,
    pub(super) yes: Vec<String>,
    pub(super) near: Vec<String>,
}

/// A sign or a mark.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SignDocument {
    pub(super) id: Spanned<String>,
    #[serde(default)]
    pub(super) says: Few,
    #[serde(default)]
    pub(super) fact: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) unless: Few,
    #[serde(default)]
    pub(super) proof: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) weak: bool,
    #[serde(default)]
    pub(super) level: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) at_least: Option<u64>,
    #[serde(default)]
    pub(super) often: Option<u64>,
    #[serde(default)]
    pub(super) lasting_s: Option<u32>,
    #[serde(default)]
    pub(super) soon_after: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) soon_s: Option<u32>,
    #[serde(default)]
    pub(super) with: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) without: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) on: Vec<String>,
    #[serde(default)]
    pub(super) not_on: Vec<String>,
    #[serde(default)]
    pub(super) taken_back_by: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) stage: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) whole: bool,
    #[serde(default)]
    pub(super) harmless: bool,
    #[serde(default)]
    pub(super) excuses: bool,
    #[serde(default)]
    pub(super) new_boot: bool,
    #[serde(default)]
    pub(super) well: bool,
    #[serde(default)]
    pub(super) source: Option<String>,
    pub(super) yes: Vec<String>,
    pub(super) near: Vec<String>,
}

/// A file, read.
#[derive(Debug)]
pub(super) enum Document {
    Cause(Box<CauseDocument>),
    Marks(MarksDocument),
    Steps(StepsDocument),
}

/// Reads one file.
pub(super) fn read(name: &str, text: &str) -> Result<Document, Complaint> {
    let begins = |word: &str| text.lines().any(|line| line.starts_with(word));
    let options = || {
        serde_saphyr::options! {
            with_snippet: false,
            strict_booleans: true,
            budget: serde_saphyr::budget! { max_documents: 1, max_depth: 12, max_nodes: 50_000, max_aliases: 0 },
        }
    };
    let read = if begins("marks:") {
        serde_saphyr::from_str_with_options::<MarksDocument>(text, options()).map(Document::Marks)
    } else if begins("boot:") {
        serde_saphyr::from_str_with_options::<StepsDocument>(text, options()).map(Document::Steps)
    } else {
        serde_saphyr::from_str_with_options::<CauseDocument>(text, options())
            .map(|cause| Document::Cause(Box::new(cause)))
    };
    read.map_err(|error| Complaint {
        file: name.to_owned(),
        line: error.location().map_or(0, |at| at.line()),
        field: "file".to_owned(),
        says: serde_saphyr::UserMessageFormatter.format_message(error.without_snippet()).into_owned(),
    })
}
