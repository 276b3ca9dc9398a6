//! A roster without `spec.clouds`: the cluster alone, whose machines are its Nodes and the machine records in it.
//!
//! Nothing is written in the roster for it. Its machines belong to the cluster because they are objects of it; which pool a
//! machine is in, the labels of its Node or of its record say (`selector`).

use reveille_core::model::id::CloudName;
use reveille_core::model::instance::Mark;

use super::{Clouds, Words};
use crate::roster::complaint::Spot;
use crate::roster::{CloudRef, ClusterRef};

/// The name under which output and ledger know it.
pub const NAME: &str = "machines";
/// The mark of each of its machines.
const MARK: &str = "cluster";
const PREFIX_CHARS_MAX: usize = 253;
const NAME_CHARS_MAX: usize = 63;
const KEYS: &str = "write a label's key as Kubernetes takes it: NAME, or PREFIX/NAME";

pub(in crate::roster) static WORDS: Words = Words {
    field: "cluster",
    example: (NAME, "{}", ""),
    read: |_, _, _| None,
    line: |_| String::new(),
    settles_within: None,
    tag: |_, _| Err(("a Node has no tags".to_owned(), "write selector: {key: value}, a label".to_owned())),
    spelled: Mark::clone,
    takes_key: (is_label_key, KEYS),
    is_group_id: |_| false,
};

/// The mark of each machine of a cluster without a cloud.
pub fn mark() -> Mark {
    Mark::Tag(MARK.into())
}

/// The roster lists no cloud.
pub(in crate::roster) fn is_alone(clouds: &Clouds) -> bool {
    clouds.values().any(|(at, _)| at.is_cluster())
}

/// The clouds of a roster that lists none.
pub(in crate::roster) fn clouds(cluster: &ClusterRef, spot: Spot) -> Clouds {
    Clouds::from([(CloudName::from(NAME), (CloudRef::Cluster(cluster.clone()), spot))])
}

/// `NAME` or `PREFIX/NAME`, as the API server checks it (apimachinery, `IsQualifiedName`).
fn is_label_key(key: &str) -> bool {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let ends = |c: char| c.is_ascii_alphanumeric();
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_name = (1..=NAME_CHARS_MAX).contains(&name.len())
        && name.starts_with(ends)
        && name.ends_with(ends)
        && name.chars().all(inner);
    let is_domain = |text: &str| {
        let of_label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is_label = |part: &str| !part.is_empty() && part.chars().all(of_label);
        text.len() <= PREFIX_CHARS_MAX && text.split('.').all(is_label)
    };
    is_name && prefix.is_none_or(is_domain)
}

/// What a label's value may be (apimachinery, `IsValidLabelValue`); it may be empty.
pub(in crate::roster) fn is_label_value(text: &str) -> bool {
    let ends = |c: char| c.is_ascii_alphanumeric();
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    text.is_empty()
        || text.len() <= NAME_CHARS_MAX
            && text.starts_with(ends)
            && text.ends_with(ends)
            && text.chars().all(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_that_kubernetes_takes() {
        for key in ["pool", "karpenter.sh/nodepool", "node-role.kubernetes.io/control-plane", "A_b.c"] {
            assert!(is_label_key(key), "{key}");
        }
        for key in ["", "/a", "a/", "a/b/c", "-a", "a b", "Upper.io/a", "a=b", &"x".repeat(64)] {
            assert!(!is_label_key(key), "{key}");
        }
    }
}
