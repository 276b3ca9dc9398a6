//! Which names may be one host's.
//!
//! ```text
//!  two names ─▶ is_one_host      a sorted map of names ─▶ of_host: its entries under the names of one host, in its order
//! ```
//!
//! A cloud, a guest and a cluster call one machine by the qualified name of its host or by the first label of that name, each as
//! it likes (`node-1` and `node-1.example.com`). So a name is a hint and no identity: two hosts of two domains have one label.
//! Two qualified names that differ are two hosts, although one begins with the other.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::Bound;

/// The name before the first dot, of a qualified name.
pub fn first_label(name: &str) -> Option<&str> {
    name.split_once('.').map(|(label, _)| label)
}

/// The names are one, or one is the first label of the other.
pub fn is_one_host(left: &str, right: &str) -> bool {
    left == right || first_label(left) == Some(right) || first_label(right) == Some(left)
}

/// The entries of a sorted map whose key may be another name of this host: the key of exactly that name comes first.
pub fn of_host<'a, K, V>(map: &'a BTreeMap<K, V>, name: &'a str) -> impl Iterator<Item = (&'a K, &'a V)>
where
    K: Ord + Borrow<str>,
{
    map.get_key_value(name).into_iter().chain(others_of_host(map, name))
}

/// The same without the key of exactly that name.
pub fn others_of_host<'a, K, V>(
    map: &'a BTreeMap<K, V>,
    name: &'a str,
) -> impl Iterator<Item = (&'a K, &'a V)>
where
    K: Ord + Borrow<str>,
{
    let label = first_label(name);
    let short = label.and_then(|label| map.get_key_value(label));
    // Whatever begins with the label and a dot stands together.
    let longer = label.is_none().then(|| {
        let from = format!("{name}.");
        let all = map.range::<str, _>((Bound::Included(from.as_str()), Bound::Unbounded));
        all.take_while(move |(key, _)| (*key).borrow().starts_with(&from))
    });
    short.into_iter().chain(longer.into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_and_qualified_name_are_one_host_either_way() {
        let names = ["a", "a.b", "a.b.c", "a-b", "ab", "b", ""];
        let pairs = [("a", "a.b"), ("a", "a.b.c")];
        for left in names {
            for right in names {
                let one = left == right || pairs.contains(&(left, right)) || pairs.contains(&(right, left));
                assert_eq!(is_one_host(left, right), one, "{left} {right}");
            }
        }
    }

    #[test]
    fn sorted_map_holds_for_each_name_what_is_one_host() {
        let names = ["a", "a.b", "a.b.c", "a-b", "ab", "b"];
        let map: BTreeMap<crate::model::id::NodeName, ()> =
            names.iter().map(|name| ((*name).into(), ())).collect();
        for name in ["a", "a.b", "a.b.c", "a-b", "ab", "b", "b.c", "c"] {
            let mut found: Vec<&str> = of_host(&map, name).map(|(key, ())| key.as_str()).collect();
            assert!(!map.contains_key(name) || found.first() == Some(&name), "{name}: {found:?}");
            found.sort_unstable();
            let mut one: Vec<&str> = names.iter().copied().filter(|known| is_one_host(known, name)).collect();
            one.sort_unstable();
            assert_eq!(found, one, "{name}");
        }
    }
}
