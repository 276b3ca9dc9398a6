//! The fourteen stages that every machine passes from "ordered" to "answers, and goes on answering".

use std::fmt;

use serde::{Deserialize, Serialize};

/// How far a machine came. In order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The cloud makes the instance.
    Provision,
    /// Its ports are wired, grouped and reachable.
    Network,
    /// The guest boots.
    OsBoot,
    /// The container runtime runs.
    Runtime,
    /// It has its configuration.
    FetchConfig,
    /// It trusts the server.
    Trust,
    /// The server knows it.
    Authenticate,
    /// The kubelet runs.
    KubeletStart,
    /// The Node object exists.
    Register,
    /// Its certificate is approved.
    Approve,
    /// The cloud controller has initialised it.
    CloudInitNode,
    /// Its pod network is up.
    Cni,
    /// Ready.
    Ready,
    /// It stays.
    Stay,
}

impl Stage {
    /// All of them, in order.
    pub const ALL: [Self; 14] = [
        Self::Provision,
        Self::Network,
        Self::OsBoot,
        Self::Runtime,
        Self::FetchConfig,
        Self::Trust,
        Self::Authenticate,
        Self::KubeletStart,
        Self::Register,
        Self::Approve,
        Self::CloudInitNode,
        Self::Cni,
        Self::Ready,
        Self::Stay,
    ];

    /// The name that people, files and metrics use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Provision => "provision",
            Self::Network => "network",
            Self::OsBoot => "os-boot",
            Self::Runtime => "runtime",
            Self::FetchConfig => "fetch-config",
            Self::Trust => "trust",
            Self::Authenticate => "authenticate",
            Self::KubeletStart => "kubelet-start",
            Self::Register => "register",
            Self::Approve => "approve",
            Self::CloudInitNode => "cloud-init-node",
            Self::Cni => "cni",
            Self::Ready => "ready",
            Self::Stay => "stay",
        }
    }

    /// What happens there, as a clause.
    pub const fn says(self) -> &'static str {
        match self {
            Self::Provision => "the cloud makes the instance",
            Self::Network => "its ports are wired, carry their security groups, and reach the network",
            Self::OsBoot => "the operating system boots, and cloud-init runs",
            Self::Runtime => "the container runtime starts",
            Self::FetchConfig => "the machine gets its join configuration: user data, a plan, a token",
            Self::Trust => "it verifies the certificate of the server that it joins",
            Self::Authenticate => "the server accepts its token or its certificate",
            Self::KubeletStart => "the kubelet starts and keeps running",
            Self::Register => "its Node object is created",
            Self::Approve => "its certificate requests are approved",
            Self::CloudInitNode => {
                "the cloud controller sets its addresses and provider ID, and takes its taint off"
            }
            Self::Cni => "its pod network starts",
            Self::Ready => "its Node becomes Ready",
            Self::Stay => "its Node stays Ready",
        }
    }

    /// The stage of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.name() == name)
    }

    /// Its place, counted from 1, as in "network (2 of 14)".
    pub const fn number(self) -> usize {
        self as usize + 1
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
