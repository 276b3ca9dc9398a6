//! How AWS says that a listing goes on, and the listings that are read so.
//!
//! The module follows tokens. An empty page with a token is no end: EC2 filters after it has cut its pages. What makes a listing
//! void, [`reveille_cloud::paging`] says.

use std::collections::BTreeMap;

use reveille_cloud::paging::{Pages, in_time};
use reveille_cloud::report::Reading;
use reveille_core::effect::ReadError;
use serde::de::DeserializeOwned;

use crate::client::Client;
use crate::query_protocol::Request;
use crate::reply::{decode, filled};

/// A page, decoded: objects by their id, and the token of the next one.
pub(crate) type Page<T> = reveille_cloud::paging::Page<String, T>;

/// Reads every page of `request`.
pub(crate) async fn all_pages<P: DeserializeOwned, T>(
    client: &Client,
    request: Request,
    reading: Reading,
    page_of: impl Fn(P) -> Page<T>,
) -> Result<BTreeMap<String, T>, ReadError> {
    let mut pages = Pages::new(reading.clone());
    in_time(&reading, async move {
        let mut token: Option<String> = None;
        loop {
            let page = match token {
                Some(token) => request.clone().with("NextToken", token),
                None => request.clone(),
            };
            let body = client.send(&page).await.map_err(|error| pages.reading().failed(&error))?;
            let Page { items, next } = page_of(decode(&body, request.action, pages.reading())?);
            token = pages.add(Page { items, next: filled(next) })?;
            if token.is_none() {
                return Ok(pages.items());
            }
        }
    })
    .await
}
