//! The files of an earlier join: the kubelet's kubeconfig, or its bootstrap kubeconfig, and the kubelet's flags.

use reveille_core::model::id::NodeName;
use serde::Deserialize;

use super::file::nothing;
use super::kubeconfig::{Kubeconfig, unreadable};
use super::{Target, TargetError, Token, ToldBy, documents};
use crate::root::Root;

/// The kubelet's own kubeconfig, as kubeadm's unit names it.
pub const KUBECONFIG: &str = "/etc/kubernetes/kubelet.conf";
/// The kubeconfig with the bootstrap token; it is removed when the kubelet has a certificate.
pub const BOOTSTRAP_KUBECONFIG: &str = "/etc/kubernetes/bootstrap-kubelet.conf";
/// The kubelet's configuration.
pub const KUBELET_CONFIG: &str = "/var/lib/kubelet/config.yaml";
/// The part of the kubelet's configuration for this machine, as newer kubeadm writes it.
const INSTANCE_CONFIG: &str = "/var/lib/kubelet/instance-config.yaml";
/// The kubelet's flags from kubeadm.
pub const KUBELET_FLAGS: &str = "/var/lib/kubelet/kubeadm-flags.env";
/// The kubelet's flags from an operator: Debian's file, and Red Hat's.
const EXTRA_FLAGS: [&str; 2] = ["/etc/default/kubelet", "/etc/sysconfig/kubelet"];

/// The kubelet's flags, in the order in which it gets them: of a repeated flag the last counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KubeletFlags(Vec<(String, String)>);

impl KubeletFlags {
    /// Reads the files with the flags. A missing file has none.
    ///
    /// # Errors
    ///
    /// A file exists and cannot be read.
    pub fn read(root: &Root) -> Result<Self, TargetError> {
        let mut flags = Vec::new();
        for path in std::iter::once(KUBELET_FLAGS).chain(EXTRA_FLAGS) {
            let text = root.text(path).map_err(|error| unreadable(path, &error))?;
            flags.extend(Self::parse(&text.unwrap_or_default()).0);
        }
        Ok(Self(flags))
    }

    /// Reads lines of `NAME="--flag=value --other value"`.
    pub fn parse(text: &str) -> Self {
        let mut flags: Vec<(String, String)> = Vec::new();
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            let Some((_, value)) = line.split_once('=') else { continue };
            let mut awaits = false;
            for word in value.trim_matches(['"', '\'']).split_whitespace() {
                match (word.strip_prefix("--"), flags.last_mut()) {
                    (Some(flag), _) => {
                        let (name, value) = flag.split_once('=').unwrap_or((flag, ""));
                        awaits = !flag.contains('=');
                        flags.push((name.to_owned(), value.trim_matches(['"', '\'']).to_owned()));
                    }
                    (None, Some((_, value))) if awaits => {
                        word.trim_matches(['"', '\'']).clone_into(value);
                        awaits = false;
                    }
                    (None, _) => {}
                }
            }
        }
        Self(flags)
    }

    /// The value in force.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(flag, _)| flag == name).map(|(_, value)| value.as_str())
    }
}

/// The target of an earlier join.
pub(super) fn target(root: &Root) -> Result<Option<Target>, TargetError> {
    let joined = kubeconfig(root, KUBECONFIG)?;
    let bootstrap = kubeconfig(root, BOOTSTRAP_KUBECONFIG)?;
    let (path, read) = match (joined, &bootstrap) {
        (Some(read), _) => (KUBECONFIG, read),
        (None, Some(read)) => (BOOTSTRAP_KUBECONFIG, read.clone()),
        (None, None) => return Ok(None),
    };
    let token = bootstrap.and_then(|bootstrap| bootstrap.token);
    let flags = KubeletFlags::read(root)?;
    Ok(Some(Target {
        told_by: ToldBy::Machine(path.into()),
        endpoints: vec![read.server.clone()],
        pins: read.pins(),
        token: token.and_then(|token| Token::parse(BOOTSTRAP_KUBECONFIG, &token).ok()),
        node_name: flags.get("hostname-override").map(NodeName::from),
        cri_socket: cri_socket(root, &flags)?,
        ..nothing()
    }))
}

/// The kubeconfig at that path. A broken join leaves an empty file, which says nothing.
fn kubeconfig(root: &Root, path: &str) -> Result<Option<Kubeconfig>, TargetError> {
    let text = root.text(path).map_err(|error| unreadable(path, &error))?;
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else { return Ok(None) };
    Kubeconfig::parse(root, &text).map(Some).map_err(|error| error.within(path))
}

/// The socket at which the kubelet looks for its runtime.
fn cri_socket(root: &Root, flags: &KubeletFlags) -> Result<Option<String>, TargetError> {
    if let Some(socket) = flags.get("container-runtime-endpoint") {
        return Ok(Some(socket.to_owned()));
    }
    for path in [INSTANCE_CONFIG, KUBELET_CONFIG] {
        let text = root.text(path).map_err(|error| unreadable(path, &error))?;
        // The check that reads the whole configuration reports other errors in it.
        let read = documents::<Kubelet>(&text.unwrap_or_default()).unwrap_or_default();
        let socket =
            read.into_iter().filter_map(|one| one.container_runtime_endpoint).find(|one| !one.is_empty());
        if socket.is_some() {
            return Ok(socket);
        }
    }
    Ok(None)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kubelet {
    container_runtime_endpoint: Option<String>,
}
