//! What differs between the ways to join: paths, unit, configuration, and which deeds make up a verb.
//!
//! ```text
//!  Verb, Order ─▶ Distribution ─▶ [Deed] ─▶ hands
//! ```
//!
//! A verb is a list of deeds, as data: what is written, run and restarted can be read, compared and tested without doing it,
//! and there is no place for a shell in it. A token is written to a file that only root reads and that goes away again; it
//! is never an argument, because everybody on the machine can read those.

mod kubeadm;

use std::fmt::Debug;
use std::time::Duration;

use reveille_core::model::id::NodeName;
use secrecy::SecretString;

use crate::target::{Kind, Target, Token};

pub use kubeadm::Kubeadm;

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
    Keep(Vec<&'static str>),
    /// Run a program to its end.
    Run {
        /// Its name; found on the path.
        program: &'static str,
        /// Its arguments. Never a secret.
        arguments: Vec<String>,
        /// Within this it ends, or is ended.
        within: Duration,
    },
    /// Let the system restart a unit; one that does not run is started.
    Restart(&'static str),
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
    /// kubeadm's configuration as a person wrote it, where there is one.
    pub config: Option<&'a str>,
    /// Preflight checks of the distribution that a person wants passed over.
    pub ignored_checks: &'a [String],
}

/// A way to join.
pub trait Distribution: Debug + Send + Sync {
    /// The unit that the kubelet runs in.
    fn unit(&self) -> &'static str;
    /// The kubelet's kubeconfig.
    fn kubeconfig(&self) -> &'static str;
    /// The kubeconfig that it bootstraps with, where there is one.
    fn bootstrap_kubeconfig(&self) -> Option<&'static str>;
    /// What the kubelet needs beside a kubeconfig to go on by itself.
    fn needed(&self) -> &'static [&'static str];
    /// What only a control plane, or a member of etcd, has.
    fn control_plane_marks(&self) -> &'static [&'static str];
    /// What a join that broke off leaves, beside kubeconfigs.
    fn debris(&self) -> &'static [&'static str];
    /// A process with these arguments joins this machine.
    fn is_join(&self, arguments: &[&str]) -> bool;
    /// Joins a machine on which nothing of a join is.
    fn join(&self, order: &Order<'_>) -> Vec<Deed>;
    /// Puts a new token before the kubelet and starts it.
    fn bootstrap(&self, order: &Order<'_>) -> Vec<Deed>;
    /// Takes everything of an earlier join away; copies are kept.
    fn reset(&self, target: &Target) -> Vec<Deed>;
}

/// The way that the target says.
pub fn of(kind: Kind) -> Option<Box<dyn Distribution>> {
    match kind {
        Kind::Kubeadm => Some(Box::new(Kubeadm)),
        Kind::K3s | Kind::Rke2 => None,
    }
}
