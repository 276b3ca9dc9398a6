//! What a machine's kubelet shows the API server: the credentials of its join, or of an earlier one.
//!
//! A kubelet with bad credentials runs, is refused, and reports nothing: its lease goes silent, and it registers nowhere. The
//! cure depends on the credentials: a new token where only a date has passed, a reset and a join where they are of an earlier
//! cluster.

use reveille_agent::model::{Credentials, ForeignCluster};

/// The credentials on a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum KubeletCredentials {
    /// Those of its join.
    #[default]
    Good,
    /// Their date has passed.
    Expired,
    /// The API server refuses them, within their dates.
    Refused,
    /// They are of a cluster that is gone: the present one stands at its address.
    Replaced,
    /// They are of another cluster, which lives.
    Foreign,
    /// They are of another cluster, which does not answer.
    ForeignSilent,
    /// There are none: everything was reset.
    Nothing,
}

/// Those that a scenario can put on a machine, as a clause.
const SPOKEN: [(KubeletCredentials, &str); 5] = [
    (KubeletCredentials::Expired, "their date has passed"),
    (KubeletCredentials::Refused, "the API server refuses them"),
    (KubeletCredentials::Replaced, "their cluster is gone, and ours stands at its address"),
    (KubeletCredentials::Foreign, "their cluster lives"),
    (KubeletCredentials::ForeignSilent, "their cluster does not answer"),
];

impl KubeletCredentials {
    pub(crate) fn from_clause(text: &str) -> Result<Self, String> {
        SPOKEN
            .iter()
            .find(|(_, clause)| *clause == text)
            .map(|(kubelet_credentials, _)| *kubelet_credentials)
            .ok_or_else(|| {
                let all: Vec<&str> = SPOKEN.iter().map(|(_, clause)| *clause).collect();
                format!("`{text}` is nothing that old credentials can be; one of: {}", all.join("; "))
            })
    }

    pub(crate) fn clause(self) -> &'static str {
        SPOKEN
            .iter()
            .find(|(kubelet_credentials, _)| *kubelet_credentials == self)
            .map_or("there are none", |(_, clause)| clause)
    }

    /// What an agent finds when it tries them; none for good ones, which may not have been issued yet.
    pub(crate) const fn credentials(self) -> Option<Credentials> {
        Some(match self {
            Self::Good => return None,
            Self::Expired => Credentials::Expired,
            Self::Refused => Credentials::Refused,
            Self::Replaced => Credentials::Foreign(ForeignCluster::Replaced),
            Self::Foreign => Credentials::Foreign(ForeignCluster::Lives),
            Self::ForeignSilent => Credentials::Foreign(ForeignCluster::Silent),
            Self::Nothing => Credentials::Nothing,
        })
    }
}
