//! All nodes as one complete list, page by page, or nothing.
//!
//! Every page is of one moment in history. A page counts when it was read to its end: until then its nodes are kept apart,
//! because one that is longer than we read is asked for again with fewer nodes (`page::Limit`). How few is kept for the
//! next list, so that thirty Nodes of nine megabytes each, which are more than one page may have, cost their length once
//! and not with every list.

use std::collections::BTreeMap;
use std::sync::Arc;

use reveille_core::effect::ReadErrorKind;
use reveille_core::model::id::NodeName;
use reveille_core::model::node::Node;
use serde_json::value::RawValue;

use crate::failure::{Failure, Reached};
use crate::page::PAGE_WITHIN;
use crate::paths;
use crate::session::Question;
use crate::shared::Shared;
use crate::wire::ListMeta;

/// More pages than any cluster has: a server that goes on is going round in circles.
const PAGES_MAX: usize = 1000;

/// A complete list.
pub(crate) struct Listing {
    /// All nodes that have a name.
    pub(crate) nodes: BTreeMap<NodeName, Arc<Node>>,
    /// How many had none.
    pub(crate) nameless: u64,
    /// Where the list stands in history.
    pub(crate) version: String,
}

/// What one page holds: nodes in their order, `None` for one without a readable name.
type Arrived = Vec<Option<Arc<Node>>>;

/// All nodes, every page of one moment in history, or nothing.
pub(crate) async fn list(cluster: &Shared) -> Result<Listing, Failure> {
    let mut listing = Listing { nodes: BTreeMap::new(), nameless: 0, version: String::new() };
    let mut next: Option<String> = None;
    for page in 1..=PAGES_MAX {
        let what = format!("page {page} of the nodes");
        let read = read(cluster, next.clone(), &what).await;
        let (arrived, metadata) = read.map_err(|failure| on_page(failure, page))?;
        let version = metadata.resource_version.unwrap_or_default();
        if version.is_empty() || (page > 1 && version != listing.version) {
            return Err(Failure::incomplete(format!("{what} is of another moment than page 1")));
        }
        for node in arrived {
            if let Some(name) = listing.take(node, page) {
                return Err(Failure::incomplete(format!("{what} repeats {name}")));
            }
        }
        listing.version = version;
        let following = metadata.next.filter(|next| !next.is_empty());
        if following.is_none() {
            return Ok(listing);
        }
        if following == next {
            return Err(Failure::incomplete(format!("{what} names itself as the next")));
        }
        next = following;
    }
    Err(Failure::incomplete(format!("the list of nodes does not end after {PAGES_MAX} pages")))
}

/// One page, with as many nodes as can be read at once. Pages of one list may differ in that: what stands for the place is
/// the last name, and Kubernetes' own tests draw each limit by lot (test/e2e/apimachinery/chunking.go).
async fn read(cluster: &Shared, next: Option<String>, what: &str) -> Result<(Arrived, ListMeta), Failure> {
    loop {
        let ask = paths::nodes_page(cluster.page.get(), next.clone());
        let ask = ask.map_err(|error| Failure::unsendable(&error))?;
        let question = Question { ask, within: PAGE_WITHIN, about: None };
        let mut arrived = Vec::new();
        let mut each = |raw: &RawValue| {
            arrived.push(cluster.read_node(raw).map(|read| read.node));
        };
        match cluster.session.read_items(question, what, &mut each).await {
            Ok(metadata) => {
                cluster.page.worked();
                return Ok((arrived, metadata));
            }
            Err(failure) if failure.reached == Reached::TooLong && cluster.page.shrinks(arrived.len()) => {}
            Err(failure) => {
                // It was arriving when its time was over: the same would happen to the next list.
                if failure.kind == ReadErrorKind::TimedOut && !arrived.is_empty() {
                    cluster.page.shrinks(arrived.len());
                }
                return Err(failure);
            }
        }
    }
}

impl Listing {
    /// Takes in one node; the name of one that was there already.
    fn take(&mut self, node: Option<Arc<Node>>, page: usize) -> Option<NodeName> {
        let Some(node) = node else {
            tracing::warn!(page, "cluster: a node without a readable name is left out of the list");
            self.nameless += 1;
            return None;
        };
        self.nodes.insert(node.name.clone(), node).map(|twice| twice.name.clone())
    }
}

/// A list that broke after its first page is void as a whole; a place lost between pages is no gap of the watch.
fn on_page(failure: Failure, page: usize) -> Failure {
    match failure.kind {
        ReadErrorKind::Gap => {
            Failure::incomplete(format!("page {page} of the nodes came too late: {}", failure.cause))
        }
        _ if page > 1 => Failure { cause: format!("page {page}: {}", failure.cause), ..failure },
        _ => failure,
    }
}
