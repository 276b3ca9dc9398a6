//! The adapter for a Kubernetes cluster.
//!
//! `reveille_kube` does the work; this module only gives it the interface of the driver. Nodes are watched, not listed,
//! so there is nothing to list at once.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use reveille_core::effect::{Call, Look, Outcome, ReadError};
use reveille_core::event::Answer;
use reveille_kube::{Cluster, ClusterConfig};
use reveille_wire::roster::ClusterRef;

use super::Adapter;

/// How a cluster of a roster is reached.
pub(crate) fn config(cluster: &ClusterRef) -> ClusterConfig {
    ClusterConfig { kubeconfig: cluster.kubeconfig.clone(), context: cluster.context.clone() }
}

/// The adapter.
pub(crate) struct ClusterAdapter(pub(crate) Cluster);

impl Adapter for ClusterAdapter {
    fn look(&self, look: Look) -> BoxFuture<'static, Result<Answer, ReadError>> {
        let cluster = self.0.clone();
        async move { cluster.look(&look).await }.boxed()
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Outcome> {
        let cluster = self.0.clone();
        async move { cluster.perform(&call).await }.boxed()
    }

    fn list_now(&self) {}
}
