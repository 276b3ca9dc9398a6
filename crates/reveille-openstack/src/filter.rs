//! The filter by which Nova lists the servers of several clusters.
//!
//! Listing by tag only works when every cluster is marked by a tag. It is never proof: marks are read again from each object.

use std::collections::BTreeSet;
use std::sync::Arc;

use reveille_cloud::interest::Interest;
use reveille_core::model::instance::Mark;

/// A longer query may be refused by a proxy; above this, everything is listed.
const TAGS_MAX_BYTES: usize = 4000;

/// The tags to list by. `None`: everything must be listed, because a cluster is marked by metadata (which Nova does not
/// filter by for a plain member), or because the question would be too long.
pub(crate) fn cluster_tags(interest: &Interest) -> Option<BTreeSet<Arc<str>>> {
    let mut tags = BTreeSet::new();
    for mark in &interest.cluster_marks {
        match mark {
            // Nova's filter splits at commas; its tags cannot hold one.
            Mark::Tag(tag) if !tag.contains(',') => tags.insert(tag.clone()),
            Mark::Tag(_) => true,
            Mark::Metadata(..) => return None,
        };
    }
    let bytes: usize = tags.iter().map(|tag| tag.len() + 3).sum();
    (bytes <= TAGS_MAX_BYTES).then_some(tags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_mark_or_too_many_tags_list_all_servers() {
        let tag = |text: &str| Mark::Tag(text.into());
        let of = |marks: Vec<Mark>| {
            cluster_tags(&Interest { cluster_marks: marks.into_iter().collect(), ..Interest::default() })
        };
        let tags = ["c=1", "c=2"].map(Arc::from);
        assert_eq!(of(vec![tag("c=2"), tag("c=1")]), Some(BTreeSet::from(tags)));
        assert_eq!(of(vec![tag("c=1"), Mark::Metadata("c".into(), "2".into())]), None);
        assert_eq!(of((0..200).map(|n| tag(&format!("k8s-cluster=number-{n:04}"))).collect()), None);
        // Nova's tags hold no comma, and its filter would split there.
        assert_eq!(of(vec![tag("a,b")]), Some(BTreeSet::new()));
    }
}
