//! The paths that the probe reads, by the program that joins this machine: kubeadm, k3s or RKE2.

use reveille_agent::checkup::facts::Supervised;

use crate::root::Root;
use crate::target::agent_config::{AgentConfig, units};
use crate::target::{KUBECONFIG, Kind, Target};

/// The sockets at which kubeadm looks for a runtime when none is named.
const SOCKETS: [&str; 3] =
    ["/run/containerd/containerd.sock", "/run/crio/crio.sock", "/run/cri-dockerd.sock"];
/// The socket of the runtime that k3s and RKE2 bring.
const OWN_SOCKET: &str = "/run/k3s/containerd/containerd.sock";
/// The directory in which runtimes look for CNI configurations.
const CNI_FOLDER: &str = "/etc/cni/net.d";

/// The paths.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) kind: Kind,
    /// The program that joins, where it is not kubeadm.
    pub(super) supervised: Option<Supervised>,
    pub(super) unit: String,
    pub(super) kubeconfig: String,
    pub(super) sockets: Vec<&'static str>,
    pub(super) cni_folders: Vec<String>,
}

impl Layout {
    /// The paths by the target, or else by the files on the machine.
    pub(super) fn of(root: &Root, target: Option<&Target>) -> Self {
        let kind = target.map_or_else(|| Target::kind_of_machine(root), |target| target.kind);
        let usual = vec![CNI_FOLDER.to_owned()];
        if kind == Kind::Kubeadm {
            return Self {
                kind,
                supervised: None,
                unit: "kubelet".to_owned(),
                kubeconfig: KUBECONFIG.to_owned(),
                sockets: SOCKETS.to_vec(),
                cni_folders: usual,
            };
        }
        let told = AgentConfig::read(kind, root).map(|config| config.data_folder());
        let own = Supervised {
            name: kind.name().to_owned(),
            unit: format!("{kind}-agent"),
            folder: told.unwrap_or_else(|_| format!("/var/lib/rancher/{kind}")),
            has_unit: units(kind).iter().any(|path| root.has(path)),
            wanted_hash: target.and_then(|target| target.bundle).map(|hash| hash.to_string()),
        };
        let cni_folders = [format!("{}/agent/etc/cni/net.d", own.folder)].into_iter().chain(usual).collect();
        Self {
            kind,
            unit: own.unit.clone(),
            kubeconfig: own.kubeconfig(),
            sockets: vec![OWN_SOCKET],
            cni_folders,
            supervised: Some(own),
        }
    }
}
