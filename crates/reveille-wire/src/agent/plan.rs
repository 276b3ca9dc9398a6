//! A machine's plan: its files and its join, in order.
//!
//! ```text
//!  template of the pool + machine ─▶ Plan { version, checksum, steps } ─▶ the agent computes the checksum itself, then applies
//!                                    Token { of plan version, secret } ─▶ beside it: renewed without another plan
//! ```
//!
//! The checksum is the SHA-256 of [`Plan::canonical`]: every field by its name and length. So no two plans have the same bytes,
//! and another JSON notation does not change it. The join's token is not in the plan. The server makes it when the agent needs
//! it, and it expires within minutes; with the token in it, the plan would change and be applied again for nothing.
//!
//! An unknown step or field refuses the plan as a whole. A plan cannot name a program to run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::text::{Content, List, Sentence, Word};
use super::words::{Distribution, Role};

/// Most steps of a plan.
pub const STEPS_MAX: usize = 64;

/// The files and the join of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Higher than the version of every plan this machine had before.
    pub version: u64,
    /// SHA-256 of [`Plan::canonical`], `sha256:` and hex.
    pub checksum: Word,
    /// The roles of the machine in the cluster.
    pub roles: List<Role, 3>,
    /// The steps, in order; each step can be repeated.
    pub steps: List<Step, STEPS_MAX>,
}

/// One step. A second application changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Step {
    /// Writes a file.
    WriteFile {
        /// Where: absolute, without `..`.
        path: Word,
        /// Its mode, as an octal text: `0600`.
        mode: Word,
        /// `user:group`; the agent's own user and group where none is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<Word>,
        /// The content of the file.
        content: Content,
        /// The content is never shown.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        secret: bool,
    },
    /// The machine joins the cluster.
    Join(JoinOrder),
    /// The agent restarts the kubelet's unit, when a step before changed something.
    RestartKubelet {},
}

/// How to join.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinOrder {
    /// The distribution that the machine joins with.
    pub distribution: Distribution,
    /// The cluster's API server, `host:port`.
    pub server: Word,
    /// Public keys, `sha256:` and hex as kubeadm prints them; the server's chain must hold one of them.
    pub ca_pins: List<Word, 8>,
    /// The node's name.
    pub node_name: Word,
    /// Labels of the node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<Word, Word>,
    /// Taints of the node, `key=value:effect`.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub taints: List<Word, 32>,
    /// Configuration of the distribution's own kind; the values of the plan override it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Content>,
}

/// The plan that an agent holds.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Held {
    /// Its version.
    pub version: u64,
    /// Its checksum.
    pub checksum: Word,
}

/// How a step is going.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepState {
    /// The step has begun.
    Running,
    /// The state was already as the step wants it.
    Unchanged,
    /// The state is now as the step wants it.
    Changed,
    /// The step failed, and the output says why.
    Failed,
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepOutcome {
    /// The version of the plan.
    pub plan: u64,
    /// Which step, from 0.
    pub step: u32,
    /// How it is going.
    pub state: StepState,
    /// The end of its output, secrets masked.
    #[serde(default)]
    pub tail: Sentence,
}

impl Plan {
    /// The bytes under the checksum: all but the version and the checksum itself.
    pub fn canonical(&self) -> Vec<u8> {
        let mut out = Canon(b"reveille plan 1\n".to_vec());
        for role in self.roles.iter() {
            out.put("role", role.name());
        }
        for step in self.steps.iter() {
            step.put(&mut out);
        }
        out.0
    }
}

impl Step {
    fn put(&self, out: &mut Canon) {
        match self {
            Self::WriteFile { path, mode, owner, content, secret } => {
                out.put("write-file", path);
                out.put("mode", mode);
                out.put("owner", owner.as_deref().unwrap_or_default());
                out.put("content", content);
                out.put("secret", if *secret { "yes" } else { "no" });
            }
            Self::Join(order) => order.put(out),
            Self::RestartKubelet {} => out.put("restart-kubelet", ""),
        }
    }
}

impl JoinOrder {
    fn put(&self, out: &mut Canon) {
        out.put("join", self.distribution.name());
        out.put("server", &self.server);
        out.put("node-name", &self.node_name);
        self.ca_pins.iter().for_each(|pin| out.put("ca-pin", pin));
        for (key, value) in &self.labels {
            out.put("label", key);
            out.put("is", value);
        }
        self.taints.iter().for_each(|taint| out.put("taint", taint));
        if let Some(config) = &self.config {
            out.put("config", config);
        }
    }
}

/// Writes names, lengths and bytes.
struct Canon(Vec<u8>);

impl Canon {
    fn put(&mut self, name: &str, text: &str) {
        self.0.extend_from_slice(format!("{name} {}\n", text.len()).as_bytes());
        self.0.extend_from_slice(text.as_bytes());
        self.0.push(b'\n');
    }
}
