//! All pages of a listing, or none of them.
//!
//! The module follows tokens. A token that comes twice, a page that fails or ends too early, and a listing without end each make
//! the whole listing void. An empty page with a token is none of these: EC2 filters after it has cut its pages. Pages shift while
//! other clients work; the same object on two pages counts once, the later reading wins.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use reveille_core::effect::{ReadError, ReadErrorKind};
use serde::de::DeserializeOwned;

use crate::client::Client;
use crate::query::Request;
use crate::reply::{decode, filled};
use crate::report::Reading;

/// Half a million instances.
const PAGES_MAX: u32 = 1000;
/// All pages of one list together.
const LISTING_DEADLINE: Duration = Duration::from_secs(180);

/// A page, decoded: objects by their id, and the token of the next one.
pub(crate) struct Page<T> {
    pub(crate) items: Vec<(String, T)>,
    pub(crate) next: Option<String>,
}

/// Reads every page of `request`.
pub(crate) async fn all_pages<P: DeserializeOwned, T>(
    client: &Client,
    request: Request,
    reading: Reading,
    page_of: impl Fn(P) -> Page<T>,
) -> Result<BTreeMap<String, T>, ReadError> {
    let late = reading
        .error(ReadErrorKind::TimedOut, &format!("not all pages within {} s", LISTING_DEADLINE.as_secs()));
    let pages = follow(client, request, reading, page_of);
    tokio::time::timeout(LISTING_DEADLINE, pages).await.unwrap_or(Err(late))
}

async fn follow<P: DeserializeOwned, T>(
    client: &Client,
    request: Request,
    mut reading: Reading,
    page_of: impl Fn(P) -> Page<T>,
) -> Result<BTreeMap<String, T>, ReadError> {
    let mut all = BTreeMap::new();
    let mut tokens = BTreeSet::new();
    let mut token: Option<String> = None;
    loop {
        let page = match token {
            Some(token) => request.clone().with("NextToken", token),
            None => request.clone(),
        };
        let body = client.send(&page).await.map_err(|error| reading.failed(&error))?;
        let page = page_of(decode(&body, request.action, &reading)?);
        all.extend(page.items);
        let Some(next) = filled(page.next) else { return Ok(all) };
        if !tokens.insert(next.clone()) {
            return Err(
                reading.error(ReadErrorKind::Incomplete, "the next page would be one that was read already")
            );
        }
        if reading.page >= PAGES_MAX {
            return Err(reading.error(ReadErrorKind::Incomplete, "the listing has no end"));
        }
        reading.page += 1;
        token = Some(next);
    }
}
