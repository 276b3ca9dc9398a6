//! A check-up: facts come in, a list of checks goes out, ordered so that each check comes after those that it rests on.
//!
//! ```text
//!  Facts ─▶ RULES, in order: clock ─ names ─ routes ─ DNS ─ TCP ─ TLS ─ pin ─ certificate ─ API ─ token ─ runtime ─ … ─ Ready
//!             each: what it rests on has failed ─▶ skipped, because of that
//!                   otherwise its judge ─▶ passed · failed · warned · skipped · cannot tell ─▶ Vec<Check>
//! ```
//!
//! The operator should look first at the first check that failed. A later check either rests on it and is skipped, or is
//! a second problem. A fact that could not be read never counts as false; its check says that it cannot tell. Causes are
//! named by the labels of the catalogue, which has a page for each.
//!
//! This module reads nothing and changes nothing: `reveille-node` reads, and [`crate::rejoin`] or a person repairs.

pub mod facts;
mod found;
mod kubelet;
mod machine;
mod network;
mod node;
mod reading;
mod runtime;
pub mod server;
mod supervised;
mod trust;

#[cfg(test)]
mod fault_fixtures;
#[cfg(test)]
mod sound;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use reveille_core::model::stage::Stage;

pub use facts::Facts;
pub use found::{Advice, CAUSES, Result};
pub use reading::Reading;

use found::Found;

/// One check and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The check's name, which never changes.
    pub id: &'static str,
    /// The stage at which a machine stops when the check fails.
    pub stage: Stage,
    /// The ids of the checks that this one rests on.
    pub rests_on: &'static [&'static str],
    /// The result.
    pub result: Result,
    /// The finding, as a clause.
    pub says: String,
    /// The evidence, one line each.
    pub evidence: Vec<String>,
    /// The label of the cause in the catalogue, where one fits.
    pub cause: Option<&'static str>,
    /// What the operator should do, where something is to be done.
    pub advice: Option<Advice>,
}

/// A rule of the check-up.
struct Rule {
    id: &'static str,
    stage: Stage,
    rests_on: &'static [&'static str],
    judge: fn(&Facts) -> Found,
}

const fn rule(
    id: &'static str,
    stage: Stage,
    rests_on: &'static [&'static str],
    judge: fn(&Facts) -> Found,
) -> Rule {
    Rule { id, stage, rests_on, judge }
}

/// All checks. Each rests only on earlier ones.
const RULES: &[Rule] = &[
    rule("clock", Stage::OsBoot, &[], machine::clock),
    rule("host-name", Stage::OsBoot, &[], machine::host_name),
    rule("target", Stage::FetchConfig, &[], network::target),
    rule("route", Stage::Network, &["target"], network::route),
    rule("dns", Stage::Network, &["target", "route"], network::dns),
    rule("reach", Stage::Network, &["dns"], network::reach),
    rule("tls", Stage::Trust, &["reach"], trust::tls),
    rule("cluster-info", Stage::Trust, &["tls"], trust::cluster_info),
    rule("ca-pin", Stage::Trust, &["tls", "cluster-info"], trust::ca_pin),
    rule("server-certificate", Stage::Trust, &["clock", "ca-pin"], trust::server_certificate),
    rule("api-server", Stage::Trust, &["server-certificate"], trust::api_server),
    rule("token", Stage::Authenticate, &["api-server"], trust::token),
    rule("runtime", Stage::Runtime, &[], runtime::runtime),
    rule("kernel", Stage::OsBoot, &[], machine::kernel),
    rule("cgroups", Stage::OsBoot, &[], machine::cgroups),
    rule("kubelet-config", Stage::KubeletStart, &[], kubelet::config),
    rule(
        "cgroup-driver",
        Stage::KubeletStart,
        &["cgroups", "runtime", "kubelet-config"],
        runtime::cgroup_driver,
    ),
    rule("swap", Stage::KubeletStart, &[], machine::swap),
    rule("ports", Stage::KubeletStart, &[], machine::ports),
    rule("leftovers", Stage::OsBoot, &[], kubelet::leftovers),
    rule("disk", Stage::Stay, &[], machine::disk),
    rule("memory", Stage::Stay, &[], machine::memory),
    rule("announced", Stage::Stay, &[], machine::announced),
    rule(
        "client-certificate",
        Stage::Authenticate,
        &["clock", "host-name", "leftovers"],
        kubelet::certificate,
    ),
    rule(
        "kubelet",
        Stage::KubeletStart,
        &["runtime", "cgroups", "kubelet-config", "swap", "ports", "leftovers", "disk", "client-certificate"],
        kubelet::service,
    ),
    rule("certificate-request", Stage::Approve, &["api-server", "kubelet"], kubelet::request),
    rule("node", Stage::Register, &["api-server", "client-certificate", "kubelet"], node::node),
    rule("leaving", Stage::Stay, &["node"], node::leaving),
    rule("cloud-taint", Stage::CloudInitNode, &["node"], node::cloud_taint),
    rule("pod-network", Stage::Cni, &["runtime", "node"], node::pod_network),
    rule("ready", Stage::Ready, &["node", "pod-network"], node::ready),
];

/// Runs every check, in order.
pub fn checkup(facts: &Facts) -> Vec<Check> {
    let mut checks: Vec<Check> = Vec::with_capacity(RULES.len());
    // Each check that failed, and each that was skipped because of a failed one, with that failed check.
    let mut broken: BTreeMap<&str, &str> = BTreeMap::new();
    for rule in RULES {
        let root = rule.rests_on.iter().find_map(|id| broken.get(id)).copied();
        let found = match root {
            Some(root) => Found::skipped(format!("needs {root}, which failed")),
            None => (rule.judge)(facts),
        };
        if let Some(root) = root.or_else(|| (found.result == Result::Failed).then_some(rule.id)) {
            broken.insert(rule.id, root);
        }
        let Found { result, says, evidence, cause, advice } = found;
        let Rule { id, stage, rests_on, .. } = *rule;
        checks.push(Check { id, stage, rests_on, result, says, evidence, cause, advice });
    }
    checks
}

/// The check that the operator should look at first: the first failed one, else the first relevant one that could not
/// tell, else none.
pub fn first_failed(checks: &[Check]) -> Option<&Check> {
    checks.iter().find(|check| check.result == Result::Failed)
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.id, self.result, self.says)
    }
}
