//! What other clients than the kubelets write on nodes and instances: annotations, taints, metadata; and add-ons, which take
//! startup taints away again.
//!
//! ```text
//!  kubelet registers with startup taints ─▶ Ready ─▶ its add-on runs there ─▶ taints gone (never, while it is down)
//!  a person annotates ─▶ Written ─▶ core's own reader of signs ─▶ Node
//! ```
//!
//! Signs are read by the very function that the cluster's adapter uses, so what a value means is decided once.

use std::collections::BTreeSet;
use std::sync::Arc;

use reveille_core::model::id::{InstanceId, NodeName, NodeUid, PoolName};
use reveille_core::model::instance::{Instance, Mark};

use super::cluster::Written;
use super::{Task, World};

/// The autoscaler's sign that it takes a node away.
pub(crate) const TO_BE_DELETED: &str = "ToBeDeletedByClusterAutoscaler";

impl World {
    /// Writes on every node of a machine.
    pub(super) fn write_on(&mut self, id: &InstanceId, change: impl Fn(&mut Written)) {
        for name in self.nodes_of(id) {
            if let Some(node) = self.cluster.write(&name, &change) {
                self.watched(node);
            }
        }
    }

    /// A person puts an annotation on the machine's node, or takes it off.
    pub fn annotate(&mut self, id: &InstanceId, by: &str, key: &str, value: Option<&str>) {
        let name = self.name_of(id);
        self.tell(match value {
            Some(value) => format!("{by} annotates the node of {name}: {key}={value}"),
            None => format!("{by} takes the annotation {key} off the node of {name}"),
        });
        self.write_on(id, |written| match value {
            Some(value) => drop(written.annotations.insert(key.to_owned(), value.to_owned())),
            None => drop(written.annotations.remove(key)),
        });
    }

    /// A person puts a metadata pair on the instance.
    pub fn set_metadata(&mut self, id: &InstanceId, by: &str, key: &str, value: &str) {
        let name = self.name_of(id);
        self.tell(format!("{by} sets on the instance of {name}: {key}={value}"));
        let pair = Mark::Metadata(key.into(), value.into());
        self.project.change(self.now, id, |instance| {
            let mut marks = (*instance.marks).clone();
            marks.retain(|mark| !matches!(mark, Mark::Metadata(known, _) if **known == *key));
            marks.insert(pair);
            instance.marks = Arc::new(marks);
        });
    }

    /// Another client's drain marks the node and never ends: a PodDisruptionBudget allows no eviction.
    pub fn drain_for_ever(&mut self, id: &InstanceId) {
        let name = self.name_of(id);
        self.tell(format!("the autoscaler drains {name}, and the drain never ends"));
        for node in self.nodes_of(id) {
            self.cluster.change(&node, |node| node.cordoned = true);
        }
        self.write_on(id, |written| written.taints.extend([TO_BE_DELETED.to_owned()]));
    }

    /// The add-on that takes a pool's startup taints away stops, or runs again.
    pub fn set_addon(&mut self, pool: &PoolName, runs: bool) {
        let word = if runs { "runs again" } else { "does not start any more" };
        self.tell(format!("the startup add-on of pool {pool} {word}"));
        if !runs {
            self.addons_down.insert(pool.clone());
            return;
        }
        self.addons_down.remove(pool);
        let of_pool = self.project.servers.iter().filter(|(_, server)| server.pool.as_ref() == Some(pool));
        let ids: Vec<InstanceId> = of_pool.map(|(id, _)| id.clone()).collect();
        for id in ids {
            self.start_addon(&id);
        }
    }

    fn startup_taints(&self, id: &InstanceId) -> &[Arc<str>] {
        let pool = self.project.servers.get(id).and_then(|server| server.pool.as_ref());
        let plan = self.layout.pools.iter().find(|plan| Some(&plan.name) == pool);
        plan.map_or(&[], |plan| &plan.startup_taints)
    }

    /// A node registers with the startup taints of its pool.
    pub(super) fn put_startup_taints(&mut self, id: &InstanceId, name: &NodeName) {
        let taints = self.startup_taints(id).to_vec();
        if !taints.is_empty() {
            self.cluster.write(name, |written| written.taints.extend(taints.iter().map(ToString::to_string)));
        }
    }

    /// The add-on's pod is put on the machine's nodes, if it runs at all.
    pub(super) fn start_addon(&mut self, id: &InstanceId) {
        if self.startup_taints(id).is_empty() {
            return;
        }
        for name in self.nodes_of(id) {
            let Some(uid) = self.cluster.nodes.get(&name).map(|node| node.uid.clone()) else { continue };
            let after = self.soon(5_000, 15_000);
            self.plan(after, Task::AddOn(name, uid));
        }
    }

    /// The add-on runs on the node and takes the startup taints away.
    pub(super) fn addon_runs(&mut self, name: &NodeName, uid: &NodeUid) {
        let Some(id) = self.owner_of(name, uid) else { return };
        let pool = self.project.servers.get(&id).and_then(|server| server.pool.clone());
        if pool.is_none_or(|pool| self.addons_down.contains(&pool)) {
            return;
        }
        let taints = self.startup_taints(&id).to_vec();
        let node = self.cluster.write(name, |written| {
            written.taints.retain(|taint| !taints.iter().any(|startup| **startup == **taint));
        });
        if let Some(node) = node {
            self.watched(node);
        }
    }

    /// Marks, and the tag that everything in the project carries.
    pub(super) fn with_common_tag(&self, mut marks: BTreeSet<Mark>) -> BTreeSet<Mark> {
        marks.extend(self.layout.common_tag.as_ref().map(|tag| Mark::Tag(tag.as_str().into())));
        marks
    }

    /// Who is in the project, strangers included, whatever listings say.
    pub(crate) fn everybody(&self) -> impl Iterator<Item = &Arc<Instance>> {
        self.project.servers.values().map(|server| &server.instance)
    }

    /// What a person asks for on the machine's nodes: a repair now.
    pub(crate) fn repair_asked(&self, id: &InstanceId) -> Option<Arc<str>> {
        let nodes = self.nodes_of(id);
        let mut nodes = nodes.iter().filter_map(|name| self.cluster.nodes.get(name));
        nodes.find_map(|node| node.intent.asks.as_ref()?.repair.clone())
    }
}
