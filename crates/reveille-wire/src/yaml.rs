//! YAML that another program or a person wrote: size and depth bounded, and errors that quote no value.
//!
//! ```text
//!  documents   what lies on a machine or comes in a plan: no aliases, 24 levels, 50,000 nodes
//!  plan        a plan's own configuration: the same with fewer nodes, so that what is made of it can be read again
//!  written     a file that the operator of this program wrote: aliases too
//! ```
//!
//! A value in such a text may be a secret, and errors are logged. So an error has the place, the parser's words, and the
//! names of fields, and neither the lines around the place nor a value.

use serde::de::DeserializeOwned;
use serde_saphyr::{Error as Cause, MessageFormatter as _, Options, UserMessageFormatter};
use thiserror::Error;

/// Levels of a document: more than any configuration of a node has.
const DEPTH_MAX: usize = 24;
/// Nodes of a text: more than any configuration of a node has.
const NODES_MAX: usize = 50_000;
/// Nodes of a plan's configuration. The agent adds labels and taints of the plan, which are at most the values of a frame
/// (16,384), the server and the token's file, and reads the result back with [`NODES_MAX`].
const PLAN_NODES_MAX: usize = 32_000;
/// Aliases in a file of the operator: as many as a roster may have.
const ALIASES_MAX: usize = 1_000;
/// An error is a sentence. A longer one quotes a field whose name is no name.
const WORDS_MAX: usize = 500;

/// A text that is not the YAML that was expected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}{what}", self.at())]
pub struct Unreadable {
    /// Line and column, from one, where the parser knows them.
    pub place: Option<(u64, u64)>,
    /// The parser's words, in one line, without a value of the text.
    pub what: String,
}

impl Unreadable {
    fn of(error: &Cause) -> Self {
        let said = words(error.without_snippet());
        let said = said.chars().map(|c| if c.is_control() { ' ' } else { c });
        Self {
            place: error.location().map(|at| (at.line(), at.column())),
            what: said.take(WORDS_MAX).collect(),
        }
    }

    fn at(&self) -> String {
        self.place.map_or_else(String::new, |(line, column)| format!("line {line}, column {column}: "))
    }
}

/// All non-empty documents of a text that lies on a machine.
///
/// # Errors
///
/// The text is not YAML, is larger than any such text, has an alias, or a field has a wrong type.
pub fn documents<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, Unreadable> {
    serde_saphyr::from_multiple_with_options(text, options(NODES_MAX, 0))
        .map_err(|error| Unreadable::of(&error))
}

/// The one document of a plan's configuration.
///
/// # Errors
///
/// As for [`documents`], or there is another number of documents.
pub fn plan<T: DeserializeOwned>(text: &str) -> Result<T, Unreadable> {
    one(text, options(PLAN_NODES_MAX, 0))
}

/// The one document of a file that the operator of this program wrote.
///
/// # Errors
///
/// As for [`plan`].
pub fn written<T: DeserializeOwned>(text: &str) -> Result<T, Unreadable> {
    one(text, options(NODES_MAX, ALIASES_MAX))
}

fn one<T: DeserializeOwned>(text: &str, options: Options) -> Result<T, Unreadable> {
    serde_saphyr::from_str_with_options(text, options).map_err(|error| Unreadable::of(&error))
}

fn options(max_nodes: usize, max_aliases: usize) -> Options {
    serde_saphyr::options! {
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_documents: 16,
            max_depth: DEPTH_MAX,
            max_nodes: max_nodes,
            max_aliases: max_aliases,
        },
    }
}

/// The parser's words. serde quotes the value that it found, and the parser a tag, which is the beginning of a value:
/// of these only the sort is told.
fn words(error: &Cause) -> String {
    match error {
        Cause::AliasError { error, .. } => words(error),
        Cause::SerdeInvalidType { unexpected, expected, .. }
        | Cause::SerdeInvalidValue { unexpected, expected, .. } => {
            format!("{}, where {expected} belongs", sort(unexpected))
        }
        Cause::SerdeUnknownVariant { expected, .. } => {
            format!("none of the words that are taken: {}", expected.join(", "))
        }
        Cause::SerdeVariantId { .. } | Cause::TaggedEnumMismatch { .. } => {
            "none of the words that are taken".to_owned()
        }
        Cause::UnsupportedTag { .. } => "a tag that is not taken; put a text in quotes".to_owned(),
        Cause::NonFiniteFloat { .. } => "a number that is not finite".to_owned(),
        other => UserMessageFormatter.format_message(other).into_owned(),
    }
}

/// What was found, without its value: `string "x"` is a text.
fn sort(unexpected: &str) -> &'static str {
    const SORTS: [(&str, &str); 9] = [
        ("boolean", "true or false"),
        ("integer", "a number"),
        ("floating point", "a number"),
        ("character", "a text"),
        ("string", "a text"),
        ("unit", "nothing"),
        ("null", "nothing"),
        ("sequence", "a list"),
        ("map", "a mapping"),
    ];
    let found = SORTS.iter().find(|(begins, _)| unexpected.starts_with(begins));
    found.map_or("something else", |(_, sort)| sort)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::Value;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only that it cannot be read counts")]
    struct Fields {
        list: Option<Vec<u32>>,
        map: Option<BTreeMap<String, String>>,
        word: Option<Word>,
        is: Option<bool>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        One,
    }

    #[test]
    fn no_value_of_a_text_that_cannot_be_read_is_in_the_error() {
        for text in [
            "list: c4n4ry",
            "map: c4n4ry",
            "map: [c4n4ry]",
            "word: c4n4ry",
            "word: {c4n4ry: 1}",
            "word: !c4n4ry x",
            "is: c4n4ry",
            "list: [c4n4ry]",
            "c4n4ry",
            "# c4n4ry\nlist: [",
            "map: {a: \"c4n4ry}",
            "map:\n  a: c4n4ry\n b: c\n",
            "map: {a: *c4n4ry}",
            "map: {a: c4n4ry: b}",
        ] {
            let error = one::<Fields>(text, options(100, 0)).unwrap_err();
            let told = format!("{error} {error:?}");
            assert!(!told.contains("c4n4ry"), "{text}: {told}");
            assert!(!error.what.is_empty(), "{text}");
        }
        let error = written::<Fields>("list: []\nlisst: c4n4ry\n").unwrap_err().to_string();
        assert!(error.starts_with("line 2, column 1: ") && error.contains("lisst"), "{error}");
    }

    #[test]
    fn what_is_too_deep_too_large_or_has_an_alias_is_read_nowhere() {
        let deep = format!("a: {}{}", "[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX));
        let large = format!("a: [b{}]", ",b".repeat(NODES_MAX));
        for text in [deep.as_str(), &large, "a: &x b\nc: *x\n"] {
            assert!(documents::<Value>(text).is_err());
            assert!(plan::<Value>(text).is_err());
        }
        assert!(written::<Value>("a: &x b\nc: *x\n").is_ok());
        let between = format!("a: [b{}]", ",b".repeat(PLAN_NODES_MAX));
        assert!(plan::<Value>(&between).is_err() && documents::<Value>(&between).is_ok());
    }
}
