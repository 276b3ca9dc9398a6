//! Answers as XML: one decoder, and the shapes that many answers share.
//!
//! An answer counts only when its root element names the answer to the request. Otherwise a proxy's page with status 200 would be
//! read as an empty list. The types that decode an answer name its content; for them a missing list is an error, and an empty one
//! is not.

use quick_xml::events::Event;
use reveille_cloud::report::Reading;
use reveille_cloud::text::{bounded, message};
use reveille_core::effect::{ReadError, ReadErrorKind};
use reveille_core::model::id::{InstanceId, RequestId};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::actions::Action;

const HANDLE_MAX_BYTES: usize = 80;

/// `<xSet><item/>…</xSet>` in EC2, `<X><member/>…</X>` in Auto Scaling.
#[derive(Debug, Deserialize)]
pub(crate) struct Set<T> {
    #[serde(rename = "item", alias = "member", default = "Vec::new")]
    pub(crate) items: Vec<T>,
}

impl<T> Default for Set<T> {
    fn default() -> Self {
        Self { items: Vec::new() }
    }
}

/// One tag.
#[derive(Debug, Deserialize)]
pub(crate) struct Tag {
    pub(crate) key: String,
    #[serde(default)]
    pub(crate) value: String,
}

/// The id in the one spelling that nodes are matched by.
pub(crate) fn instance_id(text: &str) -> InstanceId {
    InstanceId::from(text.trim().to_ascii_lowercase().as_str())
}

/// Reads an answer to `action`.
pub(crate) fn decode<T: DeserializeOwned>(
    body: &[u8],
    action: &Action,
    reading: &Reading,
) -> Result<T, ReadError> {
    let text = std::str::from_utf8(body)
        .map_err(|_| reading.error(ReadErrorKind::Malformed, "the answer is not text"))?;
    let wanted = action.answer();
    if root(text).as_deref() != Some(&wanted) {
        let cause = format!("the answer is not a {wanted}: something in between may have answered");
        return Err(reading.error(ReadErrorKind::Malformed, &cause));
    }
    if !ends(text, &wanted) {
        return Err(reading.error(ReadErrorKind::Incomplete, "the answer ends too early"));
    }
    // The parser's words may quote the answer, which may quote user data: only that it failed is told.
    quick_xml::de::from_str(text).map_err(|error| {
        tracing::debug!(action = action.name, kind = ?std::mem::discriminant(&error), "answer not understood");
        reading.error(ReadErrorKind::Malformed, "the answer cannot be read as expected")
    })
}

/// The whole of AWS's own answer to this change, and it does not say that nothing was done.
pub(crate) fn confirms(body: &[u8], action: &Action) -> bool {
    #[derive(Deserialize)]
    struct Body {
        #[serde(rename = "return")]
        done: Option<String>,
    }
    let Ok(text) = std::str::from_utf8(body) else { return false };
    let wanted = action.answer();
    let is_answer = root(text).as_deref() == Some(&wanted) && ends(text, &wanted);
    let body = quick_xml::de::from_str::<Body>(text);
    is_answer && body.is_ok_and(|body| body.done.is_none_or(|done| done.trim() != "false"))
}

fn ends(text: &str, element: &str) -> bool {
    text.trim_end().ends_with(&format!("</{element}>"))
}

/// AWS's handle on an answer, for its operator.
pub(crate) fn request_id(body: &[u8]) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct Body {
        #[serde(rename = "requestId")]
        id: Option<String>,
        #[serde(rename = "ResponseMetadata")]
        metadata: Option<Metadata>,
    }
    #[derive(Deserialize)]
    struct Metadata {
        #[serde(rename = "RequestId")]
        id: Option<String>,
    }
    let body: Body = quick_xml::de::from_str(std::str::from_utf8(body).ok()?).ok()?;
    let id = body.id.or(body.metadata.and_then(|metadata| metadata.id))?;
    Some(handle(&id))
}

/// A handle as it may stand in a sentence: XML can write any character into it.
pub(crate) fn handle(id: &str) -> RequestId {
    RequestId::from(bounded(&message(id), HANDLE_MAX_BYTES))
}

/// The name of the first element.
fn root(text: &str) -> Option<String> {
    let mut reader = quick_xml::Reader::from_str(text);
    loop {
        match reader.read_event().ok()? {
            Event::Start(start) => return Some(start.local_name().as_ref().to_owned()),
            Event::Empty(_) | Event::Eof => return None,
            _ => {}
        }
    }
}

/// AWS writes "nothing" as no element here and as an empty one there.
pub(crate) fn filled(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The handle on a change that was made stands in a line of the log as well.
    #[test]
    fn handle_on_a_success_forges_no_line() {
        let id = request_id(b"<R><requestId>r&#10;forged</requestId></R>").unwrap().to_string();
        assert_eq!(id, "r forged");
    }
}
