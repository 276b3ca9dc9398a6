//! The differences between the ways to join: paths, units, where a token is shown, and which deeds make up a verb.
//!
//! ```text
//!  Verb, Order ─▶ Distribution ─▶ [Deed] ─▶ executor             files, answers ─▶ Distribution ─▶ inspect
//!                      ├─ Kubeadm      a program that joins, and a kubelet in a unit of its own
//!                      └─ Supervised   k3s, RKE2: a configuration, and a unit that joins at each of its starts
//! ```
//!
//! A verb is a list of deeds, as data. Writes, programs and restarts can be read, compared and tested without performing
//! them, and the list has no place for a shell. A token is written to a file that only root can read. It is never an
//! argument, because every user of the machine can read arguments. What must never be reset is the same for all
//! distributions: a machine that one of them spares, each of them spares.

mod kubeadm;
mod marks;
mod supervised;

use std::fmt::Debug;
use std::time::Duration;

use reveille_core::model::id::NodeName;
use secrecy::SecretString;
use tokio_rustls::rustls::pki_types::CertificateDer;

use crate::api::Answer;
use crate::bundle_hash::BundleHash;
use crate::discovery::{Discovered, DiscoveryError};
use crate::root::Root;
use crate::target::kubeconfig::Kubeconfig;
use crate::target::{Endpoint, Kind, Target, TargetError, Token};

pub use kubeadm::Kubeadm;
pub use marks::{Marks, is_join};
pub use supervised::Supervised;

/// The place of the token in a configuration that is made before the token.
pub const TOKEN_PLACE: &str = "aaaaaa.0000000000000000";

/// The directory of temporary files: in memory, gone after a reboot.
pub const SCRATCH: &str = "/run/reveille";

/// One change to the machine.
#[derive(Clone, Debug)]
pub enum Deed {
    /// Write a file that only root may read. An existing file of that name is replaced at once, or not at all.
    Write {
        /// The path.
        path: String,
        /// The content.
        content: SecretString,
    },
    /// Remove a file, if it exists.
    Remove(String),
    /// Keep copies of these files and directories, if they exist, before a later deed removes them.
    Keep(Vec<String>),
    /// Run a program to its end.
    Run {
        /// The program's name, which is searched on the path.
        program: &'static str,
        /// The arguments. Never a secret.
        arguments: Vec<String>,
        /// The time limit, after which the program is ended.
        within: Duration,
    },
    /// Let systemd do this to a unit.
    Unit(UnitVerb, &'static str),
}

/// What systemd does to a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitVerb {
    /// Restart the unit, and wait until it reports that it has started; a stopped unit is started.
    Restart,
    /// Restart without the wait: the unit of a k3s or RKE2 agent reports its start once its Node exists.
    RestartUnwaited,
    /// Enable the unit at boot.
    Enable,
    /// Stop the unit.
    Stop,
}

impl UnitVerb {
    /// The arguments for `systemctl`.
    pub const fn words(self) -> &'static [&'static str] {
        match self {
            Self::Restart => &["restart"],
            Self::RestartUnwaited => &["restart", "--no-block"],
            Self::Enable => &["enable"],
            Self::Stop => &["stop"],
        }
    }
}

/// The facts for a join.
#[derive(Clone, Debug)]
pub struct Order<'a> {
    /// The cluster to join.
    pub target: &'a Target,
    /// The name of the Node.
    pub node_name: &'a NodeName,
    /// The token of the join.
    pub token: &'a Token,
    /// The cluster's CAs, PEM.
    pub authorities_pem: &'a str,
    /// The hash of the bundle that held them, where there was a bundle.
    pub bundle: Option<BundleHash>,
    /// The distribution's own configuration, as an operator or a plan wrote it, where there is one.
    pub config: Option<&'a str>,
    /// Preflight checks of the distribution that an operator wants to ignore.
    pub ignored_checks: &'a [String],
}

/// A join without a certificate yet.
#[derive(Clone, Debug)]
pub struct Begun {
    /// The token that the join uses.
    pub token: Option<Token>,
    /// The CAs for whose servers the token is meant; empty where the join's files name none.
    pub authorities: Vec<CertificateDer<'static>>,
    /// The endpoint to which the join shows the token without knowing its CA; none where it always knows it.
    pub shown_at: Option<Endpoint>,
    /// Everything exists that the join needs to go on by itself.
    pub is_whole: bool,
    /// The endpoint at which the kubelet sends a CertificateSigningRequest that an approver has to approve; none where
    /// the distribution uses no such request.
    pub requests_at: Option<Endpoint>,
}

/// Where a token is tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The path of the request.
    pub path: String,
    /// True when the answer is this machine's Node; otherwise the answer says nothing about the Node.
    pub is_node: bool,
}

/// A request whose refusal says that the name belongs to another machine.
#[derive(Clone, Debug)]
pub struct NameTrial {
    /// The path of the request.
    pub path: String,
    /// The headers of the request.
    pub headers: Vec<(String, SecretString)>,
    /// What to do when the request is refused.
    pub advice: String,
}

/// A way to join.
pub trait Distribution: Debug + Send + Sync {
    /// The kind of the distribution.
    fn kind(&self) -> Kind;
    /// The unit that contains the kubelet.
    fn unit(&self) -> &'static str;
    /// The path of the kubelet's kubeconfig.
    fn kubeconfig(&self) -> String;
    /// The join on the machine that has no certificate yet; `runs`: the unit's process exists.
    ///
    /// # Errors
    ///
    /// The join's files cannot be read.
    fn begun(&self, root: &Root, runs: bool) -> Result<Option<Begun>, TargetError>;
    /// The files that a broken join leaves, apart from kubeconfigs.
    fn debris(&self) -> Vec<String>;
    /// The temporary files that a killed join leaves.
    fn scratch(&self, node: &NodeName) -> Vec<String>;
    /// True when a process with these arguments is this machine's kubelet, or contains it.
    fn is_kubelet(&self, words: &[&str]) -> bool;

    /// The path at which an anonymous client reads the cluster's CA.
    fn authority_path(&self) -> &'static str;
    /// Checks the answer to that request.
    ///
    /// # Errors
    ///
    /// The answer does not match the pins, the signature or the hash.
    fn judge(
        &self,
        endpoint: &Endpoint,
        target: &Target,
        answer: &Answer,
    ) -> Result<Discovered, DiscoveryError>;
    /// The CAs that an earlier join has left, when they are those that the target means.
    fn kept_authorities(&self, root: &Root, target: &Target) -> Option<Discovered>;
    /// True when an earlier join on the machine is of the target's cluster; `None` where the target does not identify it.
    fn is_of_target(&self, root: &Root, target: &Target, own: &Kubeconfig) -> Option<bool>;
    /// The request that tries a token.
    fn trial(&self, node: &NodeName) -> Trial;
    /// The request that finds out whether the name belongs to another machine, where the token may not read the Node.
    fn name_trial(&self, root: &Root, node: &NodeName) -> Option<NameTrial>;
    /// The API servers to ask with the kubelet's own certificate.
    fn api_servers(&self, target: &Target, own: &Kubeconfig) -> Vec<Endpoint>;
    /// The known addresses of the other cluster that a kubeconfig names; empty where none is known.
    fn stood_at(&self, root: &Root, own: &Kubeconfig) -> Vec<Endpoint>;
    /// True when a kubelet whose Node is gone needs a token to register again, even with a valid certificate.
    fn registers_by_token(&self) -> bool;

    /// The deeds that join a machine without a join.
    fn join(&self, order: &Order<'_>) -> Vec<Deed>;
    /// The deeds that give a new token to the kubelet and start it.
    fn bootstrap(&self, order: &Order<'_>) -> Vec<Deed>;
    /// The deeds that restart the kubelet: it registers at its start.
    fn restart(&self) -> Vec<Deed>;
    /// The deeds that remove the identity of an earlier join, and keep copies.
    fn reset(&self, target: &Target) -> Vec<Deed>;
}

/// The distribution that the target names.
///
/// # Errors
///
/// The agent's configuration cannot be read, so the place of its files is not known.
pub fn of(kind: Kind, root: &Root) -> Result<Box<dyn Distribution>, TargetError> {
    Ok(match kind {
        Kind::Kubeadm => Box::new(Kubeadm),
        Kind::K3s | Kind::Rke2 => Box::new(Supervised::of_machine(kind, root)?),
    })
}
