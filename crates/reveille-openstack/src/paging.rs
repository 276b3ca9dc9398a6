//! How Nova and Neutron say that a listing goes on, and the listings that are read so.
//!
//! The module follows `next` links by their marker, never by their address: an address behind a proxy may lead elsewhere. Beside
//! what makes any listing void ([`reveille_cloud::paging`]), a page that brings nothing new does, because it would come for ever.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use reqwest::Url;
use reveille_cloud::paging::{self, Pages, in_time};
use reveille_cloud::report::Reading;
use reveille_core::effect::{ReadError, ReadErrorKind};
use serde::Deserialize;

use crate::client::{Client, Request};

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
    mut decode: impl FnMut(&[u8]) -> Result<Page<T>, serde_json::Error> + Send,
) -> Result<Listing<T>, ReadError> {
    let mut pages = Pages::new(reading.clone());
    in_time(&reading, async move {
        let (mut begun, mut marker) = (None, None::<String>);
        loop {
            let page = match &marker {
                Some(marker) => request.clone().query("marker", marker.clone()),
                None => request.clone(),
            };
            let reading = pages.reading();
            let reply = client.send(&page).await.map_err(|error| reading.failed(&error))?;
            if marker.is_none() {
                begun = reply.date.and_then(|date| date.checked_sub(reply.took).ok());
            }
            let Page { items, next } = decode(&reply.body).map_err(|error| reading.malformed(&error))?;
            let incomplete = |cause: &str| Err(reading.error(ReadErrorKind::Incomplete, cause));
            if marker.is_some() && !items.is_empty() && items.iter().all(|(id, _)| pages.holds(id)) {
                return incomplete("the page brings nothing that was not on the pages before it");
            }
            let next = match (next, items.last()) {
                (None, _) => None,
                (Some(Next::Marker(marker)), _) => Some(marker),
                (Some(Next::Last), Some((id, _))) => Some(id.to_string()),
                (Some(Next::Last), None) => {
                    return incomplete("the page is empty and says that another follows");
                }
            };
            marker = pages.add(paging::Page { items, next })?;
            if marker.is_none() {
                return Ok(Listing { begun, pages: pages.count(), items: pages.items() });
            }
        }
    })
    .await
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
