//! Shared bytes for what many objects repeat: zones, images, networks, groups, marks.
//!
//! Fifty thousand machines of one cluster carry a dozen different texts between them. A table hands out the same `Arc` for
//! the same text. [`Texts::sweep`] drops texts that nothing else holds any more, so that a table never outgrows the cloud.
//! The tables are for adapters: the engine only passes on what they share.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::instance::Mark;

/// One `Arc` per distinct text.
#[derive(Debug, Default)]
pub struct Texts(BTreeSet<Arc<str>>);

impl Texts {
    /// The one copy of this text.
    pub fn get(&mut self, text: &str) -> Arc<str> {
        if let Some(shared) = self.0.get(text) {
            return shared.clone();
        }
        let shared: Arc<str> = Arc::from(text);
        self.0.insert(shared.clone());
        shared
    }

    /// Drops texts that nothing else holds.
    pub fn sweep(&mut self) {
        self.0.retain(|text| Arc::strong_count(text) > 1);
    }
}

/// One `Arc` per distinct set of marks, and shared texts within the sets.
#[derive(Debug, Default)]
pub struct MarkSets {
    texts: Texts,
    sets: BTreeSet<Arc<BTreeSet<Mark>>>,
}

impl MarkSets {
    /// A tag of shared text.
    pub fn tag(&mut self, tag: &str) -> Mark {
        Mark::Tag(self.texts.get(tag))
    }

    /// A pair of shared texts.
    pub fn metadata(&mut self, key: &str, value: &str) -> Mark {
        Mark::Metadata(self.texts.get(key), self.texts.get(value))
    }

    /// The one copy of this set.
    pub fn set(&mut self, marks: BTreeSet<Mark>) -> Arc<BTreeSet<Mark>> {
        if let Some(shared) = self.sets.get(&marks) {
            return shared.clone();
        }
        let shared = Arc::new(marks);
        self.sets.insert(shared.clone());
        shared
    }

    /// Drops sets and texts that nothing else holds.
    pub fn sweep(&mut self) {
        self.sets.retain(|set| Arc::strong_count(set) > 1);
        self.texts.sweep();
    }
}
