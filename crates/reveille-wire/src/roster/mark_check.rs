//! A check that needs the clouds: whether a roster's marks match the machines that they are meant for.
//!
//! A mark that matches no instance is usually a typing mistake. A mark that matches every instance would let the
//! controller delete machines of other owners. Both look right in the file. So the controller lists the whole project
//! without a filter before it acts for the first time, and calls [`matches_warning`]. The answer is about the marks only;
//! it says nothing about a single machine.
//!
//! ```text
//!  all instances ─▶ MarkCounts (how many carry what) ─▶ matches_warning ─▶ complaint: file, line, field, instead
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reveille_core::model::id::{CloudName, PoolName};
use reveille_core::model::instance::{Instance, Mark};
use reveille_core::model::roster::{Pool, Roster};

use super::complaint::{Written, sentence};

/// The instances of a project, counted by their marks. Instances that are being deleted do not count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarkCounts {
    by_marks: BTreeMap<Arc<BTreeSet<Mark>>, usize>,
}

impl MarkCounts {
    /// Counts instances.
    pub fn of<'i>(instances: impl IntoIterator<Item = &'i Arc<Instance>>) -> Self {
        let mut counts = Self::default();
        for instance in instances {
            if !instance.state.is_leaving() {
                *counts.by_marks.entry(instance.marks.clone()).or_default() += 1;
            }
        }
        counts
    }

    /// The sum of both.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        for (marks, count) in &other.by_marks {
            *self.by_marks.entry(marks.clone()).or_default() += count;
        }
        self
    }

    fn count(&self) -> usize {
        self.by_marks.values().sum()
    }

    fn carrying(&self, wanted: &[&Mark]) -> Self {
        let carries = |marks: &BTreeSet<Mark>| wanted.iter().all(|mark| marks.contains(*mark));
        let by_marks = self.by_marks.iter().filter(|(marks, _)| carries(marks));
        Self { by_marks: by_marks.map(|(marks, count)| (marks.clone(), *count)).collect() }
    }
}

/// A suspicious match between a pool's marks and the instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchWarning {
    /// Which pool.
    pub pool: PoolName,
    /// How many instances the project has.
    pub seen: usize,
    /// How many of them carry the pool's marks.
    pub matched: usize,
    /// What is suspicious.
    pub odd: Odd,
}

/// How a match is suspicious.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Odd {
    /// No instance carries the pool's marks.
    NoMatch,
    /// The instances with the marks name several clusters, by these marks.
    OtherClusters(Vec<Mark>),
    /// Every instance carries the marks, and nothing in the cluster's mark tells which cluster it means.
    Nameless(Mark),
    /// Every instance carries the marks, and nothing shows that this is wrong.
    Everybody,
}

impl MatchWarning {
    /// True when the controller must not act in the pool until an operator has changed the marks.
    pub const fn forbids_acting(&self) -> bool {
        !matches!(self.odd, Odd::Everybody)
    }

    /// What is wrong, as a clause.
    pub fn wrong(&self) -> String {
        let Self { pool, seen, matched, odd } = self;
        match odd {
            Odd::NoMatch => {
                format!("none of the project's {seen} instances carries the marks of pool {pool}")
            }
            Odd::OtherClusters(signs) => {
                let signs: Vec<String> = signs.iter().map(ToString::to_string).collect();
                let all = if matched == seen { "all ".to_owned() } else { format!("{matched} of ") };
                format!(
                    "{all}{seen} instances of the project carry the marks of pool {pool}, also those of other clusters ({})",
                    signs.join(", ")
                )
            }
            Odd::Nameless(mark) => format!(
                "all {seen} instances of the project carry the marks of pool {pool}, and {mark} does not say of which cluster they are"
            ),
            Odd::Everybody => format!("all {seen} instances of the project carry the marks of pool {pool}"),
        }
    }

    /// What to write instead, as a clause in the imperative.
    pub fn instead(&self) -> &'static str {
        match self.odd {
            Odd::NoMatch => {
                "write the marks as they are on its instances (openstack server show ID), or mark the instances; nothing is done in the pool until one carries them"
            }
            Odd::OtherClusters(_) => {
                "choose marks that only its machines carry; nothing is done in the pool until then"
            }
            Odd::Nameless(_) => {
                "mark its machines with a tag that names the cluster, and write that, for example tag: k8s-cluster=NAME; nothing is done in the pool until then"
            }
            Odd::Everybody => "leave it, if the project holds nothing else",
        }
    }

    /// The warning as a complaint about the roster: file, line, field, what is wrong, what to write instead.
    pub fn complaint(&self, written: Option<&Written>) -> String {
        let text = format!("{}. {}", self.wrong(), sentence(self.instead()));
        written.map_or_else(|| text.clone(), |written| format!("{written}: {text}"))
    }
}

/// Compares the marks of the cloud's pools with all instances of its project, also those of other owners. An empty
/// project gives no warning, because it proves nothing.
pub fn matches_warning(roster: &Roster, cloud: &CloudName, there: &MarkCounts) -> Vec<MatchWarning> {
    if there.count() == 0 {
        return Vec::new();
    }
    let here = roster.pools.values().filter(|pool| pool.cloud == *cloud);
    here.filter_map(|pool| warning(roster, pool, there)).collect()
}

fn warning(roster: &Roster, pool: &Pool, there: &MarkCounts) -> Option<MatchWarning> {
    let wanted: Vec<&Mark> = pool.owned.pool.iter().chain([&pool.owned.cluster]).collect();
    let ours = there.carrying(&wanted);
    let (seen, matched) = (there.count(), ours.count());
    let mark = &pool.owned.cluster;
    let odd = if matched == 0 {
        Odd::NoMatch
    } else {
        let mut signs = contradictions(&ours);
        // Only another value of its own key contradicts a mark that names its cluster, unless every instance carries the mark.
        if let (Some((key, _)), true) = (naming_a_cluster(mark), matched < seen) {
            signs.retain(|sign| naming_a_cluster(sign).is_some_and(|(other, _)| other == key));
        }
        match (signs.is_empty(), matched == seen && seen > 1) {
            (false, _) => Odd::OtherClusters(signs),
            (true, true) if !tells_which(mark, roster) => Odd::Nameless(mark.clone()),
            (true, true) => Odd::Everybody,
            (true, false) => return None,
        }
    };
    Some(MatchWarning { pool: pool.name.clone(), seen, matched, odd })
}

/// Whether a mark mentions a cluster, or at least this roster.
fn tells_which(mark: &Mark, roster: &Roster) -> bool {
    let text = mark.to_string().to_lowercase();
    text.contains("cluster") || text.contains(&roster.name.as_str().to_lowercase())
}

/// Marks that name a cluster, where the instances name different ones.
fn contradictions(there: &MarkCounts) -> Vec<Mark> {
    let mut by_key: BTreeMap<&str, BTreeMap<&str, &Mark>> = BTreeMap::new();
    for mark in there.by_marks.keys().flat_map(|marks| marks.iter()) {
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
                hostname: None,
                hosting: None,
            })
        });
        made.collect()
    }

    fn warn(seen: &[Arc<Instance>]) -> Vec<MatchWarning> {
        matches_warning(&roster(), &CloudName::from("os"), &MarkCounts::of(seen))
    }

    #[test]
    fn marks_that_match_no_machine_or_other_clusters_forbid_acting() {
        use InstanceState::{Active, Deleting};
        let ours: &[&str] = &["k8s-cluster=prod", "pool=w"];
        let other: &[&str] = &["k8s-cluster=prod", "pool=w", "k8s-cluster=dev"];
        let disk: &[&str] = &["k8s-cluster=prod", "pool=w", "ceph-cluster=a"];
        let disks: &[&str] = &["k8s-cluster=prod", "pool=w", "ceph-cluster=b"];
        let table: [(&str, Vec<Arc<Instance>>, Option<bool>); 10] = [
            ("an empty project teaches nothing", instances(&[]), None),
            ("all that is left is leaving", instances(&[(Deleting, &[])]), None),
            ("no instance", instances(&[(Active, &["k8s-cluster=prod"]), (Active, &["pool=w"])]), Some(true)),
            ("no instance but strangers", instances(&[(Active, &[]), (Active, &["web"])]), Some(true)),
            ("some", instances(&[(Active, ours), (Active, &[])]), None),
            (
                "some, of two clusters",
                instances(&[(Active, ours), (Active, other), (Active, &[])]),
                Some(true),
            ),
            (
                "some, on other clusters' disks",
                instances(&[(Active, disk), (Active, disks), (Active, &[])]),
                None,
            ),
            ("the only one", instances(&[(Active, ours)]), None),
            ("every instance", instances(&[(Active, ours), (Active, ours)]), Some(false)),
            ("every instance, of two clusters", instances(&[(Active, ours), (Active, other)]), Some(true)),
        ];
        for (case, seen, expected) in table {
            let warnings = warn(&seen);
            assert_eq!(warnings.first().map(MatchWarning::forbids_acting), expected, "{case}: {warnings:?}");
            assert!(warnings.iter().all(|warning| warning.pool.as_str() == "workers"), "{case}");
        }
    }

    #[test]
    fn a_mark_on_everybody_has_to_name_the_cluster() {
        let mut roster = roster();
        let everybody =
            |tag: &str| instances(&[(InstanceState::Active, &[tag]), (InstanceState::Active, &[tag])]);
        for (tag, odd) in [
            ("managed", Odd::Nameless(Mark::Tag("managed".into()))),
            ("kubernetes.io-cluster-x", Odd::Everybody),
            ("belongs-to-prod", Odd::Everybody),
        ] {
            for pool in roster.pools.values_mut() {
                pool.owned.cluster = Mark::Tag(tag.into());
                pool.owned.pool = None;
            }
            let counts = MarkCounts::of(&everybody(tag));
            let warnings = matches_warning(&roster, &CloudName::from("os"), &counts);
            assert_eq!(warnings[0].odd, odd, "{tag}");
            let with_a_stranger = counts.and(&MarkCounts::of(&instances(&[(InstanceState::Active, &[])])));
            assert_eq!(matches_warning(&roster, &CloudName::from("os"), &with_a_stranger), [], "{tag}");
        }
    }

    #[test]
    fn the_signs_of_other_clusters_are_named() {
        let all: &[&str] = &["k8s-cluster=prod", "pool=w"];
        let seen = instances(&[
            (InstanceState::Active, all),
            (InstanceState::Active, &[all[0], all[1], "cluster-id=7"]),
        ]);
        assert_eq!(warn(&seen)[0].odd, Odd::Everybody);
        let seen = instances(&[
            (InstanceState::Active, &[all[0], all[1], "cluster-id=7"]),
            (InstanceState::Active, &[all[0], all[1], "cluster-id=8"]),
        ]);
        let text = warn(&seen)[0].wrong();
        assert!(text.contains("those of other clusters (tag cluster-id=7, tag cluster-id=8)"), "{text}");
    }

    #[test]
    fn complaint_gives_its_position_and_the_marks_to_write() {
        let text = "apiVersion: reveille.dev/v1alpha1\nkind: Roster\nmetadata: {name: prod}\nspec:\n  clouds:\n    \
            - {name: os, openstack: {cloud: prod}}\n  pools:\n    - name: workers\n      cloud: os\n      owned: {tag: k8s-cluster=prdo}\n";
        let origin = Origin { name: "prod.yaml", dir: Path::new(""), home: None };
        let checked = read(text, &origin).unwrap_or_else(|refusal| panic!("{refusal}")).remove(0);
        let seen = instances(&[(InstanceState::Active, &["k8s-cluster=prod"])]);
        let warnings = matches_warning(&checked.roster, &CloudName::from("os"), &MarkCounts::of(&seen));
        let said = warnings[0].complaint(checked.written.get(&warnings[0].pool));
        assert!(
            said.starts_with(
                "prod.yaml:10:14: spec.pools[0].owned: none of the project's 1 instances carries the marks of pool workers. Write the marks"
            ),
            "{said}"
        );
    }
}
