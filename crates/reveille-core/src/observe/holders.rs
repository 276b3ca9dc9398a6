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
            Entry::Occupied(mut entry) => match entry.get_mut() {
                Self::One([one]) => {
                    let both = vec![one.clone(), id.clone()];
                    entry.insert(Self::Many(both));
                }
                // In place: of a client that gives a thousand Nodes one address, each would copy all before it.
                Self::Many(many) => many.push(id.clone()),
            },
        }
    }

    pub(super) fn remove<K: Ord>(index: &mut BTreeMap<K, Self>, key: &K, id: &T) {
        let Some(held) = index.get_mut(key) else { return };
        let left = match held {
            Self::One([one]) if one == id => &[],
            Self::One(_) => return,
            Self::Many(many) => {
                many.retain(|known| known != id);
                &many[..]
            }
        };
        match left {
            [] => drop(index.remove(key)),
            [last] => *held = Self::One([last.clone()]),
            _ => {}
        }
    }
}
