//! Plans: a template for each pool, from which the registry makes the plan of each machine.
//!
//! The registry computes a plan whenever it needs it; the version rises when the checksum changes. So a template that was
//! edited and restored leaves machines with the plan that they hold.

use std::collections::{BTreeMap, BTreeSet};

use reveille_core::model::id::{PoolName, RosterName};
use reveille_wire::agent::text::{Content, List, Word};
use reveille_wire::agent::{Distribution, JoinOrder, Plan, Role, Step};

use super::machine::Machine;

/// The configuration of the machines of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The distribution with which they join.
    pub distribution: Distribution,
    /// The cluster's API server, `host:port`.
    pub server: Word,
    /// Pins: the server's certificate chain must contain one of these public keys.
    pub ca_pins: Vec<Word>,
    /// Labels of their Nodes.
    pub labels: BTreeMap<Word, Word>,
    /// Taints of their Nodes.
    pub taints: Vec<Word>,
    /// Files that they need before they join.
    pub files: Vec<Step>,
    /// Configuration in the distribution's own format.
    pub config: Option<Content>,
    /// Roles that must exist in the cluster before a machine of this pool can join.
    pub needs: BTreeSet<Role>,
}

/// The templates by roster and pool.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Plans(pub BTreeMap<(RosterName, PoolName), Template>);

impl Plans {
    /// The template for a machine.
    pub fn of(&self, machine: &Machine) -> Option<&Template> {
        self.0.get(&(machine.roster.clone(), machine.pool.clone()))
    }
}

impl Template {
    /// The plan of a machine; its version is the machine's current one, or the next one.
    pub fn plan(&self, machine: &Machine) -> Plan {
        let join = Step::Join(JoinOrder {
            distribution: self.distribution,
            server: self.server.clone(),
            ca_pins: List::first(self.ca_pins.iter().cloned()),
            node_name: machine.node_name.clone(),
            labels: self.labels.clone(),
            taints: List::first(self.taints.iter().cloned()),
            config: self.config.clone(),
        });
        let mut plan = Plan {
            version: machine.plan.version,
            checksum: Word::default(),
            roles: List::first(machine.roles.iter().copied()),
            steps: List::first(self.files.iter().cloned().chain([join])),
        };
        plan.checksum = checksum(&plan);
        if plan.checksum != machine.plan.checksum {
            plan.version += 1;
        }
        plan
    }
}

/// The checksum of a plan.
pub fn checksum(plan: &Plan) -> Word {
    sha256(&plan.canonical())
}

/// A digest as the protocol writes it: `sha256:` and 64 hex digits.
pub fn sha256(bytes: &[u8]) -> Word {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    Word::cut(&format!("sha256:{hex}"))
}
