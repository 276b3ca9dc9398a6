//! Rancher's controllers, as far as they touch records of nodes: the syncer, the hook of a deletion, and the planner.
//!
//! ```text
//!  every 200 ms:  Nodes, records ─▶ Node without record ─▶ one live list ─▶ machine-…
//!                                 ─▶ record without Node ─▶ deleted, if it was adopted        record on its way out ─▶ hook
//!                                 ─▶ both ─▶ label and addresses, where they differ           rkeNode without plan ─▶ plan
//! ```
//!
//! A record that is on its way out counts as none, so that its Node gets another one: that is the race. The hook of a
//! deletion finds no agent and lets the record go. The planner holds the cluster busy for a moment for a host that is new.
//! Other controllers, drivers and templates are not played.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use anyhow::{Result, anyhow};
use serde_json::{Value, json};

use super::OF;
use super::api::Api;
use super::objects::{FINALIZER, NODE_LABEL, SYNCED, cluster_at, mirror, records_of};
use crate::wait::s;

/// The controllers of one cluster. They end with their owner.
pub struct Syncer {
    over: Arc<AtomicBool>,
    told: Arc<Mutex<Told>>,
    thread: Option<JoinHandle<()>>,
}

/// How they behave.
#[derive(Clone, Copy, Debug)]
pub struct Ways {
    /// A host that is new gets its plan.
    pub plans: bool,
    /// A record whose Node is gone is deleted at once; otherwise they are behind with that.
    pub tidies: bool,
}

/// What they did.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// Names of mirrors that were made.
    pub mirrors: Vec<String>,
    /// Records that got a plan.
    pub planned: Vec<String>,
    /// The last thing that did not work.
    pub trouble: Option<String>,
}

struct Work {
    api: Api,
    cluster: String,
    ways: Ways,
    busy: u32,
    told: Arc<Mutex<Told>>,
}

impl Syncer {
    /// Begins.
    pub fn start(api: &Api, cluster: &str, ways: Ways) -> Self {
        let (over, told) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Told::default())));
        let mut work =
            Work { api: api.clone(), cluster: cluster.to_owned(), ways, busy: 0, told: Arc::clone(&told) };
        let ends = Arc::clone(&over);
        let thread = thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                if let Err(error) = work.turn() {
                    // As any controller: told, and tried again.
                    work.telling().trouble = Some(format!("{error:#}"));
                }
                thread::sleep(s(1) / 5);
            }
        });
        Self { over, told, thread: Some(thread) }
    }

    /// What was done so far.
    pub fn told(&self) -> Told {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Work {
    /// Held over a write: a test that sees the write in the API server also sees what the syncer told of it.
    fn telling(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&mut self) -> Result<()> {
        let list = records_of(&self.cluster);
        let nodes = self.api.list(&format!("/api/v1/nodes?labelSelector={OF}%3D{}", self.cluster))?;
        let records = self.api.list(&list)?;
        for node in &nodes {
            let Some(record) = records.iter().find(|record| is_live(record) && is_of(record, node)) else {
                self.mirror(&list, node)?;
                continue;
            };
            let bound = bound(record, node);
            if bound != *record {
                self.api.replace(&at(&list, record), &bound)?;
            }
        }
        for record in &records {
            let has_node = nodes.iter().any(|node| is_of(record, node));
            let is_adopted = record["metadata"]["annotations"][SYNCED] == "true";
            if !is_live(record) {
                self.let_go(&list, record)?;
            } else if !has_node && is_adopted && self.ways.tidies {
                self.api.delete(&at(&list, record))?;
            }
        }
        self.plan(&list, &records)
    }

    /// A Node without a record: one live list, to be sure.
    fn mirror(&self, list: &str, node: &Value) -> Result<()> {
        if self.api.list(list)?.iter().any(|record| is_live(record) && is_of(record, node)) {
            return Ok(());
        }
        let path = format!("/api/v1/nodes/{}", text(&node["metadata"]["name"]));
        if self.api.get(&path)?.is_none() {
            return Ok(());
        }
        let mut told = self.telling();
        let made = self.api.make(list, &mirror(&self.cluster, &name(node), &ip(node)))?;
        told.mirrors.push(name(&made));
        Ok(())
    }

    /// The hook of a deletion: no agent is connected, which it swallows.
    fn let_go(&self, list: &str, record: &Value) -> Result<()> {
        let mut record = record.clone();
        let finalizers = record["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
            return Ok(());
        }
        record["metadata"]["finalizers"] = finalizers.into_iter().filter(|one| one != FINALIZER).collect();
        self.api.replace(&at(list, &record), &record).map(drop)
    }

    fn plan(&mut self, list: &str, records: &[Value]) -> Result<()> {
        if self.busy > 0 {
            self.busy -= 1;
            return if self.busy == 0 { self.updated("True") } else { Ok(()) };
        }
        let is_new = |record: &&Value| {
            record["status"]["rkeNode"].is_object() && record["status"]["nodePlan"].is_null()
        };
        let Some(record) = records.iter().find(is_new).filter(|_| self.ways.plans) else { return Ok(()) };
        self.updated("Unknown")?;
        let mut planned = record.clone();
        planned["status"]["nodePlan"] = json!({"version": 1});
        let mut told = self.telling();
        if self.api.replace(&at(list, record), &planned)? {
            told.planned.push(name(record));
        }
        drop(told);
        self.busy = 5;
        Ok(())
    }

    fn updated(&self, status: &str) -> Result<()> {
        let path = cluster_at(&self.cluster);
        let mut cluster = self.api.get(&path)?.ok_or_else(|| anyhow!("the cluster is gone"))?;
        cluster["status"]["conditions"] = json!([
            {"type": "Provisioned", "status": "True"}, {"type": "Updated", "status": status}]);
        self.api.replace(&path, &cluster).map(drop)
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn name(object: &Value) -> String {
    text(&object["metadata"]["name"])
}

fn at(list: &str, record: &Value) -> String {
    format!("{list}/{}", name(record))
}

fn is_live(record: &Value) -> bool {
    record["metadata"]["deletionTimestamp"].is_null()
}

fn ip(node: &Value) -> String {
    let addresses = node["status"]["addresses"].as_array().cloned().unwrap_or_default();
    let internal = addresses.iter().find(|address| address["type"] == "InternalIP");
    internal.map(|address| text(&address["address"])).unwrap_or_default()
}

/// By label, else by names, else by an internal address.
fn is_of(record: &Value, node: &Value) -> bool {
    let node_name = name(node);
    if let Some(label) = record["metadata"]["labels"][NODE_LABEL].as_str() {
        return label == node_name;
    }
    let (spec, status) = (&record["spec"], &record["status"]);
    let names = [&status["nodeName"], &status["rkeNode"]["hostnameOverride"], &spec["requestedHostname"]];
    if names.into_iter().any(|name| *name == node_name) {
        return true;
    }
    let addresses = status["internalNodeStatus"]["addresses"].as_array().cloned().unwrap_or_default();
    addresses.iter().any(|address| address["type"] == "InternalIP" && address["address"] == ip(node))
}

/// The record with what its Node says.
fn bound(record: &Value, node: &Value) -> Value {
    let mut bound = record.clone();
    bound["metadata"]["labels"][NODE_LABEL] = json!(name(node));
    bound["metadata"]["annotations"][SYNCED] = json!("true");
    bound["status"]["nodeName"] = json!(name(node));
    bound["status"]["internalNodeStatus"]["addresses"] = node["status"]["addresses"].clone();
    bound
}
