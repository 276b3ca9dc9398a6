//! YAML of kubeadm and the kubelet: several documents, unknown fields ignored, size and depth bounded.

use serde::de::DeserializeOwned;
use serde_saphyr::{MessageFormatter as _, Options, UserMessageFormatter};

use super::TargetError;

/// All non-empty documents of the text.
///
/// # Errors
///
/// The text is not YAML, or a field has a wrong type: the line, and the parser's words without the text around them,
/// which may contain a token.
pub(crate) fn documents<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, TargetError> {
    serde_saphyr::from_multiple_with_options(text, options()).map_err(|error| {
        let place = error.location().map_or("the file".to_owned(), |at| format!("line {}", at.line()));
        let said = UserMessageFormatter.format_message(error.without_snippet());
        let said: String = said.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        TargetError::new(place, format!("it cannot be read: {said}"), "correct that line")
    })
}

fn options() -> Options {
    serde_saphyr::options! {
        with_snippet: false,
        budget: serde_saphyr::budget! { max_documents: 16, max_depth: 24, max_nodes: 50_000, max_aliases: 0 },
    }
}
