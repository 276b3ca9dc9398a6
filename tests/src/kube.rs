//! Eyes and hands of our own on the cluster: kubectl, straight to the API server.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::process;
use crate::rig::KubernetesFacts;

/// kubectl gives up after this long; a frozen API server answers never.
const WITHIN: Duration = Duration::from_secs(30);

/// The cluster.
pub struct Kube {
    facts: KubernetesFacts,
}

impl Kube {
    /// The cluster of a rig.
    pub fn new(facts: &KubernetesFacts) -> Self {
        Self { facts: facts.clone() }
    }

    /// Runs kubectl and gives what it printed.
    ///
    /// # Errors
    /// When it ends with another code than 0.
    pub fn ctl(&self, arguments: &[&str]) -> Result<String> {
        let ended = process::run(self.command(arguments), None, WITHIN)?;
        ensure!(ended.code == Some(0), "kubectl {}: {}", arguments.join(" "), ended.stderr.trim());
        Ok(ended.stdout)
    }

    /// The node; `None` when there is none of that name.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub fn node(&self, name: &str) -> Result<Option<Value>> {
        let text = self.ctl(&["get", "node", name, "--ignore-not-found", "-o", "json"])?;
        if text.trim().is_empty() {
            return Ok(None);
        }
        serde_json::from_str(&text).map(Some).context("kubectl get node")
    }

    /// The pod range of a node.
    ///
    /// # Errors
    /// When it has none.
    pub fn pod_range(&self, name: &str) -> Result<String> {
        let node = self.node(name)?.with_context(|| format!("there is no node {name}"))?;
        node["spec"]["podCIDR"]
            .as_str()
            .map(str::to_owned)
            .with_context(|| format!("{name} has no pod range"))
    }

    /// True when the node is there and Ready.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub fn is_ready(&self, name: &str) -> Result<bool> {
        let Some(node) = self.node(name)? else { return Ok(false) };
        let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
        Ok(conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True"))
    }

    /// Sets a condition of a node, as a node problem detector does; `on` is its status.
    ///
    /// # Errors
    /// When the API server refuses.
    pub fn condition(&self, name: &str, kind: &str, on: bool) -> Result<()> {
        let now = "2026-01-01T00:00:00Z";
        let patch = json!({"status": {"conditions": [{
            "type": kind, "status": if on { "True" } else { "False" }, "reason": "Scenario",
            "message": "set by a scenario", "lastHeartbeatTime": now, "lastTransitionTime": now}]}});
        let patch = patch.to_string();
        self.ctl(&["patch", "node", name, "--subresource=status", "--type=strategic", "-p", &patch]).map(drop)
    }

    /// A Ready node without a machine, as a control plane's own is: a cluster without any node is rightly not believed.
    ///
    /// # Errors
    /// When the API server refuses.
    pub fn add_control_plane(&self) -> Result<()> {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {
            "name": "control-plane", "annotations": {"kwok.x-k8s.io/node": "fake"}}});
        self.send(&["create", "-f", "-"], &node.to_string())
    }

    /// The kubelet of a node reports another boot, as it does after each one.
    ///
    /// # Errors
    /// When the API server refuses.
    pub fn report_boot(&self, name: &str, boot_id: &str) -> Result<()> {
        let patch = json!({"status": {"nodeInfo": {"bootID": boot_id}}}).to_string();
        self.ctl(&["patch", "node", name, "--subresource=status", "--type=merge", "-p", &patch]).map(drop)
    }

    /// Makes an object, or makes it so.
    ///
    /// # Errors
    /// When the API server refuses.
    pub fn apply(&self, object: &Value) -> Result<()> {
        self.send(&["apply", "--server-side", "-f", "-"], &object.to_string())
    }

    fn send(&self, arguments: &[&str], input: &str) -> Result<()> {
        let ended = process::run(self.command(arguments), Some(input), WITHIN)?;
        ensure!(ended.code == Some(0), "kubectl {}: {}", arguments.join(" "), ended.stderr.trim());
        Ok(())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.facts.kubectl);
        command.arg("--kubeconfig").arg(&self.facts.kubeconfig).arg("--request-timeout=20s").args(arguments);
        command
    }

    /// Deletes nodes, not waiting; those that are not there are no error.
    ///
    /// # Errors
    /// When the API server refuses.
    pub fn delete_nodes(&self, names: &[&str]) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let words = [&["delete", "node", "--ignore-not-found", "--wait=false"], names].concat();
        self.ctl(&words).map(drop)
    }

    /// Deletes the Leases that controllers have left, so that a scenario that is played again meets no other at work.
    ///
    /// # Errors
    /// When the API server refuses.
    pub fn delete_leases(&self) -> Result<()> {
        let listed = self.ctl(&["--namespace=kube-system", "get", "leases", "-o", "name"])?;
        let ours: Vec<&str> = listed.lines().filter(|name| name.contains("/reveille-")).collect();
        if ours.is_empty() {
            return Ok(());
        }
        let words = ["--namespace=kube-system", "delete", "--ignore-not-found", "--wait=false"];
        self.ctl(&[&words[..], &ours[..]].concat()).map(drop)
    }
}
