//! From the API's objects to the core's words.
//!
//! Raw JSON of one object goes in; a [`Node`], a lease or a [`NodeEvent`](reveille_core::model::node::NodeEvent) comes
//! out. An object that does not decode as a whole is decoded field by field ([`salvage`]), so that one poisoned field
//! costs that field and nothing else. Nothing is guessed: what cannot be read is unknown, never absent.

mod event;
mod intent;
mod node;
mod provider;
mod request;
mod salvage;
mod subject;

use std::sync::Arc;

use reveille_core::model::node::Node;
use serde_json::value::RawValue;

pub(crate) use event::{is_telling, said};
pub(crate) use request::request;

use crate::intern::Interner;
use crate::wire::NodeDoc;

/// A node as it was read.
pub(crate) struct Read {
    /// What the core needs of it.
    pub(crate) node: Arc<Node>,
    /// `metadata.resourceVersion`: where a watch goes on after this object.
    pub(crate) version: Option<String>,
}

/// Reads one Node. `None` when it has not even a name; the reason is logged.
pub(crate) fn read_node(raw: &RawValue, interner: &Interner) -> Option<Read> {
    let (doc, unread) = match serde_json::from_str::<NodeDoc>(raw.get()) {
        Ok(doc) => (doc, Vec::new()),
        Err(error) => {
            let (doc, unread) = salvage::node(raw);
            let name = doc.metadata.name.as_deref().unwrap_or("?");
            tracing::warn!(node = name, fields = ?unread, %error, "cluster: a node cannot be read in full");
            (doc, unread)
        }
    };
    let version = doc.metadata.resource_version.clone();
    let node = node::map(doc, &unread, interner)?;
    Some(Read { node: Arc::new(node), version })
}
