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
        // Of this node: machines that are containers may share the folder.
        let path = format!("{SCRATCH}/kubeadm-join-{}.yaml", order.node_name);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Root;
    use crate::target::{Arguments, Token};
    use reveille_core::model::id::NodeName;

    const TOKEN: &str = "abcdef.0123456789abcdef";

    fn target() -> Target {
        let pin = format!("sha256:{}", "ab".repeat(32));
        let arguments = Arguments {
            words: vec!["10.0.0.1:6443".to_owned()],
            token: Some("oldold.0123456789abcdef".into()),
            ca_cert_hashes: vec![pin],
            cri_socket: Some("unix:///run/crio.sock".to_owned()),
            ..Arguments::default()
        };
        Target::find(&arguments, &Root::new("/nowhere")).unwrap().unwrap()
    }

    fn deeds(config: Option<&str>, of: fn(&Kubeadm, &Order<'_>) -> Vec<Deed>) -> Vec<Deed> {
        let (target, token) = (target(), Token::parse("test", &TOKEN.into()).unwrap());
        let ignored = ["Swap".to_owned(), "Mem".to_owned()];
        let order = Order {
            target: &target,
            node_name: &NodeName::from("w-1"),
            token: &token,
            authorities_pem: "PEM",
            config,
            ignored_checks: &ignored,
        };
        of(&Kubeadm, &order)
    }

    fn written(deeds: &[Deed]) -> (&str, serde_json::Value) {
        let Some(Deed::Write { path, content }) = deeds.first() else { panic!("{deeds:?}") };
        (path, serde_json::from_str(content.expose_secret()).unwrap_or_default())
    }

    #[test]
    fn a_token_is_in_a_file_that_goes_away_and_in_no_argument() {
        let deeds = deeds(None, Kubeadm::join);
        let (path, file) = written(&deeds);
        assert_eq!(file["discovery"]["bootstrapToken"]["token"], TOKEN);
        assert_eq!(file["discovery"]["bootstrapToken"]["apiServerEndpoint"], "10.0.0.1:6443");
        assert_eq!(file["discovery"]["bootstrapToken"]["unsafeSkipCAVerification"], false);
        assert_eq!(file["nodeRegistration"]["criSocket"], "unix:///run/crio.sock");
        assert!(path.contains("w-1"), "two that share the folder do not share the file: {path}");
        let Some(Deed::Run { program: "kubeadm", arguments, .. }) = deeds.get(1) else { panic!("{deeds:?}") };
        assert_eq!(arguments, &["join", "--config", path, "--ignore-preflight-errors=Swap,Mem"]);
        assert!(matches!(deeds.last(), Some(Deed::Remove(removed)) if removed == path));
        assert!(!format!("{deeds:?}").contains(&TOKEN[7..]), "whoever prints deeds prints no token");
    }

    #[test]
    fn a_persons_configuration_is_taken_as_it_is_with_the_token_of_today() {
        for (token, text) in [("oldold.0123456789abcdef", "kept"), (TOKEN_PLACE, "made before there was one")]
        {
            let config = format!("{{\"note\": \"{text}\", \"discovery\": {{\"token\": \"{token}\"}}}}");
            let (target, new) = (target(), Token::parse("test", &TOKEN.into()).unwrap());
            let target =
                Target { token: (token != TOKEN_PLACE).then(|| target.token.clone()).flatten(), ..target };
            let order = Order {
                target: &target,
                node_name: &NodeName::from("w-1"),
                token: &new,
                authorities_pem: "",
                config: Some(&config),
                ignored_checks: &[],
            };
            let deeds = Kubeadm.join(&order);
            let (_, file) = written(&deeds);
            assert_eq!((&file["note"], &file["discovery"]["token"]), (&text.into(), &TOKEN.into()));
        }
    }

    #[test]
    fn a_new_token_is_put_before_the_kubelet_and_a_reset_keeps_copies_first() {
        let bootstrap = deeds(None, Kubeadm::bootstrap);
        let (path, file) = written(&bootstrap);
        assert_eq!(path, BOOTSTRAP_KUBECONFIG);
        assert_eq!(file["users"][0]["user"]["token"], TOKEN);
        assert!(matches!(bootstrap.last(), Some(Deed::Restart("kubelet"))));
        let reset = Kubeadm.reset(&target());
        assert!(matches!(reset.first(), Some(Deed::Keep(kept)) if kept.contains(&KUBECONFIG)), "{reset:?}");
        assert!(matches!(reset.get(1), Some(Deed::Run { program: "kubeadm", .. })));
    }

    #[test]
    fn whose_process_is_a_join() {
        for (line, wanted) in [
            ("kubeadm join 10.0.0.1:6443", true),
            ("/usr/bin/kubeadm reset -f", true),
            ("/usr/bin/kubeadm init", true),
            ("kubeadm token list", false),
            ("vi kubeadm join", false),
            ("", false),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(Kubeadm.is_join(&words), wanted, "{line}");
        }
    }
}
