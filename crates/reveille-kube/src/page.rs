//! One page of a list of hints: events, certificate requests.
//!
//! It is read whole, and it is a list: it says where it stands in history. What its items mean is not looked at here; a page
//! of nodes, on which much more rests, is read by `roll`.

use serde_json::value::RawValue;

use crate::cluster::Inner;
use crate::failure::Failure;
use crate::paths::Ask;
use crate::roll::PAGE_WITHIN;
use crate::session::Question;
use crate::wire::List;

/// What a page holds.
pub(crate) struct Page<'a> {
    /// Where the list stands in history.
    pub(crate) version: String,
    /// Its objects, not decoded yet.
    pub(crate) items: Vec<&'a RawValue>,
    /// What to ask for the next page with; `None` after the last one.
    pub(crate) next: Option<String>,
}

/// Reads one page of a list of `what` into `body`.
pub(crate) async fn page<'a>(
    cluster: &Inner,
    ask: Ask,
    what: &str,
    body: &'a mut Vec<u8>,
) -> Result<Page<'a>, Failure> {
    cluster.session.read(Question { ask, within: PAGE_WITHIN, about: None }, body).await?;
    let list: List<'a> = serde_json::from_slice(body)
        .map_err(|error| Failure::malformed(format!("the list of {what} cannot be read: {error}")))?;
    let version = list.metadata.resource_version.filter(|version| !version.is_empty());
    Ok(Page {
        version: version
            .ok_or_else(|| Failure::malformed(format!("the list of {what} is no list: it has no version")))?,
        items: list.items.unwrap_or_default(),
        next: list.metadata.next.filter(|next| !next.is_empty()),
    })
}
