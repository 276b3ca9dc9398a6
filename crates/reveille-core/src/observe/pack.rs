//! Ordered maps that take no more room than they need.
//!
//! The standard library's ordered map splits a full node in two halves and, when keys arrive in order (as listings bring
//! them), never fills the left one again: a map of a fleet then takes nearly twice its contents. Built from a sorted
//! sequence, its nodes are full. So a map that has grown by a third since it was last packed is built again. The
//! same entries stand in it in the same order; only where they lie in memory differs.
//!
//! It counts insertions, not removals: a fleet that shrinks leaves room that the next machines fill.

use std::collections::BTreeMap;

/// Smaller growth is not worth a rebuild.
const GROWTH_MIN: usize = 256;

/// How many entries came since the map was last packed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Growth(usize);

impl Growth {
    /// An entry came.
    pub(super) const fn note(&mut self) {
        self.0 += 1;
    }

    /// True once a third of a map of `len` entries is new. The count then starts from zero.
    pub(super) const fn is_over(&mut self, len: usize) -> bool {
        let over = self.0 >= GROWTH_MIN && self.0 >= len / 3;
        if over {
            self.0 = 0;
        }
        over
    }
}

/// Builds the map again, with full nodes.
pub(super) fn pack<K: Ord, V>(map: &mut BTreeMap<K, V>) {
    *map = std::mem::take(map).into_iter().collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn map_is_packed_after_growing_by_a_third_without_data_loss() {
        let mut growth = Growth::default();
        let mut map = BTreeMap::new();
        let mut packed_at = Vec::new();
        for number in 0..3_000 {
            map.insert(number, number);
            growth.note();
            if growth.is_over(map.len()) {
                pack(&mut map);
                packed_at.push(map.len());
            }
        }
        assert!(map.iter().map(|(key, value)| (*key, *value)).eq((0..3_000).map(|n| (n, n))));
        assert_eq!(packed_at[..4], [256, 512, 768, 1_151], "rarer and rarer");
        assert!(packed_at.len() < 12, "{packed_at:?}");
    }
}
