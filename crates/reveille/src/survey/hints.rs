//! Hints from names, and commands for the operator: they never prove ownership, and are always comments in the roster.
//!
//! A name shows what its author once meant and may be wrong, so it never makes a machine part of the roster. But it shows
//! the operator which machines to check, and the exact command that would mark them.

use std::collections::BTreeMap;
use std::sync::Arc;

use reveille_core::model::instance::{Instance, Mark};

use reveille_cloud::site::Site;

/// The most ids on one command line; a longer line is hard to read.
const IDS_PER_LINE: usize = 8;
/// The most command lines that are shown; the others are counted.
const LINES_MAX: usize = 6;

/// The common part of names: `kks-prod-w-7xk2p` is of `kks-prod-w`, `worker12` of `worker`.
pub(crate) fn stem(name: &str) -> &str {
    let cut = name.rsplit_once(['-', '.', '_']).map(|(stem, _)| stem).filter(|stem| !stem.is_empty());
    let cut = cut.unwrap_or_else(|| name.trim_end_matches(|c: char| c.is_ascii_digit()));
    if cut.is_empty() { name } else { cut }
}

/// Instances by the common part of their names.
pub(crate) fn by_stem<'i>(instances: &[&'i Arc<Instance>]) -> BTreeMap<&'i str, Vec<&'i Arc<Instance>>> {
    let mut stems: BTreeMap<&str, Vec<&Arc<Instance>>> = BTreeMap::new();
    for instance in instances {
        stems.entry(stem(instance.name.as_str())).or_default().push(*instance);
    }
    stems
}

/// The commands that set these marks on these instances, in the form of their cloud.
pub(crate) fn commands(site: &dyn Site, marks: &[&Mark], instances: &[&Arc<Instance>]) -> Vec<String> {
    let line = |chunk: &[&Arc<Instance>]| {
        let ids: Vec<&str> = chunk.iter().map(|instance| instance.id.as_str()).collect();
        site.command(marks, &ids)
    };
    let mut lines: Vec<String> = instances.chunks(IDS_PER_LINE).map(line).collect();
    if lines.len() > LINES_MAX {
        lines.truncate(LINES_MAX);
        let left = instances.len() - LINES_MAX * IDS_PER_LINE;
        lines.push(format!("and so on for {left} more"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::survey::tests::sites;

    #[test]
    fn names_are_cut_where_people_number_them() {
        let table = [
            ("kks-prod-w-7xk2p", "kks-prod-w"),
            ("worker12", "worker"),
            ("node.12", "node"),
            ("gpu", "gpu"),
            ("7", "7"),
            ("-x", "-x"),
            ("", ""),
        ];
        for (name, expected) in table {
            assert_eq!(stem(name), expected, "{name}");
        }
    }

    #[test]
    fn commands_are_what_a_shell_takes_in_the_words_of_each_cloud() {
        let machines: Vec<Arc<Instance>> =
            (1..=60).map(|number: u32| Arc::new(fixture::instance(&number.to_string()))).collect();
        let all: Vec<&Arc<Instance>> = machines.iter().collect();
        let (os, aws) = (sites::openstack(), sites::ec2());
        let tag = Mark::Tag("k8s-cluster=prod".into());
        let pair = Mark::Metadata("owner".into(), "it's us".into());
        let cluster = Mark::Tag("kubernetes.io/cluster/prod".into());
        assert_eq!(
            commands(&os, &[&tag], &all[..1]),
            ["openstack --os-compute-api-version 2.26 server set --tag k8s-cluster=prod i1"]
        );
        assert_eq!(
            commands(&os, &[&pair], &all[..2]),
            [r"for id in i1 i2; do openstack server set --property 'owner=it'\''s us' $id; done"]
        );
        assert_eq!(
            commands(&aws, &[&cluster, &pair], &all[..2]),
            [
                r"aws --profile ops ec2 create-tags --region eu-central-1 --resources i1 i2 --tags Key=kubernetes.io/cluster/prod,Value=owned 'Key=owner,Value=it'\''s us'"
            ]
        );
        let many = commands(&os, &[&tag, &pair], &all);
        assert_eq!((many.len(), many[6].as_str()), (7, "and so on for 12 more"));
        assert!(commands(&aws, &[&tag], &[]).is_empty());
    }
}
