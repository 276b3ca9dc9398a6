//! What `init` needs to know about a cloud beside its content: how a roster refers to it, and its words in messages.
//!
//! ```text
//!  what a person said ─▶ Provider::open ─▶ Site, pure ─┬─ settle: inventory, nodes' instances ─▶ the roster's cloud
//!                                       └▶ Connected   └─ words: what a router is called there, the command that marks
//! ```
//!
//! A site holds no connection, so that tables can test everything that `init` writes.

use std::collections::BTreeSet;
use std::error::Error;

use reveille_core::model::id::{CloudName, InstanceId};
use reveille_core::model::instance::Mark;
use reveille_wire::roster::CloudRef;

use crate::inventory::Inventory;

/// Why `init` cannot go on with a cloud.
#[derive(Debug)]
pub struct OpenError {
    /// The error.
    pub source: Box<dyn Error + Send + Sync>,
    /// The command line, or a file that it names, is wrong; otherwise the cloud cannot be asked.
    pub usage: bool,
    /// What to do about it.
    pub next: Option<String>,
}

impl OpenError {
    /// The command line, or a file that it names, is wrong.
    pub fn usage(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { source: source.into(), usage: true, next: None }
    }

    /// The cloud cannot be asked, or does not tell.
    pub fn cannot_tell(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { source: source.into(), usage: false, next: None }
    }

    /// What to do about it.
    #[must_use]
    pub fn next(self, next: impl Into<String>) -> Self {
        Self { next: Some(next.into()), ..self }
    }
}

/// What a roster says about the cloud, once its content is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The cloud in the form of the roster.
    pub at: CloudRef,
    /// The mark of the cluster's machines, where the provider has one that every program knows.
    pub cluster: Option<Mark>,
}

/// One project of a provider, as `init` shows it.
pub trait Site: Send + Sync {
    /// The default name of such a cloud in a roster.
    fn cloud(&self) -> CloudName;
    /// The name of the project, as in "none of the instances of …".
    fn called(&self) -> String;
    /// The options of `init` to check where nothing fits, as in "check …".
    fn options(&self) -> &'static str;
    /// The command that prints the permissions that Reveille needs there.
    fn rights(&self) -> &'static str;
    /// The provider's word for what carries routes.
    fn router(&self) -> &'static str;
    /// The provider's word for a group that creates and replaces machines, where it has one.
    fn keeper(&self) -> &'static str {
        "group of the cloud"
    }
    /// Decides what is still open from the content. `nodes` are the instances that Nodes of the cluster name.
    ///
    /// # Errors
    /// When only an operator can tell which of several is right, or the named cluster has no instance there.
    fn settle(&self, inventory: &Inventory, nodes: &BTreeSet<InstanceId>) -> Result<Settled, OpenError>;
    /// A mark of this key and value, as an operator would set it there.
    fn mark(&self, key: &str, value: &str) -> Mark;
    /// Whether operators set such a mark; other marks belong to the provider or to another program.
    fn may_be_put(&self, mark: &Mark) -> bool;
    /// The command that sets these marks on these instances, of which there is at least one.
    fn command(&self, marks: &[&Mark], ids: &[&str]) -> String;
}
