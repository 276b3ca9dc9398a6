//! Closed lists of words that agent and server know: stages, roles, verbs, distributions.

use std::fmt;

use reveille_core::model::stage::Stage;
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

use super::text::Word;

/// A stage of the fourteen, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StageWord(pub Stage);

impl Serialize for StageWord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name())
    }
}

impl<'de> Deserialize<'de> for StageWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = Word::deserialize(deserializer)?;
        Stage::from_name(&word)
            .map(Self)
            .ok_or_else(|| de::Error::custom("not the name of one of the fourteen stages"))
    }
}

/// A role of a machine in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The API server and its controllers.
    ControlPlane,
    /// A member of etcd.
    Etcd,
    /// Workloads.
    Worker,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::ControlPlane, Self::Etcd, Self::Worker];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ControlPlane => "control-plane",
            Self::Etcd => "etcd",
            Self::Worker => "worker",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// An order to an agent. There is no shell among the orders, and no path or argument of the server's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// Join after the plan that the agent holds, or join again.
    Join,
    /// Restart the kubelet's unit.
    RestartKubelet,
    /// Collect logs and checks, without secrets, and send them in parts.
    CollectEvidence,
    /// Say whether the API server answers.
    Probe,
}

impl Verb {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Join => "join",
            Self::RestartKubelet => "restart-kubelet",
            Self::CollectEvidence => "collect-evidence",
            Self::Probe => "probe",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The distribution of a machine, which decides its programs, paths and units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// kubeadm, and a kubelet in a unit of its own.
    #[default]
    Kubeadm,
    /// k3s: kubelet and runtime within one program.
    K3s,
    /// RKE2: kubelet and runtime started by one program.
    Rke2,
}

impl Distribution {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Kubeadm, Self::K3s, Self::Rke2];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kubeadm => "kubeadm",
            Self::K3s => "k3s",
            Self::Rke2 => "rke2",
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
