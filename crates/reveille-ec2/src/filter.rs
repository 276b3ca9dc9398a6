//! The filter by which EC2 lists the instances of several clusters.
//!
//! Listing by tag is never proof: marks are read again from each object.

use std::collections::BTreeSet;

use reveille_cloud::interest::Interest;
use reveille_core::model::instance::Mark;

/// EC2 takes no more values in one filter.
pub(crate) const FILTER_VALUES_MAX: usize = 200;

/// The filter to list by, a name and its values. `None`: everything must be listed, because more is asked for than one
/// filter can say.
pub(crate) fn filter(interest: &Interest) -> Option<(String, BTreeSet<String>)> {
    let mut keys = BTreeSet::new();
    let mut values = BTreeSet::new();
    for mark in &interest.cluster_marks {
        match mark {
            Mark::Tag(key) => keys.insert(key.to_string()),
            Mark::Metadata(key, value) => values.insert(value.to_string()) | keys.insert(key.to_string()),
        };
    }
    let pairs_only = interest.cluster_marks.iter().all(|mark| matches!(mark, Mark::Metadata(..)));
    let of_one_key = keys.first().filter(|_| keys.len() == 1 && pairs_only);
    let filter = match of_one_key {
        Some(key) => (format!("tag:{key}"), values),
        None => ("tag-key".to_owned(), keys),
    };
    (1..=FILTER_VALUES_MAX).contains(&filter.1.len()).then_some(filter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_covers_marks_of_all_rosters_or_lists_everything() {
        let tag = |key: &str| Mark::Tag(key.into());
        let pair = |key: &str, value: &str| Mark::Metadata(key.into(), value.into());
        let filter = |marks: &[Mark]| {
            let interest = Interest { cluster_marks: marks.iter().cloned().collect(), ..Interest::default() };
            super::filter(&interest)
                .map(|(name, values)| format!("{name}={}", Vec::from_iter(values).join(",")))
        };
        let cases: [(&[Mark], Option<&str>); 5] = [
            (
                &[tag("kubernetes.io/cluster/a"), tag("kubernetes.io/cluster/b")],
                Some("tag-key=kubernetes.io/cluster/a,kubernetes.io/cluster/b"),
            ),
            (&[pair("cluster", "a"), pair("cluster", "b")], Some("tag:cluster=a,b")),
            (&[pair("cluster", "a"), pair("team", "b")], Some("tag-key=cluster,team")),
            (&[pair("cluster", "a"), tag("x")], Some("tag-key=cluster,x")),
            (&[], None),
        ];
        for (marks, expected) in cases {
            assert_eq!(filter(marks).as_deref(), expected, "{marks:?}");
        }
        let many: Vec<Mark> =
            (0..=FILTER_VALUES_MAX).map(|n| tag(&format!("kubernetes.io/cluster/{n}"))).collect();
        assert_eq!(filter(&many), None);
    }
}
