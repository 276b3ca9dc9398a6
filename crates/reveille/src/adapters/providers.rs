//! The list of clouds: a line for each kind, and no other module of the program knows one.
//!
//! ```text
//!  roster: CloudRef ─▶ the provider that knows it ─▶ Project: read, changed and listed
//!  nodes, or what a person says ─▶ the provider   ─▶ Project, and a Site for `init`
//! ```
//!
//! What a provider is, `reveille_cloud::provider` says. Two rosters with equal [`CloudRef`]s share one connection and one
//! listing. Nothing here retries or judges. docs/internals/adding-a-cloud.md explains how to add a provider.

use std::sync::Arc;

use futures::FutureExt as _;
use reveille_cloud::provider::{Connecting, Provider, Unconnected};
use reveille_core::effect::{ReadError, ReadErrorKind};
use reveille_core::model::id::CloudName;
use reveille_core::model::node::Node;
use reveille_wire::roster::{CLUSTER_CLOUD, CloudRef};

#[cfg(test)]
mod tests;

/// All providers. A Node belongs to the first one whose `has` accepts it, so the one with the most general ids comes last.
pub(crate) const PROVIDERS: &[&dyn Provider] = &[&reveille_ec2::Ec2, &reveille_openstack::OpenStack];

/// The name of this cloud in messages.
pub(crate) fn entry(at: &CloudRef) -> Arc<str> {
    if at.is_cluster() {
        return Arc::from(CLUSTER_CLOUD);
    }
    let entry = PROVIDERS.iter().find_map(|provider| provider.entry(at));
    entry.unwrap_or_else(|| Arc::from("a cloud of no kind that is known here"))
}

/// Logs in.
pub(crate) fn connect(name: CloudName, at: &CloudRef) -> Connecting {
    let unwired = || {
        let text =
            "a roster names a kind of cloud that this program has no adapter for; take another version of it";
        let error = ReadError { kind: ReadErrorKind::Malformed, text: Arc::from(text), retry_after: None };
        futures::future::ready(Err(Unconnected { error, hopeless: true })).boxed()
    };
    PROVIDERS.iter().find_map(|provider| provider.connect(name.clone(), at)).unwrap_or_else(unwired)
}

/// The provider that the Nodes name: the most frequent one among the Nodes that name any.
pub(crate) fn recognised(nodes: &[Arc<Node>]) -> Option<&'static dyn Provider> {
    let of = |node: &Arc<Node>| PROVIDERS.iter().position(|provider| provider.has(node));
    let mut counts = vec![0_usize; PROVIDERS.len()];
    for place in nodes.iter().filter_map(of) {
        counts[place] += 1;
    }
    let (count, provider) = counts.into_iter().zip(PROVIDERS).max_by_key(|(count, _)| *count)?;
    (count > 0).then_some(*provider)
}
