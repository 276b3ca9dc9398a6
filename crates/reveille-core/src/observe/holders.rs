//! Which instances or Nodes hold a name or an address. The index is made for the usual case of exactly one holder, and is
//! still right when there are more: a name or address links only where it has one holder.
//!
//! Holders are instances in a cloud's index, and Nodes in the cluster's.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Who holds a name or an address: almost always one, so that one costs no list.
#[derive(Clone, Debug)]
pub(super) enum Holders<T> {
    One([T; 1]),
    Many(Vec<T>),
}

impl<T: Clone + PartialEq> Holders<T> {
    pub(super) fn all(&self) -> &[T] {
        match self {
            Self::One(one) => one,
            Self::Many(many) => many,
        }
    }

    pub(super) fn add<K: Ord>(index: &mut BTreeMap<K, Self>, key: K, id: &T) {
        match index.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(Self::One([id.clone()]));
            }
            Entry::Occupied(mut entry) => {
                let mut ids = entry.get().all().to_vec();
                ids.push(id.clone());
                entry.insert(Self::Many(ids));
            }
        }
    }

    pub(super) fn remove<K: Ord>(index: &mut BTreeMap<K, Self>, key: &K, id: &T) {
        let Some(held) = index.get_mut(key) else { return };
        let mut ids = held.all().to_vec();
        ids.retain(|known| known != id);
        match (ids.pop(), ids.is_empty()) {
            (None, _) => {
                index.remove(key);
            }
            (Some(last), true) => *held = Self::One([last]),
            (Some(last), false) => {
                ids.push(last);
                *held = Self::Many(ids);
            }
        }
    }
}
