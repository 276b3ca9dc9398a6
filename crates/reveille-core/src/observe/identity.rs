//! Which cluster the API server is of: the UID of its namespace `kube-system`.
//!
//! ```text
//!  ledger ──▶ expected ──┐
//!                        ├─▶ refusal: the source is not trusted until a person confirms the other cluster
//!  API server ─▶ found ──┘
//! ```
//!
//! The namespace is created with the cluster and lives as long, so its UID changes only when the cluster is rebuilt. The
//! OpenTelemetry attribute `k8s.cluster.uid` is the same UID. A kubeconfig that leads elsewhere (an empty API server, the
//! staging cluster) answers everything with 200, and every machine seems to have lost its Node.
//!
//! A UID that cannot be read refuses nothing and confirms nothing.

use std::sync::Arc;

use crate::model::id::ClusterUid;
use crate::safeguard::{Safeguard, stands};

/// The cluster that is expected, and the one that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    expected: Option<ClusterUid>,
    found: Option<ClusterUid>,
    confirmed: Option<ClusterUid>,
    unread: Option<Arc<str>>,
}

impl Identity {
    /// The cluster that the ledger is about, where it says so.
    pub const fn expected(&self) -> Option<&ClusterUid> {
        self.expected.as_ref()
    }

    /// The cluster that answered last.
    pub const fn found(&self) -> Option<&ClusterUid> {
        self.found.as_ref()
    }

    /// Why the API server did not tell which cluster it is of, when it was asked last.
    pub const fn unread(&self) -> Option<&Arc<str>> {
        self.unread.as_ref()
    }

    /// From here on this is the right cluster.
    pub fn expect(&mut self, cluster: ClusterUid) {
        self.expected = Some(cluster);
    }

    /// The API server told which cluster it is of.
    pub fn tell(&mut self, cluster: ClusterUid) {
        (self.found, self.unread) = (Some(cluster), None);
    }

    /// The API server did not tell which cluster it is of. What it told before still counts.
    pub fn fail(&mut self, why: Arc<str>) {
        self.unread = Some(why);
    }

    /// A person says that this cluster is the right one, should it answer. One command may start several rosters, of which
    /// the others are about other clusters.
    pub fn confirm(&mut self, cluster: ClusterUid) {
        self.confirmed = Some(cluster);
    }

    /// The cluster that answers in place of the expected one, where a person confirmed it.
    pub fn replacement(&self) -> Option<&ClusterUid> {
        let is_another = self.expected.is_some() && self.expected != self.found;
        self.found.as_ref().filter(|_| is_another && self.confirmed == self.found)
    }

    /// The cluster to expect from here on, where none is expected yet.
    pub fn first(&self) -> Option<&ClusterUid> {
        self.found.as_ref().filter(|_| self.expected.is_none())
    }

    /// Why nothing that this API server says may be taken in, where that is so.
    pub fn refusal(&self) -> Option<String> {
        let (expected, found) = (self.expected.as_ref()?, self.found.as_ref()?);
        let is_another = expected != found && stands(Safeguard::SameCluster);
        is_another.then(|| {
            format!(
                "another cluster answers: its kube-system has UID {found}, the ledger is about UID {expected}; \
                 if that is right, confirm it: reveille run --confirm-cluster {found}"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cluster_other_than_expected_is_refused_until_confirmed() {
        let mut identity = Identity::default();
        identity.fail("403 Forbidden".into());
        assert_eq!((identity.refusal(), identity.first()), (None, None), "nothing is known");
        identity.tell("uid-a".into());
        assert_eq!(identity.first(), Some(&"uid-a".into()));
        identity.expect("uid-a".into());
        assert_eq!((identity.refusal(), identity.first(), identity.unread()), (None, None, None));
        identity.tell("uid-b".into());
        let why = identity.refusal().unwrap_or_default();
        assert!(why.contains("uid-a") && why.contains("--confirm-cluster uid-b"), "{why}");
        identity.fail("403 Forbidden".into());
        assert!(identity.refusal().is_some(), "silence confirms nothing");
        assert_eq!(identity.replacement(), None);
        identity.confirm("uid-c".into());
        assert_eq!(identity.replacement(), None, "that is another one again");
        identity.confirm("uid-b".into());
        assert_eq!(identity.replacement(), Some(&"uid-b".into()));
        identity.expect("uid-b".into());
        assert_eq!((identity.refusal(), identity.replacement()), (None, None));
    }
}
