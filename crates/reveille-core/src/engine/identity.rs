//! The cluster that this roster is about: the controller adopts it once, keeps it in the ledger, and only a person changes
//! it.
//!
//! The controller adopts the first cluster only when it trusts a list of its Nodes. Otherwise the first read of a
//! kubeconfig that leads to an empty cluster would confirm that cluster. While another cluster answers, the controller
//! takes in nothing that it says ([`State::refuses`]): its Nodes would take the place of ours.

use std::sync::Arc;

use crate::effect::{Look, ReadError, ReadErrorKind};
use crate::event::{Answer, ClusterFact};
use crate::model::id::ClusterUid;
use crate::record::Record;

use super::State;

impl State {
    pub(super) fn on_identity(&mut self, cluster: ClusterUid) {
        self.cluster.identity.tell(cluster);
        self.review_identity();
    }

    /// A person says that this is the right cluster.
    pub(super) fn confirm_cluster(&mut self, cluster: ClusterUid) {
        self.cluster.identity.confirm(cluster);
        self.review_identity();
    }

    /// The controller takes in nothing that a cluster that is not ours says of Nodes. That the watch of that cluster lives is no
    /// sign of ours: a Node that went meanwhile went unseen.
    pub(super) fn refuses(&self, fact: &ClusterFact) -> bool {
        let of_nodes = !matches!(
            fact,
            ClusterFact::Identity(_) | ClusterFact::IdentityUnread(_) | ClusterFact::Failed(_)
        );
        of_nodes && self.cluster.source.is_refused()
    }

    /// What another cluster answers about one of our Nodes is no answer: it does not know the Node, and that proves
    /// nothing.
    pub(super) fn refuse_answer(
        &self,
        look: &Look,
        answer: Result<Answer, ReadError>,
    ) -> Result<Answer, ReadError> {
        if !self.cluster.source.is_refused() || !matches!(look, Look::Node(_) | Look::NodeEvents(_)) {
            return answer;
        }
        let text: Arc<str> = Arc::from(self.cluster.source.trust(self.now).to_string());
        Err(ReadError { kind: ReadErrorKind::Unavailable, text, retry_after: None })
    }

    /// The first cluster whose list of nodes is trusted is the one that the ledger is about.
    pub(super) fn adopt_cluster(&mut self) {
        let Some(first) = self.cluster.identity.first() else { return };
        let is_plausible = self.cluster.has_node() && !self.cluster.awaits_judgement();
        if is_plausible && self.cluster.source.trust(self.now).is_given() {
            self.expect_cluster(first.clone());
        }
    }

    fn expect_cluster(&mut self, cluster: ClusterUid) {
        self.cluster.identity.expect(cluster.clone());
        self.outbox.record(Record::Cluster { at: self.now, cluster });
    }

    fn review_identity(&mut self) {
        if let Some(cluster) = self.cluster.identity.replacement().cloned() {
            self.expect_cluster(cluster);
        }
        let why = self.cluster.identity.refusal();
        self.cluster.source.refuse(self.now, why.map(Arc::from));
    }
}
