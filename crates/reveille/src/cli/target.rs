//! The target of a join as arguments. They are kubeadm's own, so that an existing `kubeadm join` line works here unchanged.

use std::path::PathBuf;

use clap::Args;
use reveille_core::model::id::NodeName;
use reveille_node::target::{Arguments, Kind};

/// Which cluster, known by what, with which token, under which name.
#[derive(Args, Clone)]
pub(crate) struct TargetArgs {
    /// API server (k3s and RKE2: the supervisor); a pasted "kubeadm join" before it is accepted
    #[arg(value_name = "HOST:PORT")]
    words: Vec<String>,
    /// Distribution: kubeadm, k3s, rke2 [default: as installed, or kubeadm]
    #[arg(long, value_name = "NAME", value_parser = distribution)]
    distribution: Option<Kind>,
    /// Bootstrap token, or token of k3s or RKE2; prefer --token-file, because all users can read arguments
    #[arg(long, value_name = "TOKEN", env = "REVEILLE_BOOTSTRAP_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// File that contains only the token; it is read again when needed
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    token_file: Option<PathBuf>,
    /// Public key of the cluster's CA, sha256:…; several during a rotation
    #[arg(long, value_name = "PIN", value_delimiter = ',')]
    discovery_token_ca_cert_hash: Vec<String>,
    /// Trust the server without a pin: by the token's signature, with k3s and RKE2 without any check
    #[arg(long)]
    discovery_token_unsafe_skip_ca_verification: bool,
    /// kubeconfig with server and CA, instead of pins
    #[arg(long, value_name = "FILE")]
    discovery_file: Option<PathBuf>,
    /// kubeadm's JoinConfiguration
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Name of the Node [default: the host name]
    #[arg(long, value_name = "NAME")]
    node_name: Option<String>,
    /// Socket of the container runtime
    #[arg(long, value_name = "SOCKET")]
    cri_socket: Option<String>,
}

/// Debug output of the arguments never shows a token.
impl std::fmt::Debug for TargetArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TargetArgs")
            .field("words", &self.words)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl TargetArgs {
    /// kubeadm's configuration file, where the command line names one.
    pub(crate) const fn config(&self) -> Option<&PathBuf> {
        self.config.as_ref()
    }

    /// The arguments for the code that joins the machine.
    pub(crate) fn arguments(&self) -> Arguments {
        Arguments {
            distribution: self.distribution,
            words: self.words.clone(),
            token: self.token.clone().map(Into::into),
            token_file: self.token_file.clone(),
            ca_cert_hashes: self.discovery_token_ca_cert_hash.clone(),
            skip_ca_verification: self.discovery_token_unsafe_skip_ca_verification,
            discovery_file: self.discovery_file.clone(),
            config: self.config.clone(),
            node_name: self.node_name.as_deref().map(NodeName::from),
            cri_socket: self.cri_socket.clone(),
            is_control_plane: false,
        }
    }
}

fn distribution(text: &str) -> Result<Kind, String> {
    let found = Kind::ALL.into_iter().find(|kind| kind.name() == text);
    found.ok_or_else(|| format!("write one of {}", Kind::ALL.map(Kind::name).join(", ")))
}
