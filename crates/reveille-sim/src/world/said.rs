//! What the cluster says of one machine in words: its Node, events about it, its request for a certificate.
//!
//! The text is derived from the true state, as every other answer. A guest whose registration waits for an approval has a request
//! that no approver decided, and one that has joined has a certificate. Other requests tell nothing and are left out.

use std::sync::Arc;

use reveille_core::effect::ReadError;
use reveille_core::event::Answer;
use reveille_core::model::id::InstanceId;
use reveille_core::model::log_evidence::{CertificateRequest, EvidenceQuery, RequestState, Said};
use reveille_core::model::node::Node;

use super::World;
use super::vm::Trouble;

impl World {
    pub(super) fn said_of(
        &self,
        id: &InstanceId,
        evidence_query: &EvidenceQuery,
    ) -> Result<Answer, ReadError> {
        if self.lies.api_silent {
            return Err(self.api_error());
        }
        let name = evidence_query.node.as_ref();
        let node = name.and_then(|name| self.cluster.nodes.get(name)).filter(|_| !self.lies.nodes_empty);
        Ok(Answer::Said(Arc::new(Said {
            node: node.cloned(),
            events: name.map_or_else(Vec::new, |name| self.cluster.said_of(self.now, name)),
            requests: self.request_of(id).into_iter().collect(),
            unread: Vec::new(),
        })))
    }

    /// Its kubelet has asked for a certificate, and waits.
    fn request_of(&self, id: &InstanceId) -> Option<CertificateRequest> {
        let waits = |line: &String| line.contains("Waiting for client certificate to be issued");
        let vm = self.vms.get(id).filter(|vm| vm.trouble == Some(Trouble::NotApproved))?;
        vm.console.iter().any(waits).then(|| CertificateRequest {
            name: "csr-7kx2p".into(),
            signer: "kubernetes.io/kube-apiserver-client-kubelet".into(),
            requester: "system:bootstrap:q1w2e3".into(),
            state: RequestState::Pending,
            message: "".into(),
            stamped: "2026-03-02T08:04:12Z".into(),
        })
    }
}

/// The catalogue's word for what a Node's own conditions say.
pub(super) fn condition_names(node: &Node) -> Option<&'static str> {
    let of = |words: &str| node.conditions.iter().any(|condition| condition.message.contains(words));
    if of("NetworkPluginNotReady") {
        Some("cni-not-installed")
    } else if of("PLEG is not healthy") {
        Some("container-runtime-down")
    } else {
        None
    }
}
