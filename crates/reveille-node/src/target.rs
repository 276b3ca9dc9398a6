//! The cluster to join: the API server, its pins, the token, and the name of the Node.
//!
//! ```text
//!  kubeadm's arguments, --token-file ─▶ arguments ─┐
//!  JoinConfiguration (several documents) ─▶ file  ─┼─▶ Target ─▶ join, doctor, agent
//!  what is there of an earlier join ─▶ machine    ─┘
//! ```
//!
//! The module reads what operators already have. For kubeadm that is the line of `kubeadm token create
//! --print-join-command`, the file for `kubeadm join --config`, and the kubeconfig of a joined kubelet. For k3s and RKE2
//! it is the agent's configuration. It refuses any other text with its place, the error, and what to write instead. A
//! token is in a type that hides itself, and no refusal quotes one. The module asks no network and writes nothing.

pub mod agent_config;
mod arguments;
mod endpoint;
mod error;
mod file;
pub mod kubeconfig;
mod machine;
mod pins;
mod reader;
mod token;
mod unit;
mod yaml;

use std::fmt;
use std::path::PathBuf;

use reveille_core::model::id::NodeName;

pub use arguments::Arguments;
pub use endpoint::Endpoint;
pub use error::TargetError;
pub use machine::{BOOTSTRAP_KUBECONFIG, KUBECONFIG, KUBELET_CONFIG, KUBELET_FLAGS, KubeletFlags};
pub use reveille_wire::agent::Distribution as Kind;
pub use token::{AGENT_USER, Shared, Token};
pub(crate) use yaml::documents;

use crate::bundle_hash::BundleHash;
use crate::pin::Pin;
use crate::root::Root;

/// The cluster to join.
#[derive(Clone, Debug)]
pub struct Target {
    /// The distribution of the machine.
    pub kind: Kind,
    /// The source of the target.
    pub told_by: ToldBy,
    /// The addresses of the API server. Never empty.
    pub endpoints: Vec<Endpoint>,
    /// Public keys; the server's chain has to contain one of them.
    pub pins: Vec<Pin>,
    /// The hash of the CA bundle, as k3s and RKE2 put it before a token: it has to match the server's bundle.
    pub bundle: Option<BundleHash>,
    /// An operator wrote explicitly that the server is trusted without a pin.
    pub is_unpinned_on_purpose: bool,
    /// The kubelet's credential before it has a certificate.
    pub token: Option<Token>,
    /// The name of the Node, where it differs from the host's.
    pub node_name: Option<NodeName>,
    /// The runtime's socket, as written: `unix:///run/containerd/containerd.sock`.
    pub cri_socket: Option<String>,
    /// kubeadm's configuration, where there is a file.
    pub config_file: Option<PathBuf>,
    /// The machine joins as a control plane.
    pub is_control_plane: bool,
}

/// The source of the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToldBy {
    /// The command line.
    Arguments,
    /// A file that the operator named.
    File(PathBuf),
    /// A file that an earlier join left on this machine.
    Machine(PathBuf),
}

impl fmt::Display for ToldBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arguments => f.write_str("the command line"),
            Self::File(path) | Self::Machine(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Target {
    /// The target in the arguments, or else of an earlier join on this machine; `None` when neither names one.
    ///
    /// # Errors
    ///
    /// The text is invalid; with the place and what to write.
    pub fn find(arguments: &Arguments, root: &Root) -> Result<Option<Self>, TargetError> {
        if let Some(target) = arguments.target(root)? {
            return Ok(Some(target));
        }
        let kind = arguments.kind(root);
        let Some(mut target) = Self::of(kind, root)? else { return Ok(None) };
        target.node_name = arguments.node_name.clone().or(target.node_name);
        target.cri_socket = arguments.cri_socket.clone().or(target.cri_socket);
        if let Some(token) = arguments.token(kind)? {
            target.bundle = token.bundle().or(target.bundle);
            target.token = Some(token);
        }
        target.is_unpinned_on_purpose |= arguments.skip_ca_verification;
        if let pins @ [_, ..] = &*arguments.pins()? {
            target.pins = pins.to_vec();
        }
        Ok(Some(target))
    }

    /// The target of an earlier join; `None` when there is no trace of one, or none that names a server.
    ///
    /// # Errors
    ///
    /// A file of the join exists and cannot be read as what it should be.
    pub fn of_machine(root: &Root) -> Result<Option<Self>, TargetError> {
        Self::of(agent_config::kind_of(root).unwrap_or_default(), root)
    }

    fn of(kind: Kind, root: &Root) -> Result<Option<Self>, TargetError> {
        match kind {
            Kind::Kubeadm => machine::target(root),
            Kind::K3s | Kind::Rke2 => agent_config::target(kind, root),
        }
    }

    /// The distribution of this machine, by the files of a join; kubeadm where there are none or those of several.
    pub fn kind_of_machine(root: &Root) -> Kind {
        agent_config::kind_of(root).unwrap_or_default()
    }

    /// The token in a kubeadm configuration; `None` where it has none, or is not a configuration.
    pub(crate) fn token_of_config(text: &str) -> Option<Token> {
        file::token(text)
    }

    /// The target identifies its cluster, so that no other server can pose as it.
    pub fn knows_its_cluster(&self) -> bool {
        !self.pins.is_empty() || self.bundle.is_some()
    }
}

#[cfg(test)]
mod tests;
