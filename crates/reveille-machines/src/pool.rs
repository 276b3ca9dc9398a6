//! Which label tells the pool of a machine, where its maker sets one.
//!
//! Providers and installers mark the machines that they make alike with a label of their own; no label is common to all.
//! A machine without any of them, and without the control plane's, is a worker: it counts as if it had [`ROLE`] with the
//! value [`WORKER`], so that a roster can name the machines that nothing else tells apart.

use std::collections::BTreeMap;
use std::sync::Arc;

use reveille_core::model::instance::Mark;

/// Labels, of a Node or of a record.
pub type Labels = BTreeMap<Arc<str>, Arc<str>>;

/// The label of machines that run the control plane (kubeadm, k3s, RKE2, Cluster API). Its value is empty, or `true`.
pub const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

/// The label that a worker counts as having.
pub const ROLE: &str = "reveille.dev/role";
/// Its value.
pub const WORKER: &str = "worker";

/// Labels that name the pool of a machine, and who sets them. Where a machine has several, the first one tells.
const POOLS: [(&str, &str); 17] = [
    ("karpenter.sh/nodepool", "Karpenter"),
    ("eks.amazonaws.com/nodegroup", "EKS"),
    ("alpha.eksctl.io/nodegroup-name", "eksctl"),
    ("cloud.google.com/gke-nodepool", "GKE"),
    ("kubernetes.azure.com/agentpool", "AKS"),
    ("worker.gardener.cloud/pool", "Gardener"),
    ("doks.digitalocean.com/node-pool", "DigitalOcean"),
    ("lke.linode.com/pool-id", "Linode"),
    ("k8s.scaleway.com/pool-name", "Scaleway"),
    ("node.k8s.ovh/nodepool", "OVHcloud"),
    ("magnum.openstack.org/nodegroup", "Magnum"),
    ("kops.k8s.io/instancegroup", "kOps"),
    ("hcloud/node-group", "cluster-autoscaler on Hetzner"),
    ("cluster.x-k8s.io/deployment-name", "Cluster API"),
    ("cluster.x-k8s.io/pool-name", "Cluster API"),
    ("cluster.x-k8s.io/control-plane-name", "Cluster API"),
    ("machine.openshift.io/cluster-api-machineset", "OpenShift"),
];

/// A label that tells a pool, and who sets it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PoolLabel {
    /// The label, as a mark.
    pub mark: Mark,
    /// Who sets it; `None` for the labels of Kubernetes.
    pub maker: Option<&'static str>,
}

impl PoolLabel {
    /// The name that the label gives the pool.
    pub fn name(&self) -> &str {
        match &self.mark {
            Mark::Metadata(key, _) if **key == *CONTROL_PLANE => "control-plane",
            Mark::Metadata(key, _) if **key == *ROLE => "workers",
            Mark::Metadata(_, value) => value,
            Mark::Tag(tag) => tag,
        }
    }
}

/// The label that tells the pool of a machine with these labels.
pub fn of<'l>(labels: impl Iterator<Item = &'l Labels> + Clone) -> PoolLabel {
    let find = |key: &str| labels.clone().find_map(|it| it.get_key_value(key));
    let pair = |(key, value): (&Arc<str>, &Arc<str>)| Mark::Metadata(key.clone(), value.clone());
    let made = POOLS.iter().find_map(|(key, maker)| {
        let found = find(key).filter(|(_, value)| is_name(value))?;
        Some(PoolLabel { mark: pair(found), maker: Some(*maker) })
    });
    let leads = || find(CONTROL_PLANE).map(|found| PoolLabel { mark: pair(found), maker: None });
    let worker = || PoolLabel { mark: Mark::Metadata(ROLE.into(), WORKER.into()), maker: None };
    made.or_else(leads).unwrap_or_else(worker)
}

/// A value that the API server takes for a label, and that is not empty.
fn is_name(value: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let ends = |c: char| c.is_ascii_alphanumeric();
    (1..=63).contains(&value.len())
        && value.starts_with(ends)
        && value.ends_with(ends)
        && value.chars().all(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_label_of_table_tells_the_pool() {
        let of = |pairs: &[(&str, &str)]| {
            let labels: Labels = pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
            let found = super::of([&labels].into_iter());
            (found.name().to_owned(), found.maker)
        };
        assert_eq!(of(&[]), ("workers".to_owned(), None));
        assert_eq!(of(&[(CONTROL_PLANE, "")]), ("control-plane".to_owned(), None));
        assert_eq!(
            of(&[(CONTROL_PLANE, "true"), ("kops.k8s.io/instancegroup", "cp-a")]),
            ("cp-a".to_owned(), Some("kOps"))
        );
        let both = [("eks.amazonaws.com/nodegroup", "ng"), ("alpha.eksctl.io/nodegroup-name", "x")];
        assert_eq!(of(&both), ("ng".to_owned(), Some("EKS")));
        assert_eq!(of(&[("karpenter.sh/nodepool", "")]), ("workers".to_owned(), None));
    }
}
