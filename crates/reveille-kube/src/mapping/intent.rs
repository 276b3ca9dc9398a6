//! The annotations, labels and taints on a Node, handed to the core: the core decides what they mean, once for all adapters.

use std::collections::BTreeMap;

use reveille_core::model::node::NodeIntent;
use reveille_core::model::signs;

use crate::wire::{Meta, Taint};

/// Reads the signs. `whole` is false when taints or annotations could not be read: what cannot be read may be a pause.
pub(crate) fn read(meta: &Meta, taints: &[Taint], whole: bool) -> NodeIntent {
    let none = BTreeMap::new();
    let annotations = meta.annotations.as_ref().unwrap_or(&none);
    let keys: Vec<&str> = taints.iter().map(|taint| taint.key.as_str()).collect();
    signs::read(annotations, &keys, meta.deletion_timestamp.is_some(), whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_taints_and_the_timestamp_all_reach_the_reader() {
        let annotations = [(signs::REPAIR_NOW, "INC-7"), (signs::PAUSE, "false")];
        let annotations = annotations.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let meta = Meta { annotations: Some(annotations.into()), ..Meta::default() };
        let taint = Taint { key: "karpenter.sh/disrupted".to_owned() };
        let intent = read(&meta, &[taint], true);
        assert_eq!(intent.leaving.as_deref(), Some("karpenter.sh/disrupted"));
        assert_eq!(intent.asks.and_then(|asks| asks.repair).as_deref(), Some("INC-7"));
        assert!(!intent.paused && !intent.deleting);
        let leaves = Meta { deletion_timestamp: Some("2026-01-01T00:00:00Z".to_owned()), ..Meta::default() };
        assert!(read(&leaves, &[], true).deleting);
        assert!(read(&Meta::default(), &[], false).paused);
    }
}
