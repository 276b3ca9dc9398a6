//! What differs between the ways to join: paths, units, whom a token is shown to, and which deeds make up a verb.
//!
//! ```text
//!  Verb, Order ─▶ Distribution ─▶ [Deed] ─▶ hands             files, answers ─▶ Distribution ─▶ inspect
//!                      ├─ Kubeadm      a program that joins, and a kubelet in a unit of its own
//!                      └─ Supervised   k3s, RKE2: a configuration, and a unit that joins at each of its starts
//! ```
//!
//! A verb is a list of deeds, as data: what is written, run and restarted can be read, compared and tested without doing it,
//! and there is no place for a shell in it. A token is written to a file that only root reads; it is never an argument, because
//! everybody on the machine can read those. What must never be reset is the same for all: a machine that one of them would spare,
//! each of them spares.

mod kubeadm;
mod marks;
mod supervised;

use std::fmt::Debug;
use std::time::Duration;

use reveille_core::model::id::NodeName;
use secrecy::SecretString;

use crate::api::Answer;
use crate::bundle_hash::BundleHash;
use crate::discovery::{Discovered, DiscoveryError};
use crate::root::Root;
use crate::target::kubeconfig::Kubeconfig;
use crate::target::{Endpoint, Kind, Target, TargetError, Token};

pub use kubeadm::Kubeadm;
pub use marks::{Marks, is_join};
pub use supervised::Supervised;

/// Stands for the token in a configuration that is made before the token is.
pub const TOKEN_PLACE: &str = "aaaaaa.0000000000000000";

/// Where what is written for a moment lies: in memory, gone after a reboot.
pub const SCRATCH: &str = "/run/reveille";

/// One thing to do to the machine.
#[derive(Clone, Debug)]
pub enum Deed {
    /// Write a file that root alone may read. What is there of that name is replaced at once, or not at all.
    Write {
        /// Where.
        path: String,
        /// What.
        content: SecretString,
    },
    /// Remove a file, if it is there.
    Remove(String),
    /// Keep copies of these files and folders, if they are there, before something throws them away.
    Keep(Vec<String>),
    /// Run a program to its end.
    Run {
        /// Its name; found on the path.
        program: &'static str,
        /// Its arguments. Never a secret.
        arguments: Vec<String>,
        /// Within this it ends, or is ended.
        within: Duration,
    },
    /// Let the system do this to a unit.
    Unit(UnitVerb, &'static str),
}

/// What the system does to a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitVerb {
    /// Restart it, and wait until it says that it has started; one that does not run is started.
    Restart,
    /// The same without the wait: the unit of an agent says that it has started once its node is there.
    RestartUnwaited,
    /// Let it start at each boot.
    Enable,
    /// Stop it.
    Stop,
}

impl UnitVerb {
    /// The words for `systemctl`.
    pub const fn words(self) -> &'static [&'static str] {
        match self {
            Self::Restart => &["restart"],
            Self::RestartUnwaited => &["restart", "--no-block"],
            Self::Enable => &["enable"],
            Self::Stop => &["stop"],
        }
    }
}

/// What is known when a machine is to join.
#[derive(Clone, Debug)]
pub struct Order<'a> {
    /// What is to be joined.
    pub target: &'a Target,
    /// The name of the Node.
    pub node_name: &'a NodeName,
    /// The token to join with.
    pub token: &'a Token,
    /// The cluster's authorities, PEM.
    pub authorities_pem: &'a str,
    /// The hash of the bundle that they came in, where they came in one.
    pub bundle: Option<BundleHash>,
    /// The distribution's own configuration, as a person or a plan wrote it, where there is one.
    pub config: Option<&'a str>,
    /// Preflight checks of the distribution that a person wants passed over.
    pub ignored_checks: &'a [String],
}

/// A join that has no certificate yet.
#[derive(Clone, Debug)]
pub struct Begun {
    /// What it lets itself in with.
    pub token: Option<Token>,
    /// Everything is there that it needs to go on by itself.
    pub is_whole: bool,
    /// Where its kubelet asks for a certificate by a request that somebody approves; none where none is asked for in this way.
    pub requests_at: Option<Endpoint>,
}

/// Where a token is tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// What is asked for with it.
    pub path: String,
    /// The answer is this machine's Node; otherwise it says nothing of the Node.
    pub is_node: bool,
}

/// A question whose refusal says that the name is another machine's.
#[derive(Clone, Debug)]
pub struct NameTrial {
    /// What is asked for.
    pub path: String,
    /// With what.
    pub headers: Vec<(String, SecretString)>,
    /// What to do when it is refused.
    pub advice: String,
}

/// A way to join.
pub trait Distribution: Debug + Send + Sync {
    /// Which one.
    fn kind(&self) -> Kind;
    /// The unit that the kubelet runs in.
    fn unit(&self) -> &'static str;
    /// The kubelet's kubeconfig.
    fn kubeconfig(&self) -> String;
    /// What is there of a join that has no certificate yet; `runs`: its unit's process is there.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    fn begun(&self, root: &Root, runs: bool) -> Result<Option<Begun>, TargetError>;
    /// What a join that broke off leaves, beside kubeconfigs.
    fn debris(&self) -> Vec<String>;
    /// What a join that was killed leaves where it writes for a moment.
    fn scratch(&self, node: &NodeName) -> Vec<String>;
    /// A process with these words is this machine's kubelet, or has it inside.
    fn is_kubelet(&self, words: &[&str]) -> bool;

    /// Where a stranger asks for the cluster's authority.
    fn authority_path(&self) -> &'static str;
    /// What the answer to that is worth.
    ///
    /// # Errors
    ///
    /// It is not what was pinned, signed or hashed.
    fn judge(
        &self,
        endpoint: &Endpoint,
        target: &Target,
        answer: &Answer,
    ) -> Result<Discovered, DiscoveryError>;
    /// The authorities that an earlier join has left, when they are those that the target means.
    fn kept_authorities(&self, root: &Root, target: &Target) -> Option<Discovered>;
    /// What an earlier join has left is of the cluster that is meant; `None` where nothing says which that is.
    fn is_of_target(&self, root: &Root, target: &Target, own: &Kubeconfig) -> Option<bool>;
    /// Where a token is tried.
    fn trial(&self, node: &NodeName) -> Trial;
    /// How it is learned that the name is another machine's, where the token may not read the Node.
    fn name_trial(&self, root: &Root, node: &NodeName) -> Option<NameTrial>;
    /// API servers that are asked with the kubelet's own certificate.
    fn api_servers(&self, target: &Target, own: &Kubeconfig) -> Vec<Endpoint>;
    /// Where the cluster stood that a kubeconfig of another one is of; empty where nothing says it.
    fn stood_at(&self, root: &Root, own: &Kubeconfig) -> Vec<Endpoint>;
    /// A kubelet whose Node is gone needs a token to register again, whatever its certificate is worth.
    fn registers_by_token(&self) -> bool;

    /// Joins a machine on which nothing of a join is.
    fn join(&self, order: &Order<'_>) -> Vec<Deed>;
    /// Puts a new token before the kubelet and starts it.
    fn bootstrap(&self, order: &Order<'_>) -> Vec<Deed>;
    /// Starts the kubelet again: it registers at its start.
    fn restart(&self) -> Vec<Deed>;
    /// Takes the identity of an earlier join away; copies are kept.
    fn reset(&self, target: &Target) -> Vec<Deed>;
}

/// The way that the target says.
///
/// # Errors
///
/// What its agent is told cannot be read, and with it where its files are.
pub fn of(kind: Kind, root: &Root) -> Result<Box<dyn Distribution>, TargetError> {
    Ok(match kind {
        Kind::Kubeadm => Box::new(Kubeadm),
        Kind::K3s | Kind::Rke2 => Box::new(Supervised::of_machine(kind, root)?),
    })
}
