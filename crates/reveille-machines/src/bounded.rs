//! Texts of other systems, cut to a length and without characters that a reader does not see.
//!
//! Two sorts of text come in. Words (a reason, a message) are shortened, because their beginning is of use. An identity (a
//! provider ID, the name of a Node) is never shortened: half of it names nothing, or another machine.

use std::sync::Arc;

use reveille_core::model::hidden::is_hidden;
use serde_json::Value;

/// A message of a condition, in bytes. Karpenter writes up to 300, Cluster API up to 10,240: the first 256 name the cause.
pub(crate) const MESSAGE_BYTES_MAX: usize = 256;
/// A reason, in bytes. It is one word in CamelCase; Kubernetes allows 1,024, the longest that we know has 50.
pub(crate) const REASON_BYTES_MAX: usize = 128;
/// The type or status of a condition, in bytes. Kubernetes allows 316 for a type.
pub(crate) const WORD_BYTES_MAX: usize = 316;
/// A time as text, in bytes. RFC 3339 with nanoseconds and an offset has 35.
pub(crate) const TIME_BYTES_MAX: usize = 40;
/// A provider ID, in bytes: what Cluster API allows. OpenStack's, the longest that we know, has 60.
pub(crate) const PROVIDER_ID_BYTES_MAX: usize = 512;
/// A name of an object, in bytes: what Kubernetes allows. A failure domain of Cluster API may have three more.
pub(crate) const NAME_BYTES_MAX: usize = 256;

/// What sort of JSON value something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sort {
    /// `null`, or no value at all.
    Nothing,
    /// `true` or `false`.
    Bool,
    /// A number.
    Number,
    /// A text.
    Text,
    /// A text that is empty.
    EmptyText,
    /// A text that is longer than such a text can be.
    LongText,
    /// A text with control characters or others that are not seen.
    HiddenText,
    /// A list.
    List,
    /// A list, or a mapping, with more entries than are read.
    LongList,
    /// A mapping.
    Mapping,
}

impl Sort {
    /// Of a value, by its type alone.
    pub(crate) const fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Nothing,
            Value::Bool(_) => Self::Bool,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::Text,
            Value::Array(_) => Self::List,
            Value::Object(_) => Self::Mapping,
        }
    }

    /// As a noun.
    pub const fn says(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Bool => "true or false",
            Self::Number => "a number",
            Self::Text => "a text",
            Self::EmptyText => "an empty text",
            Self::LongText => "a text that is too long",
            Self::HiddenText => "a text with control characters",
            Self::List => "a list",
            Self::LongList => "a list with too many entries",
            Self::Mapping => "a mapping",
        }
    }
}

/// Words, shortened to so many bytes at the end of a character. Characters that are not seen become a space.
pub(crate) fn words(text: &str, bytes_max: usize) -> Arc<str> {
    let mut short = String::with_capacity(text.len().min(bytes_max));
    for c in text.chars() {
        let c = if is_hidden(c) { ' ' } else { c };
        if short.len() + c.len_utf8() > bytes_max {
            break;
        }
        short.push(c);
    }
    short.trim().into()
}

/// An identity, as it is.
///
/// # Errors
///
/// What the value is, where it cannot be one: no text, an empty one, a longer one than allowed, or one with characters that
/// are not seen.
pub(crate) fn identity(value: &Value, bytes_max: usize) -> Result<&str, Sort> {
    match value {
        Value::String(text) if text.is_empty() => Err(Sort::EmptyText),
        Value::String(text) if text.len() > bytes_max => Err(Sort::LongText),
        Value::String(text) if text.chars().any(is_hidden) => Err(Sort::HiddenText),
        Value::String(text) => Ok(text),
        other => Err(Sort::of(other)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_are_cut_at_a_character_and_shown_in_one_line() {
        assert_eq!(&*words("a\nb\u{1b}[31mc\u{202e}", 64), "a b [31mc");
        assert_eq!(&*words("ääää", 5), "ää");
        assert_eq!(words(&"x".repeat(5000), MESSAGE_BYTES_MAX).len(), MESSAGE_BYTES_MAX);
    }

    #[test]
    fn identity_is_whole_or_refused() {
        assert_eq!(identity(&json!("aws:///eu/i-1"), 64), Ok("aws:///eu/i-1"));
        for (value, sort) in [
            (json!(""), Sort::EmptyText),
            (json!("x".repeat(65)), Sort::LongText),
            (json!("a\nb"), Sort::HiddenText),
            (json!(["a"]), Sort::List),
            (json!(7), Sort::Number),
        ] {
            assert_eq!(identity(&value, 64), Err(sort));
        }
    }
}
