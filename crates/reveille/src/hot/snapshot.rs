//! The objects that are hot now, in a roster's cluster and in its Rancher's, for the answers of a running controller.
//!
//! ```text
//!  the watch of nodes, open in any case ───────┐
//!  watcher of the cluster: Watched ────────────┼▶ HotSnapshot ─▶ status: all of it    why: what is about the machine
//!  watcher of Rancher: Watched ────────────────┘
//! ```
//!
//! A report names an API server that should be watched and is not; without that, silence would look like calm. A write
//! storm in Rancher's API server hurts every cluster of that Rancher, so a `status` names all hot objects there. A `why`
//! names the record of its machine only, and only for the roster's own cluster, because two clusters may each have a node
//! of the same name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reveille_hot::verdict::Subject;
use reveille_hot::{Resource, Verdict};
use reveille_kube::Cluster;
use reveille_wire::report::{HotMachine, HotVerdict, MachineReport, Report};

use crate::view::hot as view;

/// The most verdicts in a report.
const REPORTED_MAX: usize = 20;
/// The most kinds that a line names.
const NAMED_MAX: usize = 3;

/// What one look without an end knows now.
#[derive(Default)]
pub(super) struct Known {
    /// `host:port`, once it is known.
    pub(super) server: Option<String>,
    /// The hot objects.
    pub(super) verdicts: BTreeMap<Subject, Verdict>,
    /// Kinds with data.
    pub(super) standing: BTreeSet<Resource>,
    /// Wanted kinds without data, and why.
    pub(super) untold: BTreeMap<Resource, String>,
    /// Why there is no data for any kind, while that is so.
    pub(super) blind: String,
}

/// An API server that is watched without an end: its watcher writes the state, and the reporting commands read it.
#[derive(Clone)]
pub(crate) struct Watched(Arc<Mutex<Known>>);

impl Watched {
    /// The state before the first data.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Known { blind: "the look has only begun".to_owned(), ..Known::default() })))
    }

    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The Rancher of a roster, watched.
#[derive(Clone)]
pub(crate) struct Management {
    /// Its API server.
    pub(crate) watched: Watched,
    /// Id or name of the roster's cluster in Rancher.
    pub(crate) cluster: String,
}

/// The hot objects of one roster now.
#[derive(Clone)]
pub(crate) struct HotSnapshot {
    cluster: Cluster,
    own: Option<Watched>,
    rancher: Option<Management>,
}

impl HotSnapshot {
    /// The sources: a cluster whose nodes are watched in any case, and the API servers of the roster's `hot` sections.
    pub(crate) const fn new(cluster: Cluster, own: Option<Watched>, rancher: Option<Management>) -> Self {
        Self { cluster, own, rancher }
    }

    /// Adds the hot objects to a report.
    pub(crate) fn fill(&self, report: &mut Report) {
        match report {
            Report::StatusReport(status) => {
                status.hot = self.verdicts();
                status.hot.truncate(REPORTED_MAX);
                status.hot_unread = self.unread();
            }
            Report::WhyReport(why) => {
                let there = self.rancher.as_ref().map(|rancher| rancher.cluster.as_str());
                why.hot = self.verdicts();
                why.hot.retain(|verdict| is_about(verdict, &why.machine, there));
                why.hot_unread = self.unread();
            }
            _ => {}
        }
    }

    /// The verdicts, hottest first.
    fn verdicts(&self) -> Vec<HotVerdict> {
        let mut own: BTreeMap<Subject, Verdict> = BTreeMap::new();
        for verdict in self.cluster.hot_nodes() {
            own.insert(verdict.subject.clone(), verdict);
        }
        // A look of its own knows more about a node than the watch of nodes does.
        own.extend(self.own.iter().flat_map(|watched| watched.known().verdicts.clone()));
        let mut all: Vec<(Option<String>, Verdict)> = Vec::new();
        if let Some(rancher) = &self.rancher {
            let known = rancher.watched.known();
            // Rancher may run in the roster's own cluster: then an object is named once.
            let is_own = known.server.as_deref() == Some(self.cluster.server());
            let theirs =
                known.verdicts.values().filter(|verdict| !is_own || !own.contains_key(&verdict.subject));
            let server = known.server.clone().unwrap_or_default();
            all.extend(theirs.map(|verdict| (Some(server.clone()), verdict.clone())));
        }
        all.extend(own.into_values().map(|verdict| (None, verdict)));
        all.sort_by_key(|(_, verdict)| {
            std::cmp::Reverse(verdict.rates.first().and_then(|rate| rate.per_1000_s()))
        });
        let report = |(in_rancher, verdict): &(Option<String>, Verdict)| HotVerdict {
            in_rancher: in_rancher.clone(),
            ..view::verdict(verdict)
        };
        all.iter().map(report).collect()
    }

    /// API servers and kinds that should be watched and are not.
    fn unread(&self) -> Vec<String> {
        let own = self.own.iter().map(|watched| ("the cluster's API server", watched));
        let theirs = self.rancher.iter().map(|rancher| ("Rancher's API server", &rancher.watched));
        own.chain(theirs).filter_map(|(whose, watched)| unread(whose, &watched.known())).collect()
    }
}

fn unread(whose: &str, known: &Known) -> Option<String> {
    let server = known.server.as_ref().map_or_else(String::new, |server| format!(" {server}"));
    if known.standing.is_empty() {
        let why = known.untold.values().next().unwrap_or(&known.blind);
        return Some(format!("hot objects are not looked for in {whose}{server}: {why}"));
    }
    let why = known.untold.values().next()?;
    let mut names: Vec<String> = known.untold.keys().take(NAMED_MAX).map(ToString::to_string).collect();
    if let more @ 1.. = known.untold.len().saturating_sub(NAMED_MAX) {
        names.push(format!("{more} more"));
    }
    Some(format!("writes of {} are not counted in {whose}{server}: {why}", names.join(", ")))
}

/// The Node itself, or its record in the roster's cluster. While a machine has no Node, its record has the machine's name.
fn is_about(verdict: &HotVerdict, machine: &MachineReport, there: Option<&str>) -> bool {
    let node = machine.node.as_deref();
    let is_node = verdict.in_rancher.is_none()
        && verdict.group.is_empty()
        && verdict.resource == "nodes"
        && verdict.name.is_some()
        && verdict.name.as_deref() == node;
    let is_record = verdict.machine.as_ref().is_some_and(|behind| match (&verdict.in_rancher, node) {
        (Some(_), _) if !is_of_cluster(behind, there) => false,
        // The management cluster has Nodes, leases and pods of its own.
        (Some(_), _) if behind.cluster_id.is_none() => false,
        (Some(_), None) => behind.node.as_deref() == Some(&*machine.name),
        (_, Some(node)) => is_of_cluster(behind, there) && behind.node.as_deref() == Some(node),
        (None, None) => false,
    });
    is_node || is_record
}

/// False when the machine is known to be in another cluster than the roster's. The name of the cluster may be unreadable.
fn is_of_cluster(behind: &HotMachine, there: Option<&str>) -> bool {
    let (Some(there), Some(id)) = (there, &behind.cluster_id) else { return true };
    id == there || behind.cluster.as_ref().is_none_or(|name| name == there)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::fixture::machine;
    use crate::render;

    fn verdict(mut told: Value) -> HotVerdict {
        let rest = json!({"heat": "hot", "since": "2026-01-01T00:00:00Z", "rates": [], "class": "unseen", "means": "",
            "suspects": [], "fields": [], "notes": [], "firstAid": []});
        told.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        serde_json::from_value(told).unwrap()
    }

    #[test]
    fn verdict_matches_a_machine_by_its_node_or_rancher_record() {
        let table = [
            (json!({"group": "", "resource": "nodes", "name": "w-1"}), true),
            (json!({"group": "", "resource": "nodes", "name": "w-10"}), false),
            (json!({"group": "", "resource": "pods", "name": "w-1"}), false),
            (
                json!({"group": "management.cattle.io", "resource": "nodes", "name": "m-1", "machine": {"node": "w-1", "addresses": []}}),
                true,
            ),
            (json!({"group": "management.cattle.io", "resource": "nodes", "name": "w-1"}), false),
        ];
        for (told, expected) in table {
            let verdict = verdict(told);
            let is_it = is_about(&verdict, &machine("i-1", Some("w-1")), None);
            assert_eq!(is_it, expected, "{}", render::hot::line(&verdict));
        }
    }

    #[test]
    fn rancher_record_matches_only_machines_of_the_rosters_cluster() {
        let record = |id: &str, name: Option<&str>| {
            let mut behind = json!({"clusterId": id, "node": "w-1", "addresses": []});
            if let Some(name) = name {
                behind["cluster"] = json!(name);
            }
            verdict(json!({"inRancher": "r:443", "group": "management.cattle.io", "resource": "nodes",
                "namespace": id, "name": "m-1", "machine": behind}))
        };
        let own = machine("i-1", Some("w-1"));
        for (verdict, machine, there, expected) in [
            (record("c-1", Some("prod")), &own, "prod", true),
            (record("c-1", Some("prod")), &own, "c-1", true),
            (record("c-2", Some("shop")), &own, "prod", false),
            (record("c-1", None), &own, "prod", true),
            (record("c-1", Some("prod")), &machine("w-1", None), "prod", true),
            (record("c-1", Some("prod")), &machine("w-1", Some("w-2")), "prod", false),
            // A Node of the management cluster does not belong to the roster.
            (
                verdict(json!({"inRancher": "r:443", "group": "", "resource": "nodes", "name": "w-1",
                    "machine": {"node": "w-1", "addresses": []}})),
                &own,
                "prod",
                false,
            ),
        ] {
            let line = render::hot::line(&verdict);
            assert_eq!(is_about(&verdict, machine, Some(there)), expected, "{line} of {there}");
        }
    }

    #[test]
    fn who_should_be_watched_and_is_not_is_named_with_the_reason() {
        let watched = Watched::new();
        let told = |watched: &Watched| unread("Rancher's API server", &watched.known());
        let begun = "hot objects are not looked for in Rancher's API server: the look has only begun";
        assert_eq!(told(&watched).as_deref(), Some(begun));
        let [nodes, clusters] =
            ["nodes", "clusters"].map(|plural| Resource::new("management.cattle.io", plural));
        watched.known().server = Some("r:443".to_owned());
        watched.known().untold.insert(nodes.clone(), "403 Forbidden".to_owned());
        assert!(told(&watched).unwrap().ends_with("in Rancher's API server r:443: 403 Forbidden"));
        watched.known().standing.insert(clusters);
        let one = "writes of nodes.management.cattle.io are not counted in Rancher's API server r:443: 403 Forbidden";
        assert_eq!(told(&watched).as_deref(), Some(one));
        watched.known().untold.remove(&nodes);
        assert_eq!(told(&watched), None);
    }
}
