//! All pages of a listing, or none of them.
//!
//! The module follows `next` links by their marker, never by their address: an address behind a proxy may lead elsewhere. A
//! marker that comes twice, a page that brings nothing new, one that fails or ends too early, and a listing without end each make
//! the whole listing void. Pages shift while other clients work; the same object on two pages counts once, the later reading
//! wins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::{StatusCode, Url};
use reveille_core::effect::{ReadError, ReadErrorKind};
use serde::Deserialize;

use crate::client::{Client, Request};
use crate::refusal::Refusal;
use crate::report::Reading;

/// A million servers.
const PAGES_MAX: u32 = 1000;
/// All pages of one list together.
const LISTING_DEADLINE: Duration = Duration::from_secs(180);

/// A link below a page.
#[derive(Deserialize)]
pub(crate) struct Link {
    rel: String,
    href: String,
}

/// One page, decoded: objects by their id, and where the next one begins.
#[derive(Debug)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<(Arc<str>, T)>,
    pub(crate) next: Option<Next>,
}

/// A page's `next` link.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// After this object.
    Marker(String),
    /// There is a link, and no marker in it: after the page's last object.
    Last,
}

/// What a page's links say.
pub(crate) fn next_of(links: &[Link]) -> Option<Next> {
    let link = links.iter().find(|link| link.rel == "next")?;
    // Some services give a path only; any base will do, because only the query counts.
    let marker = Url::parse(&link.href)
        .or_else(|_| Url::parse("http://link.invalid").and_then(|base| base.join(&link.href)))
        .ok()
        .and_then(|url| {
            url.query_pairs().find(|(key, _)| key == "marker").map(|(_, value)| value.into_owned())
        });
    Some(marker.map_or(Next::Last, Next::Marker))
}

/// A whole listing.
#[derive(Debug)]
pub(crate) struct Listing<T> {
    /// Every object once, by its id.
    pub(crate) items: BTreeMap<Arc<str>, T>,
    /// The server's clock just before it read the first page: its `Date`, less what the answer took.
    pub(crate) begun: Option<Timestamp>,
    /// It took so many requests.
    pub(crate) pages: u32,
}

impl<T> Listing<T> {
    /// Nothing was asked, so there is nothing.
    pub(crate) const fn unasked() -> Self {
        Self { items: BTreeMap::new(), begun: None, pages: 0 }
    }
}

/// Reads every page of `request`. `decode` reads one page.
pub(crate) async fn all_pages<T>(
    client: &Client,
    request: Request,
    reading: Reading,
    decode: impl FnMut(&[u8]) -> Result<Page<T>, serde_json::Error> + Send,
) -> Result<Listing<T>, ReadError> {
    let late = reading
        .error(ReadErrorKind::TimedOut, &format!("not all pages within {} s", LISTING_DEADLINE.as_secs()));
    let pages = follow(client, request, reading, decode);
    tokio::time::timeout(LISTING_DEADLINE, pages).await.unwrap_or(Err(late))
}

async fn follow<T>(
    client: &Client,
    request: Request,
    mut reading: Reading,
    mut decode: impl FnMut(&[u8]) -> Result<Page<T>, serde_json::Error> + Send,
) -> Result<Listing<T>, ReadError> {
    let mut listing = Listing::unasked();
    let mut markers = BTreeSet::new();
    let mut marker: Option<String> = None;
    loop {
        let page = match &marker {
            Some(marker) => request.clone().query("marker", marker.clone()),
            None => request.clone(),
        };
        let reply = client.send(&page).await.map_err(|error| reading.unanswered(&error))?;
        if reply.status != StatusCode::OK {
            return Err(reading.refused(&Refusal::read(&reply)));
        }
        listing.pages += 1;
        if marker.is_none() {
            listing.begun = reply.date.and_then(|date| date.checked_sub(reply.took).ok());
        }
        let page = decode(&reply.body).map_err(|error| reading.malformed(&error))?;
        let incomplete = |cause: &str| Err(reading.error(ReadErrorKind::Incomplete, cause));
        let last = page.items.last().map(|(id, _)| id.to_string());
        let before = listing.items.len();
        let empty = page.items.is_empty();
        listing.items.extend(page.items);
        if marker.is_some() && !empty && listing.items.len() == before {
            return incomplete("the page brings nothing that was not on the pages before it");
        }
        let next = match page.next {
            None => return Ok(listing),
            Some(Next::Marker(marker)) => marker,
            Some(Next::Last) => match last {
                Some(last) => last,
                None => return incomplete("the page is empty and says that another follows"),
            },
        };
        if !markers.insert(next.clone()) {
            return incomplete("the next page would be one that was read already");
        }
        if reading.page >= PAGES_MAX {
            return incomplete("the listing has no end");
        }
        reading.page += 1;
        marker = Some(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_next_link_is_read_for_its_marker_only() {
        let next = |href: &str| {
            let json =
                format!(r#"[{{"rel": "previous", "href": "x"}}, {{"rel": "next", "href": "{href}"}}]"#);
            next_of(&serde_json::from_str::<Vec<Link>>(&json).unwrap())
        };
        let marker = Some(Next::Marker("a-1".to_owned()));
        assert_eq!(next("http://inner:8774/v2.1/servers/detail?limit=2&marker=a-1"), marker);
        assert_eq!(next("/v2.1/servers/detail?marker=a-1"), marker);
        assert_eq!(next("http://inner:9696/v2.0/ports?limit=2"), Some(Next::Last));
        assert_eq!(next_of(&[]), None);
    }
}
