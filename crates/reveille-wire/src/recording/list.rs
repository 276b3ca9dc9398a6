//! Long lists that rarely change, written as their changes.
//!
//! ```text
//!   before  a b c d e
//!   now     a b X d e f   ─▶   {"keep":[0,2]} {"new":X} {"keep":[3,2]} {"new":f}
//! ```
//!
//! Writer and reader keep the last list. A list without changes is one entry, whatever its length. The order is kept
//! exactly, because the engine may see it. Equal entries are searched at their old position first and by their key after
//! that, so a quiet list costs one comparison for each entry.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Broken;

/// One piece of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Edit<T> {
    /// This many entries of the list before, from that position on.
    Keep(usize, usize),
    /// An entry that is new or has changed.
    New(T),
}

/// The last state of a list.
#[derive(Clone, Debug)]
pub(crate) struct Shelf<T> {
    items: Vec<T>,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self { items: Vec::new() }
    }
}

impl<T: Clone + PartialEq> Shelf<T> {
    /// Returns the changes, and keeps the new list for the next call.
    pub(crate) fn put<K: Ord>(&mut self, now: &[T], key: impl Fn(&T) -> K) -> Vec<Edit<T>> {
        let edits = edits(&self.items, now, key);
        if !matches!(edits.as_slice(), [Edit::Keep(0, all)] if *all == self.items.len()) {
            self.items = now.to_vec();
        }
        edits.into_iter().map(|edit| edit.map(|index| now[index].clone())).collect()
    }

    /// Applies these edits to the last list.
    pub(crate) fn take(&mut self, edits: Vec<Edit<T>>) -> Result<Vec<T>, Broken> {
        let mut items = Vec::with_capacity(self.items.len());
        for edit in edits {
            match edit {
                Edit::Keep(from, count) => {
                    let end = from.checked_add(count);
                    let kept = end.and_then(|end| self.items.get(from..end)).ok_or(Broken::Reference)?;
                    items.extend_from_slice(kept);
                }
                Edit::New(item) => items.push(item),
            }
        }
        self.items.clone_from(&items);
        Ok(items)
    }
}

impl<W> Edit<W> {
    fn map<V>(self, with: impl FnOnce(W) -> V) -> Edit<V> {
        match self {
            Self::Keep(from, count) => Edit::Keep(from, count),
            Self::New(what) => Edit::New(with(what)),
        }
    }
}

/// The changes; new entries by their position in `now`.
fn edits<T: PartialEq, K: Ord>(before: &[T], now: &[T], key: impl Fn(&T) -> K) -> Vec<Edit<usize>> {
    let mut edits: Vec<Edit<usize>> = Vec::new();
    let mut places: Option<BTreeMap<K, usize>> = None;
    let mut next = 0;
    for (index, item) in now.iter().enumerate() {
        if before.get(next) != Some(item) {
            let places = places
                .get_or_insert_with(|| before.iter().enumerate().map(|(at, item)| (key(item), at)).collect());
            match places.get(&key(item)) {
                Some(&at) if before[at] == *item => next = at,
                at => {
                    next = at.map_or(next, |at| at + 1);
                    edits.push(Edit::New(index));
                    continue;
                }
            }
        }
        match edits.last_mut() {
            Some(Edit::Keep(from, count)) if *from + *count == next => *count += 1,
            _ => edits.push(Edit::Keep(next, 1)),
        }
        next += 1;
    }
    edits
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    fn list(text: &str) -> Vec<Arc<str>> {
        text.split_whitespace().map(Arc::from).collect()
    }

    fn put(shelf: &mut Shelf<Arc<str>>, text: &str) -> String {
        // The key is the first letter: `b1` and `b2` are one entry that changed.
        serde_json::to_string(&shelf.put(&list(text), |item| item.chars().next())).unwrap()
    }

    #[test]
    fn what_did_not_change_is_one_entry() {
        let mut shelf = Shelf::default();
        let table = [
            ("a b1 c d", r#"[{"new":"a"},{"new":"b1"},{"new":"c"},{"new":"d"}]"#),
            ("a b1 c d", r#"[{"keep":[0,4]}]"#),
            ("a b2 c d", r#"[{"keep":[0,1]},{"new":"b2"},{"keep":[2,2]}]"#),
            ("a c d", r#"[{"keep":[0,1]},{"keep":[2,2]}]"#),
            ("a x c d", r#"[{"keep":[0,1]},{"new":"x"},{"keep":[1,2]}]"#),
            ("d c x a", r#"[{"keep":[3,1]},{"keep":[2,1]},{"keep":[1,1]},{"keep":[0,1]}]"#),
            ("", "[]"),
            ("", "[]"),
        ];
        for (now, expected) in table {
            assert_eq!(put(&mut shelf, now), expected, "{now}");
        }
    }

    #[test]
    fn a_reference_to_what_is_not_there_is_refused() {
        let mut shelf: Shelf<Arc<str>> = Shelf::default();
        for edit in [Edit::Keep(0, 1), Edit::Keep(usize::MAX, 2)] {
            assert!(matches!(shelf.take(vec![edit]), Err(Broken::Reference)));
        }
    }

    proptest! {
        #[test]
        fn the_reader_has_every_list_that_the_writer_had(lists in prop::collection::vec("[a-e1-3 ]{0,24}", 1..8)) {
            let (mut writer, mut reader): (_, Shelf<Arc<str>>) = (Shelf::default(), Shelf::default());
            for text in lists {
                let now = list(&text);
                let edits = writer.put(&now, |item| item.chars().next());
                prop_assert_eq!(reader.take(edits).unwrap(), now);
            }
        }
    }
}
