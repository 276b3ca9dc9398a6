//! Rancher's records on a real API server: the program finds what is wrong, both ways of repair survive a kill at each step, and
//! a storm over one of them is told.
//!
//! There is no Rancher: a syncer behaves as its own does ([`reveille_tests::rancher`]). What was reached is read from the API
//! server; what the program wrote, its door counts.

mod etcd;
mod etcd_killed;
mod found;
mod mended;
mod stage;
mod stormy;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use reveille_tests::lab::Lab;
use reveille_tests::rancher::api::Api;
use reveille_tests::rancher::door::{Door, Life};
use reveille_tests::rancher::objects::{backup, cluster, cluster_at, node, records_of, registered};
use reveille_tests::reveille::{Place, Reveille};
use reveille_tests::wait::{s, until};
use serde_json::{Value, json};

pub(crate) use etcd::a_machine_that_holds_etcd_leaves_it_before_its_node_goes;
pub(crate) use etcd_killed::kill_at_any_step_removes_etcd_member_once_and_before_node;
pub(crate) use found::faulty_records_are_found_and_sound_ones_are_not;
pub(crate) use mended::both_ways_of_mending_a_record_survive_a_kill_at_each_step;
pub(crate) use stormy::storm_in_management_cluster_is_told_with_its_machine;

/// More lives than any repair needs.
const LIVES_MAX: u32 = 30;

/// A cluster with its Nodes and records, and the program's way to it.
struct Ground {
    api: Api,
    id: String,
    /// The third number of its Nodes' addresses.
    net: u8,
    door: Door,
    kubeconfig: PathBuf,
    nodes: Vec<String>,
}

impl Ground {
    /// A cluster of this id at rest, whose applied specification has machines 1 to `hosts`; nothing else yet.
    fn lay(lab: &Lab, id: &str, net: u8, hosts: u8, later_s: u64) -> Result<Self> {
        let api = Api::of(&lab.rig.facts.kubernetes)?;
        let door = Door::open(api.host(), id, s(later_s))?;
        let kubeconfig = lab.rig.state().join(format!("{id}.conf"));
        door.kubeconfig(&kubeconfig)?;
        let ground = Self { api, id: id.to_owned(), net, door, kubeconfig, nodes: Vec::new() };
        ground.api.make("/api/v1/namespaces", &json!({"metadata": {"name": id}}))?;
        let hosts: Vec<(String, String)> =
            (1..=hosts).map(|number| (ground.record(number), ground.ip(number))).collect();
        let hosts: Vec<(&str, &str)> =
            hosts.iter().map(|(record, ip)| (record.as_str(), ip.as_str())).collect();
        let clusters = cluster_at("");
        ground.api.make(clusters.trim_end_matches('/'), &cluster(id, &format!("{id}-shop"), &hosts))?;
        let backups = records_of(id).replace("/nodes", "/etcdbackups");
        ground.api.make(&backups, &backup(id))?;
        Ok(ground)
    }

    /// What machine `number` is called.
    fn name(&self, number: u8) -> String {
        format!("{}-{number}", self.id.trim_start_matches("c-"))
    }

    fn ip(&self, number: u8) -> String {
        format!("10.77.{}.{number}", self.net)
    }

    /// What its registration calls its record.
    fn record(&self, number: u8) -> String {
        format!("m-{:06x}{number:06x}", self.net)
    }

    fn records_at(&self) -> String {
        records_of(&self.id)
    }

    /// Its Node.
    fn join(&mut self, number: u8) -> Result<()> {
        let name = self.name(number);
        self.api.make("/api/v1/nodes", &node(&self.id, &name, &self.ip(number)))?;
        self.nodes.push(name);
        Ok(())
    }

    /// Its record, as its registration makes it.
    fn register(&self, number: u8) -> Result<()> {
        let record = registered(&self.id, &self.record(number), &self.name(number), &self.ip(number));
        self.api.make(&self.records_at(), &record).map(drop)
    }

    /// All records that speak of this machine, by its name or its address.
    fn records_about(&self, number: u8) -> Result<Vec<Value>> {
        let (name, ip) = (self.name(number), self.ip(number));
        let is_about = |record: &Value| {
            record["spec"]["requestedHostname"] == name || record["status"].to_string().contains(&ip)
        };
        Ok(self.api.list(&self.records_at())?.into_iter().filter(is_about).collect())
    }

    /// Something that would make a pod again.
    fn owner(&self) -> Result<Value> {
        let list = format!("/api/v1/namespaces/{}/configmaps", self.id);
        self.api.make(&list, &json!({"metadata": {"name": "owner"}}))
    }

    /// A pod, once its namespace is ready for any.
    fn run_pod(&self, pod: &Value) -> Result<Value> {
        let namespace = pod["metadata"]["namespace"].as_str().context("a pod has a namespace")?;
        let list = format!("/api/v1/namespaces/{namespace}/pods");
        until("its namespace to take a pod", s(30), || self.api.make(&list, pod))
    }

    /// Starts the program again and again until it ends by itself; gives its exit code.
    fn lived(&self, reveille: &Reveille, place: &Place, words: &[&str]) -> Result<Option<i32>> {
        for _ in 0..LIVES_MAX {
            if let Life::Ended(code) = self.door.watch(reveille.start(place, words)?)? {
                return Ok(code);
            }
        }
        bail!("{LIVES_MAX} lives were not enough; it died at {:?}", self.door.deaths())
    }

    /// Takes everything away, as far as the API server allows.
    fn clear(self) -> Result<()> {
        for node in &self.nodes {
            self.api.delete(&format!("/api/v1/nodes/{node}"))?;
        }
        for mut record in self.api.list(&self.records_at())? {
            let name = record["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let path = format!("{}/{name}", self.records_at());
            if !record["metadata"]["finalizers"].is_null() {
                record["metadata"]["finalizers"] = json!([]);
                self.api.replace(&path, &record)?;
            }
            self.api.delete(&path)?;
        }
        self.api.delete(&cluster_at(&self.id))?;
        self.api.delete(&format!("/api/v1/namespaces/{}", self.id))
    }
}
