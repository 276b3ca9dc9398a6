//! What `init` needs to know about a provider, beside its content: how a roster refers to it, and its words in messages.
//!
//! ```text
//!  what a person said ─▶ the kind opens it ─▶ Site, pure ─┬─ settle: inventory, nodes' instances ─▶ the roster's cloud
//!                                         └▶ Connected    └─ words: what a router is called there, the command that marks
//! ```
//!
//! A site holds no connection, so that tables can test everything that `init` writes.

use std::collections::BTreeSet;

use reveille_core::model::id::{CloudName, InstanceId};
use reveille_core::model::instance::Mark;
use reveille_wire::roster::CloudRef;

use super::Connected;
use super::inventory::Inventory;
use crate::cli::failure::Failure;

/// A cloud that `init` can survey.
pub(crate) struct Opened {
    /// The connection.
    pub(crate) project: Connected,
    /// The provider's part of a roster and its words.
    pub(crate) site: Box<dyn Site>,
}

/// What a roster says about the cloud, once its content is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settled {
    /// The cloud in the form of the roster.
    pub(crate) at: CloudRef,
    /// The mark of the cluster's machines, where the provider has one that every program knows.
    pub(crate) cluster: Option<Mark>,
}

/// One project of a provider, as `init` shows it.
pub(crate) trait Site: Send + Sync {
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
    fn settle(&self, inventory: &Inventory, nodes: &BTreeSet<InstanceId>) -> Result<Settled, Failure>;
    /// A mark of this key and value, as an operator would set it there.
    fn mark(&self, key: &str, value: &str) -> Mark;
    /// Whether operators set such a mark; other marks belong to the provider or to another program.
    fn may_be_put(&self, mark: &Mark) -> bool;
    /// The command that sets these marks on these instances, of which there is at least one.
    fn command(&self, marks: &[&Mark], ids: &[&str]) -> String;
}

/// The text quoted as one word of a shell.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.=:/@%+,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}
