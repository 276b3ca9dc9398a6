//! Versions in a listing of nodes: a kubelet may be older than its API server, and never newer.
//!
//! Kubernetes' version skew policy allows a kubelet three minor versions behind the API server and none ahead. A listing shows
//! the API server's version as that of the kubelets on control plane nodes, which is near enough where one of those is older.

type Minor = (u32, u32);

/// What a listing says of versions.
#[derive(Debug, Default)]
pub(super) struct Versions {
    /// The latest of the control plane's.
    control_plane: Option<Minor>,
    /// The latest of the others, with its line.
    latest: Option<(Minor, u64, String)>,
}

impl Versions {
    /// Reads a row of a listing of nodes.
    pub(super) fn read(&mut self, number: u64, line: &str, words: &[&str]) {
        let Some(minor) = words.iter().find_map(|word| minor(word)) else { return };
        let leads = |word: &&str| {
            word.split(',').any(|role| matches!(role, "control-plane" | "master" | "controlplane"))
        };
        if words.iter().any(leads) {
            self.control_plane = self.control_plane.max(Some(minor));
        } else if self.latest.as_ref().is_none_or(|(latest, ..)| *latest < minor) {
            self.latest = Some((minor, number, line.to_owned()));
        }
    }

    /// The row of the node that is ahead of every control plane node.
    pub(super) fn newer(&mut self) -> Option<(u64, String)> {
        let control_plane = self.control_plane?;
        let (minor, number, line) = self.latest.take()?;
        (minor > control_plane).then_some((number, line))
    }
}

/// `v1.29.4+k3s1` is of `1.29`.
fn minor(word: &str) -> Option<Minor> {
    let mut parts = word.strip_prefix('v')?.splitn(3, '.');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?.parse().ok()?;
    parts.next().map(|_| (major, minor))
}
