//! What only looking can tell: whether a roster's marks match the machines that they are meant for.
//!
//! A mark that matches nobody is mostly a slip of the keyboard, and a mark that matches everybody is the way other
//! people's machines get deleted. Both read well in the file. So whoever starts to act first lists a project whole,
//! unfiltered, and asks [`matches_warning`]. The answer is about the marks only; it says nothing of any machine.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use reveille_core::model::id::{CloudName, PoolName};
use reveille_core::model::instance::{Instance, Mark};
use reveille_core::model::roster::{Pool, Roster};

/// Something odd about which instances a pool's marks match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatchWarning {
    /// Of the project's instances, none carries the pool's marks.
    Nobody {
        /// Which pool.
        pool: PoolName,
        /// How many instances the project has.
        seen: usize,
    },
    /// Every instance of the project carries them, and they say of themselves that they are of several clusters.
    OtherClusters {
        /// Which pool.
        pool: PoolName,
        /// How many instances the project has.
        seen: usize,
        /// The marks that contradict each other.
        signs: Vec<Mark>,
    },
    /// Every instance of the project carries them; nothing says that it should not be so.
    Everybody {
        /// Which pool.
        pool: PoolName,
        /// How many instances the project has.
        seen: usize,
    },
}

impl MatchWarning {
    /// True when nothing may be acted on in the pool until a person has changed the marks.
    pub const fn forbids_acting(&self) -> bool {
        matches!(self, Self::Nobody { .. } | Self::OtherClusters { .. })
    }

    /// Which pool it is about.
    pub const fn pool(&self) -> &PoolName {
        match self {
            Self::Nobody { pool, .. } | Self::OtherClusters { pool, .. } | Self::Everybody { pool, .. } => {
                pool
            }
        }
    }
}

impl fmt::Display for MatchWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nobody { pool, seen } => write!(
                f,
                "pool {pool}: none of the project's {seen} instances carries its marks. Nothing is done in it; compare owned with the marks on the instances"
            ),
            Self::OtherClusters { pool, seen, signs } => {
                write!(
                    f,
                    "pool {pool}: all {seen} instances of the project carry its marks, also those of other clusters ("
                )?;
                for (index, sign) in signs.iter().enumerate() {
                    write!(f, "{}{sign}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str("). Nothing is done in it; choose marks that only its machines carry")
            }
            Self::Everybody { pool, seen } => write!(
                f,
                "pool {pool}: all {seen} instances of the project carry its marks. Right if the project holds nothing else"
            ),
        }
    }
}

/// Compares the marks of the cloud's pools with a complete, unfiltered listing of its project. An empty project gives
/// no warning: nothing can be learned from it.
pub fn matches_warning(roster: &Roster, cloud: &CloudName, instances: &[Arc<Instance>]) -> Vec<MatchWarning> {
    let there: Vec<&Instance> =
        instances.iter().map(Arc::as_ref).filter(|instance| !instance.state.is_leaving()).collect();
    if there.is_empty() {
        return Vec::new();
    }
    let here = roster.pools.values().filter(|pool| pool.cloud == *cloud);
    here.filter_map(|pool| warning(pool, &there)).collect()
}

fn warning(pool: &Pool, there: &[&Instance]) -> Option<MatchWarning> {
    let wanted: Vec<&Mark> = pool.owned.pool.iter().chain([&pool.owned.cluster]).collect();
    let carries = |instance: &&&Instance| wanted.iter().all(|mark| instance.marks.contains(*mark));
    let (name, seen) = (pool.name.clone(), there.len());
    match there.iter().filter(carries).count() {
        0 => Some(MatchWarning::Nobody { pool: name, seen }),
        matched if matched < seen => None,
        _ => {
            let signs = contradictions(there);
            Some(if !signs.is_empty() {
                MatchWarning::OtherClusters { pool: name, seen, signs }
            } else if seen > 1 {
                MatchWarning::Everybody { pool: name, seen }
            } else {
                return None;
            })
        }
    }
}

/// Marks that name a cluster, where the instances do not all name the same.
fn contradictions(there: &[&Instance]) -> Vec<Mark> {
    let mut by_key: BTreeMap<&str, BTreeMap<&str, &Mark>> = BTreeMap::new();
    for mark in there.iter().flat_map(|instance| instance.marks.iter()) {
        if let Some((key, value)) = naming_a_cluster(mark) {
            by_key.entry(key).or_default().insert(value, mark);
        }
    }
    let several = by_key.into_values().filter(|values| values.len() > 1);
    several.flat_map(BTreeMap::into_values).cloned().collect()
}

/// Key and value of a mark that names a cluster: `k8s-cluster=prod`, `KubernetesCluster: prod`.
fn naming_a_cluster(mark: &Mark) -> Option<(&str, &str)> {
    let (key, value) = match mark {
        Mark::Tag(tag) => tag.split_once('=')?,
        Mark::Metadata(key, value) => (&**key, &**value),
    };
    let plain: String = key.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let endings = ["cluster", "clustername", "clusterid", "clusteruuid"];
    endings.iter().any(|ending| plain.ends_with(ending)).then_some((key, value))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use reveille_core::model::id::{InstanceId, InstanceName};
    use reveille_core::model::instance::InstanceState;

    use super::*;
    use crate::roster::{Origin, read};

    fn roster() -> Roster {
        let text = "{apiVersion: reveille.dev/v1alpha1, kind: Roster, metadata: {name: prod}, spec: {\
            clouds: [{name: os, openstack: {cloud: prod}}, {name: far, openstack: {cloud: far}}], pools: [\
            {name: workers, cloud: os, owned: {tag: k8s-cluster=prod, pool: pool=w}},\
            {name: edge, cloud: far, owned: {metadata: {cluster_name: prod}}}]}}";
        let origin = Origin { name: "r.yaml", dir: Path::new(""), home: None };
        read(text, &origin).unwrap_or_else(|refusal| panic!("{refusal}")).remove(0).roster
    }

    fn instances(of: &[(InstanceState, &[&str])]) -> Vec<Arc<Instance>> {
        let made = of.iter().enumerate().map(|(index, (state, tags))| {
            Arc::new(Instance {
                id: InstanceId::new(format!("i-{index}")),
                name: InstanceName::from("m"),
                state: *state,
                task: None,
                fault: None,
                zone: None,
                image: None,
                marks: Arc::new(tags.iter().map(|tag| Mark::Tag(Arc::from(*tag))).collect::<BTreeSet<_>>()),
                addresses: Box::default(),
                config_drive: false,
                locked: false,
                created: None,
            })
        });
        made.collect()
    }

    #[test]
    fn marks_that_match_nobody_or_others_forbid_acting() {
        use InstanceState::{Active, Deleting};
        let ours: &[&str] = &["k8s-cluster=prod", "pool=w"];
        let other: &[&str] = &["k8s-cluster=prod", "pool=w", "k8s-cluster=dev"];
        let table = [
            ("an empty project teaches nothing", instances(&[]), None),
            ("all that is left is leaving", instances(&[(Deleting, &[])]), None),
            ("nobody", instances(&[(Active, &["k8s-cluster=prod"]), (Active, &["pool=w"])]), Some(true)),
            ("some", instances(&[(Active, ours), (Active, &[])]), None),
            ("the only one", instances(&[(Active, ours)]), None),
            ("everybody", instances(&[(Active, ours), (Active, ours)]), Some(false)),
            ("everybody, also of another cluster", instances(&[(Active, ours), (Active, other)]), Some(true)),
        ];
        for (case, seen, expected) in table {
            let warnings = matches_warning(&roster(), &CloudName::from("os"), &seen);
            assert_eq!(warnings.first().map(MatchWarning::forbids_acting), expected, "{case}: {warnings:?}");
            assert!(warnings.iter().all(|warning| warning.pool().as_str() == "workers"), "{case}");
        }
    }

    #[test]
    fn the_signs_of_other_clusters_are_named() {
        let all: &[&str] = &["k8s-cluster=prod", "pool=w"];
        let seen = instances(&[
            (InstanceState::Active, all),
            (InstanceState::Active, &[all[0], all[1], "cluster-id=7"]),
        ]);
        let said =
            |seen: &[Arc<Instance>]| matches_warning(&roster(), &CloudName::from("os"), seen)[0].to_string();
        assert!(
            said(&seen).starts_with("pool workers: all 2 instances of the project carry its marks. Right if")
        );
        let seen = instances(&[
            (InstanceState::Active, &[all[0], all[1], "cluster-id=7"]),
            (InstanceState::Active, &[all[0], all[1], "cluster-id=8"]),
        ]);
        let text = said(&seen);
        assert!(text.contains("those of other clusters (tag cluster-id=7, tag cluster-id=8)"), "{text}");
    }
}
