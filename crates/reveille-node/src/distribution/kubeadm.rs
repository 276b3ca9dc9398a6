//! kubeadm: a configuration file, `kubeadm join`, `kubeadm reset`, and a kubelet in a unit of its own.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;

use super::{Deed, Distribution, Order, SCRATCH, TOKEN_PLACE};
use crate::target::{BOOTSTRAP_KUBECONFIG, KUBECONFIG, KUBELET_CONFIG, Target};

/// Shorter than what `reveille-agent` gives the verb, so that the program is ended by whoever began it.
const JOIN_WITHIN: Duration = Duration::from_secs(4 * 60 + 40);
const RESET_WITHIN: Duration = Duration::from_secs(2 * 60 + 30);

/// kubeadm.
#[derive(Clone, Copy, Debug)]
pub struct Kubeadm;

impl Distribution for Kubeadm {
    fn unit(&self) -> &'static str {
        "kubelet"
    }

    fn kubeconfig(&self) -> &'static str {
        KUBECONFIG
    }

    fn bootstrap_kubeconfig(&self) -> Option<&'static str> {
        Some(BOOTSTRAP_KUBECONFIG)
    }

    fn needed(&self) -> &'static [&'static str] {
        &[KUBELET_CONFIG]
    }

    fn control_plane_marks(&self) -> &'static [&'static str] {
        &[
            "/etc/kubernetes/manifests/kube-apiserver.yaml",
            "/etc/kubernetes/manifests/etcd.yaml",
            "/etc/kubernetes/admin.conf",
            "/var/lib/etcd/member",
        ]
    }

    fn debris(&self) -> &'static [&'static str] {
        &["/etc/kubernetes/pki/ca.crt"]
    }

    fn is_join(&self, arguments: &[&str]) -> bool {
        let program = arguments.first().and_then(|path| path.rsplit('/').next());
        program == Some("kubeadm") && matches!(arguments.get(1), Some(&("join" | "init" | "reset")))
    }

    fn join(&self, order: &Order<'_>) -> Vec<Deed> {
        let path = format!("{SCRATCH}/kubeadm-join.yaml");
        let mut arguments = vec!["join".to_owned(), "--config".to_owned(), path.clone()];
        if !order.ignored_checks.is_empty() {
            arguments.push(format!("--ignore-preflight-errors={}", order.ignored_checks.join(",")));
        }
        vec![
            Deed::Write { path: path.clone(), content: configuration(order) },
            Deed::Run { program: "kubeadm", arguments, within: JOIN_WITHIN },
            Deed::Remove(path),
        ]
    }

    fn bootstrap(&self, order: &Order<'_>) -> Vec<Deed> {
        let content = bootstrap_kubeconfig(order);
        vec![Deed::Write { path: BOOTSTRAP_KUBECONFIG.to_owned(), content }, Deed::Restart(self.unit())]
    }

    fn reset(&self, target: &Target) -> Vec<Deed> {
        let mut arguments = vec!["reset".to_owned(), "--force".to_owned()];
        arguments.extend(target.cri_socket.iter().map(|socket| format!("--cri-socket={socket}")));
        vec![
            Deed::Keep(vec![KUBECONFIG, BOOTSTRAP_KUBECONFIG, KUBELET_CONFIG, "/var/lib/kubelet/pki"]),
            Deed::Run { program: "kubeadm", arguments, within: RESET_WITHIN },
        ]
    }
}

/// What a person wrote, with the token of today; or a configuration that says what kubeadm's arguments say.
fn configuration(order: &Order<'_>) -> SecretString {
    if let Some(text) = order.config {
        let written = order.target.token.as_ref().map(|token| token.whole().expose_secret());
        let token = order.token.whole().expose_secret();
        return text.replace(written.unwrap_or(TOKEN_PLACE), token).into();
    }
    let target = order.target;
    let endpoint = target.endpoints.first().map(ToString::to_string).unwrap_or_default();
    let pins: Vec<String> = target.pins.iter().map(ToString::to_string).collect();
    let mut registration = json!({ "name": order.node_name.as_str() });
    if let Some(socket) = &target.cri_socket {
        registration["criSocket"] = json!(socket);
    }
    let file = json!({
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "JoinConfiguration",
        "discovery": { "bootstrapToken": {
            "apiServerEndpoint": endpoint,
            "token": order.token.whole().expose_secret(),
            "caCertHashes": pins,
            "unsafeSkipCAVerification": pins.is_empty(),
        } },
        "nodeRegistration": registration,
    });
    // JSON is YAML.
    file.to_string().into()
}

fn bootstrap_kubeconfig(order: &Order<'_>) -> SecretString {
    let endpoint = order.target.endpoints.first().map(ToString::to_string).unwrap_or_default();
    let file = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "kubernetes", "cluster": {
            "certificate-authority-data": STANDARD.encode(order.authorities_pem),
            "server": format!("https://{endpoint}"),
        } }],
        "contexts": [{ "name": "bootstrap", "context": { "cluster": "kubernetes", "user": "bootstrap" } }],
        "current-context": "bootstrap",
        "users": [{ "name": "bootstrap", "user": { "token": order.token.whole().expose_secret() } }],
    });
    file.to_string().into()
}
