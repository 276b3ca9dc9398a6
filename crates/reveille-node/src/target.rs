//! What is to be joined: which API server, known by which pins, with which token, under which name.
//!
//! ```text
//!  kubeadm's arguments, --token-file ─▶ arguments ─┐
//!  JoinConfiguration (several documents) ─▶ file  ─┼─▶ Target ─▶ join, doctor, agent
//!  what is there of an earlier join ─▶ machine    ─┘
//! ```
//!
//! What people already have is read as it is: the line that `kubeadm token create --print-join-command` prints, the file
//! that `kubeadm join --config` takes, the kubeconfig of a joined kubelet, the configuration of a k3s or RKE2 agent. What cannot
//! be read as one of these is refused with the place, what is wrong there and what to write instead. A token is in a type that
//! hides itself, and no refusal quotes one. Nothing is asked over a network and nothing is written.

pub mod agent_config;
mod arguments;
mod endpoint;
mod error;
mod file;
pub mod kubeconfig;
mod machine;
mod pins;
mod token;
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

/// What is to be joined.
#[derive(Clone, Debug)]
pub struct Target {
    /// How this machine joins.
    pub kind: Kind,
    /// Who said so.
    pub told_by: ToldBy,
    /// Where the API server is; several where several are named. Never empty.
    pub endpoints: Vec<Endpoint>,
    /// Public keys of which one has to be in the chain that the server shows.
    pub pins: Vec<Pin>,
    /// The hash of the authorities' bundle, as k3s and RKE2 put it before a token: it has to be that of what the server tells.
    pub bundle: Option<BundleHash>,
    /// Somebody wrote that the server is to be trusted without a pin.
    pub is_unpinned_on_purpose: bool,
    /// What the kubelet shows before it has a certificate.
    pub token: Option<Token>,
    /// The name of the Node, where it is not the host's.
    pub node_name: Option<NodeName>,
    /// The runtime's socket, as written: `unix:///run/containerd/containerd.sock`.
    pub cri_socket: Option<String>,
    /// kubeadm's configuration, where there is a file.
    pub config_file: Option<PathBuf>,
    /// It joins as a control plane.
    pub is_control_plane: bool,
}

/// Who said what is to be joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToldBy {
    /// The command line.
    Arguments,
    /// A file that was named.
    File(PathBuf),
    /// What an earlier join left on this machine: the file that says it.
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
    /// What the arguments say, or else what is there of a join on this machine; `None` when neither says anything.
    ///
    /// # Errors
    ///
    /// What is written cannot be meant; with the place and what to write.
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

    /// What is there of an earlier join; `None` when there is nothing, or nothing that names a server.
    ///
    /// # Errors
    ///
    /// A file of it is there and cannot be read as what it should be.
    pub fn of_machine(root: &Root) -> Result<Option<Self>, TargetError> {
        Self::of(agent_config::kind_of(root).unwrap_or_default(), root)
    }

    fn of(kind: Kind, root: &Root) -> Result<Option<Self>, TargetError> {
        match kind {
            Kind::Kubeadm => machine::target(root),
            Kind::K3s | Kind::Rke2 => agent_config::target(kind, root),
        }
    }

    /// How this machine joins, by what is there of a join; kubeadm where nothing or several things say it.
    pub fn kind_of_machine(root: &Root) -> Kind {
        agent_config::kind_of(root).unwrap_or_default()
    }

    /// The token that a configuration of kubeadm's names; `None` where it names none, or is none.
    pub(crate) fn token_of_config(text: &str) -> Option<Token> {
        file::parse(text).ok()?.token
    }

    /// Something says by what the cluster is known, so that nobody else can stand in its place.
    pub fn knows_its_cluster(&self) -> bool {
        !self.pins.is_empty() || self.bundle.is_some()
    }
}

#[cfg(test)]
mod tests;
