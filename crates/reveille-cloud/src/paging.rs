//! All pages of a listing, or none of them.
//!
//! ```text
//!  request ─▶ the adapter reads a page ─▶ Pages::add ─┬─ the marker of the next page ─▶ the adapter asks for that
//!                                                     └─ none: the listing is whole
//! ```
//!
//! A marker that comes twice, a page that fails, a listing without end, one of too many objects, and one that takes too long
//! each make the whole listing void. Pages shift while other clients work; the same object on two pages counts once, the later
//! reading wins. How a service says where its next page begins is the adapter's.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use reveille_core::effect::{ReadError, ReadErrorKind};

use crate::report::Reading;

/// A million instances, or half a million where a page is shorter.
const PAGES_MAX: u32 = 1000;
/// No project has as many of anything. How much a page holds is the other side's to say, and [`PAGES_MAX`] of the longest pages
/// would not fit into our memory.
const OBJECTS_MAX: usize = 1_000_000;
/// All pages of one list together.
const LISTING_DEADLINE: Duration = Duration::from_secs(180);

/// A page, decoded: objects by their id, and the marker or token of the next one.
#[derive(Debug)]
pub struct Page<K, T> {
    /// Its objects.
    pub items: Vec<(K, T)>,
    /// Where the next page begins; `None`: this is the last one.
    pub next: Option<String>,
}

/// The pages that were read so far.
#[derive(Debug)]
pub struct Pages<K, T> {
    reading: Reading,
    items: BTreeMap<K, T>,
    markers: BTreeSet<String>,
}

impl<K: Ord, T> Pages<K, T> {
    /// None was read yet.
    pub const fn new(reading: Reading) -> Self {
        Self { reading, items: BTreeMap::new(), markers: BTreeSet::new() }
    }

    /// What is being read, with the number of the page that is next.
    pub const fn reading(&self) -> &Reading {
        &self.reading
    }

    /// True when the object was on a page before.
    pub fn holds(&self, id: &K) -> bool {
        self.items.contains_key(id)
    }

    /// Takes a page; gives the marker of the next one.
    ///
    /// # Errors
    /// When the next page would be one that was read already, or one too many, and when there are too many objects.
    pub fn add(&mut self, page: Page<K, T>) -> Result<Option<String>, ReadError> {
        self.items.extend(page.items);
        let incomplete = |cause: &str| Err(self.reading.error(ReadErrorKind::Incomplete, cause));
        if self.items.len() > OBJECTS_MAX {
            return incomplete("it has more objects than any project has");
        }
        let Some(next) = page.next else { return Ok(None) };
        if !self.markers.insert(next.clone()) {
            return incomplete("the next page would be one that was read already");
        }
        if self.reading.page >= PAGES_MAX {
            return incomplete("the listing has no end");
        }
        self.reading.page += 1;
        Ok(Some(next))
    }

    /// How many pages it took, once the last one was added.
    pub const fn count(&self) -> u32 {
        self.reading.page
    }

    /// Every object once, by its id.
    pub fn items(self) -> BTreeMap<K, T> {
        self.items
    }
}

/// The whole listing, unless it takes longer than any should.
///
/// # Errors
/// Those of the listing, and when it takes too long.
pub async fn in_time<T>(
    reading: &Reading,
    listing: impl Future<Output = Result<T, ReadError>>,
) -> Result<T, ReadError> {
    let late = || {
        let cause = format!("not all pages within {} s", LISTING_DEADLINE.as_secs());
        Err(reading.error(ReadErrorKind::TimedOut, &cause))
    };
    tokio::time::timeout(LISTING_DEADLINE, listing).await.unwrap_or_else(|_| late())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Place;

    fn page(ids: &[u32], next: Option<&str>) -> Page<u32, ()> {
        Page { items: ids.iter().map(|id| (*id, ())).collect(), next: next.map(str::to_owned) }
    }

    /// The size of a page is the other side's: 96 MiB hold half a million objects, and a thousand of such pages are a hundred
    /// gigabytes.
    #[test]
    fn listing_of_more_objects_than_any_has_is_void() {
        let mut pages = Pages::new(Place::new("cloud", "project p").listing("list servers"));
        let page = |number: u32, next: Option<&str>| {
            let ids: Vec<u32> = (0..400_000).map(|id| number * 400_000 + id).collect();
            page(&ids, next)
        };
        assert!(pages.add(page(0, Some("1"))).is_ok());
        assert!(pages.add(page(1, Some("2"))).is_ok());
        let error = pages.add(page(2, None)).unwrap_err();
        assert_eq!(error.kind, ReadErrorKind::Incomplete, "{error}");
        assert!(error.text.contains("more objects"), "{error}");
    }

    #[test]
    fn a_marker_that_comes_twice_voids_the_listing() {
        let mut pages = Pages::new(Place::new("cloud", "project p").listing("list servers"));
        assert_eq!(pages.add(page(&[1, 2], Some("2"))).unwrap().as_deref(), Some("2"));
        assert_eq!(pages.add(page(&[2, 3], Some("3"))).unwrap().as_deref(), Some("3"));
        let error = pages.add(page(&[], Some("2"))).unwrap_err();
        assert_eq!(error.kind, ReadErrorKind::Incomplete);
        assert!(error.text.contains("(page 3): the next page would be one that was read already"), "{error}");
        assert_eq!(pages.add(page(&[], None)).unwrap(), None);
        assert_eq!((pages.count(), pages.items().len()), (3, 3), "each object once");
    }
}
