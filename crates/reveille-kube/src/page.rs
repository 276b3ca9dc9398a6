//! One page of a list: how much of it to ask for, and the pages of hints (events, certificate requests).
//!
//! ```text
//!  limit 500 ─▶ too long ─▶ 250 ─▶ too long ─▶ 125 ─▶ read ─▶ 250 ─▶ …      the same place each time; 1 and no fewer
//! ```
//!
//! The client that writes an object chooses its length, and thirty objects of nine megabytes fill more than one answer may have.
//! The same request for such a page would fail every time. So a page that is too long to be read is requested again at once with
//! half as many items or fewer. Each page that was read doubles the next one.
//!
//! A page of hints is read whole, and it is a list: it says where it stands in history. What its items mean is not looked
//! at here; a page of nodes, on which much more rests, is read by `listing`.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kube::core::request::Error;
use serde_json::value::RawValue;

use crate::failure::{Failure, Reached};
use crate::paths::Ask;
use crate::session::{Question, Session};
use crate::wire::List;

/// Items of one page, when they are as long as usual: a node is 5 to 20 KiB on the wire.
const PAGE: u32 = 500;

/// One page of a list.
pub(crate) const PAGE_WITHIN: Duration = Duration::from_secs(30);

/// How many items the next page is asked for with.
pub(crate) struct Limit(AtomicU32);

impl Default for Limit {
    fn default() -> Self {
        Self(AtomicU32::new(PAGE))
    }
}

impl Limit {
    /// So many.
    pub(crate) fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// A page of so many items could not be read to its end: at most half of what arrived is asked for, or of what was
    /// asked for where that is not known. False when it was one item alone.
    pub(crate) fn shrinks(&self, arrived: usize) -> bool {
        let was = self.get();
        let came = u32::try_from(arrived).ok().filter(|came| *came > 0);
        let half = came.map_or(was, |came| came.min(was)) / 2;
        self.0.store(half.max(1), Ordering::Relaxed);
        was > 1
    }

    /// A page was read: the next one may have twice as many.
    pub(crate) fn worked(&self) {
        self.0.store(self.get().saturating_mul(2).min(PAGE), Ordering::Relaxed);
    }
}

/// What a page holds.
pub(crate) struct Page<'a> {
    /// Where the list stands in history.
    pub(crate) version: String,
    /// Its objects, not decoded yet.
    pub(crate) items: Vec<&'a RawValue>,
    /// What to ask for the next page with; `None` after the last one.
    pub(crate) next: Option<String>,
}

/// Reads one page of a list of `what` into `body`; `ask` says how to ask for so many items of it.
pub(crate) async fn page<'a>(
    session: &Session,
    limit: &Limit,
    ask: impl Fn(u32) -> Result<Ask, Error>,
    what: &str,
    body: &'a mut Vec<u8>,
) -> Result<Page<'a>, Failure> {
    loop {
        let ask = ask(limit.get()).map_err(|error| Failure::unsendable(&error))?;
        match session.read(Question { ask, within: PAGE_WITHIN, about: None }, body).await {
            Ok(_) => break,
            Err(failure) if failure.reached == Reached::TooLong && limit.shrinks(0) => {}
            Err(failure) => return Err(failure),
        }
    }
    limit.worked();
    let list: List<'a> = serde_json::from_slice(body)
        .map_err(|error| Failure::unread(format!("the list of {what}"), &error))?;
    let version = list.metadata.resource_version.filter(|version| !version.is_empty());
    Ok(Page {
        version: version
            .ok_or_else(|| Failure::malformed(format!("the list of {what} is no list: it has no version")))?,
        items: list.items.unwrap_or_default(),
        next: list.metadata.next.filter(|next| !next.is_empty()),
    })
}
