//! From the API's objects to the core's words.
//!
//! Raw JSON of one object goes in; a [`Node`], a lease or a [`NodeEvent`](reveille_core::model::node::NodeEvent) comes
//! out. An object that does not decode as a whole is decoded field by field ([`salvage`]), so that one poisoned field
//! costs that field and nothing else. Nothing is guessed: what cannot be read is unknown, never absent.
//!
//! A client that may write a node's status may write a megabyte into each of its texts, and the records that keep them have a
//! bounded size. So each text that the API server does not bound is cut at a length that no real one has. Each list that the API
//! server does not bound is cut at a count.

mod event;
mod intent;
mod node;
mod provider;
mod request;
mod salvage;
mod subject;

use std::collections::BTreeMap;
use std::sync::Arc;

use reveille_core::model::node::Node;
use serde_json::value::RawValue;

pub(crate) use event::{is_telling, said};
pub(crate) use provider::provider;
pub(crate) use request::request;

use crate::intern::Interner;
use crate::wire::NodeDoc;

/// Longest id kept, and longest version: a boot id has 36 bytes.
const ID_MAX_BYTES: usize = 64;
/// Longest word kept: a condition's type or reason, an event's reporter.
const WORD_MAX_BYTES: usize = 128;
/// Longest name of an object: longer than the API server takes any, and more than a taint's key may have.
const NAME_MAX_BYTES: usize = 320;
/// Most addresses, conditions or taints of one node that are kept.
const ENTRIES_MAX: usize = 64;

/// The text, or as much of it as fits, up to a character's border.
fn within(text: &str, most_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(most_bytes)]
}

/// A node as it was read.
pub(crate) struct Read {
    /// What the core needs of it.
    pub(crate) node: Arc<Node>,
    /// `metadata.resourceVersion`: where a watch goes on after this object.
    pub(crate) version: Option<String>,
    /// `metadata.labels`.
    pub(crate) labels: Option<BTreeMap<String, String>>,
    /// `metadata.creationTimestamp`.
    pub(crate) created: Option<String>,
}

/// Reads one Node. `None` when it has not even a name; the reason is logged.
pub(crate) fn read_node(raw: &RawValue, interner: &Interner) -> Option<Read> {
    let (mut doc, unread) = match serde_json::from_str::<NodeDoc>(raw.get()) {
        Ok(doc) => (doc, Vec::new()),
        Err(_) => {
            let (doc, unread) = salvage::node(raw);
            let name = doc.metadata.name.as_deref().unwrap_or("?");
            tracing::warn!(node = name, fields = ?unread, "cluster: a node cannot be read in full");
            (doc, unread)
        }
    };
    let version = doc.metadata.resource_version.clone();
    let created = doc.metadata.creation_timestamp.take();
    let (node, labels) = node::map(doc, &unread, interner)?;
    Some(Read { node: Arc::new(node), version, labels, created })
}
