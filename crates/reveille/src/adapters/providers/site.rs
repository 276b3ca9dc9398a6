//! A kind of cloud as `init` needs it, beside what is there: where a roster finds it, and how people talk of it.
//!
//! ```text
//!  what a person said ─▶ the kind opens it ─▶ Site, pure ─┬─ settle: inventory, nodes' instances ─▶ the roster's cloud
//!                                         └▶ Connected    └─ words: what a router is called there, the command that marks
//! ```
//!
//! A site holds no connection, so that everything that `init` writes can be tried on tables.

use std::collections::BTreeSet;

use reveille_core::model::id::{CloudName, InstanceId};
use reveille_core::model::instance::Mark;
use reveille_wire::roster::CloudRef;

use super::Connected;
use super::inventory::Inventory;
use crate::cli::failure::Failure;

/// A cloud that can be surveyed.
pub(crate) struct Opened {
    /// The connection.
    pub(crate) project: Connected,
    /// What else is to be known of it.
    pub(crate) site: Box<dyn Site>,
}

/// What a roster says of the cloud, once it is known what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settled {
    /// Where it is.
    pub(crate) at: CloudRef,
    /// The mark of the cluster's machines, where this kind of cloud has one that every program knows.
    pub(crate) cluster: Option<Mark>,
}

/// One project of a kind of cloud, for people.
pub(crate) trait Site: Send + Sync {
    /// What a roster calls such a cloud, unless somebody has a better name.
    fn cloud(&self) -> CloudName;
    /// The project, as in "none of the instances of …".
    fn called(&self) -> String;
    /// The options of `init` to look at where nothing fits, as in "check …".
    fn options(&self) -> &'static str;
    /// The command that prints which rights are needed there.
    fn rights(&self) -> &'static str;
    /// What carries routes there.
    fn router(&self) -> &'static str;
    /// What keeps machines there, where anything does.
    fn keeper(&self) -> &'static str {
        "group of the cloud"
    }
    /// Settles what is still open, by what is there. `nodes`: the instances that nodes of the cluster name.
    ///
    /// # Errors
    /// When only a person can tell which of several is meant, or nothing there is of the cluster that was named.
    fn settle(&self, inventory: &Inventory, nodes: &BTreeSet<InstanceId>) -> Result<Settled, Failure>;
    /// A mark of that key and value, as a person would put it there.
    fn mark(&self, key: &str, value: &str) -> Mark;
    /// Whether people put such a mark; others are the provider's own, or another program's.
    fn may_be_put(&self, mark: &Mark) -> bool;
    /// The command that puts these marks on these instances; they are at least one.
    fn command(&self, marks: &[&Mark], ids: &[&str]) -> String;
}

/// As a shell takes it for one word.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.=:/@%+,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}
